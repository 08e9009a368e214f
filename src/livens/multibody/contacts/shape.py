"""Collision shapes: each belongs to a body or to the ground, in the reference configuration."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import array, not_negative, positive
from livens.multibody.connection import clean
from livens.multibody.contacts.geometry.box import BoxSurface
from livens.multibody.contacts.geometry.capsule import CapsuleSurface
from livens.multibody.contacts.geometry.cylinder import CylinderSurface
from livens.multibody.contacts.geometry.half_space import HalfSpaceSurface
from livens.multibody.contacts.geometry.height_field import HeightSurface
from livens.multibody.contacts.geometry.sphere import SphereSurface
from livens.multibody.contacts.geometry.surface import Surface
from livens.multibody.contacts.geometry.torus import TorusSurface
from livens.multibody.parts import Part, axes_about, direction, point_in_space


class Shape:
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
    word = "a shape"
    #: Signed distance; None if other shapes cannot be sampled on it.
    surface: Surface | None = None

    def __init__(self, part: Part, at: Any = None, axes: np.ndarray | None = None, **sizes: Any) -> None:
        if not isinstance(part, Part):
            raise InputError(f"{self.word} belongs to a body or to the ground, got {part!r}")
        self.part, d = part, part.dimension
        place = part.position if at is None else point_in_space(f"{self.word} on {part.name}: at", at, d)
        self.lever = clean(part.lever(place))
        self.axes = clean(part.inwards(part.rotation if axes is None else axes))
        self.sizes = sizes

    @property
    def at(self) -> np.ndarray:
        """Origin in the reference configuration.

        Returns
        -------
        ndarray of shape (d,)
            Position in m.
        """
        return self.part.position + self.part.rotation @ self.lever

    @property
    def drawn_axes(self) -> np.ndarray:
        """Axes in the reference configuration.

        Returns
        -------
        ndarray of shape (d, d)
            Axes as columns.
        """
        return np.asarray(self.part.rotation @ self.axes)

    @property
    def size(self) -> float:
        """Characteristic size: smallest dimension, for the limit of the initial penetration.

        Returns
        -------
        float
            Size in m.
        """
        raise NotImplementedError

    @property
    def reach(self) -> float:
        """Bounding radius: largest distance of a point of the shape from its origin.

        Returns
        -------
        float
            Radius in m.
        """
        sizes = {name: float(np.linalg.norm(value)) for name, value in self.sizes.items()}
        return sum(sizes.values())

    def probes(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: none by default.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        return []

    def curvatures(self, other: Shape) -> Sequence[float]:
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
        raise InputError(f"{self.word} has no curvature at the contact: give a stiffness")

    def __repr__(self) -> str:
        return f"<{self.word} on {self.part.name}>"


class HalfSpace(Shape):
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

    word = "a half-space"
    surface = HalfSpaceSurface()

    def __init__(self, part: Part, at: Any = None, normal: Any = None) -> None:
        if not isinstance(part, Part):
            raise InputError(f"a half-space belongs to a body or to the ground, got {part!r}")
        d = part.dimension
        up = direction("the normal of a half-space", np.eye(d)[-1] if normal is None else normal, d)
        super().__init__(part, at, _axes(up))

    @property
    def size(self) -> float:
        """Characteristic size: infinite.

        Returns
        -------
        float
            Size in m.
        """
        return np.inf

    @property
    def reach(self) -> float:
        """Bounding radius: infinite.

        Returns
        -------
        float
            Radius in m.
        """
        return np.inf

    def curvatures(self, other: Shape) -> Sequence[float]:
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


class HeightField(Shape):
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

    word = "a height field"

    def __init__(self, part: Part, height: Callable[..., Any], at: Any = None, normal: Any = None) -> None:
        if not isinstance(part, Part):
            raise InputError(f"a height field belongs to a body or to the ground, got {part!r}")
        d = part.dimension
        up = direction("the normal of a height field", np.eye(d)[-1] if normal is None else normal, d)
        super().__init__(part, at, _axes(up) if d == 2 or abs(up[0]) > 0.9 else axes_about(up, np.eye(3)[0]))
        if not callable(height):
            raise InputError(f"the height of a height field must be a function of x and y, got {height!r}")
        self.surface = HeightSurface(height)
        self.height = height

    @property
    def size(self) -> float:
        """Characteristic size: infinite.

        Returns
        -------
        float
            Size in m.
        """
        return np.inf

    @property
    def reach(self) -> float:
        """Bounding radius: infinite.

        Returns
        -------
        float
            Radius in m.
        """
        return np.inf


class Sphere(Shape):
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

    word = "a sphere"
    surface = SphereSurface()

    def __init__(self, part: Part, radius: float | None = None, at: Any = None) -> None:
        given = radius if radius is not None else _drawn(part, "sphere", self.word)[0]
        super().__init__(part, at, radius=positive(f"the radius of {self.word}", given))

    @property
    def size(self) -> float:
        """Characteristic size: radius.

        Returns
        -------
        float
            Size in m.
        """
        return float(self.sizes["radius"])

    def probes(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: the sphere.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        return [(self.lever, float(self.sizes["radius"]))]

    def curvatures(self, other: Shape) -> Sequence[float]:
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


class Pocket(Sphere):
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

    word = "a pocket"
    surface = SphereSurface(hollow=True)

    def probes(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: none.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        return []

    def curvatures(self, other: Shape) -> Sequence[float]:
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


class Box(Shape):
    """Box.

    On another shape it is sampled at its corners. The contact of crossing edges of two boxes is not detected.

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
    """

    word = "a box"
    surface = BoxSurface()

    def __init__(
        self, part: Part, size: Any = None, at: Any = None, rotation: Any = None, rounding: float = 0.0
    ) -> None:
        given = size if size is not None else _drawn(part, "box", self.word)
        d = part.dimension if isinstance(part, Part) else 3
        half = array("the size of a box", given, (d,)) / 2
        if not np.all(half > 0):
            raise InputError(f"the edges of a box in contact must be greater than 0, got {list(given)}")
        axes = None if rotation is None else array("the rotation of a box", rotation, (d, d))
        super().__init__(part, at, axes, half=half)
        self.rounding = not_negative("the rounding of a box", rounding)
        if self.rounding > half.min():
            raise InputError(f"a rounding of {self.rounding:g} is more than half of the shortest edge of the box")

    @property
    def size(self) -> float:
        """Characteristic size: shortest edge.

        Returns
        -------
        float
            Size in m.
        """
        return 2 * float(self.sizes["half"].min())

    def probes(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: spheres at the corners.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        within = self.sizes["half"] - self.rounding
        corners = itertools.product((-1.0, 1.0), repeat=len(within))
        return [(clean(self.lever + self.axes @ (np.array(signs) * within)), self.rounding) for signs in corners]

    def curvatures(self, other: Shape) -> Sequence[float]:
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
        if other.probes() and not isinstance(other, Box):
            return 0.0, 0.0  # a face
        return super().curvatures(other)


class Capsule(Shape):
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

    word = "a capsule"
    surface = CapsuleSurface()

    def __init__(self, part: Part, a: Any = None, b: Any = None, radius: float | None = None) -> None:
        if a is None or b is None or radius is None:
            length, drawn = _drawn(part, "rod", self.word)
            along = part.rotation[:, 0] * length / 2
            a, b = (part.position - along if a is None else a), (part.position + along if b is None else b)
            radius = drawn if radius is None else radius
        if not isinstance(part, Part):
            raise InputError(f"a capsule belongs to a body or to the ground, got {part!r}")
        what, d = f"a capsule on {part.name}", part.dimension
        ends = [point_in_space(f"{what}: a", a, d), point_in_space(f"{what}: b", b, d)]
        length = positive("the length of a capsule", np.linalg.norm(ends[1] - ends[0]))
        radius = positive("the radius of a capsule", radius)
        super().__init__(
            part, (ends[0] + ends[1]) / 2, _axes((ends[1] - ends[0]) / length), half=length / 2, radius=radius
        )

    @property
    def size(self) -> float:
        """Characteristic size: radius.

        Returns
        -------
        float
            Size in m.
        """
        return float(self.sizes["radius"])

    @property
    def along(self) -> np.ndarray:
        """Direction of the capsule in body axes.

        Returns
        -------
        ndarray of shape (d,)
            Unit vector.
        """
        return np.asarray(self.axes[:, -1])

    def probes(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: the two end spheres.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        half, radius = self.sizes["half"], float(self.sizes["radius"])
        return [(clean(self.lever + sign * half * self.along), radius) for sign in (-1.0, 1.0)]

    def curvatures(self, other: Shape) -> Sequence[float]:
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
        along = abs(float(self.drawn_axes[:, -1] @ (other.at - self.at)))
        rounded = isinstance(other, HalfSpace) or along > self.sizes["half"]
        return (1 / self.sizes["radius"], 1 / self.sizes["radius"] if rounded else 0.0)


class Cylinder(Shape):
    """Cylinder with flat ends, in contact with spheres and points.

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

    word = "a cylinder"
    surface = CylinderSurface()

    def __init__(
        self, part: Part, radius: float | None = None, length: float | None = None, at: Any = None, axis: Any = None
    ) -> None:
        if radius is None or length is None:
            drawn = _drawn(part, "cylinder", self.word)
            length, radius = drawn[0] if length is None else length, drawn[1] if radius is None else radius
        half = positive(f"the length of {self.word}", length) / 2
        super().__init__(part, at, _about(part, axis), radius=positive(f"the radius of {self.word}", radius), half=half)

    @property
    def size(self) -> float:
        """Characteristic size: smaller of radius and half length.

        Returns
        -------
        float
            Size in m.
        """
        return float(min(self.sizes["radius"], self.sizes["half"]))

    def curvatures(self, other: Shape) -> Sequence[float]:
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
        height = abs(float(self.drawn_axes[:, -1] @ (other.at - self.at)))
        return (0.0, 0.0) if height > self.sizes["half"] else (1 / self.sizes["radius"], 0.0)


class Tube(Cylinder):
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

    word = "a tube"
    surface = CylinderSurface(hollow=True)

    def __init__(self, part: Part, radius: float, at: Any = None, axis: Any = None) -> None:
        super().__init__(part, radius, 1.0, at, axis)

    @property
    def size(self) -> float:
        """Characteristic size: radius.

        Returns
        -------
        float
            Size in m.
        """
        return float(self.sizes["radius"])

    def curvatures(self, other: Shape) -> Sequence[float]:
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


class Torus(Shape):
    """Torus, in contact from outside.

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

    word = "a torus"
    surface = TorusSurface()
    _sign = 1.0

    def __init__(
        self, part: Part, ring: float | None = None, tube: float | None = None, at: Any = None, axis: Any = None
    ) -> None:
        if ring is None or tube is None:
            drawn = _drawn(part, "ring", self.word)
            ring, tube = drawn[0] if ring is None else ring, drawn[1] if tube is None else tube
        sizes = dict(ring=positive(f"the ring of {self.word}", ring), tube=positive(f"the tube of {self.word}", tube))
        super().__init__(part, at, _about(part, axis), **sizes)

    @property
    def size(self) -> float:
        """Characteristic size: radius of the tube.

        Returns
        -------
        float
            Size in m.
        """
        return float(self.sizes["tube"])

    def curvatures(self, other: Shape) -> Sequence[float]:
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
        x, y, z = self.drawn_axes.T @ (other.at - self.at)
        away = np.hypot(x, y) - ring
        s = np.hypot(away, z)
        cosine = away / s if s > 1e-12 * ring else 1.0
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

    word = "a groove"
    surface = TorusSurface(hollow=True)
    _sign = -1.0


class Ellipsoid(Shape):
    """Ellipsoid, in contact with planes.

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

    word = "an ellipsoid"

    def __init__(self, part: Part, half: Any, at: Any = None, rotation: Any = None) -> None:
        d = part.dimension if isinstance(part, Part) else 3
        values = array("the half axes of an ellipsoid", half, (d,))
        if not np.all(values > 0):
            raise InputError(f"the half axes of an ellipsoid must be greater than 0, got {values.tolist()}")
        axes = None if rotation is None else array("the rotation of an ellipsoid", rotation, (d, d))
        super().__init__(part, at, axes, half=values)

    @property
    def size(self) -> float:
        """Characteristic size: shortest semi-axis.

        Returns
        -------
        float
            Size in m.
        """
        return float(self.sizes["half"].min())

    def curvatures(self, other: Shape) -> Sequence[float]:
        """Return the principal curvatures at the contact: those at the vertex closest to the normal of the plane.

        Parameters
        ----------
        other : CollisionShape
            Other shape.

        Returns
        -------
        sequence of float
            Curvatures in the two principal planes in 1/m; negative for concave surfaces.
        """
        normal = other.drawn_axes[:, -1]
        i = int(np.argmax(np.abs(self.drawn_axes.T @ normal)))
        half = self.sizes["half"]
        across = [half[i] / half[j] ** 2 for j in range(len(half)) if j != i]
        return across[0], across[-1]


class Points(Shape):
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

    word = "a set of points"

    def __init__(self, part: Part, points: Any, radius: float = 0.0) -> None:
        super().__init__(part)
        given = array("the points of a contact", points)
        if given.ndim != 2 or given.shape[1] != part.dimension or not len(given):
            raise InputError(f"the points of a contact must have shape (n, {part.dimension}), got {given.shape}")
        self.radius = not_negative("the radius of the points of a contact", radius)
        self.levers = [clean(part.lever(point)) for point in given]

    @property
    def reach(self) -> float:
        """Bounding radius: largest distance of a point from the origin.

        Returns
        -------
        float
            Radius in m.
        """
        return self.radius + max(float(np.linalg.norm(lever - self.lever)) for lever in self.levers)

    @property
    def size(self) -> float:
        """Characteristic size: radius, or a tenth of the extent of the points.

        Returns
        -------
        float
            Size in m.
        """
        return self.radius or max(float(np.ptp(np.array(self.levers), axis=0).max()) / 10, 1e-9)

    def probes(self) -> list[tuple[np.ndarray, float]]:
        """Return the sample spheres: the points.

        Returns
        -------
        list of tuple of (ndarray, float)
            Body-fixed centres from the centre of mass, and radii, in m.
        """
        return [(lever, self.radius) for lever in self.levers]

    def curvatures(self, other: Shape) -> Sequence[float]:
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


def shape_of(given: Any) -> Shape:
    """Return the collision shape of an argument: a shape, the solid of a body, or a plane for the ground."""
    if isinstance(given, Shape):
        return given
    if not isinstance(given, Part):
        raise InputError(f"a contact needs shapes, bodies or the ground, got {given!r}")
    if given.element is None:
        return HalfSpace(given)
    kinds = {"sphere": Sphere, "box": Box, "rod": Capsule, "cylinder": Cylinder, "ring": Torus}
    kind = given.shape[0] if given.shape else ""
    if kind == "particle":
        return Points(given, [given.position])
    if kind not in kinds:
        raise InputError(f"'{given.name}' has no shape for contacts: pass one, such as contacts.Sphere")
    found: Shape = kinds[kind](given)
    return found


def _drawn(part: Any, kind: str, word: str) -> tuple[float, ...]:
    """Return the sizes of the solid of a body, which must have a given shape type."""
    if not isinstance(part, Part):
        raise InputError(f"{word} belongs to a body or to the ground, got {part!r}")
    if not part.shape or part.shape[0] != kind:
        raise InputError(f"'{part.name}' was not created as a {kind}: give the sizes of {word}")
    return tuple(float(x) for x in part.shape[1:])


def _axes(last: np.ndarray) -> np.ndarray:
    """Return axes in space, as columns, with a given last axis."""
    if len(last) == 2:
        return np.array([[last[1], last[0]], [-last[0], last[1]]])
    return axes_about(last)


def _about(part: Any, axis: Any) -> np.ndarray | None:
    """Return axes about an axis in space; None means the body axes, whose third is the axis of cylinders and rings."""
    if not isinstance(part, Part) or part.dimension != 3:
        raise InputError("shapes with an axis need a spatial body")
    return None if axis is None else axes_about(direction("the axis of a shape", axis))
