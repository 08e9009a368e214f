"""Partitioned methods on constraints: the Lobatto pair (J-PRK), RATTLE, SHAKE, Murua's method with and without GGL."""

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import math as m
from livens.engine.steppers.reference import ReferenceSolver
from livens.models.initialization.dense import initial_state
from stepping import estimated_error

PAIRS = [f"lobatto-iiia-iiib-{s}" for s in (2, 3, 4)]
MURUA, GGL = [f"murua-{s}" for s in (1, 2, 3)], [f"murua-ggl-{s}" for s in (1, 2, 3)]
#: Steps per second, by the order of the method.
STEPS = {2: (80, 113, 160, 226), 4: (40, 57, 80, 113), 6: (20, 28, 40, 57)}


def start_of(problem):
    """The pendulum starts from rest, where errors of some orders vanish: it is taken up in motion."""
    begin = 0.3 if problem.name == "pendulum" else 0.0
    state = problem.reference(begin)
    return begin, state["q"], state["v"]


def errors_of(problem, name, numbers, keys=("q", "v", "multipliers")):
    begin, q0, v0 = start_of(problem)
    exact, errors = problem.reference(begin + 1.0), {key: [] for key in keys}
    for n in numbers:
        run = lv.simulate(problem.model, q0, v0, scheme=name, h=1 / n, t_end=1.0, project=True)
        for key, values in errors.items():
            values.append(np.linalg.norm(getattr(run, key)[-1] - exact[key]))
    return errors


# -- orders -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("problem", ["pendulum", "spherical-pendulum"])
@pytest.mark.parametrize("name", PAIRS)
def test_order_of_the_lobatto_pair(name, problem):
    """2s - 2 for q, v and for multipliers, which belong to the accelerations at (q, v)."""
    order = lv.schemes.get(name).order
    assert order == 2 * int(name[-1]) - 2
    for key, errors in errors_of(lv.problems.load(problem), name, STEPS[order]).items():
        assert abs(measured_order([1 / n for n in STEPS[order]], errors) - order) < 0.1, (key, errors)


@pytest.mark.parametrize("problem", ["pendulum", "spherical-pendulum"])
@pytest.mark.parametrize("name", MURUA + GGL)
def test_order_of_muruas_method(name, problem):
    """2s for q and v; for multipliers s + 1 if s is odd, and s if s is even, which finer steps show.

    Errors of multipliers alternate: their order is that of the largest over neighbouring steps. Of the pendulum, which
    is released at the height of its support, ``lam`` is proportional to y; there three stages have order 6.
    """
    scheme, s = lv.schemes.get(name), int(name[-1])
    assert scheme.order == 2 * s
    numbers = STEPS[2 * s]
    for key, errors in errors_of(lv.problems.load(problem), name, numbers, ("q", "v")).items():
        assert abs(measured_order([1 / n for n in numbers], errors) - 2 * s) < 0.1, (key, errors)
    finer = (30, 42, 60, 84) if s == 3 else [6 * n for n in numbers]
    errors = [multiplier_error(lv.problems.load(problem), name, n) for n in finer]
    order = 6 if s == 3 and problem == "pendulum" else s + s % 2
    assert abs(measured_order([1 / n for n in finer], errors) - order) < 0.1, errors


def multiplier_error(problem, name, n):
    """Largest error over all steps of the pendulum; over the last two steps where the reference takes longer."""
    begin, q0, v0 = start_of(problem)
    run = lv.simulate(problem.model, q0, v0, scheme=name, h=1 / n, t_end=1.0, project=True)
    chosen = slice(None) if problem.name == "pendulum" else slice(-2, None)
    exact = np.array([problem.reference(begin + t)["multipliers"] for t in run.t[chosen]])
    return np.linalg.norm(run.multipliers[chosen] - exact, axis=1).max()


def test_orders_of_rattle_and_shake():
    """SHAKE has the positions of RATTLE and velocities of first order; its name for q is what `order` says."""
    problem = lv.problems.load("spherical-pendulum")
    for name, order_v in (("rattle", 2), ("shake", 1)):
        errors = errors_of(problem, name, STEPS[2], ("q", "v"))
        assert abs(measured_order([1 / n for n in STEPS[2]], errors["q"]) - 2) < 0.1
        assert abs(measured_order([1 / n for n in STEPS[2]], errors["v"]) - order_v) < 0.1


@pytest.mark.parametrize("name", ["rattle", "shake"])
def test_the_balance_of_work_of_rattle_closes_with_its_order(name):
    """A bead on a circle with a damper, driven by a force: change of energy, work and loss."""
    model = lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: 2.0 * q[1],
        forces=lambda t: [3.0 * m.cos(t), 0.0],
        dissipation=lambda v: 0.2 * (v @ v),
        constraints=lambda q: [(q @ q - 1) / 2],
    )
    steps, gaps = [0.02 / 2**i for i in range(4)], []
    for h in steps:
        run = lv.simulate(model, [0.0, -1.0], [1.0, 0.0], scheme=name, h=h, t_end=2.0)
        energy = run.observe("total_energy")
        gaps.append(abs(energy[-1] - energy[0] - run.supplied_energy[-1] + run.dissipated_energy[-1]))
        assert run.supplied_energy[-1] > 0.5 and run.dissipated_energy[-1] > 0.5
    assert measured_order(steps, gaps) > {"rattle": 1.9, "shake": 0.9}[name]  # velocities of SHAKE have order 1


@pytest.mark.parametrize("name", [*PAIRS, *MURUA, "murua-ggl-2"])
def test_order_of_the_estimate_of_the_error(name):
    problem, steps = lv.problems.load("spherical-pendulum"), [0.02, 0.015, 0.01, 0.0075]
    scheme, system, state = lv.schemes.get(name), problem.model, problem.reference(0.4)
    e, k, found = scheme.equations(system).to_single_graph(), system.parameter_vector(), []
    for h in steps:
        z = e.layout.pack(initial_state(system, state["q"], state["v"], k, project=True).values)
        c = np.concatenate([[h, 0.0], k])
        x, _, trouble, *_ = ReferenceSolver(e).solve(e.initial_guess_function(z, c).full().ravel(), z, c)
        assert trouble is None
        found.append(np.linalg.norm(estimated_error(e, x, z, c)))
    assert abs(measured_order(steps, found) - 1 - scheme.error_order) < 0.1


@pytest.mark.parametrize("name", [PAIRS[1], PAIRS[2], "murua-3", "murua-ggl-2"])
def test_controlled_steps_on_constraints(name):
    problem = lv.problems.load("spherical-pendulum")
    exact, errors = problem.reference(2.0)["q"], []
    for k in (4, 6, 8):
        run = lv.simulate(problem, scheme=name, h=1e-3, t_end=2.0, control=lv.StepControl(tolerance=10.0**-k))
        errors.append(np.abs(run.q[-1] - exact).max())
    assert errors[1] < errors[0] / 5 and errors[2] < errors[1] / 5 and errors[2] < 1e-7


# -- two ways to the same ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("problem", ["spherical-pendulum", "double-four-bar", "car-axis"])
def test_rattle_is_the_pair_with_two_stages(problem):
    problem = lv.problems.load(problem)
    a, b, c = (lv.simulate(problem, scheme=s, h=1e-3, t_end=0.2) for s in ("rattle", PAIRS[0], "shake"))
    assert np.abs(a.q - b.q).max() < 1e-13 and np.abs(a.v - b.v).max() < 1e-11
    assert np.abs(a.q - c.q).max() < 1e-13 and np.abs(a.v - c.v).max() > 1e-5


def test_without_constraints_they_are_gauss_and_the_pair():
    """Murua's method is then Gauss', for M(q) too, and the pair with two stages is that of Störmer and Verlet."""
    plane = lv.System(
        "r phi",
        kinetic=lambda q, v: 0.5 * (v[0] ** 2 + q[0] ** 2 * v[1] ** 2),
        potential=lambda q: 2 * (q[0] - 1) ** 2 - q[0] * m.cos(q[1]),
    )
    runs = [
        lv.simulate(plane, [1.2, 0.7], [0.1, 0.4], scheme=s, h=0.05, t_end=2)
        for s in ("gauss-2", "murua-2", "murua-ggl-2")
    ]
    for other in runs[1:]:
        assert np.abs(other.q - runs[0].q).max() < 1e-13 and np.abs(other.v - runs[0].v).max() < 1e-13
    q, v, h = 1.0, 0.3, 0.1
    spring = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: q[0] ** 4)
    run = lv.simulate(spring, [q], [v], scheme=PAIRS[0], h=h, t_end=1.0)
    for i in range(11):
        assert abs(run.q[i, 0] - q) + abs(run.v[i, 0] - v) < 1e-13
        half = v - h / 2 * 4 * q**3
        q += h * half
        v = half - h / 2 * 4 * q**3


# -- structure --------------------------------------------------------------------------------------------------------
def sphere(varying):
    """Three coordinates on an ellipsoid; M may depend on q."""
    return lv.System(
        "x y z",
        mass=lambda q: np.diag([1.0, 2.0, 1.5]) + (np.outer(q, q) if varying else 0),
        potential=lambda q: q[2] + 0.3 * q[0] ** 2 * q[1],
        constraints=lambda q: [q[0] ** 2 + 2 * q[1] ** 2 + 0.5 * q[2] ** 2 - 1],
    )


Q0, V0 = np.array([0.6, 0.4, np.sqrt(2 * (1 - 0.36 - 0.32))]), np.array([0.5, -0.2, 0.0])
V0 = V0 - (g := np.array([1.2, 1.6, Q0[2]])) * (g @ V0) / (g @ g)


@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize("name", [*PAIRS, "murua-1", "murua-2", "murua-ggl-2", "radau-iia-2", "lobatto-iiic-3"])
def test_symplectic_and_symmetric_on_constraints_as_declared(name, varying):
    scheme, system = lv.schemes.get(name), sphere(varying)
    symplectic = lv.study.symplecticity_defect(system, name, Q0, V0, 0.2)
    symmetric = lv.study.reversibility_defect(system, name, Q0, V0, 0.2)
    assert symplectic < 1e-12 if scheme.symplectic else symplectic > 1e-8
    if scheme.symmetric and "ggl" not in name:
        assert symmetric < 1e-12
    elif not scheme.symmetric:
        assert symmetric > 1e-7


@pytest.mark.parametrize("name", PAIRS)
def test_both_levels_of_constraints_and_momentum_of_the_pair(name):
    run = lv.simulate(lv.problems.load("spherical-pendulum"), scheme=name, h=0.02, t_end=200.0)
    assert run.summary.max_constraint < 1e-15 and run.summary.max_velocity_constraint < 5e-15
    assert run.summary.momentum_drift["L3"] < 1e-12
    energy = run.observe("total_energy")
    assert np.ptp(energy) > 1e-11  # not conserved, but without drift
    assert abs(np.polyfit(run.t, energy, 1)[0]) * 200 < 0.1 * np.ptp(energy)


@pytest.mark.parametrize("s", [1, 2, 3])
def test_drift_of_muruas_method_and_none_with_ggl(s):
    problem = lv.problems.load("double-pendulum")
    plain, ggl = (
        lv.simulate(problem, scheme=f"{name}-{s}", h=0.01 * s**1.5, t_end=60.0) for name in ("murua", "murua-ggl")
    )
    assert plain.summary.max_velocity_constraint < 1e-12 and ggl.summary.max_velocity_constraint < 1e-12
    assert ggl.summary.max_constraint < 1e-14
    gap = np.abs(plain.observe("constraint")).max(axis=1)
    assert gap.max() > 3 * gap[:20].max() and gap.max() > 1e-7  # it grows


def stages_of(name, problem, h):
    """One step: velocities, positions, multipliers of the stages, energies before and after."""
    scheme, system = lv.schemes.get(name), problem.model
    k = system.parameter_vector()
    _, q0, v0 = start_of(problem)
    e = scheme.equations(system).to_single_graph()
    z = e.layout.pack(initial_state(system, q0, v0, k, project=True).values)
    c = np.concatenate([[h, 0.0], k])
    x, _, trouble, *_ = ReferenceSolver(e).solve(e.initial_guess_function(z, c).full().ravel(), z, c)
    assert trouble is None
    s, n, A = scheme.coefficients.s, system.n, scheme.coefficients.gauss
    D = x[: s * n].reshape(s, n)
    q0, v0 = z[:n], z[n : 2 * n]
    Q = q0 + h * (A.c[:, None] * v0 + D)
    slopes = v0 + np.linalg.inv(A.A) @ D
    L = x[-(2 if "ggl" in name else 1) * s :].reshape(-1, s)
    V = v0 + x[s * n : 2 * s * n].reshape(s, n) if "ggl" in name else slopes
    end = e.final_state_function(x, z, c).full().ravel()
    return Q, V, L, A.b, (q0, v0), (end[:n], end[n : 2 * n])


@pytest.mark.parametrize("name", MURUA + GGL)
def test_energy_defect_of_muruas_method(name):
    """Symank 2025 (6.15) with the sign of a force -G^T lam: ``H1 - H0 = -h sum_i b_i L_i G(Q_i) V_i``, here exactly.

    The energy of the pendulum is quadratic. With GGL, ``h sum_i b_i dV/dq . G^T Mu_i`` is added.
    """
    problem, h = lv.problems.load("pendulum"), 0.05
    Q, V, L, b, (q0, v0), (q1, v1) = stages_of(name, problem, h)
    change = (v1 @ v1 - v0 @ v0) / 2 + 9.81 * (q1[1] - q0[1])
    defect = -h * sum(b[i] * L[0, i] * (Q[i] @ V[i]) for i in range(len(b)))
    if "ggl" in name:
        defect += h * sum(b[i] * 9.81 * Q[i, 1] * L[1, i] for i in range(len(b)))
    assert abs(change) > 1e-13 and abs(change - defect) < max(2e-15, 1e-9 * abs(change))


# -- benchmarks -------------------------------------------------------------------------------------------------------
BENCHMARKS = {"andrews-squeezer": 0.03, "car-axis": 3.0}


@pytest.mark.parametrize("problem", BENCHMARKS)
@pytest.mark.parametrize(("name", "steps"), [(PAIRS[2], 600), ("murua-3", 900), ("radau-iia-4", 600)])
def test_benchmarks_to_nine_digits(problem, name, steps, reference):
    """Against the numbers of the test set, or better ones: of the squeezer, those are good to 1.4e-9 only."""
    known = reference(problem.replace("-", "_"))
    run = lv.simulate(lv.problems.load(problem), scheme=name, h=BENCHMARKS[problem] / steps, every=10**6)
    assert abs(run.t[-1] - BENCHMARKS[problem]) < 1e-15
    assert np.abs(run.q[-1] - known.get("computed", known["published"])["q"]).max() < 1e-9
    assert np.abs(run.q[-1] - known["published"]["q"]).max() < 1.5e-9


# -- vanishing masses -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("light", ["m1", "m2"])
@pytest.mark.parametrize("name", ["murua-2", "murua-ggl-2", "radau-iia-3"])
def test_double_pendulum_with_a_mass_down_to_zero(name, light):
    """The distance to the motion without the mass falls with it, down to round-off, in positions and velocities."""
    heavy = {"m1": "m2", "m2": "m1"}[light]

    def run(mass):
        problem = lv.problems.load("double-pendulum", **{light: mass, heavy: 1.0}, kappa=0.01)
        return lv.simulate(problem, scheme=name, h=0.01, t_end=1.0)

    limit, distances = run(0.0), {"q": [], "v": []}
    for mass in (1e-6, 1e-9, 1e-12, 1e-20, 1e-40):
        found = run(mass)
        for key, values in distances.items():
            values.append(np.abs(getattr(found, key) - getattr(limit, key)).max())
    for values in distances.values():
        assert values[1] < 2e-3 * values[0] and values[2] < 2e-3 * values[1]
        assert values[3] < 1e-10 and values[4] < 1e-12


def test_without_mass_the_pair_says_why_not():
    problem = lv.problems.load("double-pendulum", m1=1.0, m2=0.0, kappa=0.01)
    for name in (*PAIRS, "rattle"):
        with pytest.raises(
            lv.InputError, match=r"needs a regular mass matrix .* the velocity at the end of a step are undetermined"
        ):
            lv.simulate(problem, scheme=name)


@pytest.mark.parametrize(("name", "limit"), [(PAIRS[0], 2.0), (PAIRS[1], np.sqrt(8.0)), (PAIRS[2], 3.1127)])
def test_the_pair_is_stable_up_to_a_step(name, limit):
    """On ``q'' = -w^2 q``, as explicit methods are: why a small mass on a given spring needs small steps."""
    spring = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 0.5 * q[0] ** 2)

    def growth(h):
        runs = [lv.simulate(spring, [q], [v], scheme=name, h=h, t_end=h) for q, v in ((1.0, 0.0), (0.0, 1.0))]
        step = np.array([[run.q[-1, 0], run.v[-1, 0]] for run in runs]).T
        return np.abs(np.linalg.eigvals(step)).max()

    assert abs(growth(0.99 * limit) - 1) < 1e-12 and growth(1.01 * limit) > 1.001


@pytest.mark.parametrize("h", [0.05, 0.3])
def test_the_pair_is_unstable_without_mass(h):
    """On ``m v' = -x - v`` with nearly no m, errors of momenta grow by ``h + sqrt(1 + h^2)`` in every step."""
    damped = lv.System(
        "x",
        kinetic=lambda v: 0.5e-12 * v[0] ** 2,
        potential=lambda q: 0.5 * q[0] ** 2,
        dissipation=lambda v: 0.5 * v[0] ** 2,
    )
    with pytest.raises(lv.IntegrationError, match="blew up") as error:
        lv.simulate(damped, [1.0], [-1.0], scheme=PAIRS[0], h=h, t_end=400 * h)
    run = error.value.result
    assert abs(run.q[-1, 0] / run.q[-2, 0] + h + np.sqrt(1 + h**2)) < 1e-4
    assert abs(lv.simulate(damped, [1.0], [-1.0], scheme="murua-2", h=h, t_end=400 * h).q[-1, 0]) < 1e-6


def test_small_masses_with_the_pair_and_with_steps_that_fit_them():
    """Steps that scale with the mass are solved: no mass is inverted."""
    for mass in (1e-4, 1e-6, 1e-8):
        problem = lv.problems.load("double-pendulum", m1=mass, m2=1.0, kappa=0.01)
        h = 0.1 * np.sqrt(mass)
        pair, other = (lv.simulate(problem, scheme=s, h=h, t_end=500 * h) for s in (PAIRS[1], "radau-iia-3"))
        assert np.abs(pair.q - other.q).max() < 1e-5 * np.ptp(other.q)
