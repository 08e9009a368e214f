"""Slider-crank mechanism with a flexible connecting rod, modelled as a geometrically exact beam."""

from __future__ import annotations

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.multibody.sections import Section
from livens.problems import problem

CRANK, ROD, RATE = 0.15, 0.3, 150.0


def beam_slider_crank_mechanism(N: int = 8, damping: float = 1e-6) -> Multibody:
    """Build the planar mechanism, extended along x; the initial velocities of the rod are those of a rigid body.

    This start excites axial waves in the rod that are too fast for steps which resolve bending. The stiffness-
    proportional material `damping` (in s) damps the waves with little effect on bending.
    """
    if N < 2 or N % 2:
        raise InputError(f"option 'N' must be an even number of at least 2, got {N}")
    mb = Multibody(planar=True)
    crank = mb.body("crank", mass=0.36, inertia=0.002727 - 0.36 * (CRANK / 2) ** 2, position=[CRANK / 2, 0])
    steel = Section.rectangular(0.008, 0.008, E=2e11, nu=0.3, density=7870.0)
    rod = mb.beam("rod", points=[[CRANK, 0], [CRANK + ROD, 0]], section=steel, elements=N, damping_time=damping)
    slider = mb.box("slider", at=[CRANK + ROD, 0], size=[0.04, 0.02], mass=0.075552)
    hinge = mb.revolute("hinge", mb.ground, crank, at=[0, 0])
    mb.revolute("pin", crank, rod.a, at=[CRANK, 0])
    mb.revolute("wrist", rod.b, slider, at=[CRANK + ROD, 0])
    mb.prismatic("guide", mb.ground, slider, axis="x")
    mb.drive(hinge, angle=lambda t: RATE * t)
    pin_speed = CRANK * RATE
    for node in rod.nodes:
        fraction = (CRANK + ROD - float(node.reference_position[0])) / ROD
        mb.initial(node, velocity=[0, pin_speed * fraction], omega=-pin_speed / ROD)
    return mb


@problem(
    "beam-slider-crank",
    summary="a slider-crank with a connecting rod that bends, driven at 150 rad/s",
    source="Simeon 1996; IVP test set (crank)",
    scheme="lie-em",
)
def beam_slider_crank(N: int = 8, damping: float = 1e-6) -> Problem:
    """Build the problem with a beam of N elements; `flexible-slider-crank` uses two bending modes and linear theory."""
    return beam_slider_crank_mechanism(N, damping).problem("beam-slider-crank", h=1e-5, t_end=0.1)
