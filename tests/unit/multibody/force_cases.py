"""A small mechanism for every force, drive, controller and coupling, and what it does by equations of its own.

References are closed forms or reduced equations, integrated tightly; forces among them follow from the motion by
Newton's and Euler's laws. Nothing of the package takes part in them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from newton_euler import needed
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m

G = 9.81
MOMENT = 1 / 3 + 0.02**2 / 4  # of the arm about its hinge


@dataclass
class Case:
    """Mechanism with a force; `truth(times)` returns quantities by name; `exact` ones hold for every step size."""

    draw: Callable[[], lv.Multibody]
    truth: Callable[[np.ndarray], dict[str, np.ndarray]]
    times: tuple[float, ...] = (0.2, 0.4)
    steps: tuple[float, ...] = (0.02, 0.01, 0.005, 0.0025)
    exact: tuple[str, ...] = ()
    balance: float = 1e-12


def solved(rhs, start, times):
    """Rows of the solution of ``y' = rhs(t, y)``."""
    return solve_ivp(rhs, (0, max(times)), start, "DOP853", t_eval=times, rtol=1e-12, atol=1e-13).y.T


# -- in a hinge -------------------------------------------------------------------------------------------------------
def arm(planar=False):
    """A rod on a hinge, drawn along x; it turns downwards about y, in the plane upwards."""
    mb = lv.Multibody(gravity=[0, -G] if planar else [0, 0, -G], planar=planar)
    d = 2 if planar else 3
    rod = mb.rod("arm", a=[0, 0, 0][:d], b=[1, 0, 0][:d], mass=1, radius=0.02)
    return mb, mb.revolute("hinge", mb.ground, rod, at=rod.a, **({} if planar else dict(axis="y")))


def in_hinge(attach, law, name, *, start=(0.3, 1.0), planar=False, more=(), **options):
    """`attach(mb, hinge)` adds what acts, `law(t, y)` is its torque, `more` are rates of further states."""
    sign = -1.0 if planar else 1.0  # which way weight turns it

    def draw():
        mb, hinge = arm(planar)
        attach(mb, hinge)
        mb.initial(hinge, angle=start[0], rate=start[1])
        return mb

    def rhs(t, y):
        return [y[1], (law(t, y) + sign * G / 2 * np.cos(y[0])) / MOMENT, *(rate(t, y) for rate in more)]

    def truth(times):
        y = solved(rhs, [*start, *(0.0 for _ in more)], times)
        acceleration = np.array([rhs(t, row)[1] for t, row in zip(times, y, strict=True)])
        return of_arm(name, y[:, 0], y[:, 1], acceleration, sign) | ({f"{name}.integral": y[:, 2]} if more else {})

    return Case(draw, truth, **options)


def of_arm(name, angle, rate, acceleration, sign=1.0):
    """Return angle, rate, force and torque of the hinge for a motion of the arm."""
    c, s = np.cos(angle), np.sin(angle)
    along, across = np.column_stack([c, -sign * s]), np.column_stack([-s, -sign * c])
    centre = (acceleration[:, None] * across - rate[:, None] ** 2 * along) / 2
    force = centre + [0, G]
    if sign > 0:  # in space the second of these is z
        force = np.column_stack([force[:, 0], 0 * c, force[:, 1]])
    torque = MOMENT * acceleration - sign * G / 2 * c
    return {"hinge.angle": angle, "hinge.rate": rate, "hinge.force": force, f"{name}.torque": torque}


# -- in a slide -------------------------------------------------------------------------------------------------------
ALONG = np.array([0.6, 0.0, 0.8])


def in_slide(attach, law, name, *, start=(0.1, 0.5), more=(), shown="force", **options):
    """A box of 2 kg that slides along a slope."""

    def draw():
        mb = lv.Multibody(gravity=[0, 0, -G])
        box = mb.box("box", at=[0, 0, 0], size=[0.1, 0.2, 0.3], mass=2)
        guide = mb.prismatic("guide", mb.ground, box, axis=ALONG)
        attach(mb, guide)
        mb.initial(guide, position=start[0], velocity=start[1])
        return mb

    def rhs(t, y):
        return [y[1], law(t, y) / 2 - G * 0.8, *(rate(t, y) for rate in more)]

    def truth(times):
        y = solved(rhs, [*start, *(0.0 for _ in more)], times)
        acceleration = np.array([rhs(t, row)[1] for t, row in zip(times, y, strict=True)])
        return of_slide(f"{name}.{shown}", *y.T[:2], acceleration) | ({f"{name}.integral": y[:, 2]} if more else {})

    return Case(draw, truth, **options)


def of_slide(name, position, speed, acceleration):
    across = 2 * G * (np.array([0, 0, 1]) - 0.8 * ALONG)  # what the guide carries
    force = np.tile(across, (len(position), 1))
    found = {"guide.position": position, "guide.velocity": speed, "guide.force": force}
    return found | {name: 2 * (acceleration + 0.8 * G)}


# -- between points ---------------------------------------------------------------------------------------------------
def on_line(attach, tension, names, **options):
    """A particle on something between it and the origin, which pulls by `tension(length, rate)`; all of `names` share
    the pull."""
    start = np.array([0.8, 0.1, -0.6, 0.3, 1.0, -0.4])

    def draw():
        mb = lv.Multibody(gravity=[0, 0, -G])
        ball = mb.particle("ball", at=start[:3], mass=2)
        attach(mb, ball)
        mb.initial(ball, velocity=start[3:])
        return mb

    def rhs(t, y):
        x, v = y[:3], y[3:]
        length = np.linalg.norm(x)
        pull = tension(length, x @ v / length) / length
        return [*v, *(-pull * x / 2 - [0, 0, G])]

    def truth(times):
        y = solved(rhs, start, times)
        length = np.linalg.norm(y[:, :3], axis=1)
        acceleration = np.array([rhs(t, row)[3:] for t, row in zip(times, y, strict=True)])
        pull = -2 * np.einsum("ij,ij->i", acceleration + [0, 0, G], y[:, :3]) / length
        return {
            "ball.position": y[:, :3],
            f"{names[0]}.length": length,
            " + ".join(f"{name}.tension" for name in names): pull,
        }

    return Case(draw, truth, **options)


def spring_at_a_lever():
    """A spring from the tip of the arm to a point of space: its pull is what turns the arm."""

    def draw():
        mb, hinge = arm()
        mb.spring("spring", [0.5, 0, 1], mb.bodies["arm"].b, stiffness=30, free_length=0.6)
        mb.initial(hinge, angle=0.3, rate=1.0)
        return mb

    def gap(angle):
        return np.array([0.5 - np.cos(angle), 1 + np.sin(angle)])

    def lever(angle):
        """Return the rate of the spring length with the angle of the arm."""
        x = gap(angle)
        return (x @ [-np.sin(angle), -np.cos(angle)]) / np.linalg.norm(x)

    def rhs(t, y):
        pull = 30 * (np.linalg.norm(gap(y[0])) - 0.6)
        return [y[1], (pull * lever(y[0]) + G / 2 * np.cos(y[0])) / MOMENT]

    def truth(times):
        y = solved(rhs, [0.3, 1.0], times)
        turning = np.array([MOMENT * rhs(0, row)[1] - G / 2 * np.cos(row[0]) for row in y])
        return {"hinge.angle": y[:, 0], "spring.tension": turning / [lever(angle) for angle in y[:, 0]]}

    return Case(draw, truth)


def over_pulleys():
    """Two weights on one cable that stretches and is damped; both swing and go up and down."""
    corners = np.array([[-1.0, 0, 0], [1.0, 0, 0]])
    start = np.array([-1.0, 0, -1, 1, 0, -1.2, 0.2, 0.3, 0, 0, -0.4, 0.5])

    def draw():
        mb = lv.Multibody(gravity=[0, 0, -G])
        left, right = mb.particle("left", at=start[:3], mass=1.0), mb.particle("right", at=start[3:6], mass=1.5)
        mb.cable("rope", left, *corners, right, stiffness=300, damping=4, free_length=4.15)
        mb.initial(left, velocity=start[6:9])
        mb.initial(right, velocity=start[9:])
        return mb

    def stretch(y):
        gaps = y[:6].reshape(2, 3) - corners
        lengths = np.linalg.norm(gaps, axis=1)
        units = gaps / lengths[:, None]
        return units, lengths.sum() + 2, np.sum(units * y[6:].reshape(2, 3))

    def rhs(t, y):
        units, length, rate = stretch(y)
        pull = 300 * (length - 4.15) + 4 * rate
        assert length > 4.15  # taut all the time
        return [*y[6:], *(-pull * units / [[1.0], [1.5]] - [0, 0, G]).ravel()]

    def truth(times):
        y = solved(rhs, start, times)
        right = np.array([1.5 * (rhs(0, row)[9:] + np.array([0, 0, G])) for row in y])
        return {
            "left.position": y[:, :3],
            "right.position": y[:, 3:6],
            "rope.length": np.array([stretch(row)[1] for row in y]),
            "rope.tension": np.array([-f @ stretch(row)[0][1] for f, row in zip(right, y, strict=True)]),
        }

    return Case(draw, truth, times=(0.1, 0.2), steps=(0.01, 0.005, 0.0025, 0.00125))


def attracting():
    """Two bodies on circles about their common centre."""
    rate = np.sqrt(3.0 * 2.5)

    def draw():
        mb = lv.Multibody()
        sun = mb.box("sun", at=[0, 0, 0], size=[0.1, 0.2, 0.3], mass=2.0)
        moon = mb.sphere("moon", at=[1, 0, 0], radius=0.1, mass=0.5)
        mb.gravitation("pull", sun, moon, constant=3.0)
        mb.initial(sun, velocity=[0, -0.2 * rate, 0])
        mb.initial(moon, velocity=[0, 0.8 * rate, 0])
        return mb

    def truth(times):
        unit = np.column_stack([np.cos(rate * times), np.sin(rate * times), 0 * times])
        centre = np.array([0.2, 0, 0])
        return {"moon.position": centre + 0.8 * unit, "pull.force": -0.5 * 0.8 * rate**2 * unit}

    return Case(draw, truth)


# -- bodies that turn in every way ------------------------------------------------------------------------------------
BODY = dict(mass=2.0, inertia=[0.1, 0.2, 0.3])


def turned(angles):
    """About x, then about the new y, then about the new z."""
    R = ca.SX.eye(3)
    for axis in range(3):
        c, s, (i, j) = ca.cos(angles[axis]), ca.sin(angles[axis]), ((axis + 1) % 3, (axis + 2) % 3)
        step = ca.SX.eye(3)
        step[i, i], step[i, j], step[j, i], step[j, j] = c, -s, s, c
        R = R @ step
    return R


def free(s):
    return [(2.0, BODY["inertia"], s[:3], turned(s[3:]))]


STARTING = np.array([0.0, 0, 0, 0, 0, 0]), np.array([0.3, -0.2, 0.5, 1.0, -0.7, 0.6])


def on_a_bushing():
    """A body on a bushing with stiffness and damping in all directions, at a point off its centre."""
    K, C = np.array([300.0, 200, 400, 9, 6, 12]), np.array([3.0, 5, 2, 0.1, 0.2, 0.1])
    at = np.array([0.1, -0.1, 0.2])

    def draw():
        mb = lv.Multibody(gravity=[0, 0, -G])
        body = mb.body("body", **BODY)
        mb.bushing("mount", mb.ground, body, at=at, stiffness=K, damping=C)
        mb.initial(body, velocity=STARTING[1][:3], omega=STARTING[1][3:])
        return mb

    def strains(s):
        R = turned(s[3:])
        axial = ca.vertcat(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]) / 2
        return ca.vertcat(s[:3] + R @ ca.DM(at) - ca.DM(at), 4 * axial / (1 + ca.trace(R)))

    def forces(s, w, t):
        xi = strains(s)
        return ca.vertsplit(-ca.jacobian(xi, s).T @ (ca.DM(K) * xi + ca.DM(C) * ca.jtimes(xi, s, w)))

    def truth(times):
        rows = [row[0] for row in needed(6, free, [0, 0, -G], *STARTING, times, forces)]
        return {
            "body.position": np.array([x for x, *_ in rows]),
            "body.rotation": np.array([R for _, R, *_ in rows]),
            "mount.force": np.array([force for *_, force, _ in rows]),
            "mount.torque": np.array([torque - np.cross(R @ at, force) for _, R, force, torque in rows]),
        }

    return Case(draw, truth, times=(0.1, 0.2), steps=(0.01, 0.005, 0.0025, 0.00125))


def under_a_wrench(frame):
    """A force of time at a point off the centre, in space or in the body's own axes, and a torque of time."""
    at = np.array([0.1, -0.1, 0.2])

    def push(t, sin=m.sin, cos=m.cos):
        return [3 * sin(4 * t), 1.0, 2 * cos(3 * t)]

    def twist(t, sin=m.sin, cos=m.cos):
        return [0.3 * cos(2 * t), -0.2, 0.4 * sin(3 * t)]

    def draw():
        mb = lv.Multibody()
        body = mb.body("body", **BODY)
        mb.wrench("load", body, force=push, torque=twist, at=at, frame=frame)
        mb.initial(body, velocity=STARTING[1][:3], omega=STARTING[1][3:])
        return mb

    def forces(s, w, t):
        R = turned(s[3:])
        f, tau = (ca.vertcat(*law(t, ca.sin, ca.cos)) for law in (push, twist))
        point = s[:3] + R @ ca.DM(at)
        spin = R.T @ ca.reshape(ca.jtimes(ca.vec(R), s, w), 3, 3)
        omega = R @ ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])
        along = ca.jacobian(point, s).T @ (R @ f if frame == "body" else f)
        return ca.vertsplit(along + ca.jacobian(omega, w).T @ tau)

    def truth(times):
        rows = [row[0] for row in needed(6, free, [0, 0, 0], *STARTING, times, forces)]
        moments = [torque - np.cross(R @ at, force) for _, R, force, torque in rows]
        return {
            "body.position": np.array([x for x, *_ in rows]),
            "body.rotation": np.array([R for _, R, *_ in rows]),
            "load.force": np.array([force for *_, force, _ in rows]),
            "load.torque": np.array(moments),
        }

    return Case(draw, truth)


def held_softly():
    """A box that a constraint by penalty holds, thrown off: it swings at the frequency that was asked for."""
    w = 2 * np.pi * 3.0

    def draw():
        mb = lv.Multibody()
        box = mb.box("box", at=[0.2, 0.1, -0.3], size=[0.1, 0.2, 0.3], mass=2.0)
        mb.penalty_joint("seat", mb.ground, box, frequency=3.0, damping_ratio=0.0)
        mb.initial(box, velocity=[0.3, -0.5, 0.4])
        return mb

    def truth(times):
        moved = np.outer(np.sin(w * times) / w, [0.3, -0.5, 0.4])
        return {"box.position": moved + [0.2, 0.1, -0.3], "seat.force": -2 * w**2 * moved}

    return Case(draw, truth, times=(0.1, 0.2), steps=(0.01, 0.005, 0.0025, 0.00125))
