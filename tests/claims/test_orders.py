"""Both schemes are of second order: measured against exact solutions, over five step sizes."""

import functools

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
import livens.math as lm

SCHEMES = ("livens-em", "livens-midpoint")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_spring_pendulum_in_both_coordinates(scheme, reference):
    """Problem with M(q), against a solution of 40 digits; the Cartesian twin follows the same motion."""
    exact = next(s for s in reference("spring_pendulum_3d")["solution"] if s["t"] == 1.0)
    steps = [0.01 / 2**i for i in range(5)]
    spherical, cartesian = [], []
    for h in steps:
        q = lv.simulate(lv.problems.load("spring-pendulum-spherical"), scheme=scheme, h=h).q[-1]
        spherical.append(np.linalg.norm(q - [exact["r"], exact["theta"], exact["phi_mod_2pi"]]))
        x = lv.simulate(lv.problems.load("spring-pendulum"), scheme=scheme, h=h).q[-1]
        cartesian.append(np.linalg.norm(x - exact["x"]))
    assert abs(measured_order(steps, spherical) - 2) < 0.1
    assert abs(measured_order(steps, cartesian) - 2) < 0.1
    assert spherical[-1] < 1e-4 and cartesian[-1] < 1e-4  # the same solution, not only a convergent one


@pytest.mark.parametrize("scheme", SCHEMES)
def test_double_four_bar(scheme, reference):
    """30 coordinates, 29 constraints, through singular positions, against the exact motion of one degree of freedom."""
    exact = next(s for s in reference("double_four_bar")["solution"] if s["t"] == 1.0)
    steps = [4e-3 / 2**i for i in range(5)]
    position, velocity = [], []
    for h in steps:
        run = lv.simulate(lv.problems.load("double-four-bar"), scheme=scheme, h=h, t_end=1.0)
        position.append(np.hypot(*(top(run.q[-1]) - [exact["x4"], exact["y4"]])))
        velocity.append(np.hypot(*(top(run.v[-1]) - [exact["vx4"], exact["vy4"]])))
    assert abs(measured_order(steps, position) - 2) < 0.1
    assert abs(measured_order(steps, velocity) - 2) < 0.1


def top(bar):
    """The upper end of the first lower bar, of length 1: P4."""
    return bar[:2] + 0.5 * bar[2:4]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("factor", "key"), [(0.25, "V_quarter"), (0.5, "V_half")])
def test_singular_mass(scheme, factor, key, reference):
    """Order 2 with a singular mass matrix, for the potential as printed and as used in the papers' figures."""
    exact = next(s for s in reference("mass_spring_redundant")[key]["solution"] if s["t"] == 1.0)
    steps = [0.1 / 2**i for i in range(5)]
    errors = []
    for h in steps:
        problem = lv.problems.load("mass-spring-redundant", potential_factor=factor)
        q = lv.simulate(problem, scheme=scheme, h=h, t_end=1.0).q[-1]
        errors.append(np.linalg.norm(q - [exact["x1"], exact["q2"], exact["x2"]]))
    assert abs(measured_order(steps, errors) - 2) < 0.1


@pytest.mark.parametrize("scheme", (*SCHEMES, "livens-variational"))
def test_forces_that_depend_on_time(scheme):
    """A driven and damped oscillator, x'' = -x - x'/e^t + F(t), with an F that makes sin 2t its solution."""
    driven = lv.System(
        "x",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: q @ q / 2,
        forces=lambda q, v, t: [-3 * lm.sin(2 * t) + 2 * lm.exp(-t) * lm.cos(2 * t)],
        dissipation=lambda q, v, t: lm.exp(-t) * v[0] ** 2 / 2,
    )
    steps = [0.1 / 2**i for i in range(5)]
    errors = [
        abs(lv.simulate(driven, [0.0], [2.0], scheme=scheme, h=h, t_end=2.0).q[-1, 0] - np.sin(4.0)) for h in steps
    ]
    assert abs(measured_order(steps, errors) - 2) < 0.1


@functools.cache
def pushed():
    """A pendulum with forces and dissipation that depend on positions and velocities, and where it gets to."""
    system = lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        constraints=lambda q: [(q @ q - 1) / 2],
        forces=lambda q, v: [lm.sin(2 * q[1]) - q[0] ** 2 * v[1], -5 - q[0] * q[1]],
        dissipation=lambda q, v: (1 + q[0] ** 2) * (v @ v) / 10,
    )
    return system, lv.simulate(system, [0.8, -0.6], [0.6, 0.8], scheme="radau-iia-5", h=0.01, t_end=2.0)


@pytest.mark.parametrize(
    ("scheme", "order"),
    {
        **dict.fromkeys(["livens-em", "livens-em-full", "livens-midpoint", "livens-variational", "hamilton-em"], 2),
        **dict.fromkeys(["hamilton-midpoint", "ggl-em", "rattle", "lobatto-iiia-iiib-2", "murua-1", "murua-ggl-1"], 2),
        **dict.fromkeys(["ggl-variational", "ggl-classic", "symplectic-euler"], 1),
    }.items(),
)
def test_forces_that_depend_on_the_state(scheme, order):
    """Positions of the declared order, and multipliers that go to the force of the rod, with its sign."""
    system, end = pushed()
    steps = [0.04 / 2**i for i in range(4)]
    runs = [lv.simulate(system, [0.8, -0.6], [0.6, 0.8], scheme=scheme, h=h, t_end=2.0) for h in steps]
    errors = [np.abs(run.q[-1] - end.q[-1]).max() for run in runs]
    assert abs(measured_order(steps, errors) - order) < 0.1
    apart = [abs(run.multipliers[-1, 0] - end.multipliers[-1, 0]) for run in runs]
    assert apart[-1] < 0.06 < 4.2 < end.multipliers[-1, 0]


@pytest.mark.parametrize("scheme", ["ggl-em", "livens-em", "hamilton-midpoint", "lobatto-iiia-iiib-2", "murua-ggl-1"])
def test_forces_where_the_mass_changes(scheme):
    """Orders in polar coordinates on a curve, with forces that depend on time."""
    system = lv.System(
        "r angle",
        kinetic=lambda q, v: (v[0] ** 2 + q[0] ** 2 * v[1] ** 2) / 2,
        constraints=lambda q: [q[0] - 1 - 0.2 * lm.sin(q[1])],
        forces=lambda q, v, t: [lm.sin(q[1]) * v[1], 2 * lm.sin(3 * t) - 3 * lm.sin(q[1]) * q[0] ** 2],
        dissipation=lambda q, v, t: (1 + lm.cos(t) ** 2) * (1 + q[0] ** 2) * v[1] ** 2 / 10,
    )
    start = dict(q0=[1.0, 0.0], v0=[0.2, 1.0], t_end=2.0)
    end = lv.simulate(system, scheme="radau-iia-5", h=0.01, **start).q[-1]
    steps = [0.04 / 2**i for i in range(4)]
    errors = [np.abs(lv.simulate(system, scheme=scheme, h=h, **start).q[-1] - end).max() for h in steps]
    assert abs(measured_order(steps, errors) - 2) < 0.1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_multipliers_of_the_pendulum(scheme):
    """The multiplier belongs to the interval: at its middle it is the rod's force to second order."""
    problem = lv.problems.load("simple-pendulum")
    steps = [0.01 / 2**i for i in range(4)]
    errors = []
    for h in steps:
        run = lv.simulate(problem, scheme=scheme, h=h, t_end=1.0)
        exact = problem.reference(1.0 - h / 2)
        # m x'' = -lam x - (0, m g): projected on the rod, lam = m (v.v - g y)/l^2
        force = exact["v"] @ exact["v"] - 9.81 * exact["q"][1]
        errors.append(abs(run.multipliers[-1, 0] - force))
    assert abs(measured_order(steps, errors) - 2) < 0.15


def test_reference_solutions_of_the_problems(reference):
    """The solutions that come with the problems are those computed with 40 digits."""
    four_bar = lv.problems.load("double-four-bar")
    for s in reference("double_four_bar")["solution"]:
        exact = four_bar.reference(s["t"])
        assert np.allclose(top(exact["q"]), [s["x4"], s["y4"]], rtol=0, atol=1e-11)
        assert np.allclose(top(exact["v"]), [s["vx4"], s["vy4"]], rtol=0, atol=1e-10)
    pendulum = lv.problems.load("simple-pendulum")
    for t, xy in reference("simple_pendulum")["xy"].items():
        assert np.allclose(pendulum.reference(float(t))["q"], xy, rtol=0, atol=1e-11)
