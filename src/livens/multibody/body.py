"""Bodies of a model in the reference configuration, with named points and frames (markers), and the ground."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from livens.errors import InputError, suggestion
from livens.multibody.body_elements import BodyElement
from livens.multibody.parametrisation import GroundParametrisation, Parametrisation
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_array

_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, eq=False)
class MovingMarker:
    """Point in space that moves as a given function of time, such as a point of a road or of a shaker."""

    name: str
    position: ModelFunction

    def __repr__(self) -> str:
        return f"<moving marker {self.name}>"


@dataclass(frozen=True, eq=False)
class Marker:
    """Named point or frame fixed in a body; it can be used wherever a point is expected."""

    body: Body
    name: str
    local_position: np.ndarray  # from the centre of mass, in body axes
    axes: np.ndarray

    @property
    def reference_position(self) -> np.ndarray:
        """Position in the reference configuration, in metres."""
        return self.body.reference_position + self.body.reference_rotation @ self.local_position

    def __repr__(self) -> str:
        return f"<point {self.body.name}.{self.name}>"


#: Point in the reference configuration: coordinates in metres, or a marker.
PointLike: TypeAlias = ArrayLike | Marker


@dataclass(eq=False)
class Body:
    """Body of a model in the reference configuration, or the ground (which has no element)."""

    name: str
    element: BodyElement | None
    reference_position: np.ndarray
    reference_rotation: np.ndarray  # columns are the body axes
    markers: dict[str, Marker] = field(default_factory=dict)
    #: Solid shape: type and sizes.
    shape: tuple[Any, ...] = ()

    @property
    def dimension(self) -> int:
        """Dimension of space: 3, or 2 in the plane."""
        return len(self.reference_position)

    @property
    def parametrisation(self) -> Parametrisation:
        """Parametrisation of the configuration."""
        return GroundParametrisation(self.dimension) if self.element is None else self.element.parametrisation

    @property
    def coordinates(self) -> tuple[Any, ...]:
        """Names of the coordinates of the body; empty for the ground."""
        return () if self.element is None else self.element.coordinates

    @property
    def has_orientation(self) -> bool:
        """True if the body has an orientation; False for particles."""
        return self.element is None or self.element.parametrisation.has_orientation

    def point(self, name: str, at: ArrayLike) -> Marker:
        """Add a named point at a position of the reference configuration.

        Parameters
        ----------
        name : str
            Name; the point is then ``body.name``.
        at : array_like
            Position in m.

        Returns
        -------
        Marker
            The point.

        Raises
        ------
        InputError
            If the body has a point or an attribute of this name.
        """
        return self.frame(name, at, None)

    def frame(self, name: str, at: ArrayLike, axes: ArrayLike | None = None) -> Marker:
        """Add a named frame: a point and axes fixed in the body.

        Parameters
        ----------
        name : str
            Name; the frame is then ``body.name``.
        at : array_like
            Position in the reference configuration, in m.
        axes : array_like of shape (d, d), optional
            Axes in the columns, in global coordinates; by default the global axes.

        Returns
        -------
        Marker
            The frame.

        Raises
        ------
        InputError
            If the body has a point or an attribute of this name.
        """
        if name in self.markers or hasattr(type(self), name):
            raise InputError(f"'{self.name}' already has a '{name}'")
        position = parse_point(f"{self.name}.{name}", at, self.dimension)
        global_axes = np.eye(self.dimension) if axes is None else check_array(f"{self.name}.{name}: axes", axes)
        local_position = self.reference_rotation.T @ (position - self.reference_position)
        self.markers[name] = Marker(self, name, local_position, self.reference_rotation.T @ global_axes)
        return self.markers[name]

    def to_local(self, at: np.ndarray) -> np.ndarray:
        """Return a point of space in body axes, from the centre of mass; points of the ground are unchanged.

        Parameters
        ----------
        at : ndarray
            Position in the reference configuration, in m.

        Returns
        -------
        ndarray
            Local position in m.
        """
        return np.asarray(at if self.element is None else self.reference_rotation.T @ (at - self.reference_position))

    def in_body_axes(self, directions: np.ndarray) -> np.ndarray:
        """Return directions of space in body axes.

        Parameters
        ----------
        directions : ndarray of shape (d, n)
            Directions in the columns, in the reference configuration.

        Returns
        -------
        ndarray of shape (d, n)
            Local directions.
        """
        return np.asarray(directions if self.element is None else self.reference_rotation.T @ directions)

    def __getattr__(self, name: str) -> Marker:
        markers = self.__dict__.get("markers", {})
        if name in markers:
            marker: Marker = markers[name]
            return marker
        raise AttributeError(f"'{self.__dict__.get('name')}' has no point '{name}'{suggestion(name, markers)}")

    def __repr__(self) -> str:
        return f"<{'ground' if self.element is None else 'body'} {self.name}>"


def parse_point(context: str, value: object, dimension: int) -> np.ndarray:
    """Return the position of a point argument in the reference configuration: numbers or a marker."""
    if isinstance(value, Marker):
        return value.reference_position
    if isinstance(value, MovingMarker):
        raise InputError(
            f"{context}: the moving marker '{value.name}' can only be an end of springs, dampers and force laws"
        )
    point = check_array(context, value)
    if point.shape == (3,) and dimension == 2 and point[2] == 0:
        point = point[:2]
    if point.shape != (dimension,):
        raise InputError(f"{context} must be {dimension} numbers or a named point, got {value!r}")
    return point


def parse_direction(context: str, value: object, dimension: int = 3) -> np.ndarray:
    """Return a unit vector from "x", "y", "z" or a vector."""
    if isinstance(value, str):
        if value not in _AXES:
            raise InputError(f"{context} must be 'x', 'y', 'z' or a vector, got {value!r}")
        value = _AXES[value][:dimension]
    vector = check_array(context, value)
    if vector.shape == (3,) and dimension == 2:
        vector = vector[:2]
    length = float(np.linalg.norm(vector))
    if vector.shape != (dimension,) or not length > 0:
        raise InputError(f"{context} must be a direction of {dimension} numbers that are not all zero, got {value!r}")
    return np.asarray(vector / length)


def frame_from_z(z_axis: np.ndarray, near_x: np.ndarray | None = None) -> np.ndarray:
    """Return a right-handed orthonormal frame (columns) with a given third axis; the first is closest to `near_x`."""
    if near_x is None:
        near_x = np.eye(3)[int(np.argmin(np.abs(z_axis)))]
    x = near_x - z_axis * (z_axis @ near_x)
    x = x / np.linalg.norm(x)
    (a, b, c), (d, e, f) = z_axis.tolist(), x.tolist()  # scalars: np.cross of three numbers takes ten times as long
    return np.array([[d, b * f - c * e, a], [e, c * d - a * f, b], [f, a * e - b * d, c]])


def frame_from_x(x_axis: np.ndarray) -> np.ndarray:
    """Return an orthonormal frame (columns) with a given first axis, in the plane or in space."""
    if len(x_axis) == 2:
        return np.array([[x_axis[0], -x_axis[1]], [x_axis[1], x_axis[0]]])
    frame = frame_from_z(x_axis)
    return frame[:, [2, 0, 1]]
