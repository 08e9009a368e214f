"""A woodpecker toy: a limit cycle of impact, stick and slip at three rigid contacts.

Dimensions, masses, restitution, friction and initial state are those of Glocker 1995 (Dynamik von Starrkoerpersystemen
mit Reibung und Stoessen, pp. 162) and of Leine, Glocker and van Campen 2001. Their equations have the kinematics of
small angles, and their limit cycle takes 0.146 s. Enlarged arms at small angles are that limit of the mechanism.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import livens as lv
from livens import contacts

POLE, BORE, HALF_LENGTH = 0.0025, 0.0031, 0.0058  # radii of pole and sleeve, half length of the sleeve
HINGE, CENTRE = 0.010, 0.015  # distances of the hinge from the sleeve, and of the bird from the hinge
BEAK = -0.0201, 0.02
FRICTION, RESTITUTION = 0.3, (0.5, 0.0, 0.0)
START = -0.2788, -0.3411, -7.4583  # tilt of the bird, velocity, rate of the bird
PUBLISHED_PERIOD = 0.146


def turn(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def initial_tilt(scale=1.0):
    """Tilt of the sleeve at which its lower edge touches, for arms enlarged by ``1 / scale``."""
    bore, half = BORE / scale, HALF_LENGTH / scale
    pole = bore - (BORE - POLE)
    return brentq(lambda a: bore * np.cos(a) + half * np.sin(a) - pole, -0.3 * scale, 0) + 1e-6 * scale


def terms(q, u, small):
    """Mass matrix, forces, gaps, and normal and tangential Jacobians for height, tilt of sleeve and tilt of bird."""
    sleeve, bird = (np.eye(2), np.eye(2)) if small else (turn(q[1]), turn(q[2]))
    hinge, arm, beak = sleeve @ [HINGE, 0], bird @ [CENTRE, 0], bird @ BEAK
    G = np.array([[0, -hinge[1], -arm[1]], [1, hinge[0], arm[0]]])  # velocity of the bird
    M = np.diag([0.0003, 5e-9, 7e-7]) + 0.0045 * G.T @ G
    bias = np.zeros(2) if small else -hinge * u[1] ** 2 - arm * u[2] ** 2
    torque = 0.0056 * (q[2] - q[1])
    force = np.array([-0.0003 * 9.81, torque, -torque]) + 0.0045 * G.T @ (np.array([0, -9.81]) - bias)
    points = [hinge + arm + beak, sleeve @ [BORE, -HALF_LENGTH], sleeve @ [BORE, HALF_LENGTH]]
    along = arm + beak
    N = np.array([[0, -hinge[1], -along[1]], [0, -points[1][1], 0], [0, -points[2][1], 0]])
    T = np.array([[1, hinge[0], along[0]], [1, points[1][0], 0], [1, points[2][0], 0]])
    gaps = np.array([point[0] - POLE for point in points]) + (N @ q if small else 0.0)
    return M, force, gaps, N, T


def moreau(h, t_end, small):
    """Time stepping of Moreau: times, positions and rates in rows; the law of impact holds for velocities after it."""
    q, u, rows = np.array([0, initial_tilt(), START[0]]), np.array([START[1], 0, START[2]]), []
    for n in range(int(t_end / h)):
        rows.append([n * h, *q, *u])
        q = q + h / 2 * u
        M, force, gaps, N, T = terms(q, u, small)
        closed, response = np.flatnonzero(gaps <= 0), np.linalg.inv(M)
        v, impulses = u + h * response @ force, np.zeros((3, 2))
        for _ in range(200 if len(closed) else 0):
            last = impulses.copy()
            for i in closed:
                normal = impulses[i, 0] - N[i] @ (v + RESTITUTION[i] * u) / (N[i] @ response @ N[i])
                v = v + response @ N[i] * (max(0.0, normal) - impulses[i, 0])
                impulses[i, 0] = max(0.0, normal)
                limit = FRICTION * impulses[i, 0]
                along = np.clip(impulses[i, 1] - T[i] @ v / (T[i] @ response @ T[i]), -limit, limit)
                v = v + response @ T[i] * (along - impulses[i, 1])
                impulses[i, 1] = along
            if np.abs(impulses - last).max() < 1e-10 * impulses.max():
                break
        q, u = q + h / 2 * v, v
    return np.array(rows)


def toy(scale):
    """The mechanism; arms are enlarged by ``1 / scale`` with the same clearances, and angles are smaller by `scale`."""
    bird_tilt, tilt = START[0] * scale, initial_tilt(scale)
    bore, half = BORE / scale, HALF_LENGTH / scale
    hinge_at = turn(tilt) @ [HINGE / scale, 0]
    centre = hinge_at + turn(bird_tilt) @ [CENTRE / scale, 0]
    mb = lv.Multibody(planar=True, gravity=[0, -9.81])
    sleeve = mb.body("sleeve", mass=0.0003, inertia=5e-9 / scale**2, position=[0, 0], rotation=turn(tilt))
    bird = mb.body("bird", mass=0.0045, inertia=7e-7 / scale**2, position=centre, rotation=turn(bird_tilt))
    hinge = mb.revolute("hinge", sleeve, bird, at=hinge_at)
    mb.point_on_line("guide", mb.ground, sleeve, at=[0, 0], axis=[0, 1])
    mb.torsion_spring("spring", hinge, stiffness=0.0056 / scale**2, rest_angle=tilt - bird_tilt)
    reach = HINGE + CENTRE + BEAK[0]  # of the beak, whose clearance is that to the pole
    points = {
        "beak": (bird, centre + turn(bird_tilt) @ BEAK / scale, reach / scale - (reach - POLE)),
        "lower": (sleeve, turn(tilt) @ [bore, -half], bore - (BORE - POLE)),
        "upper": (sleeve, turn(tilt) @ [bore, half], bore - (BORE - POLE)),
    }
    for (name, (body, point, pole)), restitution in zip(points.items(), RESTITUTION, strict=True):
        edge, wall = contacts.PointCloud(body, [point]), contacts.HalfSpace(mb.ground, at=[pole, 0], normal=[1, 0])
        mb.rigid_contact(edge, wall, restitution=restitution, friction=FRICTION, name=name)
    mb.initial(sleeve, velocity=[0, START[1]], omega=0.0)
    mb.initial(bird, omega=START[2] * scale)
    return mb


def periods(rows):
    """Durations of the cycles of a time stepping: upward passages of the bird."""
    t, tilt = rows[:, 0], rows[:, 3] + 0.1
    i = np.flatnonzero((tilt[:-1] < 0) & (tilt[1:] >= 0))
    return np.diff(t[i] - tilt[i] * (t[i + 1] - t[i]) / (tilt[i + 1] - tilt[i]))


def settled_period(run):
    """Period between hits of the beak; successive periods converge, alternating."""
    beak = np.diff([event.t for event in run.events if event.name == "beak"])
    changes = np.abs(np.diff(beak))
    assert changes[-1] < 0.01 * beak[-1] and changes[-1] < 0.9 * changes[0]
    assert np.diff(run.dissipated_energy).min() > -1e-15 and run.summary.max_energy_drift < 1e-11
    return beak[-2:].mean()


def test_the_published_limit_cycle():
    """At small angles the mechanism is that of the publications."""
    run = toy(1e-4).simulate(t_end=0.85, h=2e-4)
    assert settled_period(run) == pytest.approx(PUBLISHED_PERIOD, rel=2e-3)
    # the sleeve slips and sticks at its lower edge, then leaves it; the upper edge and the beak hit
    names = [event.name for event in run.events if event.t > 0.45]
    start = names.index("lower slip turns")
    assert names[start : start + 4] == ["lower slip turns", "lower slips", "lower left", "upper"]


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "small"), [(1e-4, True), (1.0, False)])
def test_the_limit_cycle_is_that_of_moreau_time_stepping(scale, small):
    """The time stepping scatters by its steps around its mean; large angles shorten the period to 0.131 s."""
    period = settled_period(toy(scale).simulate(t_end=0.85, h=2e-4))
    assert period == pytest.approx(periods(moreau(5e-5, 0.85, small))[1:].mean(), rel=4e-3)


def test_slip_and_stick_of_the_first_cycle():
    """Slip turns into stick, slips again, and the beak hits, as in the time stepping of the same equations."""
    run = toy(1.0).simulate(t_end=0.09, h=2e-4)
    stick, slip, beak = (run.events[i].t for i in (1, 2, 4))
    t, y, _, bird_angle, rate = moreau(1e-4, 0.086, False).T[:5]
    sticks = np.abs(rate) < 1e-6
    assert t[sticks][[0, -1]] == pytest.approx([stick, slip], abs=3e-4)
    assert y[sticks][0] == pytest.approx(np.interp(stick, run.t, run["sleeve.position"][:, 1]), abs=2e-5)
    assert t[bird_angle.argmax()] == pytest.approx(beak, abs=3e-4)


def test_friction_of_an_impact_opposes_the_slip_after_it():
    """The beak slips downwards before its impact and upwards after it: sliding upwards is the only consistent case."""
    run = toy(1.0).simulate(t_end=0.09, h=2e-4)
    (impact,) = [event for event in run.events if event.name == "beak"]
    rows = np.flatnonzero(np.abs(run.t - impact.t) < 1e-13)
    tilts = [[np.arctan2(*run[f"{body}.rotation"][row][::-1, 0]) for body in ("sleeve", "bird")] for row in rows]
    rates = [run["sleeve.velocity"][:, 1], run["sleeve.omega"].ravel(), run["bird.omega"].ravel()]
    before, after = (np.array([rate[row] for rate in rates]) for row in rows)
    M, _, _, N, T = terms(np.array([0.0, *tilts[0]]), before, False)
    J = np.array([N[0], T[0]])
    response = np.linalg.solve(M, J.T)
    W, c = J @ response, J @ before
    consistent = []
    for sign in (-1.0, 1.0):
        direction = np.array([1.0, sign * FRICTION])
        impulse = -1.5 * c[0] / (W[0] @ direction) * direction
        if sign * (c + W @ impulse)[1] < 0:
            consistent.append(before + response @ impulse)
    (expected,) = consistent
    assert c[1] < 0 < (J @ expected)[1]
    assert after == pytest.approx(expected, rel=1e-5)
