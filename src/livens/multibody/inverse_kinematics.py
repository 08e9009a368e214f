"""Inverse kinematics of mechanisms with tree structure: nonlinear least squares in joint coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import least_squares

from livens.errors import InputError, suggestion
from livens.multibody.body import Marker
from livens.multibody.imports.robot_description import RigidTransform
from livens.multibody.joint_space_dynamics import JointSpaceDynamics
from livens.progress import report_item
from livens.types import FloatArray
from livens.validation import check_array

#: Largest number of evaluations from one start.
_MAX_EVALUATIONS = 200
#: Largest deviation of ``R^T R`` of a target rotation from the identity matrix, entrywise.
_ROTATION_TOLERANCE = 1e-6
#: Relative tolerances of the least-squares solver on cost, step and gradient.
_SOLVER_TOLERANCE = 1e-15
#: Half width of the range of pseudo-random displacements of prismatic joints without limits, in metres.
_DISPLACEMENT_RANGE = 1.0


def parse_limits(model: JointSpaceDynamics, limits: object) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest joint coordinates; they are infinite without limits."""
    n = len(model.names)
    lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    if limits is None:
        return lower, upper
    if not isinstance(limits, Mapping):
        raise InputError(f"limits must map joint names to (least, largest), got {limits!r}")
    for name, value in limits.items():
        if name not in model.names:
            raise InputError(
                f"limits: there is no joint '{name}' with a joint coordinate{suggestion(name, model.names)}"
            )
        low, high = check_array(f"limits of '{name}'", value, (2,))
        if not low < high:
            raise InputError(f"limits of '{name}' must increase, got {value!r}")
        lower[model.names.index(name)], upper[model.names.index(name)] = low, high
    return lower, upper


def inverse_kinematics(
    model: JointSpaceDynamics,
    targets: Sequence[tuple[Marker, object]],
    start: FloatArray,
    limits: tuple[FloatArray, FloatArray],
    tolerance: float,
    max_starts: int,
) -> FloatArray:
    """Return joint coordinates at which frames have the target positions or poses; raise InputError if none is found.

    Residuals are linear in the body coordinates, ``C q(theta) - b``, so that their Jacobian is ``C dq/dtheta``.
    """
    blocks, values = list[FloatArray](), list[FloatArray]()
    for marker, target in targets:
        C, c, D, d = model.frame_rows(marker)
        position, rotation = _parse_pose(marker, target)
        blocks.append(C)
        values.append(position - c)
        if rotation is not None:
            blocks.append(D)
            values.append(rotation.T.ravel() - d)
    rows, required = np.vstack(blocks), np.concatenate(values)
    lower, upper = limits
    random = np.random.default_rng(0)
    is_limited = np.isfinite(lower)
    reach = np.where(model.is_periodic, np.pi, _DISPLACEMENT_RANGE)
    low, high = np.where(is_limited, lower, start - reach), np.where(is_limited, upper, start + reach)
    nearest, theta = np.inf, np.clip(start, lower, upper)
    for _ in range(max_starts):
        report_item("solving the inverse kinematics", "start")
        solution = least_squares(
            lambda x: rows @ model.kinematics(x)[0] - required,
            theta,
            lambda x: rows @ model.kinematics(x)[1],
            bounds=(lower, upper),
            xtol=_SOLVER_TOLERANCE,
            ftol=_SOLVER_TOLERANCE,
            gtol=_SOLVER_TOLERANCE,
            max_nfev=_MAX_EVALUATIONS,
        )
        residual = float(np.abs(solution.fun).max())
        if residual <= tolerance:
            turns = np.round((solution.x - start) / (2 * np.pi))
            is_free = model.is_periodic & ~is_limited
            return np.asarray(solution.x - np.where(is_free, 2 * np.pi * turns, 0.0))
        nearest = min(nearest, residual)
        theta = random.uniform(low, high)
    raise InputError(
        f"no configuration reaches the target: the least residual of {max_starts} starts is {nearest:.3g}, but "
        f"tolerance is {tolerance:g}. Check that the target is within reach and limits, or give another start or more "
        "max_starts"
    )


def _parse_pose(marker: Marker, target: object) -> tuple[FloatArray, FloatArray | None]:
    """Return position and rotation matrix of a target; the rotation is None for a position."""
    context = f"target of {marker.body.name}.{marker.name}"
    if isinstance(target, RigidTransform):
        target = target.position, target.rotation
    is_pose = (
        isinstance(target, (tuple, list)) and len(target) == 2 and isinstance(target[1], (np.ndarray, list, tuple))
    )
    if not isinstance(target, (tuple, list)) or not is_pose:
        return check_array(context, target, (3,), "3 numbers or a pair of position and rotation matrix"), None
    position = check_array(f"{context}: position", target[0], (3,))
    rotation = check_array(f"{context}: rotation", target[1], (3, 3))
    deviation = np.abs(rotation.T @ rotation - np.eye(3)).max()
    if deviation > _ROTATION_TOLERANCE or np.linalg.det(rotation) < 0:
        raise InputError(f"{context}: rotation must be an orthonormal right-handed matrix, got {target[1]!r}")
    return position, rotation
