"""Sparse linear algebra of constraints: minimum-norm solutions, dependent rows, multipliers.

Rows of G are scaled to unit length. ``S = G G^T`` is factorized with a small regularization, which affects only the
pivots of dependent rows. Iterative refinement removes its effect on solutions.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spl

#: Regularization added to the unit diagonal of S.
_REGULARIZATION = 1e-13
#: Pivot tolerance of S: pivots are squared norms of rows orthogonal to preceding rows.
_PIVOT_TOLERANCE = 1e-10
#: Relative norm of the part of a row orthogonal to others below which the row is linearly dependent.
_DEPENDENCE_TOLERANCE = 1e-9
#: Maximum number of dependent rows for which the last row of each relation is determined.
_MAX_CANONICAL = 64
#: Maximum number of relations that one block inverse iteration determines.
_MAX_RELATIONS = 64
#: Smallest variance of a combination of relations, relative to the largest one, above which they are independent.
_MIN_VARIANCE = 1e-6
#: Smallest coefficient of the row that is removed for a relation, relative to that of the first relation.
_MIN_RELATIVE_PIVOT = 0.05
_MAX_ITERATIONS = 12


class SparseConstraintJacobian:
    """Sparse constraint Jacobian G with a factorization of ``G G^T``."""

    def __init__(self, G: Any) -> None:
        self.G = sp.csr_matrix(G)
        lengths = np.sqrt(np.asarray(self.G.multiply(self.G).sum(axis=1)).ravel())
        self._lengths = np.where(lengths > 0, lengths, 1.0)
        self.rows = sp.diags_array(1.0 / self._lengths) @ self.G

    @functools.cached_property
    def _factors(self) -> Any:
        return _factorize_spd(self.rows @ self.rows.T, _REGULARIZATION)

    def min_norm_solve(self, r: np.ndarray) -> np.ndarray:
        """Return the minimum-norm solution of ``G x = r``, in the least-squares sense for contradictory rows."""
        rhs = r / self._lengths
        x, residual, previous_norm = np.zeros(self.G.shape[1]), rhs, np.inf
        for _ in range(_MAX_ITERATIONS):
            residual_norm = float(np.abs(residual).max(initial=0.0))
            if not residual_norm < 0.5 * previous_norm:
                break
            previous_norm = residual_norm
            x = x + self.rows.T @ self._factors.solve(residual)
            residual = rhs - self.rows @ x
        return np.asarray(x)

    # -- dependent rows -----------------------------------------------------------------------------------------------
    def dependent_rows(self, protected: np.ndarray | None = None) -> list[int]:
        """Return a minimal set of dependent rows; none of the `protected` rows (a mask) if those are independent.

        If there are at most `_MAX_CANONICAL`, each is the last row of its linear relation.
        """
        candidates, all_rows = self._candidates(protected), np.arange(self.G.shape[0])
        dependent = self._verified(np.setdiff1d(all_rows, candidates), candidates) if candidates.size else candidates
        while (hidden := self._near_null_rows(np.setdiff1d(all_rows, dependent), protected)).size:
            dependent = np.union1d(dependent, hidden)
        if not dependent.size or protected is not None or dependent.size > _MAX_CANONICAL:
            return [int(i) for i in dependent]
        return self._last_of_each_relation(np.setdiff1d(all_rows, dependent), dependent)

    def _near_null_rows(self, independent: np.ndarray, protected: np.ndarray | None) -> np.ndarray:
        """Return rows that are combinations of the other rows of the set; none if the rows are independent.

        Relations with large coefficients have no small pivot; inverse iteration on S detects them. If there is one,
        block inverse iteration determines up to `_MAX_RELATIONS` of them, and pivoted QR one row of each.
        """
        is_complete = len(independent) == self.G.shape[0]
        rows = self.rows if is_complete else self.rows[independent]
        factors = self._factors if is_complete else _factorize_spd(rows @ rows.T, _REGULARIZATION)
        random = np.random.default_rng(13)
        y = random.standard_normal(len(independent))
        for _ in range(3):
            y = factors.solve(y / np.linalg.norm(y))
        y = y / np.linalg.norm(y)
        if not np.linalg.norm(rows.T @ y) <= _DEPENDENCE_TOLERANCE:
            return independent[:0]
        block = random.standard_normal((len(independent), min(_MAX_RELATIONS, len(independent))))
        for _ in range(2):  # columns remain independent: all relations are amplified by the inverse regularization
            block = factors.solve(block / np.linalg.norm(block, axis=0))
        variances, directions = np.linalg.eigh(block.T @ block)
        is_relation = variances > _MIN_VARIANCE * variances[-1]
        relations = block @ (directions[:, is_relation] / np.sqrt(variances[is_relation]))
        relations = relations[:, np.linalg.norm(rows.T @ relations, axis=0) <= _DEPENDENCE_TOLERANCE]
        if not relations.size:
            relations = y[:, None]
        if protected is not None:
            relations[protected[independent]] = 0.0
        R, pivots = scipy.linalg.qr(relations.T, mode="r", pivoting=True)
        magnitudes = np.abs(np.diagonal(R))
        n_removed = max(1, int((magnitudes > _MIN_RELATIVE_PIVOT * magnitudes[0]).sum()))
        return np.asarray(independent[pivots[:n_removed]])

    def _candidates(self, protected: np.ndarray | None) -> np.ndarray:
        """Return the rows with small pivots after the elimination of protected rows: candidates for dependent rows."""
        if protected is None or not protected.any():
            return np.flatnonzero(_pivot_magnitudes(self._factors) < _PIVOT_TOLERANCE)
        protected_rows, other_rows = np.flatnonzero(protected), np.flatnonzero(~protected)
        S = sp.csc_matrix(self.rows @ self.rows.T)
        fill_reducing = np.argsort(_factorize_spd(S[protected_rows][:, protected_rows], _REGULARIZATION).perm_c)
        order = np.concatenate([protected_rows[fill_reducing], other_rows])  # protected rows are eliminated first
        factors = _factorize_spd(S[order][:, order], _REGULARIZATION, ordering="NATURAL")
        return other_rows[np.flatnonzero(_pivot_magnitudes(factors)[protected_rows.size :] < _PIVOT_TOLERANCE)]

    def _verified(self, independent: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        """Return the candidates that depend on the independent rows or on preceding candidates."""
        least_squares = _LeastSquares(self.rows[independent])
        weights = np.random.default_rng(11).standard_normal(candidates.size)
        mixed = self.rows[candidates].T @ weights  # dependent only if all candidates are
        if np.linalg.norm(least_squares.residual(mixed)) <= _DEPENDENCE_TOLERANCE * np.linalg.norm(weights):
            return candidates
        dependent = []
        for i in candidates:
            row = np.asarray(self.rows[[i]].todense()).ravel()
            if np.linalg.norm(least_squares.residual(row)) <= _DEPENDENCE_TOLERANCE * max(
                float(np.linalg.norm(row)), 1e-300
            ):
                dependent.append(int(i))
            else:
                independent = np.union1d(independent, [i])
                least_squares = _LeastSquares(self.rows[independent])
        return np.array(dependent, dtype=np.int64)

    def _last_of_each_relation(self, independent: np.ndarray, dependent: np.ndarray) -> list[int]:
        """Return the last row of every linear relation, by elimination from the end."""
        least_squares = _LeastSquares(self.rows[independent])
        relations = np.zeros((len(dependent), self.G.shape[0]))
        for j, i in enumerate(dependent):
            row = np.asarray(self.rows[[i]].todense()).ravel()
            relations[j, i], relations[j, independent] = 1.0, -least_squares.coefficients(row)
        last = []
        for column in range(self.G.shape[0] - 1, -1, -1):
            if not len(relations):
                break
            best = int(np.argmax(np.abs(relations[:, column])))
            if abs(relations[best, column]) <= 1e-9 * np.abs(relations[best]).max():
                continue
            last.append(column)
            pivot = relations[best] / relations[best, column]
            relations = np.delete(relations, best, axis=0)
            relations = relations - np.outer(relations[:, column], pivot)
        return sorted(last)


class _LeastSquares:
    """Least-squares problem of rows, solved by the augmented system (rows are not squared)."""

    def __init__(self, rows: Any) -> None:
        m, n = rows.shape
        self._n = n
        matrix = (
            sp.block_array([[sp.eye_array(n), rows.T], [rows, None]], format="csc") if m else sp.eye_array(n).tocsc()
        )
        try:
            factors = spl.splu(matrix)
        except RuntimeError:  # exactly singular: a relation with large coefficients, which no small pivot has shown
            shift = sp.block_diag([sp.csc_array((n, n)), _REGULARIZATION * sp.eye_array(m)], format="csc")
            factors = spl.splu(sp.csc_matrix(matrix - shift))
        self._matrix, self._factors = matrix, factors

    def _solve(self, row: np.ndarray) -> np.ndarray:
        b = np.zeros(self._matrix.shape[0])
        b[: self._n] = row
        x = self._factors.solve(b)
        return np.asarray(x + self._factors.solve(b - self._matrix @ x))

    def residual(self, row: np.ndarray) -> np.ndarray:
        return self._solve(row)[: self._n]

    def coefficients(self, row: np.ndarray) -> np.ndarray:
        return self._solve(row)[self._n :]


def _factorize_spd(S: Any, shift: float, ordering: str = "MMD_AT_PLUS_A") -> Any:
    """Return the LU factors of a symmetric positive semidefinite matrix, with diagonal pivots."""
    matrix = sp.csc_matrix(S) + shift * sp.eye_array(S.shape[0], format="csc")
    options = {"SymmetricMode": True}
    return spl.splu(sp.csc_matrix(matrix), permc_spec=ordering, diag_pivot_thresh=0.0, options=options)


def _pivot_magnitudes(factors: Any) -> np.ndarray:
    """Return the pivot magnitude of each row, in the order of the matrix."""
    return np.asarray(np.abs(factors.U.diagonal())[factors.perm_c])


def solve_if_regular(A: object, b: np.ndarray) -> np.ndarray | None:
    """Return the solution of a symmetric system; None if the matrix may be singular."""
    scale = 1.0 / np.sqrt(_row_norms(A))
    matrix = sp.csc_matrix(sp.diags_array(scale) @ A @ sp.diags_array(scale))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", spl.MatrixRankWarning)
            factors = spl.splu(matrix)
    except (RuntimeError, spl.MatrixRankWarning):
        return None
    r = np.random.default_rng(5).standard_normal(matrix.shape[0])
    for _ in range(2):  # inverse iteration: near-null directions grow
        r = r / np.linalg.norm(r)
        r = factors.solve(r)
    if not np.linalg.norm(r) * _RCOND < 1.0:
        return None
    rhs = scale * b
    x = factors.solve(rhs)
    x = x + factors.solve(rhs - matrix @ x)
    return np.asarray(scale * x)


#: Reciprocal condition number, estimated by inverse iteration, above which the scaled matrix is regular.
_RCOND = 1e-9


def solve_regularized(A: Any, b: np.ndarray, n: int) -> np.ndarray:
    """Return the minimum-norm solution of ``M a + G^T lam = f, G a = c`` with a possibly singular matrix A.

    The first n unknowns are a. A regularization makes the matrix regular; iterative refinement removes its effect.
    """
    scale = 1.0 / np.sqrt(_row_norms(A))
    matrix = sp.csc_matrix(sp.diags_array(scale) @ A @ sp.diags_array(scale))
    shift = 1e-9 * np.where(np.arange(A.shape[0]) < n, 1.0, -1.0)
    factors = spl.splu(sp.csc_matrix(matrix + sp.diags_array(shift)))
    rhs = scale * b
    x, residual, previous_norm = np.zeros(b.size), rhs, np.inf
    for _ in range(_MAX_ITERATIONS):
        residual_norm = float(np.abs(residual).max(initial=0.0))
        if not residual_norm < 0.5 * previous_norm:
            break
        previous_norm = residual_norm
        x = x + factors.solve(residual)
        residual = rhs - matrix @ x
    if not np.abs(residual).max(initial=0.0) <= 1e-8 * (1.0 + np.abs(rhs).max(initial=0.0)):
        x = spl.lsqr(matrix, rhs, atol=1e-14, btol=1e-14, iter_lim=4 * b.size)[0]
    return np.asarray(scale * x)


def _row_norms(A: object) -> np.ndarray:
    largest = abs(sp.csr_matrix(A)).max(axis=1).toarray().ravel()
    return np.where(largest > 0, largest, 1.0)
