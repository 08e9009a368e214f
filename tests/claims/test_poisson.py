"""Poisson and Lie-Poisson systems: order, bracket, Casimirs, and motions known otherwise."""

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv

SPIN_SCHEMES = {"spherical-midpoint": 2, "collective-gauss-1": 2, "collective-gauss-2": 4}
STEPS = [0.1 / 2**i for i in range(4)]
FIELDS = np.array([0.1, 0.5, -0.3, 0.7])


def hat(x):
    return [[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]]


def ring(**others):
    """Four spins of different lengths, with energies of single spins and of pairs."""
    return lv.Spins(
        4,
        spin_energy=lambda s, k: k.B * s[2] - 0.5 * s[2] ** 4,
        pair_energy=lambda a, b, k: -k.J * (a @ b) - 0.3 * a[2] * b[0] ** 2,
        pairs=[(i, (i + 1) % 4) for i in range(4)],
        parameters=dict(J=1.0),
        spin_parameters=dict(B=FIELDS),
        **others,
    )


def spins(seed=1, count=4):
    return np.random.default_rng(seed).normal(size=(count, 3))


def ring_rates(t, x):
    """The equations of `ring`, derived by hand."""
    s = x.reshape(4, 3)
    gradient = -(np.roll(s, -1, axis=0) + np.roll(s, 1, axis=0))
    gradient[:, 2] += FIELDS - 2 * s[:, 2] ** 3 - 0.3 * np.roll(s, -1, axis=0)[:, 0] ** 2
    gradient[:, 0] -= 0.6 * np.roll(s, 1, axis=0)[:, 2] * s[:, 0]
    return np.cross(s, gradient).ravel()


def exact(rates, x0, t_end):
    return solve_ivp(rates, (0, t_end), np.ravel(x0), method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]


@pytest.mark.parametrize(("scheme", "order"), SPIN_SCHEMES.items())
def test_order_of_spin_schemes(scheme, order):
    end = exact(ring_rates, spins(), 1.0)
    errors = [np.abs(lv.simulate(ring(), x0=spins(), scheme=scheme, h=h, t_end=1.0).x[-1] - end).max() for h in STEPS]
    assert measured_order(STEPS, errors) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("scheme", SPIN_SCHEMES)
def test_spin_schemes_keep_the_bracket(scheme):
    """Poisson maps to round-off; Gauss methods on the spins themselves keep the lengths, and no bracket."""
    assert lv.study.poisson_defect(ring(), scheme, spins().ravel(), 0.2) < 1e-12
    assert lv.study.poisson_defect(ring(), "gauss-2", spins().ravel(), 0.2) > 1e-6


@pytest.mark.parametrize("scheme", SPIN_SCHEMES)
def test_lengths_and_total_spin(scheme):
    """Isotropic exchange keeps the total spin; the energy is bounded without a trend."""
    model = lv.Spins(
        3,
        pair_energy=lambda a, b: -(a @ b) - (a @ b) ** 2 / 4,
        pairs=[(i, j) for i in range(3) for j in range(i)],
        invariants=dict(total_spin=lambda s: s.sum(axis=0)),
    )
    run = lv.simulate(model, x0=spins(count=3), scheme=scheme, h=0.02, t_end=200.0)
    assert run.summary.momentum_drift["squared_lengths"] < 2e-14
    assert run.summary.momentum_drift["total_spin"] < 2e-14
    assert {"squared_lengths", "total_spin"} <= {
        name for name in model.symmetries if model.is_guaranteed_by(lv.schemes.get(scheme), name)
    }
    energy = run.observe("hamiltonian")
    half = len(energy) // 2
    assert np.ptp(energy[half:]) < 1.5 * np.ptp(energy[:half]) and np.ptp(energy) > 1e-13


def test_a_million_steps_keep_the_lengths():
    """Spherical midpoint: spin lengths to round-off over 1e6 steps."""
    run = lv.simulate(ring(), x0=spins(), scheme="spherical-midpoint", h=0.05, t_end=5e4, every=10_000)
    assert run.statistics.steps == 1_000_000
    lengths = np.linalg.norm(run.x.reshape(-1, 4, 3), axis=-1)
    assert np.abs(lengths / lengths[0] - 1).max() < 5e-13


def test_a_free_rigid_body_is_a_spin():
    """The Euler top of the Nambu problem, by elliptic functions."""
    problem = lv.problems.load("euler-top")
    inertia = problem.model.parameters["I"]
    top = lv.Spins(1, spin_energy=lambda s, k: sum(s**2 / k.I) / 2, parameters=dict(I=inertia))
    for scheme, order in SPIN_SCHEMES.items():
        runs = [lv.simulate(top, x0=problem.initial_values["x0"], scheme=scheme, h=h, t_end=5.0) for h in STEPS]
        errors = [np.abs(run.x[-1] - problem.reference(5.0)["x"]).max() for run in runs]
        assert measured_order(STEPS, errors) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("scheme", ["spherical-midpoint", "collective-gauss-1"])
def test_tiers_agree(scheme):
    """A chain of 6 spins, as one graph and as batches of spins and pairs."""
    model = lv.problems.load("spin-chain", N=6).model
    x0 = spins(count=6)
    runs = [lv.simulate(model, x0=x0, scheme=scheme, h=0.05, t_end=2.0, tier=tier) for tier in ("fused", "assembled")]
    assert [run.info.tier for run in runs] == ["fused", "assembled"]
    assert np.abs(runs[0].x - runs[1].x).max() < 1e-12


def test_many_spins_are_assembled():
    """The number of batches does not grow with the number of spins, nor do their kernels."""
    plans = []
    for count in (125, 250):
        model = lv.problems.load("spin-chain", N=count).model
        plan = lv.schemes.get("spherical-midpoint").equations(model).assembly_plan()
        plans.append(
            [ca.Function("f", batch.symbols.arguments, [batch.residual]).n_instructions() for batch in plan.batches]
        )
        assert plan.size == 3 * count and model.uses_sparse_path
    assert plans[0] == plans[1]
    run = lv.simulate(lv.problems.load("spin-chain", N=125), h=0.05, t_end=2.0)
    assert run.info.tier == "assembled"
    assert run.summary.momentum_drift["squared_lengths"] < 1e-14
    assert run.observe("hamiltonian").shape == run.t.shape


def test_spins_have_files_resume_ensembles_and_gradients(tmp_path):
    model, x0 = ring(), spins()
    whole = lv.simulate(model, x0=x0, h=0.05, t_end=2.0, out=tmp_path / "whole.h5")
    part = tmp_path / "part.h5"
    lv.simulate(model, x0=x0, h=0.05, t_end=1.0, out=part)
    assert np.array_equal(lv.resume(part, t_end=2.0, system=model).x, whole.x)
    assert np.array_equal(lv.load(tmp_path / "whole.h5").x, whole.x)
    members = lv.ensemble(model, x0=np.stack([x0.ravel(), 1.1 * x0.ravel()]), h=0.05, t_end=2.0)
    assert np.abs(members.x[0, -1] - whole.x[-1]).max() < 1e-13

    def last(J):
        return lv.simulate(model, x0=x0, h=0.05, t_end=2.0, parameters=dict(J=J)).x[-1, 0]

    loss = lv.value_and_gradient(lambda x: x[0])
    step, shift = lv.prepare(model, h=0.05), np.eye(12)[3] * 1e-5
    _, by = loss(step, x0=x0.ravel(), t_end=2.0)
    assert by.parameters["J"] == pytest.approx((last(1 + 1e-5) - last(1 - 1e-5)) / 2e-5, rel=1e-6)
    ahead, behind = (loss(step, x0=x0.ravel() + sign * shift, t_end=2.0)[0] for sign in (1, -1))
    assert by.x0[3] == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)


def test_ensembles_of_many_spins_are_single_runs_of_the_assembled_tier():
    """Members equal single runs bit for bit, by kernels of spins and pairs; lanes agree to round-off."""
    model, rng = lv.problems.load("spin-chain", N=125).model, np.random.default_rng(0)
    x0, fields = rng.normal(size=(3, 375)), dict(h=0.05, t_end=1.0)
    many = lv.ensemble(model, x0=x0, **fields)
    assert many.info["tier"] == "assembled" and many.info["width"] == 1
    run = lv.simulate(model, x0=x0[2], **fields)
    assert np.array_equal(many.x[2], run.x)
    assert many.summary[2].max_energy_drift == pytest.approx(run.summary.max_energy_drift, rel=1e-9)
    assert many.summary[2].momentum_drift["squared_lengths"] < 1e-14
    small, y0 = lv.problems.load("spin-chain", N=6).model, rng.normal(size=(3, 18))
    one_by_one, lanes = (lv.ensemble(small, x0=y0, tier=tier, **fields) for tier in ("assembled", "auto"))
    assert (one_by_one.info["tier"], lanes.info["tier"]) == ("assembled", "fused")
    assert np.abs(one_by_one.x - lanes.x).max() < 1e-13
    with pytest.raises(lv.InputError, match="on a tree"):
        lv.ensemble(small, x0=y0, tier="tree", **fields)


def test_bad_spins_are_refused():
    with pytest.raises(lv.InputError, match="from 0 to 1"):
        lv.Spins(2, pair_energy=lambda a, b: a @ b, pairs=[(0, 2)])
    with pytest.raises(lv.ModelError, match="no energy"):
        lv.Spins(2)
    with pytest.raises(lv.ModelError, match="together with pairs"):
        lv.Spins(2, pair_energy=lambda a, b: a @ b)
    with pytest.raises(lv.InputError, match="one value per spin: 2"):
        lv.Spins(2, spin_energy=lambda s, k: k.B * s[2], spin_parameters=dict(B=[1.0]))
    with pytest.raises(lv.InputError, match="'s1' is zero"):
        lv.simulate(
            ring(), x0=np.diag([1.0, 0, 1, 1])[:, :3] + [[0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0, 0]], h=0.1, t_end=1.0
        )


# -- general Poisson systems ------------------------------------------------------------------------------------------
def test_structure_matrices_are_checked():
    with pytest.raises(lv.ModelError, match="violates the Jacobi identity"):
        lv.Poisson(3, structure=lambda x: [[0, x[0], 0], [-x[0], 0, x[1]], [0, -x[1], 0]], hamiltonian=lambda x: x @ x)
    with pytest.raises(lv.ModelError, match="J is not skew"):
        lv.Poisson(2, structure=[[0, 1], [1, 0]], hamiltonian=lambda x: x @ x)
    with pytest.raises(lv.ModelError, match="'first' is no Casimir"):
        lv.Poisson(3, structure=hat, hamiltonian=lambda x: x @ x, casimirs=dict(first=lambda x: x[0]))


def test_a_heavy_top_on_se3():
    """Six states, two Casimirs; angular momentum about the vertical and the axis of the top are invariants."""
    I, mgl = np.array([1.0, 1.0, 0.4]), 2.0  # noqa: E741  # moments of inertia
    model = lv.Poisson(
        "m1 m2 m3 g1 g2 g3",
        structure=lambda x: np.block(
            [[np.array(hat(x[:3])), np.array(hat(x[3:]))], [np.array(hat(x[3:])), np.zeros((3, 3))]]
        ),
        hamiltonian=lambda x: sum(x[:3] ** 2 / I) / 2 + mgl * x[5],
        casimirs=dict(size=lambda x: x[3:] @ x[3:], vertical=lambda x: x[:3] @ x[3:]),
        invariants=dict(spin=lambda x: x[2]),
    )
    x0 = [0.2, 0.1, 3.0, 0.3, 0.0, np.sqrt(1 - 0.09)]

    def rates(t, x):
        omega, g = x[:3] / I, x[3:]
        return np.concatenate([np.cross(x[:3], omega) + mgl * np.cross(g, [0, 0, 1]), np.cross(g, omega)])

    end = exact(rates, x0, 2.0)
    found = [np.abs(lv.simulate(model, x0=x0, scheme="gauss-2", h=h, t_end=2.0).x[-1] - end).max() for h in STEPS]
    assert measured_order(STEPS, found) == pytest.approx(4, abs=0.1)
    for scheme in ("gauss-2", "discrete-gradient-pair"):
        run = lv.simulate(model, x0=x0, scheme=scheme, h=0.05, t_end=50.0)
        assert max(run.summary.momentum_drift.values()) < 1e-12
        assert np.ptp(run.observe("hamiltonian")) < (1e-12 if scheme == "discrete-gradient-pair" else 1e-3)


def test_lotka_volterra_keeps_its_hamiltonian():
    run = lv.simulate(lv.problems.load("lotka-volterra"), t_end=100.0)
    assert np.ptp(run.observe("hamiltonian")) < 1e-13


# -- isospectral flows ------------------------------------------------------------------------------------------------
def test_isospectral_midpoint_keeps_eigenvalues():
    """A Toda lattice: the matrix becomes diagonal, with its eigenvalues in order."""
    W0 = np.array([[1.0, 0.5, 0.0], [0.5, -0.5, 0.3], [0.0, 0.3, 0.2]])
    toda = lv.IsospectralFlow(3, field=lambda W: np.triu(W, 1) - np.triu(W, 1).T)
    run = lv.simulate(toda, x0=W0, scheme="isospectral-midpoint", h=0.1, t_end=100.0)
    W1 = run.x[-1].reshape(3, 3)
    assert np.abs(np.linalg.eigvalsh(W1) - np.linalg.eigvalsh(W0)).max() < 1e-13
    assert np.abs(W1 - np.diag(np.sort(np.diag(W1))[::-1])).max() < 1e-10 and np.abs(W1 - W1.T).max() < 1e-13

    def rates(t, x):
        W = x.reshape(3, 3)
        B = np.triu(W, 1) - np.triu(W, 1).T
        return (B @ W - W @ B).ravel()

    end = exact(rates, W0, 1.0)
    errors = [np.abs(lv.simulate(toda, x0=W0, h=h, t_end=1.0).x[-1] - end).max() for h in STEPS]
    assert measured_order(STEPS, errors) == pytest.approx(2, abs=0.05)


def test_a_rigid_body_in_four_dimensions():
    """Eigenvalues, skew symmetry, the bracket, and the second invariant of Manakov without a trend."""
    problem = lv.problems.load("four-dimensional-body")
    run = lv.simulate(problem, t_end=500.0)
    W = run.x.reshape(-1, 4, 4)
    assert np.abs(W + W.transpose(0, 2, 1)).max() < 1e-13
    powers = np.array([np.trace(W @ W, axis1=1, axis2=2), np.linalg.det(W)])
    assert np.ptp(powers, axis=1).max() < 1e-13
    assert lv.study.poisson_defect(problem.model, "isospectral-midpoint", problem.initial_values["x0"], 0.1) < 1e-13
    assert lv.study.poisson_defect(problem.model, "gauss-1", problem.initial_values["x0"], 0.1) > 1e-6
    energy = run.observe("hamiltonian")
    assert np.ptp(energy[len(energy) // 2 :]) < 1.2 * np.ptp(energy[: len(energy) // 2])
    a = np.array([1.0, 2.0, 3.0, 4.0])
    sums = a[:, None] + a

    def rates(t, x):
        M = x.reshape(4, 4)
        V = M / sums  # dH/dW; B is its transpose
        return (V.T @ M - M @ V.T).ravel()

    end = exact(rates, problem.initial_values["x0"], 2.0)
    errors = [np.abs(lv.simulate(problem, h=h, t_end=2.0).x[-1] - end).max() for h in STEPS]
    assert measured_order(STEPS, errors) == pytest.approx(2, abs=0.05)


def test_isospectral_flows_need_one_function():
    with pytest.raises(lv.ModelError, match="either field"):
        lv.IsospectralFlow(3)
    with pytest.raises(lv.InputError, match=r"shape \(3, 3\)"):
        lv.simulate(lv.IsospectralFlow(3, field=lambda W: W - W.T), x0=np.eye(2), h=0.1, t_end=1.0)
