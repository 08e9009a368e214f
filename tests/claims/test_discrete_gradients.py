"""Claims of discrete gradients: axioms, order, conserved and not conserved quantities.

``DG f(x, x + w)`` must give back the increment of f at every length of w (directionality), become the gradient as w
vanishes (consistency), not depend on the direction of the step if it says so (symmetry), and be smooth enough for
Newton's method (bounded Jacobian). A scheme with it has the order and keeps the momenta that it says, and no more. One
of the gradients is defined in this file: what comes from outside the package is put to the same tests.
"""

import functools
import math

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, root

import livens as lv
from livens import math as m
from livens.expressions.graph.increments import increments
from livens.schemes import gradients
from livens.schemes.discretization.element_scheme import ElementFunctions
from livens.schemes.energy_momentum.ggl_em import GGLEnergyMomentum
from livens.schemes.energy_momentum.hamilton import HamiltonEM
from livens.schemes.energy_momentum.livens_em import LivensEM
from livens.schemes.energy_momentum.livens_em_full import LivensEMFull
from livens.schemes.gradients import DiscreteGradient, Equivariant, Gonzalez, ItohAbe, MeanValue
from livens.schemes.gradients.correction import inverse_squared_norm
from livens.schemes.gradients.gonzalez import GonzalezFull
from livens.schemes.gradients.mean_value import dependence_projector, polynomial_degree
from stepping import symmetry_defect

EPS = np.finfo(float).eps


class ThereAndBack(DiscreteGradient):
    """The mean of Itoh and Abe's discrete gradients from x to y and from y to x: of order two."""

    name = "there-and-back"
    order = 2
    symmetric = True
    momenta = ("cyclic",)
    summary, source = "itoh-abe, symmetrised", "this file"

    def __call__(self, function, x, w, *others):
        return (ItohAbe()(function, x, w, *others) + ItohAbe()(function, x + w, -w, *others)) / 2


PLAIN = (Gonzalez(), GonzalezFull(), MeanValue(), ItohAbe(), ThereAndBack())
by_name = pytest.mark.parametrize("gradient", PLAIN, ids=lambda gradient: gradient.name)


class Case:
    """A scalar function of n variables with its discrete gradient, its increment and its derivatives."""

    def __init__(self, function, n, gradient):
        self.n, self.rule = n, gradient
        self.x, self.w = ca.SX.sym("x", n), ca.SX.sym("w", n)
        self.f = ca.Function("f", [self.x], [ca.SX(function(*ca.vertsplit(self.x)))])
        self._dg = ca.densify(gradient(self.f, self.x, self.w))
        self._value = ca.Function("dg", [self.x, self.w], [self._dg, increments(self.f, self.x, self.w, [])])
        hessian, gradient = ca.hessian(self.f(self.x), self.x)
        third = ca.sum1(ca.fabs(ca.vec(ca.jacobian(ca.vec(hessian), self.x))))
        values = [self.f(self.x), ca.densify(gradient), ca.densify(hessian), third]
        self._derivatives = ca.Function("d", [self.x], values)

    def __call__(self, x, w):
        return self._value(x, w)[0].full().ravel()

    def increment(self, x, w):
        return float(self._value(x, w)[1])

    def gradient(self, x):
        return self._derivatives(x)[1].full().ravel()

    def hessian(self, x):
        return self._derivatives(x)[2].full()

    @functools.cached_property
    def jacobian(self):
        function = ca.Function("j", [self.x, self.w], [ca.densify(ca.jacobian(self._dg, self.w))])
        return lambda x, w: function(x, w).full()

    def largest(self, x, w):
        """The largest value, gradient, Hessian and third derivative (sums of sizes) on the way from x to x + w.

        On the straight way and, for coordinates that move one after the other, around the corners of the box.
        """
        corners = [np.where(np.arange(self.n) < i, x + w, x) for i in range(1, self.n)]
        corners += [np.where(np.arange(self.n) < i, x, x + w) for i in range(1, self.n)]
        places = [x + s * w for s in np.linspace(0, 1, 9)]
        for a, b in zip([x, *corners], [*corners, x + w], strict=True):
            places += [a, (a + b) / 2]
        rows = [[float(ca.sum1(ca.sum2(ca.fabs(d)))) for d in self._derivatives(place)] for place in places]
        return np.max(rows, axis=0)

    def rounding(self, x, w):
        """Return the bound of the rounding error of ``DG . w`` from x, x + w, f and its derivatives."""
        value, slope, curvature, _ = self.largest(x, w)
        size = abs(x).max() + abs(w).max()
        return EPS * (1 + value + slope * size + curvature * size * abs(w).max())


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
    st.floats(-9, 1).map(lambda e: 10**e),  # where a correction counts
    st.floats(-300, -9).map(lambda e: 10**e),  # where it does not
    st.just(0.0),
)


@functools.cache
def case(name, gradient):
    return Case(*FUNCTIONS[name], gradient)


def points(n):
    return st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=n, max_size=n).map(np.array)


@st.composite
def increments_of(draw, n):
    """Vectors of any length in any direction."""
    direction = draw(points(n))
    size = np.linalg.norm(direction)
    assume(size > 1e-3)
    return draw(LENGTHS) * direction / size


def assert_directional(f, x, w):
    found = f(x, w)
    assert np.all(np.isfinite(found))
    assert abs(found @ w - f.increment(x, w)) <= 20 * f.rounding(x, w)


def assert_symmetric_as_declared(f, x, w):
    y = x + w
    w = y - x  # what is left of w after rounding, so that both ends are the same both ways
    _, slopes, curvatures, _ = f.largest(x, w)
    rounding = 50 * EPS * (1 + slopes + curvatures * (abs(x).sum() + abs(y).sum()))
    allowed = 0.0 if f.rule.symmetric else 2 * curvatures * np.linalg.norm(w)
    assert np.all(abs(f(x, w) - f(y, -w)) <= rounding + allowed)


def away_from_the_kink(name, x, w):
    """One of the functions is smooth on either side of a line only."""
    if name == "one-sided":
        assume(min(abs(x[0] - x[1]), abs(x[0] + w[0] - x[1] - w[1])) > 2 * abs(w).sum())


# -- directionality ---------------------------------------------------------------------------------------------------
@by_name
@pytest.mark.parametrize("name", FUNCTIONS)
def test_directionality(name, gradient):
    """``DG f . w`` is the increment of f to round-off, by algebra and as the difference of two values."""
    f = case(name, gradient)

    @settings(max_examples=15, deadline=None)
    @given(points(f.n), increments_of(f.n))
    def check(x, w):
        assert_directional(f, x, w)
        plain = float(f.f(x + w)) - float(f.f(x))
        assert abs(f(x, w) @ w - plain) <= 40 * f.rounding(x, w)

    check()


@by_name
def test_axioms_for_random_functions(gradient):
    """Polynomials up to degree four with waves and exponentials."""

    @settings(max_examples=25, deadline=None)
    @given(st.data())
    def check(data):
        function, n = data.draw(polynomials())
        f = Case(function, n, gradient)
        for _ in range(3):
            x, w = data.draw(points(n)), data.draw(increments_of(n))
            assert_directional(f, x, w)
            assert_symmetric_as_declared(f, x, w)
            np.testing.assert_allclose(
                f(x, 0 * w), f.gradient(x), rtol=16 * EPS, atol=16 * EPS * f.largest(x, 0 * w)[1]
            )

    check()


@by_name
@pytest.mark.parametrize("origin", [1e3, 1e6])
@pytest.mark.parametrize("name", ["pendulum", "spring", "quartic in two"])
def test_directionality_far_from_the_origin(name, origin, gradient):
    """Discrete gradients are independent of the origin up to the rounding of larger numbers."""
    function, n = FUNCTIONS[name]
    f = Case(lambda *x: function(*(s - origin for s in x)), n, gradient)

    @settings(max_examples=15, deadline=None)
    @given(points(n), increments_of(n))
    def check(x, w):
        assert_directional(f, origin + x, w)

    check()


@by_name
@pytest.mark.parametrize("unit", [1e-6, 1e9])
@pytest.mark.parametrize("name", ["pendulum", "spring", "quartic in two"])
def test_directionality_in_other_units(name, unit, gradient):
    """Micrometres and gigametres."""
    function, n = FUNCTIONS[name]
    f = Case(lambda *x: function(*(s / unit for s in x)), n, gradient)

    @settings(max_examples=15, deadline=None)
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


@by_name
@pytest.mark.parametrize("name", KINKED)
def test_directionality_across_kinks(name, gradient):
    """Also for functions that are pieces of lines and parabolas, whose second derivatives look constant."""
    function, n = KINKED[name]
    f = Case(function, n, gradient)

    @settings(max_examples=15, deadline=None)
    @given(points(n), points(n))
    def check(x, w):
        expected = float(f.f(x + w) - f.f(x))
        assert abs(f(x, w) @ w - expected) <= 100 * EPS * (1 + abs(x).sum() + abs(w).sum())

    check()


class Midpoint(DiscreteGradient):
    """Counterexamples: maps that are not discrete gradients."""

    def __call__(self, function, x, w, *others):
        return ca.substitute(ca.gradient(function(x, *others), x), x, x + w / 2)


def test_the_midpoint_gradient_is_not_directional():
    """The midpoint gradient violates the increment of the quartic by more than a tenth, and the test detects it."""
    f = Case(*FUNCTIONS["quartic"], Midpoint())
    x, w = np.array([0.3]), np.array([1.0])
    assert abs(f(x, w) @ w - f.increment(x, w)) > 0.1 * abs(f.increment(x, w))
    with pytest.raises(AssertionError):
        assert_directional(f, x, w)


# -- consistency and symmetry -----------------------------------------------------------------------------------------
@by_name
@pytest.mark.parametrize("name", FUNCTIONS)
def test_consistency(name, gradient):
    """The gradient itself for no increment, and off the midpoint's by the power of w that is the order."""
    f = case(name, gradient)

    @settings(max_examples=15, deadline=None)
    @given(points(f.n), increments_of(f.n))
    def check(x, w):
        slope = abs(f.gradient(x)).sum()
        np.testing.assert_allclose(f(x, 0 * w), f.gradient(x), rtol=8 * EPS, atol=8 * EPS * (1 + slope))
        away_from_the_kink(name, x, w)
        _, slopes, curvatures, thirds = f.largest(x, w)
        rounding = 50 * EPS * (slopes + curvatures * (1 + abs(x).sum() + abs(w).sum()))
        allowed = curvatures * np.linalg.norm(w) if gradient.order == 1 else thirds * (w @ w)
        assert np.linalg.norm(f(x, w) - f.gradient(x + w / 2)) <= allowed + rounding

    check()


@by_name
@pytest.mark.parametrize("name", FUNCTIONS)
def test_symmetry_as_declared(name, gradient):
    """There and back is the same, ``DG(x, y) = DG(y, x)``, or differs by terms of the first order in w."""
    f = case(name, gradient)

    @settings(max_examples=15, deadline=None)
    @given(points(f.n), increments_of(f.n))
    def check(x, w):
        assert_symmetric_as_declared(f, x, w)

    check()


@by_name
def test_the_product_tells_symmetric_ones_from_others(gradient):
    """The gradient of Itoh and Abe of x y is (x_2, y_1), which is not symmetric."""
    f = Case(lambda x, y: x * y, 2, gradient)
    x, w = np.array([0.5, -0.3]), np.array([0.2, 0.7])
    gap = abs(f(x, w) - f(x + w, -w)).max()
    assert gap < 1e-15 if gradient.symmetric else gap == pytest.approx(0.7)
    if gradient == ItohAbe():
        np.testing.assert_allclose(f(x, w), [-0.3, 0.7], rtol=1e-15)


# -- what Newton's method sees ----------------------------------------------------------------------------------------
@by_name
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_jacobian_is_bounded(name, gradient):
    """At every length of w, zero included; of symmetric ones it is half the Hessian up to the length of w."""
    f = case(name, gradient)

    @settings(max_examples=15, deadline=None)
    @given(points(f.n), increments_of(f.n))
    def check(x, w):
        away_from_the_kink(name, x, w)
        jacobian = f.jacobian(x, w)
        assert np.all(np.isfinite(jacobian))
        _, slopes, curvatures, thirds = f.largest(x, w)
        middle = f.hessian(x + w / 2) / 2
        allowed = 2 * thirds * np.linalg.norm(w) + (0 if gradient.order > 1 else curvatures)
        # Newton's method needs no more than some digits
        assert np.linalg.norm(jacobian - middle) <= allowed + 1e-3 * (slopes + curvatures)

    check()


@by_name
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_jacobian_is_the_derivative(name, gradient):
    """Compared with differences, where a correction counts and where it is faded out."""
    f = case(name, gradient)
    x, direction = np.array([0.7, -0.4, 1.1])[: f.n], np.array([1.0, 0.5, -0.7])[: f.n]
    for size in (1.0, 1e-2, 1e-5):
        w, d = size * direction, 1e-5 * size
        columns = [(f(x, w + d * e) - f(x, w - d * e)) / (2 * d) for e in np.eye(f.n)]
        noise = 1e3 * EPS / d * (1 + abs(f.gradient(x)).sum())
        np.testing.assert_allclose(f.jacobian(x, w), np.array(columns).T, rtol=1e-5, atol=1e-5 + noise)


@pytest.mark.parametrize("name", [*FUNCTIONS, "square"])
def test_the_derivative_in_fewer_operations_is_that_of_the_gradient(name):
    """Gonzalez' gradient says how it changes with w: what automatic differentiation finds, up to rounding."""
    function, n = (FUNCTIONS | QUADRATIC)[name]
    f = Case(function, n, Gonzalez())
    own = ca.Function("own", [f.x, f.w], [ca.densify(Gonzalez().derivative(f.f, f.x, f.w))])
    x, direction = np.array([0.7, -0.4, 1.1])[:n], np.array([1.0, 0.5, -0.7])[:n]
    for size in (1.0, 1e-2, 1e-5):
        expected = f.jacobian(x, size * direction)
        atol = 1e-9 * (1 + abs(expected).max())
        np.testing.assert_allclose(own(x, size * direction).full(), expected, rtol=1e-9, atol=atol)


def test_the_correction_fades_out_below_round_off_in_any_unit():
    """Half of it is left where w has a ten thousand millionth of the length of z, all of it above and none below."""
    for unit in (1e-12, 1e-9, 1e-1, 1.0, 1e6):
        z = unit * np.array([0.6, -0.8])
        for ratio, left in ((1e-6, 1.0), (1e-9, 1.0), (1e-10, 0.5), (1e-11, 0.0), (1e-14, 0.0)):
            w = ratio * unit * np.array([0.8, 0.6])
            assert float(inverse_squared_norm(ca.DM(w), ca.DM(z))) * (w @ w) == pytest.approx(left, abs=2e-2)


@pytest.mark.parametrize("length", [1e-12, 1e-9, 1e6])
def test_energy_is_conserved_in_any_unit_of_length(length):
    """A quartic oscillator of this amplitude in metres."""
    system = lv.System(
        "x",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q, k: q[0] ** 2 / 2 + q[0] ** 4 / (4 * k.length**2),
        parameters=dict(length=length),
    )
    run = lv.simulate(system, [length], [0.0], scheme="livens-em", h=0.01, t_end=3.0)
    assert run.summary.max_energy_drift < 1e-13


# -- special cases ----------------------------------------------------------------------------------------------------
QUADRATIC = {
    "constant": (lambda x: ca.SX(3.0), 1),
    "linear": (lambda x, y: 2 * x - y + 1, 2),
    "square": (lambda x: x**2, 1),
    "form": (lambda x, y, z: x * y + 3 * y * z - z**2 / 2 + x, 3),
    "written otherwise": (lambda x, y: (x - y) * (x + y) - (x + 1) ** 2, 2),
}


@pytest.mark.parametrize("gradient", [Gonzalez(), MeanValue()], ids=lambda gradient: gradient.name)
@pytest.mark.parametrize("name", QUADRATIC)
def test_quadratic_functions_take_the_midpoint(name, gradient):
    """Exactly, and in as few operations: no increment is computed."""
    function, n = QUADRATIC[name]
    x, w = ca.SX.sym("x", n), ca.SX.sym("w", n)
    f = ca.Function("f", [x], [function(*ca.vertsplit(x))])
    dg = gradient(f, x, w)
    slope = ca.Function("g", [x], [ca.gradient(f(x), x)])
    both = ca.Function("both", [x, w], [ca.densify(dg), ca.densify(slope(x + w / 2))])
    assert ca.n_nodes(dg) <= ca.n_nodes(slope(x + w / 2))

    @settings(max_examples=15, deadline=None)
    @given(points(n), increments_of(n))
    def check(x, w):
        got, expected = (v.full().ravel() for v in both(x, w))
        np.testing.assert_array_equal(got, expected)

    check()


@by_name
def test_coordinates_without_influence_are_not_pushed(gradient):
    """f knows nothing of the second coordinate, so neither does its discrete gradient, however far that moves."""
    for function in (lambda x, y: x**4 + 0 * y, lambda x, y: ca.exp(x) + 0 * y):
        f = Case(function, 2, gradient)
        x, w = np.array([0.3, 5.0]), np.array([0.5, 100.0])
        if gradient.name == "gonzalez-full":  # as printed: the correction acts along the whole increment
            assert abs(f(x, w)[1]) > 1e-5
        else:
            assert f(x, w)[1] == 0.0
        assert f(x, w) @ w == pytest.approx(f.increment(x, w), rel=1e-14)


@by_name
def test_other_arguments_are_frozen(gradient):
    """Parameters and frozen variables enter as they are."""
    x, w, k = ca.SX.sym("x", 2), ca.SX.sym("w", 2), ca.SX.sym("k", 2)
    f = ca.Function("f", [x, k], [k[0] * x[0] ** 4 + ca.sin(k[1] * x[1]) * x[0]])
    dg = ca.Function("dg", [x, w, k], [gradient(f, x, w, k)])
    at, step, values = np.array([0.5, 1.0]), np.array([0.2, -0.4]), [3.0, 0.7]
    expected = float(f(at + step, values) - f(at, values))
    assert float(ca.dot(dg(at, step, values), step)) == pytest.approx(expected, rel=1e-14)


def test_mean_value_is_the_mean():
    """Compared with Gauss' rule of 30 nodes, for polynomials and others, where the rest put along w is small."""
    places, weights = np.polynomial.legendre.leggauss(30)
    for name in ("quartic in two", "cubic in three", "pendulum", "exponential", "mixture"):
        f = case(name, MeanValue())
        x, w = np.array([0.7, -0.4, 1.1])[: f.n], np.array([0.5, 0.9, -0.7])[: f.n]
        mean = sum(b / 2 * f.gradient(x + (1 + c) / 2 * w) for c, b in zip(places, weights, strict=True))
        np.testing.assert_allclose(f(x, w), mean, rtol=1e-11)


def test_itoh_abe_is_quotients_of_differences():
    f = case("mixture", ItohAbe())
    x, w = np.array([0.7, -0.4, 1.1]), np.array([0.5, 0.9, -0.7])
    way = [np.where(np.arange(3) < i, x + w, x) for i in range(4)]
    quotients = np.diff([float(f.f(place)) for place in way]) / w
    np.testing.assert_allclose(f(x, w), quotients, rtol=1e-13)
    # a coordinate that does not move has its derivative instead, at the place where the others are by then
    still = np.array([0.5, 0.0, -0.7])
    assert f(x, still)[1] == pytest.approx(f.gradient(x + [0.5, 0, 0])[1], rel=1e-14)


def test_itoh_abe_alternates_on_coordinates_without_mass():
    """From a balanced start: ``y1 = 2 x1 - y0``, exactly, with energy at round-off. Symmetric gradients do not."""
    held = lv.System(
        "x y", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2 + 50 * (q[1] - q[0]) ** 2
    )
    away = {}
    for h in (0.1, 0.05):
        for gradient in ("itoh-abe", "mean-value"):
            run = lv.simulate(held, q0=[1.0, 1.0], v0=[0.0, 0.0], scheme=f"livens-em:{gradient}", h=h, t_end=3.0)
            gap = run.q[:, 1] - run.q[:, 0]
            assert run.summary.max_energy_drift < 1e-13
            away[gradient, h] = np.abs(gap).max()
            if gradient == "itoh-abe":
                assert np.abs(gap[1:] + gap[:-1] - np.diff(run.q[:, 0])).max() < 1e-12
    assert away["mean-value", 0.1] < 1e-12
    assert away["itoh-abe", 0.1] > 0.02 and 1.8 < away["itoh-abe", 0.1] / away["itoh-abe", 0.05] < 2.2


DEGREES = {
    "constant": (lambda x, y, k: k**3, 0),
    "linear": (lambda x, y, k: x - k * y, 1),
    "product": (lambda x, y, k: -(x * y), 2),
    "powers": (lambda x, y, k: 2 * x**7 * y + (x + y) ** 3 / ca.sin(k), 8),
    "power of a product": (lambda x, y, k: (x * y**2) ** 5, 15),
    "switched by a parameter": (lambda x, y, k: ca.if_else(k > 0, x**3, y), 3),
    "quotient": (lambda x, y, k: x / y, np.inf),
    "root": (lambda x, y, k: (x + y) ** 0.5, np.inf),
    "switched": (lambda x, y, k: ca.if_else(x > 0, x**3, y), np.inf),
    "sine": (lambda x, y, k: x + ca.sin(y), np.inf),
}


@pytest.mark.parametrize("name", DEGREES)
def test_degrees(name):
    function, degree = DEGREES[name]
    x, k = ca.SX.sym("x", 2), ca.SX.sym("k")
    assert polynomial_degree(ca.Function("f", [x, k], [function(x[0], x[1], k)])) == degree


VISIBLE = {
    "difference": (lambda x, y, z, k: ca.sqrt((x - y) ** 2 + 1), [[1, -1, 0]]),
    "mean of two": (lambda x, y, z, k: ca.exp(k * (0.5 * x + y / 2)), [[1, 1, 0]]),
    "two differences": (lambda x, y, z, k: ca.sin(x - y) * ca.cos(2 * z - y - y), [[1, -1, 0], [0, -1, 1]]),
    "linear end": (lambda x, y, z, k: ca.sin(x) - (z - y), [[1, 0, 0], [0, 1, -1]]),
    "weighted by a parameter": (lambda x, y, z, k: ca.sin(x - k * y), [[1, 0, 0], [0, 1, 0]]),
    "nothing": (lambda x, y, z, k: ca.sin(k), []),
}


@pytest.mark.parametrize("name", VISIBLE)
def test_visible_part(name):
    """The projection onto what f can see of x: the identity there, zero on translations that leave f as it is."""
    function, rows = VISIBLE[name]
    x, k = ca.SX.sym("x", 3), ca.SX.sym("k")
    found = ca.DM(dependence_projector(ca.Function("f", [x, k], [ca.SX(function(*ca.vertsplit(x), k))]))).full()
    rows = np.array(rows, dtype=float).reshape(-1, 3)
    np.testing.assert_allclose(found, np.linalg.pinv(rows) @ rows, atol=1e-14)


# -- partitioned discrete gradients -----------------------------------------------------------------------------------
def energies(**functions):
    """The one element of a system in the plane with two parameters."""
    return ElementFunctions(lv.System("x y", parameters=dict(m=1.5, c=0.7), **functions).element_types[0])


K = [1.5, 0.7]
KINETIC = {
    "constant mass": lambda v, k: 0.5 * k.m * (v @ v),
    "polar": lambda q, v, k: 0.5 * k.m * (v[0] ** 2 + q[0] ** 2 * v[1] ** 2),
    "double pendulum": lambda q, v, k: v[0] ** 2 + 0.5 * v[1] ** 2 + k.c * v[0] * v[1] * m.cos(q[0] - q[1]),
    "not quadratic": lambda q, v, k: k.m * m.sqrt(1 + v @ v + m.sin(q[0]) ** 2) + 0.1 * v[1] ** 4,
    "gyroscopic": lambda q, v, k: 0.5 * (v @ v) + k.c * (q[0] ** 3 * v[1] - q[1] * v[0]),
}


@by_name
@pytest.mark.parametrize("name", KINETIC)
def test_kinetic_gradients_are_directional_together(name, gradient):
    """``DG_q T . Dq + DG_v T . Dv = T(q1, v1) - T(q0, v0)``, though each is a mean over the other's ends."""
    e = energies(kinetic=KINETIC[name])
    q, Dq, v, Dv = (ca.SX.sym(s, 2) for s in ("q", "Dq", "v", "Dv"))
    parts = gradient.kinetic_gradients(e, q, Dq, v, Dv)
    both = ca.Function("both", [q, Dq, v, Dv, e.k], [ca.densify(part) for part in parts])
    end = ca.Function("T", [q, v, e.k], [e.T(q, v)])
    slopes = ca.Function("slopes", [q, v, e.k], [ca.densify(e.T_q(q, v)), ca.densify(e.T_v(q, v))])

    @settings(max_examples=15, deadline=None)
    @given(points(2), increments_of(2), points(2), increments_of(2))
    def check(q, Dq, v, Dv):
        got_q, got_v = (part.full().ravel() for part in both(q, Dq, v, Dv, K))
        ends = [float(end(a, b, K)) for a in (q, q + Dq) for b in (v, v + Dv)]
        sizes = abs(got_q) @ (abs(Dq) + abs(q)) + abs(got_v) @ (abs(Dv) + abs(v))
        rounding = 200 * EPS * (1 + sum(map(abs, ends)) + sizes)
        assert abs(got_q @ Dq + got_v @ Dv - (ends[3] - ends[0])) <= rounding
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


@by_name
@pytest.mark.parametrize("name", POTENTIAL)
def test_gradients_in_time_are_directional_together(name, gradient):
    """``DG_q f . Dq + D_t f = f(q1, t + h) - f(q0, t)``; without time in f there is no work of time."""
    e = energies(kinetic=KINETIC["constant mass"], potential=POTENTIAL[name])
    q, Dq, t, h = ca.SX.sym("q", 2), ca.SX.sym("Dq", 2), ca.SX.sym("t"), ca.SX.sym("h")
    by_q, by_t = gradient.gradient_and_time_increment(e, e.model.V, q, Dq, t, h)
    assert by_t.is_zero() == (name == "still")
    both = ca.Function("both", [q, Dq, t, h, e.k], [ca.densify(by_q), ca.densify(by_t)])
    value = ca.Function("V", [q, t, e.k], [e.V(q, t)])

    @settings(max_examples=15, deadline=None)
    @given(points(2), increments_of(2), st.floats(-3, 3), LENGTHS)
    def check(q, Dq, t, h):
        got_q, got_t = (part.full().ravel() for part in both(q, Dq, t, h, K))
        before, after = float(value(q, t, K)), float(value(q + Dq, t + h, K))
        others = abs(float(value(q, t + h, K))) + abs(float(value(q + Dq, t, K)))
        sizes = 10 * (1 + abs(t) ** 3) + abs(got_q) @ (abs(Dq) + abs(q)) + abs(before) + abs(after) + others
        # the phases of waves round with the time they are taken at
        sizes += (abs(t) + h) * (1 + (abs(q) + abs(Dq)).max() ** 4)
        assert abs(got_q @ Dq + got_t[0] - (after - before)) <= 50 * EPS * sizes

    check()


def test_the_work_of_time_has_a_small_relative_error():
    """A step of 1e-200 does work of its size, not of the size of round-off."""
    e = energies(kinetic=KINETIC["constant mass"], potential=POTENTIAL["driven"])
    q, h = ca.SX.sym("q", 2), ca.SX.sym("h")
    _, by_t = Gonzalez().gradient_and_time_increment(e, e.model.V, q, ca.SX.zeros(2), ca.SX(0.3), h)
    work = float(ca.Function("work", [q, h, e.k], [by_t])([0.5, 1.2], 1e-200, K))
    power = 0.7 * np.sin(0.5 - 0.3) + 1.2**4 * 2 * np.cos(0.6)
    assert work == pytest.approx(power * 1e-200, rel=1e-13)


# -- equivariant discrete gradients -----------------------------------------------------------------------------------
@by_name
def test_equivariant_gradients_are_directional(gradient):
    """Energies through invariants, with any discrete gradient of the energy as a function of these."""
    model = lv.System(
        "x y z",
        kinetic=lv.of_invariants(
            lambda q, v: [v[0] + q[1] * v[2], v[1], v[2]], lambda w: 0.5 * (w @ w) + 0.1 * w[0] ** 4
        ),
        potential=lv.of_invariants(lambda q: [q @ q, q[0] * q[1]], lambda w: m.exp(w[1] / 4) * m.sqrt(1 + w[0])),
    ).element_types[0]
    e, rule = ElementFunctions(model), Equivariant(gradient)
    q, Dq, v, Dv = (ca.SX.sym(s, 3) for s in ("q", "Dq", "v", "Dv"))
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    V_q, V_by_t = rule.gradient_and_time_increment(e, model.V, q, Dq, t, h)
    assert V_by_t.is_zero()
    parts = ca.Function(
        "parts", [q, Dq, v, Dv], [ca.densify(p) for p in (*rule.kinetic_gradients(e, q, Dq, v, Dv), V_q)]
    )
    values = ca.Function("values", [q, v], [e.T(q, v), e.V(q, 0)])

    @settings(max_examples=15, deadline=None)
    @given(points(3), increments_of(3), points(3), increments_of(3))
    def check(q, Dq, v, Dv):
        T_q, T_v, V_q = (part.full().ravel() for part in parts(q, Dq, v, Dv))
        (T0, V0), (T1, V1) = ([float(value) for value in values(*at)] for at in ((q, v), (q + Dq, v + Dv)))
        size = abs(q).max() + abs(Dq).max() + abs(v).max() + abs(Dv).max()
        rounding = EPS * (1 + T0 + T1 + size * (abs(T_q).sum() + abs(T_v).sum()) + size**8)
        assert abs(T_q @ Dq + T_v @ Dv - (T1 - T0)) <= 100 * rounding
        assert abs(V_q @ Dq - (V1 - V0)) <= 100 * EPS * (1 + V0 + V1 + size * abs(V_q).sum()) * (1 + size**2)

    check()


# -- schemes with them ------------------------------------------------------------------------------------------------
def kepler():
    """A planet on an ellipse: neither the potential nor its gradient is a polynomial."""
    return lv.System(
        "x y",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q: -1 / m.norm(q),
        symmetries=dict(L=lv.symmetry.rotations([[0, 1]])),
    )


ECCENTRICITY = 0.3
PERICENTRE = [1 - ECCENTRICITY, 0.0], [0.0, math.sqrt((1 + ECCENTRICITY) / (1 - ECCENTRICITY))]


def on_the_ellipse(t):
    anomaly = brentq(lambda E: E - ECCENTRICITY * math.sin(E) - t, -20, 20, xtol=1e-15)
    return np.array([math.cos(anomaly) - ECCENTRICITY, math.sqrt(1 - ECCENTRICITY**2) * math.sin(anomaly)])


@by_name
def test_order_on_an_exact_solution(gradient):
    """Kepler's ellipse; the energy stays at round-off on the way."""
    scheme, model, errors = LivensEM(gradient), kepler(), []
    assert scheme.order == gradient.order
    steps = [0.02 / 2**i for i in range(5)]
    for h in steps:
        run = lv.simulate(model, *PERICENTRE, scheme=scheme, h=h, t_end=2.0)
        errors.append(np.linalg.norm(run.q[-1] - on_the_ellipse(2.0)))
        assert run.summary.max_energy_drift < 1e-13
    assert abs(measured_order(steps, errors) - gradient.order) < 0.1


def bead():
    """A mass on a surface: nothing is quadratic, neither the potential nor the constraint."""
    return lv.System(
        "x y z",
        kinetic=lambda v: 0.5 * (v @ v) + 0.25 * v[0] ** 2,
        potential=lambda q: q[2] + 0.5 * (q @ q) + q[0] ** 2 * q[1] ** 2 + 0.3 * m.sin(q[0] * q[2]),
        constraints=lambda q: [q[2] - q[0] * q[1] - 0.2 * q[0] ** 3 - 0.1 * m.cos(q[1] * q[2])],
    )


BEAD = bead()
ON_THE_BEAD = dict(q0=[0.6, -0.4, 0.0], v0=[0.5, 0.7, 0.0], t_end=1.0, project=True)


@functools.cache
def where_the_bead_ends():
    """By a method of order eight, whose steps of two sizes agree to 1e-13."""
    coarse, fine = (lv.simulate(BEAD, scheme="lobatto-iiia-iiib-5", h=h, **ON_THE_BEAD) for h in (0.02, 0.01))
    assert np.abs(coarse.q[-1] - fine.q[-1]).max() < 1e-13 and np.abs(coarse.v[-1] - fine.v[-1]).max() < 1e-12
    return np.concatenate([fine.q[-1], fine.v[-1]])


@by_name
@pytest.mark.parametrize("kind", [LivensEM, LivensEMFull, GGLEnergyMomentum, HamiltonEM], ids=lambda kind: kind.name)
def test_order_and_energy_with_constraints(kind, gradient):
    """Every energy-momentum scheme takes every discrete gradient, and what it declares is measured."""
    scheme = kind(gradient)
    assert (scheme.order, scheme.symmetric) == (gradient.order, gradient.symmetric)
    steps, errors = [0.02 / 2**i for i in range(4)], []
    for h in steps:
        run = lv.simulate(BEAD, scheme=scheme, h=h, **ON_THE_BEAD)
        errors.append(np.linalg.norm(np.concatenate([run.q[-1], run.v[-1]]) - where_the_bead_ends()))
        assert run.summary.max_energy_drift < 1e-13 and run.summary.max_constraint < 1e-15
        if "velocity_constraint" in scheme.conserves:
            assert run.summary.max_velocity_constraint < 1e-13
    assert abs(measured_order(steps, errors) - scheme.order) < 0.1


@by_name
def test_energy_over_many_long_steps(gradient):
    """Kepler's ellipse in 30 steps a revolution, 300 times: the energy is at round-off, without a trend."""
    run = lv.simulate(kepler(), *PERICENTRE, scheme=LivensEM(gradient), h=0.2, t_end=2000.0)
    energy = run.observe("total_energy")
    assert np.abs(energy / energy[0] - 1).max() < 1e-12
    other = lv.simulate(kepler(), *PERICENTRE, scheme="livens-midpoint", h=0.2, t_end=2000.0)
    assert other.summary.max_energy_drift > 1e-4


@by_name
def test_symmetry_of_the_scheme_as_declared(gradient):
    """A step and a step back lead to the start, or they do not."""
    defect = symmetry_defect(kepler(), LivensEM(gradient), [0.8, 0.4], [-0.3, 1.1], 0.1)
    assert defect < 1e-14 if LivensEM(gradient).symmetric else defect > 1e-4


def pair(potential):
    """Two particles in the plane on a spring, in free flight."""
    return lv.System(
        "x1 y1 x2 y2",
        kinetic=lambda v, k: 0.5 * k.m * (v[:2] @ v[:2]) + 0.5 * (v[2:] @ v[2:]),
        potential=potential,
        symmetries=dict(
            translations=lv.symmetry.translations([[0, 1], [2, 3]]), rotations=lv.symmetry.rotations([[0, 1], [2, 3]])
        ),
        parameters=dict(m=1.7, c=20.0),
    )


def apart(q):
    return (q[:2] - q[2:]) @ (q[:2] - q[2:])


SPRINGS = {
    "polynomial": (lambda q, k: k.c / 4 * (apart(q) - 1) ** 2, lambda w, k: k.c / 4 * (w[0] - 1) ** 2),
    "quintic": (lambda q, k: k.c / 6 * (apart(q) - 1) ** 3, lambda w, k: k.c / 6 * (w[0] - 1) ** 3),
    "root": (lambda q, k: k.c / 2 * (m.sqrt(apart(q)) - 1) ** 2, lambda w, k: k.c / 2 * (m.sqrt(w[0]) - 1) ** 2),
    "one-sided": (
        lambda q, k: k.c / 2 * m.maximum(m.sqrt(apart(q)) - 1, 0) ** 2,
        lambda w, k: k.c / 2 * m.maximum(m.sqrt(w[0]) - 1, 0) ** 2,
    ),
}


def flight(potential, gradient, h):
    start = [0.0, 0.0, 1.3, 0.2], [1.0, 0.3, 0.2, -0.8]
    run = lv.simulate(pair(potential), *start, scheme=LivensEM(gradient), h=h, t_end=20.0)
    assert run.summary.max_energy_drift < 1e-12
    return run.summary.momentum_drift


@by_name
@pytest.mark.parametrize("name", SPRINGS)
def test_momenta_as_declared(name, gradient):
    """Linear and angular momentum of a pair on a spring that is written out: kept if declared, else violated."""
    for h in (0.02, 0.1):
        drift = flight(SPRINGS[name][0], gradient, h)
        for momentum in ("translations", "rotations"):
            assert drift[momentum] < 1e-12 if momentum in gradient.momenta else drift[momentum] > 1e-6, (momentum, h)


@by_name
@pytest.mark.parametrize("name", SPRINGS)
def test_momenta_through_invariants(name, gradient):
    """Given through the distance, all discrete gradients keep both: what `Equivariant` declares."""
    assert {"translations", "rotations"} <= set(Equivariant(gradient).momenta)
    through = lv.of_invariants(lambda q: [apart(q)], SPRINGS[name][1])
    for h in (0.02, 0.1):
        assert max(flight(through, gradient, h).values()) < 1e-12


@by_name
def test_momenta_of_cyclic_coordinates(gradient):
    """A coordinate that occurs in the velocities alone; the correction along the whole increment acts on it."""
    model = lv.System(
        "r phi",
        kinetic=lambda q, v: 0.5 * (v[0] ** 2 + (1 + q[0] ** 4) * v[1] ** 2),
        potential=lambda q: m.cosh(q[0]),
        symmetries=dict(phi=lambda q: [0.0, 1.0]),
    )
    run = lv.simulate(model, [0.5, 0.0], [0.3, 1.0], scheme=LivensEM(gradient), h=0.05, t_end=20.0)
    drift = run.summary.momentum_drift["phi"]
    assert drift < 1e-13 if "cyclic" in gradient.momenta else drift > 1e-6


def test_the_printed_correction_step_by_step():
    """Kinon and Betsch 2023, (26) and (28), solved with SciPy: V does not depend on the second coordinate."""
    h, q, v = 0.1, np.array([1.0, 0.2]), np.array([0.4, -0.9])
    potential, gradient = lambda q: np.cosh(q[0]), lambda q: np.array([np.sinh(q[0]), 0.0])
    model = lv.System("a b", kinetic=lambda v: v @ v / 2, potential=lambda q: m.cosh(q[0]))
    runs = {
        name: lv.simulate(model, q, v, scheme=f"livens-em:{name}", h=h, t_end=20 * h)
        for name in ("gonzalez", "gonzalez-full")
    }

    def residual(v1, q0, v0):
        w = h * (v0 + v1) / 2
        middle = gradient(q0 + w / 2)
        correction = (potential(q0 + w) - potential(q0) - middle @ w) / (w @ w) * w
        return v1 - v0 + h * (middle + correction)

    for i in range(20):
        v1 = root(residual, v, args=(q, v), tol=1e-15).x
        q, v = q + h * (v + v1) / 2, v1
        assert np.abs(runs["gonzalez-full"].q[i + 1] - q).max() < 1e-11
    assert np.abs(runs["gonzalez"].q[-1] - q).max() > 1e-5
    assert abs(runs["gonzalez"].v[-1, 1] + 0.9) < 1e-15 < abs(runs["gonzalez-full"].v[-1, 1] + 0.9)


def test_a_quadratic_world_does_not_tell_them_apart():
    """For quadratic functions Gonzalez' gradient and the mean-value gradient agree operation by operation."""
    problem = lv.problems.load("double-four-bar")
    runs = [lv.simulate(problem, scheme=f"livens-em{suffix}", t_end=0.2) for suffix in ("", ":gonzalez", ":mean-value")]
    assert all(np.array_equal(runs[0].q, run.q) for run in runs[1:])


# -- names ------------------------------------------------------------------------------------------------------------
def test_gradients_by_name():
    assert {"gonzalez", "mean-value", "itoh-abe", "equivariant"} <= {gradient.name for gradient in gradients.all()}
    for gradient in PLAIN:
        assert gradients.get(gradient.name) == gradient and gradients.get(gradient) is gradient
        assert hash(gradients.get(gradient.name)) == hash(gradient) and gradient.name in repr(gradient)
    assert Equivariant(MeanValue()) != Equivariant() == gradients.get("equivariant")
    assert (Equivariant(ItohAbe()).order, Equivariant(ItohAbe()).symmetric) == (1, False)


def test_schemes_by_name():
    """The family lists two examples; a plain name is Gonzalez', and an equivariant one is the one inside."""
    listed = {scheme.name for scheme in lv.schemes.all()}
    assert {"livens-em", "livens-em:mean-value", "livens-em:itoh-abe"} <= listed
    scheme = lv.schemes.get("livens-em:itoh-abe")
    assert (scheme.name, scheme.order, scheme.symmetric) == ("livens-em:itoh-abe", 1, False)
    assert lv.schemes.get("livens-em:gonzalez").name == "livens-em:gonzalez" and LivensEM(Gonzalez()) == LivensEM()
    assert lv.schemes.get("livens-em:equivariant").name == "livens-em:gonzalez"
    assert LivensEM(Equivariant(MeanValue())) == LivensEM("mean-value") != LivensEM()
    assert LivensEM("mean-value").name == "livens-em:mean-value"
    assert lv.schemes.get("suzuki-4:livens-em:mean-value").order == 4
    with pytest.raises(lv.InputError, match="not symmetric"):
        lv.schemes.get("suzuki-4:livens-em:itoh-abe")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("livens-em:mean-vale", "unknown discrete gradient 'mean-vale'; did you mean 'mean-value'"),
        ("livens-em:nothing-like-it", "unknown discrete gradient 'nothing-like-it'; known: .*itoh-abe, mean-value"),
        ("livens-em:", "unknown scheme 'livens-em:'; did you mean 'livens-em'"),
    ],
)
def test_names_that_are_none(name, words):
    with pytest.raises(lv.InputError, match=words):
        lv.schemes.get(name)
    with pytest.raises(lv.InputError, match="must be an object or a name, got 3"):
        LivensEM(3)


def test_a_gradient_from_outside_is_found_by_its_name():
    """Defined in this file, and another one here, long after the first look-up: both are schemes from then on."""
    run = lv.simulate(kepler(), *PERICENTRE, scheme="livens-em:there-and-back", h=0.01, t_end=2.0)
    assert run.info.scheme == "livens-em:there-and-back" and run.summary.max_energy_drift < 1e-13
    with pytest.raises(lv.InputError, match="unknown discrete gradient 'late'"):
        lv.schemes.get("livens-em:late")
    try:

        class Late(Gonzalez):
            name = "late"

        late = lv.schemes.get("livens-em:late")
        assert late.order == 2 and late != LivensEM()
        assert np.array_equal(
            lv.simulate(kepler(), *PERICENTRE, scheme=late, h=0.1, t_end=1.0).q,
            lv.simulate(kepler(), *PERICENTRE, scheme="livens-em", h=0.1, t_end=1.0).q,
        )
    finally:
        DiscreteGradient.registry.pop("late", None)
