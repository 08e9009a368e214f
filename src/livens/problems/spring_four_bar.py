"""Planar four-bar linkage on a spring and a damper, for linearisation about its equilibrium."""

from __future__ import annotations

from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem

#: Corners of the linkage in the reference configuration, and the fixed end of the spring, in metres.
CORNERS = ((0.0, 0.0), (0.1, 0.5), (0.9, 0.75), (1.0, 0.0))
FOOT = (0.5, 1.4)


def spring_four_bar_mechanism(stiffness: float = 400.0, viscosity: float = 3.0, g: float = 9.81) -> Multibody:
    """Build crank, coupler and rocker, with a spring and a damper at the centre of the coupler."""
    mb = Multibody(gravity=[0, -g], planar=True)
    corner_a, corner_b, corner_c, corner_d = (list(corner) for corner in CORNERS)
    crank = mb.rod("crank", a=corner_a, b=corner_b, mass=1.0)
    coupler = mb.rod("coupler", a=crank.b, b=corner_c, mass=2.0)
    rocker = mb.rod("rocker", a=corner_d, b=coupler.b, mass=1.5)
    hinge = mb.revolute("hinge", mb.ground, crank, at=crank.a)
    mb.revolute("pin", crank, coupler, at=crank.b)
    mb.revolute("wrist", coupler, rocker, at=coupler.b)
    mb.revolute("foot", mb.ground, rocker, at=rocker.a)
    mb.spring_damper("spring", coupler, list(FOOT), stiffness=stiffness, damping=viscosity, free_length=0.7)
    mb.initial(hinge, rate=-2.0)
    return mb


@problem(
    "spring-four-bar",
    summary="four-bar linkage on a spring and a damper, for linearisation: one degree of freedom",
    source="livens",
    scheme="lie-em",
)
def spring_four_bar(stiffness: float = 400.0, viscosity: float = 3.0, g: float = 9.81) -> Problem:
    """Build the problem in the reference configuration, with an initial crank rate of -2 rad/s."""
    mechanism = spring_four_bar_mechanism(stiffness, viscosity, g)
    return mechanism.problem("spring-four-bar", h=1e-3, t_end=5.0)
