"""Stack of planar boxes that comes to rest under contact and friction."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.contacts import Friction, HalfSpace, PointCloud
from livens.multibody.multibody import Multibody
from livens.problems import problem

STIFFNESS, EDGE = 2e4, 0.2


def stack_mechanism(count: int = 3, drop: float = 2e-3, shift: float = 0.01) -> Multibody:
    """Build a planar stack: each box is smaller than the one below, `drop` (m) above it, and shifted sideways."""
    if not 1 <= count <= 6:
        raise InputError("option 'count' must be between 1 and 6")
    mb = Multibody(gravity=[0, -9.81], planar=True)
    friction_law = Friction(0.5, slip_tolerance=2e-3)
    top, below = 0.0, None
    for i in range(count):
        edge = EDGE * 0.85**i
        centre = np.array([i * shift, top + drop + edge / 2])
        box = mb.box(f"box{i + 1}", at=centre, size=[edge, edge], mass=100 * edge**2)
        feet = PointCloud(box, centre + np.array([[-1, -1], [1, -1]]) * edge / 2)
        # the corners stay on the face below, so a half-space replaces it, at a fifth of the cost of a box
        support = HalfSpace(mb.ground) if below is None else HalfSpace(below, at=[0.0, top], normal=[0, 1])
        name = "floor" if below is None else f"level{i}"
        mb.contact(feet, support, stiffness=STIFFNESS, dissipation=3.0, friction=friction_law, name=name)
        top, below = centre[1] + edge / 2, box
    return mb


@problem("box-stack", summary="stack of boxes that comes to rest, with friction", source="", scheme="lie-em")
def box_stack(count: int = 3, drop: float = 2e-3, shift: float = 0.01) -> Problem:
    """Build the problem; at rest, each contact carries the weight of all boxes above it."""
    return stack_mechanism(count, drop, shift).problem("box-stack", h=5e-4, t_end=1.5)
