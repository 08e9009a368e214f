"""Singular configurations: rank drops of the constraint Jacobian along a run, where the motion can branch.

At every stored row the Jacobian of the constraints between bodies is evaluated in the twists of the bodies, with
normalised rows. Its smallest singular value, redundant constraints excluded, goes to zero where the rank drops.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens.analysis.signals import system_or_none
from livens.errors import InputError
from livens.models.equations_of_motion import equations_of_motion
from livens.models.system import System
from livens.multibody.twist_coordinates import TwistCoordinates
from livens.results.result import Result

#: Rank tolerance relative to the largest singular value, and the ratio to the median below which a minimum is singular.
_RANK_TOLERANCE, _SINGULAR_RATIO = 1e-7, 0.02
#: Maximum number of rows per block.
_BLOCK = 512
#: Maximum number of multiplications (below a second) for the search in a report, and of configurations listed there.
_MAX_OPERATIONS, _MAX_MESSAGES = 3e8, 3
#: Smallest participation of a constraint in the null space for its joint to be listed.
_MIN_PARTICIPATION = 0.2


@dataclass(frozen=True)
class SingularConfiguration:
    """Singular configuration of a run: time, distance and joints.

    Parameters
    ----------
    t : float
        Time of the smallest distance.
    distance : float
        Smallest singular value, relative to its median over the run.
    rank : int
        Rank of the constraint Jacobian elsewhere; it is lower in the singular configuration.
    joints : tuple of str
        Joints whose constraints become dependent.
    """

    t: float
    distance: float
    rank: int
    joints: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"t = {self.t:.6g}: a singular configuration, where motion can branch; the constraints of "
            f"{', '.join(self.joints)} have a rank below {self.rank} there"
        )


def _singular_configurations(result: Result) -> tuple[SingularConfiguration, ...]:
    """Return the singular configurations of a run, interpolated between the stored rows.

    In a singular configuration the constraints alone determine neither the joint forces nor the branch of the motion;
    energy and momentum do. Rows must be close enough to resolve the minimum: store every step.

    Parameters
    ----------
    result : Result
        Run of a mechanism.

    Returns
    -------
    tuple of SingularConfiguration
        Singular configurations in the order of time.

    Raises
    ------
    InputError
        If the model is not a mechanism.
    """
    system = result.system
    if not isinstance(system, System) or not system.frames:
        raise InputError("singular configurations are defined for mechanisms: systems of bodies with frames")
    motion = TwistCoordinates(system)
    joint_constraints = list(motion.joint_constraints)
    if not joint_constraints:
        return ()
    q, t = result.q, np.asarray(result.t)
    d = equations_of_motion(system)
    jacobian = ca.Function("G", [d.q, d.t, d.k], [ca.densify(d.G[joint_constraints, :])])
    k = result.parameter_vector

    def scaled_jacobian(i: int) -> np.ndarray:
        reduced = np.array(jacobian(q[i], t[i], k)) @ motion.kinematic_matrix(q[i])
        length = np.linalg.norm(reduced, axis=1, keepdims=True)
        return np.asarray(reduced / np.where(length > 0, length, 1.0))

    sizes = np.vstack(
        [
            np.linalg.svd(
                np.array([scaled_jacobian(i) for i in range(first_row, min(first_row + _BLOCK, len(t)))]),
                compute_uv=False,
            )
            for first_row in range(0, len(t), _BLOCK)
        ]
    )
    # singular values that vanish in most rows belong to redundant constraints
    rank = int(np.median((sizes > _RANK_TOLERANCE * sizes[:, :1]).sum(axis=1)))
    if not rank:
        return ()
    smallest = sizes[:, rank - 1]
    typical = float(np.median(smallest))
    configurations: list[SingularConfiguration] = []
    padded = np.concatenate([[np.inf], smallest, [np.inf]])
    for i in np.flatnonzero((smallest <= padded[:-2]) & (smallest < padded[2:])).tolist():
        at, size = _minimum(t, smallest, i)
        if size > _SINGULAR_RATIO * typical or (configurations and at <= configurations[-1].t):
            continue
        u, _, _ = np.linalg.svd(scaled_jacobian(i))
        participation = np.abs(u[:, rank - 1 :]).max(axis=1)
        joint_names = [
            system.constraint_names[joint_constraints[j]].rsplit(":", 1)[0]
            for j in np.flatnonzero(participation > _MIN_PARTICIPATION)
        ]
        configurations.append(SingularConfiguration(at, size / typical, rank, tuple(dict.fromkeys(joint_names))))
    return tuple(configurations)


def singular_messages(result: Result) -> list[str]:
    """Return messages on singular configurations for a report, if the search takes less than about a second."""
    system = system_or_none(result)
    if system is None or not system.frames or system.uses_sparse_path or "q" not in result.stored:
        return []
    motion, n_rows = TwistCoordinates(system), len(result.t)
    n_constraints = len(motion.joint_constraints)
    if result.info.every != 1 or n_rows < 3 or n_rows * n_constraints**2 * motion.size > _MAX_OPERATIONS:
        return []
    configurations = _singular_configurations(result)
    remainder = (
        [f"... and {len(configurations) - _MAX_MESSAGES} more singular configurations"]
        if len(configurations) > _MAX_MESSAGES
        else []
    )
    return [*map(str, configurations[:_MAX_MESSAGES]), *remainder]


def _minimum(t: np.ndarray, smallest: np.ndarray, i: int) -> tuple[float, float]:
    """Return time and value of a local minimum of a distance, by a parabola through its square."""
    if not 0 < i < len(t) - 1:
        return float(t[i]), float(smallest[i])
    x, y = t[i - 1 : i + 2] - t[i], smallest[i - 1 : i + 2] ** 2
    a, b, c = np.polyfit(x, y, 2)
    if a <= 0:
        return float(t[i]), float(smallest[i])
    at = float(np.clip(-b / (2 * a), x[0], x[2]))
    return float(t[i]) + at, float(np.sqrt(max(c + b * at + a * at**2, 0.0)))


Result.attach("singular_positions", _singular_configurations)
