"""Spheres, hollow spheres and ellipsoids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.multibody.body import Body
from livens.multibody.contacts.geometry.ellipsoid import EllipsoidDistance
from livens.multibody.contacts.geometry.sphere import SphereDistance
from livens.multibody.contacts.shapes.base import CollisionShape, solid_sizes
from livens.multibody.contacts.shapes.planes import HalfSpace
from livens.types import ArrayLike
from livens.validation import check_array, check_positive


@explain_call_errors
class Sphere(CollisionShape):
    """Sphere; a disc in the plane.

    Parameters
    ----------
    body : Body
        Body or ground that the sphere belongs to.
    radius : float, optional
        Radius in m; by default that of a body created by `Multibody.sphere`.
    at : array_like or Marker, optional
        Centre in the reference configuration, in m; by default the centre of the body.
    """

    label = "a sphere"
    surface = SphereDistance()

    def __init__(self, body: Body, radius: float | None = None, at: ArrayLike | None = None) -> None:
        value = radius if radius is not None else solid_sizes(body, "sphere", self.label)[0]
        super().__init__(body, at, radius=check_positive(f"the radius of {self.label}", value))

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: radius."""
        return float(self.sizes["radius"])

    def sample_spheres(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: the sphere."""
        return [(self.local_position, float(self.sizes["radius"]))]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those of the sphere."""
        return (1 / self.sizes["radius"],) * 2


@explain_call_errors
class HollowSphere(Sphere):
    """Inside of a hollow sphere.

    Parameters
    ----------
    body : Body
        Body or ground that the hollow sphere belongs to.
    radius : float, optional
        Radius in m; by default that of a body created by `Multibody.sphere`.
    at : array_like or Marker, optional
        Centre in the reference configuration, in m; by default the centre of the body.
    """

    label = "a pocket"
    surface = SphereDistance(is_hollow=True)

    def sample_spheres(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: none."""
        return []

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: concave."""
        return (-1 / self.sizes["radius"],) * 2


@explain_call_errors
class Ellipsoid(CollisionShape):
    """Ellipsoid, in contact with planes, spheres and points.

    Parameters
    ----------
    body : Body
        Body or ground that the ellipsoid belongs to.
    half : array_like of shape (d,)
        Semi-axes in m.
    at : array_like or Marker, optional
        Centre in the reference configuration, in m; by default the centre of the body.
    rotation : array_like of shape (d, d), optional
        Axes of the ellipsoid as columns; by default those of the body.
    """

    label = "an ellipsoid"
    surface = EllipsoidDistance()

    def __init__(
        self, body: Body, half: ArrayLike, at: ArrayLike | None = None, rotation: ArrayLike | None = None
    ) -> None:
        d = body.dimension if isinstance(body, Body) else 3
        values = check_array("the half axes of an ellipsoid", half, (d,))
        if not np.all(values > 0):
            raise InputError(f"the half axes of an ellipsoid must be greater than 0, got {values.tolist()}")
        axes = None if rotation is None else check_array("the rotation of an ellipsoid", rotation, (d, d))
        super().__init__(body, at, axes, half=values)

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: shortest semi-axis."""
        return float(self.sizes["half"].min())

    @property
    def bounding_radius(self) -> float:
        """Bounding radius: longest semi-axis."""
        return float(self.sizes["half"].max())

    def support_ellipsoids(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Return the ellipsoids that touch a plane: the ellipsoid."""
        return [(self.local_position, self.sizes["half"], 0.0)]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those at the vertex closest to the normal."""
        is_plane = isinstance(other, HalfSpace)
        normal = other.reference_axes[:, -1] if is_plane else other.reference_position - self.reference_position
        i = int(np.argmax(np.abs(self.reference_axes.T @ normal)))
        half = self.sizes["half"]
        across = [half[i] / half[j] ** 2 for j in range(len(half)) if j != i]
        return across[0], across[-1]
