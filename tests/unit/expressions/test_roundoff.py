"""Round-off bounds: no rounding error exceeds them, and they are not far above the errors that occur.

Random expressions are evaluated three times: in doubles by CasADi, exactly in rational numbers, and with every term
replaced by its size. The last gives the scale of what rounding can do at all.
"""

import functools
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from livens.expressions.graph.roundoff import UNIT_ROUNDOFF, roundoff_bound

U = Fraction(1, 2**53)


def bounded(function, n):
    """A function of n numbers as ``(x, errors) -> (value, bound)``; errors, unlike the bound, in units of UNIT."""
    x, errors = ca.SX.sym("x", n), ca.SX.sym("e", n)
    f = ca.Function("f", [x], [function(*(x[i] for i in range(n)))])
    both = ca.Function("both", [x, errors], [f(x), UNIT_ROUNDOFF * roundoff_bound(f, [x], [errors])])
    return lambda values, e: tuple(float(v) for v in both(values, e))


# -- random expressions -----------------------------------------------------------------------------------------------
class Known(NamedTuple):
    """The exact value and the size of the terms it is made of."""

    exact: Fraction
    size: Fraction


OPERATIONS = {
    "+": (lambda a, b: a + b, lambda a, b: Known(a.exact + b.exact, a.size + b.size)),
    "-": (lambda a, b: a - b, lambda a, b: Known(a.exact - b.exact, a.size + b.size)),
    "*": (lambda a, b: a * b, lambda a, b: Known(a.exact * b.exact, a.size * b.size)),
    "min": (ca.fmin, lambda a, b: Known(min(a.exact, b.exact), a.size + b.size)),
    "max": (ca.fmax, lambda a, b: Known(max(a.exact, b.exact), a.size + b.size)),
    "neg": (lambda a: -a, lambda a: Known(-a.exact, a.size)),
    "sq": (lambda a: a**2, lambda a: Known(a.exact**2, a.size**2)),
    "cube": (lambda a: a**3, lambda a: Known(a.exact**3, a.size**3)),
    "twice": (lambda a: 2 * a, lambda a: Known(2 * a.exact, 2 * a.size)),
    "abs": (ca.fabs, lambda a: Known(abs(a.exact), a.size)),
}
ONE_OPERAND = ("neg", "sq", "cube", "twice", "abs")
TWO_OPERANDS = ("+", "-", "*", "min", "max")


def divided(a, b):
    # where rounding decides about half of the divisor, there is no first-order bound to speak of
    assume(b.exact != 0 and b.size <= 10**4 * abs(b.exact))
    return Known(a.exact / b.exact, a.size / abs(b.exact) * (b.size / abs(b.exact)))


OPERATIONS["/"] = (lambda a, b: a / b, divided)

VARIABLES = 3
TREES = st.recursive(
    # constants whose products are exact: CasADi works on constants when the graph is made, out of our sight
    st.one_of(st.integers(0, VARIABLES - 1), st.sampled_from([1.0, 3.0, -0.75])),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(ONE_OPERAND), inner),
        st.tuples(st.sampled_from((*TWO_OPERANDS, "/")), inner, inner),
    ),
    max_leaves=10,
)


def graph(tree, x):
    if isinstance(tree, float):
        return ca.SX(tree)
    if isinstance(tree, int):
        return x[tree]
    name, *operands = tree
    result = OPERATIONS[name][0](*(graph(operand, x) for operand in operands))
    assume(not result.is_constant())
    return result


def known(tree, x):
    if isinstance(tree, float):
        return Known(Fraction(tree), abs(Fraction(tree)))
    if isinstance(tree, int):
        return Known(x[tree], abs(x[tree]))
    name, *operands = tree
    return OPERATIONS[name][1](*(known(operand, x) for operand in operands))


def count(tree):
    return 1 if not isinstance(tree, tuple) else 1 + sum(map(count, tree[1:]))


NUMBERS = st.one_of(
    st.floats(1e-3, 1e3), st.floats(-1e3, -1e-3), st.integers(-9, 9).map(float), st.floats(0.999999, 1.000001)
)
INPUTS = st.lists(NUMBERS, min_size=VARIABLES, max_size=VARIABLES)
SHARES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=VARIABLES, max_size=VARIABLES)


def checked(tree, x, errors, exact_inputs):
    """Compare the bound with the true error and with the scale of all errors."""
    value, bound = bounded(lambda *symbols: graph(tree, symbols), VARIABLES)(x, errors)
    truth = known(tree, exact_inputs)
    largest = 1 + max(e / abs(a) if a else 0.0 for e, a in zip(errors, x, strict=True))
    # the bound is of first order: errors of errors are left out, which are of the size (n u)^2
    second_order = (Fraction(largest) * 2 ** count(tree) * U) ** 2 * truth.size
    assert abs(Fraction(value) - truth.exact) <= Fraction(bound) * (1 + Fraction(1, 10**9)) + second_order
    assert Fraction(bound) <= 1000 * Fraction(largest) * U * truth.size


@settings(max_examples=400, deadline=None)
@given(TREES, INPUTS)
def test_rounding_errors_stay_below_the_bound(tree, x):
    """Exact inputs: all errors are those of the operations."""
    checked(tree, x, [0.0] * VARIABLES, [Fraction(a) for a in x])


@settings(max_examples=400, deadline=None)
@given(TREES, INPUTS, SHARES, st.sampled_from([1.0, 4.0]))
def test_errors_of_the_inputs_are_passed_on(tree, x, shares, factor):
    """Inputs that are off by up to their own error, in any direction."""
    errors = [factor * abs(a) for a in x]
    moved = [Fraction(a) + U * Fraction(s * e) for a, s, e in zip(x, shares, errors, strict=True)]
    checked(tree, x, errors, moved)


def test_the_bound_is_nearly_reached():
    """Among some products and sums one has nearly the error that the bound allows."""
    random = np.random.default_rng(0)
    f = bounded(lambda x, y: x * y + x, 2)
    reached = []
    for x, y in random.uniform(1.0, 1.2, (300, 2)):
        value, bound = f([x, y], [0.0, 0.0])
        reached.append(abs(Fraction(value) - Fraction(x) * Fraction(y) - Fraction(x)) / Fraction(bound))
    assert 0.7 < max(reached) <= 1


def test_cancellation_is_seen():
    """A small difference of large numbers has the round-off of the large ones."""
    value, bound = bounded(lambda x, y, z: (x + y) - z, 3)([1e8, 1e-3, 1e8], [0.0, 0.0, 0.0])
    assert abs(value - 1e-3) > 1e-12
    assert abs(value - 1e-3) <= bound < 1e-7


@pytest.mark.parametrize("function", [ca.fmin, ca.fmax])
def test_the_smaller_of_two_has_the_error_of_either(function):
    """The choice of the minimum may depend on round-off, so the bounds of both arguments count."""
    f = bounded(lambda x, y: function(x, (x + 1e10) - (1e10 - y)), 2)
    for y in np.linspace(-1e-6, 1e-6, 41):
        x = 0.3
        value, bound = f([x, y], [0.0, 0.0])
        other = Fraction(x) + Fraction(float(y))
        exact = min(Fraction(x), other) if function is ca.fmin else max(Fraction(x), other)
        assert abs(Fraction(value) - exact) <= Fraction(bound)


# -- exact operations -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "function",
    [
        lambda x: -x, lambda x: 2 * x, lambda x: 0.5 * x, lambda x: -4 * x, ca.fabs, lambda x: x + 0, lambda x: 1.0 * x,
        ca.sign, ca.floor, ca.ceil, lambda x: x > 0, lambda x: ca.logic_not(x > 0), lambda x: ca.SX(0.1),
    ],
)  # fmt: skip
def test_what_does_not_round_has_no_error(function):
    """Signs, powers of two, rounding to integers, comparisons and constants."""
    assert bounded(function, 1)([0.3], [0.0])[1] == 0.0


def test_a_condition_takes_the_error_of_its_branch():
    """The branch not taken does not count, however wild it is."""
    f = bounded(lambda x: ca.if_else(x > 0, x, 1e30 * x / 3), 1)
    assert f([1.0], [1.0])[1] <= 4 * UNIT_ROUNDOFF
    assert f([-1.0], [1.0])[1] >= 1e29 * UNIT_ROUNDOFF


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (ca.sqrt, [0.0]),
        (lambda x: x**1.5, [0.0]),
        (lambda x: x**3, [0.0]),
        (ca.fabs, [0.0]),
        (ca.sin, [0.0]),
        (lambda x, n: x**n, [0.0, 4.0]),
        (lambda x, n: x**n, [0.0, 1.5]),
        (lambda x, y: ca.fmin(x, y), [0.0, 0.0]),
        (ca.hypot, [0.0, 0.0]),
        (ca.log1p, [0.0]),
        (ca.expm1, [0.0]),
    ],
)
def test_at_zero_the_bound_is_zero(function, x):
    """Values that are exactly zero because of their operand have a finite bound."""
    value, bound = bounded(function, len(x))(x, [0.0] * len(x))
    assert value == 0.0
    assert bound == 0.0


def test_the_hypotenuse_passes_errors_on():
    """At the origin too, where its slopes have no limit, and for sides whose squares overflow."""
    f = bounded(ca.hypot, 2)
    assert f([0.0, 0.0], [1.0, 2.0])[1] == 3 * UNIT_ROUNDOFF
    assert f([3e200, 4e200], [5e200, 0.0])[1] == pytest.approx((3 + 10) * 1e200 * UNIT_ROUNDOFF)


@pytest.mark.parametrize(("x", "n"), [(0.0, 4.0), (-1.5, 3.0), (-1.5, -2.0), (1.5, 2.5)])
def test_powers_with_a_variable_exponent(x, n):
    """An exponent that is a parameter: the base may be zero or negative if it is an integer."""
    value, bound = bounded(lambda x, n: x**n, 2)([x, n], [abs(x), abs(n)])
    assert value == pytest.approx(x**n)
    assert abs(value) * UNIT_ROUNDOFF <= bound <= 100 * abs(value) * UNIT_ROUNDOFF


# -- library functions ------------------------------------------------------------------------------------------------
TINY, TENTH = 1e-9, 0.1
DECIMAL = {
    "sqrt": (lambda x, y: ca.sqrt(x * x + y * y), lambda x, y: (x * x + y * y).sqrt()),
    "norm of a difference": (lambda x, y: ca.sqrt((x - y) ** 2), lambda x, y: abs(x - y)),
    "exp": (lambda x, y: ca.exp(x * y), lambda x, y: (x * y).exp()),
    "log": (lambda x, y: ca.log(x + y), lambda x, y: (x + y).ln()),
    "log near one": (lambda x, y: ca.log(1 + x * TINY), lambda x, y: (1 + x * Decimal(TINY)).ln()),
    "log1p": (lambda x, y: ca.log1p(x * TINY), lambda x, y: (1 + x * Decimal(TINY)).ln()),
    "expm1": (lambda x, y: ca.expm1(x - y), lambda x, y: (x - y).exp() - 1),
    "hypot": (lambda x, y: ca.hypot(x - y, x * y), lambda x, y: ((x - y) ** 2 + (x * y) ** 2).sqrt()),
    "power": (lambda x, y: (x + y) ** 1.5, lambda x, y: (x + y) ** Decimal("1.5")),
    "negative power": (lambda x, y: (x * y + TENTH) ** -2.5, lambda x, y: (x * y + Decimal(TENTH)) ** Decimal("-2.5")),
    "variable power": (lambda x, y: (x + TENTH) ** (x * y), lambda x, y: (x + Decimal(TENTH)) ** (x * y)),
    "inverse": (lambda x, y: 1 / (x * y), lambda x, y: 1 / (x * y)),
    "logistic": (lambda x, y: 1 / (1 + ca.exp(-x * y)), lambda x, y: 1 / (1 + (-x * y).exp())),
    "sinh": (lambda x, y: ca.sinh(x * y), lambda x, y: ((x * y).exp() - (-x * y).exp()) / 2),
    "tanh": (lambda x, y: ca.tanh(x - y), lambda x, y: 1 - 2 / ((2 * (x - y)).exp() + 1)),
}


@functools.cache
def library(name):
    return bounded(DECIMAL[name][0], 2)


@pytest.mark.parametrize("name", DECIMAL)
def test_library_functions(name):
    """Compared with 60 decimal digits; the functions themselves are good to an ulp."""
    exact = DECIMAL[name][1]

    @settings(max_examples=60, deadline=None)
    @given(st.floats(0.01, 5.0), st.floats(0.01, 5.0))
    def check(x, y):
        value, bound = library(name)([x, y], [0.0, 0.0])
        with localcontext() as context:
            context.prec = 60
            error = abs(Decimal(value) - exact(Decimal(x), Decimal(y)))
            assert error <= Decimal(bound) * (1 + Decimal(10) ** -9)

    check()


def test_every_output_has_its_own_bound():
    """Inputs of several vectors, outputs in order."""
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y")
    f = ca.Function("f", [x, y], [ca.vertcat(x[0] + y, x[0] * x[1], x[1], 0 * y)])
    bound = ca.Function("b", [x, y], [roundoff_bound(f, [x, y], [ca.SX([0, 3]), ca.SX(2)])])([1.0, 4.0], 0.5)
    np.testing.assert_allclose(bound.full().ravel(), [2 + 1.5, 3 + 4, 3, 0])


def test_bounds_are_not_too_kind():
    """Against exact arithmetic: errors are below their bound, and come within a factor of 30 of it."""
    x, y, z = ca.SX.sym("x"), ca.SX.sym("y"), ca.SX.sym("z")
    f = ca.Function("f", [ca.vertcat(x, y, z)], [x * y + z * z - x / 3])
    symbol = ca.SX.sym("q", 3)
    bound = ca.Function("bound", [symbol], [roundoff_bound(f, [symbol], [ca.SX.zeros(3)])])
    random, closest = np.random.default_rng(0), 0.0
    for values in random.uniform(-2, 2, (300, 3)):
        a, b, c = (Fraction(float(value)) for value in values)
        error = abs(float(Fraction(float(f(values))) - (a * b + c * c - a / 3)))
        allowed = UNIT_ROUNDOFF * float(bound(values))
        assert error <= allowed
        closest = max(closest, error / allowed)
    assert closest > 1 / 30


def test_functions_of_the_library_round_as_often_as_it_says():
    """Of exact numbers, a square root has one rounding, which is correct; a sine has those of the library."""

    def roundings(function, libm_ulps):
        x, e = ca.SX.sym("x"), ca.SX.sym("e")
        f = ca.Function("f", [x], [function(x)])
        bound = ca.Function("bound", [x, e], [roundoff_bound(f, [x], [e], libm_ulps) / f(x)])
        return float(bound(0.7, 0.0))

    assert roundings(ca.sin, 4) == pytest.approx(4 * roundings(ca.sqrt, 4)) == 4 * roundings(ca.sqrt, 1)
