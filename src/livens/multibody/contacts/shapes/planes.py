"""Planes and height fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.multibody.body import Body, frame_from_z, parse_direction
from livens.multibody.contacts.geometry.half_space import HalfSpaceDistance
from livens.multibody.contacts.geometry.height_field import HeightFieldDistance
from livens.multibody.contacts.shapes.base import CollisionShape, axes_with_last
from livens.types import ArrayLike, ModelFunction


@explain_call_errors
class HalfSpace(CollisionShape):
    """Half-space below a plane.

    Parameters
    ----------
    body : Body
        Body or ground that the half-space belongs to.
    at : array_like or Marker, optional
        Point of the plane, in m; by default the centre of the body (for the ground, the origin).
    normal : {"x", "y", "z"} or array_like, optional
        Outward normal; by default the last axis.
    """

    label = "a half-space"
    surface = HalfSpaceDistance()

    def __init__(self, body: Body, at: ArrayLike | None = None, normal: Any = None) -> None:
        if not isinstance(body, Body):
            raise InputError(f"a half-space belongs to a body or to the ground, got {body!r}")
        d = body.dimension
        up = parse_direction("the normal of a half-space", np.eye(d)[-1] if normal is None else normal, d)
        super().__init__(body, at, axes_with_last(up))

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: infinite."""
        return np.inf

    @property
    def bounding_radius(self) -> float:
        """Bounding radius: infinite."""
        return np.inf

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: zero."""
        return 0.0, 0.0


@explain_call_errors
class HeightField(CollisionShape):
    """Height field: the region below a height over a plane.

    Spheres and points collide with it; their radii must be smaller than its radii of curvature.

    Parameters
    ----------
    body : Body
        Body or ground that the height field belongs to.
    height : callable
        Height in m as a function of two coordinates in the plane (one in planar models), written with `livens.math`:
        ``lambda x, y: 0.1 * math.sin(x)``. The coordinates are along the global x and y if the normal is z, in general
        along ``shape.reference_axes``.
    at : array_like or Marker, optional
        Point of the plane, in m; by default the centre of the body (for the ground, the origin).
    normal : {"x", "y", "z"} or array_like, optional
        Normal of the plane; by default the last axis.
    """

    label = "a height field"

    def __init__(self, body: Body, height: ModelFunction, at: Any = None, normal: ArrayLike | None = None) -> None:
        if not isinstance(body, Body):
            raise InputError(f"a height field belongs to a body or to the ground, got {body!r}")
        d = body.dimension
        up = parse_direction("the normal of a height field", np.eye(d)[-1] if normal is None else normal, d)
        super().__init__(body, at, axes_with_last(up) if d == 2 or abs(up[0]) > 0.9 else frame_from_z(up, np.eye(3)[0]))
        if not callable(height):
            raise InputError(f"the height of a height field must be a function of x and y, got {height!r}")
        self.surface = HeightFieldDistance(height)
        self.height = height

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: infinite."""
        return np.inf

    @property
    def bounding_radius(self) -> float:
        """Bounding radius: infinite."""
        return np.inf
