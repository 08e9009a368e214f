"""Collision shapes: each belongs to a body or to the ground, in the reference configuration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.multibody.body import Body, frame_from_z, parse_direction, parse_point
from livens.multibody.body_constraint import snap_to_axes
from livens.multibody.contacts.geometry.box import BoxDistance
from livens.multibody.contacts.geometry.capsule import CapsuleDistance
from livens.multibody.contacts.geometry.cylinder import CylinderDistance
from livens.multibody.contacts.geometry.ellipsoid import EllipsoidDistance
from livens.multibody.contacts.geometry.half_space import HalfSpaceDistance
from livens.multibody.contacts.geometry.height_field import HeightFieldDistance
from livens.multibody.contacts.geometry.polyhedron import PolyhedronDistance
from livens.multibody.contacts.geometry.signed_distance import SignedDistance
from livens.multibody.contacts.geometry.sphere import SphereDistance
from livens.multibody.contacts.geometry.torus import TorusDistance
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_array, check_bool, check_nonnegative, check_positive

#: Largest number of vertices of a convex mesh: each touches a plane by its own contact point.
MAX_HULL_VERTICES = 200
#: Bulge of flat ends and rings on a plane, relative to the radius. A flat end has a unique lowest point in every pose.
RELATIVE_BULGE = 1e-3


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
        super().__init__(body, at, _axes_with_last(up))

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: infinite.

        Returns
        -------
        float
            Size in m.
        """
        return np.inf

    @property
    def bounding_radius(self) -> float:
        """Bounding radius: infinite.

        Returns
        -------
        float
            Radius in m.
        """
        return np.inf

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: zero.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        return 0.0, 0.0


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
        super().__init__(
            body, at, _axes_with_last(up) if d == 2 or abs(up[0]) > 0.9 else frame_from_z(up, np.eye(3)[0])
        )
        if not callable(height):
            raise InputError(f"the height of a height field must be a function of x and y, got {height!r}")
        self.surface = HeightFieldDistance(height)
        self.height = height

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: infinite.

        Returns
        -------
        float
            Size in m.
        """
        return np.inf

    @property
    def bounding_radius(self) -> float:
        """Bounding radius: infinite.

        Returns
        -------
        float
            Radius in m.
        """
        return np.inf


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
        value = radius if radius is not None else _solid_sizes(body, "sphere", self.label)[0]
        super().__init__(body, at, radius=check_positive(f"the radius of {self.label}", value))

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: radius.

        Returns
        -------
        float
            Size in m.
        """
        return float(self.sizes["radius"])

    def sample_spheres(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: the sphere.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        return [(self.local_position, float(self.sizes["radius"]))]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those of the sphere.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        return (1 / self.sizes["radius"],) * 2


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
        """Return the sample spheres: none.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        return []

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: concave.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        return (-1 / self.sizes["radius"],) * 2


class Box(CollisionShape):
    """Box.

    On another shape it is sampled at its corners. Two boxes also touch with crossing edges.

    Parameters
    ----------
    body : Body
        Body or ground that the box belongs to.
    size : array_like, optional
        Edge lengths in m; by default those of a body created by `Multibody.box`.
    at : array_like or Marker, optional
        Centre in the reference configuration, in m; by default the centre of the body.
    rotation : array_like of shape (d, d), optional
        Axes of the box as columns; by default those of the body.
    rounding : float, default 0
        Radius in m of the inscribed spheres at the corners.
    edges : bool, default True
        Whether crossing edges of two boxes touch. Without it, as for boxes that lie flat on each other, the
        equations of a pair are about half as long.
    """

    label = "a box"
    surface = BoxDistance()

    def __init__(
        self,
        body: Body,
        size: Any = None,
        at: Any = None,
        rotation: Any = None,
        rounding: float = 0.0,
        edges: bool = True,
    ) -> None:
        value = size if size is not None else _solid_sizes(body, "box", self.label)
        d = body.dimension if isinstance(body, Body) else 3
        half = check_array("the size of a box", value, (d,)) / 2
        if not np.all(half > 0):
            raise InputError(f"the edges of a box in contact must be greater than 0, got {list(value)}")
        axes = None if rotation is None else check_array("the rotation of a box", rotation, (d, d))
        super().__init__(body, at, axes, half=half)
        self.rounding = check_nonnegative("the rounding of a box", rounding)
        if self.rounding > half.min():
            raise InputError(f"a rounding of {self.rounding:g} is more than half of the shortest edge of the box")
        self.edges = check_bool("edges", edges)

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: shortest edge.

        Returns
        -------
        float
            Size in m.
        """
        return 2 * float(self.sizes["half"].min())

    def sample_spheres(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: spheres at the corners.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        inner_half = self.sizes["half"] - self.rounding
        corners = itertools.product((-1.0, 1.0), repeat=len(inner_half))
        return [
            (snap_to_axes(self.local_position + self.axes @ (np.array(signs) * inner_half)), self.rounding)
            for signs in corners
        ]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: zero on a face.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        if other.sample_spheres() and not isinstance(other, Box):
            return 0.0, 0.0  # a face
        return super().curvatures(other)


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
            length, rod_radius = _solid_sizes(body, "rod", self.label)
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
            body, (ends[0] + ends[1]) / 2, _axes_with_last((ends[1] - ends[0]) / length), half=length / 2, radius=radius
        )

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: radius.

        Returns
        -------
        float
            Size in m.
        """
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
        """Return the sample spheres: the two end spheres.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        half, radius = self.sizes["half"], float(self.sizes["radius"])
        return [(snap_to_axes(self.local_position + sign * half * self.direction), radius) for sign in (-1.0, 1.0)]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those of the cylinder, or of its ends.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        axial_distance = abs(float(self.reference_axes[:, -1] @ (other.reference_position - self.reference_position)))
        rounded = isinstance(other, HalfSpace) or axial_distance > self.sizes["half"]
        return (1 / self.sizes["radius"], 1 / self.sizes["radius"] if rounded else 0.0)


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
            solid_sizes = _solid_sizes(body, "cylinder", self.label)
            length, radius = solid_sizes[0] if length is None else length, solid_sizes[1] if radius is None else radius
        half = check_positive(f"the length of {self.label}", length) / 2
        super().__init__(
            body, at, _axes_about(body, axis), radius=check_positive(f"the radius of {self.label}", radius), half=half
        )

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: smaller of radius and half length.

        Returns
        -------
        float
            Size in m.
        """
        return float(min(self.sizes["radius"], self.sizes["half"]))

    def support_ellipsoids(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Return the ellipsoids that touch a plane: flat ones at both ends, which replace the discs.

        Returns
        -------
        list of tuple of (ndarray, ndarray, float)
            Body-fixed centres from the centre of mass, semi-axes along the axes of the shape, and distances of the
            surface from the ellipsoid, in m.
        """
        radius = float(self.sizes["radius"])
        half = np.array([radius, radius, RELATIVE_BULGE * radius])
        arm = (float(self.sizes["half"]) - half[2]) * self.axes[:, -1]
        return [(snap_to_axes(self.local_position + sign * arm), half, 0.0) for sign in (-1.0, 1.0)]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those of the lateral surface, zero on the ends.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        height = abs(float(self.reference_axes[:, -1] @ (other.reference_position - self.reference_position)))
        return (0.0, 0.0) if height > self.sizes["half"] else (1 / self.sizes["radius"], 0.0)


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
        """Return the ellipsoids that touch a plane: none.

        Returns
        -------
        list of tuple of (ndarray, ndarray, float)
            Body-fixed centres from the centre of mass, semi-axes along the axes of the shape, and distances of the
            surface from the ellipsoid, in m.
        """
        return []

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: radius.

        Returns
        -------
        float
            Size in m.
        """
        return float(self.sizes["radius"])

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: concave.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        return -1 / self.sizes["radius"], 0.0


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
            solid_sizes = _solid_sizes(body, "ring", self.label)
            major_radius, minor_radius = (
                solid_sizes[0] if major_radius is None else major_radius,
                solid_sizes[1] if minor_radius is None else minor_radius,
            )
        sizes = dict(
            ring=check_positive(f"the ring of {self.label}", major_radius),
            tube=check_positive(f"the tube of {self.label}", minor_radius),
        )
        super().__init__(body, at, _axes_about(body, axis), **sizes)

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: radius of the tube.

        Returns
        -------
        float
            Size in m.
        """
        return float(self.sizes["tube"])

    def support_ellipsoids(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Return the ellipsoids that touch a plane: a flat one with the radius of the tube around it.

        Returns
        -------
        list of tuple of (ndarray, ndarray, float)
            Body-fixed centres from the centre of mass, semi-axes along the axes of the shape, and distances of the
            surface from the ellipsoid, in m.
        """
        ring = float(self.sizes["ring"])
        half = np.array([ring, ring, RELATIVE_BULGE * ring])
        return [(self.local_position, half, float(self.sizes["tube"]))] if self._sign > 0 else []

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: across the tube, and along the ring.

        The second is ``cos(alpha)/(major_radius + minor_radius cos(alpha))`` at the angle alpha of the other shape from
        the plane of the ring.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        ring, tube = self.sizes["ring"], self.sizes["tube"]
        x, y, z = self.reference_axes.T @ (other.reference_position - self.reference_position)
        radial_offset = np.hypot(x, y) - ring
        s = np.hypot(radial_offset, z)
        cosine = radial_offset / s if s > 1e-12 * ring else 1.0
        return self._sign / tube, self._sign * cosine / (ring + tube * cosine)


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
        """Characteristic size: shortest semi-axis.

        Returns
        -------
        float
            Size in m.
        """
        return float(self.sizes["half"].min())

    @property
    def bounding_radius(self) -> float:
        """Bounding radius: longest semi-axis.

        Returns
        -------
        float
            Radius in m.
        """
        return float(self.sizes["half"].max())

    def support_ellipsoids(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Return the ellipsoids that touch a plane: the ellipsoid.

        Returns
        -------
        list of tuple of (ndarray, ndarray, float)
            Body-fixed centres from the centre of mass, semi-axes along the axes of the shape, and distances of the
            surface from the ellipsoid, in m.
        """
        return [(self.local_position, self.sizes["half"], 0.0)]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those at the vertex closest to the normal.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        is_plane = isinstance(other, HalfSpace)
        normal = other.reference_axes[:, -1] if is_plane else other.reference_position - self.reference_position
        i = int(np.argmax(np.abs(self.reference_axes.T @ normal)))
        half = self.sizes["half"]
        across = [half[i] / half[j] ** 2 for j in range(len(half)) if j != i]
        return across[0], across[-1]


class PointCloud(CollisionShape):
    """Point cloud of a body, such as the vertices of a mesh.

    Parameters
    ----------
    body : Body
        Body or ground that the points belong to.
    points : array_like of shape (n_points, d)
        Points in the reference configuration, in m.
    radius : float, default 0
        Radius of a sphere about each point, in m.
    """

    label = "a set of points"

    def __init__(self, body: Body, points: ArrayLike, radius: float = 0.0) -> None:
        super().__init__(body)
        value = check_array("the points of a contact", points)
        if value.ndim != 2 or value.shape[1] != body.dimension or not len(value):
            raise InputError(f"the points of a contact must have shape (n, {body.dimension}), got {value.shape}")
        self.radius = check_nonnegative("the radius of the points of a contact", radius)
        self.local_positions = [snap_to_axes(body.to_local(point)) for point in value]

    @property
    def bounding_radius(self) -> float:
        """Bounding radius: largest distance of a point from the origin.

        Returns
        -------
        float
            Radius in m.
        """
        return self.radius + max(
            float(np.linalg.norm(local_position - self.local_position)) for local_position in self.local_positions
        )

    @property
    def characteristic_size(self) -> float:
        """Characteristic size: radius, or a tenth of the extent of the points.

        Returns
        -------
        float
            Size in m.
        """
        return self.radius or max(float(np.ptp(np.array(self.local_positions), axis=0).max()) / 10, 1e-9)

    def sample_spheres(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: the points.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        return [(local_position, self.radius) for local_position in self.local_positions]

    def curvatures(self, other: CollisionShape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those of the spheres.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        return (1 / self.radius,) * 2 if self.radius else super().curvatures(other)


class ConvexMesh(PointCloud):
    """Convex hull of points, such as the vertices of a mesh.

    Its vertices touch planes, boxes, hollow shapes and other meshes; spheres touch its faces, edges and vertices.

    Parameters
    ----------
    body : Body
        Body or ground that the mesh belongs to.
    points : array_like of shape (n_points, 3)
        Points in the reference configuration, in m; those inside their convex hull are left out.

    Raises
    ------
    InputError
        If the points are not in space, lie in one plane, or have more than `MAX_HULL_VERTICES` vertices.
    """

    label = "a convex mesh"

    def __init__(self, body: Body, points: ArrayLike) -> None:
        from scipy.spatial import ConvexHull, QhullError  # slow import

        super().__init__(body, points)
        if body.dimension != 3:
            raise InputError("a convex mesh belongs to a body in space")
        local = np.array(self.local_positions)
        try:
            hull = ConvexHull(local)
        except QhullError:
            raise InputError(f"the points of a convex mesh on {body.name} lie in one plane") from None
        if len(hull.vertices) > MAX_HULL_VERTICES:
            raise InputError(
                f"the convex mesh on {body.name} has {len(hull.vertices)} vertices, more than {MAX_HULL_VERTICES}: "
                "use fewer points, or another shape"
            )
        self.local_positions = [local[i] for i in hull.vertices]
        self.local_position = snap_to_axes(local[hull.vertices].mean(axis=0))
        self.axes = np.eye(3)
        triangles = []
        for corners, equation in zip(hull.simplices, hull.equations, strict=True):
            a, b, c = local[corners] - self.local_position
            is_outward = np.cross(b - a, c - a) @ equation[:3] > 0
            triangles.append(tuple(tuple(x.tolist()) for x in ((a, b, c) if is_outward else (a, c, b))))
        self.surface = PolyhedronDistance(tuple(triangles))


def default_shape(value: Any) -> CollisionShape:
    """Return the collision shape of an argument: a shape, the solid of a body, or a plane for the ground."""
    if isinstance(value, CollisionShape):
        return value
    if not isinstance(value, Body):
        raise InputError(f"a contact needs shapes, bodies or the ground, got {value!r}")
    if value.element is None:
        return HalfSpace(value)
    shape_types = {"sphere": Sphere, "box": Box, "rod": Capsule, "cylinder": Cylinder, "ring": Torus}
    shape_type = value.shape[0] if value.shape else ""
    if shape_type == "particle":
        return PointCloud(value, [value.reference_position])
    if shape_type not in shape_types:
        raise InputError(f"'{value.name}' has no shape for contacts: pass one, such as contacts.Sphere")
    shape: CollisionShape = shape_types[shape_type](value)
    return shape


def _solid_sizes(body: Body, shape_type: str, label: str) -> tuple[float, ...]:
    """Return the sizes of the solid of a body, which must have a given shape type."""
    if not isinstance(body, Body):
        raise InputError(f"{label} belongs to a body or to the ground, got {body!r}")
    if not body.shape or body.shape[0] != shape_type:
        raise InputError(f"'{body.name}' was not created as a {shape_type}: give the sizes of {label}")
    return tuple(float(x) for x in body.shape[1:])


def _axes_with_last(last: np.ndarray) -> np.ndarray:
    """Return axes in space, as columns, with a given last axis."""
    if len(last) == 2:
        return np.array([[last[1], last[0]], [-last[0], last[1]]])
    return frame_from_z(last)


def _axes_about(body: Body, axis: ArrayLike | None) -> np.ndarray | None:
    """Return axes about an axis in space; None means the body axes, whose third is the axis of cylinders and rings."""
    if not isinstance(body, Body) or body.dimension != 3:
        raise InputError("shapes with an axis need a spatial body")
    return None if axis is None else frame_from_z(parse_direction("the axis of a shape", axis))
