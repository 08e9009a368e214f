"""Point-to-point motion of a five-bar mechanism, a closed loop with two motors."""

from __future__ import annotations

import dataclasses

from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem


def five_bar_mechanism() -> Multibody:
    """Build the mechanism in the plane: two driven cranks, two couplers, and a tip that both couplers share."""
    mb = Multibody(planar=True, gravity=[0, -9.81])
    left = mb.rod("left", a=[-0.15, 0], b=[-0.40, 0.30], mass=1.0)
    right = mb.rod("right", a=[0.15, 0], b=[0.40, 0.30], mass=1.0)
    left_coupler = mb.rod("left_coupler", a=left.b, b=[0.0, 0.62], mass=0.8)
    right_coupler = mb.rod("right_coupler", a=right.b, b=[0.0, 0.62], mass=0.8)
    left_hinge = mb.revolute("left_hinge", mb.ground, left, at=left.a)
    right_hinge = mb.revolute("right_hinge", mb.ground, right, at=right.a)
    mb.revolute("left_elbow", left, left_coupler, at=left.b)
    mb.revolute("right_elbow", right, right_coupler, at=right.b)
    mb.revolute("tip", left_coupler, right_coupler, at=left_coupler.b)
    for joint, name in ((left_hinge, "left_motor"), (right_hinge, "right_motor")):
        mb.motor(joint, torque=lambda t, angle, rate, k: k.u, parameters=dict(u=0.0), name=name)
    return mb


@problem(
    "five-bar-point-to-point",
    summary="optimal control: point-to-point motion of a five-bar mechanism with two motors, with the least effort",
    source="livens",
    scheme="lie-em",
)
def five_bar_point_to_point(torque: float = 14.0, duration: float = 0.6) -> Problem:
    """Build the problem; `torque` is the bound of both motors (N m), `duration` the time (s)."""
    control = dict(
        inputs={"left_motor.u": (-torque, torque), "right_motor.u": (-torque, torque)},
        t_end=duration,
        steps=20,
        end={"left_coupler.b": [0.18, 0.50], "left_hinge.rate": 0.0, "right_hinge.rate": 0.0},
    )
    model = five_bar_mechanism().problem("five-bar-point-to-point", h=1e-3, t_end=duration)
    return dataclasses.replace(model, control=control)
