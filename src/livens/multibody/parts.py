"""Bodies of a model in the reference configuration, with named points and frames (markers), and the ground."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.numbers import array
from livens.multibody.bodies import Body
from livens.multibody.placement import Ground, Placement

_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, eq=False)
class Marker:
    """Named point or frame fixed in a body; it can be used wherever a point is expected."""

    part: Part
    name: str
    lever: np.ndarray  # from the centre of mass, in body axes
    axes: np.ndarray

    @property
    def at(self) -> np.ndarray:
        """Position in the reference configuration, in metres."""
        return self.part.position + self.part.rotation @ self.lever

    def __repr__(self) -> str:
        return f"<point {self.part.name}.{self.name}>"


@dataclass(eq=False)
class Part:
    """Body of a model in the reference configuration, or the ground (which has no element)."""

    name: str
    element: Body | None
    position: np.ndarray
    rotation: np.ndarray  # columns are the body axes
    markers: dict[str, Marker] = field(default_factory=dict)
    #: Solid shape: type and sizes.
    shape: tuple[Any, ...] = ()

    @property
    def dimension(self) -> int:
        return len(self.position)

    @property
    def placement(self) -> Placement:
        return Ground(self.dimension) if self.element is None else self.element.placement

    @property
    def coordinates(self) -> tuple[Any, ...]:
        return () if self.element is None else self.element.coordinates

    @property
    def turns(self) -> bool:
        return self.element is None or self.element.placement.turns

    def point(self, name: str, at: Any) -> Marker:
        """Add a named point at a position of the reference configuration."""
        return self.frame(name, at, None)

    def frame(self, name: str, at: Any, axes: Any = None) -> Marker:
        """Add a named frame: a point and axes, the columns of a matrix in space (by default the global axes)."""
        if name in self.markers or hasattr(type(self), name):
            raise InputError(f"'{self.name}' already has a '{name}'")
        place = point_in_space(f"{self.name}.{name}", at, self.dimension)
        turned = np.eye(self.dimension) if axes is None else array(f"{self.name}.{name}: axes", axes)
        lever = self.rotation.T @ (place - self.position)
        self.markers[name] = Marker(self, name, lever, self.rotation.T @ turned)
        return self.markers[name]

    def lever(self, at: np.ndarray) -> np.ndarray:
        """Return a point of space in body axes, from the centre of mass; points of the ground are unchanged."""
        return np.asarray(at if self.element is None else self.rotation.T @ (at - self.position))

    def inwards(self, directions: np.ndarray) -> np.ndarray:
        """Return directions of space (columns) in body axes."""
        return np.asarray(directions if self.element is None else self.rotation.T @ directions)

    def __getattr__(self, name: str) -> Marker:
        markers = self.__dict__.get("markers", {})
        if name in markers:
            found: Marker = markers[name]
            return found
        raise AttributeError(f"'{self.__dict__.get('name')}' has no point '{name}'{suggestion(name, markers)}")

    def __repr__(self) -> str:
        return f"<{'ground' if self.element is None else 'body'} {self.name}>"


def point_in_space(what: str, given: Any, dimension: int) -> np.ndarray:
    """Return the position of a point argument in the reference configuration: numbers or a marker."""
    if isinstance(given, Marker):
        return given.at
    found = array(what, given)
    if found.shape == (3,) and dimension == 2 and found[2] == 0:
        found = found[:2]
    if found.shape != (dimension,):
        raise InputError(f"{what} must be {dimension} numbers or a named point, got {given!r}")
    return found


def direction(what: str, given: Any, dimension: int = 3) -> np.ndarray:
    """Return a unit vector from "x", "y", "z" or a vector."""
    if isinstance(given, str):
        if given not in _AXES:
            raise InputError(f"{what} must be 'x', 'y', 'z' or a vector, got {given!r}")
        given = _AXES[given][:dimension]
    found = array(what, given)
    if found.shape == (3,) and dimension == 2:
        found = found[:2]
    length = float(np.linalg.norm(found))
    if found.shape != (dimension,) or not length > 0:
        raise InputError(f"{what} must be a direction of {dimension} numbers that are not all zero, got {given!r}")
    return np.asarray(found / length)


def axes_about(third: np.ndarray, first: np.ndarray | None = None) -> np.ndarray:
    """Return a right-handed orthonormal frame (columns) with a given third axis; the first is closest to `first`."""
    if first is None:
        first = np.eye(3)[int(np.argmin(np.abs(third)))]
    x = first - third * (third @ first)
    x = x / np.linalg.norm(x)
    (a, b, c), (d, e, f) = third.tolist(), x.tolist()  # scalars: np.cross of three numbers takes ten times as long
    return np.array([[d, b * f - c * e, a], [e, c * d - a * f, b], [f, a * e - b * d, c]])


def axes_along(first: np.ndarray) -> np.ndarray:
    """Return an orthonormal frame (columns) with a given first axis, in the plane or in space."""
    if len(first) == 2:
        return np.array([[first[0], -first[1]], [first[1], first[0]]])
    about = axes_about(first)
    return about[:, [2, 0, 1]]
