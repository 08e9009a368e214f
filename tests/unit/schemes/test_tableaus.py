"""Tableaus: against printed tables, against exact rational arithmetic, and for what follows from them."""

from fractions import Fraction
from functools import cache
from math import comb, nextafter, sqrt

import numpy as np
import pytest
from conftest import measured_order
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import DOP853, RK23, RK45, solve_ivp

import livens as lv
from livens import tableaus
from livens.errors import InputError
from livens.schemes.discretization.stage_elimination import StageElimination
from livens.schemes.tableaus import conditions

r3, r5, r6, r15 = sqrt(3), sqrt(5), sqrt(6), sqrt(15)

#: Family -> fewest stages, B, C, D, order as functions of s, symplectic, symmetric, stiffly accurate, |R(inf)|.
THEORY = {
    "gauss": (1, lambda s: (2 * s, s, s, 2 * s), True, True, False, 1),
    "radau-ia": (1, lambda s: (2 * s - 1, s - 1, s, 2 * s - 1), False, False, False, 0),
    "radau-iia": (1, lambda s: (2 * s - 1, s, s - 1, 2 * s - 1), False, False, True, 0),
    "lobatto-iiia": (2, lambda s: (2 * s - 2, s, s - 2, 2 * s - 2), False, True, True, 1),
    "lobatto-iiib": (2, lambda s: (2 * s - 2, s - 2, s, 2 * s - 2), False, True, False, 1),
    "lobatto-iiic": (2, lambda s: (2 * s - 2, s - 1, s - 1, 2 * s - 2), False, False, True, 0),
    "lobatto-iiid": (2, lambda s: (2 * s - 2, s - 1, s - 1, 2 * s - 2), True, True, False, 1),
    "lobatto-iiie": (2, lambda s: (2 * s - 2, s - 2, s - 2, 2 * s - 2), True, True, False, 1),
}


@st.composite
def methods(draw, most=30):
    family = draw(st.sampled_from(sorted(THEORY)))
    return family, draw(st.integers(THEORY[family][0], most))


# --- printed tables ---------------------------------------------------------------------------------------------------

GAUSS = {
    1: ([1 / 2], [[1 / 2]], [1]),
    2: ([1 / 2 - r3 / 6, 1 / 2 + r3 / 6], [[1 / 4, 1 / 4 - r3 / 6], [1 / 4 + r3 / 6, 1 / 4]], [1 / 2, 1 / 2]),
    3: (
        [1 / 2 - r15 / 10, 1 / 2, 1 / 2 + r15 / 10],
        [
            [5 / 36, 2 / 9 - r15 / 15, 5 / 36 - r15 / 30],
            [5 / 36 + r15 / 24, 2 / 9, 5 / 36 - r15 / 24],
            [5 / 36 + r15 / 30, 2 / 9 + r15 / 15, 5 / 36],
        ],
        [5 / 18, 4 / 9, 5 / 18],
    ),
}
MURUA = {  # nodes, matrix, multiplier weights with gamma_0 first
    1: ([1], [[1]], [-1, 2]),
    2: ([1 / 2, 1], [[1 / 4 + r3 / 8, 1 / 4 - r3 / 8], [1 / 2, 1 / 2]], [1, -3 / r3, 3 / r3]),
    3: (
        [1 / 2 - r5 / 10, 1 / 2 + r5 / 10, 1],
        [
            [(25 - r5 + 6 * r15) / 180, (10 - 4 * r5) / 45, (25 - r5 - 6 * r15) / 180],
            [(25 + r5 + 6 * r15) / 180, (10 + 4 * r5) / 45, (25 + r5 - 6 * r15) / 180],
            [5 / 18, 4 / 9, 5 / 18],
        ],
        [-1, 5 / 3, -4 / 3, 5 / 3],
    ),
}


@pytest.mark.parametrize("s", [1, 2, 3])
def test_tables_of_murua_as_printed(s):
    """Symank 2025 6.3.2 prints the pair for one, two and three stages."""
    method = tableaus.murua(s)
    for ours, printed in zip((method.gauss.c, method.gauss.A, method.gauss.b), GAUSS[s], strict=True):
        np.testing.assert_allclose(ours, printed, rtol=0, atol=1e-15)
    for ours, printed in zip((method.c_bar, method.A_bar, [method.gamma_0, *method.gamma]), MURUA[s], strict=True):
        np.testing.assert_allclose(ours, printed, rtol=0, atol=1e-15)


TEXTBOOK = [  # Hairer and Wanner, Solving Ordinary Differential Equations II, IV.5; IIID and IIIE: Jay, Lobatto methods
    ("radau-ia", 2, [0, 2 / 3], [[1 / 4, -1 / 4], [1 / 4, 5 / 12]], [1 / 4, 3 / 4]),
    ("radau-iia", 2, [1 / 3, 1], [[5 / 12, -1 / 12], [3 / 4, 1 / 4]], [3 / 4, 1 / 4]),
    (
        "radau-iia",
        3,
        [(4 - r6) / 10, (4 + r6) / 10, 1],
        [
            [(88 - 7 * r6) / 360, (296 - 169 * r6) / 1800, (-2 + 3 * r6) / 225],
            [(296 + 169 * r6) / 1800, (88 + 7 * r6) / 360, (-2 - 3 * r6) / 225],
            [(16 - r6) / 36, (16 + r6) / 36, 1 / 9],
        ],
        [(16 - r6) / 36, (16 + r6) / 36, 1 / 9],
    ),
    (
        "radau-ia",
        3,
        [0, (6 - r6) / 10, (6 + r6) / 10],
        [
            [1 / 9, (-1 - r6) / 18, (-1 + r6) / 18],
            [1 / 9, (88 + 7 * r6) / 360, (88 - 43 * r6) / 360],
            [1 / 9, (88 + 43 * r6) / 360, (88 - 7 * r6) / 360],
        ],
        [1 / 9, (16 + r6) / 36, (16 - r6) / 36],
    ),
    (
        "lobatto-iiia",
        3,
        [0, 1 / 2, 1],
        [[0, 0, 0], [5 / 24, 1 / 3, -1 / 24], [1 / 6, 2 / 3, 1 / 6]],
        [1 / 6, 2 / 3, 1 / 6],
    ),
    (
        "lobatto-iiib",
        3,
        [0, 1 / 2, 1],
        [[1 / 6, -1 / 6, 0], [1 / 6, 1 / 3, 0], [1 / 6, 5 / 6, 0]],
        [1 / 6, 2 / 3, 1 / 6],
    ),
    (
        "lobatto-iiic",
        3,
        [0, 1 / 2, 1],
        [[1 / 6, -1 / 3, 1 / 6], [1 / 6, 5 / 12, -1 / 12], [1 / 6, 2 / 3, 1 / 6]],
        [1 / 6, 2 / 3, 1 / 6],
    ),
    (
        "lobatto-iiid",
        3,
        [0, 1 / 2, 1],
        [[1 / 12, -1 / 6, 1 / 12], [5 / 24, 1 / 3, -1 / 24], [1 / 12, 5 / 6, 1 / 12]],
        [1 / 6, 2 / 3, 1 / 6],
    ),
    (
        "lobatto-iiie",
        3,
        [0, 1 / 2, 1],
        [[1 / 12, -1 / 12, 0], [3 / 16, 1 / 3, -1 / 48], [1 / 6, 3 / 4, 1 / 12]],
        [1 / 6, 2 / 3, 1 / 6],
    ),
]


@pytest.mark.parametrize(("family", "s", "c", "A", "b"), TEXTBOOK)
def test_tables_of_the_textbooks(family, s, c, A, b):
    method = tableaus.FAMILIES[family](s)
    for ours, printed in ((method.c, c), (method.A, A), (method.b, b)):
        np.testing.assert_allclose(ours, printed, rtol=0, atol=1e-15)


# --- exact rational arithmetic ----------------------------------------------------------------------------------------


def shifted_legendre(n):
    """Integer coefficients of ``P_n`` on [0, 1], lowest first."""
    return [(-1) ** (n + k) * comb(n, k) * comb(n + k, k) for k in range(n + 1)]


def node_polynomial(family, s):
    """The polynomial with the nodes of a family as its zeros."""
    parts = {"gauss": {s: 1}, "radau-ia": {s: 1, s - 1: 1}, "radau-iia": {s: 1, s - 1: -1}}
    total = [0] * (s + 1)
    for n, factor in parts.get(family, {s: 1, s - 2: -1}).items():
        for k, a in enumerate(shifted_legendre(n)):
            total[k] += factor * a
    return total


def value(polynomial, x):
    total = Fraction(0)
    for a in reversed(polynomial):
        total = total * x + a
    return total


@pytest.mark.parametrize("family", sorted(THEORY))
@pytest.mark.parametrize("s", range(2, 11))
def test_nodes_are_the_doubles_next_to_the_zeros(family, s):
    """The polynomial changes its sign between the two midpoints to the neighbouring doubles."""
    polynomial = node_polynomial(family, s)
    for c in tableaus.FAMILIES[family](s).c.tolist():
        around = [(Fraction(c) + Fraction(nextafter(c, end))) / 2 for end in (-1.0, 2.0)]
        assert value(polynomial, Fraction(c)) == 0 or value(polynomial, around[0]) * value(polynomial, around[1]) < 0


def exact_nodes(family, s):
    """To 2^-200, by bisection around the doubles."""
    polynomial, nodes = node_polynomial(family, s), []
    for c in tableaus.FAMILIES[family](s).c.tolist():
        low, high = Fraction(c) - Fraction(1, 2**45), Fraction(c) + Fraction(1, 2**45)
        if value(polynomial, Fraction(c)) == 0:
            nodes.append(Fraction(c))
            continue
        sign = value(polynomial, low) > 0
        while high - low > Fraction(1, 2**200):
            middle = (low + high) / 2
            low, high = (middle, high) if (value(polynomial, middle) > 0) == sign else (low, middle)
        nodes.append(low)
    return nodes


def lagrange(c, j):
    """Coefficients of the j-th Lagrange polynomial, lowest first."""
    product = [Fraction(1)]
    for m, other in enumerate(c):
        if m != j:
            shifted = [Fraction(0), *product]
            product = [(x - other * y) / (c[j] - other) for x, y in zip(shifted, [*product, Fraction(0)], strict=True)]
    return product


def integral(polynomial, a, b):
    antiderivative = [Fraction(0)] + [x / (k + 1) for k, x in enumerate(polynomial)]
    return value(antiderivative, b) - value(antiderivative, a)


@cache
def exact(family, s):
    """A and b from the condition that defines the family, in rational numbers."""
    c = exact_nodes(family, s)
    basis = [lagrange(c, j) for j in range(s)]
    b = [integral(p, 0, 1) for p in basis]
    if family in ("gauss", "radau-iia", "lobatto-iiia"):  # C(s)
        return [[integral(p, 0, c[i]) for p in basis] for i in range(s)], b
    if family in ("radau-ia", "lobatto-iiib"):  # D(s)
        return [[b[j] / b[i] * integral(basis[i], c[j], 1) for j in range(s)] for i in range(s)], b
    if family == "lobatto-iiic":  # a_i1 = b_1 and C(s-1)
        rest = [lagrange(c[1:], j) for j in range(s - 1)]
        return [[b[0], *(integral(p, 0, c[i]) - b[0] * p[0] for p in rest)] for i in range(s)], b
    first, second = exact("lobatto-iiia" if family == "lobatto-iiie" else "lobatto-iiic", s)[0], None
    if family == "lobatto-iiie":
        second = exact("lobatto-iiib", s)[0]
    else:  # a_is = 0 and C(s-1)
        rest = [lagrange(c[:-1], j) for j in range(s - 1)]
        second = [[*(integral(p, 0, c[i]) for p in rest), Fraction(0)] for i in range(s)]
    return [[(x + y) / 2 for x, y in zip(p, q, strict=True)] for p, q in zip(first, second, strict=True)], b


@pytest.mark.parametrize("family", sorted(THEORY))
def test_all_coefficients_are_rounded_once(family):
    """Equal to the doubles next to the rational numbers, which is better than 1e-15, for up to ten stages."""
    for s in range(max(2, THEORY[family][0]), 11):
        method, (A, b) = tableaus.FAMILIES[family](s), exact(family, s)
        np.testing.assert_allclose(method.A, np.array(A, dtype=float), rtol=2e-16, atol=1e-40, err_msg=f"s = {s}")
        np.testing.assert_allclose(method.b, np.array(b, dtype=float), rtol=2e-16, atol=0)


@pytest.mark.parametrize("s", range(1, 11))
def test_murua_from_its_definition(s):
    """Symank 2025 def. 6.5 with Gauss and Lobatto nodes, in rational numbers."""
    method = tableaus.murua(s)
    c = exact_nodes("gauss", s)
    c_bar = exact_nodes("lobatto-iiia", s + 1)[1:]
    A_bar = [[integral(lagrange(c, j), 0, u) for j in range(s)] for u in c_bar]
    gamma = [value(lagrange([Fraction(0), *c], k), Fraction(1)) for k in range(s + 1)]
    np.testing.assert_allclose(method.A_bar, np.array(A_bar, dtype=float), rtol=2e-16)
    np.testing.assert_allclose([method.gamma_0, *method.gamma], np.array(gamma, dtype=float), rtol=2e-16)


# --- what follows -----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=120)
@given(methods())
def test_conditions_and_order(drawn):
    family, s = drawn
    method, (_, expected, symplectic, symmetric, stiffly_accurate, _) = tableaus.FAMILIES[family](s), THEORY[family]
    assert (method.B, method.C, method.D, method.order) == expected(s)
    assert method.symplectic is symplectic
    assert method.symmetric is symmetric
    assert method.stiffly_accurate is stiffly_accurate
    assert method.collocation is (s == method.C)
    assert method.s == s
    # round-off where a condition holds, and nothing near it where it fails
    assert (method.symplecticity_defect < 1e-16) if symplectic else (method.symplecticity_defect > 1e-5)
    for k in range(1, method.C + 1):
        assert method.residual_c(k) < 1e-15
    assert method.residual_b(method.B + 1) > 1e-5
    assert method.residual_c(method.C + 1) > 1e-5
    assert method.residual_d(method.D + 1) > 1e-5


@pytest.mark.parametrize("family", sorted(THEORY))
def test_stability_at_infinity(family):
    least, _, _, _, _, size = THEORY[family]
    for s in range(least, 8):
        method = tableaus.FAMILIES[family](s)
        limit = method.stability_at_infinity
        assert abs(abs(limit) - size) < 1e-14
        z = -1e9
        far = 1 + z * method.b @ np.linalg.solve(np.eye(s) - z * method.A, np.ones(s))
        assert abs(limit - far) < 1e-5
    signs = {"gauss": -1, "lobatto-iiia": 1, "lobatto-iiib": 1, "lobatto-iiid": -1, "lobatto-iiie": -1}
    if family in signs:
        assert np.sign(tableaus.FAMILIES[family](3).stability_at_infinity) == signs[family]


def test_explicit_methods_grow_without_bound():
    heun = tableaus.Tableau("heun", [0, 1], [[0, 0], [1, 0]], [0.5, 0.5])
    assert heun.stability_at_infinity == np.inf
    euler = tableaus.Tableau("explicit-euler", [0], [[0]], [1])
    assert euler.stability_at_infinity == -np.inf
    assert euler.order == 1


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 30))
def test_the_lobatto_pair(s):
    pair = tableaus.lobatto_iiia_iiib(s)
    assert pair.symplectic and pair.symmetric and pair.order == 2 * s - 2
    assert pair.symplecticity_defect < 1e-16
    assert np.all(pair.q.A[0] == 0) and np.all(pair.q.A[-1] == pair.q.b)
    assert np.all(pair.p.A[:, -1] == 0) and np.all(pair.p.A[:, 0] == pair.p.b[0])
    for x, y in ((pair.q, pair.p), (pair.p, pair.q)):
        terms = x.b[None, :] * (1 + np.abs(x.A.T) / x.b[:, None])  # of which conjugates are differences
        assert np.all(np.abs(x.conjugate.A - y.A) < 4e-16 * terms)
    assert not tableaus.PartitionedTableau("wrong way", pair.q, pair.q).symplectic


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 30))
def test_murua(s):
    method = tableaus.murua(s)
    assert method.order == 2 * s and method.C_bar == s + 1 and method.gauss is tableaus.gauss(s)
    assert method.constraint_nodes[0] == 0 and method.constraint_nodes[-1] == 1
    assert np.all(np.diff(method.constraint_nodes) > 0)
    assert np.all(method.A_bar[-1] == method.gauss.b)  # x1 is the last stage with constraints
    assert method.gamma_0 == (-1) ** s
    assert abs(method.gamma_0 + method.gamma.sum() - 1) < 1e-14
    np.testing.assert_allclose(method.interpolant()(method.c_bar), method.A_bar, rtol=0, atol=1e-15)
    # Lagrange's polynomials have slopes of the size s^2 at the ends, and nodes are rounded
    ends, tolerance = method.multiplier_interpolant().lagrange([0.0, 1.0]), 1e-15 * s**2
    np.testing.assert_allclose(ends[0], np.eye(s + 1)[0], rtol=0, atol=tolerance)
    np.testing.assert_allclose(ends[1], [method.gamma_0, *method.gamma], rtol=0, atol=tolerance)


# --- polynomials through the stages -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(methods(most=15), st.floats(0, 1), st.integers(0, 10**6))
def test_dense_output_is_exact_for_polynomials(drawn, theta, seed):
    """Slopes of degree s-1 at the nodes give back their integral anywhere in the step."""
    method = tableaus.FAMILIES[drawn[0]](drawn[1])
    slope = np.polynomial.Legendre(np.random.default_rng(seed).uniform(-1, 1, method.s), domain=[0, 1])
    b = method.interpolant()
    assert abs(b(theta) @ slope(method.c) - slope.integ(lbnd=0)(theta)) < 1e-14
    assert abs(b.lagrange(theta) @ slope(method.c) - slope(theta)) < 1e-15 * method.s**2
    assert np.abs(b(0.0)).max() < 1e-16
    np.testing.assert_allclose(b(1.0), method.b, rtol=0, atol=1e-15)
    if method.collocation:
        np.testing.assert_allclose(b(method.c), method.A, rtol=0, atol=1e-15)


@settings(deadline=None, max_examples=60)
@given(methods(most=8), st.floats(0.1, 5), st.integers(0, 10**6))
def test_extrapolation_is_exact_for_polynomials(drawn, r, seed):
    """Values of degree s-1 at the stages of a step give those of the next one."""
    method = tableaus.FAMILIES[drawn[0]](drawn[1])
    x = np.polynomial.Legendre(np.random.default_rng(seed).uniform(-1, 1, method.s), domain=[0, 1])
    matrix = method.extrapolation()(r)
    size = np.abs(matrix).sum(axis=1)
    assert np.all(np.abs(matrix @ x(method.c) - x(1 + r * method.c)) < 1e-14 * size * method.s**2)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-15 * size.max() * method.s)


def test_extrapolation_from_other_nodes():
    """Multipliers of Murua's method have a value at the start of the step too."""
    method = tableaus.murua(2)
    further = tableaus.Extrapolation.between(method.multiplier_nodes, method.gauss.c)
    assert further.coefficients.shape == (3, 2, 3)
    expected = (1 + 0.7 * method.gauss.c) ** 2
    np.testing.assert_allclose(further(0.7) @ method.multiplier_nodes**2, expected, rtol=1e-14)


# --- order, measured --------------------------------------------------------------------------------------------------


def slope(x):
    """A non-separable Hamiltonian system, ``H = (1 + q^2) p^2 / 2 - cos q``: every order condition matters."""
    q, p = x
    return np.array([(1 + q * q) * p, -q * p * p - np.sin(q)])


def integrate(A, b, steps, t_end=1.2):
    """A: one matrix per component, so that pairs are integrated too."""
    h, x = t_end / steps, np.array([0.4, 0.9])
    for _ in range(steps):
        stages, change = np.repeat(x[:, None], len(b), axis=1), 1.0
        while change > 1e-15:  # a contraction, as the steps are small
            K = slope(stages)
            better = np.array([x[0] + h * A[0] @ K[0], x[1] + h * A[1] @ K[1]])
            stages, change = better, np.abs(better - stages).max()
        x = x + h * slope(stages) @ b
    return x


@cache
def accurate():
    method = tableaus.gauss(8)
    return integrate((method.A, method.A), method.b, 12)


FEW = {
    1: [40, 60, 90, 135],
    2: [40, 60, 90, 135],
    3: [24, 36, 54, 81],
    4: [32, 48, 72, 108],
    5: [12, 18, 24, 32],
    6: [8, 11, 15, 20],
}


@pytest.mark.parametrize(
    ("family", "s"),
    [("gauss", 1), ("gauss", 2), ("gauss", 3), ("radau-ia", 2), ("radau-ia", 3), ("radau-iia", 2), ("radau-iia", 3)]
    + [(f"lobatto-iii{letter}", s) for letter in "abcde" for s in (2, 3, 4)],
)
def test_measured_order(family, s):
    method = tableaus.FAMILIES[family](s)
    numbers = FEW[method.order]
    errors = [np.abs(integrate((method.A, method.A), method.b, n) - accurate()).max() for n in numbers]
    assert abs(measured_order([1 / n for n in numbers], errors) - method.order) < 0.1


@pytest.mark.parametrize("s", [2, 3, 4])
def test_measured_order_of_the_pair(s):
    pair = tableaus.lobatto_iiia_iiib(s)
    numbers = FEW[pair.order]
    errors = [np.abs(integrate((pair.q.A, pair.p.A), pair.q.b, n) - accurate()).max() for n in numbers]
    assert abs(measured_order([1 / n for n in numbers], errors) - pair.order) < 0.1


# --- input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [0, -1, 2.5, "3", None, True, float("nan"), float("inf"), [3], np.arange(2), 1 + 2j])
def test_bad_numbers_of_stages(s):
    for make in (*tableaus.FAMILIES.values(), tableaus.murua, tableaus.lobatto_iiia_iiib):
        with pytest.raises(InputError, match=r"^\w+ needs a whole number of stages s from [12] to 60, not "):
            make(s)


def test_lobatto_has_two_stages_at_least():
    with pytest.raises(InputError, match="lobatto_iiic needs a whole number of stages s from 2 to 60, not 1"):
        tableaus.lobatto_iiic(1)


def test_tableaus_are_made_once_and_cannot_be_changed():
    assert lv.tableaus.gauss(np.int64(4)) is tableaus.gauss(4) is tableaus.gauss(4.0)
    assert tableaus.murua(2) is tableaus.murua(2)
    with pytest.raises(ValueError, match="read-only"):
        tableaus.gauss(4).A[0, 0] = 1


def test_bad_tableaus():
    with pytest.raises(InputError, match=r"tableau 'odd' needs c and b of one length s and A of shape \(s, s\)"):
        tableaus.Tableau("odd", [0, 1], [[0, 0]], [0.5, 0.5])
    with pytest.raises(InputError, match="tableau 'odd' has a coefficient that is not a finite number"):
        tableaus.Tableau("odd", [np.nan], [[0]], [1])
    twice = tableaus.Tableau("twice", [0.5, 0.5], [[0.5, 0], [0, 0.5]], [1, 0])
    with pytest.raises(InputError, match="the nodes of an interpolation polynomial must be distinct"):
        twice.interpolant()
    with pytest.raises(InputError, match="a weight that is zero"):
        _ = twice.conjugate
    with pytest.raises(InputError, match="equally many stages, they have 1 and 2"):
        tableaus.PartitionedTableau("odd", tableaus.gauss(1), tableaus.gauss(2))


def test_order_of_pairs_with_different_nodes_and_weights():
    """By bicoloured rooted trees; pairs with common nodes have the order of the simplifying conditions."""
    assert tableaus.PartitionedTableau("mixed", tableaus.gauss(2), tableaus.radau_iia(2)).order == 1
    heun, euler = (tableaus.Tableau("one", c=[0, 1], A=[[0, 0], [1, 0]], b=b) for b in ([0.5, 0.5], [1, 0]))
    assert tableaus.PartitionedTableau("other weights", heun, euler).order == 1
    uneven = tableaus.Tableau("one", c=[0, 1], A=[[0, 0], [1, 0]], b=[0.75, 0.25])
    assert not tableaus.PartitionedTableau("near weights", heun, uneven).has_common_nodes
    assert tableaus.PartitionedTableau("equal", heun, heun).has_common_nodes
    for difference, is_round_off in ((5e-15, True), (1.5e-14, False)):
        near = tableaus.Tableau("one", c=[0, 1], A=[[0, 0], [1, 0]], b=[0.5 + difference, 0.5 - difference])
        assert tableaus.PartitionedTableau("near", heun, near).has_common_nodes is is_round_off
    verlet = tableaus.PartitionedTableau(
        "verlet",
        tableaus.Tableau("drift", c=[0, 1], A=[[0, 0], [0.5, 0.5]], b=[0.5, 0.5]),
        tableaus.Tableau("kick", c=[0.5, 0.5], A=[[0.5, 0], [0.5, 0]], b=[0.5, 0.5]),
    )
    assert not verlet.has_common_nodes and verlet.order == 2 and verlet.symplectic
    for s in (2, 3, 4):
        pair = tableaus.lobatto_iiia_iiib(s)
        assert conditions.order_by_bicoloured_trees(pair.q.A, pair.q.b, pair.p.A, pair.p.b) == pair.order == 2 * s - 2


def test_which_methods_end_with_a_stage():
    """Then coordinates and momenta of the last stage are those of the end of the step; of the pairs, only one is."""
    found = {}
    for family, (fewest, *_) in THEORY.items():
        T = getattr(tableaus, family.replace("-", "_"))(fewest + 1)
        found[family] = StageElimination(T.A, T.A, T.b, T.c, constant_mass=False).is_stiffly_accurate
    assert found == {family: accurate for family, (_, _, _, _, accurate, _) in THEORY.items()}
    A, B = tableaus.lobatto_iiia(3), tableaus.lobatto_iiib(3)
    assert not StageElimination(A.A, B.A, A.b, A.c, constant_mass=True).is_stiffly_accurate


@pytest.mark.parametrize(
    ("p", "q", "r", "symmetric", "order"),
    [
        (9, 2, 9, False, 6),
        (9, 1, 9, False, 4),
        (9, 3, 1, False, 5),
        (3, 5, 5, False, 3),
        (3, 5, 5, True, 4),
        (4, 5, 5, True, 4),
    ],
)
def test_the_theorem_of_butcher(p, q, r, symmetric, order):
    assert conditions.guaranteed_order(p, q, r, symmetric) == order


def test_every_part_of_symmetry_counts():
    """The message states the largest residual of nodes, weights and matrix."""
    half = np.full((2, 2), 0.25)
    assert conditions.symmetry_defect(np.array([0.0, 1.0]), half, np.array([0.5, 0.5])) == 0.0
    assert conditions.symmetry_defect(np.array([0.0, 1.0]), half, np.array([0.2, 0.8])) == pytest.approx(0.6)
    assert conditions.symmetry_defect(np.array([0.0, 0.7]), half, np.array([0.5, 0.5])) == pytest.approx(0.3)
    assert conditions.symmetry_defect(np.array([0.0, 1.0]), half + np.eye(2), np.array([0.5, 0.5])) == 2.0


def test_nodes_of_few_stages():
    for method, nodes in ((tableaus.radau_ia(2), [0, 2 / 3]), (tableaus.radau_iia(2), [1 / 3, 1])):
        assert method.c == pytest.approx(nodes, abs=1e-15)
    assert tableaus.radau_ia(3).c == pytest.approx([0, (6 - r6) / 10, (6 + r6) / 10], abs=1e-15)


# -- order by rooted trees, user-defined tableaus ----------------------------------------------------------------------
def test_the_numbers_of_rooted_trees():
    """A000081: 1, 1, 2, 4, 9, 20, 48, 115."""
    assert [len(conditions._rooted_trees(order)) for order in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]


def square_matrix(method):
    """The Runge-Kutta matrix of an explicit method of SciPy, with its zero columns."""
    return np.pad(method.A, ((0, 0), (0, method.n_stages - method.A.shape[1])))


def test_orders_of_published_methods():
    """Coefficients as SciPy has them, and Kutta's 3/8 rule, for which B, C and D guarantee order 3 only."""
    kutta = lv.schemes.runge_kutta(
        [[0, 0, 0, 0], [1 / 3, 0, 0, 0], [-1 / 3, 1, 0, 0], [1, -1, 1, 0]], [1 / 8, 3 / 8, 3 / 8, 1 / 8]
    )
    t = kutta.tableau
    assert conditions.guaranteed_order(t.B, t.C, t.D, t.symmetric) < kutta.order == 4
    for method, order in ((RK23, 3), (RK45, 5), (DOP853, 8)):
        assert lv.schemes.runge_kutta(square_matrix(method), method.B).order == order


@pytest.mark.parametrize(("method", "order"), [(RK23, 3), (RK45, 5)])
def test_user_defined_methods_have_their_order(method, order):
    """The pairs of Bogacki and Shampine and of Dormand and Prince; their first step is SciPy's."""
    scheme = lv.schemes.runge_kutta(square_matrix(method), method.B, method.C, name="pair")
    model, x0 = lv.FirstOrder("a b", rhs=lambda x, t: [x[1], -lv.math.sin(x[0]) + lv.math.cos(t)]), [1.0, 0.2]

    def rates(t, x):
        return [x[1], -np.sin(x[0]) + np.cos(t)]

    times = np.arange(1, 16) * 0.4
    exact = solve_ivp(rates, (0, 6), x0, method="DOP853", rtol=1e-13, atol=1e-14, t_eval=times).y.T
    steps = [0.4 / 2**i for i in range(5)]
    runs = [lv.simulate(model, x0=x0, scheme=scheme, h=h, t_end=6.0) for h in steps]
    errors = [np.linalg.norm(run.x[2**i :: 2**i] - exact) for i, run in enumerate(runs)]
    assert abs(measured_order(steps[1:], errors[1:]) - order) < 0.25
    solver = method(rates, 0, x0, 2.0, first_step=0.4, rtol=1e3, atol=1e3)
    solver.step()
    assert np.abs(runs[0].x[1] - solver.y).max() < 1e-14


def test_the_classical_method_has_equal_nodes():
    classical = lv.schemes.runge_kutta(
        [[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6], name="rk4"
    )
    assert classical.order == 4 and not classical.tableau.has_distinct_nodes
    model = lv.FirstOrder("x", rhs=lambda x: [-x[0]])
    run = lv.simulate(model, x0=[1.0], scheme=classical, h=0.5, t_end=1.0)
    assert abs(run.x[1, 0] - (1 - 0.5 + 0.5**2 / 2 - 0.5**3 / 6 + 0.5**4 / 24)) < 1e-15
    hamiltonian = lv.Hamiltonian("x", kinetic=lambda p: p @ p / 2, potential=lambda q: q @ q / 2)
    with pytest.raises(lv.InputError, match="distinct nodes"):
        lv.simulate(hamiltonian, q0=[1.0], p0=[0.0], scheme=classical, h=0.1, t_end=1.0)


def test_wrong_tableaus():
    with pytest.raises(lv.InputError, match=r"sum to 0\.5"):
        lv.schemes.runge_kutta([[0.5]], [0.5])
    with pytest.raises(lv.InputError, match="shape"):
        lv.schemes.runge_kutta([[0.5, 0.1]], [1.0])
    assert lv.schemes.runge_kutta([[0.5]], [1.0]) == lv.schemes.runge_kutta([[0.5]], [1.0])
    assert lv.schemes.runge_kutta([[0.5]], [1.0]) != lv.schemes.runge_kutta([[1.0]], [1.0])
