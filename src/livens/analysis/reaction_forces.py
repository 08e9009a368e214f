"""Reaction forces of joints, in newtons, with their points of application, from the constraint multipliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.analysis.signals import multipliers_at_nodes
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.engine.newton import time_loop
from livens.engine.stepper import step_inputs
from livens.models.system import System
from livens.results.result import Result
from livens.scene.scene import Scene, ScenePose, named_points

if TYPE_CHECKING:
    from livens.models.element import ElementType


#: Maximum number of point forces that are computed.
_MAX_JOINTS = 200
#: Visual shapes that mark the position of a joint.
_JOINT_MARKERS = ("ground", "sphere")
#: Names of the directors among the coordinates of a director body.
_DIRECTORS = ("d1", "d2", "d3")


@dataclass(frozen=True)
class PointForce:
    """Force on a named body over time and its point of application, both of shape (n_rows, 3)."""

    name: str
    body: str
    point: np.ndarray
    force: np.ndarray


def joint_forces(
    result: Result, scene: Scene | None = None, pose: ScenePose | None = None, by_column: np.ndarray | None = None
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
    has_system = result._system is not None or result.info.problem is not None
    if not has_system or not {"q", "multipliers"} <= set(result.stored) or not isinstance(result.system, System):
        return []
    system: System = result.system
    scene = result.scene if scene is None else scene
    pose = scene.evaluate(result.q, result.t) if pose is None else pose
    marker_shapes = {shape.name: shape for shape in reversed(scene.shapes) if shape.shape_type in _JOINT_MARKERS}
    lam = multipliers_at_nodes(result)
    parameters, t = result.parameter_vector, np.ascontiguousarray(result.t, dtype=float)
    coordinates = np.asarray(result.q) if by_column is None else by_column
    element_types: dict[int, _ConstraintForces] = {}  # elements of one type share their model
    point_forces: list[PointForce] = []
    element_data = zip(
        system.elements,
        system.element_types,
        system.element_dofs,
        system.element_constraints,
        system.element_parameters,
        strict=True,
    )
    for element, model, index, multiplier_slice, parameter_index in element_data:
        if not model.m or len(point_forces) >= _MAX_JOINTS:
            continue
        if id(model) not in element_types:
            element_types[id(model)] = _ConstraintForces(model)
        element_type = element_types[id(model)]
        local_names, q, k = (
            [system.coordinates[i] for i in index],
            coordinates[:, list(index)],
            parameters[list(parameter_index)],
        )
        G = element_type.jacobian(q[0], t[0], k)
        acting = {body: axes for body, axes in named_points(local_names).items() if np.any(G[:, axes])}
        if not acting:
            continue
        force = element_type.forces(q, lam[multiplier_slice].T, t, k)
        for body in list(acting)[1:] if len(acting) == 2 and element.name else acting:
            axes = acting[body]
            shape = marker_shapes.get(element.name) if element.name not in ("", body) else None
            point = pose.points(shape)[:, 0] if shape is not None else _application_point(q, local_names, body, axes, G)
            name = element.name or (body and f"force on {body}") or "force of the constraints"
            point_forces.append(PointForce(name, body, to_3d(point), to_3d(force[:, axes])))
    return point_forces


def rigidity_multipliers(system: System) -> set[int]:
    """Return the indices of the multipliers of rigidity constraints, which act on no point."""
    indices: set[int] = set()
    if not isinstance(system, System):
        return indices
    for model, index, multiplier_slice in zip(
        system.element_types, system.element_dofs, system.element_constraints, strict=True
    ):
        axes = [i for point_axes in named_points([system.coordinates[j] for j in index]).values() for i in point_axes]
        if model.m and axes and not ca.jacobian(model.g, model.q)[:, axes].nnz():
            indices |= set(range(multiplier_slice.start, multiplier_slice.stop))
    return indices


class _ConstraintForces:
    """Compiled evaluation of the constraint forces of one element type over the rows of a run."""

    def __init__(self, model: ElementType) -> None:
        lam, G = ca.SX.sym("lam", model.m), ca.jacobian(model.g, model.q)
        self._jacobian = ca.Function("G", [model.q, model.t, model.k], [ca.densify(G)])
        constants = ca.vertcat(ca.SX.sym("h"), model.t, model.k)
        force = ca.Function("force", [lam, model.q, constants], [ca.densify(-G.T @ lam)])
        self._width, self._code = model.q.numel(), compile_function_kernel(force, "force", opt_level=1)

    def jacobian(self, q: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
        return np.array(self._jacobian(q, t, k))

    def forces(self, q: np.ndarray, lam: np.ndarray, t: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the generalised constraint forces, one row for each time."""
        out = np.empty((len(t), self._width))
        rows, multipliers = np.ascontiguousarray(q), np.ascontiguousarray(lam)
        time_loop.tabulate(self._code.address, multipliers, rows, step_inputs(0.0, 0.0, k), t, out)
        return out


def _application_point(
    q: np.ndarray, names: Sequence[str], body: str, axes: Sequence[int], G: np.ndarray
) -> np.ndarray:
    """Return the point of a body where a constraint acts: a lever X along a director enters G as ``G_d = X G_x``."""
    position = {name: i for i, name in enumerate(names)}
    prefix = f"{body}." if body else ""
    point = q[:, list(axes)].copy()
    G_x = G[:, list(axes)]
    for director in _DIRECTORS[: len(axes)]:
        director_columns = [position.get(f"{prefix}{director}{axis}") for axis in "xyz"[: len(axes)]]
        if None in director_columns:
            continue
        columns: list[Any] = director_columns
        local_position = float(np.sum(G_x * G[:, columns]) / np.sum(G_x**2))
        point += local_position * q[:, columns]
    return point


def to_3d(vectors: np.ndarray) -> np.ndarray:
    return np.pad(vectors, ((0, 0), (0, 3 - vectors.shape[1])))


def force_magnitudes(forces: Sequence[PointForce]) -> Mapping[str, np.ndarray]:
    """Return the magnitudes of the forces over time by name; by name and body if several forces share a name."""
    names = [each.name for each in forces]
    return {
        each.name if names.count(each.name) == 1 else f"{each.name} on {each.body}": np.linalg.norm(each.force, axis=1)
        for each in forces
    }
