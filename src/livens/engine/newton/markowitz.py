"""Markowitz pivoting: static pivot order of a sparse matrix from a numeric sample.

SuperLU orders columns for fill without regard to the values, and rows for the values without regard to fill. For the
small, very sparse matrices of one time step, the combined choice (least ``(r-1)(c-1)`` among the pivots that are large
enough in their column) halves the work: 316 against 679 multiplications on the double four-bar linkage. Ties are broken
by latency: the pivot that is available early is preferred, which keeps dependency chains short.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.types import F64Array, I64Array

#: Pivot threshold relative to the largest entry of the column.
THRESHOLD = 0.1
#: Tolerance below which an entry is zero, relative to the magnitude of its terms (cancellation).
_CANCELLATION_RTOL = 1e-14
#: Condition of an equilibrated matrix above which it is singular, and number of its equilibrations.
_MAX_CONDITION, _EQUILIBRATIONS = 1e13, 4
#: Latencies in cycles of a fused multiply-add and of a reciprocal.
_PRODUCT_LATENCY, _RECIPROCAL_LATENCY = 4.0, 13.0
#: Delay in cycles that outweighs the full magnitude ratio of two pivots.
_LATENCY_WEIGHT = 8.0


class SingularMatrixError(ArithmeticError):
    """No acceptable pivot remains."""


# The matrix is dense, n by n, with index lists of its entries. `doubles` and `integers` contain consecutive blocks of
# n * n and then of n numbers:
#   doubles   values, terms (sum of the magnitudes of all terms of an entry), ready_cycle (cycle in which an entry is
#             available, negative without an entry); largest (maximum of every column)
#   integers  columns (of row i, from i * n), rows (of column j, from j * n); their number in each row and each column;
#             eliminated columns; the orders of rows and columns


@lowered
def _load_matrix(
    entries: int, rows: I64Array, columns: I64Array, entry_values: F64Array, n: int, m: F64Array, lists: I64Array
) -> None:
    """Load the entries of a matrix into the workspace."""
    terms, ready_cycle = m + n * n, m + 2 * n * n
    counts = lists + 2 * n * n
    for i in range(n * n):
        ready_cycle[i] = -1.0
    for i in range(3 * n):
        counts[i] = 0
    for e in range(entries):
        i, j = rows[e], columns[e]
        position = i * n + j
        m[position], terms[position], ready_cycle[position] = entry_values[e], abs(entry_values[e]), 0.0
        lists[i * n + counts[i]] = j
        lists[n * n + j * n + counts[n + j]] = i
        counts[i] += 1
        counts[n + j] += 1


@lowered
def _best_pivot(n: int, m: F64Array, lists: I64Array) -> int:
    """Return the position of the best pivot; -1 if there is none."""
    terms, ready_cycle, largest = m + n * n, m + 2 * n * n, m + 3 * n * n
    in_column, row_counts = lists + n * n, lists + 2 * n * n
    column_counts, eliminated = row_counts + n, row_counts + 2 * n
    best, fill, merit = -1, 0, 0.0
    for j in range(n):
        if eliminated[j]:
            continue
        largest[j] = 0.0
        for k in range(column_counts[j]):
            position = in_column[j * n + k] * n + j
            size = abs(m[position])
            if size > _CANCELLATION_RTOL * terms[position]:
                largest[j] = max(largest[j], size)
        for k in range(column_counts[j]):
            i = in_column[j * n + k]
            position = i * n + j
            size = abs(m[position])
            cost = (row_counts[i] - 1) * (column_counts[j] - 1)
            if best >= 0 and cost > fill:
                continue
            if not (size > _CANCELLATION_RTOL * terms[position] and size >= THRESHOLD * largest[j]):
                continue
            candidate_merit = size / largest[j] - ready_cycle[position] / _LATENCY_WEIGHT
            if best < 0 or cost < fill or candidate_merit > merit or (candidate_merit == merit and position < best):
                best, fill, merit = position, cost, candidate_merit
    return best


@lowered
def _remove_item(items: I64Array, count: int, item: int) -> None:
    """Remove an item from a list; the last item takes its position."""
    for k in range(count):
        if items[k] == item:
            items[k] = items[count - 1]
            return


@lowered
def _eliminate(n: int, m: F64Array, lists: I64Array, row: int, column: int) -> None:
    """Eliminate with the pivot in this row and column."""
    terms, ready_cycle = m + n * n, m + 2 * n * n
    in_column, row_counts = lists + n * n, lists + 2 * n * n
    column_counts, eliminated = row_counts + n, row_counts + 2 * n
    pivot, inverse = m[row * n + column], ready_cycle[row * n + column] + _RECIPROCAL_LATENCY
    amplified = terms[row * n + column] / abs(pivot)
    eliminated[column] = 1
    for k in range(row_counts[row]):
        j = lists[row * n + k]
        _remove_item(in_column + j * n, column_counts[j], row)
        column_counts[j] -= 1
    for a in range(column_counts[column]):
        i = in_column[column * n + a]
        factor = m[i * n + column] / pivot
        size, ready = abs(factor), max(inverse, ready_cycle[i * n + column]) + _PRODUCT_LATENCY
        # a factor affected by cancellation has fewer accurate digits, and so have its products
        error = terms[i * n + column] / abs(pivot) + size * (amplified - 1.0)
        _remove_item(lists + i * n, row_counts[i], column)
        row_counts[i] -= 1
        for k in range(row_counts[row]):
            j = lists[row * n + k]
            if j == column:
                continue
            target, source = i * n + j, row * n + j
            added_terms, source_cycle = (
                size * terms[source] + (error - size) * abs(m[source]),
                max(ready, ready_cycle[source]),
            )
            if ready_cycle[target] < 0.0:
                lists[i * n + row_counts[i]] = j
                in_column[j * n + column_counts[j]] = i
                row_counts[i] += 1
                column_counts[j] += 1
                m[target], terms[target], ready_cycle[target] = (
                    -factor * m[source],
                    added_terms,
                    source_cycle + _PRODUCT_LATENCY,
                )
            else:
                m[target] -= factor * m[source]
                terms[target] += added_terms
                ready_cycle[target] = max(source_cycle, ready_cycle[target]) + _PRODUCT_LATENCY


@lowered
def _choose_pivots(
    entries: int,
    rows: I64Array,
    columns: I64Array,
    entry_values: F64Array,
    n: int,
    doubles: F64Array,
    integers: I64Array,
) -> int:
    """Choose all pivots. Returns their number."""
    _load_matrix(entries, rows, columns, entry_values, n, doubles, integers)
    orders = integers + (2 * n * n + 3 * n)
    for step in range(n):
        position = _best_pivot(n, doubles, integers)
        if position < 0:
            return step
        orders[step], orders[n + step] = position // n, position % n
        _eliminate(n, doubles, integers, position // n, position % n)
    return n


def _complete_pivoting(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, size: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the orders of complete pivoting on the equilibrated matrix, without regard to fill.

    Bounds of cancellation grow with every elimination and may reject all pivots of a regular matrix. Its condition
    decides.
    """
    matrix = np.zeros((size, size))
    np.add.at(matrix, (rows, columns), values)
    for _ in range(_EQUILIBRATIONS):
        for axis in (1, 0):
            largest = np.sqrt(np.abs(matrix).max(axis=axis, keepdims=True))
            if not largest.all():
                raise SingularMatrixError("the Jacobian is numerically singular")
            matrix /= largest
    if not np.linalg.cond(matrix) < _MAX_CONDITION:
        raise SingularMatrixError("the Jacobian is numerically singular")
    row_order, column_order = list(range(size)), list(range(size))
    for k in range(size):
        i, j = divmod(int(np.abs(matrix[k:, k:]).argmax()), size - k)
        for order, swap in ((row_order, k + i), (column_order, k + j)):
            order[k], order[swap] = order[swap], order[k]
        matrix[[k, k + i]] = matrix[[k + i, k]]
        matrix[:, [k, k + j]] = matrix[:, [k + j, k]]
        matrix[k + 1 :, k + 1 :] -= np.outer(matrix[k + 1 :, k] / matrix[k, k], matrix[k, k + 1 :])
    return tuple(row_order), tuple(column_order)


def pivot_order(
    rows: Sequence[int] | np.ndarray, columns: Sequence[int] | np.ndarray, values: np.ndarray, size: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return ``(row order, column order)``: the k-th pivot is in row ``row_order[k]``, column ``column_order[k]``.

    Entries of any magnitude can be pivots, such as tiny masses next to large forces, but not the remainders of
    cancellations: the workspace tracks the magnitude of all terms of every entry.
    """
    if not np.all(np.isfinite(values)):
        raise SingularMatrixError("the Jacobian is not finite")
    i, j = np.ascontiguousarray(rows, dtype=np.int64), np.ascontiguousarray(columns, dtype=np.int64)
    entry_values = np.ascontiguousarray(values, dtype=float)
    doubles, integers = np.empty(3 * size * size + size), np.empty(2 * size * size + 5 * size, dtype=np.int64)
    if _choose_pivots(len(i), i, j, entry_values, size, doubles, integers) < size:
        return _complete_pivoting(i, j, entry_values, size)
    orders = integers[2 * size * size + 3 * size :].tolist()
    return tuple(orders[:size]), tuple(orders[size:])
