"""Outlines: shapes of a scene as polylines."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from livens.models.scene import Drawn, Pose, Scene

#: Shape types of the environment, which are not moving parts.
SURROUNDINGS = ("ground", "path", "axes")
_TURNS, _ROUND = 8, 32
#: Maximum number of edges drawn of a mesh.
_EDGES = 150


@dataclass(frozen=True)
class Outline:
    """Outline of a shape in one row of an evaluated scene: polylines in space."""

    kind: str
    lines: list[np.ndarray] = field(default_factory=list)


def extent(scene: Scene, pose: Pose) -> float:
    """Return the extent of the scene over all rows, the reference of default sizes."""
    every = [pose.points(shape).reshape(-1, 3) for shape in scene.shapes]
    if not every:
        return 1.0
    points = np.concatenate(every)
    points = points[np.isfinite(points).all(axis=1)]
    reach = float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) else 0.0
    given = [pose.size(shape, name, 0.0) for shape in scene.shapes for name in shape.sizes]
    return max([reach, *given]) or 1.0


def outlines(scene: Scene, pose: Pose, row: int, size: float) -> list[Outline]:
    """Return the outlines of all shapes in one row, in the order of the scene."""
    return [_outline(scene, shape, pose, row, size) for shape in scene.shapes]


def _outline(scene: Scene, shape: Drawn, pose: Pose, row: int, size: float) -> Outline:
    points = pose.points(shape)[row]
    frames = pose.frames(shape)
    frame = np.eye(3) if frames is None else frames[row]
    lines: list[np.ndarray]
    if shape.kind in ("rod", "cable", "path"):
        lines = [points]
    elif shape.kind == "polygon":
        lines = [np.concatenate([points, points[:1]])]
    elif shape.kind == "spring":
        lines = [zigzag(points[0], points[1], pose.size(shape, "width", 0.03 * size))]
    elif shape.kind == "damper":
        lines = dashpot(points[0], points[1], pose.size(shape, "width", 0.025 * size))
    elif shape.kind in ("cylinder", "cone"):
        lines = _barrel(points, pose.size(shape, "radius", 0.03 * size), shape.kind == "cone")
    elif shape.kind == "box":
        sides = [pose.size(shape, name, 0.0) for name in ("length", "width", "depth")]
        lines = [points[0] + edge @ frame.T for edge in _edges(np.array(sides))]
    elif shape.mesh is not None:
        lines = [points[0] + edge @ frame.T for edge in scene.meshes[shape.mesh].edges(_EDGES)]
    elif shape.kind in ("sphere", "ring"):
        radius = pose.size(shape, "radius", 0.0)
        lines = [points[0] + radius * _circle() @ frame.T] if radius else [points]
    elif shape.kind == "axes":
        length = pose.size(shape, "size", 0.1 * size)
        lines = [np.array([points[0], points[0] + length * frame[:, i]]) for i in range(3)]
    else:
        lines = [points]
    return Outline(shape.kind, lines)


def _circle() -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, _ROUND + 1)
    return np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])


def _across(along: np.ndarray) -> np.ndarray:
    """Return a unit vector perpendicular to a line, in the drawing plane for planar lines."""
    side = np.array([-along[1], along[0], 0.0]) if np.hypot(*along[:2]) > 0 else np.array([1.0, 0, 0])
    return np.asarray(side / np.linalg.norm(side))


def zigzag(a: np.ndarray, b: np.ndarray, width: float) -> np.ndarray:
    """Return the zigzag symbol of a spring."""
    part = np.linspace(0.12, 0.88, 2 * _TURNS + 1)
    side = np.r_[0.0, [(-1.0) ** i for i in range(2 * _TURNS - 1)], 0.0]
    middle = a + part[:, None] * (b - a) + width / 2 * side[:, None] * _across(b - a)
    return np.concatenate([[a], middle, [b]])


def dashpot(a: np.ndarray, b: np.ndarray, width: float) -> list[np.ndarray]:
    """Return the symbol of a damper: a cup and a piston."""
    side = width / 2 * _across(b - a)
    at = [a + part * (b - a) for part in (0.35, 0.5, 0.65)]
    cup = np.array([at[2] + side, at[0] + side, at[0] - side, at[2] - side])
    piston = np.array([at[1] + 0.8 * side, at[1] - 0.8 * side])
    return [np.array([a, at[0]]), cup, piston, np.array([at[1], b])]


def _barrel(points: np.ndarray, radius: float, pointed: bool) -> list[np.ndarray]:
    a, b = points
    along = b - a
    side = _across(along)
    length = np.linalg.norm(along)
    other = np.cross(along / length, side) if length else np.array([0, 0, 1.0])
    ring = radius * (_circle()[:, :1] * side + _circle()[:, 1:2] * other)
    start = [a] * 4 if pointed else [a + ring[i] for i in range(0, _ROUND, _ROUND // 4)]
    ends = [b + ring[i] for i in range(0, _ROUND, _ROUND // 4)]
    return [b + ring, *([] if pointed else [a + ring]), *(np.array(pair) for pair in zip(start, ends, strict=True))]


def _edges(sides: np.ndarray) -> list[np.ndarray]:
    """Return the edges of a box about the origin; a rectangle for zero depth."""
    x, y, z = sides / 2
    loop = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0], [-x, -y, 0]])
    if z == 0:
        return [loop]
    up = np.array([0, 0, z])
    return [loop - up, loop + up, *(np.array([corner - up, corner + up]) for corner in loop[:4])]


def reach(drawn: list[list[Outline]]) -> np.ndarray:
    """Return all points of some outlines."""
    return np.concatenate([line for row in drawn for outline in row for line in outline.lines])


__all__ = ["SURROUNDINGS", "Outline", "extent", "outlines", "reach"]
