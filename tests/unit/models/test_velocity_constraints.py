"""Constraints on velocity level: held without work, started from consistently, refused where no scheme has them."""

import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens.models.velocity_constraints import FrictionalConstraint, angle_rate_constraint

SCHEMES = ("livens-em", "livens-midpoint", "livens-em-reduced")


def skate(slope=3.0, **more):
    """A skate on an inclined plane: its point moves only along the blade."""
    return lv.System(
        "x y a",
        kinetic=lambda v: 0.5 * (v[0] ** 2 + v[1] ** 2) + 0.1 * v[2] ** 2,
        potential=lambda q, k: k.slope * q[0],
        velocity_constraints=lambda q, v: [m.sin(q[2]) * v[0] - m.cos(q[2]) * v[1]],
        parameters=dict(slope=slope),
        **more,
    )


START = dict(q0=[0, 0, 0.3], v0=[np.cos(0.3), np.sin(0.3), 1.0])


def exact(t):
    def field(t, y):
        return [y[2] * np.cos(0.3 + t), y[2] * np.sin(0.3 + t), -3 * np.cos(0.3 + t)]

    return solve_ivp(field, (0, t), [0, 0, 1.0], rtol=1e-12, atol=1e-12).y[:2, -1]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_skate_keeps_its_energy_and_comes_back_down(scheme):
    errors, steps = [], [0.04, 0.02, 0.01, 0.005]
    for h in steps:
        run = lv.simulate(skate(), **START, scheme=scheme, h=h, t_end=4.0)
        assert run.summary.max_energy_drift < 1e-12
        errors.append(np.abs(run.q[-1, :2] - exact(4.0)).max())
    assert abs(measured_order(steps, errors) - 2) < 0.1


def test_the_start_must_be_consistent_on_velocity_level():
    with pytest.raises(lv.InputError, match=r"violated on velocity level by .*project=True"):
        lv.simulate(skate(), q0=[0, 0, 0.3], v0=[1, 0, 1], h=0.01, t_end=1)
    run = lv.simulate(skate(), q0=[0, 0, 0.3], v0=[1, 0, 1], h=0.01, t_end=1, project=True)
    assert np.array_equal(run.q[0], [0, 0, 0.3])
    assert run.v[0] == pytest.approx([np.cos(0.3) ** 2, np.sin(0.3) * np.cos(0.3), 1])


def test_schemes_without_them_say_so():
    with pytest.raises(lv.InputError, match=r"gauss-2' needs constraints on positions.*livens-em"):
        lv.simulate(skate(), **START, scheme="gauss-2", h=0.01, t_end=1)


def test_a_constraint_that_moves_does_work():
    """A particle that a belt carries along with growing speed: its energy is what the belt supplies."""
    system = lv.System(
        "x", kinetic=lambda v: v[0] ** 2, velocity_constraints=lambda v, t: [v[0] - m.sin(t)], constraint_names=["belt"]
    )
    assert not system.conservative and skate().conservative
    run = lv.simulate(system, q0=[0], v0=[0], h=0.01, t_end=3)
    assert np.ptp(run.observe("total_energy") - run.supplied_energy) < 1e-13 < np.ptp(run.supplied_energy)
    assert run.q[-1, 0] == pytest.approx(1 - np.cos(3), abs=1e-4)
    assert run.multipliers[-1, 0] == pytest.approx(-2 * np.cos(3), abs=0.02)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_friction_of_a_constraint_takes_the_energy_that_its_path_costs(scheme):
    """A block slides on a plane with friction mu m g, and drags a second one at twice its speed.

    ``(m + 4 m) x'' = -mu m g`` has a closed form, and the friction has done the work ``mu m g x``.
    """
    mu, mass, g = 0.3, 2.0, 9.81
    blocks = lv.System(
        "x y z",
        kinetic=lambda v: mass * (v @ v) / 2,
        potential=lambda q: mass * g * q[1],
        constraints=lambda q: [q[1]],
        velocity_constraints=FrictionalConstraint(lambda v: [v[2] - 2 * v[0]], lambda: [-mu, 0, 0]),
    )
    run = lv.simulate(blocks, q0=[0, 0, 0], v0=[3, 0, 6], scheme=scheme, h=0.05, t_end=2.0)
    x = 3 * run.t - mu * g / 10 * run.t**2
    assert np.abs(run.q - np.stack([x, 0 * x, 2 * x], axis=1)).max() < 1e-12
    assert run.dissipated_energy == pytest.approx(mu * mass * g * x, abs=1e-12)
    assert run.summary.max_energy_drift < 1e-13


def test_angles_are_coupled_over_turns():
    """Two wheels given by points on circles: the exact increments of their angles are in the ratio, after any turns."""
    ratio = -0.37
    circles = lambda q: [(q[0] ** 2 + q[1] ** 2 - 1) / 2, (q[2] ** 2 + q[3] ** 2 - 1) / 2]  # noqa: E731
    system = lv.System(
        "a b c d",
        kinetic=lambda v: v @ v / 2,
        constraints=circles,
        velocity_constraints=angle_rate_constraint(lambda q: list(q), lambda w: [w[1] - ratio * w[0]]),
    )
    run = lv.simulate(system, q0=[1, 0, 1, 0], v0=[0, 9, 0, 9 * ratio], h=0.05, t_end=200.0)
    angles = [np.unwrap(np.arctan2(run.q[:, i + 1], run.q[:, i])) for i in (0, 2)]
    assert angles[0][-1] > 200 * np.pi  # more than a hundred turns
    assert np.abs(angles[1] - ratio * angles[0]).max() < 1e-11 and run.summary.max_energy_drift < 1e-12
    plain = lv.System(
        "a b c d",
        kinetic=lambda v: v @ v / 2,
        constraints=circles,
        velocity_constraints=lambda q, v: [q[2] * v[3] - q[3] * v[2] - ratio * (q[0] * v[1] - q[1] * v[0])],
    )
    drifting = lv.simulate(plain, q0=[1, 0, 1, 0], v0=[0, 9, 0, 9 * ratio], h=0.05, t_end=20.0)
    angles = [np.unwrap(np.arctan2(drifting.q[:, i + 1], drifting.q[:, i])) for i in (0, 2)]
    assert np.abs(angles[1] - ratio * angles[0]).max() > 1e-2  # a constraint on velocities alone loses teeth


def test_steps_of_any_angle():
    """The discrete gradient of an angle is right for tiny turns, none at all, and nearly half a turn per step."""
    for speed, h in ((0.0, 0.1), (1e-9, 0.1), (0.5, 0.1), (25.0, 0.1)):
        system = lv.System(
            "a b x",
            kinetic=lambda v: v @ v / 2,
            constraints=lambda q: [(q[0] ** 2 + q[1] ** 2 - 1) / 2],
            velocity_constraints=angle_rate_constraint(lambda q: [q[0], q[1]], lambda w, v: [w[0] - v[2]]),
        )
        run = lv.simulate(system, q0=[1, 0, 0], v0=[0, speed, speed], h=h, t_end=2.0)
        angle = np.unwrap(np.arctan2(run.q[:, 1], run.q[:, 0]))
        assert np.abs(angle - run.q[:, 2]).max() < 1e-13 * (1 + speed)
        assert np.ptp(run.observe("total_energy")) <= 1e-13 * (1 + speed**2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda v: [v[0] ** 2], "affine in the velocities"),
        (lambda x: [x], "has an argument 'x'"),
        (3.0, "must be a function"),
        (angle_rate_constraint(lambda q: [q[0]], lambda w: [w[0]]), "cosine and sine"),
        (angle_rate_constraint(lambda q: [q[0] ** 3, q[1]], lambda w: [w[0]]), "at most quadratic"),
        (angle_rate_constraint(lambda q: [q[0], q[1]], lambda w: [w[0] ** 2]), "affine"),
    ],
)
def test_what_is_no_constraint_on_velocities(given, words):
    with pytest.raises(lv.ModelError, match=words):
        lv.System("x y", kinetic=lambda v: v @ v, velocity_constraints=given)
