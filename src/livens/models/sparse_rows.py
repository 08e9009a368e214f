"""Sparse linear algebra of constraints: minimum-norm solutions, dependent rows, multipliers.

Rows of G are scaled to unit length. ``S = G G^T`` is factorized with a small regularization, which affects only the
pivots of dependent rows. Iterative refinement removes its effect on solutions.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from scipy.sparse import csgraph

#: Regularization added to the unit diagonal of S.
_SHIFT = 1e-13
#: Pivot tolerance of S: pivots are squared norms of rows orthogonal to preceding rows.
_PIVOT = 1e-10
#: Relative norm of the part of a row orthogonal to others below which the row is linearly dependent.
_DEPENDENT = 1e-9
#: Maximum number of dependent rows for which the last row of each relation is determined.
_NAMED = 64
_ITERATIONS = 12


class SparseRows:
    """Sparse constraint Jacobian G with a factorization of ``G G^T``."""

    def __init__(self, G: Any) -> None:
        self.G = sp.csr_matrix(G)
        lengths = np.sqrt(np.asarray(self.G.multiply(self.G).sum(axis=1)).ravel())
        self._lengths = np.where(lengths > 0, lengths, 1.0)
        self.rows = sp.diags_array(1.0 / self._lengths) @ self.G

    @functools.cached_property
    def _factors(self) -> Any:
        return _definite(self.rows @ self.rows.T, _SHIFT)

    def least(self, r: np.ndarray) -> np.ndarray:
        """Return the minimum-norm solution of ``G x = r``, in the least-squares sense for contradictory rows."""
        wanted = r / self._lengths
        x, rest, size = np.zeros(self.G.shape[1]), wanted, np.inf
        for _ in range(_ITERATIONS):
            now = float(np.abs(rest).max(initial=0.0))
            if not now < 0.5 * size:
                break
            size = now
            x = x + self.rows.T @ self._factors.solve(rest)
            rest = wanted - self.rows @ x
        return np.asarray(x)

    # -- dependent rows -----------------------------------------------------------------------------------------------
    def dependent(self, first: np.ndarray | None = None) -> list[int]:
        """Return a minimal set of dependent rows; none of the `protected` rows (a mask) if those are independent.

        If there are at most `_MAX_CANONICAL`, each is the last row of its linear relation.
        """
        suspects, everything = self._suspects(first), np.arange(self.G.shape[0])
        found = self._confirmed(np.setdiff1d(everything, suspects), suspects) if suspects.size else suspects
        while (hidden := self._related(np.setdiff1d(everything, found), first)) is not None:
            found = np.union1d(found, [hidden])
        if not found.size or first is not None or found.size > _NAMED:
            return [int(i) for i in found]
        return self._last_of(np.setdiff1d(everything, found), found)

    def _related(self, kept: np.ndarray, first: np.ndarray | None) -> int | None:
        """Return a row that is a combination of other rows of the set; None if the rows are independent.

        Relations with large coefficients have no small pivot; inverse iteration on S detects them.
        """
        whole = len(kept) == self.G.shape[0]
        rows = self.rows if whole else self.rows[kept]
        factors = self._factors if whole else _definite(rows @ rows.T, _SHIFT)
        y = np.random.default_rng(13).standard_normal(len(kept))
        for _ in range(3):
            y = factors.solve(y / np.linalg.norm(y))
        y = y / np.linalg.norm(y)
        if not np.linalg.norm(rows.T @ y) <= _DEPENDENT:
            return None
        open_ = np.ones(len(kept), dtype=bool) if first is None else ~first[kept]
        return int(kept[int(np.argmax(np.where(open_, np.abs(y), 0.0)))])

    def _suspects(self, first: np.ndarray | None) -> np.ndarray:
        """Return the rows with small pivots: candidates for dependent rows."""
        if first is None or not first.any():
            return np.flatnonzero(_pivots(self._factors) < _PIVOT)
        ahead, behind = np.flatnonzero(first), np.flatnonzero(~first)
        S = sp.csc_matrix(self.rows @ self.rows.T)
        between = S[behind][:, ahead]
        rest = S[behind][:, behind] - between @ _inverse(S[ahead][:, ahead]) @ between.T
        return behind[np.flatnonzero(_pivots(_definite(rest, _SHIFT)) < _PIVOT)]

    def _confirmed(self, kept: np.ndarray, suspects: np.ndarray) -> np.ndarray:
        """Return the candidates that depend on the independent rows or on preceding candidates."""
        project = _Projection(self.rows[kept])
        weights = np.random.default_rng(11).standard_normal(suspects.size)
        mixed = self.rows[suspects].T @ weights  # dependent only if all candidates are
        if np.linalg.norm(project.rest(mixed)) <= _DEPENDENT * np.linalg.norm(weights):
            return suspects
        found = []
        for i in suspects:
            row = np.asarray(self.rows[[i]].todense()).ravel()
            if np.linalg.norm(project.rest(row)) <= _DEPENDENT * max(float(np.linalg.norm(row)), 1e-300):
                found.append(int(i))
            else:
                kept = np.union1d(kept, [i])
                project = _Projection(self.rows[kept])
        return np.array(found, dtype=np.int64)

    def _last_of(self, kept: np.ndarray, found: np.ndarray) -> list[int]:
        """Return the last row of every linear relation, by elimination from the end."""
        project = _Projection(self.rows[kept])
        relations = np.zeros((len(found), self.G.shape[0]))
        for j, i in enumerate(found):
            row = np.asarray(self.rows[[i]].todense()).ravel()
            relations[j, i], relations[j, kept] = 1.0, -project.weights(row)
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


class _Projection:
    """Least-squares problem with independent rows, solved by the augmented system (rows are not squared)."""

    def __init__(self, rows: Any) -> None:
        m, n = rows.shape
        self._n = n
        matrix = (
            sp.block_array([[sp.eye_array(n), rows.T], [rows, None]], format="csc") if m else sp.eye_array(n).tocsc()
        )
        self._matrix, self._factors = matrix, spl.splu(matrix)

    def _solved(self, row: np.ndarray) -> np.ndarray:
        b = np.zeros(self._matrix.shape[0])
        b[: self._n] = row
        x = self._factors.solve(b)
        return np.asarray(x + self._factors.solve(b - self._matrix @ x))

    def rest(self, row: np.ndarray) -> np.ndarray:
        return self._solved(row)[: self._n]

    def weights(self, row: np.ndarray) -> np.ndarray:
        return self._solved(row)[self._n :]


def _definite(S: Any, shift: float) -> Any:
    """Return the LU factors of a symmetric positive semidefinite matrix, with diagonal pivots."""
    matrix = sp.csc_matrix(S) + shift * sp.eye_array(S.shape[0], format="csc")
    options = {"SymmetricMode": True}
    return spl.splu(sp.csc_matrix(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)


def _pivots(factors: Any) -> np.ndarray:
    """Return the pivot magnitude of each row, in the order of the matrix."""
    return np.asarray(np.abs(factors.U.diagonal())[factors.perm_c])


def _inverse(S: Any) -> Any:
    """Return the inverse of a matrix of many small diagonal blocks, such as the rigidity constraints of bodies."""
    count, label = csgraph.connected_components(S, directed=False)
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    local = np.empty(len(label), dtype=np.int64)
    local[order] = np.arange(len(label)) - np.repeat(starts[:-1], sizes)
    entries = sp.coo_array(S)
    parts = []
    for size in np.unique(sizes):
        blocks = np.flatnonzero(sizes == size)
        number = np.full(count, -1)
        number[blocks] = np.arange(len(blocks))
        here = number[label[entries.row]] >= 0
        rows, columns = entries.row[here], entries.col[here]
        matrices = np.zeros((len(blocks), size, size))
        matrices[number[label[rows]], local[rows], local[columns]] = entries.data[here]
        members = order[starts[blocks][:, None] + np.arange(size)]
        inverses = np.linalg.inv(matrices + _SHIFT * np.eye(size))
        places = np.broadcast_arrays(members[:, :, None], members[:, None, :])
        parts.append((inverses.ravel(), places[0].ravel(), places[1].ravel()))
    values, rows, columns = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return sp.csc_array((values, (rows, columns)), shape=S.shape)


def regular_solution(A: Any, b: np.ndarray) -> np.ndarray | None:
    """Return the solution of a symmetric system; None if the matrix may be singular."""
    scale = 1.0 / np.sqrt(_largest_in_rows(A))
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
    if not np.linalg.norm(r) * _REGULAR < 1.0:
        return None
    wanted = scale * b
    x = factors.solve(wanted)
    x = x + factors.solve(wanted - matrix @ x)
    return np.asarray(scale * x)


#: Reciprocal condition number, estimated by inverse iteration, above which the scaled matrix is regular.
_REGULAR = 1e-9


def least_squares(A: Any, b: np.ndarray, n: int) -> np.ndarray:
    """Return the minimum-norm solution of ``M a + G^T lam = f, G a = c`` with a possibly singular matrix A.

    The first n unknowns are a. A regularization makes the matrix regular; iterative refinement removes its effect.
    """
    scale = 1.0 / np.sqrt(_largest_in_rows(A))
    matrix = sp.csc_matrix(sp.diags_array(scale) @ A @ sp.diags_array(scale))
    shift = 1e-9 * np.where(np.arange(A.shape[0]) < n, 1.0, -1.0)
    factors = spl.splu(sp.csc_matrix(matrix + sp.diags_array(shift)))
    wanted = scale * b
    x, rest, size = np.zeros(b.size), wanted, np.inf
    for _ in range(_ITERATIONS):
        now = float(np.abs(rest).max(initial=0.0))
        if not now < 0.5 * size:
            break
        size = now
        x = x + factors.solve(rest)
        rest = wanted - matrix @ x
    if not np.abs(rest).max(initial=0.0) <= 1e-8 * (1.0 + np.abs(wanted).max(initial=0.0)):
        x = spl.lsqr(matrix, wanted, atol=1e-14, btol=1e-14, iter_lim=4 * b.size)[0]
    return np.asarray(scale * x)


def _largest_in_rows(A: Any) -> np.ndarray:
    largest = abs(sp.csr_matrix(A)).max(axis=1).toarray().ravel()
    return np.where(largest > 0, largest, 1.0)
