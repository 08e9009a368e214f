"""Narrow phase: contact points of two collision shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.multibody.body import Body
from livens.multibody.contacts.geometry.box_edges import BoxEdgePair
from livens.multibody.contacts.geometry.capsule_pair import CapsulePair
from livens.multibody.contacts.geometry.ellipsoid import EllipsoidOnPlane
from livens.multibody.contacts.geometry.pair_geometry import PairGeometry
from livens.multibody.contacts.geometry.segment import SegmentOnSurface
from livens.multibody.contacts.geometry.signed_distance import LocalDistance, SphereOnSurface
from livens.multibody.contacts.shapes import (
    Box,
    Capsule,
    CollisionShape,
    ConvexMesh,
    Ellipsoid,
    HalfSpace,
    HollowCylinder,
    HollowSphere,
    PointCloud,
    Sphere,
)


@dataclass(frozen=True)
class ContactPoint:
    """Contact point candidate of two bodies: pair geometry, the bodies in its order, and its parameters.

    `sizes` are parameters of elements. `constants` are compiled into their code, so that zeros and ones cost nothing.
    """

    geometry: PairGeometry
    body_a: Body
    body_b: Body
    parameters: Mapping[str, Any]
    constants: Mapping[str, Any]
    uses_rotation_a: bool = True
    uses_rotation_b: bool = True


def contact_points(name: str, shape_a: CollisionShape, shape_b: CollisionShape) -> list[ContactPoint]:
    """Return all contact points of two shapes."""
    if shape_a.body.dimension != shape_b.body.dimension:
        raise InputError(f"{name}: one body is in the plane, the other in space")
    for shape, other in ((shape_a, shape_b), (shape_b, shape_a)):
        if isinstance(other, HalfSpace) and shape.support_ellipsoids():
            return [_ellipsoid_point(shape, other, *ellipsoid) for ellipsoid in shape.support_ellipsoids()]
    if isinstance(shape_a, Capsule) and isinstance(shape_b, Capsule):
        return [_capsule_point(shape_a, shape_b)]
    polyhedra = Box, ConvexMesh
    if isinstance(shape_a, polyhedra) and isinstance(shape_b, polyhedra):
        # corners of each polyhedron against the faces of the other, and crossing edges of boxes
        edges = [_box_edge_point(shape_a, shape_b)] if _edges_touch(shape_a, shape_b) else []
        return [*_sphere_surface_points(shape_a, shape_b), *_sphere_surface_points(shape_b, shape_a), *edges]
    for shape, other in ((shape_a, shape_b), (shape_b, shape_a)):
        if _can_be_sampled(shape, other):
            return _sphere_surface_points(shape, other)
        if isinstance(shape, Capsule) and isinstance(other, (*polyhedra, Ellipsoid)):
            return _segment_points(shape, other)
    raise InputError(
        f"{name}: contact of {shape_a.label} with {shape_b.label} is not supported. Spheres and points touch all "
        "shapes; planes touch all shapes except planes and hollow ones; boxes, meshes and capsules touch one another, "
        "and the insides of spheres and tubes; capsules touch ellipsoids"
    )


def _can_be_sampled(shape: CollisionShape, other: CollisionShape) -> bool:
    """Return whether sample spheres represent a shape well enough on another one."""
    if other.surface is None or not shape.sample_spheres():
        return False
    if isinstance(shape, (Sphere, PointCloud)) and not isinstance(shape, ConvexMesh):
        return True
    # ends and corners touch first on flat and hollow surfaces
    return isinstance(other, (HalfSpace, HollowSphere, HollowCylinder)) and isinstance(
        shape, (Box, Capsule, ConvexMesh)
    )


def _edges_touch(shape: CollisionShape, other: CollisionShape) -> bool:
    """Return whether two shapes are boxes in space whose crossing edges touch."""
    are_boxes = isinstance(shape, Box) and isinstance(other, Box) and shape.edges and other.edges
    return are_boxes and shape.body.dimension == 3


def _sphere_surface_points(shape: CollisionShape, other: CollisionShape) -> list[ContactPoint]:
    surface = other.surface
    assert surface is not None
    uses_rotation = surface.uses_orientation or bool(np.any(other.local_position))
    points, sample_spheres = [], shape.sample_spheres()
    for local_position, radius in sample_spheres:
        constants = dict(Y=other.local_position, **(dict(B=other.axes) if surface.uses_orientation else {}))
        sizes = dict(reach=radius, **other.sizes)
        # corners differ only in their position: as a parameter, they share their code
        (sizes if len(sample_spheres) > 1 else constants)["X"] = local_position
        points.append(
            ContactPoint(
                SphereOnSurface(surface),
                shape.body,
                other.body,
                sizes,
                constants,
                bool(np.any(local_position)),
                uses_rotation,
            )
        )
    return points


def _capsule_point(shape: Capsule, other: Capsule) -> ContactPoint:
    sizes = dict(
        half=shape.sizes["half"], other=other.sizes["half"], reach=shape.sizes["radius"], radius=other.sizes["radius"]
    )
    constants = dict(X=shape.local_position, Y=other.local_position, E=shape.direction, F=other.direction)
    return ContactPoint(CapsulePair(), shape.body, other.body, sizes, constants)


def _box_edge_point(shape: CollisionShape, other: CollisionShape) -> ContactPoint:
    assert isinstance(shape, Box) and isinstance(other, Box)
    sizes = dict(
        half=shape.sizes["half"] - shape.rounding,
        other=other.sizes["half"] - other.rounding,
        reach=shape.rounding,
        radius=other.rounding,
    )
    constants = dict(X=shape.local_position, Y=other.local_position, A=shape.axes, B=other.axes)
    return ContactPoint(BoxEdgePair(), shape.body, other.body, sizes, constants)


def _ellipsoid_point(
    shape: CollisionShape, plane: HalfSpace, position: np.ndarray, half: np.ndarray, reach: float
) -> ContactPoint:
    constants = dict(A=shape.axes, X=position, Y=plane.local_position, B=plane.axes, reach=reach)
    return ContactPoint(EllipsoidOnPlane(), shape.body, plane.body, dict(half=half), constants)


def _segment_points(shape: Capsule, other: CollisionShape) -> list[ContactPoint]:
    surface = other.surface
    assert isinstance(surface, LocalDistance)
    constants = dict(X=shape.local_position, E=shape.direction, Y=other.local_position, B=other.axes)
    sizes = dict(length=shape.sizes["half"], reach=shape.sizes["radius"], **other.sizes)
    return [
        ContactPoint(SegmentOnSurface(surface, deepest), shape.body, other.body, sizes, constants)
        for deepest in (True, False)
    ]
