"""Parts of a mechanism as they are drawn: bodies with named points and frames, and the ground."""

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
    """A named point of a part, with axes if it is a frame: usable wherever a point is."""

    part: Part
    name: str
    lever: np.ndarray  # from the centre, in the part's own axes
    axes: np.ndarray

    @property
    def at(self) -> np.ndarray:
        """Where it is in the drawing."""
        return self.part.position + self.part.rotation @ self.lever

    def __repr__(self) -> str:
        return f"<point {self.part.name}.{self.name}>"


@dataclass(eq=False)
class Part:
    """A body of a mechanism in its drawn pose, or the ground (which has no element)."""

    name: str
    element: Body | None
    position: np.ndarray
    rotation: np.ndarray  # its columns are the part's axes
    markers: dict[str, Marker] = field(default_factory=dict)
    #: How it looks: a word and sizes.
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
        """A named point, given where it is in the drawing."""
        return self.frame(name, at, None)

    def frame(self, name: str, at: Any, axes: Any = None) -> Marker:
        """A named point with axes of its own, the columns of a matrix in space; by default those of space."""
        if name in self.markers or hasattr(type(self), name):
            raise InputError(f"'{self.name}' has a '{name}' already")
        place = point_in_space(f"{self.name}.{name}", at, self.dimension)
        turned = np.eye(self.dimension) if axes is None else array(f"{self.name}.{name}: axes", axes)
        lever = self.rotation.T @ (place - self.position)
        self.markers[name] = Marker(self, name, lever, self.rotation.T @ turned)
        return self.markers[name]

    def lever(self, at: np.ndarray) -> np.ndarray:
        """A point of space in the part's own axes, from its centre, in the drawn pose; of the ground, as it is."""
        return np.asarray(at if self.element is None else self.rotation.T @ (at - self.position))

    def inwards(self, directions: np.ndarray) -> np.ndarray:
        """Directions of space, as columns, in the part's own axes."""
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
    """Where a point is in the drawing: given by numbers, or as a named point."""
    if isinstance(given, Marker):
        return given.at
    found = array(what, given)
    if found.shape == (3,) and dimension == 2 and found[2] == 0:
        found = found[:2]
    if found.shape != (dimension,):
        raise InputError(f"{what} must be {dimension} numbers or a named point, got {given!r}")
    return found


def direction(what: str, given: Any, dimension: int = 3) -> np.ndarray:
    """A direction of unit length: "x", "y", "z" or a vector."""
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
    """Orthonormal axes, as columns, whose third is given; the first as near as can be to another direction."""
    if first is None:
        first = np.eye(3)[int(np.argmin(np.abs(third)))]
    x = first - third * (third @ first)
    x = x / np.linalg.norm(x)
    (a, b, c), (d, e, f) = third.tolist(), x.tolist()  # of three numbers, NumPy's product takes ten times as long
    return np.array([[d, b * f - c * e, a], [e, c * d - a * f, b], [f, a * e - b * d, c]])


def axes_along(first: np.ndarray) -> np.ndarray:
    """Orthonormal axes, as columns, whose first is given; in the plane or in space."""
    if len(first) == 2:
        return np.array([[first[0], -first[1]], [first[1], first[0]]])
    about = axes_about(first)
    return about[:, [2, 0, 1]]
