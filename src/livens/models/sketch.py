"""Sketches of a model in one state: SVG for notebooks, Braille characters for terminals."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from livens.models.outlines import SURROUNDINGS, extent, outlines
from livens.models.scene import Scene

#: View axes of the projection of spatial scenes: right and up in the picture.
SIDE, UP = np.array([0.866, 0.5, 0.0]), np.array([-0.2, 0.346, 0.917])
#: Colours of moving parts, and of the environment.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_GREY = "#8a8a86"
_ROUND = np.linspace(0, 2 * np.pi, 25)


@dataclass(frozen=True)
class Line:
    """Projected polyline of a sketch and the colour index of its part (-1: the environment)."""

    kind: str
    points: np.ndarray
    part: int


def lines_of(scene: Scene, q: np.ndarray, t: float = 0.0) -> list[Line]:
    """Return the projected polylines of a scene in one state."""
    pose = scene.at(np.atleast_2d(np.asarray(q, dtype=float)), np.array([t]))
    size = extent(scene, pose)
    parts = {id(shape): i for i, shape in enumerate(scene.traced)}
    found = []
    for shape, outline in zip(scene.shapes, outlines(scene, pose, 0, size), strict=True):
        part = -1 if shape.kind in SURROUNDINGS else parts.get(id(shape), -1)
        for line in outline.lines:
            flat = line[:, :2] if scene.dimension == 2 else np.column_stack([line @ SIDE, line @ UP])
            if shape.kind == "ground":
                flat = flat[0] + 0.04 * size * np.array([[0, 0], [-0.6, -1], [0.6, -1], [0, 0]])
            elif len(flat) == 1:
                flat = flat + 0.025 * size * np.column_stack([np.cos(_ROUND), np.sin(_ROUND)])
            if np.isfinite(flat).all():
                found.append(Line(shape.kind, flat, part))
    return found


def _frame(lines: list[Line]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower corner and the size of the bounding box, with a margin."""
    points = np.concatenate([line.points for line in lines])
    low, high = points.min(axis=0), points.max(axis=0)
    wide = float(np.max(high - low)) or 1.0
    margin = 0.05 * wide
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, 0.12 * wide) + margin
    return middle - half, 2 * half


def svg(scene: Scene, q: np.ndarray, t: float = 0.0, width: int = 260) -> str:
    """Return an SVG picture of a scene in one state; an empty string if there is nothing to draw."""
    lines = lines_of(scene, q, t) if scene else []
    if not lines:
        return ""
    corner, size = _frame(lines)
    scale = width / max(size)
    height, wide = (round(float(scale * side)) for side in (size[1], size[0]))
    parts = []
    for line in lines:
        places = (line.points - corner) * [scale, -scale] + [0, scale * size[1]]
        colour = _GREY if line.part < 0 else _COLOURS[line.part % len(_COLOURS)]
        stroke = 3 if line.kind == "rod" else 1.5
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        fill = colour if line.kind == "ground" else "none"
        parts.append(f'<polyline points="{points}" fill="{fill}" stroke="{colour}" stroke-width="{stroke}"/>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{height}" viewBox="0 0 {wide} {height}">'
    return head + "".join(parts) + "</svg>"


def dots(scene: Scene, q: np.ndarray, t: float = 0.0, columns: int = 40, rows: int = 14) -> str:
    """Return a sketch of a scene in one state in Braille characters, with two by four dots each."""
    lines = lines_of(scene, q, t) if scene else []
    if not lines:
        return ""
    corner, size = _frame(lines)
    scale = min((2 * columns - 1) / size[0], (4 * rows - 1) / size[1])
    cells = np.zeros((rows, columns), dtype=int)
    marks = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
    for line in lines:
        places = (line.points - corner) * scale
        for a, b in itertools.pairwise(places):
            steps = int(np.ceil(2 * np.abs(b - a).max())) + 1
            x, y = np.round(a + np.linspace(0, 1, steps)[:, None] * (b - a)).astype(int).T
            up = np.round(scale * size[1]).astype(int) - y
            keep = (x >= 0) & (x < 2 * columns) & (up >= 0) & (up < 4 * rows)
            np.bitwise_or.at(cells, (up[keep] // 4, x[keep] // 2), marks[up[keep] % 4, x[keep] % 2])
    text = ["".join(chr(0x2800 + cell) if cell else " " for cell in row).rstrip() for row in cells]
    return "\n".join(text).strip("\n")
