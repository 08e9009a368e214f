"""Singular configurations: rank drops of the constraint Jacobian along a run, where the motion can branch.

At every stored row the Jacobian of the constraints between bodies is evaluated in the twists of the bodies, with
normalised rows. Its smallest singular value, redundant constraints excluded, goes to zero where the rank drops.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens.analysis.named import known_system
from livens.errors import InputError
from livens.models.summed import dynamics
from livens.models.system import System
from livens.multibody.assembly import Motion
from livens.results.result import Result

#: Rank tolerance relative to the largest singular value, and the ratio to the median below which a minimum is singular.
_RANK, _DIP = 1e-7, 0.02
#: Maximum number of rows per block.
_ROWS = 512
#: Maximum number of multiplications (below a second) for the search in a report, and of configurations listed there.
_AFFORDABLE, _NAMED = 3e8, 3
#: Smallest participation of a constraint in the null space for its joint to be listed.
_SHARE = 0.2


@dataclass(frozen=True)
class SingularPosition:
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


def _singular_positions(result: Result) -> tuple[SingularPosition, ...]:
    """Return the singular configurations of a run, interpolated between the stored rows.

    In a singular configuration the constraints alone determine neither the joint forces nor the branch of the motion;
    energy and momentum do. Rows must be close enough to resolve the minimum: store every step.
    """
    system = result.system
    if not isinstance(system, System) or not system.frames:
        raise InputError("singular configurations are defined for mechanisms: systems of bodies with frames")
    motion = Motion(system)
    between = list(motion.constraints)
    if not between:
        return ()
    q, t = result.q, np.asarray(result.t)
    d = dynamics(system)
    slopes = ca.Function("G", [d.q, d.t, d.k], [ca.densify(d.G[between, :])])
    k = result.parameter_vector

    def rows(i: int) -> np.ndarray:
        found = np.array(slopes(q[i], t[i], k)) @ motion.map(q[i])
        length = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.where(length > 0, length, 1.0))

    sizes = np.vstack(
        [
            np.linalg.svd(np.array([rows(i) for i in range(first, min(first + _ROWS, len(t)))]), compute_uv=False)
            for first in range(0, len(t), _ROWS)
        ]
    )
    # singular values that vanish in most rows belong to redundant constraints
    rank = int(np.median((sizes > _RANK * sizes[:, :1]).sum(axis=1)))
    if not rank:
        return ()
    least = sizes[:, rank - 1]
    usual = float(np.median(least))
    found: list[SingularPosition] = []
    around = np.concatenate([[np.inf], least, [np.inf]])
    for i in np.flatnonzero((least <= around[:-2]) & (least < around[2:])).tolist():
        at, size = _dip(t, least, i)
        if size > _DIP * usual or (found and at <= found[-1].t):
            continue
        u, _, _ = np.linalg.svd(rows(i))
        share = np.abs(u[:, rank - 1 :]).max(axis=1)
        owners = [system.constraint_names[between[j]].rsplit(":", 1)[0] for j in np.flatnonzero(share > _SHARE)]
        found.append(SingularPosition(at, size / usual, rank, tuple(dict.fromkeys(owners))))
    return tuple(found)


def passed(result: Result) -> list[str]:
    """Return messages on singular configurations for a report, if the search takes less than about a second."""
    system = known_system(result)
    if system is None or not system.frames or system.large or "q" not in result.stored:
        return []
    motion, rows = Motion(system), len(result.t)
    between = len(motion.constraints)
    if result.facts.every != 1 or rows < 3 or rows * between**2 * motion.size > _AFFORDABLE:
        return []
    found = _singular_positions(result)
    more = [f"... and {len(found) - _NAMED} more singular configurations"] if len(found) > _NAMED else []
    return [*map(str, found[:_NAMED]), *more]


def _dip(t: np.ndarray, least: np.ndarray, i: int) -> tuple[float, float]:
    """Return time and value of a local minimum of a distance, by a parabola through its square."""
    if not 0 < i < len(t) - 1:
        return float(t[i]), float(least[i])
    x, y = t[i - 1 : i + 2] - t[i], least[i - 1 : i + 2] ** 2
    a, b, c = np.polyfit(x, y, 2)
    if a <= 0:
        return float(t[i]), float(least[i])
    at = float(np.clip(-b / (2 * a), x[0], x[2]))
    return float(t[i]) + at, float(np.sqrt(max(c + b * at + a * at**2, 0.0)))


Result.attach("singular_positions", _singular_positions)
