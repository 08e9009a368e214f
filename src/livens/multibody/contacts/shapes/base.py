"""Collision shape of a body: origin, axes, sizes; sample spheres and support ellipsoids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.multibody.body import Body, frame_from_z, parse_direction, parse_point
from livens.multibody.body_constraint import snap_to_axes
from livens.multibody.contacts.geometry.signed_distance import SignedDistance
from livens.types import ArrayLike


class CollisionShape:
    """Collision shape of a body: origin, axes and sizes.

    A shape has a signed distance (`surface`), on which others are sampled, or sample spheres, or both.

    Parameters
    ----------
    body : Body
        Body or ground that the shape belongs to.
    at : array_like or Marker, optional
        Origin in the reference configuration, in m; by default the centre of the body.
    axes : ndarray of shape (d, d), optional
        Axes in space as columns; by default those of the body.
    **sizes : float or array_like
        Sizes in m, parameters of the signed distance.

    Raises
    ------
    InputError
        If `body` is not a body.
    """

    #: Name in messages.
    label = "a shape"
    #: Signed distance; None if other shapes cannot be sampled on it.
    surface: SignedDistance | None = None

    def __init__(self, body: Body, at: ArrayLike | None = None, axes: np.ndarray | None = None, **sizes: Any) -> None:
        if not isinstance(body, Body):
            raise InputError(f"{self.label} belongs to a body or to the ground, got {body!r}")
        self.body, d = body, body.dimension
        position = body.reference_position if at is None else parse_point(f"{self.label} on {body.name}: at", at, d)
        self.local_position = snap_to_axes(body.to_local(position))
        self.axes = snap_to_axes(body.in_body_axes(body.reference_rotation if axes is None else axes))
        self.sizes = sizes

    @property
    def reference_position(self) -> np.ndarray:
        """Origin in the reference configuration.

        Returns
        -------
        ndarray of shape (d,)
            Position in m.
        """
        return self.body.reference_position + self.body.reference_rotation @ self.local_position

    @property
    def reference_axes(self) -> np.ndarray:
        """Axes in the reference configuration.

        Returns
        -------
        ndarray of shape (d, d)
            Axes as columns.
        """
        return np.asarray(self.body.reference_rotation @ self.axes)

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: smallest dimension, for the limit of the initial penetration.

        Returns
        -------
        float
            Size in m.
        """
        raise NotImplementedError

    @property
    def bounding_radius(self) -> float:
        """Bounding radius: largest distance of a point of the shape from its origin.

        Returns
        -------
        float
            Radius in m.
        """
        sizes = {name: float(np.linalg.norm(value)) for name, value in self.sizes.items()}
        return sum(sizes.values())

    def sample_spheres(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: none by default.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        return []

    def support_ellipsoids(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Return the ellipsoids that touch a plane: none by default.

        Returns
        -------
        list of tuple of (ndarray, ndarray, float)
            Body-fixed centres from the centre of mass, semi-axes along the axes of the shape, and distances of the
            surface from the ellipsoid, in m.
        """
        return []

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: not defined for a general shape.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        raise InputError(f"{self.label} has no curvature at the contact: give a stiffness")

    def __repr__(self) -> str:
        return f"<{self.label} on {self.body.name}>"


def solid_sizes(body: Body, shape_type: str, label: str) -> tuple[float, ...]:
    """Return the sizes of the solid of a body, which must have a given shape type."""
    if not isinstance(body, Body):
        raise InputError(f"{label} belongs to a body or to the ground, got {body!r}")
    if not body.shape or body.shape[0] != shape_type:
        raise InputError(f"'{body.name}' was not created as a {shape_type}: give the sizes of {label}")
    return tuple(float(x) for x in body.shape[1:])


def axes_with_last(last: np.ndarray) -> np.ndarray:
    """Return axes in space, as columns, with a given last axis."""
    if len(last) == 2:
        return np.array([[last[1], last[0]], [-last[0], last[1]]])
    return frame_from_z(last)


def axes_about(body: Body, axis: ArrayLike | None) -> np.ndarray | None:
    """Return axes about an axis in space; None means the body axes, whose third is the axis of cylinders and rings."""
    if not isinstance(body, Body) or body.dimension != 3:
        raise InputError("shapes with an axis need a spatial body")
    return None if axis is None else frame_from_z(parse_direction("the axis of a shape", axis))
