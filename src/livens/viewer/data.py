"""Payload of the viewer page: shapes, their motion over the frames, forces and curves, as JSON data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.analysis.contact_forces import contact_forces
from livens.analysis.joint_forces import PointForce, joint_forces
from livens.errors import InputError
from livens.models.scene import Drawn, Pose, Scene
from livens.viewer.curves import curves_of, offered
from livens.viewer.frames import by_column, chosen_rows, part, where
from livens.viewer.tracks import Tracks, text

if TYPE_CHECKING:
    from livens.results.result import Result

#: Maximum number of bodies for which velocities are sent.
_MOST_ARROWS = 50
#: Ratio of the extent of the motion to the size of the mechanism above which the camera follows the motion.
_FAR = 2.5
#: Shape types that do not contribute to the bounding box.
_BACKGROUND = ("path",)


def check_scene(result: Result) -> Scene:
    """Return the scene of a run; raise an InputError if the model has no geometry."""
    scene = scene_or_nothing(result)
    if not scene:
        name = result.facts.problem or "the model"
        stored = {"q", "x"} & set(result.stored)
        why = f"{name} has no geometry" if stored else "the run did not store its coordinates q"
        if "x" in result.stored:
            why = f"{name} is a first-order model, which has no geometry"
        raise InputError(f"there is nothing to view: {why}. Define visuals, see livens.shapes; plots need none")
    return scene


def scene_or_nothing(result: Result) -> Scene:
    """Return the scene of a run, which is empty without geometry."""
    return result.scene if {"q", "x"} & set(result.stored) else Scene()


def run_data(
    result: Result,
    frames: int | None = None,
    *,
    curves: Sequence[str] = (),
    offers: bool = True,
    scene: Scene | None = None,
) -> dict[str, Any]:
    """Return the payload of a run; `curves` are plotted in addition, `include_optional` adds selectable plots."""
    scene = check_scene(result) if scene is None else scene
    moving = sum(isinstance(entry, list) for entry in scene.tape) + 3 * len(scene.traced)
    rows = chosen_rows(np.asarray(result.t), moving, frames)
    few = part(result, rows)
    tracks = Tracks(len(rows))
    shapes: list[dict[str, Any]] = []
    forces: list[PointForce] = []
    low, high, size, fastest = -np.ones(3), np.ones(3), 1.0, 1.0
    if scene:
        places = by_column(where(few))  # column-major, as the scene is evaluated by columns
        pose = scene.at(places, few.t)
        forces = joint_forces(few, scene, pose, places) + contact_forces(few)
        velocities, fastest = _velocities(few, scene, pose)
        for shape in scene.shapes:
            entry = _shape(shape, pose, tracks)
            if shape.trace is not None and scene.moves(shape):
                ends = {0.0: 0, 1.0: -1}  # most traced points are end points of the shape
                if shape.trace in ends:
                    entry["path"] = entry["points"][ends[shape.trace]]
                else:
                    entry["path"] = [tracks.add(c) for c in pose.traced(shape).T]
                if id(shape) in velocities:
                    entry["velocity"] = [tracks.add(column) for column in velocities[id(shape)].T]
            shapes.append(entry)
        low, high, size = _bounds(scene, pose)
    facts = result.facts
    return {
        "title": facts.problem or "user-defined system",
        "subtitle": f"{facts.scheme}, h = {facts.h:g}, {len(rows)} of {len(result.t)} rows",
        "dimension": scene.dimension,
        "t": text(few.t.astype("<f8")),
        "shapes": shapes,
        "meshes": [mesh.plain() for mesh in scene.meshes],
        "forces": [_force(force, tracks) for force in forces],
        "force": _large(forces),
        "values": tracks.values,
        "far": tracks.far,
        "tracks": tracks.packed(),
        "low": low.tolist(),
        "high": high.tolist(),
        "size": size,
        "flies": bool(np.linalg.norm(high - low) > _FAR * size),
        "speed": fastest,
        "curves": curves_of(few, curves),
        "offered": offered(few, forces) if offers else [],
    }


def _large(forces: Sequence[PointForce]) -> float:
    """Return the scale of force arrows: a quantile, so that short peaks (singular configurations) do not dominate."""
    if not forces:
        return 0.0
    largest = np.max([np.linalg.norm(force.force, axis=1) for force in forces], axis=0)
    largest = largest[np.isfinite(largest) & (largest > 0)]  # open contacts have no force most of the time
    return float(np.quantile(largest, 0.9)) if largest.size else 0.0


def _force(force: PointForce, tracks: Tracks) -> dict[str, Any]:
    return {
        "name": force.name,
        "at": [tracks.add(column) for column in force.at.T],
        "vector": [tracks.add(column) for column in force.force.T],
    }


def _shape(shape: Drawn, pose: Pose, tracks: Tracks) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "kind": shape.kind,
        "name": shape.name,
        "points": [[tracks.entry(pose, i) for i in point] for point in shape.points],
        "sizes": {name: pose.size(shape, name, 0.0) for name in shape.sizes},
        "trace": shape.trace,
    }
    if shape.mesh is not None:
        entry["mesh"] = shape.mesh
    if shape.frame:
        entry["turn"] = [tracks.add(column) for column in turns([pose.values(i) for i in shape.frame])]
    return entry


def continuous(frames: np.ndarray) -> np.ndarray:
    """Return unit quaternions of frames (row, component, axis), with signs continuous in time."""
    return np.stack(turns(list(frames.reshape(-1, 9).T)), axis=1)


def turns(entries: Sequence[Any]) -> list[np.ndarray]:
    """Return continuous unit quaternions as four columns, from the nine entries of rotation matrices, row by row.

    Of the four formulas for a quaternion, the one with the largest leading component is accurate. Constant entries may
    be scalars.
    """
    a, b, c, d, e, f, g, h, i = np.broadcast_arrays(*np.atleast_1d(*entries))
    largest = np.stack([1 + a + e + i, 1 + a - e - i, 1 - a + e - i, 1 - a - e + i])
    x, y, z = h - f, c - g, d - b
    xy, yz, zx = b + d, f + h, c + g
    best = largest.argmax(axis=0)
    ways = ((largest[0], x, y, z), (x, largest[1], xy, zx), (y, xy, largest[2], yz), (z, zx, yz, largest[3]))
    found = [np.choose(best, way) for way in ways]
    length = np.sqrt(sum(column * column for column in found))
    along = sum(column[1:] * column[:-1] for column in found)
    length[1:] *= np.cumprod(np.where(along < 0, -1.0, 1.0))
    return [column / length for column in found]


def _velocities(few: Result, scene: Scene, pose: Pose) -> tuple[dict[int, np.ndarray], float]:
    """Return velocities of the traced points by central differences along the velocity, and the largest speed.

    For many bodies no velocities are sent: the page computes differences between frames.
    """
    traced = scene.traced
    if not {"q", "v"} <= set(few.stored) or len(traced) > _MOST_ARROWS:
        apart = np.diff(few.t)[:, None] if len(few.t) > 1 else np.ones((1, 1))
        rough = [float(np.linalg.norm(np.diff(pose.traced(s), axis=0) / apart, axis=1).max()) for s in traced[:20]]
        return {}, max(rough, default=1.0) or 1.0
    step = 1e-6 * max(1.0, float(np.abs(few.q).max())) / max(1.0, float(np.abs(few.v).max()))
    ahead, behind = (scene.at(few.q + sign * step * few.v, few.t + sign * step) for sign in (1, -1))
    found = {id(shape): (ahead.traced(shape) - behind.traced(shape)) / (2 * step) for shape in traced}
    speeds = [float(np.linalg.norm(v, axis=1).max()) for v in found.values()]
    return found, max(speeds, default=1.0) or 1.0


def _bounds(scene: Scene, pose: Pose) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the bounding box over all frames, and the largest extent of a single frame."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    lower, upper = np.full((3, pose.rows), np.inf), np.full((3, pose.rows), -np.inf)
    ends: dict[int, tuple[float, float]] = {}  # range of each entry over all rows
    shown = [shape for shape in scene.shapes if shape.kind not in _BACKGROUND] or list(scene.shapes)
    for shape in shown:
        entries = [i for point in shape.points for i in point]
        for i in set(entries) - set(ends):
            finite = np.asarray(pose.values(i))
            least, most = float(finite.min()), float(finite.max())
            if not np.isfinite([least, most]).all():
                finite = finite[np.isfinite(finite)]
                least, most = (float(finite.min()), float(finite.max())) if finite.size else (np.inf, -np.inf)
            ends[i] = least, most
        if all(ends[i][0] <= ends[i][1] for i in entries):
            sizes = [pose.size(shape, name, 0.0) for name in shape.sizes]
            reach = 0.0 if shape.kind == "ground" else max(sizes, default=0.0) * (0.5 if shape.kind == "box" else 1.0)
            thick = np.array([reach, reach, reach if scene.dimension == 3 else 0.0])
            for axis, i in ((axis, point[axis]) for point in shape.points for axis in range(3)):
                low[axis], high[axis] = (
                    min(low[axis], ends[i][0] - thick[axis]),
                    max(high[axis], ends[i][1] + thick[axis]),
                )
                np.fmin(lower[axis], pose.values(i) - thick[axis], out=lower[axis])
                np.fmax(upper[axis], pose.values(i) + thick[axis], out=upper[axis])
    whole, once = float(np.linalg.norm(high - low)), float(np.linalg.norm(upper - lower, axis=0).max())
    size = (once if once > 0.02 * whole else whole) or 1.0
    room = 0.03 * size * np.array([1.0, 1.0, 1.0 if scene.dimension == 3 else 0.0])  # margin for supports and joints
    return low - room, high + room, size
