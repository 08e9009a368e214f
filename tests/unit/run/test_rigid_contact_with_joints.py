"""Rigid contact of bodies with joints: impacts against reduced impact laws, persistent contact, closed loops."""

import contextlib

import numpy as np
import pytest

import livens as lv
from livens import contacts

G = 9.81
L1, L2, M1, M2, R = 1.0, 0.8, 1.0, 0.7, 0.05


def balance(run):
    """Range of the energy that no term explains."""
    return np.ptp(run["total_energy"] - run.supplied_energy + run.dissipated_energy)


def double_pendulum(planar, angles, rates, wall, **options):
    """Two rods; the tip of the second has a sphere that may hit a wall at x = wall."""
    axis = {} if planar else {"axis": [0, 0, 1]}
    zero = [] if planar else [0.0]
    mb = lv.Multibody(gravity=[0, -G, *zero], planar=planar)
    a = mb.rod("a", a=[0, 0, *zero], b=[0, -L1, *zero], mass=M1, radius=0.01)
    b = mb.rod("b", a=[0, -L1, *zero], b=[0, -L1 - L2, *zero], mass=M2, radius=0.01)
    upper = mb.revolute("upper", mb.ground, a, at=[0, 0, *zero], **axis)
    lower = mb.revolute("lower", a, b, at=[0, -L1, *zero], **axis)
    for joint, angle, rate in zip((upper, lower), angles, rates, strict=True):
        mb.initial(joint, angle=angle, rate=rate)
    tip = contacts.Sphere(b, R, at=[0, -L1 - L2, *zero])
    mb.rigid_contact(tip, contacts.HalfSpace(mb.ground, at=[wall, 0, *zero], normal=[-1, 0, *zero]), **options)
    return mb


def reduced_impact(angles, rates, e, mu, moments):
    """Newton-Coulomb impact in the two joint angles: mass matrix and contact Jacobian of textbook form."""
    (t1, t2), J = (angles[0], angles[0] + angles[1]), np.empty((2, 2))
    c = np.cos(t1 - t2)
    mass = np.array(
        [
            [moments[0] + M1 * L1**2 / 4 + M2 * L1**2, M2 * L1 * L2 / 2 * c],
            [M2 * L1 * L2 / 2 * c, moments[1] + M2 * L2**2 / 4],
        ]
    )  # in absolute angles
    absolute = np.array([rates[0], rates[0] + rates[1]])
    J[0] = -L1 * np.cos(t1), -L2 * np.cos(t2)  # gap rate: minus the velocity of the tip along x
    J[1] = L1 * np.sin(t1), L2 * np.sin(t2) + R  # along the wall, at the contact point
    delassus, velocity = J @ np.linalg.solve(mass, J.T), J @ absolute
    impulse = np.linalg.solve(delassus, [-(1 + e) * velocity[0], -velocity[1]])  # sticking
    if abs(impulse[1]) > mu * impulse[0]:
        # friction opposes the slip after the impact, which one of its two directions does
        candidates = []
        for slip in (-1.0, 1.0):
            sliding = np.array([1.0, -mu * slip])
            impulse = -(1 + e) * velocity[0] / (delassus[0] @ sliding) * sliding
            if impulse[0] > 0 and slip * (velocity + delassus @ impulse)[1] > 0:
                candidates.append(impulse)
        (impulse,) = candidates
    after = absolute + np.linalg.solve(mass, J.T @ impulse)
    loss = (absolute @ mass @ absolute - after @ mass @ after) / 2
    return np.array([after[0], after[1] - after[0]]), loss


@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize(("e", "mu"), [(0.0, 0.0), (0.6, 0.0), (1.0, 0.0), (0.5, 0.05), (0.0, 5.0)])
def test_a_double_pendulum_hits_a_wall_as_its_reduced_model_does(planar, e, mu):
    angles, rates = np.array([0.3, 0.25]), np.array([1.1, 2.0])
    wall = L1 * np.sin(0.3) + L2 * np.sin(0.55) + R
    mb = double_pendulum(planar, angles, rates, wall, restitution=e, friction=mu)
    run = mb.simulate(t_end=2e-3, h=1e-3)
    moments = M1 * (L1**2 + 3 * 0.01**2) / 12, M2 * (L2**2 + 3 * 0.01**2) / 12
    expected, loss = reduced_impact(angles, rates, e, mu, moments)
    assert [run["upper.rate"][0], run["lower.rate"][0]] == pytest.approx(expected, abs=1e-10)
    assert loss >= -1e-12 and balance(run) < 1e-12


@pytest.mark.parametrize("planar", [True, False])
def test_no_impact_supplies_energy(planar):
    """Newton restitution with friction would, in this state (Kane and Levinson 1985): restitution is then smaller."""
    angles, rates, moments = [0.3, 0.25], [1.1, 2.0], (M1 * L1**2 / 12, M2 * L2**2 / 12)
    assert reduced_impact(angles, rates, 0.5, 5.0, moments)[1] < -0.1
    kinetic = []
    for e in (0.0, 0.5):
        wall = L1 * np.sin(0.3) + L2 * np.sin(0.55) + R
        mb = double_pendulum(planar, angles, rates, wall, restitution=e, friction=5.0)
        kinetic.append(mb.simulate(t_end=1e-3, h=1e-3)["kinetic_energy"][0])
    free = double_pendulum(planar, angles, rates, wall + 1.0).simulate(t_end=1e-3, h=1e-3)["kinetic_energy"][0]
    assert kinetic[0] < kinetic[1] == pytest.approx(free, rel=1e-9)


@pytest.mark.parametrize(("e", "mu"), [(0.5, 0.0), (0.7, 0.3), (0.0, 0.8)])
def test_a_double_pendulum_swings_against_a_wall(e, mu):
    """Energy is lost in impacts and by friction only, and the tip stays on its side."""
    mb = double_pendulum(True, [-0.6, 0.2], [0.0, 0.0], 0.3, restitution=e, friction=mu)
    run = mb.simulate(t_end=4.0, h=2e-3)
    tip = L1 * np.sin(run["upper.angle"]) + L2 * np.sin(run["upper.angle"] + run["lower.angle"]) + R
    assert tip.max() < 0.3 + 1e-6 and len(run.events) > 1
    # the mean normal force of the short step before a lift-off has the error of that step, and may be tensile
    assert balance(run) < 1e-11 and np.diff(run.dissipated_energy).min() > -1e-8
    assert np.abs(run.observe("constraint")).max() < 1e-11


@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("e", [0.4, 1.0])
def test_a_four_bar_hits_a_stop(planar, e):
    """One degree of freedom: the impact reverses all rates, and (1 - e^2) of the kinetic energy is dissipated.

    In space, the constraints of a planar loop are redundant.
    """
    zero, axis = ([], {}) if planar else ([0.0], {"axis": [0, 0, 1]})
    mb = lv.Multibody(gravity=[0, -G, *zero], planar=planar, redundant="auto")
    points = [[0, 0], [0.2, 0.6], [1.1, 0.8], [1.0, 0.0]]
    crank, coupler, rocker = (
        mb.rod(name, a=[*points[i], *zero], b=[*points[i + 1], *zero], mass=1.0 + i)
        for i, name in enumerate(("crank", "coupler", "rocker"))
    )
    bodies = [mb.ground, crank, coupler, rocker, mb.ground]
    joints = [mb.revolute(f"joint {i}", bodies[i], bodies[i + 1], at=[*points[i], *zero], **axis) for i in range(4)]
    mb.initial(joints[0], rate=-1.5)
    free = mb.simulate(t_end=1e-3, h=1e-3)
    stop = contacts.Sphere(coupler, 0.05, at=[*points[2], *zero])
    mb.rigid_contact(stop, contacts.HalfSpace(mb.ground, at=[1.15, 0, *zero], normal=[-1, 0, *zero]), restitution=e)
    run = mb.simulate(t_end=0.35, h=1e-3)
    for i in range(4):
        assert run[f"joint {i}.rate"][0] == pytest.approx(-e * free[f"joint {i}.rate"][0], abs=1e-10)
    assert run["kinetic_energy"][0] == pytest.approx(e**2 * free["kinetic_energy"][0], rel=1e-10)
    assert balance(run) < 1e-11


@pytest.mark.parametrize("friction", [0.0, 0.6])
def test_a_hinged_rod_comes_to_rest_on_the_floor(friction):
    """The floor carries half of its weight."""
    mb = lv.Multibody(gravity=[0, 0, -G])
    rod = mb.rod("rod", a=[0, 0, 0.1], b=[1.0, 0, 0.5], mass=3.0)
    mb.revolute("hinge", mb.ground, rod, at=[0, 0, 0.1], axis="y")
    tip = contacts.Sphere(rod, 0.1, at=[1.0, 0, 0.5])
    floor = contacts.HalfSpace(mb.ground, normal="z")
    mb.rigid_contact(tip, floor, restitution=0.4, friction=friction, name="foot")
    with pytest.warns(lv.LivensWarning, match="indeterminate") if friction else contextlib.nullcontext():
        run = mb.simulate(t_end=2.0, h=2e-3)
    assert run["foot.normal_force"][-1] == pytest.approx(3.0 * G / 2, rel=1e-9)
    assert run["rod.position"][-1, 2] == pytest.approx(0.1, abs=1e-9)
    assert np.abs(run.v[-1]).max() < 1e-9 and balance(run) < 1e-11
    assert run.dissipated_energy[-1] == pytest.approx(3.0 * G * 0.2, rel=1e-6)
