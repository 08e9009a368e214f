"""The scene of a model: its shapes, and where they are in any state. Plain data, which result files keep.

Plots and the viewer read nothing else: whoever wants to be seen says how it looks, see `livens.shapes`.
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

#: A scene with more shapes than this is damaged rather than large.
_MOST = 1_000_000


@dataclass(frozen=True)
class Drawn:
    """A shape of a scene: its places, frame and sizes are entries of the scene's tape."""

    kind: str
    name: str
    points: tuple[tuple[int, ...], ...]
    frame: tuple[int, ...] = ()  # nine entries, row by row, or none
    sizes: Mapping[str, int] = field(default_factory=dict)
    trace: float | None = None
    mesh: int | None = None  # among the meshes of the scene

    def plain(self) -> list[Any]:
        found = [self.kind, self.name, self.points, self.frame, dict(self.sizes), self.trace]
        return found if self.mesh is None else [*found, self.mesh]


@dataclass(frozen=True)
class Scene:
    """All shapes of a model; `dimension` is 2 if all places are in the plane."""

    dimension: int = 3
    tape: tuple[Any, ...] = ()
    shapes: tuple[Drawn, ...] = ()
    meshes: tuple[Triangles, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.shapes)

    @property
    def traced(self) -> list[Drawn]:
        """The shapes that leave a path: those that say so, and that can move at all."""
        return [shape for shape in self.shapes if shape.trace is not None and self.moves(shape)]

    def moves(self, shape: Drawn) -> bool:
        """Whether the places of a shape depend on anything."""
        return any(isinstance(self.tape[i], list) for point in shape.points for i in point)

    def at(self, q: np.ndarray, t: np.ndarray) -> Pose:
        """Where everything is, for every row of q at the times t."""
        return Pose(len(t), evaluated(self.tape, np.atleast_2d(q), np.asarray(t, dtype=float)))

    # -- as plain data ------------------------------------------------------------------------------------------------
    def plain(self) -> dict[str, Any]:
        """Lists, words and numbers, as JSON has them."""
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
        """A scene from plain data, which may come from anywhere."""
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
        raise ValueError(f"there is no shape {kind!r} like that")
    if not all(isinstance(i, int) and 0 <= i < entries for i in used):
        raise ValueError(f"'{name}' has places that are not there")
    if (kind == "mesh") != bool(solid) or not all(isinstance(i, int) and 0 <= i < meshes for i in solid):
        raise ValueError(f"'{name}' has a mesh that is not there")
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
    """Where the shapes of a scene are, in one state or in many."""

    def __init__(self, rows: int, values: Sequence[Any]) -> None:
        self.rows, self._values = rows, values

    def _array(self, entries: Sequence[int]) -> np.ndarray:
        return np.stack([np.broadcast_to(self._values[i], self.rows) for i in entries], axis=1)

    def values(self, entry: int) -> Any:
        """The numbers of one entry of the tape over all rows, or one number where nothing moves."""
        return self._values[entry]

    def points(self, shape: Drawn) -> np.ndarray:
        """The places of a shape: row, place, component."""
        return np.stack([self._array(point) for point in shape.points], axis=1)

    def frames(self, shape: Drawn) -> np.ndarray | None:
        """The frame of a shape: row, component, axis."""
        return self._array(shape.frame).reshape(-1, 3, 3) if shape.frame else None

    def size(self, shape: Drawn, name: str, default: float) -> float:
        """A size, as it is in the first row."""
        entry = shape.sizes.get(name)
        value = default if entry is None else float(self._array([entry])[0, 0])
        return value if np.isfinite(value) and value > 0 else default

    def traced(self, shape: Drawn) -> np.ndarray:
        """The point of a shape that leaves a path: row, component."""
        points = self.points(shape)
        part = shape.trace or 0.0
        return np.asarray(points[:, 0] if part == 0 else points[:, 0] + part * (points[:, -1] - points[:, 0]))


@dataclass(frozen=True)
class Look:
    """A look, the coordinates it sees, the values of parameters it finds in k, and who looks like that."""

    function: ModelFunction
    index: Sequence[int]
    k: Mapping[str, Any]
    name: str = ""


def scene_of(coordinates: int, looks: Sequence[Look]) -> Scene:
    """The scene that some looks make up; parts that look alike, with the same parameters, are drawn once."""
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
    """What a look returns, as a tape of its own coordinates."""

    def __init__(self, look: Look) -> None:
        q, t = ca.SX.sym("q", len(look.index)), ca.SX.sym("t")
        where = f" of '{look.name}'" if look.name else ""
        own = m.symbols(q)
        read = Reader({"q": own, "x": own, "t": t, "k": Namespace(dict(look.k))}, where, must="return")
        shapes = listed(read.value("look", look.function, "qxtk"), where)
        self.planar = all(len(point) == 2 for shape in shapes for point in shape.points)
        scalars: list[Any] = []

        def entry(value: Any) -> int:
            scalars.append(float(value) if isinstance(value, (int, float, np.number)) else m.expression(value))
            return len(scalars) - 1

        self.shapes = [_entries(shape, entry) for shape in shapes]
        self.solids = [shape.solid for shape in shapes]
        self.tape, self.places = recorded(q, t, scalars)


def _values(k: Mapping[str, Any]) -> Any:
    """Parameters, so that equal ones are found again."""
    return tuple((name, np.shape(value), np.asarray(value).tobytes()) for name, value in k.items())


def _distinct(shapes: Sequence[Drawn]) -> tuple[Drawn, ...]:
    """Each shape once: a ball that takes part in many contacts is one ball, of the size that any of them knows."""
    found: dict[Any, Drawn] = {}
    for shape in shapes:
        key = shape.kind, shape.points, shape.frame, shape.mesh
        if key not in found:
            found[key] = shape
        elif shape.sizes and not found[key].sizes:
            found[key] = dataclasses.replace(found[key], sizes=shape.sizes)
    return tuple(found.values())


def listed(given: Any, where: str = "") -> list[Shape]:
    """One shape or several, as a list."""
    shapes = [given] if isinstance(given, Shape) else list(given) if isinstance(given, (list, tuple)) else [given]
    for shape in shapes:
        if not isinstance(shape, Shape):
            raise ModelError(f"look{where} must return shapes, see livens.shapes, got {shape!r}")
    return shapes


def _entries(shape: Shape, entry: Any) -> Drawn:
    """A shape with the numbers of its expressions, all in space."""
    points = []
    for point in shape.points:
        if len(point) not in (2, 3):
            raise ModelError(f"a place of a {shape.kind} has two or three components, got {len(point)}")
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


# -- models that say nothing ------------------------------------------------------------------------------------------
def points(coordinates: Sequence[str]) -> dict[str, list[int]]:
    """Points by name, with the indices of their coordinates ``x y`` or ``x y z``; the name may be empty.

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
    """What is left to say of coordinates nobody drew: those called x and y are where something is."""
    index = range(len(coordinates)) if places is None else places
    named = points([coordinates[i] for i in index])
    return [Look(lambda q: sphere(q), [index[i] for i in where], {}, name) for name, where in named.items()]


__all__ = ["Drawn", "Entry", "Look", "Pose", "Scene", "listed", "particles", "points", "scene_of"]
