"""What a part of a model may look like: shapes whose places follow from the coordinates.

A `look` is a function of ``q t k``, as every model function is, that returns a shape or a list of them. Places are
points with two or three components, frames are matrices whose columns are the axes of the shape. Sizes that are left
out are chosen by whoever draws, to suit the size of the whole.

>>> import livens as lv
>>> from livens import shapes
>>> pendulum = lv.System(
...     "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2],
...     look=lambda q: [shapes.ground([0, 0]), shapes.rod([0, 0], q), shapes.sphere(q, name="bob")],
... )
>>> [shape.kind for shape in pendulum.scene.shapes]
['ground', 'rod', 'sphere']
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import array
from livens.models.triangles import Triangles, read, triangles

__all__ = [
    "KINDS",
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

#: Every kind of shape there is.
KINDS = (
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
    """A shape as a look returns it: its places, frame and sizes may be expressions of the coordinates.

    `trace` says which point leaves a path, as a part of the way from the first place to the last; None if none does.
    """

    kind: str
    points: tuple[Any, ...]
    frame: Any = None
    sizes: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    trace: float | None = None
    solid: Triangles | None = None

    def placed(self, point: Callable[[Any], Any], turned: Callable[[Any], Any]) -> Shape:
        """The shape of a body, given in the body's own frame, where the body is."""
        frame = None if self.frame is None else turned(self.frame)
        return dataclasses.replace(self, points=tuple(point(X) for X in self.points), frame=frame)


def _given(**sizes: Any) -> dict[str, Any]:
    return {name: value for name, value in sizes.items() if value is not None}


def rod(a: Any, b: Any, width: Any = None, name: str = "", trace: float | None = None) -> Shape:
    """A bar from one point to another, with pins at both ends."""
    return Shape("rod", (a, b), None, _given(width=width), name, trace)


def cylinder(a: Any, b: Any, radius: Any, name: str = "", trace: float | None = None) -> Shape:
    """A cylinder around the line from one point to another."""
    return Shape("cylinder", (a, b), None, _given(radius=radius), name, trace)


def cone(tip: Any, base: Any, radius: Any, frame: Any = None, name: str = "", trace: float | None = 1.0) -> Shape:
    """A cone from its tip to the middle of its base; with a frame, a mark on the base shows how it spins."""
    return Shape("cone", (tip, base), frame, _given(radius=radius), name, trace)


def box(at: Any, size: Sequence[Any], frame: Any = None, name: str = "", trace: float | None = 0.0) -> Shape:
    """A box about its middle; `size` has its lengths along the axes of the frame, two of them in the plane."""
    lengths = dict(zip(("length", "width", "depth"), size, strict=False))
    return Shape("box", (at,), frame, lengths, name, trace)


def sphere(at: Any, radius: Any = None, frame: Any = None, name: str = "", trace: float | None = 0.0) -> Shape:
    """A ball about a point."""
    return Shape("sphere", (at,), frame, _given(radius=radius), name, trace)


def ring(at: Any, radius: Any, frame: Any = None, width: Any = None, name: str = "") -> Shape:
    """A ring about the third axis of its frame."""
    return Shape("ring", (at,), frame, _given(radius=radius, width=width), name)


def polygon(points: Sequence[Any], name: str = "", trace: float | None = None) -> Shape:
    """A flat plate with these corners."""
    return Shape("polygon", tuple(points), None, {}, name, trace)


def spring(a: Any, b: Any, width: Any = None, name: str = "") -> Shape:
    """A coil from one point to another."""
    return Shape("spring", (a, b), None, _given(width=width), name)


def damper(a: Any, b: Any, width: Any = None, name: str = "") -> Shape:
    """A dashpot from one point to another."""
    return Shape("damper", (a, b), None, _given(width=width), name)


def cable(points: Sequence[Any], name: str = "") -> Shape:
    """A thin line through points that move."""
    return Shape("cable", tuple(points), None, {}, name)


def path(points: Sequence[Any], name: str = "") -> Shape:
    """A faint line through points, such as the outline of a box or a road."""
    return Shape("path", tuple(points), None, {}, name)


def ground(at: Any, size: Any = None, frame: Any = None, name: str = "") -> Shape:
    """A support at a point; with a `size`, a floor of that extent whose second axis (in space the third) is upwards."""
    return Shape("ground", (at,), frame, _given(size=size), name)


def mesh(
    at: Any,
    file: str | Path | Triangles | None = None,
    *,
    vertices: Any = None,
    faces: Any = None,
    scale: Any = 1.0,
    frame: Any = None,
    name: str = "",
    trace: float | None = 0.0,
) -> Shape:
    """A solid of triangles from an STL or OBJ file, or from points and rows of three numbers of points.

    The origin of the file is at the point `at`, its axes are those of the frame; `scale` is one factor, or three.

    >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> mesh([0, 0, 0], vertices=corners, faces=[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]).kind
    'mesh'
    """
    if (file is None) == (vertices is None):
        raise InputError("a mesh is given by a file or by vertices and faces")
    if isinstance(file, Triangles):
        solid = file
    else:
        solid = triangles("a mesh", vertices, faces) if file is None else read(Path(file))
    factors = np.atleast_1d(array("scale", scale))
    if factors.shape not in ((1,), (3,)) or not np.all(factors != 0):
        raise InputError(f"the scale of a mesh is one factor or three, and none is zero, got {scale!r}")
    solid = solid.scaled(factors)
    whole = np.eye(3) if frame is None else frame
    return Shape("mesh", (at,), whole, dict(reach=solid.reach), name, trace, solid)


def axes(at: Any, frame: Any = None, size: Any = None, name: str = "") -> Shape:
    """The axes of a frame."""
    return Shape("axes", (at,), frame, _given(size=size), name)
