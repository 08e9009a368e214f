"""Sketches of a model in one state: SVG for notebooks, Braille characters for terminals."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from livens.scene.outlines import SURROUNDINGS, extent, outlines
from livens.scene.scene import Scene

#: View axes of the projection of spatial scenes: right and up in the picture.
VIEW_RIGHT, VIEW_UP = np.array([0.866, 0.5, 0.0]), np.array([-0.2, 0.346, 0.917])
#: Colours of moving parts, and of the environment.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_GREY = "#8a8a86"
_CIRCLE_ANGLES = np.linspace(0, 2 * np.pi, 25)


@dataclass(frozen=True)
class Line:
    """Projected polyline of a sketch and the colour index of its part (-1: the environment)."""

    shape_type: str
    points: np.ndarray
    colour_index: int


def projected_lines(scene: Scene, q: np.ndarray, t: float = 0.0) -> list[Line]:
    """Return the projected polylines of a scene in one state."""
    pose = scene.evaluate(np.atleast_2d(np.asarray(q, dtype=float)), np.array([t]))
    size = extent(scene, pose)
    colour_indices = {id(shape): i for i, shape in enumerate(scene.traced)}
    lines = []
    for shape, outline in zip(scene.shapes, outlines(scene, pose, 0, size), strict=True):
        colour_index = -1 if shape.shape_type in SURROUNDINGS else colour_indices.get(id(shape), -1)
        for line in outline.lines:
            projected = line[:, :2] if scene.dimension == 2 else np.column_stack([line @ VIEW_RIGHT, line @ VIEW_UP])
            if shape.shape_type == "ground":
                projected = projected[0] + 0.04 * size * np.array([[0, 0], [-0.6, -1], [0.6, -1], [0, 0]])
            elif len(projected) == 1:
                projected = projected + 0.025 * size * np.column_stack([np.cos(_CIRCLE_ANGLES), np.sin(_CIRCLE_ANGLES)])
            if np.isfinite(projected).all():
                lines.append(Line(shape.shape_type, projected, colour_index))
    return lines


def _bounding_box(lines: list[Line]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower corner and the size of the bounding box, with a margin."""
    points = np.concatenate([line.points for line in lines])
    low, high = points.min(axis=0), points.max(axis=0)
    extent = float(np.max(high - low)) or 1.0
    margin = 0.05 * extent
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, 0.12 * extent) + margin
    return middle - half, 2 * half


def svg(scene: Scene, q: np.ndarray, t: float = 0.0, width: int = 260) -> str:
    """Return an SVG picture of a scene in one state; an empty string if there is nothing to draw."""
    lines = projected_lines(scene, q, t) if scene else []
    if not lines:
        return ""
    corner, size = _bounding_box(lines)
    scale = width / max(size)
    height, pixel_width = (round(float(scale * side)) for side in (size[1], size[0]))
    parts = []
    for line in lines:
        pixels = (line.points - corner) * [scale, -scale] + [0, scale * size[1]]
        colour = _GREY if line.colour_index < 0 else _COLOURS[line.colour_index % len(_COLOURS)]
        stroke = 3 if line.shape_type == "rod" else 1.5
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in pixels)
        fill = colour if line.shape_type == "ground" else "none"
        parts.append(f'<polyline points="{points}" fill="{fill}" stroke="{colour}" stroke-width="{stroke}"/>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{pixel_width}" height="{height}" '
        f'viewBox="0 0 {pixel_width} {height}">'
    )
    return head + "".join(parts) + "</svg>"


def braille(scene: Scene, q: np.ndarray, t: float = 0.0, columns: int = 40, rows: int = 14) -> str:
    """Return a sketch of a scene in one state in Braille characters, with two by four dots each."""
    lines = projected_lines(scene, q, t) if scene else []
    if not lines:
        return ""
    corner, size = _bounding_box(lines)
    scale = min((2 * columns - 1) / size[0], (4 * rows - 1) / size[1])
    cells = np.zeros((rows, columns), dtype=int)
    marks = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
    for line in lines:
        pixels = (line.points - corner) * scale
        for a, b in itertools.pairwise(pixels):
            steps = int(np.ceil(2 * np.abs(b - a).max())) + 1
            x, y = np.round(a + np.linspace(0, 1, steps)[:, None] * (b - a)).astype(int).T
            up = np.round(scale * size[1]).astype(int) - y
            is_visible = (x >= 0) & (x < 2 * columns) & (up >= 0) & (up < 4 * rows)
            np.bitwise_or.at(
                cells, (up[is_visible] // 4, x[is_visible] // 2), marks[up[is_visible] % 4, x[is_visible] % 2]
            )
    text = ["".join(chr(0x2800 + cell) if cell else " " for cell in row).rstrip() for row in cells]
    return "\n".join(text).strip("\n")
