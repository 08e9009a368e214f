"""Joints from one table: which directions of the first body's frame are locked, and which pairs of axes stay normal.

Both bodies have a frame at the joint, with axes a_1 a_2 a_3 and b_1 b_2 b_3 that agree in the drawing; the third is the
axis of the joint. A locked direction i is ``a_i . (x_b - x_a) = 0``; where all are locked, the points coincide, which
is linear. A locked pair ij is ``a_i . b_j = 0``. All of them are at most quadratic in directors.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.multibody.placement import Ground, Placement


@dataclass(frozen=True)
class Kind:
    """A kind of joint: locked directions, locked pairs of axes, and what is free and can be measured."""

    directions: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    angle: bool = False  # turns about the third axis
    slide: bool = False  # moves along the third axis
    axis: bool = True  # an axis must be given
    lead: bool = False  # turning moves it along

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
    "screw": Kind((1, 2), _PARALLEL, angle=True, slide=True, lead=True),
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


@dataclass(frozen=True)
class Side:
    """How a joint's frame lies in one of its bodies: what is zero, or an axis of the body itself, need not be computed.

    `lever` says which entries of the lever are not zero, `axes` which axis of the body each axis of the joint is, with
    its sign; nothing if one of them is none of these.
    """

    placement: Placement
    lever: tuple[bool, ...]
    axes: tuple[tuple[int, int], ...] | None

    @classmethod
    def of(cls, placement: Placement, lever: np.ndarray, axes: np.ndarray) -> Side:
        """For a frame given by numbers."""
        if isinstance(placement, Ground):
            return cls(placement, (True,) * len(lever), None)
        found = [(int(np.argmax(np.abs(column))), int(np.sign(column[np.argmax(np.abs(column))]))) for column in axes.T]
        exact = np.zeros_like(axes)
        for j, (i, sign) in enumerate(found):
            exact[i, j] = sign
        aligned = placement.turns and bool(np.array_equal(exact, axes))
        return cls(placement, tuple(bool(x) for x in lever), tuple(found) if aligned else None)

    def parameters(self, lever: np.ndarray, axes: np.ndarray, names: str, turns: bool) -> dict[str, Any]:
        """What an element with this side is given: ``X`` or its entries that are not zero, and ``A``, if need be."""
        X, A = names[0], names[1]
        all_ = {X: lever} if all(self.lever) else {f"{X}{i + 1}": lever[i] for i, used in enumerate(self.lever) if used}
        return all_ | ({A: axes} if self.axes is None and turns else {})

    def point(self, q: Any, k: Any, name: str) -> Any:
        """Where the joint is."""
        if all(self.lever):
            return self.placement.point(q, getattr(k, name))
        return self.placement.point(
            q, [getattr(k, f"{name}{i + 1}") if used else 0.0 for i, used in enumerate(self.lever)]
        )

    def axis(self, q: Any, k: Any, name: str, number: int) -> Any:
        """An axis of the joint."""
        if self.axes is None:
            return self.placement.vector(q, getattr(k, name)[:, number - 1])
        i, sign = self.axes[number - 1]
        d = self.placement.dimension
        director = q[d * (1 + i) : d * (2 + i)]
        return director if sign == 1 else -director


@functools.cache
def locked(a: Side, b: Side, kind: Kind) -> ModelFunction:
    """The constraints of a kind of joint between two bodies; k has levers X, Y and axes A, B (as columns)."""

    def constraints(q: Any, k: Any) -> Any:
        qa, qb = split(a.placement, q)
        gap = b.point(qb, k, "Y") - a.point(qa, k, "X")
        if len(kind.directions) == a.placement.dimension:
            found = list(gap)
        else:
            found = [m.dot(a.axis(qa, k, "A", i), gap) for i in kind.directions]
        return found + [m.dot(a.axis(qa, k, "A", i), b.axis(qb, k, "B", j)) for i, j in kind.pairs]

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
