"""Discrete Lagrangians of the user: order, symplecticity, momenta, the discrete energy, and known schemes."""

import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m

STEPS = [0.1 / 2**i for i in range(4)]


def potential(q):
    return -1 / m.norm(q) + 0.1 * (q @ q)


def straight(weights):
    """The action of the straight path with weights of its start, middle and end."""

    def lagrangian(q0, q1, h, k):
        v = (q1 - q0) / h
        points = (q0, (q0 + q1) / 2, q1)
        return h * (k.m * (v @ v) / 2 - sum(w * potential(q) for w, q in zip(weights, points, strict=True)))

    turns = dict(angular_momentum=lambda q: [-q[1], q[0]])
    return lv.DiscreteLagrangian("x y", lagrangian=lagrangian, parameters=dict(m=1.0), symmetries=turns)


def continuous():
    return lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=potential)


START = dict(q0=[1.0, 0.2], p0=[-0.1, 0.9])


@pytest.mark.parametrize(
    ("weights", "scheme"),
    [((1, 0, 0), "variational:0"), ((0, 1, 0), "implicit-midpoint"), ((0.5, 0, 0.5), "stormer-verlet")],
)
def test_named_schemes_are_discrete_lagrangians(weights, scheme):
    run = lv.simulate(straight(weights), **START, h=0.05, t_end=5.0)
    other = lv.simulate(continuous(), **START, scheme=scheme, h=0.05, t_end=5.0)
    assert np.abs(run.q - other.q).max() < 1e-12 and np.abs(run.p - other.p).max() < 1e-12


@pytest.mark.parametrize(("weights", "order"), [((1, 0, 0), 1), ((1 / 6, 2 / 3, 1 / 6), 2)])
def test_the_order_is_that_of_the_discrete_lagrangian(weights, order):
    end = lv.simulate(continuous(), **START, scheme="gauss-4", h=0.01, t_end=2.0)
    runs = [lv.simulate(straight(weights), **START, h=h, t_end=2.0) for h in STEPS]
    errors = [np.abs(np.r_[run.q[-1] - end.q[-1], run.p[-1] - end.p[-1]]).max() for run in runs]
    assert measured_order(STEPS, errors) == pytest.approx(order, abs=0.1)


def test_the_exact_action_gives_the_exact_motion():
    """A harmonic oscillator, whose action is known: exact for every step size, as is the discrete energy."""
    exact = lambda q0, q1, h: ((q0 @ q0 + q1 @ q1) * m.cos(h) - 2 * (q0 @ q1)) / (2 * m.sin(h))  # noqa: E731
    oscillator = lv.DiscreteLagrangian("x y", lagrangian=exact)
    run = lv.simulate(oscillator, q0=[1.0, 0.0], p0=[0.0, 0.5], h=0.3, t_end=30.0)
    assert np.abs(run.q - np.stack([np.cos(run.t), 0.5 * np.sin(run.t)], axis=1)).max() < 1e-12
    assert np.ptp(run.discrete_energy) < 1e-13 and run.discrete_energy[0] == pytest.approx(0.625)


def test_symplectic_with_momenta_and_bounded_discrete_energy():
    model = straight((1 / 6, 2 / 3, 1 / 6))
    defect = lv.study.symplecticity_defect(model, "discrete-euler-lagrange", START["q0"], p=START["p0"], h=0.1)
    assert defect < 1e-13
    amplitudes = []
    for h in (0.04, 0.02):
        run = lv.simulate(model, **START, h=h, t_end=100.0)
        assert np.ptp(run.observe("angular_momentum")) < 1e-12
        energy = run.discrete_energy
        amplitudes.append(np.ptp(energy))
        assert np.ptp(energy[len(energy) // 2 :]) < 1.1 * np.ptp(energy[: len(energy) // 2])
        v, q_m = (run.q[1:] - run.q[:-1]) / h, (run.q[1:] + run.q[:-1]) / 2
        mean = [[float(w) for w in map(potential_of_numbers, points)] for points in (run.q[:-1], q_m, run.q[1:])]
        values = (v**2).sum(axis=1) / 2 + np.array([1, 4, 1]) @ np.array(mean) / 6
        assert np.abs(energy[1:] - values).max() < 1e-12, "-dL_d/dh, derived by hand"
    assert amplitudes[0] / amplitudes[1] == pytest.approx(4, abs=0.3)


def potential_of_numbers(q):
    return -1 / np.linalg.norm(q) + 0.1 * (q @ q)


def test_files_resume_ensembles_and_gradients(tmp_path):
    problem = lv.problems.load("discrete-pendulum")
    whole = lv.simulate(problem, t_end=4.0)
    lv.simulate(problem, t_end=2.0, out=tmp_path / "part.h5")
    again = lv.resume(tmp_path / "part.h5", t_end=4.0, system=problem.model)
    assert np.array_equal(again.q, whole.q) and np.array_equal(again.discrete_energy, whole.discrete_energy)
    many = lv.ensemble(problem.model, q0=[[1.5], [1.0]], p0=[0.0], h=0.1, t_end=4.0)
    assert np.abs(many.q[0] - whole.q).max() < 1e-12
    assert np.abs(many.discrete_energy[0, :, 0] - whole.discrete_energy).max() < 1e-12
    loss, step = lv.value_and_gradient(lambda q: q[0]), lv.prepare(straight((0, 1, 0)), h=0.05)
    _, by = loss(step, **START, t_end=2.0)

    def last(mass):
        return lv.simulate(straight((0, 1, 0)), **START, h=0.05, t_end=2.0, parameters=dict(m=mass)).q[-1, 0]

    assert by.parameters["m"] == pytest.approx((last(1 + 1e-5) - last(1 - 1e-5)) / 2e-5, rel=1e-6)


# -- forces and constraints --------------------------------------------------------------------------------------------
def damped(drag=0.3):
    """Midpoint action with a drag and a push that depends on time; their impulses are halved between both ends."""

    def lagrangian(q0, q1, h):
        v, q = (q1 - q0) / h, (q0 + q1) / 2
        return h * (v @ v / 2 - q @ q / 2 - (q @ q) ** 2 / 4)

    def forces(q0, q1, h, t, k):
        push = h * (-k.drag * (q1 - q0) / h + 0.2 * m.cos(t + h / 2) * np.array([1.0, -0.5]))
        return [push / 2, push / 2]

    turns = dict(angular_momentum=lambda q: [-q[1], q[0]])
    return lv.DiscreteLagrangian(
        "x y", lagrangian=lagrangian, forces=forces, parameters=dict(drag=drag), symmetries=turns
    )


def damped_rates(t, z):
    q, p = z[:2], z[2:]
    return np.r_[p, -q - (q @ q) * q - 0.3 * p + 0.2 * np.cos(t) * np.array([1.0, -0.5])]


def test_discrete_forces():
    """Order 2, work of the forces, and the change of the momentum map by the impulses (Marsden and West 2001, 3.2)."""
    exact = solve_ivp(damped_rates, (0, 2), np.r_[START["q0"], START["p0"]], "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    runs = [lv.simulate(damped(), **START, h=h, t_end=2.0) for h in STEPS]
    assert measured_order(STEPS, [np.abs(np.r_[r.q[-1], r.p[-1]] - exact).max() for r in runs]) == pytest.approx(
        2, abs=0.1
    )
    # the discrete energy belongs to the middle of a step, the work to its end
    nodal = [(run.discrete_energy[1:-1] + run.discrete_energy[2:]) / 2 for run in runs]
    balances = [np.ptp(energy - run.supplied_energy[1:-1]) for energy, run in zip(nodal, runs, strict=True)]
    assert measured_order(STEPS, balances) == pytest.approx(2, abs=0.1) and np.ptp(runs[-1].supplied_energy) > 0.1
    run, h = runs[0], STEPS[0]
    t_m = (run.t[1:] + run.t[:-1])[:, None] / 2
    push = -0.3 * np.diff(run.q, axis=0) + h * 0.2 * np.cos(t_m) * np.array([1.0, -0.5])
    arm = (run.q[1:] + run.q[:-1]) / 2
    torque = arm[:, 0] * push[:, 1] - arm[:, 1] * push[:, 0]
    assert np.abs(np.diff(run.observe("angular_momentum").ravel()) - torque).max() < 1e-13
    assert not damped().is_invariant("angular_momentum", np.array([0.3]))
    assert "NOT AS GUARANTEED" not in str(run.report(accuracy=False))


def rod(**others):
    """Action of Stoermer-Verlet with the length of the rod as constraint."""

    def lagrangian(q0, q1, h, k):
        v = (q1 - q0) / h
        return h * (v @ v / 2 - k.g * (q0[2] + q1[2]) / 2)

    return lv.DiscreteLagrangian(
        "x y z",
        lagrangian=lagrangian,
        constraints=lambda q: [(q @ q - 1) / 2],
        parameters=dict(g=9.81),
        symmetries=dict(Lz=lambda q: [-q[1], q[0], 0.0]),
        **others,
    )


ROD = dict(q0=[0.8, 0.0, -0.6], p0=[0.0, 1.5, 0.0])


def test_constrained_discrete_lagrangians_are_shake(tmp_path):
    """Positions, multipliers and momenta along the constraints of SHAKE; momentum maps and files."""
    pendulum = lv.System(
        "x y z",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: 9.81 * q[2],
        constraints=lambda q: [(q @ q - 1) / 2],
    )
    run = lv.simulate(rod(), **ROD, h=0.02, t_end=10.0, out=tmp_path / "whole.h5")
    shake = lv.simulate(pendulum, ROD["q0"], ROD["p0"], scheme="shake", h=0.02, t_end=10.0)
    assert np.abs(run.q - shake.q).max() < 1e-12 and np.abs(run.multipliers[1:] - shake.multipliers[1:]).max() < 1e-10
    along = lambda r: r.p - r.q * np.sum(r.p * r.q, axis=1)[:, None]  # noqa: E731
    assert np.abs(along(run) - along(shake)).max() < 1e-12
    assert run.summary.max_constraint < 1e-14 and np.ptp(run.observe("Lz")) < 1e-13
    assert np.abs(run.observe("constraint")).max() < 1e-14
    report = str(run.report(accuracy=False))
    assert report.count("as guaranteed") == 2
    lv.simulate(rod(), **ROD, h=0.02, t_end=5.0, out=tmp_path / "part.h5")
    assert np.array_equal(lv.resume(tmp_path / "part.h5", t_end=10.0, system=rod()).q, run.q)
    members = lv.ensemble(rod(), q0=[ROD["q0"], [0.0, 0.6, 0.8]], p0=ROD["p0"], h=0.02, t_end=1.0)
    assert np.abs(members.q[0] - run.q[:51]).max() < 1e-12


def test_order_and_gradients_with_constraints_and_forces():
    """A damped pendulum in the plane as a bead on a circle, against its angle."""

    def model():
        def lagrangian(q0, q1, h):
            v, q = (q1 - q0) / h, (q0 + q1) / 2
            return h * (v @ v / 2 - 9.81 * q[1])

        return lv.DiscreteLagrangian(
            "x y",
            lagrangian=lagrangian,
            forces=lambda q0, q1, h, k: [-k.c * (q1 - q0) / 2, -k.c * (q1 - q0) / 2],
            constraints=lambda q: [q @ q - 1],
            parameters=dict(c=0.5),
        )

    angle = lambda t, y: [y[1], -9.81 * np.sin(y[0]) - 0.5 * y[1]]  # noqa: E731
    end = solve_ivp(angle, (0, 2), [1.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-13).y[0, -1]
    start = dict(q0=[np.sin(1.0), -np.cos(1.0)], p0=[0.0, 0.0])
    runs = [lv.simulate(model(), **start, h=h, t_end=2.0) for h in STEPS]
    errors = [np.abs(run.q[-1] - [np.sin(end), -np.cos(end)]).max() for run in runs]
    assert measured_order(STEPS, errors) == pytest.approx(2, abs=0.1)
    loss, step = lv.value_and_gradient(lambda q: q[0]), lv.prepare(model(), h=0.05)
    _, by = loss(step, **start, t_end=1.0)

    def last(c):
        return lv.simulate(model(), **start, h=0.05, t_end=1.0, parameters=dict(c=c)).q[-1, 0]

    assert by.parameters["c"] == pytest.approx((last(0.5 + 1e-5) - last(0.5 - 1e-5)) / 2e-5, rel=1e-6)


def test_inconsistent_starts_are_refused_or_projected():
    with pytest.raises(lv.InputError, match=r"a constraint is violated by 0\.18.*project=True"):
        lv.simulate(rod(), q0=[0.8, 0.0, -0.0], p0=ROD["p0"], h=0.02, t_end=1.0)
    run = lv.simulate(rod(), q0=[1.6, 0.0, -1.2], p0=ROD["p0"], h=0.02, t_end=1.0, project=True)
    assert np.abs(run.q[0] - ROD["q0"]).max() < 1e-14
    with pytest.raises(lv.ModelError, match="forces"):
        rod(forces=lambda q0, q1: [q0[0], q1[0]])


def test_bad_discrete_lagrangians_are_refused():
    with pytest.raises(lv.ModelError, match="does not determine q1"):
        lv.DiscreteLagrangian("a", lagrangian=lambda q0, q1, h: h * (q0 @ q0 + q1 @ q1))
    with pytest.raises(lv.ModelError, match="argument 'v'"):
        lv.DiscreteLagrangian("a", lagrangian=lambda q0, v: q0[0] * v)
    with pytest.raises(lv.InputError, match="starts from q0 and p0"):
        lv.simulate(straight((0, 1, 0)), q0=[1.0, 0.2], v0=[0.0, 0.0], h=0.1, t_end=1.0)
    with pytest.raises(lv.InputError, match="no first step"):
        lv.simulate(straight((0, 1, 0)), q0=[0.0, 0.0], p0=[0.0, 0.0], h=0.1, t_end=1.0)
