"""Gyroscope in two gimbals, with a weight that causes precession."""

from __future__ import annotations

from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem


def gimbal_mechanism(spin: float = 100.0, weight: float = 0.1) -> Multibody:
    """Build the outer ring about z, the inner ring about y, the rotor about x, and a weight on the inner ring."""
    mb = Multibody(gravity=[0, 0, -9.81])
    outer = mb.ring("outer", at=[0, 0, 0], axis="y", radius=0.2, mass=0.5, tube_radius=0.01)
    inner = mb.ring("inner", at=[0, 0, 0], axis="z", radius=0.15, mass=0.3, tube_radius=0.01)
    rotor = mb.cylinder("rotor", at=[0, 0, 0], axis="x", length=0.04, radius=0.1, mass=2.0)
    mb.revolute("outer bearing", mb.ground, outer, axis="z")
    mb.revolute("inner bearing", outer, inner, axis="y")
    bearing = mb.revolute("rotor bearing", inner, rotor, axis="x")
    if weight:
        particle = mb.particle("weight", at=[0.15, 0, 0], mass=weight)
        mb.spherical("hook", inner, particle, at=particle.centre)
    mb.initial(bearing, rate=spin)
    return mb


@problem(
    "gimbal-gyroscope",
    summary="fast rotor in two gimbal rings with a weight: 39 coordinates, three degrees of freedom",
    source="livens",
    scheme="lie-em",
)
def gimbal_gyroscope(spin: float = 100.0, weight: float = 0.1) -> Problem:
    """Build the problem; `spin` (rad/s) is the initial rate of the rotor relative to the inner ring."""
    return gimbal_mechanism(spin, weight).problem("gimbal-gyroscope", h=2.5e-4, t_end=3.0)
