"""Pairs of Runge-Kutta methods on two-part systems and any H(q, p) with constraints (Symank sect. 3.1, 6.1, 6.2)."""

import functools

import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m


# -- x' = f(x, y), y' = g(x, y) ---------------------------------------------------------------------------------------
def hunt(**more):
    return lv.FirstOrder("a b", rhs=lambda x: [x[0] * (1 - x[1]), x[1] * (x[0] - 1)], **more)


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("lobatto-iiia-iiib-2", 2),
        ("lobatto-iiia-iiib-3", 4),
        ("partitioned:lobatto-iiib-2,lobatto-iiia-2", 2),
        ("partitioned:lobatto-iiib-3,lobatto-iiic-3", 4),
        ("partitioned:gauss-2,gauss-2", 4),
    ],
)
def test_orders_on_two_parts(name, order):
    exact, steps, errors = lv.simulate(hunt(), x0=[2.0, 1.0], scheme="taylor", t_end=3.0), (0.2, 0.15, 0.1, 0.075), []
    assert lv.schemes.get(name).order == order
    for h in steps:
        run = lv.simulate(hunt(partition="b"), x0=[2.0, 1.0], scheme=name, h=h, t_end=3.0)
        errors.append(np.abs(run.x[-1] - exact.x[-1]).max())
    assert abs(measured_order(steps, errors) - order) < 0.1


def test_the_parts_make_a_difference():
    """One method twice is that method; two parts of Hamilton's equations are what a Hamiltonian has; others differ."""
    start = dict(x0=[2.0, 1.0], h=0.1, t_end=2.0)
    both, plain = (
        lv.simulate(hunt(partition="b"), scheme=s, **start) for s in ("partitioned:gauss-2,gauss-2", "gauss-2")
    )
    assert np.abs(both.x - plain.x).max() < 1e-13
    one, other = (lv.simulate(hunt(partition=part), scheme="lobatto-iiia-iiib-2", **start) for part in "ab")
    assert np.abs(one.x - other.x).max() > 1e-3
    mixed = lv.Hamiltonian("q", hamiltonian=lambda q, p: p[0] ** 2 * (1 + q[0] ** 2) / 2 + q[0] ** 4)
    parts = lv.FirstOrder(
        "q p", rhs=lambda x: [x[1] * (1 + x[0] ** 2), -(x[1] ** 2) * x[0] - 4 * x[0] ** 3], partition=["p"]
    )
    for name in ("lobatto-iiia-iiib-3", "partitioned:lobatto-iiib-2,lobatto-iiia-2"):
        a = lv.simulate(mixed, q0=[0.5], p0=[0.7], scheme=name, h=0.1, t_end=3.0)
        b = lv.simulate(parts, x0=[0.5, 0.7], scheme=name, h=0.1, t_end=3.0)
        assert np.abs(np.hstack([a.q, a.p]) - b.x).max() < 1e-13
    assert lv.study.symplecticity_defect(mixed, name, q=[0.5], p=[0.7], h=0.1) < 1e-14
    loose = "partitioned:lobatto-iiib-3,lobatto-iiic-3"
    assert lv.study.symplecticity_defect(mixed, loose, q=[0.5], p=[0.7], h=0.1) > 1e-8


def test_invariants_of_both_parts():
    """A pair that is symplectic keeps invariants ``x^T D y`` (Symank 2025 6.2.3), and not others."""
    turning = lv.FirstOrder(
        "x y u v",
        rhs=lambda x: [x[2], x[3], -x[0] * (1 + x[0] ** 2 + x[1] ** 2), -x[1] * (1 + x[0] ** 2 + x[1] ** 2)],
        partition="u v",
        invariants=dict(turn=lambda x: x[0] * x[3] - x[1] * x[2]),
    )
    kept, lost = (
        lv.simulate(turning, x0=[1.0, 0.2, -0.3, 0.8], scheme=name, h=0.1, t_end=50.0).summary.momentum_drift["turn"]
        for name in ("lobatto-iiia-iiib-3", "partitioned:lobatto-iiib-3,lobatto-iiic-3")
    )
    assert kept < 1e-13 and lost > 1e-6


def test_steps_with_a_tolerance_on_two_parts():
    exact = lv.simulate(hunt(), x0=[2.0, 1.0], scheme="taylor", t_end=3.0)
    control = lv.StepControl(tolerance=1e-7)
    run = lv.simulate(hunt(partition="b"), x0=[2.0, 1.0], scheme="lobatto-iiia-iiib-4", t_end=3.0, control=control)
    assert run.statistics.steps <= 25 and np.abs(run.x[-1] - exact.x[-1]).max() < 1e-8
    times = [0.4, 1.3, 2.6]
    assert np.abs(run.at(times).x - exact.at(times).x).max() < 5e-6


@pytest.mark.parametrize("methods", ["gauss-2,radau-iia-2", "radau-ia-2,radau-iia-2", "lobatto-iiib-3,lobatto-iiic-3"])
def test_order_of_pairs_by_rooted_trees(methods):
    """Pairs with different nodes have the order that bicoloured trees say, measured on a system in two parts."""
    scheme = lv.schemes.get(f"partitioned:{methods}")
    exact = lv.simulate(hunt(), x0=[2.0, 1.0], scheme="taylor", t_end=1.0)
    steps = [0.1 / 2**i for i in range(4)]
    runs = [lv.simulate(hunt(partition="b"), x0=[2.0, 1.0], scheme=scheme.name, h=h, t_end=1.0) for h in steps]
    errors = [np.abs(run.x[-1] - exact.x[-1]).max() for run in runs]
    assert measured_order(steps, errors) == pytest.approx(scheme.order, abs=0.15)


def test_murua_with_index_one_equations_that_contain_multipliers():
    """A pendulum with a lossy force that follows the rod force; order 2s in x, against the equations without y."""

    def forces(x, y):
        return [x[2], x[3], -x[0] * y[1] - y[0] * x[2], -9.81 - x[1] * y[1] - y[0] * x[3]]

    def rates(x, z):
        return forces(x, [0.1 * z + 0.05 * x[0], z])

    network = lv.FirstOrder(
        "a b va vb",
        algebraic="loss rod",
        rhs=lambda x, y: forces(x, y),
        constraints=lambda x, y: [y[0] - 0.1 * y[1] - 0.05 * x[0], x[0] * x[2] + x[1] * x[3]],
    )

    def reduced(t, x):
        # the rod force follows from the derivative of the constraint, which is affine in it
        free, unit = (np.array(rates(x, z)) for z in (0.0, 1.0))
        slope = lambda f: x[0] * f[2] + x[1] * f[3] + x[2] ** 2 + x[3] ** 2  # noqa: E731
        return rates(x, slope(free) / (slope(free) - slope(unit)))

    start = [0.8, -0.6, 0.6, 0.8]
    end = solve_ivp(reduced, (0, 1), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    for s, order in ((1, 2), (2, 4)):
        steps = [0.1 / 2**i for i in range(4)]
        runs = [lv.simulate(network, x0=start, scheme=f"murua-{s}", h=h, t_end=1.0) for h in steps]
        errors = [np.abs(run.x[-1] - end).max() for run in runs]
        assert measured_order(steps, errors) == pytest.approx(order, abs=0.2)
        assert np.abs(run_constraint(runs[0])).max() < 1e-12


def run_constraint(run):
    """The velocity along the rod."""
    return run.x[:, 0] * run.x[:, 2] + run.x[:, 1] * run.x[:, 3]


def test_what_makes_no_pair():
    for name, words in (
        ("partitioned:gauss-2,stormer-verlet", "is not a Runge-Kutta method"),
        ("partitioned:gauss-2,gauss-3", "must have equally many stages"),
    ):
        with pytest.raises(lv.InputError, match=words):
            lv.schemes.get(name)
    with pytest.raises(lv.InputError, match="a FirstOrder with a `partition`"):
        lv.simulate(hunt(), x0=[2.0, 1.0], scheme="partitioned:gauss-2,gauss-2", h=0.1, t_end=1.0)
    for partition, words in (("c", "unknown state 'c'"), ("a b", "there is no first part"), (3, "must name states")):
        with pytest.raises(lv.InputError, match=words):
            hunt(partition=partition)
    with pytest.raises(lv.ModelError, match="no mass matrix"):
        hunt(partition="b", mass=[[1, 0], [0, 1]])


# -- H(q, p) with constraints -----------------------------------------------------------------------------------------
def energy(q, p):
    """Neither separable nor quadratic: a mass that depends on the place, momenta linearly and to the fourth power."""
    return (
        p @ p / (2 * (1 + q[1] ** 2))
        + 0.2 * (p[0] * q[1] - p[1] * q[0]) * q[2]
        + 0.05 * (p @ p) ** 2
        + 3 * q[2]
        + 0.5 * m.sin(q[0])
    )


@functools.cache
def sphere(formulation="index-3"):
    return lv.ConstrainedHamiltonian(
        "x y z", hamiltonian=energy, constraints=lambda q: [(q @ q - 1) / 2], formulation=formulation
    )


@functools.cache
def start():
    run = lv.simulate(
        sphere(), q0=[0.6, 0.0, -0.8], p0=[0.3, 0.5, -0.2], project=True, scheme="radau-iia-2", h=1e-3, t_end=1e-3
    )
    return dict(q0=run.x[0, :3], p0=run.x[0, 3:])


@functools.cache
def moved():
    return lv.simulate(sphere("ggl"), **start(), scheme="radau-iia-6", h=0.02, t_end=1.0)


@pytest.mark.parametrize(
    ("name", "formulation", "order", "multipliers"),
    [
        ("lobatto-iiia-iiib-2", "index-3", 2, 2),
        ("lobatto-iiia-iiib-3", "index-3", 4, 4),
        ("radau-iia-3", "index-3", 3, 2),
        ("radau-iia-2", "ggl", 3, 2),
        ("murua-2", "index-2", 4, 2),
        ("murua-2", "ggl", 4, 2),
    ],
)
def test_orders_with_constraints(name, formulation, order, multipliers):
    steps, errors, forces = (0.1, 0.0625, 0.05, 0.04), [], []
    for h in steps:
        run = lv.simulate(sphere(formulation), **start(), scheme=name, h=h, t_end=1.0)
        errors.append(np.abs(run.x[-1] - moved().x[-1]).max())
        forces.append(abs(run.y[-1, 0] - moved().y[-1, 0]))
    assert abs(measured_order(steps, errors) - order) < 0.1
    assert abs(measured_order(steps, forces) - multipliers) < 0.1


def on_the_sphere(angles, momenta):
    """Coordinates of the sphere, and the momenta that belong to them: canonical on it."""
    (a, b), (pa, pb) = angles, momenta
    q = np.array([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)])
    by_a = np.array([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), -np.sin(a)])
    by_b = np.array([-np.sin(a) * np.sin(b), np.sin(a) * np.cos(b), 0.0])
    return q, pa * by_a + pb * by_b / np.sin(a) ** 2


def test_the_pair_is_symplectic_on_the_constraints():
    """``dq wedge dp`` of two tangents at the start is that at the end; Radau's method on the same equations differs.

    Constraints on velocities are those of dH/dp, which is not along p here: momenta are moved onto them.
    """
    step = lv.prepare(sphere(), scheme="lobatto-iiia-iiib-3", h=0.2)
    other = lv.prepare(sphere(), scheme="radau-iia-3", h=0.2)

    def place(s):
        q, p = on_the_sphere(s[:2], s[2:])
        return step.run(q0=q, p0=p, t_end=0.2, project=True).x[0]

    def end(s, prepared):
        first = place(s)
        return prepared.run(q0=first[:3], p0=first[3:], t_end=0.2).x[-1]

    s, d = np.array([1.9, 0.3, 0.4, 0.5]), 1e-3
    unit = np.eye(4)

    def tangents(f):
        return [(8 * (f(s + d * u) - f(s - d * u)) - (f(s + 2 * d * u) - f(s - 2 * d * u))) / (12 * d) for u in unit]

    def form(a, b):
        return a[:3] @ b[3:] - a[3:] @ b[:3]

    before = tangents(place)
    defects = []
    for prepared in (step, other):
        after = tangents(lambda at, prepared=prepared: end(at, prepared))
        pairs = [(i, j) for i in range(4) for j in range(i)]
        defects.append(max(abs(form(after[i], after[j]) - form(before[i], before[j])) for i, j in pairs))
    assert max(abs(form(before[i], before[j])) for i in range(4) for j in range(i)) > 0.5
    assert defects[0] < 1e-8 and defects[1] > 1e-5


def test_both_levels_at_round_off_and_energy_without_drift():
    run = lv.simulate(sphere(), **start(), h=0.05, t_end=200.0)
    assert run.info.scheme == "lobatto-iiia-iiib-3"
    assert run.summary.max_constraint < 1e-13 and run.summary.max_velocity_constraint < 1e-12
    off = np.abs(run.observe("total_energy") - run.observe("total_energy")[0])
    assert off[-1000:].max() < 2 * off[:1000].max() and off.max() < 1e-3
    drifting = lv.simulate(sphere("index-2"), **start(), scheme="radau-iia-2", h=0.05, t_end=50.0)
    assert drifting.summary.max_constraint > 1e-6  # constraints on velocities alone are not those on positions


def test_the_same_as_a_system():
    """For a separable H the steps equal those of the pair on a System."""
    system = lv.System(
        "x y", kinetic=lambda v: v @ v, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )
    model = lv.ConstrainedHamiltonian(
        "x y", hamiltonian=lambda q, p: p @ p / 4 + 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )
    a = lv.simulate(system, [1.0, 0.0], [0.0, 0.5], scheme="lobatto-iiia-iiib-3", h=0.05, t_end=2.0)
    b = lv.simulate(model, q0=[1.0, 0.0], p0=[0.0, 1.0], h=0.05, t_end=2.0)
    assert np.abs(np.hstack([a.q, a.p]) - b.x).max() < 1e-12 and np.abs(a.multipliers - b.y)[1:].max() < 1e-11


def test_forces_and_moving_constraints_have_their_work():
    """A bead on a ring that is lifted, with friction: what is supplied is what the energy changes by."""
    model = lv.ConstrainedHamiltonian(
        "x y",
        hamiltonian=lambda q, p: p @ p / 2 + 9.81 * q[1],
        constraints=lambda q, t: [(q[0] ** 2 + (q[1] - 0.1 * m.sin(t)) ** 2 - 1) / 2],
        forces=lambda v: -0.1 * v,
    )
    steps, gaps = [0.04, 0.03, 0.02, 0.015], []
    for h in steps:
        run = lv.simulate(model, q0=[1.0, 0.0], p0=[0.0, 0.3], project=True, h=h, t_end=1.2)
        H = run.observe("total_energy")
        gaps.append(abs(H[-1] - H[0] - run.supplied_energy[-1]))
        assert run.summary.max_constraint < 1e-14
    assert abs(run.supplied_energy[-1]) > 0.05 and abs(measured_order(steps, gaps) - 4) < 0.2


def test_starts_are_checked():
    with pytest.raises(lv.InputError, match="constraint 0 is violated by"):
        lv.simulate(sphere(), q0=[0.5, 0.0, -0.8], p0=[0.0, 0.0, 0.0], h=0.1, t_end=1.0)
    with pytest.raises(lv.InputError, match="the time derivative of constraint 0 is violated by"):
        lv.simulate(sphere(), q0=[0.6, 0.0, -0.8], p0=[1.0, 0.0, 0.0], h=0.1, t_end=1.0)
    with pytest.raises(lv.InputError, match="needs the formulation 'index-3'"):
        lv.simulate(sphere("ggl"), **start(), scheme="lobatto-iiia-iiib-3", h=0.1, t_end=1.0)
    with pytest.raises(lv.ModelError, match="does not depend on the momenta"):
        lv.ConstrainedHamiltonian("x", hamiltonian=lambda q: q[0], constraints=lambda q: [q[0]])


# -- what is within a step --------------------------------------------------------------------------------------------
def test_stages_and_multipliers_of_steps():
    run = lv.simulate(sphere(), **start(), h=0.05, t_end=1.0)
    inner = run.step_values()
    assert inner.Q1.shape == (20, 3) and inner.L3.shape == (20, 1) and np.allclose(inner.h, 0.05)
    assert np.abs(np.einsum("ij,ij->i", inner.Q2, inner.Q2) - 1).max() < 1e-13  # stages are on the constraint
    assert np.abs(inner.Q3 - run.x[1:, :3]).max() < 1e-13 and np.abs(inner.Q1 - run.x[:-1, :3]).max() < 1e-14
    few = run.step_values(["P2", "L1"], steps=[3, 7])
    assert set(few) == {"t", "h", "P2", "L1"} and np.array_equal(few.P2, inner.P2[[3, 7]])
    assert np.array_equal(run.step_values("P2", steps=7).P2, inner.P2[[7]])
    for steps in ([20], [0.5], [[1, 2]], -1):
        with pytest.raises(lv.InputError, match="numbered from 0 to 19"):
            run.step_values(steps=steps)
    for wrong, words in ((dict(names="Q9"), "a step has no 'Q9'"), (dict(steps=[1, [2, 3]]), "steps must be")):
        with pytest.raises(lv.InputError, match=words):
            run.step_values(**wrong)


@pytest.mark.parametrize("name", ["ggl-variational", "ggl-classic", "ggl-em", "murua-ggl-2"])
def test_multipliers_gamma_of_the_ggl_schemes(name):
    """They vanish with the step size: there is nothing for them to do along the motion itself."""
    problem, largest, steps = lv.problems.load("simple-pendulum"), [], [0.02, 0.01, 0.005, 0.0025]
    which = "M1" if name.startswith("murua") else "gam"
    for h in steps:
        run = lv.simulate(problem, scheme=name, h=h, t_end=0.5)
        largest.append(np.abs(run.step_values(which)[which]).max())
    assert largest[0] > 1e-12 and measured_order(steps, largest) > 0.9


def test_stages_of_runge_kutta_methods():
    swing = lv.FirstOrder("a w", rhs=lambda x: [x[1], -m.sin(x[0])])
    run = lv.simulate(swing, x0=[1.0, 0.0], scheme="radau-iia-3", h=0.1, t_end=1.0)
    inner = run.step_values()
    assert np.abs(inner.X3 - run.x[1:]).max() < 1e-15
    assert np.abs(inner.slope2 - np.stack([inner.X2[:, 1], -np.sin(inner.X2[:, 0])], axis=1)).max() < 1e-13
    system = lv.problems.load("simple-pendulum")
    run = lv.simulate(system, scheme="radau-iia-3", h=0.05, t_end=0.5)
    inner = run.step_values()
    assert np.abs(inner.Q3 - run.q[1:]).max() < 1e-14 and np.abs(inner.L3 - run.multipliers[1:]).max() < 1e-10
    with pytest.raises(lv.InputError, match="has no stage values"):
        lv.simulate(lv.problems.load("kepler"), scheme="stormer-verlet", h=0.01, t_end=0.1).step_values()
    with pytest.raises(lv.InputError, match=r"must have stored every step \(every=1\)"):
        lv.simulate(system, scheme="radau-iia-3", h=0.05, t_end=0.5, every=2).step_values()
