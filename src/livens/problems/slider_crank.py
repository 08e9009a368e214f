"""Slider-crank mechanism driven by a motor: the mechanism of the tutorial, with a redundant constraint."""

from __future__ import annotations

from livens import math as m
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.multibody.units import deg
from livens.problems import problem


def slider_crank_mechanism(
    torque: float = 0.5, friction: float = 0.1, angle: float = 45 * deg, rate: float = 3.0
) -> Multibody:
    """Build crank, rod and slider in the x, z plane, with the motor torque ``torque sin(3 t) - friction rate``."""
    mb = Multibody(gravity=[0, 0, -9.81])
    crank = mb.rod("crank", a=[0, 0, 0], b=[0.14, 0, 0.14], mass=1)
    rod = mb.rod("rod", a=crank.b, b=[0.62, 0, 0], mass=2)
    slider = mb.box("slider", at=rod.b, size=[0.1, 0.05, 0.05], mass=0.5)
    hinge = mb.revolute("hinge", mb.ground, crank, at=[0, 0, 0], axis="y")
    mb.revolute("pin", crank, rod, at=crank.b, axis="y")
    mb.spherical("wrist", rod, slider, at=rod.b)
    mb.prismatic("guide", mb.ground, slider, axis="x")
    motor_parameters = dict(torque=torque, friction=friction)
    mb.motor(
        hinge, torque=lambda t, angle, rate, k: k.torque * m.sin(3 * t) - k.friction * rate, parameters=motor_parameters
    )
    mb.initial(hinge, angle=angle, rate=rate)
    return mb


@problem(
    "slider-crank",
    summary="slider-crank with a motor: 36 coordinates, one degree of freedom, one redundant constraint",
    source="livens",
    scheme="lie-em",
)
def slider_crank(torque: float = 0.5, friction: float = 0.1, angle: float = 45 * deg, rate: float = 3.0) -> Problem:
    """Build the problem; `angle` (rad) and `rate` (rad/s) are the initial values of the crank."""
    return slider_crank_mechanism(torque, friction, angle, rate).problem("slider-crank", h=1e-3, t_end=3.0)
