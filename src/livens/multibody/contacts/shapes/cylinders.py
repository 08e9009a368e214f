"""Capsules, cylinders and tubes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.multibody.body import Body, parse_point
from livens.multibody.body_constraint import snap_to_axes
from livens.multibody.contacts.geometry.capsule import CapsuleDistance
from livens.multibody.contacts.geometry.cylinder import CylinderDistance
from livens.multibody.contacts.shapes.base import CollisionShape, axes_about, axes_with_last, solid_sizes
from livens.multibody.contacts.shapes.planes import HalfSpace
from livens.types import ArrayLike
from livens.validation import check_positive

#: Bulge of flat ends and rings on a plane, relative to the radius. A flat end has a unique lowest point in every pose.
RELATIVE_BULGE = 1e-3


@explain_call_errors
class Capsule(CollisionShape):
    """Capsule: a cylinder with hemispherical ends.

    Parameters
    ----------
    body : Body
        Body or ground that the capsule belongs to.
    a, b : array_like or Marker, optional
        Ends of the segment in the reference configuration, in m; by default those of a body created by
        `Multibody.rod`.
    radius : float, optional
        Radius in m; by default that of the rod.
    """

    label = "a capsule"
    surface = CapsuleDistance()

    def __init__(
        self, body: Body, a: ArrayLike | None = None, b: ArrayLike | None = None, radius: float | None = None
    ) -> None:
        if a is None or b is None or radius is None:
            length, rod_radius = solid_sizes(body, "rod", self.label)
            along = body.reference_rotation[:, 0] * length / 2
            a, b = (
                (body.reference_position - along if a is None else a),
                (body.reference_position + along if b is None else b),
            )
            radius = rod_radius if radius is None else radius
        if not isinstance(body, Body):
            raise InputError(f"a capsule belongs to a body or to the ground, got {body!r}")
        context, d = f"a capsule on {body.name}", body.dimension
        ends = [parse_point(f"{context}: a", a, d), parse_point(f"{context}: b", b, d)]
        length = check_positive("the length of a capsule", np.linalg.norm(ends[1] - ends[0]))
        radius = check_positive("the radius of a capsule", radius)
        super().__init__(
            body, (ends[0] + ends[1]) / 2, axes_with_last((ends[1] - ends[0]) / length), half=length / 2, radius=radius
        )

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: radius."""
        return float(self.sizes["radius"])

    @property
    def direction(self) -> np.ndarray:
        """Direction of the capsule in body axes.

        Returns
        -------
        ndarray of shape (d,)
            Unit vector.
        """
        return np.asarray(self.axes[:, -1])

    def sample_spheres(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: the two end spheres."""
        half, radius = self.sizes["half"], float(self.sizes["radius"])
        return [(snap_to_axes(self.local_position + sign * half * self.direction), radius) for sign in (-1.0, 1.0)]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those of the cylinder, or of its ends."""
        axial_distance = abs(float(self.reference_axes[:, -1] @ (other.reference_position - self.reference_position)))
        rounded = isinstance(other, HalfSpace) or axial_distance > self.sizes["half"]
        return (1 / self.sizes["radius"], 1 / self.sizes["radius"] if rounded else 0.0)


@explain_call_errors
class Cylinder(CollisionShape):
    """Cylinder with flat ends, in contact with spheres, points and planes.

    On a plane it touches with one point of each rim. The ends are slightly convex there: the bulge is
    `RELATIVE_BULGE` times the radius.

    Parameters
    ----------
    body : Body
        Body or ground that the cylinder belongs to.
    radius : float, optional
        Radius in m; by default that of a body created by `Multibody.cylinder`.
    length : float, optional
        Length in m; by default that of the body.
    at : array_like or Marker, optional
        Centre in the reference configuration, in m; by default the centre of the body.
    axis : {"x", "y", "z"} or array_like of shape (3,), optional
        Axis in space; by default the third body axis.
    """

    label = "a cylinder"
    surface = CylinderDistance()

    def __init__(
        self,
        body: Body,
        radius: float | None = None,
        length: float | None = None,
        at: ArrayLike | None = None,
        axis: ArrayLike | None = None,
    ) -> None:
        if radius is None or length is None:
            body_sizes = solid_sizes(body, "cylinder", self.label)
            length, radius = body_sizes[0] if length is None else length, body_sizes[1] if radius is None else radius
        half = check_positive(f"the length of {self.label}", length) / 2
        super().__init__(
            body, at, axes_about(body, axis), radius=check_positive(f"the radius of {self.label}", radius), half=half
        )

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: smaller of radius and half length."""
        return float(min(self.sizes["radius"], self.sizes["half"]))

    def support_ellipsoids(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Return the ellipsoids that touch a plane: flat ones at both ends, which replace the discs."""
        radius = float(self.sizes["radius"])
        half = np.array([radius, radius, RELATIVE_BULGE * radius])
        arm = (float(self.sizes["half"]) - half[2]) * self.axes[:, -1]
        return [(snap_to_axes(self.local_position + sign * arm), half, 0.0) for sign in (-1.0, 1.0)]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those of the lateral surface, zero on the ends."""
        height = abs(float(self.reference_axes[:, -1] @ (other.reference_position - self.reference_position)))
        return (0.0, 0.0) if height > self.sizes["half"] else (1 / self.sizes["radius"], 0.0)


@explain_call_errors
class HollowCylinder(Cylinder):
    """Inside of a hollow cylinder without ends.

    Parameters
    ----------
    body : Body
        Body or ground that the hollow cylinder belongs to.
    radius : float
        Radius in m.
    at : array_like or Marker, optional
        Point of the axis in the reference configuration, in m; by default the centre of the body.
    axis : {"x", "y", "z"} or array_like of shape (3,), optional
        Axis in space; by default the third body axis.
    """

    label = "a tube"
    surface = CylinderDistance(is_hollow=True)

    def __init__(self, body: Body, radius: float, at: Any = None, axis: Any = None) -> None:
        super().__init__(body, radius, 1.0, at, axis)

    def support_ellipsoids(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Return the ellipsoids that touch a plane: none."""
        return []

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: radius."""
        return float(self.sizes["radius"])

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: concave."""
        return -1 / self.sizes["radius"], 0.0
