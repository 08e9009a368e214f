"""RSSR linkage: two cranks on skew axes, and a coupler with spherical joints and an idle spin."""

from __future__ import annotations

from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem


def rssr_mechanism(speed: float = 5.0, g: float = 9.81) -> Multibody:
    """Build the linkage; the input crank rotates about z, the output rocker about x."""
    mb = Multibody(gravity=[0, 0, -g])
    crank = mb.rod("crank", a=[0, 0, 0], b=[0.2, 0, 0], mass=1.0)
    rocker = mb.rod("rocker", a=[0.6, 0.6, 0], b=[0.6, 0.6, 0.5], mass=2.0)
    coupler = mb.rod("coupler", a=crank.b, b=rocker.b, mass=1.5)
    drive = mb.revolute("input", mb.ground, crank, at=crank.a, axis="z")
    mb.revolute("output", mb.ground, rocker, at=rocker.a, axis="x")
    mb.spherical("first ball", crank, coupler, at=crank.b)
    mb.spherical("second ball", coupler, rocker, at=rocker.b)
    mb.initial(drive, rate=speed)
    return mb


@problem(
    "rssr",
    summary="RSSR linkage with two cranks on skew axes: 36 coordinates, one degree of freedom and one idle spin",
    source="livens",
    scheme="lie-em",
)
def rssr(speed: float = 5.0, g: float = 9.81) -> Problem:
    """Build the problem; `speed` (rad/s) is the initial rate of the input crank."""
    return rssr_mechanism(speed, g).problem("rssr", h=1e-3, t_end=5.0)
