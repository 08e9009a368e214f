"""Redundant constraints, determined at a generic configuration by pivoted QR.

At a singular configuration more constraints are dependent than in its neighbourhood. The rank is therefore determined
at an offset from the initial position. Pivoting keeps the most independent constraints; rigidity constraints of bodies
are never removed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import qr

from livens.models.system import System

#: Offset from the initial position, relative to the largest coordinate, in the max norm.
OFFSET = 0.02
#: Rank tolerance of the pivoted QR for rows of unit length.
_RANK = 1e-7


def redundant_constraints(
    system: System,
    q: np.ndarray,
    v: np.ndarray,
    constraint_jacobian: Callable[[np.ndarray], np.ndarray],
    project: Callable[[np.ndarray], np.ndarray | None],
) -> tuple[int, ...]:
    """Return the redundant constraints; `constraint_jacobian` returns G(q), `project` a position on the constraints."""
    rigidity_constraints = sorted({i for frame in system.frames for i in frame.constraints})
    joint_constraints = [i for i in range(system.m) if i not in set(rigidity_constraints)]
    if not joint_constraints:
        return ()
    G = constraint_jacobian(q)
    tangent = _null_space(G)
    if tangent.shape[1]:
        direction = tangent @ (tangent.T @ v)
        if np.abs(direction).max() <= 1e-9:  # at rest: a random tangential direction
            direction = tangent @ np.random.default_rng(7).standard_normal(tangent.shape[1])
        q_offset = project(q + OFFSET * (1.0 + np.abs(q).max()) * direction / np.abs(direction).max())
        G = G if q_offset is None else constraint_jacobian(q_offset)
    free = _null_space(G[rigidity_constraints]) if rigidity_constraints else np.eye(system.n)
    rows = G[joint_constraints] @ free
    length = np.linalg.norm(rows, axis=1)
    rows = rows / np.where(length > 0, length, 1.0)[:, None]
    _, R, order = qr(rows.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    rank = int((sizes > _RANK).sum())
    return tuple(sorted(joint_constraints[i] for i in order[rank:]))


def dependent_rows(rows: np.ndarray) -> tuple[int, ...]:
    """Return a minimal set of linearly dependent rows by pivoted QR; the remaining rows are best conditioned."""
    if not rows.size or not np.all(np.isfinite(rows)):
        return ()
    length = np.linalg.norm(rows, axis=1)
    _, R, order = qr((rows / np.where(length > 0, length, 1.0)[:, None]).T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    rank = int((sizes > _RANK).sum())
    return tuple(sorted(int(i) for i in order[rank:]))


def _null_space(rows: np.ndarray) -> np.ndarray:
    """Return a basis of the null space as columns."""
    if not rows.shape[0]:
        return np.eye(rows.shape[1])
    Q, R, _ = qr(rows.T, pivoting=True)  # about ten times faster than an SVD
    sizes = np.abs(np.diag(R))
    rank = int((sizes > _RANK * sizes.max(initial=0.0)).sum())
    return np.asarray(Q[:, rank:])
