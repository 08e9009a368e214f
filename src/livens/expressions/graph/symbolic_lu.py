"""Symbolic sparse LU solution of linear equations, with pivots chosen on a numeric sample."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.types import Expr

#: Pivot threshold relative to the largest entry of the row, in the numeric sample.
_PIVOT_THRESHOLD = 0.05


def solve_symbolic(matrix: Expr, rhs: Expr, sample: np.ndarray) -> Any:
    """Solve ``matrix x = rhs`` symbolically; `sample` is the matrix at a generic state and determines the pivots.

    Constant pivots with low fill-in (Markowitz cost) are preferred, so that expressions stay short. Returns None if the
    matrix is singular at that state.

    >>> a = ca.SX.sym("a")
    >>> A = ca.blockcat([[1, a], [0, 2]])
    >>> x = solve_symbolic(A, ca.vertcat(3, 4), np.array([[1.0, 0.7], [0.0, 2.0]]))
    >>> ca.Function("x", [a], [x])(0.5).full().ravel().tolist()
    [2.0, 2.0]
    """
    n = int(rhs.numel())
    rows = [{j: matrix[i, j] for j in range(n) if not matrix[i, j].is_zero()} for i in range(n)]
    numeric, b = np.array(sample, dtype=float), [rhs[i] for i in range(n)]
    active_rows, columns, pivots = set(range(n)), set(range(n)), list[tuple[int, int]]()
    while active_rows:
        column_counts = {j: sum(j in rows[i] for i in active_rows) for j in columns}
        pivot = None
        for i in sorted(active_rows):
            size = max((abs(numeric[i, j]) for j in rows[i]), default=0.0)
            for j, entry in rows[i].items():
                if size > 0 and abs(numeric[i, j]) >= _PIVOT_THRESHOLD * size:
                    cost = (not entry.is_constant(), (len(rows[i]) - 1) * (column_counts[j] - 1), i, j)
                    pivot = cost if pivot is None or cost < pivot else pivot
        if pivot is None:
            return None
        i, j = pivot[2:]
        pivots.append((i, j))
        active_rows.remove(i)
        columns.remove(j)
        for row in active_rows:
            if j not in rows[row]:
                continue
            factor, numeric_factor = rows[row].pop(j) / rows[i][j], numeric[row, j] / numeric[i, j]
            for column, entry in rows[i].items():
                if column != j:
                    rows[row][column] = rows[row].get(column, ca.SX(0)) - factor * entry
                    numeric[row, column] -= numeric_factor * numeric[i, column]
            b[row] -= factor * b[i]
    x: dict[int, Any] = {}
    for i, j in reversed(pivots):
        substituted = sum((entry * x[column] for column, entry in rows[i].items() if column != j), ca.SX(0))
        x[j] = (b[i] - substituted) / rows[i][j]
    return ca.vertcat(*(x[j] for j in range(n)))
