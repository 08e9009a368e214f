"""Symbolic sparse LU solution of linear equations, with pivots chosen on a numeric sample."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

#: Pivot threshold relative to the largest entry of the row, in the numeric sample.
_LARGE_ENOUGH = 0.05


def eliminated(matrix: Any, right: Any, values: np.ndarray) -> Any:
    """Solve ``matrix x = rhs`` symbolically; `sample` is the matrix at a generic state and determines the pivots.

    Constant pivots with low fill-in (Markowitz cost) are preferred, so that expressions stay short. Returns None if the
    matrix is singular at that state.

    >>> a = ca.SX.sym("a")
    >>> A = ca.blockcat([[1, a], [0, 2]])
    >>> x = eliminated(A, ca.vertcat(3, 4), np.array([[1.0, 0.7], [0.0, 2.0]]))
    >>> ca.Function("x", [a], [x])(0.5).full().ravel().tolist()
    [2.0, 2.0]
    """
    n = int(right.numel())
    rows = [{j: matrix[i, j] for j in range(n) if not matrix[i, j].is_zero()} for i in range(n)]
    numbers, b = np.array(values, dtype=float), [right[i] for i in range(n)]
    left, columns, order = set(range(n)), set(range(n)), list[tuple[int, int]]()
    while left:
        counts = {j: sum(j in rows[i] for i in left) for j in columns}
        best = None
        for i in sorted(left):
            size = max((abs(numbers[i, j]) for j in rows[i]), default=0.0)
            for j, entry in rows[i].items():
                if size > 0 and abs(numbers[i, j]) >= _LARGE_ENOUGH * size:
                    cost = (not entry.is_constant(), (len(rows[i]) - 1) * (counts[j] - 1), i, j)
                    best = cost if best is None or cost < best else best
        if best is None:
            return None
        i, j = best[2:]
        order.append((i, j))
        left.remove(i)
        columns.remove(j)
        for other in left:
            if j not in rows[other]:
                continue
            factor, number = rows[other].pop(j) / rows[i][j], numbers[other, j] / numbers[i, j]
            for column, entry in rows[i].items():
                if column != j:
                    rows[other][column] = rows[other].get(column, ca.SX(0)) - factor * entry
                    numbers[other, column] -= number * numbers[i, column]
            b[other] -= factor * b[i]
    found: dict[int, Any] = {}
    for i, j in reversed(order):
        known = sum((entry * found[column] for column, entry in rows[i].items() if column != j), ca.SX(0))
        found[j] = (b[i] - known) / rows[i][j]
    return ca.vertcat(*(found[j] for j in range(n)))
