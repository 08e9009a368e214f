"""Reaction forces of joints, in newtons, with their points of application, from the constraint multipliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.analysis.named import at_nodes
from livens.engine import loop
from livens.engine.kernels import simple_kernel
from livens.engine.steps import step_constants
from livens.models.scene import Pose, Scene, points
from livens.models.system import System
from livens.results.result import Result

#: Maximum number of point forces that are computed.
_MOST = 200
#: Visual shapes that mark the position of a joint.
_MARKS = ("ground", "sphere")
#: Names of the directors among the coordinates of a director body.
_DIRECTORS = ("d1", "d2", "d3")


@dataclass(frozen=True)
class PointForce:
    """Force on a named body over time and its point of application, both of shape (n_rows, 3)."""

    name: str
    body: str
    at: np.ndarray
    force: np.ndarray


def joint_forces(
    result: Result, scene: Scene | None = None, pose: Pose | None = None, by_column: np.ndarray | None = None
) -> list[PointForce]:
    """Return the constraint forces on points and bodies.

    An element with constraints acts on the coordinates ``x y`` (and ``z``) with ``-G(q).T lam``. Between two bodies the
    force on the second body is returned. Constraints between the directors of one body act on no point and are skipped.
    The point of application is that of the scene shape with the element's name; otherwise it follows from the lever
    arms within G. `pose` is the scene evaluated at all rows, if available; `by_column` contains the coordinates in
    column-major order.

    >>> import livens as lv
    >>> (rod,) = joint_forces(lv.simulate(lv.problems.load("simple-pendulum"), t_end=1.0))
    >>> bool(abs(rod.force @ [0, 1, 0]).max() > 9.81)
    True
    """
    known = result._system is not None or result.facts.problem is not None
    if not known or not {"q", "multipliers"} <= set(result.stored) or not isinstance(result.system, System):
        return []
    system: System = result.system
    scene = result.scene if scene is None else scene
    pose = scene.at(result.q, result.t) if pose is None else pose
    places = {shape.name: shape for shape in reversed(scene.shapes) if shape.kind in _MARKS}
    lam = at_nodes(result)
    every, t = result.parameter_vector, np.ascontiguousarray(result.t, dtype=float)
    coordinates = np.asarray(result.q) if by_column is None else by_column
    kinds: dict[int, _Kind] = {}  # elements of one type share their model
    found: list[PointForce] = []
    parts = zip(
        system.elements, system.models, system.indices, system.multiplier_slices, system.parameter_indices, strict=True
    )
    for element, model, index, own, where in parts:
        if not model.m or len(found) >= _MOST:
            continue
        if id(model) not in kinds:
            kinds[id(model)] = _Kind(model)
        kind = kinds[id(model)]
        local, q, k = [system.coordinates[i] for i in index], coordinates[:, list(index)], every[list(where)]
        G = kind.slopes(q[0], t[0], k)
        acting = {body: axes for body, axes in points(local).items() if np.any(G[:, axes])}
        if not acting:
            continue
        force = kind.forces(q, lam[own].T, t, k)
        for body in list(acting)[1:] if len(acting) == 2 and element.name else acting:
            axes = acting[body]
            shape = places.get(element.name) if element.name not in ("", body) else None
            at = pose.points(shape)[:, 0] if shape is not None else _place(q, local, body, axes, G)
            name = element.name or (body and f"force on {body}") or "force of the constraints"
            found.append(PointForce(name, body, in_space(at), in_space(force[:, axes])))
    return found


def internal(system: Any) -> set[int]:
    """Return the indices of the multipliers of rigidity constraints, which act on no point."""
    found: set[int] = set()
    if not isinstance(system, System):
        return found
    for model, index, own in zip(system.models, system.indices, system.multiplier_slices, strict=True):
        axes = [i for where in points([system.coordinates[j] for j in index]).values() for i in where]
        if model.m and axes and not ca.jacobian(model.g, model.q)[:, axes].nnz():
            found |= set(range(own.start, own.stop))
    return found


class _Kind:
    """Compiled evaluation of the constraint forces of one element type over the rows of a run."""

    def __init__(self, model: Any) -> None:
        lam, G = ca.SX.sym("lam", model.m), ca.jacobian(model.g, model.q)
        self._slopes = ca.Function("G", [model.q, model.t, model.k], [ca.densify(G)])
        constants = ca.vertcat(ca.SX.sym("h"), model.t, model.k)
        force = ca.Function("force", [lam, model.q, constants], [ca.densify(-G.T @ lam)])
        self._width, self._code = model.q.numel(), simple_kernel(force, "force", effort=1)

    def slopes(self, q: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
        return np.array(self._slopes(q, t, k))

    def forces(self, q: np.ndarray, lam: np.ndarray, t: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the generalised constraint forces, one row for each time."""
        out = np.empty((len(t), self._width))
        rows, multipliers = np.ascontiguousarray(q), np.ascontiguousarray(lam)
        loop.tabulate(self._code.address, multipliers, rows, step_constants(0.0, 0.0, k), t, out)
        return out


def _place(q: np.ndarray, names: Sequence[str], body: str, axes: Sequence[int], G: np.ndarray) -> np.ndarray:
    """Return the point of a body where a constraint acts: a lever X along a director enters G as ``G_d = X G_x``."""
    position = {name: i for i, name in enumerate(names)}
    prefix = f"{body}." if body else ""
    at = q[:, list(axes)].copy()
    G_x = G[:, list(axes)]
    for director in _DIRECTORS[: len(axes)]:
        own = [position.get(f"{prefix}{director}{axis}") for axis in "xyz"[: len(axes)]]
        if None in own:
            continue
        columns: list[Any] = own
        lever = float(np.sum(G_x * G[:, columns]) / np.sum(G_x**2))
        at += lever * q[:, columns]
    return at


def in_space(vectors: np.ndarray) -> np.ndarray:
    return np.pad(vectors, ((0, 0), (0, 3 - vectors.shape[1])))


def sizes(forces: Sequence[PointForce]) -> Mapping[str, np.ndarray]:
    """Return the magnitudes of the forces over time by name; by name and body if several forces share a name."""
    names = [each.name for each in forces]
    return {
        each.name if names.count(each.name) == 1 else f"{each.name} on {each.body}": np.linalg.norm(each.force, axis=1)
        for each in forces
    }
