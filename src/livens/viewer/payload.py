"""Payload of the viewer page: shapes, their motion over the frames, forces and curves, as JSON data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.analysis.contact_forces import contact_forces
from livens.analysis.reaction_forces import PointForce, joint_forces
from livens.errors import InputError
from livens.scene.scene import Scene, ScenePose, SceneShape
from livens.viewer.curves import curves_of, optional_curves
from livens.viewer.frame_selection import scene_coordinates, select_rows, to_column_major, with_rows
from livens.viewer.keyframes import KeyframeSeries, to_base64

if TYPE_CHECKING:
    from livens.results.result import Result

#: Maximum number of bodies for which velocities are sent.
_MAX_VELOCITY_ARROWS = 50
#: Ratio of the extent of the motion to the size of the mechanism above which the camera follows the motion.
_FOLLOW_RATIO = 2.5
#: Shape types that do not contribute to the bounding box.
_BACKGROUND = ("path",)


def check_scene(result: Result) -> Scene:
    """Return the scene of a run; raise an InputError if the model has no geometry."""
    scene = scene_or_empty(result)
    if not scene:
        name = result.info.problem or result.info.name or "the model"
        stored = {"q", "x"} & set(result.stored)
        reason = f"{name} has no geometry" if stored else "the run did not store its coordinates q"
        if "x" in result.stored:
            reason = f"{name} is a first-order model, which has no geometry"
        raise InputError(f"there is nothing to view: {reason}. Define visuals, see livens.shapes; plots need none")
    return scene


def scene_or_empty(result: Result) -> Scene:
    """Return the scene of a run, which is empty without geometry."""
    return result.scene if {"q", "x"} & set(result.stored) else Scene()


def run_payload(
    result: Result,
    frames: int | None = None,
    *,
    curves: Sequence[str] = (),
    include_optional: bool = True,
    scene: Scene | None = None,
) -> dict[str, Any]:
    """Return the payload of a run; `curves` are plotted in addition, `include_optional` adds selectable plots."""
    scene = check_scene(result) if scene is None else scene
    n_moving = sum(isinstance(entry, list) for entry in scene.tape) + 3 * len(scene.traced)
    rows = select_rows(np.asarray(result.t), n_moving, frames)
    sampled = with_rows(result, rows)
    tracks = KeyframeSeries(len(rows))
    shapes: list[dict[str, Any]] = []
    forces: list[PointForce] = []
    low, high, size, fastest = -np.ones(3), np.ones(3), 1.0, 1.0
    if scene:
        coordinates = to_column_major(scene_coordinates(sampled))  # column-major, as the scene is evaluated by columns
        pose = scene.evaluate(coordinates, sampled.t)
        forces = joint_forces(sampled, scene, pose, coordinates) + contact_forces(sampled)
        velocities, fastest = _velocities(sampled, scene, pose)
        for shape in scene.shapes:
            entry = _shape_entry(shape, pose, tracks)
            if shape.trace is not None and scene.depends_on_state(shape):
                end_points = {0.0: 0, 1.0: -1}  # most traced points are end points of the shape
                if shape.trace in end_points:
                    entry["path"] = entry["points"][end_points[shape.trace]]
                else:
                    entry["path"] = [tracks.add(c) for c in pose.traced(shape).T]
                if id(shape) in velocities:
                    entry["velocity"] = [tracks.add(column) for column in velocities[id(shape)].T]
            shapes.append(entry)
        low, high, size = _bounds(scene, pose)
    info = result.info
    return {
        "title": info.title,
        "subtitle": f"{info.scheme}, h = {info.h:g}, {len(rows)} of {len(result.t)} rows",
        "dimension": scene.dimension,
        "t": to_base64(sampled.t.astype("<f8")),
        "shapes": shapes,
        "meshes": [mesh.to_json() for mesh in scene.meshes],
        "forces": [_force_entry(force, tracks) for force in forces],
        "force_scale": _force_scale(forces),
        "values": tracks.values,
        "n_raw": tracks.n_raw,
        "tracks": tracks.packed(),
        "bounds_min": low.tolist(),
        "bounds_max": high.tolist(),
        "size": size,
        "camera_follows": bool(np.linalg.norm(high - low) > _FOLLOW_RATIO * size),
        "velocity_scale": fastest,
        "curves": curves_of(sampled, curves),
        "optional_plots": optional_curves(sampled, forces) if include_optional else [],
    }


def _force_scale(forces: Sequence[PointForce]) -> float:
    """Return the scale of force arrows: a quantile, so that short peaks (singular configurations) do not dominate."""
    if not forces:
        return 0.0
    largest = np.max([np.linalg.norm(force.force, axis=1) for force in forces], axis=0)
    largest = largest[np.isfinite(largest) & (largest > 0)]  # open contacts have no force most of the time
    return float(np.quantile(largest, 0.9)) if largest.size else 0.0


def _force_entry(force: PointForce, tracks: KeyframeSeries) -> dict[str, Any]:
    return {
        "name": force.name,
        "point": [tracks.add(column) for column in force.point.T],
        "vector": [tracks.add(column) for column in force.force.T],
    }


def _shape_entry(shape: SceneShape, pose: ScenePose, tracks: KeyframeSeries) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": shape.shape_type,
        "name": shape.name,
        "points": [[tracks.entry(pose, i) for i in point] for point in shape.points],
        "sizes": {name: pose.size(shape, name, 0.0) for name in shape.sizes},
        "trace": shape.trace,
    }
    if shape.mesh is not None:
        entry["mesh"] = shape.mesh
    if shape.colour is not None:
        entry["colour"] = shape.colour
    if shape.frame:
        entry["quaternion"] = [tracks.add(column) for column in quaternions([pose.values(i) for i in shape.frame])]
    return entry


def continuous_quaternions(frames: np.ndarray) -> np.ndarray:
    """Return unit quaternions of frames (row, component, axis), with signs continuous in time."""
    return np.stack(quaternions(list(frames.reshape(-1, 9).T)), axis=1)


def quaternions(entries: Sequence[Any]) -> list[np.ndarray]:
    """Return continuous unit quaternions as four columns, from the nine entries of rotation matrices, row by row.

    Of the four formulas for a quaternion, the one with the largest leading component is accurate. Constant entries may
    be scalars.
    """
    a, b, c, d, e, f, g, h, i = np.broadcast_arrays(*np.atleast_1d(*entries))
    largest = np.stack([1 + a + e + i, 1 + a - e - i, 1 - a + e - i, 1 - a - e + i])
    x, y, z = h - f, c - g, d - b
    xy, yz, zx = b + d, f + h, c + g
    best = largest.argmax(axis=0)
    candidates = ((largest[0], x, y, z), (x, largest[1], xy, zx), (y, xy, largest[2], yz), (z, zx, yz, largest[3]))
    components = [np.choose(best, candidate) for candidate in candidates]
    length = np.sqrt(sum(column * column for column in components))
    along = sum(column[1:] * column[:-1] for column in components)
    length[1:] *= np.cumprod(np.where(along < 0, -1.0, 1.0))
    return [column / length for column in components]


def _velocities(sampled: Result, scene: Scene, pose: ScenePose) -> tuple[dict[int, np.ndarray], float]:
    """Return velocities of the traced points by central differences along the velocity, and the largest speed.

    For many bodies no velocities are sent: the page computes differences between frames.
    """
    traced = scene.traced
    if not {"q", "v"} <= set(sampled.stored) or len(traced) > _MAX_VELOCITY_ARROWS:
        intervals = np.diff(sampled.t)[:, None] if len(sampled.t) > 1 else np.ones((1, 1))
        rough = [float(np.linalg.norm(np.diff(pose.traced(s), axis=0) / intervals, axis=1).max()) for s in traced[:20]]
        return {}, max(rough, default=1.0) or 1.0
    step = 1e-6 * max(1.0, float(np.abs(sampled.q).max())) / max(1.0, float(np.abs(sampled.v).max()))
    forward, backward = (
        scene.evaluate(sampled.q + sign * step * sampled.v, sampled.t + sign * step) for sign in (1, -1)
    )
    velocities = {id(shape): (forward.traced(shape) - backward.traced(shape)) / (2 * step) for shape in traced}
    speeds = [float(np.linalg.norm(v, axis=1).max()) for v in velocities.values()]
    return velocities, max(speeds, default=1.0) or 1.0


def _bounds(scene: Scene, pose: ScenePose) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the bounding box over all frames, and the largest extent of a single frame."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    lower, upper = np.full((3, pose.rows), np.inf), np.full((3, pose.rows), -np.inf)
    ranges: dict[int, tuple[float, float]] = {}  # range of each entry over all rows
    shown = [shape for shape in scene.shapes if shape.shape_type not in _BACKGROUND] or list(scene.shapes)
    for shape in shown:
        entries = [i for point in shape.points for i in point]
        for i in set(entries) - set(ranges):
            finite = np.asarray(pose.values(i))
            least, greatest = float(finite.min()), float(finite.max())
            if not np.isfinite([least, greatest]).all():
                finite = finite[np.isfinite(finite)]
                least, greatest = (float(finite.min()), float(finite.max())) if finite.size else (np.inf, -np.inf)
            ranges[i] = least, greatest
        if all(ranges[i][0] <= ranges[i][1] for i in entries):
            sizes = [pose.size(shape, name, 0.0) for name in shape.sizes]
            radius = (
                0.0
                if shape.shape_type == "ground"
                else max(sizes, default=0.0) * (0.5 if shape.shape_type == "box" else 1.0)
            )
            thick = np.array([radius, radius, radius if scene.dimension == 3 else 0.0])
            for axis, i in ((axis, point[axis]) for point in shape.points for axis in range(3)):
                low[axis], high[axis] = (
                    min(low[axis], ranges[i][0] - thick[axis]),
                    max(high[axis], ranges[i][1] + thick[axis]),
                )
                np.fmin(lower[axis], pose.values(i) - thick[axis], out=lower[axis])
                np.fmax(upper[axis], pose.values(i) + thick[axis], out=upper[axis])
    total, instantaneous = float(np.linalg.norm(high - low)), float(np.linalg.norm(upper - lower, axis=0).max())
    size = (instantaneous if instantaneous > 0.02 * total else total) or 1.0
    margin = 0.03 * size * np.array([1.0, 1.0, 1.0 if scene.dimension == 3 else 0.0])  # margin for supports and joints
    return low - margin, high + margin, size
