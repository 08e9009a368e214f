"""Guarantees of contacts in motion: momenta and energy to round-off, nonnegative dissipation, Coulomb's limits."""

import functools

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import livens as lv
from livens import contacts
from livens.models.equations_of_motion import equations_of_motion

few = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])


# -- isolated pairs ---------------------------------------------------------------------------------------------------
def colliding(kind, friction=0.0, damping=0.0, law="linear"):
    """Two bodies in free flight that meet off centre, both turning."""
    mb = lv.Multibody()
    a = mb.sphere("a", at=[-0.6, 0.05, 0.1], radius=0.2, mass=1.0)
    shape = a
    if kind == "spheres":
        b = mb.sphere("b", at=[0, 0, 0], radius=0.3, mass=2.0)
        target = b
    elif kind == "box":
        b = mb.box("b", at=[0, 0, 0], size=[0.4, 0.6, 0.5], mass=2.0)
        target = b
    elif kind == "groove":
        b = mb.ring("b", at=[0, 0, 0], axis="y", radius=0.6, tube_radius=0.3, mass=2.0)
        target = contacts.Groove(b)
    else:
        b = mb.rod("b", a=[0, -0.5, 0.1], b=[0.1, 0.5, 0], mass=2.0, radius=0.1)
        c = mb.rod("c", a=[-0.6, -0.1, -0.4], b=[-0.5, 0.2, 0.5], mass=1.0, radius=0.12)
        shape, target = c, b
    mb.contact(shape, target, law=law, stiffness=2e4, dissipation=damping, friction=friction, name="impact")
    first = mb.bodies["c" if kind == "capsules" else "a"]
    mb.initial(first, velocity=[3.0, 0.2, -0.4], omega=[4.0, -7.0, 5.0])
    mb.initial(b, velocity=[-0.5, 0.1, 0.2], omega=[-2.0, 3.0, 6.0])
    return mb


LOSSY = dict(
    friction=contacts.Friction(0.4, slip_tolerance=0.1, spinning=0.02, rolling=0.003, rate_tolerance=1.0), damping=0.05
)


@pytest.mark.parametrize(
    ("kind", "losses"),
    [
        ("groove", {}),
        ("capsules", {}),
        ("spheres", LOSSY),
        ("box", LOSSY),
        pytest.param("groove", LOSSY, marks=pytest.mark.slow),
        pytest.param("capsules", LOSSY, marks=pytest.mark.slow),
    ],
    ids=lambda x: x if isinstance(x, str) else "lossy" if x else "elastic",
)
def test_isolated_pairs_keep_momenta_and_the_balance_of_energy(kind, losses):
    run = colliding(kind, **losses).simulate(t_end=0.4, h=1e-3)
    assert run["impact.normal_force"].max() > 50 and run["impact.normal_force"][-1] == 0  # they have met, and parted
    for momentum in ("linear_momentum", "angular_momentum"):
        values = run.observe(momentum)
        assert np.abs(values - values[0]).max() < 1e-12  # of sizes between 0.3 and 2.5
    assert run.summary.max_energy_drift < 2e-13
    lost = run.dissipated_energy
    if losses:
        assert np.diff(lost).min() >= 0 and lost[-1] > 0.02
        accounts = run.observe("dissipated_energy", by="element")
        assert set(accounts) == {f"impact {word}" for word in ("damping", "sliding", "pivoting", "rolling")}
        assert all(np.diff(account).min() >= -1e-15 and account[-1] > 0 for account in accounts.values())
        assert np.abs(sum(accounts.values()) - lost).max() < 1e-13
        stored = run.observe("potential_energy", by="element")["impact"]
        kinetic = run.observe("kinetic_energy")
        assert np.abs(kinetic + stored + lost - kinetic[0]).max() < 1e-12 * kinetic[0]


@given(st.floats(0.0, 1.5), st.floats(1e-3, 1e-1), st.floats(-20, 20), st.floats(-20, 20), st.floats(-3, 3))
@few
def test_friction_never_gives_energy(coefficient, smooth, spin, turn, speed):
    run = prepared_table().run(
        *table_start(spin, turn, speed),
        h=1e-3,
        t_end=0.3,
        parameters={
            "ball-ground sliding.friction": coefficient,
            "ball-ground sliding.smooth": smooth,
        },
    )
    assert np.diff(run.dissipated_energy).min() >= 0
    energy = run.observe("total_energy")
    assert np.diff(energy).max() < 1e-12 * np.abs(energy).max()


RUBBING = contacts.Friction(0.2, slip_tolerance=1e-3, spinning=0.01)


def table(friction=RUBBING):
    """A ball that lies on a hard table, as deep as its weight presses it."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.1 - 9.81e-7], radius=0.1, mass=1.0)
    mb.contact(ball, mb.ground, stiffness=1e7, friction=friction)
    return mb, ball


@functools.cache
def prepared_table():
    mb, _ = table()
    return lv.prepare(mb.system, scheme="lie-em", h=1e-3)


def table_start(spin, turn, speed):
    mb, ball = table()
    mb.initial(ball, velocity=[speed, 0, 0], omega=[0, spin, turn])
    return mb.assembly.state


# -- Coulomb's limits -------------------------------------------------------------------------------------------------
def test_a_sliding_ball_rolls_in_the_end_with_five_sevenths_of_its_speed():
    """After ``2 v/(7 mu g)``, whatever the friction; sliding loses ``m v^2/7``."""
    mb, ball = table(friction=contacts.Friction(0.2, slip_tolerance=1e-3))
    mb.initial(ball, velocity=[2.0, 0, 0])
    run = mb.simulate(t_end=0.6, h=1e-3)
    when = 2 * 2.0 / (7 * 0.2 * 9.81)
    speed, rate = run["ball.velocity"][:, 0], run["ball.omega"][:, 1]
    assert speed[-1] == pytest.approx(5 / 7 * 2.0, rel=1e-5)
    assert rate[-1] * 0.1 == pytest.approx(speed[-1], rel=1e-5)
    before = run.t < when - 1e-3
    assert speed[before] == pytest.approx(2.0 - 0.2 * 9.81 * run.t[before], abs=1e-4)
    assert run.observe("dissipated_energy", by="element")["ball-ground sliding"][-1] == pytest.approx(4 / 7, rel=1e-5)
    slip = run["ball-ground.slip"][:, 0]
    assert slip[before].min() > 0 and abs(slip[-1]) < 1e-4


def box_on_a_table(slope=0.0, speed=0.0):
    """In the plane; as deep in the table as its weight presses it, and too low to tip."""
    mb = lv.Multibody(planar=True, gravity=9.81 * np.array([np.sin(slope), -np.cos(slope)]))
    box = mb.box("box", at=[0, 0.1 - 9.81 * np.cos(slope) / 2e6], size=[1.0, 0.2], mass=1.0)
    floor = contacts.HalfSpace(mb.ground, normal=[0, 1])
    mb.contact(box, floor, stiffness=1e6, friction=0.3, dissipation=1.0, name="floor")
    mb.initial(box, velocity=[speed, 0])
    return mb


def test_a_box_slides_as_far_as_coulomb_says():
    run = box_on_a_table(speed=1.5).simulate(t_end=0.8, h=1e-3)
    way = run["box.position"][:, 0]
    assert way[-1] == pytest.approx(1.5**2 / (2 * 0.3 * 9.81), rel=2e-3)
    assert abs(run["box.velocity"][-1, 0]) < 1e-5
    assert run.dissipated_energy[-1] == pytest.approx(1.5**2 / 2, rel=1e-3)
    assert run.summary.max_energy_drift < 1e-12


def test_a_box_on_a_slope_sticks_below_the_angle_of_friction_and_slides_above():
    below = box_on_a_table(slope=np.arctan(0.25)).simulate(t_end=0.2, h=1e-3)
    # it creeps with the speed at which smooth friction carries it: tan(slope)/mu = v/sqrt(v^2 + smooth^2)
    ratio = 0.25 / 0.3
    assert below["box.velocity"][-1, 0] == pytest.approx(1e-3 * ratio / np.sqrt(1 - ratio**2), rel=1e-2)
    slope = np.arctan(0.5)
    above = box_on_a_table(slope=slope).simulate(t_end=0.2, h=1e-3)
    expected = 9.81 * (np.sin(slope) - 0.3 * np.cos(slope)) * 0.2
    assert above["box.velocity"][-1, 0] == pytest.approx(expected, rel=2e-2)


def test_spin_about_the_normal_ends_as_pivoting_says():
    """``omega' = -mu g m a/J``."""
    mb, ball = table(friction=contacts.Friction(0.2, spinning=0.01, rate_tolerance=1e-3))
    mb.initial(ball, omega=[0, 0, 10.0])
    run = mb.simulate(t_end=0.5, h=1e-3)
    slowing = 0.2 * 9.81 * 0.01 / (0.4 * 0.1**2)
    assert run["ball.omega"][:, 2] == pytest.approx(np.maximum(10.0 - slowing * run.t, 7.5), abs=1e-3)


def test_a_rolling_ball_is_slowed_by_rolling_resistance():
    """``N rolling`` is the torque against rolling: v' = -5/7 g rolling/r."""
    mb, ball = table(friction=contacts.Friction(0.5, rolling=1e-3))
    mb.initial(ball, velocity=[1.0, 0, 0], omega=[0, 10.0, 0])
    run = mb.simulate(t_end=0.5, h=1e-3)
    slowing = 5 / 7 * 9.81 * 1e-3 / 0.1
    assert run["ball.velocity"][-1, 0] == pytest.approx(1.0 - slowing * 0.5, rel=1e-3)
    mb, ball = table(friction=contacts.Friction(0.5, rolling=1e-3))
    mb.initial(ball, velocity=[0.08, 0, 0], omega=[0, 0.8, 0])  # and where it hardly turns
    assert mb.simulate(t_end=0.5, h=1e-3)["ball.velocity"][-1, 0] == pytest.approx(0.08 - slowing * 0.5, rel=2e-3)


# -- blows ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("law", ["linear", "hertz"])
def test_restitution_of_hunt_and_crossley(law):
    """``c (v0 + v1) = ln((1 + c v0)/(1 - c v1))``, whatever the law."""
    c, speed = 0.4, 1.2
    mb = lv.Multibody()
    ball = mb.sphere("ball", at=[0, 0, 0.101], radius=0.1, mass=1.0)
    mb.contact(ball, mb.ground, law=law, stiffness=1e5 if law == "linear" else 1e7, dissipation=c)
    mb.initial(ball, velocity=[0, 0, -speed])
    after = [mb.simulate(t_end=0.05, h=h)["ball.velocity"][-1, 2] for h in (2e-4, 1e-4)]
    expected = brentq(lambda v: c * (speed + v) - np.log((1 + c * speed) / (1 - c * v)), 0.1, 1.2)
    assert after[1] == pytest.approx(expected, rel=1e-3)
    assert abs(after[1] - expected) < 0.5 * abs(after[0] - expected) + 1e-6


def test_bodies_part_freely_if_they_part_fast():
    """The damping of Hunt and Crossley never pulls: it ends where it is as large as the push, and is continuous."""
    c, depth, stiffness = 0.4, 1e-3, 1e5
    mb = lv.Multibody()
    ball = mb.sphere("ball", at=[0, 0, 0.1 - depth], radius=0.1, mass=1.0)
    mb.contact(ball, mb.ground, stiffness=stiffness, dissipation=c)
    d, q, k = equations_of_motion(mb.system), mb.assembly.state[0], mb.system.parameter_vector()
    loss = d.function(ca.vertcat(d.R, ca.gradient(d.R, d.v)))
    up = np.eye(mb.system.n)[2]
    for speed in (-3.0, -0.5, 0.0, 1.0, 2.4999, 2.5001, 4.0):  # of the ball, upwards; 1/c = 2.5
        R, *slope = np.array(loss(q, speed * up, 0 * up, 0, k)).ravel()
        assert slope[2] == pytest.approx(stiffness * depth * min(c * speed, 1.0), rel=1e-9, abs=1e-12)
        expected = c * speed**2 / 2 if c * speed < 1 else speed - 0.5 / c
        assert pytest.approx(stiffness * depth * expected, rel=1e-9, abs=1e-12) == R


def test_it_does_not_matter_which_body_comes_first():
    """A ball on one that is fixed, with friction: the same motion, to round-off."""
    runs = []
    for ground_first in (False, True):
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        ball = mb.sphere("ball", at=[0, 0, 0.1], radius=0.1, mass=1.0)
        fixed = contacts.Sphere(mb.ground, 5.0, at=[0, 0, -5.0])
        pair = (fixed, ball) if ground_first else (ball, fixed)
        mb.contact(*pair, stiffness=1e5, dissipation=0.1, friction=contacts.Friction(0.3, rolling=1e-3))
        mb.initial(ball, velocity=[1.0, 0.3, 0.0])
        runs.append(mb.simulate(t_end=0.1, h=1e-3))
    assert abs(runs[0]["ball.velocity"][-1, 0] - 1.0) > 0.1
    assert runs[1]["ball.velocity"] == pytest.approx(runs[0]["ball.velocity"], abs=1e-8)


def test_a_spinning_ball_bounces_off_by_coulomb():
    """As long as it slides all the time, the impact along the floor is friction times that against it."""
    mb = lv.Multibody()
    ball = mb.sphere("ball", at=[0, 0, 0.101], radius=0.1, mass=1.0)
    mb.contact(ball, mb.ground, stiffness=1e6, dissipation=0.3, friction=contacts.Friction(0.2, slip_tolerance=1e-4))
    mb.initial(ball, velocity=[0, 0, -1.0], omega=[0, -50.0, 0])
    run = mb.simulate(t_end=0.01, h=2e-5)
    up = run["ball.velocity"][-1, 2] + 1.0
    assert run["ball.velocity"][-1, 0] == pytest.approx(-0.2 * up, rel=2e-3)
    # the impact acts in the middle of the overlap, half a millimetre off the surface of the ball
    assert run["ball.omega"][-1, 1] + 50 == pytest.approx(0.2 * up * 0.1 / (0.4 * 0.1**2), rel=6e-3)


def test_second_order_through_a_blow():
    """The velocity after an oblique impact with sliding, against a fine solution; Hertz' law sets in smoothly."""
    steps = (4e-4, 2e-4, 1e-4, 5e-5)
    mb = colliding("spheres", friction=contacts.Friction(0.4, slip_tolerance=0.5), law="hertz")
    fine = mb.simulate(t_end=0.15, h=6.25e-6, every=24000).v[-1]
    errors = [np.abs(mb.simulate(t_end=0.15, h=h).v[-1] - fine).max() for h in steps]
    assert measured_order(steps, errors) == pytest.approx(2.0, abs=0.1)
