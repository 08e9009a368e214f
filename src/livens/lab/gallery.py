"""Animated thumbnails of all built-in problems, as polylines that a page draws.

``python -m livens.lab.gallery`` regenerates them, after a problem was added or its visuals changed.
"""

from __future__ import annotations

import base64
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import problems
from livens.models.outlines import SURROUNDINGS, extent, outlines
from livens.run.simulate import simulate
from livens.viewer.data import scene_or_nothing
from livens.viewer.frames import chosen_rows, part, where

if TYPE_CHECKING:
    from livens.models.scene import Drawn, Pose, Scene
    from livens.results.result import Result

FILE = Path(__file__).parent / "assets" / "gallery.json"
#: Number of frames of a thumbnail, and duration of the animation in seconds.
_FRAMES, _SECONDS = 60, 6.0
#: Largest simulated time span of a thumbnail in seconds, and largest number of steps.
_LONGEST, _STEPS = 12.0, 20_000
#: Smallest number of steps, for motions with small time scales.
_FEWEST = 400
#: Largest total number of points of all lines; longer lines are decimated.
_POINTS = 400
_SIDES = 6
#: The picture follows the motion if its path is longer than this multiple of the size of the scene.
_FAR = 2.5
#: Unit circle.
_ROUND = np.stack([np.cos(np.linspace(0, 2 * np.pi, 25)), np.sin(np.linspace(0, 2 * np.pi, 25))], axis=-1)
#: Camera axes of three-dimensional scenes: right and up.
_SIDE, _UP = np.array([0.866, 0.5, 0.0]), np.array([-0.2, 0.346, 0.917])


def thumbnail(result: Result) -> dict[str, Any]:
    """Return the lines of all frames, quantised to 8 bits per component; curves of the states without a scene."""
    few = part(result, chosen_rows(np.asarray(result.t), 1, _FRAMES))
    lines = _with_its_way(_scene_lines(few)) or _state_lines(few)
    lines = _thinned(lines)
    moving = np.concatenate([points.reshape(len(few.t), -1, 2) for _, points, _ in lines], axis=1)
    once = float(np.ptp(moving, axis=1).max())
    if np.ptp(moving.reshape(-1, 2), axis=0).max() > _FAR * once:  # the picture follows the motion
        moving = moving - moving.mean(axis=1, keepdims=True)
    finite = moving.reshape(-1, 2)
    low, high = finite.min(axis=0), finite.max(axis=0)
    middle, half = (low + high) / 2, max(float(np.max((high - low) / [1.0, 0.75])) / 2 * 1.12, 1e-12)
    places = np.clip(np.round(127.5 + 127.5 * (moving - middle) / half), 0, 255).astype(np.uint8)
    return {
        "frames": len(few.t),
        "seconds": _SECONDS,
        "size": int(places[0].size),
        "lines": [[kind, points.shape[1], colour] for kind, points, colour in lines],
        "points": base64.b64encode(places.tobytes()).decode(),
    }


def _scene_lines(few: Result) -> list[tuple[str, np.ndarray, int]]:
    """Return type, points (frame, point, component) and colour of all lines of a scene; grey is -1."""
    scene = scene_or_nothing(few)
    if not scene:
        return []
    pose = scene.at(where(few), few.t)
    size = extent(scene, pose)
    drawn = [outlines(scene, pose, row, size) for row in range(len(few.t))]
    colours = {id(shape): i for i, shape in enumerate(scene.traced)}
    found = []
    for number, shape in enumerate(scene.shapes):
        colour = -1 if shape.kind in SURROUNDINGS else colours.get(id(shape), -1)
        if shape.kind == "ground" and pose.size(shape, "size", 0.0):
            found.append(("path", _seen(scene, _floor(scene, shape, pose)), colour))
            continue
        radius = pose.size(shape, "radius", 0.0) if shape.kind == "sphere" and scene.dimension == 3 else 0.0
        if radius:  # silhouette; a sphere with orientation has a line around it as well
            found.append(("sphere", _seen(scene, pose.points(shape)) + radius * _ROUND, colour))
        if not radius or shape.frame:
            for line in range(len(drawn[0][number].lines)):
                flat = _seen(scene, np.array([row[number].lines[line] for row in drawn]))
                found.append((shape.kind, flat[:, :1] if shape.kind == "ground" else flat, colour))
    return found


def _seen(scene: Scene, points: np.ndarray) -> np.ndarray:
    """Project points onto the plane of the picture."""
    return points[..., :2] if scene.dimension == 2 else np.stack([points @ _SIDE, points @ _UP], axis=-1)


def _floor(scene: Scene, shape: Drawn, pose: Pose) -> np.ndarray:
    """Return the ends of a floor line in the plane (second axis upwards), or the corners of a floor in space."""
    half, frames = pose.size(shape, "size", 0.0) / 2, pose.frames(shape)
    ends = (
        [[-1, 0, 0], [1, 0, 0]]
        if scene.dimension == 2
        else [[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0], [-1, -1, 0]]
    )
    corners = half * np.array(ends, dtype=float)
    turned = (
        np.broadcast_to(corners, (pose.rows, *corners.shape)) if frames is None else corners @ frames.transpose(0, 2, 1)
    )
    return pose.points(shape)[:, :1] + turned


def _thinned(lines: list[tuple[str, np.ndarray, int]]) -> list[tuple[str, np.ndarray, int]]:
    """Decimate the lines; end points are kept."""
    step = sum(points.shape[1] for _, points, _ in lines) // _POINTS + 1
    few = []
    for kind, points, _ in lines:
        last = points.shape[1] - 1
        own = min(step, max(1, last // _SIDES)) if kind == "sphere" else step  # keep spheres round
        few.append(np.unique([*range(0, last + 1, own), last]))
    return [(kind, points[:, some], colour) for (kind, points, colour), some in zip(lines, few, strict=True)]


def _with_its_way(lines: list[tuple[str, np.ndarray, int]]) -> list[tuple[str, np.ndarray, int]]:
    """Add the trajectory to a scene that is a single point."""
    if len(lines) != 1 or lines[0][1].shape[1] != 1:
        return lines
    way = lines[0][1][:, 0]
    return [("path", np.repeat(way[None], len(way), axis=0), -1), *lines]


def _state_lines(few: Result) -> list[tuple[str, np.ndarray, int]]:
    """Return curves of the first three states against time, each with a moving point."""
    x = np.asarray(few.x)[:, :3]
    scale = np.abs(x).max(axis=0)
    x = x / np.where(scale > 0, scale, 1.0)
    t = np.linspace(-1.3, 1.3, len(x))
    found: list[tuple[str, np.ndarray, int]] = []
    for i, column in enumerate(x.T):
        curve = np.column_stack([t, column])
        found.append(("path", np.repeat(curve[None], len(x), axis=0), i))
        found.append(("sphere", curve[:, None], i))
    return found


def run_for(name: str) -> Result:
    """Simulate a problem briefly, for a thumbnail."""
    problem = problems.load(name)
    span = min(problem.t_end - problem.t0, max(_LONGEST, _FEWEST * problem.h))
    h = max(problem.h, span / _STEPS)
    return simulate(problem, h=h, t_end=problem.t0 + span, every=max(1, int(span / h) // 2000))


@functools.lru_cache(maxsize=64)
def made(name: str) -> dict[str, Any]:
    """Return the thumbnail of a problem, computed once."""
    return thumbnail(run_for(name))


def main() -> None:
    films = {entry.name: made(entry.name) for entry in problems.all()}
    FILE.write_text(json.dumps(films, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
