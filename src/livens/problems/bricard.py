"""Bricard's mechanism (IFToMM A04): overconstrained loop of five rods and six hinges with one degree of freedom."""

from __future__ import annotations

import itertools

from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem

_CORNERS = ((0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1))
_AXES = "yzxyzx"


def bricard_mechanism(mass: float = 1.0, width: float = 0.1, g: float = 9.81) -> Multibody:
    """Build rods of length 1 along the edges of a cube; the first and the last are hinged to the ground."""
    mb = Multibody(gravity=[0, -g, 0])
    previous = mb.ground
    for i, (a, b) in enumerate(itertools.pairwise(_CORNERS)):
        direction = [y - x for x, y in zip(a, b, strict=True)]
        size = [1.0 if edge else width for edge in direction]
        centre = [(x + y) / 2 for x, y in zip(a, b, strict=True)]
        rod = mb.box(f"rod{i + 1}", at=centre, size=size, mass=mass)
        rod.point("end", at=b)
        mb.revolute(f"hinge{i + 1}", previous, rod, at=a, axis=_AXES[i])
        previous = rod
    mb.revolute("hinge6", previous, mb.ground, at=_CORNERS[-1], axis=_AXES[-1])
    return mb


@problem(
    "bricard",
    summary="overconstrained spatial loop of five rods and six hinges: 60 coordinates, one degree of freedom",
    source="IFToMM A04",
    scheme="lie-em",
)
def bricard(mass: float = 1.0, width: float = 0.1, g: float = 9.81) -> Problem:
    """Build the problem from rest; the period is about 5 s."""
    return bricard_mechanism(mass, width, g).problem("bricard", h=1e-3, t_end=10.0)
