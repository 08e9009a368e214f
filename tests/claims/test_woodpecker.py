"""A woodpecker toy: a limit cycle of impact, stick and slip at three rigid contacts.

Dimensions, masses and initial state are those of Glocker 1995 (Dynamik von Starrkoerpersystemen mit Reibung und
Stoessen, pp. 162) and of Leine, Glocker and van Campen 2001, as in the examples of Siconos and Assimulo.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import livens as lv
from livens import contacts

POLE, BORE, HALF_LENGTH = 0.0025, 0.0031, 0.0058  # radii of pole and sleeve, half length of the sleeve
HINGE, CENTRE = 0.010, 0.015  # distances of the hinge from the sleeve, and of the bird from the hinge
BEAK = -0.0201, 0.02


def turn(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def moreau(h, t_end, state):
    """Time stepping of Moreau for height, tilt of the sleeve and tilt of the bird; rows of t, positions and rates."""
    q, u, rows = np.array(state[:3], dtype=float), np.array(state[3:], dtype=float), []
    for n in range(int(t_end / h)):
        rows.append([n * h, *q, *u])
        q = q + h / 2 * u
        sleeve, bird = turn(q[1]), turn(q[2])
        hinge, arm = sleeve @ [HINGE, 0], bird @ [CENTRE, 0]
        G = np.array([[0, -hinge[1], -arm[1]], [1, hinge[0], arm[0]]])  # velocity of the bird
        M = np.diag([0.0003, 5e-9, 7e-7]) + 0.0045 * G.T @ G
        bias = -hinge * u[1] ** 2 - arm * u[2] ** 2
        torque = 0.0056 * (q[2] - q[1])
        force = np.array([-0.0003 * 9.81, torque, -torque]) + 0.0045 * G.T @ (np.array([0, -9.81]) - bias)
        points = [hinge + arm + bird @ BEAK, sleeve @ [BORE, -HALF_LENGTH], sleeve @ [BORE, HALF_LENGTH]]
        beak = arm + bird @ BEAK
        rows_n = [[0, -hinge[1], -beak[1]], [0, -points[1][1], 0], [0, -points[2][1], 0]]
        rows_t = [[1, hinge[0], beak[0]], [1, points[1][0], 0], [1, points[2][0], 0]]
        closed = [i for i in range(3) if points[i][0] <= POLE]
        response = np.linalg.inv(M)
        v, impulses = u + h * response @ force, np.zeros((3, 2))
        for _ in range(60 if closed else 0):
            for i in closed:
                N, T, e = np.array(rows_n[i]), np.array(rows_t[i]), 0.5 if i == 0 else 0.0
                before = impulses[i].copy()
                impulses[i, 0] = max(0.0, before[0] - N @ (v + e * u) / (N @ response @ N))
                v = v + response @ N * (impulses[i, 0] - before[0])
                limit = 0.3 * impulses[i, 0]
                impulses[i, 1] = np.clip(before[1] - T @ v / (T @ response @ T), -limit, limit)
                v = v + response @ T * (impulses[i, 1] - before[1])
        q, u = q + h / 2 * v, v
    return np.array(rows)


def test_the_woodpecker_settles_on_its_limit_cycle():
    """The sequence of contacts of every period, and periods that converge geometrically."""
    bird_tilt = -0.2788
    tilt = brentq(lambda a: BORE * np.cos(a) + HALF_LENGTH * np.sin(a) - POLE, -0.3, 0) + 1e-6  # the lower edge touches
    hinge_at = turn(tilt) @ [HINGE, 0]
    centre = hinge_at + turn(bird_tilt) @ [CENTRE, 0]
    mb = lv.Multibody(planar=True, gravity=[0, -9.81])
    sleeve = mb.body("sleeve", mass=0.0003, inertia=5e-9, position=[0, 0], rotation=turn(tilt))
    bird = mb.body("bird", mass=0.0045, inertia=7e-7, position=centre, rotation=turn(bird_tilt))
    hinge = mb.revolute("hinge", sleeve, bird, at=hinge_at)
    mb.point_on_line("guide", mb.ground, sleeve, at=[0, 0], axis=[0, 1])
    mb.torsion_spring("spring", hinge, stiffness=0.0056, rest_angle=tilt - bird_tilt)
    pole = contacts.HalfSpace(mb.ground, at=[POLE, 0], normal=[1, 0])
    points = {
        "beak": (bird, centre + turn(bird_tilt) @ BEAK, 0.5),
        "lower": (sleeve, turn(tilt) @ [BORE, -HALF_LENGTH], 0.0),
        "upper": (sleeve, turn(tilt) @ [BORE, HALF_LENGTH], 0.0),
    }
    for name, (body, point, restitution) in points.items():
        edge = contacts.PointCloud(body, [point])
        mb.rigid_contact(edge, pole, restitution=restitution, friction=0.3, name=name)
    mb.initial(sleeve, velocity=[0, -0.3411], omega=0.0)
    mb.initial(bird, omega=-7.4583)
    run = mb.simulate(t_end=0.85, h=2e-4)
    names = [event.name for event in run.events]
    cycle = ["lower", "lower slip turns", "lower slips", "lower left", "beak", "upper", "upper left"]
    assert names[:35] == 5 * cycle
    start = np.array([event.t for event in run.events if event.name == "lower"])
    change = np.diff(np.diff(start))
    assert np.abs(change[-2:] / change[-3:-1]).max() < 0.6  # converges, alternating
    # Siconos has 0.1461 s with the kinematics of small angles
    assert start[-1] - start[-2] == pytest.approx(0.1461, rel=0.03)
    # slip turns into stick, slips again, and the beak hits, as in the time stepping of the same equations
    stick, slip, beak = (run.events[i].t for i in (1, 2, 4))
    t, y, _, bird_angle, rate = moreau(1e-4, 0.086, [0, tilt, bird_tilt, -0.3411, 0, -7.4583]).T[:5]
    sticks = np.abs(rate) < 1e-6
    assert t[sticks][[0, -1]] == pytest.approx([stick, slip], abs=3e-4)
    assert y[sticks][0] == pytest.approx(np.interp(stick, run.t, run["sleeve.position"][:, 1]), abs=2e-5)
    assert t[bird_angle.argmax()] == pytest.approx(beak, abs=3e-4)
    assert np.diff(run.dissipated_energy).min() > -1e-15 and run.summary.max_energy_drift < 1e-12
