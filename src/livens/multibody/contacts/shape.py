"""Shapes that touch: each belongs to a body, or to the ground, in its drawn pose."""

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
    """What all of them have: a body, an origin and axes on it, and sizes.

    A shape may be a surface, which others lie on, or small spheres (`probes`), which lie on others, or both.
    """

    #: What messages call it.
    word = "a shape"
    #: Nothing, if others cannot lie on it.
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
        """Its origin in the drawing."""
        return self.part.position + self.part.rotation @ self.lever

    @property
    def drawn_axes(self) -> np.ndarray:
        """Its axes in the drawing, as columns."""
        return np.asarray(self.part.rotation @ self.axes)

    @property
    def size(self) -> float:
        """Its smallest measure, to tell a deep overlap from one that pushes back."""
        raise NotImplementedError

    @property
    def reach(self) -> float:
        """How far its farthest point is from its origin."""
        sizes = {name: float(np.linalg.norm(value)) for name, value in self.sizes.items()}
        return sum(sizes.values())

    def probes(self) -> list[tuple[np.ndarray, float]]:
        """Points of the body, from its centre, each with the radius of a sphere about it."""
        return []

    def curvatures(self, other: Shape) -> Sequence[float]:
        """In the two principal planes where it touches the other; negative where it is hollow."""
        raise InputError(f"{self.word} has no curvature where it touches: give a stiffness")

    def __repr__(self) -> str:
        return f"<{self.word} on {self.part.name}>"


class HalfSpace(Shape):
    """All that is below a plane through `at`, by default through the origin; its `normal` shows out of the solid."""

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
        return np.inf

    @property
    def reach(self) -> float:
        return np.inf

    def curvatures(self, other: Shape) -> Sequence[float]:
        return 0.0, 0.0


class HeightField(Shape):
    """Ground that goes up and down: all that is below a height over the plane through `at` with this `normal`.

    `height` is a function of two coordinates in that plane (of one, for bodies in the plane), written like those of
    models: ``lambda x, y: 0.1 * math.sin(x)``. The coordinates are those along space's x and y where the normal is z;
    ``shape.drawn_axes`` has them. Spheres and points lie on it, and must be smaller than its hollows are curved.
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
        return np.inf

    @property
    def reach(self) -> float:
        return np.inf


class Sphere(Shape):
    """A ball; of a drawn sphere, its radius and centre unless they are given. In the plane, a disc."""

    word = "a sphere"
    surface = SphereSurface()

    def __init__(self, part: Part, radius: float | None = None, at: Any = None) -> None:
        given = radius if radius is not None else _drawn(part, "sphere", self.word)[0]
        super().__init__(part, at, radius=positive(f"the radius of {self.word}", given))

    @property
    def size(self) -> float:
        return float(self.sizes["radius"])

    def probes(self) -> list[tuple[np.ndarray, float]]:
        return [(self.lever, float(self.sizes["radius"]))]

    def curvatures(self, other: Shape) -> Sequence[float]:
        return (1 / self.sizes["radius"],) * 2


class Pocket(Sphere):
    """The inside of a hollow sphere, which something lies in."""

    word = "a pocket"
    surface = SphereSurface(hollow=True)

    def probes(self) -> list[tuple[np.ndarray, float]]:
        return []

    def curvatures(self, other: Shape) -> Sequence[float]:
        return (-1 / self.sizes["radius"],) * 2


class Box(Shape):
    """A box; of a drawn one, its size unless it is given.

    Where it lies on something it is seen as its corners: points, or spheres of the radius `rounding` that just fit into
    them. Between two boxes, edges that cross are not seen.
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
            raise InputError(f"the edges of a box that touches must be greater than 0, got {list(given)}")
        axes = None if rotation is None else array("the rotation of a box", rotation, (d, d))
        super().__init__(part, at, axes, half=half)
        self.rounding = not_negative("the rounding of a box", rounding)
        if self.rounding > half.min():
            raise InputError(f"a rounding of {self.rounding:g} is more than half of the shortest edge of the box")

    @property
    def size(self) -> float:
        return 2 * float(self.sizes["half"].min())

    def probes(self) -> list[tuple[np.ndarray, float]]:
        within = self.sizes["half"] - self.rounding
        corners = itertools.product((-1.0, 1.0), repeat=len(within))
        return [(clean(self.lever + self.axes @ (np.array(signs) * within)), self.rounding) for signs in corners]

    def curvatures(self, other: Shape) -> Sequence[float]:
        if other.probes() and not isinstance(other, Box):
            return 0.0, 0.0  # a face
        return super().curvatures(other)


class Capsule(Shape):
    """A round bar from `a` to `b` with round ends about these; of a drawn rod, its ends and radius."""

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
        return float(self.sizes["radius"])

    @property
    def along(self) -> np.ndarray:
        """Its direction on the body."""
        return np.asarray(self.axes[:, -1])

    def probes(self) -> list[tuple[np.ndarray, float]]:
        half, radius = self.sizes["half"], float(self.sizes["radius"])
        return [(clean(self.lever + sign * half * self.along), radius) for sign in (-1.0, 1.0)]

    def curvatures(self, other: Shape) -> Sequence[float]:
        along = abs(float(self.drawn_axes[:, -1] @ (other.at - self.at)))
        rounded = isinstance(other, HalfSpace) or along > self.sizes["half"]
        return (1 / self.sizes["radius"], 1 / self.sizes["radius"] if rounded else 0.0)


class Cylinder(Shape):
    """A round bar with flat ends, seen by spheres and points; of a drawn cylinder, its sizes unless they are given."""

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
        return float(min(self.sizes["radius"], self.sizes["half"]))

    def curvatures(self, other: Shape) -> Sequence[float]:
        height = abs(float(self.drawn_axes[:, -1] @ (other.at - self.at)))
        return (0.0, 0.0) if height > self.sizes["half"] else (1 / self.sizes["radius"], 0.0)


class Tube(Cylinder):
    """The inside of a round tube, without ends."""

    word = "a tube"
    surface = CylinderSurface(hollow=True)

    def __init__(self, part: Part, radius: float, at: Any = None, axis: Any = None) -> None:
        super().__init__(part, radius, 1.0, at, axis)

    @property
    def size(self) -> float:
        return float(self.sizes["radius"])

    def curvatures(self, other: Shape) -> Sequence[float]:
        return -1 / self.sizes["radius"], 0.0


class Torus(Shape):
    """A ring of the radius `ring` with a round section of the radius `tube`, about an `axis`, seen from outside."""

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
        return float(self.sizes["tube"])

    def curvatures(self, other: Shape) -> Sequence[float]:
        """Across the section first, then along the ring: ``cos(alpha)/(ring + tube cos(alpha))`` at the angle alpha at
        which the other one lies, from the plane of the ring."""
        ring, tube = self.sizes["ring"], self.sizes["tube"]
        x, y, z = self.drawn_axes.T @ (other.at - self.at)
        away = np.hypot(x, y) - ring
        s = np.hypot(away, z)
        cosine = away / s if s > 1e-12 * ring else 1.0
        return self._sign / tube, self._sign * cosine / (ring + tube * cosine)


class Groove(Torus):
    """The inside of such a tube: what the balls of a bearing run in, at the outer race as at the inner one."""

    word = "a groove"
    surface = TorusSurface(hollow=True)
    _sign = -1.0


class Ellipsoid(Shape):
    """An ellipsoid with half axes, along those of the body unless a `rotation` says otherwise; it lies on planes."""

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
        return float(self.sizes["half"].min())

    def curvatures(self, other: Shape) -> Sequence[float]:
        """At the end of the axis that is nearest to the normal of the plane."""
        normal = other.drawn_axes[:, -1]
        i = int(np.argmax(np.abs(self.drawn_axes.T @ normal)))
        half = self.sizes["half"]
        across = [half[i] / half[j] ** 2 for j in range(len(half)) if j != i]
        return across[0], across[-1]


class Points(Shape):
    """Points of a body, such as the corners of a mesh, each given in space in the drawn pose."""

    word = "a set of points"

    def __init__(self, part: Part, points: Any, radius: float = 0.0) -> None:
        super().__init__(part)
        given = array("the points of a contact", points)
        if given.ndim != 2 or given.shape[1] != part.dimension or not len(given):
            raise InputError(f"the points of a contact must be rows of {part.dimension} numbers, got {given.shape}")
        self.radius = not_negative("the radius of the points of a contact", radius)
        self.levers = [clean(part.lever(point)) for point in given]

    @property
    def reach(self) -> float:
        return self.radius + max(float(np.linalg.norm(lever - self.lever)) for lever in self.levers)

    @property
    def size(self) -> float:
        return self.radius or max(float(np.ptp(np.array(self.levers), axis=0).max()) / 10, 1e-9)

    def probes(self) -> list[tuple[np.ndarray, float]]:
        return [(lever, self.radius) for lever in self.levers]

    def curvatures(self, other: Shape) -> Sequence[float]:
        return (1 / self.radius,) * 2 if self.radius else super().curvatures(other)


def shape_of(given: Any) -> Shape:
    """What is given as a shape; of a body, as it is drawn; of the ground, the plane through the origin."""
    if isinstance(given, Shape):
        return given
    if not isinstance(given, Part):
        raise InputError(f"a contact is between shapes, bodies or the ground, got {given!r}")
    if given.element is None:
        return HalfSpace(given)
    kinds = {"sphere": Sphere, "box": Box, "rod": Capsule, "cylinder": Cylinder, "ring": Torus}
    kind = given.shape[0] if given.shape else ""
    if kind == "particle":
        return Points(given, [given.position])
    if kind not in kinds:
        raise InputError(f"'{given.name}' is drawn without a shape that touches: say which, such as contacts.Sphere")
    found: Shape = kinds[kind](given)
    return found


def _drawn(part: Any, kind: str, word: str) -> tuple[float, ...]:
    """The sizes of a body that is drawn as this kind of shape."""
    if not isinstance(part, Part):
        raise InputError(f"{word} belongs to a body or to the ground, got {part!r}")
    if not part.shape or part.shape[0] != kind:
        raise InputError(f"'{part.name}' is not drawn as a {kind}: give the sizes of {word}")
    return tuple(float(x) for x in part.shape[1:])


def _axes(last: np.ndarray) -> np.ndarray:
    """Axes in space, as columns, whose last is given."""
    if len(last) == 2:
        return np.array([[last[1], last[0]], [-last[0], last[1]]])
    return axes_about(last)


def _about(part: Any, axis: Any) -> np.ndarray | None:
    """Axes about one of space; without it, those of the body, whose third is the axis of drawn cylinders and rings."""
    if not isinstance(part, Part) or part.dimension != 3:
        raise InputError("only bodies in space have shapes about an axis")
    return None if axis is None else axes_about(direction("the axis of a shape", axis))
