"""A small sphere against the surface of another body: most contacts are of this kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from livens import math as m
from livens.multibody.contacts.geometry.base import Geometry
from livens.multibody.joint_table import split
from livens.multibody.placement import Placement


class Surface:
    """A surface about an origin with axes of its own. Surfaces are values; their sizes are parameters, found in `k`."""

    #: Whether the axes count; those of a sphere do not.
    turned = True

    def invariants(self, arm: Any, axes: Sequence[Any], k: Any) -> Sequence[Any]:
        """What the distance depends on: `arm` is from the origin to the point, `axes` are those of the surface.

        Both are at most linear in the coordinates, and what is returned must be at most quadratic in them.
        """
        raise NotImplementedError

    def distance(self, w: Any, k: Any) -> Any:
        """The distance of the point from the surface, negative within the body."""
        raise NotImplementedError


class Local(Surface):
    """A surface for which all coordinates of the point in its frame count."""

    def invariants(self, arm: Any, axes: Sequence[Any], k: Any) -> Sequence[Any]:
        return [m.dot(axis, arm) for axis in axes]


class Axial(Surface):
    """A surface of revolution about its last axis: the height along it and the square of the distance count.

    Turning the surface about its axis changes neither, so a contact turns no wheel about its axle.
    """

    def invariants(self, arm: Any, axes: Sequence[Any], k: Any) -> Sequence[Any]:
        return [m.dot(axes[-1], arm), m.dot(arm, arm)]


@dataclass(frozen=True)
class Probe(Geometry):
    """A sphere about a point X of a, of radius `reach` (a point, if that is zero), against a surface of b.

    The surface has its origin at the point Y of b, and the columns of B for axes.
    """

    surface: Surface

    def invariants(self, a: Placement, b: Placement, q: Any, k: Any) -> Sequence[Any]:
        qa, qb = split(a, q)
        axes = [b.vector(qb, k.B[:, i]) for i in range(b.dimension)] if self.surface.turned else []
        return self.surface.invariants(a.point(qa, k.X) - b.point(qb, k.Y), axes, k)

    def gap(self, w: Any, k: Any) -> Any:
        return self.surface.distance(w, k) - k.reach

    def foot(self, a: Placement, b: Placement, q: Any, k: Any, normal: Any) -> Any:
        return a.point(split(a, q)[0], k.X) - k.reach * normal
