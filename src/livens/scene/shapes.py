"""Shapes: the visuals of the parts of a model, whose positions depend on the coordinates.

A `visual` is a function of ``q t k`` that returns a shape or a list of shapes. Positions are points with two or three
components, frames are matrices whose columns are the axes of the shape. Sizes that are omitted are chosen relative to
the extent of the scene.

>>> import livens as lv
>>> from livens import shapes
>>> pendulum = lv.System(
...     "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2],
...     visual=lambda q: [shapes.ground([0, 0]), shapes.rod([0, 0], q), shapes.sphere(q, name="bob")],
... )
>>> [shape.shape_type for shape in pendulum.scene.shapes]
['ground', 'rod', 'sphere']
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.scene.mesh import TriangleMesh, load_mesh, make_mesh
from livens.types import ArrayLike, FloatArray, ScalarLike, Vector, VectorLike
from livens.validation import check_array

__all__ = [
    "SHAPE_TYPES",
    "Shape",
    "axes",
    "box",
    "cable",
    "cone",
    "cylinder",
    "damper",
    "ground",
    "mesh",
    "path",
    "polygon",
    "ring",
    "rod",
    "sphere",
    "spring",
]

#: All shape types.
SHAPE_TYPES = (
    "rod",
    "box",
    "sphere",
    "cylinder",
    "cone",
    "ring",
    "polygon",
    "spring",
    "damper",
    "cable",
    "ground",
    "path",
    "axes",
    "mesh",
)


@dataclass(frozen=True, eq=False)
class Shape:
    """Shape returned by a visual; its points, frame and sizes may be expressions of the coordinates.

    Parameters
    ----------
    shape_type : str
        One of `SHAPE_TYPES`.
    points : tuple
        Points that define the position, with two or three components each, in metres.
    frame : array_like of shape (3, 3) or (2, 2), optional
        Matrix whose columns are the axes of the shape.
    sizes : dict, optional
        Sizes by name, in metres.
    name : str, default ""
        Name of the part.
    trace : float, optional
        Position of the traced point, as a fraction of the way from the first point to the last. Default: no trace.
    mesh : TriangleMesh, optional
        Triangle mesh of a shape of type "mesh".
    colour : str, optional
        Colour ``"#rrggbb"``. Default: chosen by the viewer.
    """

    shape_type: str
    points: tuple[Any, ...]
    frame: Any = None
    sizes: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    trace: float | None = None
    mesh: TriangleMesh | None = None
    colour: str | None = None

    def transformed(self, map_point: Callable[[Any], Any], map_frame: Callable[[Any], Any]) -> Shape:
        """Return the shape transformed from body coordinates to space.

        Parameters
        ----------
        map_point : callable
            Map of a point of the body to space.
        map_frame : callable
            Map of a frame of the body to space.

        Returns
        -------
        Shape
            The transformed shape.
        """
        frame = None if self.frame is None else map_frame(self.frame)
        return dataclasses.replace(self, points=tuple(map_point(X) for X in self.points), frame=frame)


def _drop_none(**sizes: Any) -> dict[str, float]:
    return {name: value for name, value in sizes.items() if value is not None}


def rod(
    a: object, b: Sequence[ScalarLike] | Vector, width: float | None = None, name: str = "", trace: float | None = None
) -> Shape:
    """Return a rod between two points, with pins at both ends.

    Parameters
    ----------
    a, b : array_like
        End points, in metres.
    width : float, optional
        Width, in metres. Default: relative to the extent of the scene.
    name : str, default ""
        Name of the part.
    trace : float, optional
        Position of the traced point, as a fraction from `a` (0) to `b` (1). Default: no trace.

    Returns
    -------
    Shape
        The rod.
    """
    return Shape("rod", (a, b), None, _drop_none(width=width), name, trace)


def cylinder(a: ArrayLike, b: ArrayLike, radius: float, name: str = "", trace: float | None = None) -> Shape:
    """Return a cylinder about the line between two points.

    Parameters
    ----------
    a, b : array_like
        Centres of the end faces, in metres.
    radius : float
        Radius, in metres.
    name : str, default ""
        Name of the part.
    trace : float, optional
        Position of the traced point, as a fraction from `a` (0) to `b` (1). Default: no trace.

    Returns
    -------
    Shape
        The cylinder.
    """
    return Shape("cylinder", (a, b), None, _drop_none(radius=radius), name, trace)


def cone(
    tip: ArrayLike,
    base: ArrayLike,
    radius: float,
    frame: FloatArray | None = None,
    name: str = "",
    trace: float | None = 1.0,
) -> Shape:
    """Return a cone from its tip to the centre of its base.

    Parameters
    ----------
    tip, base : array_like
        Tip and centre of the base, in metres.
    radius : float
        Radius of the base, in metres.
    frame : array_like of shape (3, 3), optional
        Axes as columns; a mark on the base then shows the spin.
    name : str, default ""
        Name of the part.
    trace : float or None, default 1.0
        Position of the traced point, as a fraction from `tip` (0) to `base` (1).

    Returns
    -------
    Shape
        The cone.
    """
    return Shape("cone", (tip, base), frame, _drop_none(radius=radius), name, trace)


@explain_call_errors
def box(
    at: Sequence[float] | Vector,
    size: Sequence[object],
    frame: FloatArray | None = None,
    name: str = "",
    trace: float | None = 0.0,
) -> Shape:
    """Return a box about its centre.

    Parameters
    ----------
    at : array_like
        Centre, in metres.
    size : sequence of float
        Lengths along the axes of the frame, in metres: three, or two in the plane.
    frame : array_like, optional
        Axes as columns. Default: identity.
    name : str, default ""
        Name of the part.
    trace : float or None, default 0.0
        0 traces the centre; None for no trace.

    Returns
    -------
    Shape
        The box.
    """
    lengths = dict(zip(("length", "width", "depth"), size, strict=False))
    return Shape("box", (at,), frame, lengths, name, trace)


def sphere(
    at: Sequence[ScalarLike] | Vector,
    radius: float | None = None,
    frame: FloatArray | None = None,
    name: str = "",
    trace: float | None = 0.0,
) -> Shape:
    """Return a sphere.

    Parameters
    ----------
    at : array_like
        Centre, in metres.
    radius : float, optional
        Radius, in metres. Default: relative to the extent of the scene.
    frame : array_like, optional
        Axes as columns.
    name : str, default ""
        Name of the part.
    trace : float or None, default 0.0
        0 traces the centre; None for no trace.

    Returns
    -------
    Shape
        The sphere.
    """
    return Shape("sphere", (at,), frame, _drop_none(radius=radius), name, trace)


def ring(at: VectorLike, radius: float, frame: object = None, width: float | None = None, name: str = "") -> Shape:
    """Return a ring about the third axis of its frame.

    Parameters
    ----------
    at : array_like
        Centre, in metres.
    radius : float
        Radius, in metres.
    frame : array_like, optional
        Axes as columns. Default: identity.
    width : float, optional
        Width, in metres. Default: relative to the extent of the scene.
    name : str, default ""
        Name of the part.

    Returns
    -------
    Shape
        The ring.
    """
    return Shape("ring", (at,), frame, _drop_none(radius=radius, width=width), name)


@explain_call_errors
def polygon(points: Sequence[object], name: str = "", trace: float | None = None) -> Shape:
    """Return a flat polygonal plate.

    Parameters
    ----------
    points : sequence of array_like
        Corners, in metres.
    name : str, default ""
        Name of the part.
    trace : float, optional
        Position of the traced point, as a fraction from the first corner to the last. Default: no trace.

    Returns
    -------
    Shape
        The polygon.
    """
    return Shape("polygon", tuple(points), None, {}, name, trace)


def spring(a: object, b: object, width: float | None = None, name: str = "") -> Shape:
    """Return a coil spring between two points.

    Parameters
    ----------
    a, b : array_like
        End points, in metres.
    width : float, optional
        Width of the coil, in metres. Default: relative to the extent of the scene.
    name : str, default ""
        Name of the part.

    Returns
    -------
    Shape
        The spring.
    """
    return Shape("spring", (a, b), None, _drop_none(width=width), name)


def damper(a: object, b: object, width: float | None = None, name: str = "") -> Shape:
    """Return a dashpot between two points.

    Parameters
    ----------
    a, b : array_like
        End points, in metres.
    width : float, optional
        Width, in metres. Default: relative to the extent of the scene.
    name : str, default ""
        Name of the part.

    Returns
    -------
    Shape
        The damper.
    """
    return Shape("damper", (a, b), None, _drop_none(width=width), name)


@explain_call_errors
def cable(points: Sequence[object], name: str = "") -> Shape:
    """Return a cable: a thin line through moving points.

    Parameters
    ----------
    points : sequence of array_like
        Points of the line, in metres.
    name : str, default ""
        Name of the part.

    Returns
    -------
    Shape
        The cable.
    """
    return Shape("cable", tuple(points), None, {}, name)


@explain_call_errors
def path(points: Sequence[object], name: str = "") -> Shape:
    """Return a path: a faint line through points, such as the outline of a box or a road.

    Parameters
    ----------
    points : sequence of array_like
        Points of the line, in metres.
    name : str, default ""
        Name of the part.

    Returns
    -------
    Shape
        The path.
    """
    return Shape("path", tuple(points), None, {}, name)


def ground(at: ArrayLike, size: float | None = None, frame: FloatArray | None = None, name: str = "") -> Shape:
    """Return a support at a point, or a floor.

    Parameters
    ----------
    at : array_like
        Point of the support, in metres.
    size : float, optional
        Extent of a floor, in metres. Default: a support symbol.
    frame : array_like, optional
        Axes as columns; the second axis (in space the third) points upwards.
    name : str, default ""
        Name of the part.

    Returns
    -------
    Shape
        The ground.
    """
    return Shape("ground", (at,), frame, _drop_none(size=size), name)


@explain_call_errors
def mesh(
    at: VectorLike,
    file: str | Path | TriangleMesh | None = None,
    *,
    vertices: ArrayLike | None = None,
    faces: ArrayLike | None = None,
    scale: object = 1.0,
    frame: Vector | None = None,
    name: str = "",
    trace: float | None = 0.0,
) -> Shape:
    """Return a triangle mesh from an STL or OBJ file, or from vertices and faces.

    Parameters
    ----------
    at : array_like
        Position of the origin of the mesh, in metres.
    file : str, Path or TriangleMesh, optional
        STL or OBJ file, or a mesh.
    vertices : array_like of shape (n_vertices, 3), optional
        Points, instead of a file.
    faces : array_like of int of shape (n_faces, 3), optional
        Indices of the corners of each triangle.
    scale : float or array_like of shape (3,), default 1.0
        Scale factor, or one per axis.
    frame : array_like of shape (3, 3), optional
        Axes of the mesh as columns. Default: identity.
    name : str, default ""
        Name of the part.
    trace : float or None, default 0.0
        0 traces the origin; None for no trace.

    Returns
    -------
    Shape
        The mesh.

    Raises
    ------
    InputError
        If the mesh cannot be read or is invalid, or a scale factor is zero.

    Examples
    --------
    >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> mesh([0, 0, 0], vertices=corners, faces=[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]).shape_type
    'mesh'
    """
    if (file is None) == (vertices is None):
        raise InputError("a mesh is given by a file or by vertices and faces")
    if isinstance(file, TriangleMesh):
        triangle_mesh = file
    else:
        triangle_mesh = make_mesh("a mesh", vertices, faces) if file is None else load_mesh(Path(file))
    factors = np.atleast_1d(check_array("scale", scale))
    if factors.shape not in ((1,), (3,)) or not np.all(factors != 0):
        raise InputError(f"the scale of a mesh is one factor or three, and none is zero, got {scale!r}")
    triangle_mesh = triangle_mesh.scaled(factors)
    frame_or_identity = np.eye(3) if frame is None else frame
    return Shape(
        "mesh", (at,), frame_or_identity, dict(reach=triangle_mesh.bounding_radius), name, trace, triangle_mesh
    )


def axes(at: VectorLike, frame: FloatArray | None = None, size: float | None = None, name: str = "") -> Shape:
    """Return the axes of a frame.

    Parameters
    ----------
    at : array_like
        Origin, in metres.
    frame : array_like, optional
        Axes as columns. Default: identity.
    size : float, optional
        Length of the axes, in metres. Default: relative to the extent of the scene.
    name : str, default ""
        Name of the part.

    Returns
    -------
    Shape
        The axes.
    """
    return Shape("axes", (at,), frame, _drop_none(size=size), name)
