"""Increments by algebra: a small relative error however short the step, where the plain difference has no digit left.

The reference is the integral ``f(x + w) - f(x) = int_0^1 f'(x + s w) w ds``, by Gauss' rule. It has no cancellation
either, shares nothing with the identities under test, and is good to round-off for every step that stays away from
singularities. Functions with kinks are piecewise polynomials here and compared with exact rational arithmetic.
"""

import functools
from fractions import Fraction

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from livens.expressions.graph.increments import increments

EPS = np.finfo(float).eps
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
NODES, WEIGHTS = (1 + NODES) / 2, WEIGHTS / 2

# label -> (function, box of every variable that both ends of the step stay in)
LINE = (-2.0, 2.0)
HALF = (0.2, 4.0)
FAR = (1.0, 4.0)
SMOOTH = {
    "add": (lambda x, y: x + y, LINE, LINE),
    "add constant": (lambda x: x + 0.7, LINE),
    "sub": (lambda x, y: x - y, LINE, LINE),
    "mul": (lambda x, y: x * y, LINE, LINE),
    "mul constant": (lambda x: 0.3 * x, LINE),
    "twice": (lambda x: 2 * x, LINE),
    "div": (lambda x, y: x / y, LINE, HALF),
    "div by constant": (lambda x: x / 3.0, LINE),
    "inverse": (lambda x: 1 / x, HALF),
    "constant over": (lambda x: 2.5 / x, HALF),
    "neg": (lambda x: -x, LINE),
    "sq": (lambda x: x**2, LINE),
    "cube": (lambda x: x**3, LINE),
    "power 7": (lambda x: x**7, LINE),
    "power 20": (lambda x: x**20, LINE),
    "power 120": (lambda x: x**120, (0.5, 1.5)),
    "power -1": (lambda x: x**-1, HALF),
    "power -3": (lambda x: x**-3, HALF),
    "power -3, negative base": (lambda x: x**-3, (-4.0, -0.2)),
    "power 1.5": (lambda x: x**1.5, HALF),
    "power -0.5": (lambda x: x**-0.5, HALF),
    "power 1/3": (lambda x: x ** (1 / 3), HALF),
    "variable exponent": (lambda x, y: x**y, HALF, LINE),
    "exponent of a constant": (lambda y: ca.power(1.7, y), LINE),
    "sqrt": (ca.sqrt, HALF),
    "exp": (ca.exp, LINE),
    "log": (ca.log, HALF),
    "log1p": (ca.log1p, HALF),
    "log1p, negative": (ca.log1p, (-0.9, -0.1)),
    "expm1": (ca.expm1, LINE),
    "expm1, near -1": (ca.expm1, (-40.0, -20.0)),
    "hypot": (ca.hypot, FAR, LINE),
    "hypot with a constant": (lambda x: ca.hypot(1.7, x), LINE),
    "sin": (ca.sin, LINE),
    "cos": (ca.cos, LINE),
    "tan": (ca.tan, (-1.2, 1.2)),
    "atan": (ca.atan, LINE),
    "atan2": (ca.atan2, LINE, FAR),
    "atan2, left of the cut": (lambda y, x: ca.atan2(y, -x), HALF, FAR),
    "sinh": (ca.sinh, LINE),
    "cosh": (ca.cosh, LINE),
    "tanh": (ca.tanh, LINE),
    "fabs, one side": (lambda x: ca.fabs(x) * x, HALF),
    "fmin, one side": (lambda x: ca.fmin(x, 5) ** 2, HALF),
    "fmax, one side": (lambda x, y: ca.fmax(x, y - 10) * y, LINE, LINE),
    "if_else, one side": (lambda x: ca.if_else(x > 0, ca.sin(x), x), HALF),
    # what mechanics is made of
    "spring": (lambda x, y: (ca.sqrt(x**2 + y**2) - 1) ** 2 / 2, HALF, HALF),
    "gravitation": (lambda x, y: -1 / ca.sqrt(x**2 + y**2), FAR, LINE),
    "Morse": (lambda x: (1 - ca.exp(-(x - 1))) ** 2, HALF),
    "Lennard-Jones": (lambda x: x**-12 - x**-6, (0.8, 3.0)),
    "double pendulum": (lambda x, y: ca.cos(x - y) * ca.sin(x) + ca.cos(y), LINE, LINE),
    "mixture": (lambda x, y: x * ca.sin(y) * ca.exp(-x * y) / (1 + y**2), LINE, LINE),
}  # fmt: skip


# without an identity: a series for short steps, the plain difference for long ones
SERIES = {
    "asin": (ca.asin, (-0.8, 0.8)),
    "acos": (ca.acos, (-0.8, 0.8)),
    "asinh": (ca.asinh, LINE),
    "acosh": (ca.acosh, (1.5, 4.0)),
    "atanh": (ca.atanh, (-0.8, 0.8)),
    "erf": (ca.erf, LINE),
}
ALL = SMOOTH | SERIES


class Case:
    """A function of n variables with its increment, gradient and Hessian as compiled graphs."""

    def __init__(self, function, n):
        x, w = ca.SX.sym("x", n), ca.SX.sym("w", n)
        value = function(*(x[i] for i in range(n)))
        self.value = ca.Function("f", [x], [value])
        self.increment = ca.Function("increment", [x, w], [increments(self.value, x, w, [])])
        hessian, gradient = ca.hessian(value, x)
        derivatives = ca.Function("d", [x], [ca.densify(gradient), ca.densify(hessian)])
        self._derivatives = derivatives.map(NODES.size)

    def __call__(self, x, w):
        return float(self.increment(x, w))

    def reference(self, x, w):
        """The increment as an integral, and the size that rounding of inputs and terms gives to its error."""
        x, w = np.array(x), np.array(w)
        points = x[:, None] + NODES * w[:, None]
        gradient, hessian = (d.full() for d in self._derivatives(points))
        hessian = hessian.reshape(x.size, NODES.size, x.size)
        exact = np.einsum("s,is,i", WEIGHTS, gradient, w)
        scale = np.einsum("s,is,i", WEIGHTS, abs(gradient), abs(w))
        scale += np.einsum("s,isj,i,j", WEIGHTS, abs(hessian), abs(w), abs(x) + abs(w))
        return exact, scale


@functools.cache
def case(name):
    function, *boxes = ALL[name]
    return Case(function, len(boxes))


def lengths(longest):
    """Steps of either sign, of every order of magnitude down to 1e-300, and none at all."""
    sized = st.builds(
        lambda mantissa, exponent, sign: sign * longest * mantissa * 10.0**-exponent,
        st.floats(0.1, 1.0), st.integers(0, 299), st.sampled_from([-1, 1]),
    )  # fmt: skip
    moderate = st.floats(-longest, longest, allow_subnormal=False).map(lambda s: s if abs(s) > 1e-300 else 0.0)
    return st.one_of(moderate, sized, st.just(0.0))


@st.composite
def steps(draw, boxes):
    """A point of the box and a step to another one."""
    x = [draw(st.floats(*box, allow_subnormal=False)) for box in boxes]
    w = [draw(lengths((high - low) / 2)) for low, high in boxes]
    w = [-s if not low <= a + s <= high else s for a, s, (low, high) in zip(x, w, boxes, strict=True)]
    return x, w


@pytest.mark.parametrize("name", ALL)
def test_increments_have_a_small_relative_error(name):
    """For long steps and for steps of 1e-300, each variable with a length of its own."""
    f = case(name)
    # where the series ends and the plain difference begins, three to four digits of sixteen are lost
    allowed = 50 * EPS if name in SMOOTH else 1e-11

    @settings(max_examples=50, deadline=None)
    @given(steps(ALL[name][1:]))
    def check(drawn):
        x, w = drawn
        exact, scale = f.reference(x, w)
        # below 1e-300 there are fewer digits to be had: a product of two small numbers may be subnormal
        assert abs(f(x, w) - exact) <= allowed * scale + 1e-306

    check()


@pytest.mark.parametrize("name", ALL)
def test_no_step_no_increment(name):
    """Exactly zero, not round-off."""
    f, boxes = case(name), ALL[name][1:]
    for part in (0.0, 0.3, 0.5, 0.9):
        assert f([low + part * (high - low) for low, high in boxes], [0.0] * len(boxes)) == 0.0


def test_the_plain_difference_would_not_do():
    """At a step of 1e-12 the plain difference loses 12 of 16 digits; the increment is exact."""
    f = case("gravitation")
    x, w = [0.8, 0.6], [1e-12, 1e-12]
    exact, scale = f.reference(x, w)
    plain = float(f.value(np.add(x, w)) - f.value(x))
    assert abs(plain - exact) > 1e-6 * scale
    assert abs(f(x, w) - exact) <= 50 * EPS * scale


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (ca.tanh, 1.0),
        (lambda x: ca.tanh(-x), -1.0),
        (ca.atan, np.arctan(1000.0)),
        (ca.asinh, np.arcsinh(1000.0)),
        (lambda x: ca.exp(-x), -1.0),
        (lambda x: ca.log(1 + x), np.log1p(1000.0)),
        (ca.log1p, np.log1p(1000.0)),
        (lambda x: ca.expm1(-x), -1.0),
        (lambda x: ca.hypot(x, 1), np.hypot(1000.0, 1.0) - 1),
        (lambda x: ca.sin(x), np.sin(1000.0)),
        (lambda x: ca.erf(x), 1.0),
    ],
)
def test_very_long_steps(function, expected):
    """A step over many widths of a narrow function, such as a smoothed switch, is finite and exact too."""
    assert Case(function, 1)([0.0], [1000.0]) == pytest.approx(expected, rel=1e-12)
    assert Case(function, 1)([1000.0], [-1000.0]) == pytest.approx(-expected, rel=1e-12)


@pytest.mark.parametrize(
    ("function", "value"),
    [(ca.log, np.log), (lambda x: x**1.5, lambda x: x**1.5), (lambda x: x**-1.5, lambda x: x**-1.5)],
)
def test_steps_up_to_a_singularity_and_away_from_it(function, value):
    """Nearly the whole distance in one step: the end is exact, so the increment has to be."""
    far, near = 2.9, 2.9 - (2.9 - 1e-10)
    expected = value(near) - value(far)
    assert Case(function, 1)([far], [near - far]) == pytest.approx(expected, rel=1e-14)
    assert Case(function, 1)([near], [far - near]) == pytest.approx(-expected, rel=1e-14)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_hypotenuse_has_no_squares(size):
    """The increment is exact for squares that underflow or overflow, and through the origin."""
    f = Case(ca.hypot, 2)
    assert f([3 * size, 4 * size], [3 * size, 4 * size]) == pytest.approx(5 * size, rel=1e-14)
    assert f([3 * size, 4 * size], [-3 * size, -4 * size]) == pytest.approx(-5 * size, rel=1e-14)
    assert f([0.0, 0.0], [3 * size, 4 * size]) == pytest.approx(5 * size, rel=1e-14)
    assert f([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert f([3.0, 4.0], [-6.0, 0.0]) == 0.0


@pytest.mark.parametrize("function", [lambda x: 2.5 / x, lambda x: 1 / x, lambda x: ca.sin(x) / x, lambda x: x**-3])
def test_poles_may_be_jumped_over(function):
    """Both ends are regular, so the increment is, also from one side of a pole to the mirrored place."""
    f = Case(function, 1)
    assert f([-0.5], [1.0]) == pytest.approx(float(f.value(0.5) - f.value(-0.5)), rel=1e-14, abs=1e-15)


# -- functions with kinks and jumps -----------------------------------------------------------------------------------
QUARTER, HALF_ONE = Fraction(1, 4), Fraction(1, 2)
KINKED = {
    "fabs": (1, ca.fabs, abs),
    "fmin": (2, ca.fmin, min),
    "fmax": (2, ca.fmax, max),
    "fmin constant": (1, lambda x: ca.fmin(x, 0.25), lambda x: min(x, QUARTER)),
    "fmax constant": (1, lambda x: ca.fmax(0.25, x), lambda x: max(x, QUARTER)),
    "if_else": (2, lambda x, y: ca.if_else(x > 0.5, y, -3 * y), lambda x, y: y if x > HALF_ONE else -3 * y),
    "if_else at a kink": (
        1,
        lambda x: ca.if_else(x < 0.5, 0.5 - x, 4 * (x - 0.5)),
        lambda x: HALF_ONE - x if x < HALF_ONE else 4 * (x - HALF_ONE),
    ),
    "one-sided": (2, lambda x, y: ca.fmax(x - y, 0), lambda x, y: max(x - y, 0)),
}


@pytest.mark.parametrize("name", KINKED)
def test_piecewise_linear_functions(name):
    """A small relative error on one side of the kink, and across it an error like that of the rounded inputs."""
    n, function, exact = KINKED[name]
    f = Case(function, n)
    points = st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=n, max_size=n)

    @settings(max_examples=150, deadline=None)
    @given(points, st.lists(lengths(2.0), min_size=n, max_size=n))
    @example([0.0, 1.0][:n], [1e-300, 0.5][:n])
    @example([1.0, 1.5][:n], [1e-10, 0.7][:n])
    @example([1.0, 1.5][:n], [1e-300, 0.7][:n])
    @example([0.25, 0.25][:n], [1e-20, 0.0][:n])
    @example([-1.7690087238645367, 1.5][:n], [1.75, 0.7][:n])
    def check(x, w):
        start, step = [Fraction(a) for a in x], [Fraction(s) for s in w]
        if name == "if_else":  # it jumps: not where the rounding of the end decides about the side
            assume((x[0] + w[0] > 0.5) == (start[0] + step[0] > HALF_ONE))
        # a condition that changes has no identity, so for conditions the line must go on beyond the ends
        beyond = 1 if name.startswith("if_else") else 0
        along = {
            k: exact(*(a + s * k / 8 for a, s in zip(start, step, strict=True))) for k in range(-beyond, 9 + beyond)
        }
        increment = along[8] - along[0]
        if all(8 * (value - along[0]) == k * increment for k, value in along.items()):
            # x - y may cancel, but where f is zero it must be still
            tolerance = 8 * EPS * (sum(map(abs, step)) * bool(increment) if name == "one-sided" else abs(increment))
        else:
            tolerance = 32 * EPS * sum(abs(a) + abs(s) for a, s in zip(start, step, strict=True))
        assert abs(Fraction(f(x, w)) - increment) <= tolerance

    check()


def test_the_cut_of_atan2_is_a_jump():
    """Across the negative axis the increment is that of the function, not of the angle."""
    f = Case(ca.atan2, 2)
    assert f([0.1, -1.0], [-0.2, 0.0]) == pytest.approx(-2 * np.arctan2(0.1, -1.0), rel=1e-14)
    assert f([-0.1, -1.0], [0.2, 0.0]) == pytest.approx(2 * np.arctan2(0.1, -1.0), rel=1e-14)


@pytest.mark.parametrize(
    ("function", "x", "w", "expected"),
    [
        (ca.sign, -1.0, 2.0, 2.0),
        (ca.floor, 0.5, 2.0, 2.0),
        (ca.ceil, 0.5, -2.0, -2.0),
        (lambda x: x > 0, -1.0, 2.0, 1.0),
        (lambda x: ca.logic_not(x > 0), -1.0, 2.0, -1.0),
        (ca.floor, 0.5, 1e-300, 0.0),
        (lambda x: ca.fmod(x, 1.0), 0.5, 0.75, -0.25),
    ],
)
def test_jumps(function, x, w, expected):
    """Functions with jumps have no identity: the plain difference."""
    assert Case(function, 1)([x], [w]) == expected


def test_square_root_from_and_to_zero():
    """The singular point itself is an allowed end."""
    f = Case(ca.sqrt, 1)
    assert f([0.0], [1e-300]) == pytest.approx(1e-150)
    assert f([1e-300], [-1e-300]) == pytest.approx(-1e-150)
    assert f([0.0], [4.0]) == 2.0
    assert f([0.0], [0.0]) == 0.0


def test_powers_from_and_to_zero():
    """As are those of real powers."""
    f = Case(lambda x: x**1.5, 1)
    assert f([0.0], [4.0]) == pytest.approx(8.0)
    assert f([4.0], [-4.0]) == pytest.approx(-8.0)
    assert f([0.0], [1e-100]) == pytest.approx(1e-150)


# -- several outputs and arguments that stay --------------------------------------------------------------------------
def test_other_arguments_are_frozen():
    """Only the first argument moves; every output has its increment."""
    x, k, w = ca.SX.sym("x", 2), ca.SX.sym("k", 2), ca.SX.sym("w", 2)
    f = ca.Function("f", [x, k], [ca.vertcat(k[0] * x[0] ** 2, ca.sin(k[1] * x[1]), k[0] * k[1])])
    got = ca.Function("d", [x, k, w], [increments(f, x, w, [k])])([1.0, 2.0], [3.0, 0.5], [1e-200, 1e-200])
    np.testing.assert_allclose(got.full().ravel(), [6e-200, 0.5 * np.cos(1.0) * 1e-200, 0.0], rtol=1e-14)


def test_a_constant_does_not_move():
    """No graph is made for what does not depend on the moving argument."""
    x, w = ca.SX.sym("x"), ca.SX.sym("w")
    assert increments(ca.Function("f", [x], [ca.SX(3.0)]), x, w, []).is_zero()


def test_the_number_of_entries_is_checked():
    """A vector of another length is refused, by number of the input."""
    x = ca.SX.sym("x", 2)
    f = ca.Function("f", [x], [ca.sumsqr(x)])
    with pytest.raises(ValueError, match="input 0 has 2 entries, not 3"):
        increments(f, ca.SX.sym("y", 3), ca.SX.sym("w", 3), [])


def test_a_function_without_values_has_no_increments():
    x = ca.SX.sym("x", 2)
    assert increments(ca.Function("f", [x], [ca.SX(0, 1)]), x, ca.SX.sym("d", 2), []).shape == (0, 1)
