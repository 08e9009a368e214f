"""Starts of large systems, against the dense ones on systems that are small enough for both."""

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens.models import system as system_module
from livens.models.equations_of_motion import equations_of_motion
from livens.models.initialization import dense as dense_start
from livens.models.initialization import sparse, sparse_linalg
from livens.models.initialization.sparse_linalg import SparseConstraintJacobian, solve_if_regular, solve_regularized
from livens.models.numeric_assembly import NumericAssembly
from livens.problems import chain


def n_four_bar(N=4):
    problem = lv.problems.load("n-four-bar", N=N)
    state = problem.reference(0.4)
    return problem.model, state["q"], state["v"]


def both(monkeypatch, system, q, v, **options):
    """The state of the dense and of the sparse way."""
    k = system.parameter_vector()
    found = []
    for large in (10**9, 0):
        monkeypatch.setattr(system_module, "SPARSE_THRESHOLD", large)
        found.append(dense_start.initial_state(system, q, v, k, **options))
    return found


SYSTEMS = ["n-four-bar", "link-chain", "andrews-squeezer", "bricard", "car-axis", "heavy-top", "double-four-bar-damped"]


@pytest.mark.parametrize("name", SYSTEMS)
def test_same_start_as_dense(monkeypatch, name):
    problem = lv.problems.load(name)
    options = dict(project=True, redundant="auto" if problem.model.frames else "error")
    dense, sparse = both(monkeypatch, problem.model, problem.q0, problem.v0, **options)
    assert len(sparse.removed_constraints) == len(dense.removed_constraints)
    # with frames, any of some may be left out
    assert sparse.removed_constraints == dense.removed_constraints or problem.model.frames
    for part in ("q", "v", "p"):
        assert np.allclose(sparse[part], dense[part], rtol=1e-12, atol=1e-12)
    assembly = NumericAssembly(problem.model, 0.0, problem.model.parameter_vector())
    G = np.asarray(assembly.constraint_jacobian(dense["q"]).todense())
    assert np.allclose(G.T @ sparse["multipliers"], G.T @ dense["multipliers"], rtol=1e-8, atol=1e-8)


def test_multipliers_are_those_of_the_dense_way(monkeypatch):
    dense, sparse = both(monkeypatch, *n_four_bar())
    assert np.allclose(sparse["multipliers"], dense["multipliers"], rtol=1e-11, atol=1e-12)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=4, deadline=None)
def test_projections_are_those_of_the_dense_way(seed):
    system, q, v = n_four_bar(2)
    random, k = np.random.default_rng(seed), system.parameter_vector()
    dense, sparse = dense_start.DenseAssembly(equations_of_motion(system), 0.0, k), NumericAssembly(system, 0.0, k)
    off = q + 1e-2 * random.standard_normal(q.size)
    there = dense_start.project_position(dense, off, system)
    assert np.abs(dense_start.project_position(sparse, off, system) - there).max() < 1e-9
    wild = v + random.standard_normal(v.size)
    assert (
        np.abs(
            dense_start.project_velocity(sparse, there, wild) - dense_start.project_velocity(dense, there, wild)
        ).max()
        < 1e-11
    )


def test_numbers_are_those_of_the_whole_graph():
    system, q, v = n_four_bar()
    d, k = equations_of_motion(system), system.parameter_vector()
    here, sums = (
        dense_start.AssembledTerms(*dense_start.DenseAssembly(d, 0.0, k).assemble(q, v)),
        NumericAssembly(system, 0.0, k).assemble(q, v),
    )
    assert pytest.approx(here.T.item(), rel=1e-14) == sums.T and pytest.approx(here.V.item(), rel=1e-14) == sums.V
    for name in ("g", "F", "g_dot", "p"):
        assert np.allclose(getattr(sums, name), getattr(here, name).ravel(), rtol=1e-14, atol=1e-14)
    assert np.allclose(sums.G.toarray(), here.G, rtol=1e-14)
    assert np.allclose(sums.M.toarray(), here.kkt_matrix[: system.n, : system.n], rtol=1e-14)
    assert np.allclose(np.concatenate([sums.force, -sums.bias]), here.kkt_rhs.ravel(), rtol=1e-13, atol=1e-13)


# -- rows that follow from others -------------------------------------------------------------------------------------
@given(st.integers(0, 2**32 - 1), st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_dependent_rows_are_those_of_gram_and_schmidt(seed, extra):
    random = np.random.default_rng(seed)
    rows = random.standard_normal((6, 12)) * 10.0 ** random.integers(-3, 4, (6, 1))
    for _ in range(extra):
        mixed = random.standard_normal(len(rows)) * (random.random(len(rows)) < 0.5)
        rows = np.insert(rows, random.integers(0, len(rows) + 1), mixed @ rows, axis=0)
    found, dense = SparseConstraintJacobian(rows).dependent_rows(), dense_start.dependent_rows(rows)
    assert len(found) == extra
    assert found == dense or len(dense) < extra  # relations with large weights escape the dense way


def test_hidden_relations_of_many_loops_are_found_together(monkeypatch):
    """Relations with coefficients from 1 to 1e6 have no small pivots; 80 of them took 80 factorizations."""
    random, n_relations = np.random.default_rng(4), 80
    blocks = []
    for _ in range(n_relations):
        rows = random.standard_normal((12, 24)) @ np.diag(np.logspace(0, -5, 24))
        blocks.append(np.vstack([rows, (random.standard_normal(12) * np.logspace(0, 6, 12)) @ rows]))
    G = sp.block_diag(blocks, format="csr")
    counts = []
    factorize = sparse_linalg._factorize_spd
    monkeypatch.setattr(sparse_linalg, "_factorize_spd", lambda *a, **b: counts.append(1) or factorize(*a, **b))
    protected = np.zeros(G.shape[0], dtype=bool)
    protected[::13] = True
    removed = SparseConstraintJacobian(G).dependent_rows(protected)
    assert len(removed) == n_relations and not protected[removed].any()
    assert sorted(i // 13 for i in removed) == list(range(n_relations))  # one row of every relation
    assert len(counts) < 15


def ladder(N):
    """N loops of spatial rods with parallel hinges: each has three constraints too many."""
    bodies = [*range(N + 1), *range(N + 1, 2 * N + 1)]  # lower, then upper ones
    frame = [[(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]]
    rod = dict(kinetic=chain._kinetic, potential=chain._weight, constraints=chain._orthonormality, frames=frame)
    ground = lambda q, k: [q[0] - k.l / 2 * q[3] - k.at, q[1], q[2] - k.l / 2 * q[5], q[4], q[6]]  # noqa: E731

    def pin(q, k):
        ends = q[:3] + k.l / 2 * q[3:6] - q[9:12] - k.end * k.l / 2 * q[12:15]
        return [*ends, q[6:9] @ q[12:15], q[6:9] @ q[15:18]]

    def pair(a, b, end):
        places = [*range(12 * a, 12 * a + 9), *range(12 * b, 12 * b + 6), *range(12 * b + 9, 12 * b + 12)]
        return lv.Element(places, constraints=pin, parameters=dict(end=end), name=f"{a}-{b}")

    elements = [lv.Element(range(12 * b, 12 * b + 12), **rod, name=f"rod{b}") for b in bodies]
    elements += [
        lv.Element(range(12 * b, 12 * b + 9), constraints=ground, parameters=dict(at=float(b)), name=f"ground{b}")
        for b in bodies[: N + 1]
    ]
    for i in range(N):
        elements += [pair(i, N + 1 + i, -1.0), pair(N + 1 + i, i + 1, 1.0)]
    system = lv.System(12 * len(bodies), elements=elements, parameters=dict(m=1.0, l=1.0, g=9.81), frames=True)
    up = np.array([np.cos(1.1), 0, np.sin(1.1)])

    def placed(at, d1):
        return np.r_[at, d1, [0, 1, 0], np.cross(d1, [0, 1, 0])]

    lower = [placed(np.array([i, 0, 0]) + up / 2, up) for i in range(N + 1)]
    upper = [placed(up + np.array([i + 0.5, 0, 0]), np.array([1.0, 0, 0])) for i in range(N)]
    return system, np.concatenate(lower + upper)


@pytest.mark.parametrize("N", [2, 12])
def test_many_redundant_constraints(monkeypatch, N):
    """Three of every loop are left out, none of those that keep bodies rigid; what is left is independent."""
    system, q = ladder(N)
    monkeypatch.setattr(system_module, "SPARSE_THRESHOLD", 0)
    state = dense_start.initial_state(system, q, np.zeros(system.n), system.parameter_vector(), redundant="auto")
    assert len(state.removed_constraints) == 3 * N
    assert not {i for frame in system.frames for i in frame.constraints} & set(state.removed_constraints)
    G = NumericAssembly(system, 0.0, system.parameter_vector()).constraint_jacobian(q).toarray()
    kept = np.setdiff1d(np.arange(system.m), state.removed_constraints)
    sizes = np.linalg.svd(G[kept], compute_uv=False)
    assert sizes[-1] > 1e-5 * sizes[0]
    with pytest.raises(lv.InputError, match="follow from the others"):
        dense_start.initial_state(system, q, np.zeros(system.n), system.parameter_vector())


def test_a_redundant_constraint_is_named(monkeypatch):
    """The last of the rows that depend on each other, as the dense way has it."""
    system = lv.System(
        "x y z",
        kinetic=lambda v: 0.5 * (v @ v),
        constraints=lambda q: [q[0] - 1, q[1] - 2, q[0] + q[1] - 3],
        constraint_names=["first", "second", "both"],
    )
    monkeypatch.setattr(system_module, "SPARSE_THRESHOLD", 0)
    with pytest.raises(lv.InputError, match="'both' follows from the others"):
        dense_start.initial_state(system, [1, 2, 0], [0, 0, 1], system.parameter_vector())
    state = dense_start.initial_state(system, [1, 2, 0], [0, 0, 1], system.parameter_vector(), redundant="remove")
    assert state.removed_constraints == (2,)


def test_a_singular_position_is_not_redundant(monkeypatch):
    """All bars in line: more constraints depend on one another there than anywhere near it."""
    system = lv.problems.load("n-four-bar", N=1).model
    q = np.array([[x, 0, 1, 0, 0, 1] for x in (0.5, 1.5, 1.5)], dtype=float).ravel()
    monkeypatch.setattr(system_module, "SPARSE_THRESHOLD", 0)
    numbers = NumericAssembly(system, 0.0, system.parameter_vector())
    assert sparse.dependent_rows(numbers.constraint_jacobian(q))
    state = dense_start.initial_state(system, q, np.zeros(system.n), system.parameter_vector())
    assert state.removed_constraints == () and np.isfinite(state["multipliers"]).all()


def test_inconsistent_values_are_named(monkeypatch):
    system, q, v = n_four_bar(2)
    monkeypatch.setattr(system_module, "SPARSE_THRESHOLD", 0)
    wrong = q.copy()
    wrong[0] += 0.1
    with pytest.raises(
        lv.InputError, match=r"constraint '.*lower0.*' is violated on position level by .* nearest consistent"
    ):
        dense_start.initial_state(system, wrong, v, system.parameter_vector())


def test_singular_systems_have_the_smallest_solution():
    random = np.random.default_rng(0)
    G = np.vstack([random.standard_normal((3, 5)), np.zeros((1, 5))])
    G[3] = G[0] + G[1]
    M = np.diag([1.0, 2.0, 1.0, 1.0, 0.0])
    A = np.block([[M, G.T], [G, np.zeros((4, 4))]])
    b = A @ random.standard_normal(9)
    assert solve_if_regular(A, b) is None
    smallest = np.linalg.lstsq(A, b, rcond=None)[0]
    found = solve_regularized(A, b, 5)
    assert np.abs(A @ found - b).max() < 1e-10 and np.linalg.norm(found) <= 2 * np.linalg.norm(smallest)


@pytest.mark.parametrize("large", [10**9, 0])
def test_redundancy_is_analysed_once_for_repeated_starts(monkeypatch, large):
    """Starts at other states are analysed anew, so that results do not depend on earlier runs."""
    monkeypatch.setattr(system_module, "SPARSE_THRESHOLD", large)
    mb = lv.Multibody()
    corners = [[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 0]]
    rods = [mb.rod(f"rod{i}", a=a, b=b, mass=1.0) for i, (a, b) in enumerate(itertools.pairwise(corners))]
    for i, (a, b) in enumerate(itertools.pairwise([mb.ground, *rods, mb.ground])):
        mb.revolute(f"hinge{i}", a, b, at=corners[i], axis=[0, 1, 0])
    (q, v), k = mb.initial_state, mb.system.parameter_vector()
    counts = []
    for module in (dense_start, sparse):
        name = "redundant_constraints" if module is dense_start else "_removed_constraints"
        find = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, find=find: counts.append(1) or find(*a))
    options = dict(redundant="remove")
    removed = [dense_start.initial_state(mb.system, q, v, k, **options).removed_constraints for _ in range(3)]
    assert len(counts) == 1 and removed[0] == removed[1] == removed[2] and len(removed[0]) == 3
    other = mb.system.parameter_vector({"rod0.mass": 2.0})
    dense_start.initial_state(mb.system, q, v, other, **options)
    assert len(counts) == 2


def test_memory_of_a_long_tree_with_a_redundant_loop():
    """Redundant constraints behind a long chain are found without matrices of the size of the chain squared."""
    mb, before, n = lv.Multibody(gravity=[0, 0, -9.81]), None, 200
    for i in range(n):
        rod = mb.rod(f"rod{i}", a=[0.1 * i, 0, 0], b=[0.1 * (i + 1), 0, 0], mass=0.1, radius=0.01)
        mb.revolute(f"hinge{i}", before or mb.ground, rod, at=rod.a, axis="y")
        before = rod
    corners = 0.1 * n * np.eye(3)[0] + np.array([[0, 0, 0], [0, 0, -0.3], [0.2, 0, -0.35], [0.2, 0, 0]])
    rods = [mb.rod(f"bar{j}", a=corners[j], b=corners[j + 1], mass=1.0, radius=0.03) for j in range(3)]
    for j, pair in enumerate(zip([before, *rods], [*rods, before], strict=True)):
        mb.revolute(f"loop{j}", *pair, at=corners[j], axis="y")
    q, v = mb.initial_state
    tracemalloc.start()
    state = dense_start.initial_state(mb.system, q, v, mb.system.parameter_vector(), redundant="auto")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(state.removed_constraints) == 3 and peak < 5e7
