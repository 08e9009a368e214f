"""The parts of the assembled tier, each by itself."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens import schemes
from livens.engine.assembled.assembly import AssemblyWorkspace, GatherLists
from livens.engine.assembled.indexed_emitter import WIDTH, pack_lanes, pool_index
from livens.engine.assembled.numeric_factorization import (
    FACTOR,
    FACTOR_STORE,
    FORWARD,
    NumericFactorization,
    band_lu,
    band_solve,
    solve,
)
from livens.engine.compiled_step import compiled_step
from livens.engine.newton.predictors import (
    N_HISTORY,
    STENCIL_LENGTH,
    STENCIL_WEIGHTS,
    STENCILS,
    best_stencil,
    extrapolate,
)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), lower=st.integers(0, 11), upper=st.integers(0, 11))
@settings(max_examples=40, deadline=None)
def test_the_core_is_a_band(seed, n, lower, upper):
    """With rows that are exchanged: the diagonal is made small."""
    random = np.random.default_rng(seed)
    A, y = random.normal(size=(n, n)), random.normal(size=n)
    below = np.subtract.outer(np.arange(n), np.arange(n))
    A[(below > lower) | (-below > upper)] = 0.0
    A[np.diag_indices(n)] *= 1e-3 if min(lower, upper) else 1.0
    factors, pivots, x = A.copy(), np.zeros(n, dtype=np.int64), y.copy()
    band_lu(factors, n, lower, upper, pivots)
    band_solve(factors, n, lower, upper, pivots, x)
    assert np.abs(A @ x - y).max() < 1e-12 * (np.abs(A) @ np.abs(x) + np.abs(y)).max() * n * n


@pytest.mark.parametrize("candidate", range(len(STENCILS)))
def test_predictors_are_exact_for_what_they_say(candidate):
    """Polynomials of degree below a, plus alternating ones of degree below b."""
    a, b = STENCILS[candidate]
    random, t = np.random.default_rng(candidate), np.arange(N_HISTORY + 1.0)[:, None]
    X = sum((random.normal(size=3) * (t / 10) ** i for i in range(a)), np.zeros((N_HISTORY + 1, 3)))
    X = X + (-1.0) ** t * sum((random.normal(size=3) * (t / 10) ** i for i in range(b)), np.zeros(3))
    x = np.zeros(3)
    extrapolate(X[N_HISTORY], 3, STENCIL_WEIGHTS[candidate], x, 0, 3)
    assert np.abs(x - X[N_HISTORY]).max() < 1e-11
    found = best_stencil(X[N_HISTORY], 3, STENCIL_WEIGHTS, STENCIL_LENGTH, N_HISTORY, 0, 3, np.zeros(3 + len(STENCILS)))
    extrapolate(X[N_HISTORY], 3, STENCIL_WEIGHTS[found], x, 0, 3)
    assert np.abs(x - X[N_HISTORY]).max() < 1e-11
    # with one step known, only the constant predictor can be used
    assert best_stencil(X[N_HISTORY], 3, STENCIL_WEIGHTS, STENCIL_LENGTH, 1, 0, 3, np.zeros(3 + len(STENCILS))) == 0


def test_sums_are_taken_in_the_order_given():
    pool = np.array([1e16, 1.0, -1e16, 3.0])
    sums = GatherLists.build([np.array([0, 0, 0, 1]), np.array([-1])], [np.array([0, 1, 2, 3]), np.array([3])], 2)
    out = np.zeros(2)
    sums.sum_into(pool, out)
    assert out.tolist() == [(1e16 + 1.0) - 1e16, 3.0]


def test_instances_in_lanes():
    table = np.arange(22).reshape(11, 2)
    blocks = pack_lanes(table)
    assert blocks.shape == (2, 2, WIDTH)
    assert blocks[1, 0, 2] == table[10, 0] == blocks[1, 0, 7]
    assert blocks.reshape(-1)[pool_index(np.arange(11), 2) + WIDTH].tolist() == table[:, 1].tolist()


@pytest.fixture(scope="module")
def four_bars():
    system = lv.problems.load("n-four-bar", N=12).model
    return compiled_step(system, schemes.get("livens-em")), system.parameter_vector()


def test_fronts_solve_the_equations_of_a_step(four_bars):
    """At the start and at another position, with factors made anew, kept, and used again; twice the same bits."""
    compiled, k = four_bars
    assembly, order = compiled.assembly, compiled.elimination
    bench = AssemblyWorkspace(assembly, k, order.pool_size - int(assembly.pool_sizes[0]))
    fronts = NumericFactorization(order, bench)
    fronts.enable_chords()
    flat = compiled.flat_equations
    random = np.random.default_rng(3)
    x, z = random.normal(size=flat.size), random.normal(size=flat.z.numel())
    c = np.concatenate([[1e-2, 0.3], k])
    memory = assembly.plan.initial_compensation(z, c)
    r, values = bench.newton(x, z, memory, c)
    matrix = sp.csc_matrix((values, assembly.pattern[:2]), shape=(r.size, r.size))
    exact = sp.csc_matrix((flat.newton_function(x, z, c)[1].full().ravel(), (flat.jac_rows, flat.jac_cols)))
    assert np.abs((matrix - exact).toarray()).max() < 1e-13
    assert np.abs(r - flat.residual_function(x, z, c).full().ravel()).max() < 1e-10
    found = []
    for how in (FACTOR, FACTOR, FACTOR_STORE, FORWARD):
        dx = np.zeros(r.size)
        solve(fronts.arrays, how, bench.pool, r[assembly.residual_gather.equations], dx)
        found.append(dx)
    assert all(np.array_equal(found[0], other) for other in found[1:])
    assert np.abs(matrix @ found[0] - r).max() < 1e-9 * np.abs(found[0]).max()


def test_the_code_does_not_grow_with_the_system(four_bars):
    """Kernels by type, classes by the logarithm: twice the loops add a round or so."""
    compiled, _ = four_bars
    twice = compiled_step(lv.problems.load("n-four-bar", N=24).model, schemes.get("livens-em"))
    assert len(twice.assembly.kernels) == len(compiled.assembly.kernels)
    assert len(twice.elimination.classes) <= len(compiled.elimination.classes) + 4
    assert twice.elimination.levels <= compiled.elimination.levels + 2


def test_fronts_of_all_rounds_look_alike():
    """Contributions of earlier fronts are merged into a neighbour, so the sources of a front do not grow."""
    order = compiled_step(lv.problems.load("n-four-bar", N=200).model, schemes.get("livens-em")).elimination
    rounds: dict[int, set[int]] = {}
    for batch in order.batches:
        rounds.setdefault(batch.front_class.index, set()).add(batch.level)
    assert order.levels >= 6
    assert max(len(found) for found in rounds.values()) >= 2  # odd and even rounds
    assert max(made.n_contributions for made in order.classes) <= 6


@pytest.mark.parametrize("offset", ["0 0 0", "0.1 0 0"])
def test_coaxial_hinges_at_rest_are_solved_by_the_compiled_loop(tmp_path, offset):
    """Terms of redundant constraints vanish at rest, and with them their round-off bounds."""
    inertial = '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    links = "".join(f'<link name="l{i}"><inertial>{inertial}</inertial></link>' for i in range(6))
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><origin xyz="{offset}"/><parent link="l{i}"/><child link="l{i + 1}"/>'
        '<axis xyz="0 0 1"/></joint>'
        for i in range(5)
    )
    file = tmp_path / "coaxial.urdf"
    file.write_text(f'<robot name="coaxial">{links}{joints}</robot>')
    mechanism = lv.Multibody.from_urdf(file)
    run = mechanism.simulate(t_end=0.1, h=0.01, tier="assembled")
    assert run.statistics.reference_steps == 0
    assert np.abs(run.q - run.q[0]).max() < 1e-15 and run.summary.max_constraint < 1e-15
    # the energy is zero, and its deviation is not relative to round-off
    for tier in ("assembled", "auto"):
        assert mechanism.simulate(t_end=0.1, h=0.01, tier=tier).summary.max_energy_drift < 1e-20
