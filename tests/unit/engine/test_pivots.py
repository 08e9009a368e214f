"""The static pivot order, and the fused Newton correction that eliminates in it."""

import ctypes
import functools

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from livens.engine.codegen.step_kernels import newton_kernel
from livens.engine.newton import markowitz
from livens.engine.newton.markowitz import THRESHOLD, SingularMatrixError, pivot_order
from livens.expressions.state_layout import Layout
from livens.schemes.core.step_equations import StepGraph

EPS = np.finfo(float).eps
POINTER = ctypes.POINTER(ctypes.c_double)
SIGNATURE = ctypes.CFUNCTYPE(None, *[POINTER] * 5)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    """Everything is compiled here and now, whatever earlier runs have left on disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIVENS_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


def order_of(matrix, stored=None):
    """The pivot order of a matrix; `stored` are the places that count as nonzero (else those that are)."""
    rows, columns = np.nonzero(matrix if stored is None else stored)
    return pivot_order(rows, columns, matrix[rows, columns], len(matrix))


def eliminated(matrix, order):
    """Gaussian elimination in the given order: unit lower and upper triangular factor."""
    upper = matrix[np.ix_(*order)].astype(float)
    lower = np.eye(len(matrix))
    for k in range(len(matrix)):
        factors = upper[k + 1 :, k] / upper[k, k]
        lower[k + 1 :, k] = factors
        upper[k + 1 :] -= np.outer(factors, upper[k])
        upper[k + 1 :, k] = 0.0
    return lower, upper


def solved(matrix, order, right):
    """The solution by the two factors, and the size of what rounding can do to its residual."""
    lower, upper = eliminated(matrix, order)
    y = np.linalg.solve(lower, right[list(order[0])])
    x = np.empty(len(matrix))
    x[list(order[1])] = np.linalg.solve(upper, y)
    scale = np.empty(len(matrix))
    scale[list(order[0])] = abs(lower) @ abs(upper) @ abs(x[list(order[1])])
    return x, scale


def fill(matrix, order):
    """Return the fill-in of an elimination."""
    pattern = matrix[np.ix_(*order)] != 0
    before = pattern.sum()
    for k in range(len(pattern)):
        below = np.nonzero(pattern[k + 1 :, k])[0] + k + 1
        pattern[below] |= pattern[k] & (np.arange(len(pattern)) > k)
    return int(pattern.sum() - before)


@st.composite
def matrices(draw, largest=10):
    """Sparse regular matrices: a permutation with weights, and some entries more."""
    size = draw(st.integers(1, largest))
    entry = st.one_of(st.floats(-4, 4).filter(lambda a: abs(a) > 1e-3), st.integers(-3, 3).filter(bool).map(float))
    matrix = np.zeros((size, size))
    places = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    for place, value in draw(st.dictionaries(places, entry, max_size=3 * size)).items():
        matrix[place] = value
    for i, j in enumerate(draw(st.permutations(range(size)))):
        matrix[i, j] = draw(entry)
    assume(np.linalg.cond(matrix) < 1e8)
    return matrix


@settings(max_examples=200, deadline=None)
@given(matrices())
def test_the_order_is_a_stable_permutation(matrix):
    """Every row and column once, and no elimination factor above the threshold's reciprocal."""
    size = len(matrix)
    rows, columns = order_of(matrix)
    assert sorted(rows) == sorted(columns) == list(range(size))
    lower, upper = eliminated(matrix, (rows, columns))
    assert abs(lower).max() <= (1 + 1e-9) / THRESHOLD
    assert abs(np.diag(upper)).min() > 0
    right = np.arange(1.0, size + 1)
    x, scale = solved(matrix, (rows, columns), right)
    assert np.all(abs(matrix @ x - right) <= 4 * size * EPS * scale)


@settings(max_examples=100, deadline=None)
@given(matrices(), st.data())
def test_stored_zeros_are_no_pivots(matrix, data):
    """A place of the pattern may hold a zero now."""
    size = len(matrix)
    places = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    stored = matrix != 0
    for place in data.draw(st.lists(places, max_size=2 * size)):
        stored[place] = True
    lower, upper = eliminated(matrix, order_of(matrix, stored))
    assert abs(lower).max() <= (1 + 1e-9) / THRESHOLD
    assert abs(np.diag(upper)).min() > 0


@pytest.mark.parametrize("size", [20, 60])
@pytest.mark.parametrize("seed", range(3))
def test_larger_matrices_are_solved_to_round_off(size, seed):
    """As good as LAPACK with its full partial pivoting, within a digit or two."""
    random = np.random.default_rng(seed)
    matrix = np.where(random.random((size, size)) < 4 / size, random.normal(size=(size, size)), 0.0)
    matrix[np.arange(size), random.permutation(size)] += 2.0
    right = random.normal(size=size)
    x, _ = solved(matrix, order_of(matrix), right)
    scale = abs(matrix) @ abs(x) + abs(right)
    assert np.max(abs(matrix @ x - right) / scale) < 1e-12


@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1e8, 1e200])
def test_units_do_not_matter(scale):
    """The order of a matrix is that of its multiples."""
    matrix = np.array([[1e-3, 1.0, 0.0], [1.0, 1.0, 2.0], [0.0, 3.0, 0.5]])
    assert order_of(scale * matrix) == order_of(matrix)


def test_small_matrices():
    """One equation, and none."""
    assert order_of(np.array([[5.0]])) == ((0,), (0,))
    assert pivot_order([], [], np.array([]), 0) == ((), ())


# -- little fill ------------------------------------------------------------------------------------------------------
def arrow(size):
    matrix = np.diag(np.full(size, 4.0))
    matrix[0], matrix[:, 0] = 1.0, 1.0
    matrix[0, 0] = 4.0
    return matrix


def saddle_point(links):
    """Masses in a row, each tied to the next by a constraint: ``[[M, G'], [G, 0]]``."""
    masses = links + 1
    G = np.zeros((links, masses))
    G[range(links), range(links)], G[range(links), range(1, masses)] = -1.0, 1.0
    return np.block([[np.diag(1.0 + np.arange(masses) / masses), G.T], [G, np.zeros((links, links))]])


def test_an_arrow_is_eliminated_from_its_tip():
    """No fill at all, where the order as given would fill the matrix."""
    matrix = arrow(30)
    assert fill(matrix, order_of(matrix)) == 0
    natural = tuple(range(30))
    assert fill(matrix, (natural, natural)) == 29 * 28


def test_a_saddle_point_matrix_fills_little():
    """Zeros on the diagonal, yet the fill grows with the number of links, not with its square."""
    for links in (5, 20, 80):
        matrix = saddle_point(links)
        order = order_of(matrix)
        assert fill(matrix, order) <= 3 * links
        assert abs(eliminated(matrix, order)[0]).max() <= 1 / THRESHOLD


def test_a_small_pivot_is_not_bought_with_a_large_factor():
    """Less fill does not justify a pivot below the threshold."""
    matrix = np.array([[1e-6, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 3.0]])
    assert abs(eliminated(matrix, order_of(matrix))[0]).max() <= 1 / THRESHOLD


# -- no order ---------------------------------------------------------------------------------------------------------
SINGULAR = {
    "zero": np.zeros((3, 3)),
    "empty row": np.array([[1.0, 2.0], [0.0, 0.0]]),
    "empty column": np.array([[1.0, 0.0], [2.0, 0.0]]),
    "two equal rows": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [1.0, 2.0, 3.0]]),
    "a row is the sum of others": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]]),
    "structure": np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
    "redundant constraints": np.block(
        [[np.eye(2), np.array([[1.0, 1.0], [0.0, 0.0]])], [np.array([[1.0, 0.0], [1.0, 0.0]]), np.zeros((2, 2))]]
    ),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_matrices_are_refused(name):
    """Exactly singular, by numbers or by structure, with zeros stored or not."""
    matrix = SINGULAR[name]
    for stored in (None, np.ones_like(matrix)):
        with pytest.raises(SingularMatrixError, match="singular"):
            order_of(matrix, stored)


@settings(max_examples=100, deadline=None)
@given(matrices(largest=7), st.data())
def test_dependent_rows_are_refused(matrix, data):
    """Any regular matrix becomes singular when one row is replaced by a combination of two others."""
    size = len(matrix)
    assume(size >= 3)
    a, b, target = data.draw(st.permutations(range(size)))[:3]
    matrix[target] = matrix[a] - 2 * matrix[b]
    with pytest.raises(SingularMatrixError):
        order_of(matrix)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_matrices_that_are_not_finite_are_refused(value):
    """With words of their own."""
    matrix = np.eye(3)
    matrix[1, 2] = value
    with pytest.raises(SingularMatrixError, match="not finite"):
        order_of(matrix)


def test_the_error_is_an_arithmetic_one():
    """Callers need not know the class."""
    assert issubclass(SingularMatrixError, ArithmeticError)


# -- the fused Newton correction --------------------------------------------------------------------------------------
def equations(residual, x, z, c, more_places=()):
    """Step equations made by hand, with the places of the Jacobian's nonzeros (and some zeros, if asked for)."""
    jacobian = ca.jacobian(residual, x)
    rows, columns = jacobian.sparsity().get_triplet()
    places = sorted({*zip(rows, columns, strict=True), *more_places}, key=lambda place: place[::-1])
    return StepGraph(
        x=x, z=z, c=c, residual=residual,
        jac_rows=np.array([i for i, _ in places]), jac_cols=np.array([j for _, j in places]),
        jac_values=ca.densify(ca.vertcat(*(jacobian[place] for place in places))),
        final_state=z, initial_guess=ca.SX.zeros(x.numel()), block_sizes=(x.numel(),), layout=Layout(z=z.numel()),
        equation_labels=tuple(f"row {i}" for i in range(x.numel())),
    )  # fmt: skip


@functools.cache
def example(name):
    x, z, c = ca.SX.sym("x", 4), ca.SX.sym("z", 2), ca.SX.sym("c", 3)
    if name == "dense":
        residual = ca.vertcat(
            x[0] ** 2 + ca.sin(x[1]) - z[0] + x[2] * x[3],
            ca.exp(x[1]) * x[2] - c[2] * x[0] + x[3],
            x[2] ** 3 + x[0] * x[1] - z[1] - 2 * x[3],
            x[0] + x[1] + x[2] * x[3] ** 2 - c[0],
        )
        return equations(residual, x, z, c)
    if name == "saddle point":  # two unknowns, two multipliers
        G = ca.vertcat(ca.horzcat(x[0], 1.0), ca.horzcat(1.0, -x[1]))
        residual = ca.vertcat(c[2] * x[:2] - z + G.T @ x[2:], x[0] ** 2 / 2 + x[1] - c[0], x[0] - x[1] ** 2 / 2)
        return equations(residual, x, z, c)
    if name == "triangular":
        residual = ca.vertcat(x[0] - z[0], x[1] + x[0] ** 2, x[2] - x[1] * x[0], 3 * x[3] - ca.sin(x[2]) + z[1])
        return equations(residual, x, z, c)
    if name == "stored zeros":
        residual = ca.vertcat(x[1] - z[0] + x[0] ** 3, x[0] + x[1] ** 2, x[3] + x[0] - z[1], 2 * x[2] - x[3] * x[1])
        return equations(residual, x, z, c, more_places=[(0, 3), (3, 0), (2, 2)])
    raise KeyError(name)


EXAMPLES = ("dense", "saddle point", "triangular", "stored zeros")


def correction(e, order, x, z, c):
    """Return residual, element growth and correction of the kernel."""
    r, out = np.full(e.size + 1, np.nan), np.full(e.size, np.nan)
    vectors = [np.array(v, dtype=float) for v in (x, z, c)] + [r, out]
    SIGNATURE(newton_kernel(e, order).address)(*(v.ctypes.data_as(POINTER) for v in vectors))
    return r[:-1], r[-1], out


def dense(e, x, z, c):
    residual, values = (v.full().ravel() for v in e.newton_function(x, z, c))
    matrix = np.zeros((e.size, e.size))
    matrix[e.jac_rows, e.jac_cols] = values
    return residual, matrix


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_fused_correction_is_that_of_a_linear_solver(name):
    """Residual, correction and growth, in the order that suits the first point, at many others."""
    e = example(name)
    start = dense(e, [0.7, 0.4, 0.3, 0.9], [0.2, -0.5], [0.1, 0.0, 1.5])[1]
    stored = np.zeros_like(start)
    stored[e.jac_rows, e.jac_cols] = 1
    order = order_of(start, stored)
    numbers = st.floats(0.1, 1.5)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(numbers, min_size=4, max_size=4), st.lists(numbers, min_size=2, max_size=2), numbers)
    def check(x, z, k):
        c = [0.1, 0.0, k]
        residual, matrix = dense(e, x, z, c)
        lower, upper = eliminated(matrix, order)
        # elsewhere the order may be a bad one: that is what growth is for, and no matter of this test
        assume(np.all(np.isfinite(lower)) and abs(lower).max() < 1e3 and np.linalg.cond(matrix) < 1e6)
        r, growth, dx = correction(e, order, x, z, c)
        np.testing.assert_allclose(r, residual, rtol=1e-13, atol=1e-14)
        expected = np.linalg.solve(matrix, residual)
        np.testing.assert_allclose(dx, expected, rtol=1e-7, atol=1e-7 * abs(expected).max())
        scale = (abs(lower) @ abs(upper))[np.argsort(order[0])][:, np.argsort(order[1])] @ abs(dx)
        assert np.all(abs(matrix @ dx - r) <= 50 * EPS * (scale + abs(r) + 1))
        assert growth == pytest.approx(abs(lower - np.eye(4)).max(), rel=1e-6)

    check()


@pytest.mark.parametrize("name", EXAMPLES)
def test_newton_converges_quadratically(name):
    """Fused corrections alone solve the equations, so residual and Jacobian belong together."""
    e = example(name)
    goal, z, c = np.array([0.7, 0.4, 0.3, 0.9]), np.array([0.2, -0.5]), [0.1, 0.0, 1.5]
    at_goal, matrix = dense(e, goal, z, c)
    shifted = equations(e.residual - at_goal, e.x, e.z, e.c)  # so that `goal` is a solution
    order = order_of(matrix)
    x, errors = goal + 1e-2, []
    for _ in range(5):
        x = x - correction(shifted, order, x, z, c)[2]
        errors.append(abs(x - goal).max())
    assert errors[0] < 1e-2
    assert errors[1] < 1e-5
    assert errors[-1] < 1e-13


def test_growth_tells_of_a_bad_order():
    """A tiny pivot shows in ``r[size]``; with a good order it does not."""
    x, z, c = ca.SX.sym("x", 2), ca.SX.sym("z", 1), ca.SX.sym("c", 2)
    e = equations(ca.vertcat(c[0] * x[0] + x[1] - z[0], x[0] + x[1]), x, z, c)
    bad, good = ((0, 1), (0, 1)), ((1, 0), (0, 1))
    assert correction(e, bad, [0, 0], [1.0], [1e-9, 0])[1] == pytest.approx(1e9)
    assert correction(e, good, [0, 0], [1.0], [1e-9, 0])[1] == pytest.approx(1e-9)
    # growth costs digits, and that many
    exact = np.linalg.solve([[1e-9, 1.0], [1.0, 1.0]], [-1.0, 0.0])
    np.testing.assert_allclose(correction(e, good, [0, 0], [1.0], [1e-9, 0])[2], exact, rtol=1e-15)
    np.testing.assert_allclose(correction(e, bad, [0, 0], [1.0], [1e-9, 0])[2], exact, rtol=1e-6)


def test_without_elimination_there_is_no_growth():
    """A diagonal Jacobian has no factors."""
    x, z, c = ca.SX.sym("x", 3), ca.SX.sym("z", 1), ca.SX.sym("c", 2)
    e = equations(x**2 - z[0], x, z, c)
    order = ((0, 1, 2), (0, 1, 2))
    r, growth, dx = correction(e, order, [1.0, 2.0, 4.0], [4.0], [0, 0])
    assert growth == 0.0
    np.testing.assert_array_equal(r, [-3.0, 0.0, 12.0])
    np.testing.assert_allclose(dx, [-1.5, 0.0, 1.5], rtol=EPS)


def test_a_singular_point_is_not_hidden():
    """A zero pivot gives numbers that are not finite, never plausible ones."""
    x, z, c = ca.SX.sym("x", 2), ca.SX.sym("z", 1), ca.SX.sym("c", 2)
    e = equations(ca.vertcat(x[0] ** 2 + x[1] - z[0], x[1] + x[0] * x[1]), x, z, c)
    _, _, dx = correction(e, ((0, 1), (0, 1)), [0.0, 0.5], [1.0], [0, 0])
    assert not np.all(np.isfinite(dx))


@pytest.mark.parametrize("tiny", [1e-10, 1e-20, 1e-40, 1e-200])
def test_tiny_entries_are_pivots_but_what_a_cancellation_leaves_is_none(tiny):
    """A mass of 1e-40 beside one of 1 is a number; the same size left of 1/3 - 1/3 is not."""
    rows, columns = [0, 1, 1, 2, 2], [0, 0, 1, 1, 2]
    order = pivot_order(rows, columns, np.array([1.0, 2.0, tiny, 3.0, 1.0]), 3)
    assert sorted(order[0]) == sorted(order[1]) == [0, 1, 2]
    third = 1.0 / 3.0
    dependent = np.array([third, 1.0, third * 7, 7.0 * (1 + 1e-16)])
    with pytest.raises(SingularMatrixError):
        pivot_order([0, 0, 1, 1], [0, 1, 0, 1], dependent * np.sqrt(tiny), 2)


def test_complete_pivoting_decides_by_the_condition_of_the_equilibrated_matrix():
    """Orders of regular matrices of any scaling eliminate without zero pivots; singular matrices are refused."""
    random = np.random.default_rng(5)
    for size in (3, 12, 40):
        A = random.standard_normal((size, size)) * (random.random((size, size)) < 0.5) + np.eye(size)
        A *= np.exp(random.uniform(-20, 20, (size, 1))) * np.exp(random.uniform(-20, 20, (1, size)))
        i, j = np.nonzero(A)
        rows, columns = markowitz._complete_pivoting(i, j, A[i, j], size)
        assert sorted(rows) == sorted(columns) == list(range(size))
        U = A[np.ix_(rows, columns)]
        for k in range(size):
            assert U[k, k] != 0
            U[k + 1 :, k:] -= np.outer(U[k + 1 :, k] / U[k, k], U[k, k:])
        A[-1] = A[0] * 2 + A[1]
        i, j = np.nonzero(A)
        with pytest.raises(markowitz.SingularMatrixError):
            markowitz._complete_pivoting(i, j, A[i, j], size)
