"""The functions of a model: the same values for numbers, arrays and symbols, and NumPy's style on arrays of symbols."""

import math
import operator

import casadi as ca
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m

EPS = np.finfo(float).eps


def evaluated(function, *values):
    """`function` of Scalars and arrays of Scalars, as the engine sees it: through a CasADi function."""
    values = [np.asarray(value, dtype=float) for value in values]
    columns = [ca.SX.sym("x", value.size) for value in values]
    arguments = [
        m.from_casadi(column).reshape(value.shape) if value.shape else m.Scalar(column)
        for column, value in zip(columns, values, strict=True)
    ]
    result = m.to_casadi(function(*arguments))
    numbers = ca.Function("f", columns, [ca.densify(result)])(*(value.ravel() for value in values)).full()
    return float(numbers[0, 0]) if numbers.shape == (1, 1) else np.squeeze(numbers)


def between(low, high):
    """Numbers of an interval; zero without a sign, for constants of a graph have none."""
    return st.floats(low, high, allow_subnormal=False).map(lambda x: x + 0.0)


ANY = between(-50, 50)
POSITIVE = between(1e-6, 1e6)
SMALL = st.builds(lambda sign, e: sign * 10.0**e, st.sampled_from([-1.0, 1.0]), st.floats(-300, -1))
UNARY = dict(
    sin=ANY,
    cos=ANY,
    tan=between(-1.5, 1.5),
    asin=between(-1, 1),
    acos=between(-1, 1),
    atan=ANY,
    sinh=between(-20, 20),
    cosh=between(-20, 20),
    tanh=ANY,
    asinh=ANY,
    acosh=between(1, 1e6),
    atanh=between(-0.999, 0.999),
    exp=ANY,
    expm1=st.one_of(ANY, SMALL),
    log=POSITIVE,
    log1p=st.one_of(between(-0.999, 1e6), SMALL),
    sqrt=between(0, 1e6),
    abs=ANY,
    sign=ANY,
    floor=ANY,
    ceil=ANY,
)
BINARY = {"atan2": (ANY, ANY), "minimum": (ANY, ANY), "maximum": (ANY, ANY), "hypot": (ANY, ANY)}
OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_agree_for_numbers_arrays_and_symbols(name):
    """One function, three kinds of argument, one value."""
    function = getattr(m, name)

    @settings(max_examples=60, deadline=None)
    @given(UNARY[name])
    def check(x):
        number = float(function(x))
        np.testing.assert_allclose(evaluated(function, x), number, rtol=8 * EPS)
        np.testing.assert_allclose(function(np.array([x, x])), [number] * 2, rtol=8 * EPS)
        np.testing.assert_allclose(evaluated(function, [x, x]), [number] * 2, rtol=8 * EPS)

    check()


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_agree_for_numbers_arrays_and_symbols(name):
    """Also when one argument is a number and the other a symbol, and when one is an array."""
    function = getattr(m, name)

    @settings(max_examples=40, deadline=None)
    @given(*BINARY[name])
    def check(x, y):
        number = float(function(x, y))
        for value in (
            evaluated(function, x, y),
            evaluated(lambda s: function(s, y), x),
            evaluated(lambda s: function(x, s), y),
        ):
            np.testing.assert_allclose(value, number, rtol=8 * EPS)
        np.testing.assert_allclose(evaluated(function, [x, x], y), function(np.array([x, x]), y), rtol=8 * EPS)

    check()


@pytest.mark.parametrize("sign", OPERATORS)
def test_operators_agree_with_those_of_numbers(sign):
    """Arithmetic and comparisons with the symbol on either side, among numbers of Python and of NumPy."""
    operation = OPERATORS[sign]

    @settings(max_examples=40, deadline=None)
    @given(ANY, ANY)
    @example(1.5, 1.5)
    def check(x, y):
        expected = float(operation(x, y))
        assert evaluated(operation, x, y) == expected
        assert evaluated(lambda s: operation(s, y), x) == expected
        assert evaluated(lambda s: operation(x, s), y) == expected
        assert evaluated(lambda s: operation(np.float64(x), s), y) == expected
        assert evaluated(lambda s: operation(s, np.float64(y)), x) == expected

    check()


@settings(max_examples=60, deadline=None)
@given(ANY, between(0.01, 50))
def test_quotients_signs_and_absolute_values(x, y):
    """Division from both sides, negation, unary plus and abs."""
    assert evaluated(lambda a, b: a / b, x, y) == x / y
    assert evaluated(lambda b: x / b, y) == x / y
    assert evaluated(lambda a: a / y, x) == pytest.approx(x / y, rel=2 * EPS)
    assert evaluated(lambda a: -a, x) == -x
    assert evaluated(lambda a: +a, x) == x
    assert evaluated(abs, x) == abs(x)


@settings(max_examples=60, deadline=None)
@given(between(0.01, 20), between(-5, 5), st.integers(-6, 6))
def test_powers(x, y, n):
    """Real, integer and variable exponents, and a symbol as the exponent of a number."""
    assert evaluated(lambda a, b: a**b, x, y) == pytest.approx(x**y, rel=1e-14)
    assert evaluated(lambda a: a**y, x) == pytest.approx(x**y, rel=1e-14)
    assert evaluated(lambda a: a**n, -x) == pytest.approx((-x) ** n, rel=1e-14)
    assert evaluated(lambda b: x**b, y) == pytest.approx(x**y, rel=1e-14)


@settings(max_examples=200, deadline=None)
@given(between(-100, 100), between(0.01, 50), st.booleans())
def test_modulo_is_that_of_python(x, y, negative):
    """The remainder has the sign of the divisor; next to a multiple, the jump may fall on either side."""
    y = -y if negative else y
    value, expected = evaluated(lambda a, b: a % b, x, y), x % y
    gap = abs(value - expected)
    assert min(gap, abs(abs(y) - gap)) <= 4 * EPS * (abs(x) + abs(y))
    assert evaluated(lambda a: a % y, x) == value


@pytest.mark.parametrize(("x", "y"), [(7.25, 2.0), (-7.25, 2.0), (7.25, -2.0), (-7.25, -2.0), (6.0, 2.0), (0.5, 2.0)])
def test_modulo_is_exact_for_short_binary_fractions(x, y):
    """No rounding, hence no freedom: exactly Python's value, with the symbol on either side."""
    assert evaluated(lambda a, b: a % b, x, y) == x % y
    assert evaluated(lambda a: a % y, x) == x % y
    assert evaluated(lambda b: x % b, y) == x % y


@settings(max_examples=60, deadline=None)
@given(ANY, ANY, ANY)
@example(0.0, 1.0, 2.0)
def test_where_takes_the_branch_of_its_condition(x, a, b):
    """``where`` on symbols is the conditional expression on numbers, logic included."""
    assert evaluated(lambda s: m.where(s > 0, a, b), x) == (a if x > 0 else b)
    assert evaluated(lambda s, u, v: m.where(s <= 0, u, v), x, a, b) == (a if x <= 0 else b)
    assert evaluated(lambda s, u: m.where((s > 0) & (u > 0), 1, 2), x, a) == (1 if x > 0 and a > 0 else 2)
    assert evaluated(lambda s, u: m.where((s > 0) | (u > 0), 1, 2), x, a) == (1 if x > 0 or a > 0 else 2)
    assert evaluated(lambda s: m.where(~(s > 0), 1, 2), x) == (1 if not x > 0 else 2)
    assert float(m.where(x > 0, a, b)) == (a if x > 0 else b)


@pytest.mark.parametrize("flag", [True, False])
def test_a_plain_truth_value_may_stand_on_either_side(flag):
    """``flag & (x > 0)`` as well as ``(x > 0) & flag``."""
    assert evaluated(lambda s: m.where((s > 0) & flag, 1, 2), 1.0) == (1 if flag else 2)
    assert evaluated(lambda s: m.where(flag & (s > 0), 1, 2), 1.0) == (1 if flag else 2)
    assert evaluated(lambda s: m.where(flag | (s > 0), 1, 2), -1.0) == (1 if flag else 2)


def test_where_on_arrays():
    """One condition for a whole array, one condition per item, and arrays of numbers."""
    q = [1.0, -2.0, 3.0]
    np.testing.assert_array_equal(evaluated(lambda q: m.where(q[0] > 0, q, 0), q), q)
    np.testing.assert_array_equal(evaluated(lambda q: m.where([True, False, True], q, -q), q), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(evaluated(lambda q: m.where([x > 0 for x in q], q, 0), q), [1.0, 0.0, 3.0])
    np.testing.assert_array_equal(m.where(np.array(q) > 0, q, 0), [1.0, 0.0, 3.0])


@settings(max_examples=60, deadline=None)
@given(ANY, ANY, ANY)
@example(1.0, 2.0, -2.0)
def test_clip_is_that_of_numpy(x, low, high):
    """Two bounds, one, or none; the upper one wins if they are crossed. ``np.clip`` of one symbol works too."""
    both = float(np.clip(x, low, high))
    assert evaluated(lambda s: m.clip(s, low, high), x) == both == float(m.clip(x, low, high))
    assert evaluated(m.clip, x, low, high) == both
    assert evaluated(lambda s: np.clip(s, low, high), x) == both
    assert evaluated(lambda s: m.clip(s, low), x) == max(x, low)
    assert evaluated(lambda s: m.clip(s, high=high), x) == min(x, high)
    assert evaluated(m.clip, x) == x
    np.testing.assert_array_equal(
        evaluated(lambda q: m.clip(q, low, high), [x, -x, 0.0]), np.clip([x, -x, 0], low, high)
    )


# -- NumPy's style ----------------------------------------------------------------------------------------------------
def _filled(matrix, q):
    """Symbols written into a matrix that is made first."""
    matrix[0, 1] = q[0]
    matrix[1] = matrix[1] + q[1]
    return matrix


def _looped(q):
    total = 0.0
    for i, x in enumerate(q):
        total += (i + 1) * x**2
    return total


A = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0]])
NUMPY_CODE = {
    "slices": lambda q: q[1:] - q[:-1],
    "reversed": lambda q: q[::-1] * q,
    "fancy index": lambda q: q[[2, 0]],
    "inner @": lambda q: q @ q,
    "matrix @": lambda q: A @ q,
    "@ matrix": lambda q: q @ A.T,
    "np.dot": lambda q: np.dot(q, [1.0, 2.0, 3.0]),
    "np.dot matrix": lambda q: np.dot(A, q),
    "np.cross": lambda q: np.cross(q, [1.0, 2.0, 3.0]),
    "m.dot": lambda q: m.dot(q, [1.0, 2.0, 3.0]),
    "m.cross": lambda q: m.cross(q, [1.0, 2.0, 3.0]),
    "m.cross plane": lambda q: m.cross(q[:2], [3.0, 4.0]),
    "m.norm": lambda q: m.norm(q),
    "np.linalg.norm": lambda q: np.linalg.norm(q),
    "np.outer": lambda q: np.outer(q, q),
    "broadcasting": lambda q: q[:, None] * q + A[0],
    "two dimensions": lambda q: m.array([[q[0], 1.0], [q[1], q[2]]]) @ m.array([q[0], 2.0]),
    "transpose": lambda q: m.array([q, 2 * q]).T,
    "2D @ 2D": lambda q: m.array([[q[0], 1.0], [0.5, q[1]]]) @ m.array([[q[2], q[0]], [2.0, 1.0]]),
    "2D @ 2D of numbers": lambda q: np.outer(q, q) @ A.T,
    "2D of numbers @ 2D": lambda q: A @ np.outer(q, q) @ A.T,
    "quadratic form": lambda q: q @ (A.T @ A) @ q,
    "three factors": lambda q: m.diag(q) @ np.outer(q, q) @ q,
    "m.outer": lambda q: m.outer(q, [1.0, 2.0]),
    "m.diag": lambda q: m.diag(q) + m.diag([1.0, q[0], 2.0]),
    "m.diag of a matrix": lambda q: m.diag(np.outer(q, q)),
    "m.zeros": lambda q: _filled(m.zeros((2, 3)), q),
    "m.ones": lambda q: _filled(m.ones((3, 2)), q) * m.ones(2),
    "m.eye": lambda q: _filled(m.eye(3), q) @ q,
    "m.eye times symbol": lambda q: m.eye(2) * q[0] + q[1] * m.eye(2),
    "m.sum": lambda q: m.sum(q) + m.sum([q[0], 2.0]) + m.sum(x**2 for x in q),
    "m.sum along an axis": lambda q: m.sum(np.outer(q, q), axis=0),
    "m.sum along the other": lambda q: m.sum([q, 2 * q], axis=1),
    "Python's sum": lambda q: sum(i * x for i, x in enumerate(q)) + sum(q, 1.0),
    "m.stack": lambda q: m.stack([q, [1.0, 2.0, 3.0]]) @ m.stack([q, q**2], axis=1),
    "m.concatenate": lambda q: m.concatenate([q, [1.0], [q[0]]]),
    "m.concatenate along an axis": lambda q: m.concatenate([np.outer(q, q), A.T], axis=1),
    "m.clip": lambda q: m.clip(q, -0.5, 1.5),
    "m.abs": lambda q: m.abs(q) * abs(q[0]) * m.abs(q[1]),
    "m.hypot": lambda q: m.hypot(q, 2.0) + m.hypot([1.0, 2.0, 3.0], q[0]),
    "np.log1p": lambda q: np.log1p(q**2) + np.expm1(q),
    "np.hypot": lambda q: np.hypot(q, 2.0) + np.hypot(q[0], q[1]),
    "trace": lambda q: np.trace(np.outer(q, q)),
    "einsum": lambda q: np.einsum("i,ij,j", q[:2], A[:, :2], q[:2]),
    "sum": lambda q: q.sum() + sum(q) + np.sum(q**2),
    "mean": lambda q: np.mean(q),
    "cumsum": lambda q: np.cumsum(q),
    "prod": lambda q: np.prod(q),
    "concatenate": lambda q: np.concatenate([q, [1.0], q[:1]]),
    "np.sin": lambda q: np.sin(q) + np.cos(q[0]),
    "np.sqrt": lambda q: np.sqrt(1 + q**2),
    "np.exp": lambda q: np.exp(-q) * np.tanh(q) / np.cosh(q),
    "np.arctan2": lambda q: np.arctan2(q, 2.0 + q**2),
    "abs": lambda q: abs(q) + np.abs(q),
    "array op scalar": lambda q: np.array([1.0, 2.0, 3.0]) * q[0] - q[1] / np.array([1.0, 2.0, 4.0]),
    "modulo": lambda q: q % 7.5,
    "m.maximum": lambda q: m.maximum(q, 0.25) - m.minimum(0.0, q),
    "loop": _looped,
    "list": lambda q: [q[0] * q[1], 1.0, 2],
}


@pytest.mark.parametrize("name", NUMPY_CODE)
def test_numpy_code_runs_on_arrays_of_symbols(name):
    """Code written for an array of numbers gives the same values on an array of symbols."""
    code = NUMPY_CODE[name]

    @settings(max_examples=15, deadline=None)
    @given(st.lists(between(-3, 3), min_size=3, max_size=3))
    def check(q):
        expected = np.squeeze(np.asarray(code(np.array(q)), dtype=float))
        np.testing.assert_allclose(evaluated(code, q), expected, rtol=1e-13, atol=1e-14)

    check()


def test_arrays_keep_their_shape():
    """Vectors become columns, matrices stay matrices, numbers stay numbers."""
    q = m.from_casadi(ca.SX.sym("q", 3))
    assert m.to_casadi(q).shape == (3, 1)
    assert m.to_casadi([[q[0], 1.0], [2.0, q[1]], [0.0, 0.0]]).shape == (3, 2)
    assert m.to_casadi(q[0]).shape == (1, 1)
    assert m.to_casadi(2).shape == (1, 1)
    assert m.array([q, [1, 2, 3]]).shape == (2, 3)
    assert m.array([[1, 2], [3, 4]]).dtype == float


def test_arrays_of_zeros_and_ones_take_symbols_and_are_numbers_until_then():
    """``np.zeros`` would ask the symbol for its value."""
    q = m.from_casadi(ca.SX.sym("q", 2))
    with pytest.raises(TypeError, match="has no value yet"):
        np.zeros(2)[0] = q[0]
    for made, expected in ((m.zeros((2, 3)), np.zeros((2, 3))), (m.ones(3), np.ones(3)), (m.eye(3), np.eye(3))):
        np.testing.assert_array_equal(made.astype(float), expected)
        made[0] = q[0]
        assert m.to_casadi(made).shape[0] == expected.shape[0]


@pytest.mark.parametrize("items", [1.0, [[[1.0]]]])
def test_diag_refuses_other_than_vectors_and_matrices(items):
    with pytest.raises(ValueError, match=r"diag needs a vector or a matrix, got .*\("):
        m.diag(items)


def test_every_function_has_a_doctest():
    """Public functions have a description and an example."""
    names = [name for name, value in vars(m).items() if callable(value) and not name.startswith("_")]
    own = [
        name
        for name in names
        if getattr(vars(m)[name], "__module__", "").startswith("livens.math.") and name != "Scalar"
    ]
    assert len(own) > 40
    assert [name for name in own if ">>>" not in (vars(m)[name].__doc__ or "")] == []


def test_the_new_functions_run_natively():
    """Through graphs, increments, round-off bounds and machine code: a run conserves the energy they make."""
    system = lv.System(
        "x y",
        mass=lambda q: m.diag([1.0, 2.0]) + 0.1 * m.outer([1.0, 1.0], [1.0, 1.0]) * m.eye(2),
        potential=lambda q: m.hypot(q[0], 1 + q[1] ** 2) + m.log1p(q @ q) + m.expm1(-q[0]) + m.clip(q[1], -0.2, 0.3),
    )
    run = lv.simulate(system, [0.5, 0.2], [0.3, -0.4], h=0.01, t_end=10.0)
    other = lv.simulate(system, [0.5, 0.2], [0.3, -0.4], h=0.01, t_end=10.0, tier="reference")
    assert run.summary.max_energy_drift < 1e-13 and np.abs(run.q - other.q).max() < 1e-9
    assert np.ptp(run.q[:, 1]) > 0.5  # over both ends of the clipped part


def test_numbers_stay_numbers():
    """Without a symbol in sight the functions are NumPy's, for lists too."""
    np.testing.assert_array_equal(m.sin([0.0, 1.0]), np.sin([0.0, 1.0]))
    assert float(m.norm([3, 4])) == 5.0
    assert float(m.cross([1, 0], [0, 1])) == 1.0
    np.testing.assert_array_equal(m.cross([1, 0, 0], [0, 1, 0]), [0, 0, 1])
    assert m.pi == math.pi


# -- what cannot work says why ----------------------------------------------------------------------------------------
BRANCHING = {
    "if": lambda x: 1 if x > 0 else 2,
    "truth": lambda x: 1 if x else 2,
    "and": lambda x: (x > 0) and (x < 1),
    "chain": lambda x: 0 < x < 1,
    "max": lambda x: max(x, 0),
    "sorted": lambda x: sorted([x, 1.0]),
    "np.where": lambda x: np.where(x > 0, 1, 2),
    "np.maximum": lambda x: np.maximum(x, 0),
    "np.clip of an array": lambda x: np.clip(np.array([x, x]), 0, 1),
    "array comparison": lambda x: np.array([x, x]) > 0,
}


@pytest.mark.parametrize("name", BRANCHING)
def test_branching_on_a_symbol_names_the_way_out(name):
    """A symbol has no truth value; the message names the symbol and what to write instead."""
    x = m.Scalar(ca.SX.sym("height"))
    with pytest.raises(TypeError, match=r"branch on the symbol .*height.*livens\.math\.where"):
        BRANCHING[name](x)


@pytest.mark.parametrize("function", [math.sin, math.sqrt, math.exp, math.atan, float])
def test_functions_of_the_standard_library_point_to_this_module(function):
    """``math.sin`` wants a number now."""
    with pytest.raises(TypeError, match=r"symbol height has no value yet.*livens\.math"):
        function(m.Scalar(ca.SX.sym("height")))


def test_constants_have_a_value():
    """A Scalar that depends on nothing may be branched on and converted."""
    two = m.Scalar(ca.SX(2.0))
    assert two > 1
    assert float(two) == 2.0
    assert math.sqrt(two * 2) == 2.0


@pytest.mark.parametrize("other", ["1", None, 1j, {}])
def test_symbols_do_not_mix_with_what_is_no_number(other):
    """No silent conversions."""
    with pytest.raises(TypeError):
        m.Scalar(ca.SX.sym("x")) + other


def test_symbols_cannot_be_hashed():
    """Equality of symbols is an expression, so they are no dictionary keys."""
    with pytest.raises(TypeError):
        hash(m.Scalar(ca.SX.sym("x")))


@pytest.mark.parametrize(
    ("a", "b"), [([1, 2], [1, 2, 3]), ([1, 2, 3], [[1, 2, 3]]), ([[1, 2], [3, 4]], [[1, 2], [3, 4]]), (1.0, 2.0)]
)
def test_dot_refuses_what_are_not_two_vectors(a, b):
    """The message shows both shapes."""
    with pytest.raises(ValueError, match=r"dot needs two vectors.*\("):
        m.dot(a, b)


@pytest.mark.parametrize(
    ("a", "b"), [([1, 2], [1, 2, 3]), ([1, 2, 3, 4], [1, 2, 3, 4]), ([1.0], [2.0]), (1.0, 2.0), ([[1, 2]], [[1, 2]])]
)
def test_cross_refuses_other_than_two_or_three_components(a, b):
    """The message shows both shapes."""
    with pytest.raises(ValueError, match=r"cross needs two vectors.*\("):
        m.cross(a, b)


def test_shapes_are_checked_for_symbols_too():
    """These errors inside a model."""
    q = m.from_casadi(ca.SX.sym("q", 3))
    with pytest.raises(ValueError, match="dot"):
        m.dot(q, [1, 2])
    with pytest.raises(ValueError, match="cross"):
        m.cross(q, q[:2])
