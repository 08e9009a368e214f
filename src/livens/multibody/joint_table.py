"""Joints from one table: which directions of the first body's frame are locked, and which pairs of axes stay normal.

Both bodies have a frame at the joint, with axes a_1 a_2 a_3 and b_1 b_2 b_3 that agree in the drawing; the third is the
axis of the joint. A locked direction i is ``a_i . (x_b - x_a) = 0``; where all are locked, the points coincide, which
is linear. A locked pair ij is ``a_i . b_j = 0``. All of them are at most quadratic in directors.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.multibody.placement import Placement


@dataclass(frozen=True)
class Kind:
    """A kind of joint: locked directions, locked pairs of axes, and what is free and can be measured."""

    directions: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    angle: bool = False  # turns about the third axis
    slide: bool = False  # moves along the third axis
    axis: bool = True  # an axis must be given

    @property
    def names(self) -> tuple[str, ...]:
        """Of the constraints."""
        return (*(f"along {i}" for i in self.directions), *(f"axes {i}{j}" for i, j in self.pairs))


_PARALLEL = ((1, 3), (2, 3))
_RIGID = ((1, 2), (2, 3), (3, 1))
SPACE = {
    "fixed": Kind((1, 2, 3), _RIGID, axis=False),
    "revolute": Kind((1, 2, 3), _PARALLEL, angle=True),
    "prismatic": Kind((1, 2), _RIGID, slide=True),
    "cylindrical": Kind((1, 2), _PARALLEL, angle=True, slide=True),
    "universal": Kind((1, 2, 3), ((1, 2),)),
    "spherical": Kind((1, 2, 3), axis=False),
    "planar": Kind((3,), _PARALLEL, angle=True),
    "point_on_line": Kind((1, 2), slide=True),
    "point_on_plane": Kind((3,)),
}
#: In the plane there are two axes: the joint moves along the first, and turns about the normal.
PLANE = {
    "fixed": Kind((1, 2), ((1, 2),), axis=False),
    "revolute": Kind((1, 2), angle=True, axis=False),
    "prismatic": Kind((2,), ((1, 2),), slide=True),
    "point_on_line": Kind((2,), slide=True),
}


@functools.cache
def locked(a: Placement, b: Placement, kind: Kind) -> ModelFunction:
    """The constraints of a kind of joint between two placements; k has levers X, Y and axes A, B (as columns)."""

    def constraints(q: Any, k: Any) -> Any:
        qa, qb = split(a, q)
        gap = b.point(qb, k.Y) - a.point(qa, k.X)
        if len(kind.directions) == a.dimension:
            found = list(gap)
        else:
            found = [m.dot(a.vector(qa, k.A[:, i - 1]), gap) for i in kind.directions]
        return found + [m.dot(a.vector(qa, k.A[:, i - 1]), b.vector(qb, k.B[:, j - 1])) for i, j in kind.pairs]

    return constraints


def split(a: Placement, q: Any) -> tuple[Any, Any]:
    """The coordinates of the first and of the second body."""
    n = len(a.names)
    return q[:n], q[n:]


def turn(a: Placement, b: Placement, q: Any, A: Any, B: Any) -> tuple[Any, Any]:
    """Cosine and sine of the angle by which b is turned against a about the axis of their joint (times lengths)."""
    qa, qb = split(a, q)
    first = b.vector(qb, B[:, 0])
    return m.dot(a.vector(qa, A[:, 0]), first), m.dot(a.vector(qa, A[:, 1]), first)
