"""Redundant constraints, determined at a generic configuration by pivoted QR.

At a singular configuration more constraints are dependent than in its neighbourhood. The rank is therefore determined
at an offset from the initial position. Pivoting keeps the most independent constraints; rigidity constraints of bodies
and those of the joints of a spanning tree are never removed, as they are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from livens.errors import InputError, abbreviate
from livens.models.linalg import SOLVED_RTOL, dependent_rows, null_space_qr
from livens.models.system import System

#: Offset from the initial position, relative to the largest coordinate, in the max norm.
OFFSET = 0.02
#: Displacement relative to the offset below which a projection has returned to the initial position.
_ISOLATED = 0.05
#: Velocity below which the direction of the offset is random.
_AT_REST = 1e-9
#: Largest number of names in a message.
_MAX_NAMED = 20


def cached_redundancy(
    system: System,
    state: tuple[np.ndarray, np.ndarray, np.ndarray, float],
    policy: str,
    find: Callable[[], tuple[int, ...]],
) -> tuple[int, ...]:
    """Return the redundant constraints at a state (q, v, k, t0), found before if the last start had the same state.

    Constraints found at another state are not reused: pivoting may select other ones there, and the round-off of a run
    would depend on earlier runs.
    """
    q, v, k, t0 = state
    key = (q.tobytes(), v.tobytes(), k.tobytes(), t0, policy)
    last = system.last_redundancy
    if last is None or last[0] != key:
        last = system.last_redundancy = key, find()
    return last[1]


def redundant_constraints(
    system: System,
    q: np.ndarray,
    v: np.ndarray,
    constraint_jacobian: Callable[[np.ndarray], np.ndarray],
    project: Callable[[np.ndarray], np.ndarray | None],
) -> tuple[int, ...]:
    """Return the redundant constraints; `constraint_jacobian` returns G(q), `project` a position on the constraints."""
    rigidity_constraints = sorted({i for frame in system.frames for i in frame.constraints})
    tree_constraints = list(system.tree_constraints())
    protected = {*rigidity_constraints, *tree_constraints}
    joint_constraints = [i for i in range(system.m) if i not in protected]
    if not joint_constraints:
        return ()

    def find_dependent(position: np.ndarray) -> tuple[int, ...]:
        G = constraint_jacobian(position)
        free = null_space_qr(G[rigidity_constraints], SOLVED_RTOL) if rigidity_constraints else np.eye(system.n)
        rows = G[joint_constraints] @ free
        length = np.linalg.norm(rows, axis=1)
        if tree_constraints:
            rows = rows @ null_space_qr(G[tree_constraints] @ free, SOLVED_RTOL)
        return tuple(joint_constraints[i] for i in dependent_rows(rows, length=length))

    tangent = null_space_qr(constraint_jacobian(q), SOLVED_RTOL)
    return dependent_off_singularity(system, q, v, lambda u: tangent @ (tangent.T @ u), project, find_dependent)


def dependent_off_singularity(
    system: System,
    q: np.ndarray,
    v: np.ndarray,
    project_to_tangent: Callable[[np.ndarray], np.ndarray],
    project: Callable[[np.ndarray], np.ndarray | None],
    find_dependent: Callable[[np.ndarray], tuple[int, ...]],
) -> tuple[int, ...]:
    """Return the constraints that are dependent at q and at an offset from q along a tangential direction.

    Raises an InputError if constraints are dependent at q only because the position is isolated.
    """
    dependent = find_dependent(q)
    direction = project_to_tangent(v)
    if np.abs(direction).max(initial=0.0) <= _AT_REST:
        direction = project_to_tangent(np.random.default_rng(7).standard_normal(system.n))
    size = np.abs(direction).max(initial=0.0)
    if not dependent or size <= _AT_REST:
        return dependent
    offset, is_isolated = OFFSET * (1.0 + np.abs(q).max()) * direction / size, False
    for factor in (1.0, -1.0, 0.1, 0.01):
        position = project(q + factor * offset)
        if position is None:
            continue
        if np.abs(position - q).max() > _ISOLATED * np.abs(factor * offset).max():
            return find_dependent(position)
        is_isolated = True
    if is_isolated:
        raise InputError(
            f"the initial position is isolated: the constraints {_names(system, dependent)} are dependent there, and "
            "the velocities that they allow lead to no finite motion (infinitesimal mobility), so that constraint "
            "forces are unbounded. Change a length, remove a joint, or replace one by a spring or a penalty joint"
        )
    return dependent


def redundancy_error(system: System, dependent: Collection[int]) -> InputError:
    """Return the error for redundant constraints."""
    return InputError(
        f"redundant constraints: {_names(system, dependent)} follow{'s' if len(dependent) == 1 else ''} from the "
        "others, so the multipliers are not determined; leave them out of the model, or pass redundant='remove'"
    )


def _names(system: System, constraints: Collection[int]) -> str:
    """Return the names of at most `_MAX_NAMED` constraints."""
    return abbreviate([f"'{system.constraint_names[i]}'" for i in sorted(constraints)], _MAX_NAMED)
