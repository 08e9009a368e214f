"""Passive walking: a wheel without a rim rolls down a slope on its spokes, with a limit cycle in closed form."""

import numpy as np
import pytest

import livens as lv
from livens import contacts

G, LENGTH, MASS, INERTIA, SPOKES = 9.81, 1.0, 2.0, 0.5, 8
HALF = np.pi / SPOKES


def rimless_wheel(slope, rate):
    """The wheel stands on two spokes and turns forwards; the floor is level and gravity inclined."""
    mb = lv.Multibody(planar=True, gravity=[G * np.sin(slope), -G * np.cos(slope)])
    wheel = mb.body("wheel", mass=MASS, inertia=INERTIA, position=[0, LENGTH * np.cos(HALF)])
    floor = contacts.HalfSpace(mb.ground, normal=[0, 1])
    for i in range(SPOKES):
        angle = -np.pi / 2 - HALF + 2 * HALF * i
        tip = [LENGTH * np.cos(angle), LENGTH * np.cos(HALF) + LENGTH * np.sin(angle)]
        mb.rigid_contact(contacts.PointCloud(wheel, [tip]), floor, restitution=0.0, friction=2.0, name=f"spoke{i}")
    # it turns about the leading spoke
    arm = LENGTH * np.array([-np.sin(HALF), np.cos(HALF)])
    mb.initial(wheel, omega=-rate, velocity=rate * np.array([arm[1], -arm[0]]))
    return mb


def test_a_rimless_wheel_walks_at_the_speed_of_its_limit_cycle():
    """McGeer 1990: each impact keeps the angular momentum about the new spoke; gravity restores the energy."""
    slope, after, expected = 0.08, 0.9, []
    run = rimless_wheel(slope, after).simulate(t_end=9.0, h=2e-3)
    impacts = [event for event in run.events if " " not in event.name]
    assert [event.name for event in impacts] == [f"spoke{i % SPOKES}" for i in range(2, 2 + len(impacts))]
    inertia = MASS * LENGTH**2 + INERTIA
    ratio = (MASS * LENGTH**2 * np.cos(2 * HALF) + INERTIA) / inertia
    gain = 4 * MASS * G * LENGTH * np.sin(HALF) * np.sin(slope) / inertia
    for _ in impacts:
        before = np.sqrt(after**2 + gain)
        after = ratio * before
        expected.append(inertia / 2 * (before**2 - after**2))
    losses = np.diff(run.dissipated_energy)
    assert losses[losses > 1e-9] == pytest.approx(expected, rel=1e-7)  # gaps close to a tolerance
    # the cycle: the loss of a step is the work of gravity in a step
    assert expected[-1] == pytest.approx(2 * MASS * G * LENGTH * np.sin(HALF) * np.sin(slope), rel=5e-3)
    assert run.summary.max_energy_drift < 1e-12
