"""Passive walking down a slope: a wheel without a rim, and a biped of two legs, on their limit cycles."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

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


# -- compass gait: two legs on a hinge, of Goswami, Thuilot and Espiau 1996 -------------------------------------------
HIP_MASS, LEG_MASS, LEG_INERTIA, LOWER, UPPER, DECLINE = 10.0, 5.0, 1e-4, 0.5, 0.5, np.radians(3)
LEG = LOWER + UPPER
#: Published step period on a slope of three degrees.
STEP_PERIOD = 0.734


def leg_rates(t, y):
    """Equations of the swing phase, in the angles of stance leg and swing leg from the vertical."""
    (s, n), (ws, wn) = y[:2], y[2:]
    swing = LEG_MASS * LEG * UPPER
    M = [
        [(HIP_MASS + LEG_MASS) * LEG**2 + LEG_MASS * LOWER**2 + LEG_INERTIA, -swing * np.cos(s - n)],
        [-swing * np.cos(s - n), LEG_MASS * UPPER**2 + LEG_INERTIA],
    ]
    weight = ((HIP_MASS + LEG_MASS) * LEG + LEG_MASS * LOWER) * G
    force = [
        swing * np.sin(s - n) * wn**2 + weight * np.sin(s),
        -swing * np.sin(s - n) * ws**2 - LEG_MASS * UPPER * G * np.sin(n),
    ]
    return [ws, wn, *np.linalg.solve(M, force)]


def reduced_step(y):
    """State after a step and its duration: swing phase, then angular momenta about the new foot and about the hip."""

    def foot_height(t, y):
        return y[0] + y[1] + 2 * DECLINE

    foot_height.terminal = True
    tight = dict(method="DOP853", rtol=1e-11, atol=1e-12)
    past = solve_ivp(leg_rates, (0, 0.4), y, **tight).y[:, -1]  # the swing foot passes the floor
    end = solve_ivp(leg_rates, (0.4, 3), past, events=foot_height, **tight)
    (s, n), rates = end.y[:2, -1], end.y[2:, -1]
    c, near, J = np.cos(s - n), LEG_MASS * LOWER * UPPER - LEG_INERTIA, LEG_INERTIA
    before = [[(HIP_MASS * LEG**2 + 2 * LEG_MASS * LOWER * LEG) * c - near, -near], [-near, 0]]
    far, own = LEG_MASS * UPPER * LEG * c, LEG_MASS * UPPER**2 + J
    stance = (LEG_MASS + HIP_MASS) * LEG**2 + LEG_MASS * LOWER**2 + J
    after = np.linalg.solve([[stance - far, own - far], [-far, own]], before @ rates)
    return np.array([n, s, *after]), end.t[-1]


def compass_walker(y):
    """Both feet on a floor that is level; gravity is inclined."""
    mb = lv.Multibody(planar=True, gravity=[G * np.sin(DECLINE), -G * np.cos(DECLINE)])
    floor, tilts = contacts.HalfSpace(mb.ground, normal=[0, 1]), y[:2] + DECLINE
    directions = [np.array([-np.sin(tilt), np.cos(tilt)]) for tilt in tilts]
    top = LEG * directions[0]
    hip = mb.body("hip", mass=HIP_MASS, inertia=1e-4, position=top)
    for name, tilt, up, rate in zip(("left", "right"), tilts, directions, y[2:], strict=True):
        c, s = np.cos(tilt), np.sin(tilt)
        rotation = [[c, -s], [s, c]]
        leg = mb.body(name, mass=LEG_MASS, inertia=LEG_INERTIA, position=top - UPPER * up, rotation=rotation)
        mb.revolute(f"{name} hip", hip, leg, at=top)
        foot = contacts.PointCloud(leg, [top - LEG * up])
        mb.rigid_contact(foot, floor, restitution=0.0, friction=2.0, name=f"{name} foot")
        mb.initial(leg, omega=rate)
    mb.initial(hip, omega=0.0, velocity=y[2] * np.array([-top[1], top[0]]))
    return mb


def foot_events(mb):
    """The swing foot is drawn in while it passes the stance leg, as the knees of walking toys do."""
    index, events = {name: i for i, name in enumerate(mb.system.coordinates)}, []
    for stance, swing in (("left", "right"), ("right", "left")):
        for tilt, reach in ((0.2, -0.1), (-0.23, 0.0)):

            def leg_passes(q, i=index[f"{stance}.d2x"], tilt=tilt):
                return q[i] + np.sin(tilt)

            def set_foot(q, name=f"{swing} foot.reach", reach=reach):
                return {"parameters": {name: reach}}

            events.append(lv.Event(leg_passes, direction=1, name=f"{swing} {reach}", action=set_foot))
    return events


def test_a_biped_walks_down_a_slope_on_its_limit_cycle():
    """Ten seconds from a disturbed state: each step takes as long as that of the hybrid reduced equations."""
    y = np.array([0.2187, -2 * DECLINE - 0.2187, -1.0918, -0.3772])
    mb = compass_walker(y)
    run = mb.simulate(t_end=10.0, h=2e-3, events=foot_events(mb))
    strikes = [(event.t, event.name) for event in run.events if event.name.endswith("foot")]
    assert len(strikes) == 13 and [name[:4] for _, name in strikes] == (["righ", "left"] * 7)[:13]
    expected = []
    for _ in strikes:
        y, duration = reduced_step(y)
        expected.append(duration)
    durations = np.diff([0.0, *(t for t, _ in strikes)])
    assert durations == pytest.approx(expected, abs=2e-5)
    # the disturbance of the first steps fades: the gait is a stable limit cycle
    assert np.ptp(durations[-4:]) < 0.05 * np.ptp(durations[:4])
    assert durations[-4:].mean() == pytest.approx(STEP_PERIOD, abs=1e-3)
    assert run.summary.max_energy_drift < 1e-10 and np.diff(run.dissipated_energy).min() > -1e-9
