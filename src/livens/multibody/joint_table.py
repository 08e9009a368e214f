"""Table of joint types: locked translations and orthogonality conditions of axes.

Both bodies have a frame at the joint, with axes a_1 a_2 a_3 and b_1 b_2 b_3 that coincide in the reference
configuration; the third is the joint axis. A locked translation i is ``a_i . (x_b - x_a) = 0``. If all translations are
locked, the points coincide, which is linear. An orthogonality condition ij is ``a_i . b_j = 0``. All constraints are at
most quadratic in the directors.
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
    """Joint type: locked translations, orthogonal pairs of axes, and free coordinates."""

    directions: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    angle: bool = False  # rotation about the third axis
    slide: bool = False  # translation along the third axis
    axis: bool = True  # an axis is required
    lead: bool = False  # screw: translation coupled to rotation

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constraints."""
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
#: Planar joint types: translation along the first axis, rotation about the normal of the plane.
PLANE = {
    "fixed": Kind((1, 2), ((1, 2),), axis=False),
    "revolute": Kind((1, 2), angle=True, axis=False),
    "prismatic": Kind((2,), ((1, 2),), slide=True),
    "point_on_line": Kind((2,), slide=True),
}


@dataclass(frozen=True)
class Side:
    """Joint frame on one body; zero components and axes that are body axes are not evaluated.

    `lever` marks the non-zero components of the local position. `axes` contains the body axis and the sign of each
    joint axis, or None if a joint axis is not a body axis.
    """

    placement: Placement
    lever: tuple[bool, ...]
    axes: tuple[tuple[int, int], ...] | None

    @classmethod
    def of(cls, placement: Placement, lever: np.ndarray, axes: np.ndarray) -> Side:
        """Return the joint frame of a numerical position and axes."""
        if isinstance(placement, Ground):
            return cls(placement, (True,) * len(lever), None)
        found = [(int(np.argmax(np.abs(column))), int(np.sign(column[np.argmax(np.abs(column))]))) for column in axes.T]
        exact = np.zeros_like(axes)
        for j, (i, sign) in enumerate(found):
            exact[i, j] = sign
        aligned = placement.turns and bool(np.array_equal(exact, axes))
        return cls(placement, tuple(bool(x) for x in lever), tuple(found) if aligned else None)

    def parameters(self, lever: np.ndarray, axes: np.ndarray, names: str, turns: bool) -> dict[str, Any]:
        """Return the parameters of this side: ``X`` or its non-zero components, and ``A`` if it is needed."""
        X, A = names[0], names[1]
        all_ = {X: lever} if all(self.lever) else {f"{X}{i + 1}": lever[i] for i, used in enumerate(self.lever) if used}
        return all_ | ({A: axes} if self.axes is None and turns else {})

    def point(self, q: Any, k: Any, name: str) -> Any:
        """Return the position of the joint on this body."""
        if all(self.lever):
            return self.placement.point(q, getattr(k, name))
        return self.placement.point(
            q, [getattr(k, f"{name}{i + 1}") if used else 0.0 for i, used in enumerate(self.lever)]
        )

    def axis(self, q: Any, k: Any, name: str, number: int) -> Any:
        """Return a joint axis in space."""
        if self.axes is None:
            return self.placement.vector(q, getattr(k, name)[:, number - 1])
        i, sign = self.axes[number - 1]
        d = self.placement.dimension
        director = q[d * (1 + i) : d * (2 + i)]
        return director if sign == 1 else -director


@functools.cache
def locked(a: Side, b: Side, kind: Kind) -> ModelFunction:
    """Return the constraint function of a joint type; k contains points X, Y and axes A, B (columns)."""

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
    """Return the coordinates of the first and of the second body."""
    n = len(a.names)
    return q[:n], q[n:]


def turn(a: Placement, b: Placement, q: Any, A: Any, B: Any) -> tuple[Any, Any]:
    """Return cosine and sine of the joint angle of b relative to a (times the lengths of the directors)."""
    qa, qb = split(a, q)
    first = b.vector(qb, B[:, 0])
    return m.dot(a.vector(qa, A[:, 0]), first), m.dot(a.vector(qa, A[:, 1]), first)
