"""Scene of a model: its shapes and their positions as functions of the state. Plain data, stored in result files.

Plots and the viewer use only the scene; see `livens.shapes` for the visuals of a model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import ModelError
from livens.expressions.parameters import Namespace
from livens.expressions.read import ModelFunction, Reader
from livens.models.shapes import KINDS, Shape, sphere
from livens.models.tape import Entry, Tape, checked, evaluated, recorded
from livens.models.triangles import Triangles

#: Maximum number of shapes read from a file.
_MOST = 1_000_000


@dataclass(frozen=True)
class Drawn:
    """Shape of a scene; its points, frame and sizes are indices of entries of the scene's tape."""

    kind: str
    name: str
    points: tuple[tuple[int, ...], ...]
    frame: tuple[int, ...] = ()  # nine entries in row-major order, or none
    sizes: Mapping[str, int] = field(default_factory=dict)
    trace: float | None = None
    mesh: int | None = None  # index among the meshes of the scene

    def plain(self) -> list[Any]:
        found = [self.kind, self.name, self.points, self.frame, dict(self.sizes), self.trace]
        return found if self.mesh is None else [*found, self.mesh]


@dataclass(frozen=True)
class Scene:
    """Scene: all shapes of a model; `dimension` is 2 if all points are planar."""

    dimension: int = 3
    tape: tuple[Any, ...] = ()
    shapes: tuple[Drawn, ...] = ()
    meshes: tuple[Triangles, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.shapes)

    @property
    def traced(self) -> list[Drawn]:
        """Shapes with a trace whose points depend on the state."""
        return [shape for shape in self.shapes if shape.trace is not None and self.moves(shape)]

    def moves(self, shape: Drawn) -> bool:
        """Return whether the points of a shape depend on the state or on time."""
        return any(isinstance(self.tape[i], list) for point in shape.points for i in point)

    def at(self, q: np.ndarray, t: np.ndarray) -> Pose:
        """Return the evaluated scene for the rows of q at the times t."""
        return Pose(len(t), evaluated(self.tape, np.atleast_2d(q), np.asarray(t, dtype=float)))

    # -- JSON ---------------------------------------------------------------------------------------------------------
    def plain(self) -> dict[str, Any]:
        """Return the scene as lists, strings and numbers for JSON."""
        if not self.shapes:
            return {}
        solids = {"meshes": [mesh.plain() for mesh in self.meshes]} if self.meshes else {}
        return {
            "dimension": self.dimension,
            "tape": list(self.tape),
            "shapes": [shape.plain() for shape in self.shapes],
            **solids,
        }

    @classmethod
    def read(cls, plain: Mapping[str, Any], coordinates: int) -> Scene:
        """Return a scene from untrusted JSON data, validated."""
        if not plain:
            return cls()
        try:
            tape = checked(plain["tape"], coordinates)
            meshes = tuple(Triangles.from_plain(mesh) for mesh in plain.get("meshes", ()))
            shapes = [_read(shape, len(tape), len(meshes)) for shape in plain["shapes"][:_MOST]]
            return cls(2 if plain["dimension"] == 2 else 3, tuple(tape), tuple(shapes), meshes)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"its scene cannot be read: {error}") from None


def _read(plain: Sequence[Any], entries: int, meshes: int) -> Drawn:
    kind, name, points, frame, sizes, trace, *solid = plain
    used = [*(i for point in points for i in point), *frame, *sizes.values()]
    if kind not in KINDS or len(frame) not in (0, 9) or any(len(point) != 3 for point in points) or not points:
        raise ValueError(f"invalid shape {kind!r}")
    if not all(isinstance(i, int) and 0 <= i < entries for i in used):
        raise ValueError(f"'{name}' refers to missing entries of the tape")
    if (kind == "mesh") != bool(solid) or not all(isinstance(i, int) and 0 <= i < meshes for i in solid):
        raise ValueError(f"'{name}' refers to a missing mesh")
    return Drawn(
        kind,
        str(name),
        tuple(map(tuple, points)),
        tuple(frame),
        {str(key): i for key, i in sizes.items()},
        None if trace is None else float(trace),
        solid[0] if solid else None,
    )


class Pose:
    """Evaluated scene: positions of the shapes in one state or in many."""

    def __init__(self, rows: int, values: Sequence[Any]) -> None:
        self.rows, self._values = rows, values

    def _array(self, entries: Sequence[int]) -> np.ndarray:
        return np.stack([np.broadcast_to(self._values[i], self.rows) for i in entries], axis=1)

    def values(self, entry: int) -> Any:
        """Return the values of one entry of the tape for all rows, or one number if it is constant."""
        return self._values[entry]

    def points(self, shape: Drawn) -> np.ndarray:
        """Return the points of a shape, of shape (n_rows, n_points, 3)."""
        return np.stack([self._array(point) for point in shape.points], axis=1)

    def frames(self, shape: Drawn) -> np.ndarray | None:
        """Return the frames of a shape, of shape (n_rows, 3, 3) with axes as columns, or None."""
        return self._array(shape.frame).reshape(-1, 3, 3) if shape.frame else None

    def size(self, shape: Drawn, name: str, default: float) -> float:
        """Return a size of a shape in the first row."""
        entry = shape.sizes.get(name)
        value = default if entry is None else float(self._array([entry])[0, 0])
        return value if np.isfinite(value) and value > 0 else default

    def traced(self, shape: Drawn) -> np.ndarray:
        """Return the traced point of a shape, of shape (n_rows, 3)."""
        points = self.points(shape)
        part = shape.trace or 0.0
        return np.asarray(points[:, 0] if part == 0 else points[:, 0] + part * (points[:, -1] - points[:, 0]))


@dataclass(frozen=True)
class Look:
    """Visual function with its coordinate indices, its parameter values and the name of its part."""

    function: ModelFunction
    index: Sequence[int]
    k: Mapping[str, Any]
    name: str = ""


def scene_of(coordinates: int, looks: Sequence[Look]) -> Scene:
    """Build the scene of some visuals; visuals with equal functions and parameters are traced once."""
    drawn: dict[Any, _Drawing] = {}
    tape, shapes, planar = Tape(), list[Drawn](), True
    meshes: dict[int, Triangles] = {}
    for look in looks:
        key = look.function, len(look.index), _values(look.k)
        if key not in drawn:
            drawn[key] = _Drawing(look)
        drawing = drawn[key]
        entries = tape.extended(drawing.tape, look.index)
        places = [entries[i] for i in drawing.places]
        for shape, solid in zip(drawing.shapes, drawing.solids, strict=True):
            if solid is not None:
                meshes.setdefault(id(solid), solid)
            number = None if solid is None else list(meshes).index(id(solid))
            shapes.append(_moved(shape, places, look.name, number))
        planar = planar and drawing.planar
    return Scene(2 if planar else 3, tuple(tape.entries), _distinct(shapes), tuple(meshes.values()))


class _Drawing:
    """Traced visual: its shapes and a tape in local coordinates."""

    def __init__(self, look: Look) -> None:
        q, t = ca.SX.sym("q", len(look.index)), ca.SX.sym("t")
        where = f" of '{look.name}'" if look.name else ""
        own = m.symbols(q)
        read = Reader({"q": own, "x": own, "t": t, "k": Namespace(dict(look.k))}, where, must="return")
        shapes = listed(read.value("visual", look.function, "qxtk"), where)
        self.planar = all(len(point) == 2 for shape in shapes for point in shape.points)
        scalars: list[Any] = []

        def entry(value: Any) -> int:
            scalars.append(float(value) if isinstance(value, (int, float, np.number)) else m.expression(value))
            return len(scalars) - 1

        self.shapes = [_entries(shape, entry) for shape in shapes]
        self.solids = [shape.solid for shape in shapes]
        self.tape, self.places = recorded(q, t, scalars)


def _values(k: Mapping[str, Any]) -> Any:
    """Return a hashable key of parameter values."""
    return tuple((name, np.shape(value), np.asarray(value).tobytes()) for name, value in k.items())


def _distinct(shapes: Sequence[Drawn]) -> tuple[Drawn, ...]:
    """Return the shapes without duplicates, with sizes from any duplicate: a ball in many contacts is one shape."""
    found: dict[Any, Drawn] = {}
    for shape in shapes:
        key = shape.kind, shape.points, shape.frame, shape.mesh
        if key not in found:
            found[key] = shape
        elif shape.sizes and not found[key].sizes:
            found[key] = dataclasses.replace(found[key], sizes=shape.sizes)
    return tuple(found.values())


def listed(given: Any, where: str = "") -> list[Shape]:
    """Return one shape or several as a list."""
    shapes = [given] if isinstance(given, Shape) else list(given) if isinstance(given, (list, tuple)) else [given]
    for shape in shapes:
        if not isinstance(shape, Shape):
            raise ModelError(f"visual{where} must return shapes, see livens.shapes, got {shape!r}")
    return shapes


def _entries(shape: Shape, entry: Any) -> Drawn:
    """Return a shape with tape entries in place of its expressions, in three dimensions."""
    points = []
    for point in shape.points:
        if len(point) not in (2, 3):
            raise ModelError(f"a point of a {shape.kind} has two or three components, got {len(point)}")
        points.append(tuple(entry(x) for x in (*point, 0.0)[:3]))
    frame: tuple[int, ...] = ()
    if shape.frame is not None:
        given = np.asarray(shape.frame, dtype=object)
        if given.shape not in ((2, 2), (3, 3)):
            raise ModelError(f"the frame of a {shape.kind} is a matrix of three axes, or of two in the plane")
        whole = np.eye(3).astype(object)
        whole[: len(given), : len(given)] = given
        frame = tuple(entry(x) for x in whole.ravel())
    sizes = {name: entry(value) for name, value in shape.sizes.items()}
    return Drawn(shape.kind, shape.name, tuple(points), frame, sizes, shape.trace)


def _moved(shape: Drawn, places: Sequence[int], name: str, mesh: int | None) -> Drawn:
    return Drawn(
        shape.kind,
        shape.name or name,
        tuple(tuple(places[i] for i in point) for point in shape.points),
        tuple(places[i] for i in shape.frame),
        {name: places[i] for name, i in shape.sizes.items()},
        shape.trace,
        mesh,
    )


# -- default visuals --------------------------------------------------------------------------------------------------
def points(coordinates: Sequence[str]) -> dict[str, list[int]]:
    """Return points by name, with the indices of their coordinates ``x y`` or ``x y z``; the name may be empty.

    >>> points(["a.x", "a.y", "b"])
    {'a': [0, 1]}
    """
    position = {name: i for i, name in enumerate(coordinates)}
    found = {}
    for name in coordinates:
        body, dot, last = name.rpartition(".")
        if last == "x" and f"{body}{dot}y" in position:
            axes = [f"{body}{dot}{axis}" for axis in "xyz"]
            found[body] = [position[axis] for axis in axes if axis in position]
    return found


def particles(coordinates: Sequence[str], places: Sequence[int] | None = None) -> list[Look]:
    """Return default visuals of coordinates: a sphere at each point with coordinates named x and y."""
    index = range(len(coordinates)) if places is None else places
    named = points([coordinates[i] for i in index])
    return [Look(lambda q: sphere(q), [index[i] for i in where], {}, name) for name, where in named.items()]


__all__ = ["Drawn", "Entry", "Look", "Pose", "Scene", "listed", "particles", "points", "scene_of"]
