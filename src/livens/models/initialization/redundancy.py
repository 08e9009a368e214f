"""Redundant constraints, determined at a generic configuration by pivoted QR.

At a singular configuration more constraints are dependent than in its neighbourhood. The rank is therefore determined
at an offset from the initial position. Pivoting keeps the most independent constraints; rigidity constraints of bodies
and those of the joints of a spanning tree are never removed, as they are independent.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from livens.models.linalg import SOLVED_RTOL, dependent_rows, null_space_qr
from livens.models.system import System

#: Offset from the initial position, relative to the largest coordinate, in the max norm.
OFFSET = 0.02


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
    G = constraint_jacobian(q)
    tangent = null_space_qr(G, SOLVED_RTOL)
    if tangent.shape[1]:
        direction = tangent @ (tangent.T @ v)
        if np.abs(direction).max() <= 1e-9:  # at rest: a random tangential direction
            direction = tangent @ np.random.default_rng(7).standard_normal(tangent.shape[1])
        q_offset = project(q + OFFSET * (1.0 + np.abs(q).max()) * direction / np.abs(direction).max())
        G = G if q_offset is None else constraint_jacobian(q_offset)
    free = null_space_qr(G[rigidity_constraints], SOLVED_RTOL) if rigidity_constraints else np.eye(system.n)
    rows = G[joint_constraints] @ free
    length = np.linalg.norm(rows, axis=1)
    if tree_constraints:
        rows = rows @ null_space_qr(G[tree_constraints] @ free, SOLVED_RTOL)
    return tuple(joint_constraints[i] for i in dependent_rows(rows, length=length))
