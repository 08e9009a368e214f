"""Fully unrolled sparse LU factorisation in a static pivot order (code generation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from livens.engine.emit import ZERO, Emitter

Order = tuple[tuple[int, ...], tuple[int, ...]]
#: Number of independent chains of comparisons (instruction-level parallelism).
_CHAINS = 4


class Sparse(Protocol):
    """Sparsity pattern of a square matrix, and the linear map from its solution to an increment."""

    @property
    def size(self) -> int: ...
    @property
    def rows(self) -> np.ndarray: ...
    @property
    def columns(self) -> np.ndarray: ...
    @property
    def turn(self) -> Any: ...


class Factors:
    """Unrolled LU factors of a step's Jacobian as values of an emitter, and solutions with them.

    Rows are eliminated one after the other, together with an attached right-hand side, so that the current row stays in
    registers. With `schedule_rows`, the entries of a row are evaluated when the row is eliminated. With `track_growth`,
    the largest elimination factor is available as `pivot_growth`.
    """

    def __init__(
        self,
        emitter: Emitter,
        equations: Sparse,
        order: Order,
        jacobian: Sequence[str],
        right: Sequence[str] | None = None,
        *,
        watched: bool = True,
        anchored: bool = False,
        turn: Sequence[Sequence[str]] = (),
    ) -> None:
        self._emitter, self._order = emitter, order
        self._turn: dict[int, list[tuple[int, str]]] = {}
        if turn:  # some entries of the increment are linear combinations of entries of the solution
            for i, j, value in zip(*equations.turn[1:], turn[0], strict=True):
                self._turn.setdefault(int(i), []).append((int(j), value))
        self._watched, self._anchored = watched, anchored
        row_at, column_at = np.argsort(order[0]), np.argsort(order[1])
        matrix: list[dict[int, str]] = [{} for _ in range(equations.size)]
        for i, j, value in zip(row_at[equations.rows], column_at[equations.columns], jacobian, strict=True):
            matrix[i][int(j)] = value
        self._lower: list[list[tuple[int, str]]] = []
        self._upper: list[list[tuple[int, str]]] = []
        self._inverse: list[str] = []
        self._largest, self._count = [ZERO] * _CHAINS, 0
        self._y = [] if right is None else [right[i] for i in order[0]]
        for i, row in enumerate(matrix):
            self._eliminate(i, row)

    def _eliminate(self, i: int, row: dict[int, str]) -> None:
        emitter, y = self._emitter, self._y
        if self._anchored and y:
            emitter.anchor(y[i])
        pending, lower = sorted(j for j in row if j < i), []
        while pending:
            k = pending.pop(0)
            factor = emitter.mul(row.pop(k), self._inverse[k])
            lower.append((k, factor))
            self._watch(factor)
            for j, value in self._upper[k]:
                if j in row:
                    row[j] = emitter.minus_product(row[j], factor, value)
                else:
                    row[j] = emitter.mul(emitter.fneg(factor), value)
                    if j < i:
                        pending.append(j)
                        pending.sort()
            if y:
                y[i] = emitter.minus_product(y[i], factor, y[k])
        self._lower.append(lower)
        self._inverse.append(emitter.reciprocal(row[i]))
        self._upper.append([(j, row[j]) for j in sorted(row) if j > i])
        if self._anchored:
            emitter.anchor(*y[i : i + 1], self._inverse[i], *(value for _, value in self._upper[i]))

    def _watch(self, factor: str) -> None:
        if self._watched:
            chain = self._count % _CHAINS
            self._largest[chain] = self._emitter.larger(self._largest[chain], self._emitter.fabs(factor))
            self._count += 1
            if self._anchored:
                self._emitter.anchor(self._largest[chain])

    @property
    def reciprocals(self) -> list[str]:
        """Reciprocals of the pivots."""
        return self._inverse

    @property
    def growth(self) -> str:
        """Largest elimination factor."""
        growth = self._largest[0]
        for other in self._largest[1:]:
            growth = self._emitter.larger(growth, other)
        return growth

    def solution(self) -> list[tuple[int, str]]:
        """Return the solution for the attached right-hand side: indices and values, in the order of computation."""
        y = self._back(list(self._y))
        found = {self._order[1][i]: y[i] for i in reversed(range(len(y)))}
        return [(j, self._turned(found, j)) for j in found]

    def _turned(self, solution: dict[int, str], i: int) -> str:
        """Return an entry of the increment, possibly a linear combination of entries of the solution."""
        if i not in self._turn:
            return solution[i]
        (j, value), *rest = self._turn[i]
        total = self._emitter.mul(value, solution[j])
        for j, value in rest:
            total = self._emitter.minus_product(total, self._emitter.fneg(value), solution[j])
        return total

    def _turned_back(self, right: Sequence[str]) -> list[str]:
        """Apply the transpose of the increment map."""
        found = [ZERO if i in self._turn else value for i, value in enumerate(right)]
        for i, row in self._turn.items():
            for j, value in row:
                found[j] = self._emitter.minus_product(found[j], self._emitter.fneg(value), right[i])
        return found

    def solve(self, right: Sequence[str]) -> list[str]:
        """Solve for another right-hand side."""
        emitter, (rows, columns) = self._emitter, self._order
        y = [right[i] for i in rows]
        for i, lower in enumerate(self._lower):
            for k, factor in lower:
                y[i] = emitter.minus_product(y[i], factor, y[k])
        y = self._back(y)
        found = dict(zip(columns, y, strict=True))
        return [self._turned(found, i) for i in range(len(found))]

    def _back(self, y: list[str]) -> list[str]:
        for i in reversed(range(len(y))):
            for j, value in self._upper[i]:
                y[i] = self._emitter.minus_product(y[i], value, y[j])
            y[i] = self._emitter.mul(y[i], self._inverse[i])
        return y

    def solve_transposed(self, right: Sequence[str]) -> list[str]:
        """Solve with the transposed matrix."""
        emitter, (rows, columns) = self._emitter, self._order
        turned = self._turned_back(right)
        y = [turned[j] for j in columns]
        for i, row in enumerate(self._upper):
            y[i] = emitter.mul(y[i], self._inverse[i])
            for j, value in row:
                y[j] = emitter.minus_product(y[j], value, y[i])
        for i in reversed(range(len(y))):
            for k, factor in self._lower[i]:
                y[k] = emitter.minus_product(y[k], factor, y[i])
        return [y[i] for i in np.argsort(rows)]
