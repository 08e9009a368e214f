"""Signed distances of surfaces, and the contact of a sphere with a surface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.multibody.contacts.geometry.pair_geometry import PairGeometry
from livens.multibody.joint_types import split_pair
from livens.multibody.parametrisation import Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


class SignedDistance:
    """Signed distance of a surface in its frame. Surfaces are values; their sizes are parameters in `k`."""

    #: Whether the orientation of the frame matters; not for spheres.
    uses_orientation = True

    def invariants(self, arm: Vector, axes: Sequence[Any], k: ParameterNamespace) -> Sequence[Any]:
        """Return the invariants that the distance depends on.

        Parameters
        ----------
        arm : array_like
            Vector from the origin of the surface to the point; at most linear in the coordinates.
        axes : sequence of array_like
            Axes of the surface in space; at most linear in the coordinates.
        k : Namespace
            Parameters.

        Returns
        -------
        sequence
            Invariants, at most quadratic in the coordinates.
        """
        raise NotImplementedError

    def distance(self, w: Vector, k: ParameterNamespace) -> Any:
        """Return the signed distance of the point from the surface.

        Parameters
        ----------
        w : array_like
            Invariants.
        k : Namespace
            Parameters.

        Returns
        -------
        expression
            Distance in m, negative inside the body.
        """
        raise NotImplementedError


class LocalDistance(SignedDistance):
    """Signed distance as a function of the local coordinates of the point."""

    def invariants(self, arm: Vector, axes: Sequence[Any], k: ParameterNamespace) -> Sequence[Any]:
        """Return the local coordinates of the point.

        Parameters
        ----------
        arm : array_like
            Vector from the origin of the surface to the point.
        axes : sequence of array_like
            Axes of the surface in space.
        k : Namespace
            Parameters.

        Returns
        -------
        list
            Local coordinates.
        """
        return [m.dot(axis, arm) for axis in axes]


class AxisymmetricDistance(SignedDistance):
    """Signed distance of a surface of revolution about its last axis: a function of height and squared distance.

    Both are invariant under rotations about the axis, so that frictionless contact exerts no torque about it.
    """

    def invariants(self, arm: Vector, axes: Sequence[Any], k: ParameterNamespace) -> Sequence[Any]:
        """Return the height along the axis and the squared distance from the origin.

        Parameters
        ----------
        arm : array_like
            Vector from the origin of the surface to the point.
        axes : sequence of array_like
            Axes of the surface in space.
        k : Namespace
            Parameters.

        Returns
        -------
        list
            Height and squared distance.
        """
        return [m.dot(axes[-1], arm), m.dot(arm, arm)]


@dataclass(frozen=True)
class SphereOnSurface(PairGeometry):
    """Gap of a sphere about a point X of a, of radius `reach` (zero for a point), and a surface of b.

    The surface has its origin at the point Y of b, and the columns of B as axes.
    """

    surface: SignedDistance

    def invariants(self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> Sequence[Any]:
        qa, qb = split_pair(a, q)
        axes = [b.vector(qb, k.B[:, i]) for i in range(b.dimension)] if self.surface.uses_orientation else []
        return self.surface.invariants(a.point(qa, k.X) - b.point(qb, k.Y), axes, k)

    def gap(self, w: Vector, k: ParameterNamespace) -> ScalarLike:
        return self.surface.distance(w, k) - k.reach

    def witness_point(
        self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace, normal: Vector
    ) -> Vector:
        return a.point(split_pair(a, q)[0], k.X) - k.reach * normal
