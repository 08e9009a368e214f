"""Outlines: shapes of a scene as polylines."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from livens.scene.scene import Scene, ScenePose, SceneShape

#: Shape types of the environment, which are not moving parts.
SURROUNDINGS = ("ground", "path", "axes")
_COILS, _SEGMENTS = 8, 32
#: Maximum number of edges drawn of a mesh.
_MAX_EDGES = 150


@dataclass(frozen=True)
class Outline:
    """Outline of a shape in one row of an evaluated scene: polylines in space."""

    shape_type: str
    lines: list[np.ndarray] = field(default_factory=list)


def extent(scene: Scene, pose: ScenePose) -> float:
    """Return the extent of the scene over all rows, the reference of default sizes."""
    all_points = [pose.points(shape).reshape(-1, 3) for shape in scene.shapes]
    if not all_points:
        return 1.0
    points = np.concatenate(all_points)
    points = points[np.isfinite(points).all(axis=1)]
    diagonal = float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) else 0.0
    shape_sizes = [pose.size(shape, name, 0.0) for shape in scene.shapes for name in shape.sizes]
    return max([diagonal, *shape_sizes]) or 1.0


def outlines(scene: Scene, pose: ScenePose, row: int, size: float) -> list[Outline]:
    """Return the outlines of all shapes in one row, in the order of the scene."""
    return [_outline(scene, shape, pose, row, size) for shape in scene.shapes]


def _outline(scene: Scene, shape: SceneShape, pose: ScenePose, row: int, size: float) -> Outline:
    points = pose.points(shape)[row]
    frames = pose.frames(shape)
    frame = np.eye(3) if frames is None else frames[row]
    lines: list[np.ndarray]
    if shape.shape_type in ("rod", "cable", "path"):
        lines = [points]
    elif shape.shape_type == "polygon":
        lines = [np.concatenate([points, points[:1]])]
    elif shape.shape_type == "spring":
        lines = [spring_symbol(points[0], points[1], pose.size(shape, "width", 0.03 * size))]
    elif shape.shape_type == "damper":
        lines = damper_symbol(points[0], points[1], pose.size(shape, "width", 0.025 * size))
    elif shape.shape_type in ("cylinder", "cone"):
        lines = _cylinder_lines(points, pose.size(shape, "radius", 0.03 * size), shape.shape_type == "cone")
    elif shape.shape_type == "box":
        sides = [pose.size(shape, name, 0.0) for name in ("length", "width", "depth")]
        lines = [points[0] + edge @ frame.T for edge in _box_edges(np.array(sides))]
    elif shape.mesh is not None:
        lines = [points[0] + edge @ frame.T for edge in scene.meshes[shape.mesh].feature_edges(_MAX_EDGES)]
    elif shape.shape_type in ("sphere", "ring"):
        radius = pose.size(shape, "radius", 0.0)
        lines = [points[0] + radius * _circle() @ frame.T] if radius else [points]
    elif shape.shape_type == "axes":
        length = pose.size(shape, "size", 0.1 * size)
        lines = [np.array([points[0], points[0] + length * frame[:, i]]) for i in range(3)]
    else:
        lines = [points]
    return Outline(shape.shape_type, lines)


def _circle() -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, _SEGMENTS + 1)
    return np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])


def _perpendicular(direction: np.ndarray) -> np.ndarray:
    """Return a unit vector perpendicular to a line, in the drawing plane for planar lines."""
    side = np.array([-direction[1], direction[0], 0.0]) if np.hypot(*direction[:2]) > 0 else np.array([1.0, 0, 0])
    return np.asarray(side / np.linalg.norm(side))


def spring_symbol(a: np.ndarray, b: np.ndarray, width: float) -> np.ndarray:
    """Return the zigzag symbol of a spring."""
    fractions = np.linspace(0.12, 0.88, 2 * _COILS + 1)
    side = np.r_[0.0, [(-1.0) ** i for i in range(2 * _COILS - 1)], 0.0]
    middle = a + fractions[:, None] * (b - a) + width / 2 * side[:, None] * _perpendicular(b - a)
    return np.concatenate([[a], middle, [b]])


def damper_symbol(a: np.ndarray, b: np.ndarray, width: float) -> list[np.ndarray]:
    """Return the symbol of a damper: a cup and a piston."""
    side = width / 2 * _perpendicular(b - a)
    points = [a + part * (b - a) for part in (0.35, 0.5, 0.65)]
    cup = np.array([points[2] + side, points[0] + side, points[0] - side, points[2] - side])
    piston = np.array([points[1] + 0.8 * side, points[1] - 0.8 * side])
    return [np.array([a, points[0]]), cup, piston, np.array([points[1], b])]


def _cylinder_lines(points: np.ndarray, radius: float, is_cone: bool) -> list[np.ndarray]:
    a, b = points
    axis = b - a
    side = _perpendicular(axis)
    length = np.linalg.norm(axis)
    other = np.cross(axis / length, side) if length else np.array([0, 0, 1.0])
    ring = radius * (_circle()[:, :1] * side + _circle()[:, 1:2] * other)
    bottom = [a] * 4 if is_cone else [a + ring[i] for i in range(0, _SEGMENTS, _SEGMENTS // 4)]
    top = [b + ring[i] for i in range(0, _SEGMENTS, _SEGMENTS // 4)]
    return [b + ring, *([] if is_cone else [a + ring]), *(np.array(pair) for pair in zip(bottom, top, strict=True))]


def _box_edges(sides: np.ndarray) -> list[np.ndarray]:
    """Return the edges of a box about the origin; a rectangle for zero depth."""
    x, y, z = sides / 2
    loop = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0], [-x, -y, 0]])
    if z == 0:
        return [loop]
    up = np.array([0, 0, z])
    return [loop - up, loop + up, *(np.array([corner - up, corner + up]) for corner in loop[:4])]


def all_points(outlines_by_row: list[list[Outline]]) -> np.ndarray:
    """Return all points of some outlines."""
    return np.concatenate([line for row in outlines_by_row for outline in row for line in outline.lines])


__all__ = ["SURROUNDINGS", "Outline", "all_points", "extent", "outlines"]
