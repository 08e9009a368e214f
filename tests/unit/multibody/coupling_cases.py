"""A small mechanism for every drive, coupling, and connection that is not in the table of joints, as `force_cases`."""

import casadi as ca
import numpy as np
from force_cases import ALONG, MOMENT, Case, G, arm, of_arm, of_slide, solved
from newton_euler import needed

import livens as lv
from livens import math as m


# -- drives and controllers -------------------------------------------------------------------------------------------
def driven_arm(what):
    laws = dict(angle=lambda t: 0.3 * m.sin(2 * t), rate=lambda t: 0.6 * m.cos(2 * t))

    def draw():
        mb, hinge = arm()
        mb.drive(hinge, name="drive", **{what: laws[what]})
        return mb

    def truth(times):
        angle = 0.3 * np.sin(2 * times)
        return of_arm("drive", angle, 0.6 * np.cos(2 * times), -4 * angle)

    return Case(draw, truth, exact=("hinge.angle",) if what == "angle" else ())


def driven_slide(what):
    laws = dict(position=lambda t: 0.2 * m.sin(3 * t), velocity=lambda t: 0.6 * m.cos(3 * t))

    def draw():
        mb = lv.Multibody(gravity=[0, 0, -G])
        box = mb.box("box", at=[0, 0, 0], size=[0.1, 0.2, 0.3], mass=2)
        mb.drive(mb.prismatic("guide", mb.ground, box, axis=ALONG), name="drive", **{what: laws[what]})
        return mb

    def truth(times):
        position = 0.2 * np.sin(3 * times)
        return of_slide("drive.force", position, 0.6 * np.cos(3 * times), -9 * position)

    return Case(draw, truth, exact=("guide.position",) if what == "position" else ())


def sampled():
    """A controller that looks at the arm every 0.04 s; between samples its torque is constant."""
    every = 0.04

    def law(t, measured):
        return 5 * (0.3 - measured[0]) - 0.8 * measured[1]

    def draw():
        mb, hinge = arm()
        mb.sampled_controller("servo", hinge, period=every, law=law, inputs=["hinge.angle", "hinge.rate"])
        return mb

    def truth(times):
        y, said, rows = np.zeros(2), {}, {}
        for i in range(round(max(times) / every) + 1):
            torque = said[round(i * every, 9)] = law(0, y)
            rows[round(i * every, 9)] = y
            y = solved(lambda t, y, torque=torque: [y[1], (torque + G / 2 * np.cos(y[0])) / MOMENT], y, [0, every])[-1]
        at = [round(t, 9) for t in times]
        return {
            "hinge.angle": np.array([rows[t][0] for t in at]),
            "hinge.rate": np.array([rows[t][1] for t in at]),
            "servo.command": np.array([said[t] for t in at]),
        }

    return Case(draw, truth)


# -- couplings --------------------------------------------------------------------------------------------------------
def coupled(couple, weights, torques, name, rates):
    """Wheels whose angles keep a weighted sum, with torques that go to and fro: ``M q'' = tau - w mu, w.q'' = 0``."""
    moments = np.array([0.045, 0.08, 0.02])[: len(weights)]
    w, tau = np.array(weights, dtype=float), np.array(torques, dtype=float)

    def draw():
        mb, joints = lv.Multibody(), []
        for i, moment in enumerate(moments):
            wheel = mb.body(f"wheel{i}", mass=1.0, inertia=[moment] * 3, position=[i, 0, 0])
            joints.append(mb.revolute(f"axle{i}", mb.ground, wheel, axis="z"))
            if tau[i]:
                mb.motor(
                    joints[i], torque=lambda t, angle, rate, k: k.size * m.cos(3 * t), parameters=dict(size=tau[i])
                )
            mb.initial(joints[i], rate=rates[i])
        couple(mb, joints)
        return mb

    def truth(times):
        own = tau / moments
        mu = (w @ own) / (w @ (w / moments))
        accelerated = own - w / moments * mu
        assert abs(w @ accelerated) < 1e-14 and abs(w @ rates) < 1e-14
        found = {
            f"axle{i}.angle": accelerated[i] * (1 - np.cos(3 * times)) / 9 + rates[i] * times for i in range(len(w))
        }
        return found | {f"{name}.torque": (moments * accelerated - tau)[-1] * np.cos(3 * times)}

    return Case(draw, truth)


def racked():
    """A pinion and a bar of 2 kg that it moves."""
    radius, moment, mass = 0.1, 0.01, 2.0

    def draw():
        mb = lv.Multibody()
        pinion = mb.body("pinion", mass=1.0, inertia=[moment] * 3)
        bar = mb.body("bar", mass=mass, inertia=[0.1] * 3, position=[0, 0, -radius])
        turn = mb.revolute("turn", mb.ground, pinion, axis=[0, -1, 0])
        slide = mb.prismatic("slide", mb.ground, bar, axis="x")
        mb.rack("rack", turn, slide, radius=radius)
        mb.motor(turn, torque=lambda t, angle, rate: 0.3 * m.cos(3 * t))
        mb.initial(turn, rate=2.0)
        return mb

    def truth(times):
        size = 0.3 / (moment + mass * radius**2)
        angle = size * (1 - np.cos(3 * times)) / 9 + 2.0 * times
        return {
            "turn.angle": angle,
            "slide.position": radius * angle,
            "rack.force": mass * radius * size * np.cos(3 * times),
        }

    return Case(draw, truth)


# -- points that are held ---------------------------------------------------------------------------------------------
def on_a_string():
    """A ball that goes round on a string: two angles, and its tension by Newton's law."""
    s0, w0 = np.array([0.7, 0.2]), np.array([0.5, 1.5])

    def place(s):
        return 1.5 * ca.vertcat(ca.sin(s[0]) * ca.cos(s[1]), ca.sin(s[0]) * ca.sin(s[1]), -ca.cos(s[0]))

    return _point(lambda mb, ball: mb.distance("string", ball, [0, 0, 0]), place, s0, w0, "string", tension=True)


def in_a_bowl():
    """A particle on a paraboloid."""

    def place(s):
        return ca.vertcat(s[0], s[1], s[0] ** 2 / 2 + s[1] ** 2)

    def attach(mb, ball):
        mb.point_on_surface(
            "bowl", mb.ground, ball, surface=lambda x: x[2] - x[0] ** 2 / 2 - x[1] ** 2, origin=[0, 0, 0]
        )

    return _point(attach, place, np.array([0.6, -0.3]), np.array([0.5, 0.8]), "bowl")


def on_a_helix():
    """A particle on a wire that winds upwards."""

    def place(s):
        return ca.vertcat(0.5 * ca.cos(4 * s[0]), 0.5 * ca.sin(4 * s[0]), s[0])

    def wire(x):
        return [x[0] - 0.5 * m.cos(4 * x[2]), x[1] - 0.5 * m.sin(4 * x[2])]

    def attach(mb, ball):
        mb.point_on_curve("wire", mb.ground, ball, curve=wire, origin=[0, 0, 0])

    return _point(attach, place, np.array([0.1]), np.array([0.6]), "wire")


def _point(attach, place, s0, w0, name, tension=False):
    """A particle of 2 kg at `place(s)`."""
    s = ca.SX.sym("s", len(s0))
    at = ca.Function("at", [s], [ca.densify(place(s)), ca.densify(ca.jacobian(place(s), s))])
    x0, slopes = (np.array(x) for x in at(s0))

    def draw():
        mb = lv.Multibody(gravity=[0, 0, -G])
        ball = mb.particle("ball", at=x0.ravel(), mass=2)
        attach(mb, ball)
        mb.initial(ball, velocity=slopes @ w0)
        return mb

    def truth(times):
        rows = needed(len(s0), lambda s: [(2.0, np.zeros(3), place(s), np.eye(3))], [0, 0, -G], s0, w0, times)
        x, force = (np.array([row[0][i] for row in rows]) for i in (0, 2))
        if tension:
            found = {f"{name}.tension": -np.einsum("ij,ij->i", x, force) / np.linalg.norm(x, axis=1)}
        else:
            found = {f"{name}.force": force}
        return {"ball.position": x} | found

    return Case(draw, truth)


# -- rolling ----------------------------------------------------------------------------------------------------------
def rolling_ball():
    """Down a slope with 5/7 of the acceleration of sliding; the plane carries the rest."""
    slope = np.array([np.sin(0.3), 0, -np.cos(0.3)]) * G

    def draw():
        mb = lv.Multibody(gravity=slope)
        ball = mb.sphere("ball", at=[0, 0, 0.1], radius=0.1, mass=2)
        mb.rolling("contact", mb.ground, ball, radius=0.1)
        return mb

    def truth(times):
        gone = 5 / 14 * slope[0] * times**2
        force = np.tile([-4 / 7 * slope[0], 0, -2 * slope[2]], (len(times), 1))
        return {
            "ball.position": np.column_stack([gone, 0 * times, 0 * times + 0.1]),
            "ball.omega": np.column_stack([0 * times, 50 / 7 * slope[0] * times, 0 * times]),
            "contact.force": force,
        }

    return Case(draw, truth, exact=("ball.position", "ball.omega", "contact.force"))


def skating():
    """A blade on a slope turns steadily and goes along cycloids; it is pushed by ``2 m g' sin(angle)`` sideways."""
    pull, rate = G * np.sin(0.3), 2.0

    def draw():
        mb = lv.Multibody(gravity=[pull, 0, -G * np.cos(0.3)])
        skate = mb.box("skate", at=[0, 0, 0], size=[0.3, 0.02, 0.1], mass=1)
        mb.planar("ice", mb.ground, skate, axis="z")
        mb.knife_edge("blade", mb.ground, skate, lateral="y")
        mb.initial(skate, omega=[0, 0, rate])
        return mb

    def truth(times):
        angle = rate * times
        x = pull / (2 * rate**2) * np.sin(angle) ** 2
        y = pull / (2 * rate) * (times - np.sin(2 * angle) / (2 * rate))
        sideways = np.column_stack([-np.sin(angle), np.cos(angle), 0 * times])
        return {
            "skate.position": np.column_stack([x, y, 0 * times]),
            "ice.angle": angle,
            "blade.force": 2 * pull * np.sin(angle)[:, None] * sideways,
        }

    return Case(draw, truth)
