"""A four-bar linkage in the plane that a spring holds up: small motions about its equilibrium are one oscillation."""

from __future__ import annotations

from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.problems import problem

#: The corners of the linkage as it is drawn, and where the spring is fixed.
CORNERS = ((0.0, 0.0), (0.1, 0.5), (0.9, 0.75), (1.0, 0.0))
FOOT = (0.5, 1.4)


def spring_four_bar_mechanism(stiffness: float = 400.0, viscosity: float = 3.0, g: float = 9.81) -> Multibody:
    """Crank, coupler and rocker; spring and damper hold the middle of the coupler."""
    mb = Multibody(gravity=[0, -g], planar=True)
    first, second, third, fourth = (list(corner) for corner in CORNERS)
    crank = mb.rod("crank", a=first, b=second, mass=1.0)
    coupler = mb.rod("coupler", a=crank.b, b=third, mass=2.0)
    rocker = mb.rod("rocker", a=fourth, b=coupler.b, mass=1.5)
    hinge = mb.revolute("hinge", mb.ground, crank, at=crank.a)
    mb.revolute("pin", crank, coupler, at=crank.b)
    mb.revolute("wrist", coupler, rocker, at=coupler.b)
    mb.revolute("foot", mb.ground, rocker, at=rocker.a)
    mb.spring_damper("spring", coupler, list(FOOT), stiffness=stiffness, viscosity=viscosity, length=0.7)
    mb.start(hinge, rate=-2.0)
    return mb


@problem(
    "spring-four-bar",
    summary="a four-bar linkage on a spring and a damper, to be linearised: one degree of freedom",
    source="livens",
    scheme="lie-em",
)
def spring_four_bar(stiffness: float = 400.0, viscosity: float = 3.0, g: float = 9.81) -> Problem:
    """`stiffness` and `viscosity` are those of spring and damper; it starts as it is drawn, with a push."""
    drawn = spring_four_bar_mechanism(stiffness, viscosity, g)
    return drawn.problem("spring-four-bar", h=1e-3, t_end=5.0)
