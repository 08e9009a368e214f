"""A stack of boxes that is set down and comes to rest."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.multibody.contacts import Friction, HalfSpace, Points
from livens.problems import problem

STIFFNESS, EDGE = 2e4, 0.2


def stack_mechanism(count: int = 3, drop: float = 2e-3, shift: float = 0.01) -> Multibody:
    """In the plane; each box is smaller than the one below, `drop` above it, and shifted to the side."""
    if not 1 <= count <= 6:
        raise InputError("a stack has one to six boxes")
    mb = Multibody(gravity=[0, -9.81], planar=True)
    rubbing = Friction(0.5, smooth=2e-3)
    top, below = 0.0, None
    for i in range(count):
        edge = EDGE * 0.85**i
        middle = np.array([i * shift, top + drop + edge / 2])
        box = mb.box(f"box{i + 1}", at=middle, size=[edge, edge], mass=100 * edge**2)
        feet = Points(box, middle + np.array([[-1, -1], [1, -1]]) * edge / 2)
        # feet never leave the face below them, so it may be a plane, which costs a fifth of a box
        rest = HalfSpace(mb.ground) if below is None else HalfSpace(below, at=[0.0, top], normal=[0, 1])
        name = "floor" if below is None else f"level{i}"
        mb.contact(feet, rest, stiffness=STIFFNESS, damping=3.0, friction=rubbing, name=name)
        top, below = middle[1] + edge / 2, box
    return mb


@problem("box-stack", summary="boxes on top of each other are set down and come to rest", source="", scheme="lie-em")
def box_stack(count: int = 3, drop: float = 2e-3, shift: float = 0.01) -> Problem:
    """At rest, every level carries the weight of all that is above it."""
    return stack_mechanism(count, drop, shift).problem("box-stack", h=5e-4, t_end=1.5)
