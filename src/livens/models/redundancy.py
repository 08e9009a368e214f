"""Constraints that follow from others, found where nothing is special about the position.

At a singular position more constraints depend on one another than anywhere near it; a step away from there, all that
still do are redundant. Which of them are left out is decided by a pivoted QR: what is kept is as independent as it can
be, and constraints that keep bodies rigid are never left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import qr

from livens.models.system import System

#: How far from the start to look, relative to the largest coordinate.
AWAY = 0.02
#: What is left of a row of length one where it is a combination of others, at most.
_RANK = 1e-7


def redundant_constraints(
    system: System,
    q: np.ndarray,
    v: np.ndarray,
    slopes: Callable[[np.ndarray], np.ndarray],
    closed: Callable[[np.ndarray], np.ndarray | None],
) -> tuple[int, ...]:
    """The constraints that a run leaves out; `slopes` gives G at a position, `closed` the one on the constraints."""
    within = sorted({i for frame in system.frames for i in frame.constraints})
    between = [i for i in range(system.m) if i not in set(within)]
    if not between:
        return ()
    G = slopes(q)
    tangent = _null(G)
    if tangent.shape[1]:
        way = tangent @ (tangent.T @ v)
        if np.abs(way).max() <= 1e-9:  # from rest: any direction that the constraints allow
            way = tangent @ np.random.default_rng(7).standard_normal(tangent.shape[1])
        away = closed(q + AWAY * (1.0 + np.abs(q).max()) * way / np.abs(way).max())
        G = G if away is None else slopes(away)
    free = _null(G[within]) if within else np.eye(system.n)
    rows = G[between] @ free
    length = np.linalg.norm(rows, axis=1)
    rows = rows / np.where(length > 0, length, 1.0)[:, None]
    _, R, order = qr(rows.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    rank = int((sizes > _RANK).sum())
    return tuple(sorted(between[i] for i in order[rank:]))


def dependent_rows(rows: np.ndarray) -> tuple[int, ...]:
    """Rows that are combinations of the others, as few as there are; those left are as independent as they can be."""
    if not rows.size or not np.all(np.isfinite(rows)):
        return ()
    length = np.linalg.norm(rows, axis=1)
    _, R, order = qr((rows / np.where(length > 0, length, 1.0)[:, None]).T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    rank = int((sizes > _RANK).sum())
    return tuple(sorted(int(i) for i in order[rank:]))


def _null(rows: np.ndarray) -> np.ndarray:
    """Directions that change nothing, as columns."""
    if not rows.shape[0]:
        return np.eye(rows.shape[1])
    Q, R, _ = qr(rows.T, pivoting=True)  # as good as singular values for this, and ten times faster
    sizes = np.abs(np.diag(R))
    rank = int((sizes > _RANK * sizes.max(initial=0.0)).sum())
    return np.asarray(Q[:, rank:])
