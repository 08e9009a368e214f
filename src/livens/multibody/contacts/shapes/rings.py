"""Rings and grooves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livens.errors import explain_call_errors
from livens.multibody.body import Body
from livens.multibody.contacts.geometry.torus import TorusDistance
from livens.multibody.contacts.shapes.base import CollisionShape, axes_about, solid_sizes
from livens.types import ArrayLike
from livens.validation import check_positive

#: Bulge of flat ends and rings on a plane, relative to the radius. A flat end has a unique lowest point in every pose.
RELATIVE_BULGE = 1e-3


@explain_call_errors
class Torus(CollisionShape):
    """Torus, in contact from outside with spheres, points and planes.

    On a plane its centre line is slightly convex: the bulge is `RELATIVE_BULGE` times its radius.

    Parameters
    ----------
    body : Body
        Body or ground that the torus belongs to.
    major_radius : float, optional
        Radius of the centre line in m; by default that of a body created by `Multibody.ring`.
    minor_radius : float, optional
        Radius of the tube in m; by default that of the body.
    at : array_like or Marker, optional
        Centre in the reference configuration, in m; by default the centre of the body.
    axis : {"x", "y", "z"} or array_like of shape (3,), optional
        Axis in space; by default the third body axis.
    """

    label = "a torus"
    surface = TorusDistance()
    _sign = 1.0

    def __init__(
        self,
        body: Body,
        major_radius: float | None = None,
        minor_radius: float | None = None,
        at: ArrayLike | None = None,
        axis: ArrayLike | None = None,
    ) -> None:
        if major_radius is None or minor_radius is None:
            body_sizes = solid_sizes(body, "ring", self.label)
            major_radius, minor_radius = (
                body_sizes[0] if major_radius is None else major_radius,
                body_sizes[1] if minor_radius is None else minor_radius,
            )
        sizes = dict(
            ring=check_positive(f"the ring of {self.label}", major_radius),
            tube=check_positive(f"the tube of {self.label}", minor_radius),
        )
        super().__init__(body, at, axes_about(body, axis), **sizes)

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: radius of the tube."""
        return float(self.sizes["tube"])

    def support_ellipsoids(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Return the ellipsoids that touch a plane: a flat one with the radius of the tube around it."""
        ring = float(self.sizes["ring"])
        half = np.array([ring, ring, RELATIVE_BULGE * ring])
        return [(self.local_position, half, float(self.sizes["tube"]))] if self._sign > 0 else []

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: across the tube, and along the ring.

        The second is ``cos(alpha)/(major_radius + minor_radius cos(alpha))`` at the angle alpha of the other shape from
        the plane of the ring.
        """
        ring, tube = self.sizes["ring"], self.sizes["tube"]
        x, y, z = self.reference_axes.T @ (other.reference_position - self.reference_position)
        radial_offset = np.hypot(x, y) - ring
        s = np.hypot(radial_offset, z)
        cosine = radial_offset / s if s > 1e-12 * ring else 1.0
        return self._sign / tube, self._sign * cosine / (ring + tube * cosine)


@explain_call_errors
class Groove(Torus):
    """Groove of a raceway: the inside of the tube of a torus, for inner and outer races of ball bearings.

    Parameters
    ----------
    body : Body
        Body or ground that the groove belongs to.
    major_radius : float, optional
        Radius of the centre line in m; by default that of a body created by `Multibody.ring`.
    minor_radius : float, optional
        Radius of the groove in m; by default that of the body.
    at : array_like or Marker, optional
        Centre in the reference configuration, in m; by default the centre of the body.
    axis : {"x", "y", "z"} or array_like of shape (3,), optional
        Axis in space; by default the third body axis.
    """

    label = "a groove"
    surface = TorusDistance(is_hollow=True)
    _sign = -1.0
