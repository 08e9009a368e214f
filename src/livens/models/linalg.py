"""Rank decisions of small dense matrices: numerical rank, null spaces, dependent rows, equilibration.

One rule decides every rank: a singular value, or a pivot of a pivoted QR, is nonzero if it exceeds a relative tolerance
times the largest one. Rows of different units are scaled to equal magnitude first. The tolerance depends on the
accuracy of the matrix: `EXACT_RTOL` for matrices that are evaluated to round-off, `SOLVED_RTOL` for Jacobians at
positions that were solved for, whose entries have errors of about the square root of the unit round-off.
"""

from __future__ import annotations

import numpy as np

#: Relative rank tolerance of matrices that are evaluated to round-off.
EXACT_RTOL = 1e-11
#: Relative rank tolerance of Jacobians at positions that were solved for.
SOLVED_RTOL = 1e-7


def numerical_rank(values: np.ndarray, rtol: float, size: float | None = None) -> int:
    """Return the number of singular values (or pivots) above the tolerance.

    `size` is the magnitude that the tolerance is relative to, by default the largest value.
    """
    largest = float(values.max(initial=0.0)) if size is None else size
    return int((values > rtol * largest).sum())


def null_space(A: np.ndarray, rtol: float = EXACT_RTOL) -> np.ndarray:
    """Return an orthonormal basis of the null space as columns, by SVD."""
    if not A.shape[0]:
        return np.eye(A.shape[1])
    _, values, Vt = np.linalg.svd(A)
    return np.asarray(Vt[numerical_rank(values, rtol) :].T)


def null_space_qr(A: np.ndarray, rtol: float = EXACT_RTOL) -> np.ndarray:
    """Return an orthonormal basis of the null space as columns, by pivoted QR: about ten times faster than an SVD."""
    if not A.shape[0]:
        return np.eye(A.shape[1])
    from scipy.linalg import qr  # slow import, and most models have full rank

    Q, R, _ = qr(A.T, pivoting=True)
    return np.asarray(Q[:, numerical_rank(np.abs(np.diag(R)), rtol) :])


def scaled_rows(A: np.ndarray) -> np.ndarray:
    """Return the nonzero rows of A, scaled to unit maximum norm."""
    size = np.abs(A).max(axis=1, initial=0.0)
    return np.asarray(A[size > 0] / size[size > 0, None])


def pinv_and_left_null_space(A: np.ndarray, size: float, rtol: float = EXACT_RTOL) -> tuple[np.ndarray, np.ndarray]:
    """Return the pseudo-inverse of A and an orthonormal basis of its left null space as columns.

    `size` is the magnitude of the entries A was computed from; the rank tolerance is relative to it.
    """
    U, values, Vt = np.linalg.svd(A)
    rank = numerical_rank(values, rtol, size)
    return (Vt[:rank].T / values[:rank]) @ U[:, :rank].T, U[:, rank:]


def left_null_space(A: np.ndarray, scale_columns: bool = False, rtol: float = EXACT_RTOL) -> np.ndarray:
    """Return a basis of the left null space as rows of unit maximum norm; zero rows contribute unit vectors.

    Rows are scaled to equal magnitude, and columns as well if `scale_columns` is True: small masses keep their rank.
    """
    count = A.shape[0]
    is_zero = ~A.any(axis=1) if A.size else np.ones(count, dtype=bool)
    nonzero = np.flatnonzero(~is_zero)
    if not nonzero.size:
        return np.eye(count)
    if scale_columns:
        factors, columns = equilibration(A)
        U, values, _ = np.linalg.svd(factors[nonzero, None] * A[nonzero] * columns)
        null = (factors[nonzero, None] * U[:, numerical_rank(values, rtol, 1.0) :]).T
    else:
        size = np.abs(A[nonzero]).max(axis=1)
        U, values, _ = np.linalg.svd(A[nonzero] / size[:, None])
        null = U[:, numerical_rank(values, rtol) :].T / size
    basis = np.zeros((len(null), count))
    basis[:, nonzero] = null / np.abs(null).max(axis=1, initial=0.0, keepdims=True)
    return np.vstack([np.eye(count)[is_zero], basis])


def equilibration(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column factors that scale A to rows and columns of about unit maximum norm."""
    rows, columns = np.ones(A.shape[0]), np.ones(A.shape[1])
    for _ in range(3):
        scaled = np.abs(rows[:, None] * A * columns)
        rows /= np.where(scaled.any(axis=1), scaled.max(axis=1), 1.0)
        scaled = np.abs(rows[:, None] * A * columns)
        columns /= np.where(scaled.any(axis=0), scaled.max(axis=0), 1.0)
    return rows, columns


def dependent_rows(A: np.ndarray, rtol: float = SOLVED_RTOL, length: np.ndarray | None = None) -> tuple[int, ...]:
    """Return a minimal set of linearly dependent rows by pivoted QR; the remaining rows are best conditioned.

    `length` are the magnitudes of the rows that the tolerance is relative to, by default their norms.
    """
    if not A.size:  # rows without columns are zero
        return tuple(range(A.shape[0]))
    if not np.all(np.isfinite(A)):
        return ()
    from scipy.linalg import qr

    length = np.linalg.norm(A, axis=1) if length is None else length
    _, R, order = qr((A / np.where(length > 0, length, 1.0)[:, None]).T, mode="economic", pivoting=True)
    return tuple(sorted(int(i) for i in order[numerical_rank(np.abs(np.diag(R)), rtol, 1.0) :]))
