"""Forces of joints, in newtons, from the multipliers of their constraints: what they are, and where they act."""

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

#: More joints than this are not looked at.
_MOST = 200
#: Shapes that are drawn where a joint is.
_MARKS = ("ground", "sphere")
#: Pieces of a body's frame among its coordinates, as director bodies call them.
_DIRECTORS = ("d1", "d2", "d3")


@dataclass(frozen=True)
class PointForce:
    """A force on the body named, over time, and the point where it acts; rows of three numbers each."""

    name: str
    body: str
    at: np.ndarray
    force: np.ndarray


def joint_forces(
    result: Result, scene: Scene | None = None, pose: Pose | None = None, by_column: np.ndarray | None = None
) -> list[PointForce]:
    """All forces by which constraints act on points and bodies.

    An element with constraints acts on coordinates ``x y`` (and ``z``) with ``-G(q).T lam``. Between two bodies that is
    the force on the second one. Constraints that only hold a body's own frame together act on no point, and are left
    out. The point is where the scene has a shape of the element's name, or else follows from the lever arms within G;
    a `pose` of the scene in all rows need not be computed again, and `by_column` has the coordinates in another order.

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
    kinds: dict[int, _Kind] = {}  # elements of a type share their model
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
    """Numbers of the multipliers that only hold bodies together: their constraints act on no point."""
    found: set[int] = set()
    if not isinstance(system, System):
        return found
    for model, index, own in zip(system.models, system.indices, system.multiplier_slices, strict=True):
        axes = [i for where in points([system.coordinates[j] for j in index]).values() for i in where]
        if model.m and axes and not ca.jacobian(model.g, model.q)[:, axes].nnz():
            found |= set(range(own.start, own.stop))
    return found


class _Kind:
    """Forces of the constraints of one type of element, as native code over the rows of a run."""

    def __init__(self, model: Any) -> None:
        lam, G = ca.SX.sym("lam", model.m), ca.jacobian(model.g, model.q)
        self._slopes = ca.Function("G", [model.q, model.t, model.k], [ca.densify(G)])
        constants = ca.vertcat(ca.SX.sym("h"), model.t, model.k)
        force = ca.Function("force", [lam, model.q, constants], [ca.densify(-G.T @ lam)])
        self._width, self._code = model.q.numel(), simple_kernel(force, "force", effort=1)

    def slopes(self, q: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
        return np.array(self._slopes(q, t, k))

    def forces(self, q: np.ndarray, lam: np.ndarray, t: np.ndarray, k: np.ndarray) -> np.ndarray:
        """One row for each time."""
        out = np.empty((len(t), self._width))
        rows, multipliers = np.ascontiguousarray(q), np.ascontiguousarray(lam)
        loop.tabulate(self._code.address, multipliers, rows, step_constants(0.0, 0.0, k), t, out)
        return out


def _place(q: np.ndarray, names: Sequence[str], body: str, axes: Sequence[int], G: np.ndarray) -> np.ndarray:
    """The point of a body where a constraint acts: a lever X along its directors enters G as ``G_d = X G_x``."""
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
    """How large the forces are over time, by name; of joints with one name, by name and body."""
    names = [each.name for each in forces]
    return {
        each.name if names.count(each.name) == 1 else f"{each.name} on {each.body}": np.linalg.norm(each.force, axis=1)
        for each in forces
    }
