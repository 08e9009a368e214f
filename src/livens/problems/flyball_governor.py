"""Flyball governor with stiff springs (IFToMM A05)."""

from __future__ import annotations

import math

import numpy as np

from livens.models.problem import Problem
from livens.multibody import solid_inertia
from livens.multibody.inertia import Inertia
from livens.multibody.multibody import Multibody
from livens.problems import problem


def governor_mechanism(stiffness: float = 8e5, viscosity: float = 4e4, speed: float = 2 * math.pi) -> Multibody:
    """Build a shaft with two rods that carry balls, and a slider on springs and dampers between the rods."""
    mb = Multibody(gravity=[0, 0, -9.81])
    shaft = mb.box("shaft", at=[0, 0, 0.5], size=[0.01, 0.01, 1.0], mass=0.3)
    slider = mb.box("slider", at=[0, 0, 0.5], size=[0.1, 0.1, 0.1], mass=3.0)
    spin = mb.revolute("spin", mb.ground, shaft, at=[0, 0, 0], axis="z")
    mb.prismatic("sleeve", shaft, slider, axis="z")
    for side, name in ((1, "right"), (-1, "left")):
        top, down = np.array([0.05 * side, 0, 1.0]), math.radians(30)
        along = np.array([side * math.cos(down), 0, -math.sin(down)])
        # rod and ball form one body; the moments of inertia are about the common centre of mass
        mass, ball = 0.3, 5.0
        centre = (mass * 0.5 + ball * 1.0) / (mass + ball)
        moments = solid_inertia.box_inertia([1.0, 0.01, 0.01], mass)
        steiner = mass * (centre - 0.5) ** 2 + ball * (1.0 - centre) ** 2
        total = Inertia(mass + ball, moments + [0, steiner, steiner])
        across = np.array([0.0, side, 0.0])
        axes = np.column_stack([along, across, np.cross(along, across)])
        arm = mb.body(name, mass=total.mass, inertia=total.tensor, position=top + centre * along, rotation=axes)
        arm.point("middle", at=top + 0.5 * along)
        mb.revolute(f"{name} hinge", shaft, arm, at=top, axis="y")
        eye = slider.point(f"{name} eye", at=[0.05 * side, 0, 0.5])
        mb.spring_damper(f"{name} spring", arm.middle, eye, stiffness=stiffness, damping=viscosity, free_length=0.5)
    mb.initial(spin, rate=speed)
    mb.initial(mb.joints["right hinge"], rate=0.0)
    mb.initial(mb.joints["left hinge"], rate=0.0)
    mb.initial(mb.joints["sleeve"], velocity=0.0)
    return mb


@problem(
    "flyball-governor",
    summary="flyball governor with stiff springs and dampers: 48 coordinates, four degrees of freedom",
    source="IFToMM A05",
    scheme="lie-em",
)
def flyball_governor(stiffness: float = 8e5, viscosity: float = 4e4, speed: float = 2 * math.pi) -> Problem:
    """Build the problem; `speed` (rad/s) is the initial rotation rate of the shaft."""
    return governor_mechanism(stiffness, viscosity, speed).problem("flyball-governor", h=1e-3, t_end=10.0)
