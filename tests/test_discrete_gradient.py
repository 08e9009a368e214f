"""The axioms of a discrete gradient, at every length of the increment.

``DG f(x, x + w)`` must give back the increment of f (directionality), become the gradient as w vanishes (consistency),
not depend on the direction of the step (symmetry), and be smooth enough for Newton's method (bounded Jacobian).
"""

import functools
import math

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m
from livens.expressions.graph.increments import increments
from livens.schemes.discrete_gradient import discrete_gradient, gradient_in_time, kinetic_gradients
from livens.schemes.recipes.elements import ElementEnergies

EPS = np.finfo(float).eps


class Case:
    """A scalar function of n variables with its discrete gradient, its increment and its derivatives."""

    def __init__(self, function, n):
        self.x, self.w = ca.SX.sym("x", n), ca.SX.sym("w", n)
        self.f = ca.Function("f", [self.x], [ca.SX(function(*ca.vertsplit(self.x)))])
        self._dg = ca.densify(discrete_gradient(self.f, self.x, self.w))
        self._value = ca.Function("dg", [self.x, self.w], [self._dg, increments(self.f, self.x, self.w, [])])
        self._hessian, gradient = ca.hessian(self.f(self.x), self.x)
        self._derivatives = ca.Function("d", [self.x], [ca.densify(gradient), ca.densify(self._hessian)])

    def __call__(self, x, w):
        return self._value(x, w)[0].full().ravel()

    def increment(self, x, w):
        return float(self._value(x, w)[1])

    def gradient(self, x):
        return self._derivatives(x)[0].full().ravel()

    def hessian(self, x):
        return self._derivatives(x)[1].full()

    @functools.cached_property
    def jacobian(self):
        function = ca.Function("j", [self.x, self.w], [ca.densify(ca.jacobian(self._dg, self.w))])
        return lambda x, w: function(x, w).full()

    @functools.cached_property
    def third(self):
        """The largest sum of all third derivatives on the way from x to x + w."""
        third = ca.Function("t", [self.x], [ca.sum1(ca.fabs(ca.vec(ca.jacobian(ca.vec(self._hessian), self.x))))])
        return lambda x, w: max(float(third(x + s * w)) for s in (0, 0.25, 0.5, 0.75, 1))


# -- functions --------------------------------------------------------------------------------------------------------
def length(x, y):
    return ca.sqrt(x**2 + y**2 + 0.01)


FUNCTIONS = {
    "cubic": (lambda x: x**3 - 2 * x, 1),
    "quartic": (lambda x: x**4 / 4 - x**2 / 2, 1),
    "quartic in two": (lambda x, y: x**4 + x * y**3 - 2 * x**2 * y**2 + y, 2),
    "cubic in three": (lambda x, y, z: x * y * z + x**3 - y**2 * z, 3),
    "sine": (ca.sin, 1),
    "pendulum": (lambda x, y: ca.cos(x - y) - 2 * ca.cos(y), 2),
    "exponential": (lambda x, y: ca.exp(x / 2 - y), 2),
    "Morse": (lambda x: (1 - ca.exp(-(x - 0.5))) ** 2, 1),
    "length": (length, 2),
    "spring": (lambda x, y: (length(x, y) - 1) ** 2 / 2, 2),
    "gravitation": (lambda x, y: -1 / length(x, y), 2),
    "power": (lambda x: (1 + x**2) ** 1.3, 1),
    "logarithm": (lambda x, y: ca.log(2 + x**2 + y**4), 2),
    "arc tangent": (lambda x, y: ca.atan(x * y) + ca.asinh(x), 2),
    "tanh": (lambda x, y: ca.tanh(x) * y**2, 2),
    "mixture": (lambda x, y, z: ca.sin(x * y) * z + length(x, z) * ca.exp(-(y**2)) + x**3 / 6, 3),
    "one-sided": (lambda x, y: ca.fmax(x - y, 0) ** 2 + x**4, 2),
    "quotient": (lambda x, y: x**3 / (2 + y**2), 2),
}


@functools.cache
def case(name):
    return Case(*FUNCTIONS[name])


@st.composite
def polynomials(draw):
    """Polynomials of degree four in one to three variables, plus a wave and an exponential of a linear form."""
    n = draw(st.integers(1, 3))
    coefficient = st.integers(-3, 3).map(lambda k: k / 2)
    exponents = st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(lambda e: 0 < sum(e) <= 4)
    terms = draw(st.lists(st.tuples(coefficient, exponents), min_size=1, max_size=5))
    wave, growth = (draw(st.lists(coefficient, min_size=n, max_size=n)) for _ in range(2))

    def function(*x):
        value = sum(c * math.prod(s**k for s, k in zip(x, e, strict=True)) for c, e in terms)
        value += ca.sin(sum(k * s for k, s in zip(wave, x, strict=True)))
        return value + ca.exp(sum(k * s / 4 for k, s in zip(growth, x, strict=True)))

    return function, n


LENGTHS = st.one_of(
    st.floats(-9, 0).map(lambda e: 10**e),  # where the correction counts
    st.floats(-300, -9).map(lambda e: 10**e),  # where it does not
    st.just(0.0),
)


def points(n):
    return st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=n, max_size=n).map(np.array)


@st.composite
def increments_of(draw, n):
    """Vectors of any length in any direction."""
    direction = draw(points(n))
    size = np.linalg.norm(direction)
    assume(size > 1e-3)
    return draw(LENGTHS) * direction / size


def rounding(f, x, w):
    """The change of f when x and x + w are rounded to doubles and f is computed to the last digit but few."""
    slopes = sum(abs(f.gradient(p)) for p in (x, x + w / 2, x + w))
    return EPS * (slopes @ (abs(x) + abs(w)) + abs(float(f.f(x))) + abs(float(f.f(x + w))))


def assert_directional(f, x, w):
    # the terms of these functions are of size one
    assert abs(f(x, w) @ w - f.increment(x, w)) <= 10 * (EPS + rounding(f, x, w))


# -- directionality ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FUNCTIONS)
def test_directionality(name):
    """``DG f . w`` is the increment of f to round-off, by algebra and as the difference of two values."""
    f, n = case(name), FUNCTIONS[name][1]

    @settings(max_examples=30, deadline=None)
    @given(points(n), increments_of(n))
    def check(x, w):
        assert_directional(f, x, w)
        plain = float(f.f(x + w)) - float(f.f(x))
        assert abs(f(x, w) @ w - plain) <= 20 * (EPS + rounding(f, x, w))

    check()


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_directionality_of_random_functions(data):
    """Polynomials up to degree four with waves and exponentials."""
    function, n = data.draw(polynomials())
    f = Case(function, n)
    for _ in range(3):
        assert_directional(f, data.draw(points(n)), data.draw(increments_of(n)))


@pytest.mark.parametrize("origin", [1e3, 1e6])
@pytest.mark.parametrize("name", ["pendulum", "spring", "quartic in two"])
def test_directionality_far_from_the_origin(name, origin):
    """Where the origin lies is no property of the function: only the rounding of larger numbers is added."""
    function, n = FUNCTIONS[name]
    f = Case(lambda *x: function(*(s - origin for s in x)), n)

    @settings(max_examples=25, deadline=None)
    @given(points(n), increments_of(n))
    def check(x, w):
        assert_directional(f, origin + x, w)

    check()


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e9])
@pytest.mark.parametrize("name", ["pendulum", "spring", "quartic in two"])
def test_directionality_in_other_units(name, unit):
    """Micrometres and gigametres."""
    function, n = FUNCTIONS[name]
    f = Case(lambda *x: function(*(s / unit for s in x)), n)

    @settings(max_examples=30, deadline=None)
    @given(points(n), increments_of(n))
    def check(x, w):
        assert_directional(f, unit * x, unit * w)

    check()


KINKED = {
    "absolute value": (ca.fabs, 1),
    "absolute value and parabola": (lambda x: ca.fabs(x) + x**2, 1),
    "larger of two": (lambda x, y: ca.fmax(x, 2 * y), 2),
    "smaller of two": (lambda x: ca.fmin(x, 0.5), 1),
    "condition": (lambda x: ca.if_else(x > 0, x, -3 * x), 1),
    "one-sided spring": (lambda x: ca.fmax(x, 0) ** 2 / 2, 1),
    "one-sided spring by condition": (lambda x: ca.if_else(x > 0.2, (x - 0.2) ** 2, 0), 1),
}


@pytest.mark.parametrize("name", KINKED)
def test_directionality_across_kinks(name):
    """Also for functions that are pieces of lines and parabolas, whose second derivatives look constant."""
    function, n = KINKED[name]
    f = Case(function, n)

    @settings(max_examples=30, deadline=None)
    @given(points(n), points(n))
    def check(x, w):
        expected = float(f.f(x + w) - f.f(x))
        assert abs(f(x, w) @ w - expected) <= 100 * EPS * (1 + abs(x).sum() + abs(w).sum())

    check()


class Midpoint(Case):
    """What a discrete gradient is not."""

    def __call__(self, x, w):
        return self.gradient(x + w / 2)


def test_the_midpoint_gradient_is_not_directional():
    """What the correction is for: without it the quartic misses by more than a part in ten, and the test sees it."""
    f = case("quartic")
    x, w = np.array([0.3]), np.array([1.0])
    assert abs(f.gradient(x + w / 2) @ w - f.increment(x, w)) > 0.1 * abs(f.increment(x, w))
    assert_directional(f, x, w)
    with pytest.raises(AssertionError):
        assert_directional(Midpoint(*FUNCTIONS["quartic"]), x, w)


# -- consistency and symmetry -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FUNCTIONS)
def test_consistency(name):
    """The gradient itself for no increment, and as good as the midpoint's for a short one."""
    f, n = case(name), FUNCTIONS[name][1]

    @settings(max_examples=30, deadline=None)
    @given(points(n), increments_of(n))
    def check(x, w):
        np.testing.assert_allclose(f(x, 0 * w), f.gradient(x), rtol=4 * EPS, atol=4 * EPS)
        if name == "one-sided":  # smooth on either side only
            assume(min(abs(x[0] - x[1]), abs(x[0] + w[0] - x[1] - w[1])) > 2 * abs(w).sum())
        got, middle = f(x, w), x + w / 2
        assert np.all(np.isfinite(got))
        thirds = f.third(x, w)
        rounding = 50 * EPS * (abs(f.gradient(middle)).sum() + abs(f.hessian(middle)).sum() * (1 + abs(middle).sum()))
        assert np.linalg.norm(got - f.gradient(middle)) <= thirds * (w @ w) / 4 + rounding

    check()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_symmetry(name):
    """There and back is the same: ``DG(x, y) = DG(y, x)``."""
    f, n = case(name), FUNCTIONS[name][1]

    @settings(max_examples=30, deadline=None)
    @given(points(n), increments_of(n))
    def check(x, w):
        y = x + w
        w = y - x  # what is left of w after rounding, so that both ends are the same both ways
        middle = (x + y) / 2
        scale = abs(f.gradient(middle)).sum() + abs(f.hessian(middle)).sum() * (abs(x).sum() + abs(y).sum())
        scale += sum(abs(f.gradient(p)).sum() for p in (x, y))
        assert np.all(abs(f(x, w) - f(y, -w)) <= 50 * EPS * scale)

    check()


# -- what Newton's method sees ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_jacobian_is_bounded(name):
    """At every length of w, zero included, the derivative in w is half the Hessian up to the length of w."""
    f, n = case(name), FUNCTIONS[name][1]

    @settings(max_examples=30, deadline=None)
    @given(points(n), increments_of(n))
    def check(x, w):
        if name == "one-sided":
            assume(min(abs(x[0] - x[1]), abs(x[0] + w[0] - x[1] - w[1])) > 2 * abs(w).sum())
        jacobian = f.jacobian(x, w)
        assert np.all(np.isfinite(jacobian))
        thirds = f.third(x, w)
        scale = abs(f.gradient(x)).sum() + abs(f.hessian(x)).sum()
        gap = np.linalg.norm(jacobian - f.hessian(x + w / 2) / 2)
        # Newton's method needs no more than some digits
        assert gap <= 2 * thirds * np.linalg.norm(w) + 1e-3 * scale

    check()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_jacobian_is_the_derivative(name):
    """Compared with differences, where the correction counts and where it is faded out."""
    f, n = case(name), FUNCTIONS[name][1]
    x, direction = np.array([0.7, -0.4, 1.1])[:n], np.array([1.0, 0.5, -0.7])[:n]
    for size in (1.0, 1e-2, 1e-5):
        w, d = size * direction, 1e-5 * size
        columns = [(f(x, w + d * e) - f(x, w - d * e)) / (2 * d) for e in np.eye(n)]
        noise = 1e3 * EPS / d * (1 + abs(f.gradient(x)).sum())
        np.testing.assert_allclose(f.jacobian(x, w), np.array(columns).T, rtol=1e-5, atol=1e-5 + noise)


# -- special cases ----------------------------------------------------------------------------------------------------
QUADRATIC = {
    "constant": (lambda x: ca.SX(3.0), 1),
    "linear": (lambda x, y: 2 * x - y + 1, 2),
    "square": (lambda x: x**2, 1),
    "form": (lambda x, y, z: x * y + 3 * y * z - z**2 / 2 + x, 3),
    "written otherwise": (lambda x, y: (x - y) * (x + y) - (x + 1) ** 2, 2),
}


@pytest.mark.parametrize("name", QUADRATIC)
def test_quadratic_functions_take_the_midpoint(name):
    """Exactly, and in so few operations: no increment is computed."""
    function, n = QUADRATIC[name]
    x, w = ca.SX.sym("x", n), ca.SX.sym("w", n)
    f = ca.Function("f", [x], [function(*ca.vertsplit(x))])
    dg = discrete_gradient(f, x, w)
    gradient = ca.Function("g", [x], [ca.gradient(f(x), x)])
    both = ca.Function("both", [x, w], [ca.densify(dg), ca.densify(gradient(x + w / 2))])
    assert ca.n_nodes(dg) <= ca.n_nodes(gradient(x + w / 2))

    @settings(max_examples=20, deadline=None)
    @given(points(n), increments_of(n))
    def check(x, w):
        got, expected = (v.full().ravel() for v in both(x, w))
        np.testing.assert_array_equal(got, expected)

    check()


def test_coordinates_without_influence_are_not_pushed():
    """f knows nothing of the second coordinate, so neither does its discrete gradient, however far that moves."""
    f = Case(lambda x, y: x**4 + 0 * y, 2)
    got = f(np.array([0.3, 5.0]), np.array([0.5, 100.0]))
    assert got[1] == 0.0
    assert got[0] * 0.5 == pytest.approx(0.8**4 - 0.3**4, rel=1e-14)


def test_other_arguments_are_frozen():
    """Parameters and frozen variables enter as they are."""
    x, w, k = ca.SX.sym("x", 2), ca.SX.sym("w", 2), ca.SX.sym("k", 2)
    f = ca.Function("f", [x, k], [k[0] * x[0] ** 4 + ca.sin(k[1] * x[1]) * x[0]])
    dg = ca.Function("dg", [x, w, k], [discrete_gradient(f, x, w, k)])
    at, step, values = np.array([0.5, 1.0]), np.array([0.2, -0.4]), [3.0, 0.7]
    expected = float(f(at + step, values) - f(at, values))
    assert float(ca.dot(dg(at, step, values), step)) == pytest.approx(expected, rel=1e-14)


# -- partitioned discrete gradients -----------------------------------------------------------------------------------
def energies(**functions):
    """The one element of a system in the plane with two parameters."""
    return ElementEnergies(lv.System("x y", parameters=dict(m=1.5, c=0.7), **functions).models[0])


K = [1.5, 0.7]
KINETIC = {
    "constant mass": lambda v, k: 0.5 * k.m * (v @ v),
    "polar": lambda q, v, k: 0.5 * k.m * (v[0] ** 2 + q[0] ** 2 * v[1] ** 2),
    "double pendulum": lambda q, v, k: v[0] ** 2 + 0.5 * v[1] ** 2 + k.c * v[0] * v[1] * m.cos(q[0] - q[1]),
    "not quadratic": lambda q, v, k: k.m * m.sqrt(1 + v @ v + m.sin(q[0]) ** 2) + 0.1 * v[1] ** 4,
    "gyroscopic": lambda q, v, k: 0.5 * (v @ v) + k.c * (q[0] ** 3 * v[1] - q[1] * v[0]),
}


@pytest.mark.parametrize("name", KINETIC)
def test_kinetic_gradients_are_directional_together(name):
    """``DG_q T . Dq + DG_v T . Dv = T(q1, v1) - T(q0, v0)``, though each is a mean over the other's ends."""
    e = energies(kinetic=KINETIC[name])
    q, Dq, v, Dv = (ca.SX.sym(s, 2) for s in ("q", "Dq", "v", "Dv"))
    parts = kinetic_gradients(e, q, Dq, v, Dv)
    both = ca.Function("both", [q, Dq, v, Dv, e.k], [ca.densify(part) for part in parts])
    end = ca.Function("T", [q, v, e.k], [e.T(q, v)])
    slopes = ca.Function("slopes", [q, v, e.k], [ca.densify(e.T_q(q, v)), ca.densify(e.T_v(q, v))])

    @settings(max_examples=30, deadline=None)
    @given(points(2), increments_of(2), points(2), increments_of(2))
    def check(q, Dq, v, Dv):
        got_q, got_v = (part.full().ravel() for part in both(q, Dq, v, Dv, K))
        before, after = float(end(q, v, K)), float(end(q + Dq, v + Dv, K))
        sizes = abs(got_q) @ (abs(Dq) + abs(q)) + abs(got_v) @ (abs(Dv) + abs(v))
        assert abs(got_q @ Dq + got_v @ Dv - (after - before)) <= 50 * EPS * (1 + abs(before) + abs(after) + sizes)
        # consistency: both ends at one place
        for part, slope in zip(both(q, 0 * Dq, v, 0 * Dv, K), slopes(q, v, K), strict=True):
            np.testing.assert_allclose(part.full(), slope.full(), rtol=1e-14, atol=1e-14)

    check()


POTENTIAL = {
    "still": lambda q, k: k.c * q[0] ** 4 + q[1] ** 2,
    "driven": lambda q, t, k: k.c * m.cos(q[0] - t) + q[1] ** 4 * m.sin(2 * t),
    "driven parabola": lambda q, t, k: 0.5 * k.c * (q[0] - m.sin(t)) ** 2,
    "time alone": lambda q, t, k: k.c * t**3 + 0 * q[0],
}


@pytest.mark.parametrize("name", POTENTIAL)
def test_gradients_in_time_are_directional_together(name):
    """``DG_q f . Dq + D_t f = f(q1, t + h) - f(q0, t)``; without time in f there is no work of time."""
    e = energies(kinetic=KINETIC["constant mass"], potential=POTENTIAL[name])
    q, Dq, t, h = ca.SX.sym("q", 2), ca.SX.sym("Dq", 2), ca.SX.sym("t"), ca.SX.sym("h")
    by_q, by_t = gradient_in_time(e, e.model.V, q, Dq, t, h)
    both = ca.Function("both", [q, Dq, t, h, e.k], [ca.densify(by_q), by_t])
    value = ca.Function("V", [q, t, e.k], [e.V(q, t)])
    if name == "still":
        assert by_t.is_zero()

    @settings(max_examples=30, deadline=None)
    @given(points(2), increments_of(2), st.floats(0, 5), LENGTHS)
    def check(q, Dq, t, h):
        got_q, got_t = (part.full().ravel() for part in both(q, Dq, t, h, K))
        before, after = float(value(q, t, K)), float(value(q + Dq, t + h, K))
        sizes = 10 * (1 + t**3) + abs(got_q) @ (abs(Dq) + abs(q)) + abs(before) + abs(after)
        assert abs(got_q @ Dq + got_t[0] - (after - before)) <= 50 * EPS * sizes

    check()


def test_the_work_of_time_has_a_small_relative_error():
    """A step of 1e-200 does work of its size, not of the size of round-off."""
    e = energies(kinetic=KINETIC["constant mass"], potential=POTENTIAL["driven"])
    q, h = ca.SX.sym("q", 2), ca.SX.sym("h")
    _, by_t = gradient_in_time(e, e.model.V, q, ca.SX.zeros(2), ca.SX(0.3), h)
    work = float(ca.Function("work", [q, h, e.k], [by_t])([0.5, 1.2], 1e-200, K))
    power = 0.7 * np.sin(0.5 - 0.3) + 1.2**4 * 2 * np.cos(0.6)
    assert work == pytest.approx(power * 1e-200, rel=1e-13)
