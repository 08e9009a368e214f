"""Linear equations whose entries are expressions, solved by elimination."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

#: A pivot is at least this part of the largest entry of its row, at a generic state.
_LARGE_ENOUGH = 0.05


def eliminated(matrix: Any, right: Any, values: np.ndarray) -> Any:
    """The solution of ``matrix x = right``; `values` is the matrix at a generic state, by which pivots are chosen.

    Pivots are numbers where that is possible, and such that little is filled in: expressions stay short. Nothing is
    returned if the matrix is singular at that state.

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
