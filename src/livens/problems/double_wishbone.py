"""Double-wishbone suspension: two control arms, upright, tie rod, spring and damper."""

from __future__ import annotations

from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem


def wishbone_mechanism(
    stiffness: float = 4e4, damping: float = 2e3, load: float = 3000.0, wheel: float = 20.0
) -> Multibody:
    """Build the suspension; the chassis is the ground, x forwards, y outwards, z upwards; constant force `load`."""
    mb = Multibody(gravity=[0, 0, -9.81])
    lower = mb.plate("lower arm", at=[0, 0.5, 0.2], size=[0.3, 0.4], mass=4)
    upper = mb.plate("upper arm", at=[0, 0.5, 0.5], size=[0.25, 0.3], mass=2)
    upright = mb.box("upright", at=[0, 0.75, 0.35], size=[0.1, 0.1, 0.35], mass=wheel)
    ball, top = lower.point("ball", at=[0, 0.72, 0.2]), upper.point("ball", at=[0, 0.68, 0.5])
    mb.revolute("lower hinge", mb.ground, lower, at=[0, 0.3, 0.2], axis="x")
    mb.revolute("upper hinge", mb.ground, upper, at=[0, 0.35, 0.5], axis=[1, 0.05, 0])
    mb.spherical("lower ball", lower, upright, at=ball)
    mb.spherical("upper ball", upper, upright, at=top)
    mb.distance("tie rod", upright.point("steering arm", at=[-0.12, 0.7, 0.25]), [-0.12, 0.3, 0.24])
    foot = lower.point("spring foot", at=[0, 0.6, 0.22])
    mb.spring_damper("spring", foot, [0, 0.45, 0.65], stiffness=stiffness, damping=damping)
    mb.wrench("road", upright, force=[0, 0, load], at=[0, 0.8, 0.1])
    return mb


@problem(
    "double-wishbone",
    summary="double-wishbone suspension with a tie rod and a spring: one degree of freedom",
    source="livens",
    scheme="lie-em",
)
def double_wishbone(stiffness: float = 4e4, damping: float = 2e3, load: float = 3000.0, wheel: float = 20.0) -> Problem:
    """Build the problem; `load` (N) is the tyre force, `wheel` (kg) the unsprung mass."""
    return wishbone_mechanism(stiffness, damping, load, wheel).problem("double-wishbone", h=1e-3, t_end=1.0)
