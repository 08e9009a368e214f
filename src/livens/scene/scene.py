"""Scene of a model: its shapes and their positions as functions of the state. Plain data, stored in result files.

Plots and the viewer use only the scene; see `livens.shapes` for the visuals of a model.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import ModelError
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import FunctionTracer, ModelFunction
from livens.scene.mesh import TriangleMesh
from livens.scene.shapes import SHAPE_TYPES, Shape, sphere
from livens.scene.tape import Entry, Tape, evaluate, record, validate
from livens.types import ScalarLike

#: Maximum number of shapes read from a file.
_MAX_SHAPES = 1_000_000
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class SceneShape:
    """Shape of a scene; its points, frame and sizes are indices of entries of the scene's tape."""

    shape_type: str
    name: str
    points: tuple[tuple[int, ...], ...]
    frame: tuple[int, ...] = ()  # nine entries in row-major order, or none
    sizes: Mapping[str, int] = field(default_factory=dict)
    trace: float | None = None
    mesh: int | None = None  # index among the meshes of the scene
    colour: str | None = None  # "#rrggbb"

    def to_json(self) -> list[Any]:
        data = [self.shape_type, self.name, self.points, self.frame, dict(self.sizes), self.trace]
        if self.colour is not None:
            return [*data, self.mesh, self.colour]
        return data if self.mesh is None else [*data, self.mesh]


@dataclass(frozen=True)
class Scene:
    """Scene: all shapes of a model; `dimension` is 2 if all points are planar."""

    dimension: int = 3
    tape: tuple[Any, ...] = ()
    shapes: tuple[SceneShape, ...] = ()
    meshes: tuple[TriangleMesh, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.shapes)

    @property
    def traced(self) -> list[SceneShape]:
        """Shapes with a trace whose points depend on the state."""
        return [shape for shape in self.shapes if shape.trace is not None and self.depends_on_state(shape)]

    def depends_on_state(self, shape: SceneShape) -> bool:
        """Return whether the points of a shape depend on the state or on time."""
        return any(isinstance(self.tape[i], list) for point in shape.points for i in point)

    def evaluate(self, q: np.ndarray, t: np.ndarray) -> ScenePose:
        """Return the evaluated scene for the rows of q at the times t."""
        return ScenePose(len(t), evaluate(self.tape, np.atleast_2d(q), np.asarray(t, dtype=float)))

    # -- JSON ---------------------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, object]:
        """Return the scene as lists, strings and numbers for JSON."""
        if not self.shapes:
            return {}
        meshes = {"meshes": [mesh.to_json() for mesh in self.meshes]} if self.meshes else {}
        return {
            "dimension": self.dimension,
            "tape": list(self.tape),
            "shapes": [shape.to_json() for shape in self.shapes],
            **meshes,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], coordinates: int) -> Scene:
        """Return a scene from untrusted JSON data, validated."""
        if not data:
            return cls()
        try:
            tape = validate(data["tape"], coordinates)
            meshes = tuple(TriangleMesh.from_json(mesh) for mesh in data.get("meshes", ()))
            shapes = [_shape_from_json(shape, len(tape), len(meshes)) for shape in data["shapes"][:_MAX_SHAPES]]
            return cls(2 if data["dimension"] == 2 else 3, tuple(tape), tuple(shapes), meshes)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"its scene cannot be read: {error}") from None


def _shape_from_json(data: Sequence[Any], n_entries: int, n_meshes: int) -> SceneShape:
    shape_type, name, points, frame, sizes, trace, *rest = data
    mesh, colour = (*rest, None, None)[: max(2, len(rest))]
    used = [*(i for point in points for i in point), *frame, *sizes.values()]
    if (
        shape_type not in SHAPE_TYPES
        or len(frame) not in (0, 9)
        or any(len(point) != 3 for point in points)
        or not points
    ):
        raise ValueError(f"invalid shape {shape_type!r}")
    if not all(isinstance(i, int) and 0 <= i < n_entries for i in used):
        raise ValueError(f"'{name}' refers to missing entries of the tape")
    if (shape_type == "mesh") != (mesh is not None) or not (mesh is None or mesh in range(n_meshes)):
        raise ValueError(f"'{name}' refers to a missing mesh")
    if colour is not None and not _COLOUR.fullmatch(colour):
        raise ValueError(f"'{name}' has an invalid colour")
    return SceneShape(
        shape_type,
        str(name),
        tuple(map(tuple, points)),
        tuple(frame),
        {str(key): i for key, i in sizes.items()},
        None if trace is None else float(trace),
        mesh,
        colour,
    )


class ScenePose:
    """Evaluated scene: positions of the shapes in one state or in many."""

    def __init__(self, rows: int, values: Sequence[Any]) -> None:
        self.rows, self._values = rows, values

    def _array(self, entries: Sequence[int]) -> np.ndarray:
        return np.stack([np.broadcast_to(self._values[i], self.rows) for i in entries], axis=1)

    def values(self, entry: int) -> Any:
        """Return the values of one entry of the tape for all rows, or one number if it is constant."""
        return self._values[entry]

    def points(self, shape: SceneShape) -> np.ndarray:
        """Return the points of a shape, of shape (n_rows, n_points, 3)."""
        return np.stack([self._array(point) for point in shape.points], axis=1)

    def frames(self, shape: SceneShape) -> np.ndarray | None:
        """Return the frames of a shape, of shape (n_rows, 3, 3) with axes as columns, or None."""
        return self._array(shape.frame).reshape(-1, 3, 3) if shape.frame else None

    def size(self, shape: SceneShape, name: str, default: float) -> float:
        """Return a size of a shape in the first row."""
        entry = shape.sizes.get(name)
        value = default if entry is None else float(self._array([entry])[0, 0])
        return value if np.isfinite(value) and value > 0 else default

    def traced(self, shape: SceneShape) -> np.ndarray:
        """Return the traced point of a shape, of shape (n_rows, 3)."""
        points = self.points(shape)
        fraction = shape.trace or 0.0
        return np.asarray(points[:, 0] if fraction == 0 else points[:, 0] + fraction * (points[:, -1] - points[:, 0]))


@dataclass(frozen=True)
class Visual:
    """Visual function with its coordinate indices, its parameter values and the name of its part."""

    function: ModelFunction
    index: Sequence[int]
    k: Mapping[str, Any]
    name: str = ""


def build_scene(coordinates: int, visuals: Sequence[Visual]) -> Scene:
    """Build the scene of some visuals; visuals with equal functions and parameters are traced once."""
    traced_visuals: dict[Any, _TracedVisual] = {}
    tape, shapes, planar = Tape(), list[SceneShape](), True
    meshes: dict[int, TriangleMesh] = {}
    for visual in visuals:
        key = visual.function, len(visual.index), _parameter_key(visual.k)
        if key not in traced_visuals:
            traced_visuals[key] = _TracedVisual(visual)
        traced_visual = traced_visuals[key]
        entries = tape.inline(traced_visual.tape, visual.index)
        entry_map = [entries[i] for i in traced_visual.entry_indices]
        for shape, mesh in zip(traced_visual.shapes, traced_visual.meshes, strict=True):
            if mesh is not None:
                meshes.setdefault(id(mesh), mesh)
            mesh_index = None if mesh is None else list(meshes).index(id(mesh))
            shapes.append(_remapped(shape, entry_map, visual.name, mesh_index))
        planar = planar and traced_visual.planar
    return Scene(2 if planar else 3, tuple(tape.entries), _unique(shapes), tuple(meshes.values()))


class _TracedVisual:
    """Traced visual: its shapes and a tape in local coordinates."""

    def __init__(self, visual: Visual) -> None:
        q, t = ca.SX.sym("q", len(visual.index)), ca.SX.sym("t")
        where = f" of '{visual.name}'" if visual.name else ""
        local_coordinates = m.from_casadi(q)
        trace = FunctionTracer(
            {"q": local_coordinates, "x": local_coordinates, "t": t, "k": ParameterNamespace(dict(visual.k))},
            where,
            verb="return",
        )
        shapes = as_shapes(trace.trace("visual", visual.function, "qxtk"), where)
        self.planar = all(len(point) == 2 for shape in shapes for point in shape.points)
        scalars: list[Any] = []

        def entry(value: ScalarLike) -> int:
            scalars.append(float(value) if isinstance(value, (int, float, np.number)) else m.to_casadi(value))
            return len(scalars) - 1

        self.shapes = [_with_entries(shape, entry) for shape in shapes]
        self.meshes = [shape.mesh for shape in shapes]
        self.tape, self.entry_indices = record(q, t, scalars)


def _parameter_key(k: Mapping[str, Any]) -> Any:
    """Return a hashable key of parameter values."""
    return tuple((name, np.shape(value), np.asarray(value).tobytes()) for name, value in k.items())


def _unique(shapes: Sequence[SceneShape]) -> tuple[SceneShape, ...]:
    """Return the shapes without duplicates, with sizes from any duplicate: a ball in many contacts is one shape."""
    unique: dict[Any, SceneShape] = {}
    for shape in shapes:
        key = shape.shape_type, shape.points, shape.frame, shape.mesh
        if key not in unique:
            unique[key] = shape
        elif shape.sizes and not unique[key].sizes:
            unique[key] = dataclasses.replace(unique[key], sizes=shape.sizes)
    return tuple(unique.values())


def as_shapes(value: Any, where: str = "") -> list[Shape]:
    """Return one shape or several as a list."""
    shapes = [value] if isinstance(value, Shape) else list(value) if isinstance(value, (list, tuple)) else [value]
    for shape in shapes:
        if not isinstance(shape, Shape):
            raise ModelError(f"visual{where} must return shapes, see livens.shapes, got {shape!r}")
    return shapes


def _with_entries(shape: Shape, entry: ModelFunction) -> SceneShape:
    """Return a shape with tape entries in place of its expressions, in three dimensions."""
    points = []
    for point in shape.points:
        if len(point) not in (2, 3):
            raise ModelError(f"a point of a {shape.shape_type} has two or three components, got {len(point)}")
        points.append(tuple(entry(x) for x in (*point, 0.0)[:3]))
    frame: tuple[int, ...] = ()
    if shape.frame is not None:
        axes = np.asarray(shape.frame, dtype=object)
        if axes.shape not in ((2, 2), (3, 3)):
            raise ModelError(f"the frame of a {shape.shape_type} is a matrix of three axes, or of two in the plane")
        frame_3d = np.eye(3).astype(object)
        frame_3d[: len(axes), : len(axes)] = axes
        frame = tuple(entry(x) for x in frame_3d.ravel())
    sizes = {name: entry(value) for name, value in shape.sizes.items()}
    return SceneShape(shape.shape_type, shape.name, tuple(points), frame, sizes, shape.trace, colour=shape.colour)


def _remapped(shape: SceneShape, entry_map: Sequence[int], name: str, mesh: int | None) -> SceneShape:
    return SceneShape(
        shape.shape_type,
        shape.name or name,
        tuple(tuple(entry_map[i] for i in point) for point in shape.points),
        tuple(entry_map[i] for i in shape.frame),
        {name: entry_map[i] for name, i in shape.sizes.items()},
        shape.trace,
        mesh,
        shape.colour,
    )


# -- default visuals --------------------------------------------------------------------------------------------------
def named_points(coordinates: Sequence[str]) -> dict[str, list[int]]:
    """Return points by name, with the indices of their coordinates ``x y`` or ``x y z``; the name may be empty.

    >>> named_points(["a.x", "a.y", "b"])
    {'a': [0, 1]}
    """
    position = {name: i for i, name in enumerate(coordinates)}
    points_by_name = {}
    for name in coordinates:
        body, dot, last = name.rpartition(".")
        if last == "x" and f"{body}{dot}y" in position:
            axes = [f"{body}{dot}{axis}" for axis in "xyz"]
            points_by_name[body] = [position[axis] for axis in axes if axis in position]
    return points_by_name


def default_visuals(coordinates: Sequence[str], dofs: Sequence[int] | None = None) -> list[Visual]:
    """Return default visuals of coordinates: a sphere at each point with coordinates named x and y."""
    index = range(len(coordinates)) if dofs is None else dofs
    named = named_points([coordinates[i] for i in index])
    return [Visual(lambda q: sphere(q), [index[i] for i in point_dofs], {}, name) for name, point_dofs in named.items()]


__all__ = [
    "Entry",
    "Scene",
    "ScenePose",
    "SceneShape",
    "Visual",
    "as_shapes",
    "build_scene",
    "default_visuals",
    "named_points",
]
