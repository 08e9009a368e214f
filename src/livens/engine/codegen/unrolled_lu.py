"""Fully unrolled sparse LU factorisation in a static pivot order (code generation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from livens.engine.codegen.ir_emitter import ZERO, Emitter

PivotOrder = tuple[tuple[int, ...], tuple[int, ...]]
#: Number of independent chains of comparisons (instruction-level parallelism).
_CHAINS = 4


class SparsityPattern(Protocol):
    """Sparsity pattern of a square matrix, and the linear map from its solution to an increment."""

    @property
    def size(self) -> int: ...
    @property
    def jac_rows(self) -> np.ndarray: ...
    @property
    def jac_cols(self) -> np.ndarray: ...
    @property
    def update_matrix(self) -> Any: ...


class UnrolledLU:
    """Unrolled LU factors of a step's Jacobian as values of an emitter, and solutions with them.

    Rows are eliminated one after the other, together with an attached right-hand side, so that the current row stays in
    registers. With `schedule_rows`, the entries of a row are evaluated when the row is eliminated. With `track_growth`,
    the largest elimination factor is available as `pivot_growth`.
    """

    def __init__(
        self,
        emitter: Emitter,
        equations: SparsityPattern,
        order: PivotOrder,
        jacobian: Sequence[str],
        rhs: Sequence[str] | None = None,
        *,
        track_growth: bool = True,
        schedule_rows: bool = False,
        update_matrix: Sequence[Sequence[str]] = (),
    ) -> None:
        self._emitter, self._order = emitter, order
        self._update_matrix: dict[int, list[tuple[int, str]]] = {}
        if update_matrix:  # some entries of the increment are linear combinations of entries of the solution
            for i, j, value in zip(*equations.update_matrix[1:], update_matrix[0], strict=True):
                self._update_matrix.setdefault(int(i), []).append((int(j), value))
        self._track_growth, self._schedule_rows = track_growth, schedule_rows
        row_at, column_at = np.argsort(order[0]), np.argsort(order[1])
        matrix: list[dict[int, str]] = [{} for _ in range(equations.size)]
        for i, j, value in zip(row_at[equations.jac_rows], column_at[equations.jac_cols], jacobian, strict=True):
            matrix[i][int(j)] = value
        self._lower: list[list[tuple[int, str]]] = []
        self._upper: list[list[tuple[int, str]]] = []
        self._inverse: list[str] = []
        self._largest, self._count = [ZERO] * _CHAINS, 0
        self._y = [] if rhs is None else [rhs[i] for i in order[0]]
        for i, row in enumerate(matrix):
            self._eliminate(i, row)

    def _eliminate(self, i: int, row: dict[int, str]) -> None:
        emitter, y = self._emitter, self._y
        if self._schedule_rows and y:
            emitter.anchor(y[i])
        pending, lower = sorted(j for j in row if j < i), []
        while pending:
            k = pending.pop(0)
            factor = emitter.mul(row.pop(k), self._inverse[k])
            lower.append((k, factor))
            self._record_growth(factor)
            for j, value in self._upper[k]:
                if j in row:
                    row[j] = emitter.fnmadd(row[j], factor, value)
                else:
                    row[j] = emitter.mul(emitter.fneg(factor), value)
                    if j < i:
                        pending.append(j)
                        pending.sort()
            if y:
                y[i] = emitter.fnmadd(y[i], factor, y[k])
        self._lower.append(lower)
        self._inverse.append(emitter.reciprocal(row[i]))
        self._upper.append([(j, row[j]) for j in sorted(row) if j > i])
        if self._schedule_rows:
            emitter.anchor(*y[i : i + 1], self._inverse[i], *(value for _, value in self._upper[i]))

    def _record_growth(self, factor: str) -> None:
        if self._track_growth:
            chain = self._count % _CHAINS
            self._largest[chain] = self._emitter.fmax(self._largest[chain], self._emitter.fabs(factor))
            self._count += 1
            if self._schedule_rows:
                self._emitter.anchor(self._largest[chain])

    @property
    def inverse_pivots(self) -> list[str]:
        """Reciprocals of the pivots."""
        return self._inverse

    @property
    def pivot_growth(self) -> str:
        """Largest elimination factor."""
        pivot_growth = self._largest[0]
        for other in self._largest[1:]:
            pivot_growth = self._emitter.fmax(pivot_growth, other)
        return pivot_growth

    def solve_attached_rhs(self) -> list[tuple[int, str]]:
        """Return the solution for the attached right-hand side: indices and values, in the order of computation."""
        y = self._back_substitute(list(self._y))
        values = {self._order[1][i]: y[i] for i in reversed(range(len(y)))}
        return [(j, self._apply_update_matrix(values, j)) for j in values]

    def _apply_update_matrix(self, solution: dict[int, str], i: int) -> str:
        """Return an entry of the increment, possibly a linear combination of entries of the solution."""
        if i not in self._update_matrix:
            return solution[i]
        (j, value), *rest = self._update_matrix[i]
        total = self._emitter.mul(value, solution[j])
        for j, value in rest:
            total = self._emitter.fnmadd(total, self._emitter.fneg(value), solution[j])
        return total

    def _apply_update_matrix_transposed(self, rhs: Sequence[str]) -> list[str]:
        """Apply the transpose of the increment map."""
        values = [ZERO if i in self._update_matrix else value for i, value in enumerate(rhs)]
        for i, row in self._update_matrix.items():
            for j, value in row:
                values[j] = self._emitter.fnmadd(values[j], self._emitter.fneg(value), rhs[i])
        return values

    def solve(self, rhs: Sequence[str]) -> list[str]:
        """Solve for another right-hand side."""
        emitter, (rows, columns) = self._emitter, self._order
        y = [rhs[i] for i in rows]
        for i, lower in enumerate(self._lower):
            for k, factor in lower:
                y[i] = emitter.fnmadd(y[i], factor, y[k])
        y = self._back_substitute(y)
        values = dict(zip(columns, y, strict=True))
        return [self._apply_update_matrix(values, i) for i in range(len(values))]

    def _back_substitute(self, y: list[str]) -> list[str]:
        for i in reversed(range(len(y))):
            for j, value in self._upper[i]:
                y[i] = self._emitter.fnmadd(y[i], value, y[j])
            y[i] = self._emitter.mul(y[i], self._inverse[i])
        return y

    def solve_transposed(self, rhs: Sequence[str]) -> list[str]:
        """Solve with the transposed matrix."""
        emitter, (rows, columns) = self._emitter, self._order
        mapped_rhs = self._apply_update_matrix_transposed(rhs)
        y = [mapped_rhs[j] for j in columns]
        for i, row in enumerate(self._upper):
            y[i] = emitter.mul(y[i], self._inverse[i])
            for j, value in row:
                y[j] = emitter.fnmadd(y[j], value, y[i])
        for i in reversed(range(len(y))):
            for k, factor in self._lower[i]:
                y[k] = emitter.fnmadd(y[k], factor, y[i])
        return [y[i] for i in np.argsort(rows)]
