"""Animated thumbnails of all built-in problems, as polylines that a page draws.

``python -m livens.lab.gallery`` regenerates them, after a problem was added or its visuals changed.
"""

from __future__ import annotations

import base64
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from livens import problems
from livens.run.simulate import simulate
from livens.scene.outlines import SURROUNDINGS, extent, outlines
from livens.transcription.api import optimal_control
from livens.viewer.frame_selection import scene_coordinates, select_rows, with_rows
from livens.viewer.payload import scene_or_empty

if TYPE_CHECKING:
    from livens.results.result import Result
    from livens.scene.scene import Scene, ScenePose, SceneShape

FILE = Path(__file__).parent / "assets" / "gallery.json"
#: Number of frames of a thumbnail, and duration of the animation in seconds.
_FRAMES, _SECONDS = 60, 6.0
#: Largest simulated time span of a thumbnail in seconds, and largest number of steps.
_MAX_SPAN, _MAX_STEPS = 12.0, 20_000
#: Smallest number of steps, for motions with small time scales.
_MIN_STEPS = 400
#: Largest total number of points of all lines; longer lines are decimated.
_MAX_POINTS = 400
_MIN_SPHERE_SIDES = 6
#: The picture follows the motion if its path is longer than this multiple of the size of the scene.
_FOLLOW_RATIO = 2.5
#: Unit circle.
_UNIT_CIRCLE = np.stack([np.cos(np.linspace(0, 2 * np.pi, 25)), np.sin(np.linspace(0, 2 * np.pi, 25))], axis=-1)
#: Camera axes of three-dimensional scenes: right and up.
_RIGHT, _UP = np.array([0.866, 0.5, 0.0]), np.array([-0.2, 0.346, 0.917])


def thumbnail(result: Result) -> dict[str, object]:
    """Return the lines of all frames, quantised to 8 bits per component; curves of the states without a scene."""
    sampled = with_rows(result, select_rows(np.asarray(result.t), 1, _FRAMES))
    lines = _with_trajectory(_scene_lines(sampled)) or _state_lines(sampled)
    lines = _decimate(lines)
    moving = np.concatenate([points.reshape(len(sampled.t), -1, 2) for _, points, _ in lines], axis=1)
    max_extent = float(np.ptp(moving, axis=1).max())
    if np.ptp(moving.reshape(-1, 2), axis=0).max() > _FOLLOW_RATIO * max_extent:  # the picture follows the motion
        moving = moving - moving.mean(axis=1, keepdims=True)
    finite = moving.reshape(-1, 2)
    low, high = finite.min(axis=0), finite.max(axis=0)
    middle, half = (low + high) / 2, max(float(np.max((high - low) / [1.0, 0.75])) / 2 * 1.12, 1e-12)
    quantised = np.clip(np.round(127.5 + 127.5 * (moving - middle) / half), 0, 255).astype(np.uint8)
    return {
        "frames": len(sampled.t),
        "seconds": _SECONDS,
        "size": int(quantised[0].size),
        "lines": [[line_type, points.shape[1], colour] for line_type, points, colour in lines],
        "points": base64.b64encode(quantised.tobytes()).decode(),
    }


def _scene_lines(sampled: Result) -> list[tuple[str, np.ndarray, int]]:
    """Return type, points (frame, point, component) and colour of all lines of a scene; grey is -1."""
    scene = scene_or_empty(sampled)
    if not scene:
        return []
    pose = scene.evaluate(scene_coordinates(sampled), sampled.t)
    size = extent(scene, pose)
    outlines_by_row = [outlines(scene, pose, row, size) for row in range(len(sampled.t))]
    colours = {id(shape): i for i, shape in enumerate(scene.traced)}
    lines = []
    for index, shape in enumerate(scene.shapes):
        colour = -1 if shape.shape_type in SURROUNDINGS else colours.get(id(shape), -1)
        if shape.shape_type == "ground" and pose.size(shape, "size", 0.0):
            lines.append(("path", _project(scene, _floor(scene, shape, pose)), colour))
            continue
        radius = pose.size(shape, "radius", 0.0) if shape.shape_type == "sphere" and scene.dimension == 3 else 0.0
        if radius:  # silhouette; a sphere with orientation has a line around it as well
            lines.append(("sphere", _project(scene, pose.points(shape)) + radius * _UNIT_CIRCLE, colour))
        if not radius or shape.frame:
            for line in range(len(outlines_by_row[0][index].lines)):
                flat = _project(scene, np.array([row[index].lines[line] for row in outlines_by_row]))
                lines.append((shape.shape_type, flat[:, :1] if shape.shape_type == "ground" else flat, colour))
    return lines


def _project(scene: Scene, points: np.ndarray) -> np.ndarray:
    """Project points onto the plane of the picture."""
    return points[..., :2] if scene.dimension == 2 else np.stack([points @ _RIGHT, points @ _UP], axis=-1)


def _floor(scene: Scene, shape: SceneShape, pose: ScenePose) -> np.ndarray:
    """Return the ends of a floor line in the plane (second axis upwards), or the corners of a floor in space."""
    half, frames = pose.size(shape, "size", 0.0) / 2, pose.frames(shape)
    ends = (
        [[-1, 0, 0], [1, 0, 0]]
        if scene.dimension == 2
        else [[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0], [-1, -1, 0]]
    )
    corners = half * np.array(ends, dtype=float)
    rotated = (
        np.broadcast_to(corners, (pose.rows, *corners.shape)) if frames is None else corners @ frames.transpose(0, 2, 1)
    )
    return pose.points(shape)[:, :1] + rotated


def _decimate(lines: list[tuple[str, np.ndarray, int]]) -> list[tuple[str, np.ndarray, int]]:
    """Decimate the lines; end points are kept."""
    step = sum(points.shape[1] for _, points, _ in lines) // _MAX_POINTS + 1
    selections = []
    for line_type, points, _ in lines:
        last = points.shape[1] - 1
        stride = min(step, max(1, last // _MIN_SPHERE_SIDES)) if line_type == "sphere" else step  # keep spheres round
        selections.append(np.unique([*range(0, last + 1, stride), last]))
    return [
        (line_type, points[:, selection], colour)
        for (line_type, points, colour), selection in zip(lines, selections, strict=True)
    ]


def _with_trajectory(lines: list[tuple[str, np.ndarray, int]]) -> list[tuple[str, np.ndarray, int]]:
    """Add the trajectory to a scene that is a single point."""
    if len(lines) != 1 or lines[0][1].shape[1] != 1:
        return lines
    path = lines[0][1][:, 0]
    return [("path", np.repeat(path[None], len(path), axis=0), -1), *lines]


def _state_lines(sampled: Result) -> list[tuple[str, np.ndarray, int]]:
    """Return curves of the first three states against time, each with a moving point."""
    x = np.asarray(sampled.x)[:, :3]
    scale = np.abs(x).max(axis=0)
    x = x / np.where(scale > 0, scale, 1.0)
    t = np.linspace(-1.3, 1.3, len(x))
    lines: list[tuple[str, np.ndarray, int]] = []
    for i, column in enumerate(x.T):
        curve = np.column_stack([t, column])
        lines.append(("path", np.repeat(curve[None], len(x), axis=0), i))
        lines.append(("sphere", curve[:, None], i))
    return lines


def short_run(name: str) -> Result:
    """Simulate a problem briefly, for a thumbnail; a control problem is solved."""
    problem = problems.load(name)
    if problem.control:
        return optimal_control(problem, steps=_FRAMES, progress=False).to_result()
    span = min(problem.t_end - problem.t0, max(_MAX_SPAN, _MIN_STEPS * problem.h))
    h = max(problem.h, span / _MAX_STEPS)
    return simulate(problem, h=h, t_end=problem.t0 + span, every=max(1, int(span / h) // 2000))


@functools.lru_cache(maxsize=64)
def cached_thumbnail(name: str) -> dict[str, object]:
    """Return the thumbnail of a problem, computed once."""
    return thumbnail(short_run(name))


def main() -> None:
    thumbnails = {entry.name: cached_thumbnail(entry.name) for entry in problems.all()}
    FILE.write_text(json.dumps(thumbnails, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
