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
from livens.engine.lowering.kinds import Doubles, Integers

#: Pivot threshold relative to the largest entry of the column.
THRESHOLD = 0.1
#: Tolerance below which an entry is zero, relative to the magnitude of its terms (cancellation).
_ROUNDING = 1e-14
#: Latencies in cycles of a fused multiply-add and of a reciprocal.
_PRODUCT, _RECIPROCAL = 4.0, 13.0
#: Delay in cycles that outweighs the full magnitude ratio of two pivots.
_CYCLES = 8.0


class SingularMatrixError(ArithmeticError):
    """No acceptable pivot remains."""


# The matrix is dense, n by n, with index lists of its entries. `doubles` and `integers` contain consecutive blocks of
# n * n and then of n numbers:
#   doubles   values, terms (sum of the magnitudes of all terms of an entry), ready_cycle (cycle in which an entry is
#             available, negative without an entry); largest (maximum of every column)
#   integers  columns (of row i, from i * n), rows (of column j, from j * n); their number in each row and each column;
#             eliminated columns; the orders of rows and columns


@lowered
def _fill(entries: int, rows: Integers, columns: Integers, given: Doubles, n: int, m: Doubles, lists: Integers) -> None:
    """Load the entries of a matrix into the workspace."""
    terms, known = m + n * n, m + 2 * n * n
    counts = lists + 2 * n * n
    for i in range(n * n):
        known[i] = -1.0
    for i in range(3 * n):
        counts[i] = 0
    for e in range(entries):
        i, j = rows[e], columns[e]
        place = i * n + j
        m[place], terms[place], known[place] = given[e], abs(given[e]), 0.0
        lists[i * n + counts[i]] = j
        lists[n * n + j * n + counts[n + j]] = i
        counts[i] += 1
        counts[n + j] += 1


@lowered
def _best(n: int, m: Doubles, lists: Integers) -> int:
    """Return the position of the best pivot; -1 if there is none."""
    terms, known, largest = m + n * n, m + 2 * n * n, m + 3 * n * n
    in_column, row_counts = lists + n * n, lists + 2 * n * n
    column_counts, gone = row_counts + n, row_counts + 2 * n
    best, fill, merit = -1, 0, 0.0
    for j in range(n):
        if gone[j]:
            continue
        largest[j] = 0.0
        for k in range(column_counts[j]):
            place = in_column[j * n + k] * n + j
            size = abs(m[place])
            if size > _ROUNDING * terms[place]:
                largest[j] = max(largest[j], size)
        for k in range(column_counts[j]):
            i = in_column[j * n + k]
            place = i * n + j
            size = abs(m[place])
            cost = (row_counts[i] - 1) * (column_counts[j] - 1)
            if best >= 0 and cost > fill:
                continue
            if not (size > _ROUNDING * terms[place] and size >= THRESHOLD * largest[j]):
                continue
            here = size / largest[j] - known[place] / _CYCLES
            if best < 0 or cost < fill or here > merit or (here == merit and place < best):
                best, fill, merit = place, cost, here
    return best


@lowered
def _leave(items: Integers, count: int, item: int) -> None:
    """Remove an item from a list; the last item takes its position."""
    for k in range(count):
        if items[k] == item:
            items[k] = items[count - 1]
            return


@lowered
def _eliminate(n: int, m: Doubles, lists: Integers, row: int, column: int) -> None:
    """Eliminate with the pivot in this row and column."""
    terms, known = m + n * n, m + 2 * n * n
    in_column, row_counts = lists + n * n, lists + 2 * n * n
    column_counts, gone = row_counts + n, row_counts + 2 * n
    pivot, inverse = m[row * n + column], known[row * n + column] + _RECIPROCAL
    amplified = terms[row * n + column] / abs(pivot)
    gone[column] = 1
    for k in range(row_counts[row]):
        j = lists[row * n + k]
        _leave(in_column + j * n, column_counts[j], row)
        column_counts[j] -= 1
    for a in range(column_counts[column]):
        i = in_column[column * n + a]
        factor = m[i * n + column] / pivot
        size, ready = abs(factor), max(inverse, known[i * n + column]) + _PRODUCT
        # a factor affected by cancellation has fewer accurate digits, and so have its products
        error = terms[i * n + column] / abs(pivot) + size * (amplified - 1.0)
        _leave(lists + i * n, row_counts[i], column)
        row_counts[i] -= 1
        for k in range(row_counts[row]):
            j = lists[row * n + k]
            if j == column:
                continue
            here, above = i * n + j, row * n + j
            more, later = size * terms[above] + (error - size) * abs(m[above]), max(ready, known[above])
            if known[here] < 0.0:
                lists[i * n + row_counts[i]] = j
                in_column[j * n + column_counts[j]] = i
                row_counts[i] += 1
                column_counts[j] += 1
                m[here], terms[here], known[here] = -factor * m[above], more, later + _PRODUCT
            else:
                m[here] -= factor * m[above]
                terms[here] += more
                known[here] = max(later, known[here]) + _PRODUCT


@lowered
def _ordered(
    entries: int, rows: Integers, columns: Integers, given: Doubles, n: int, doubles: Doubles, integers: Integers
) -> int:
    """Choose all pivots. Returns their number."""
    _fill(entries, rows, columns, given, n, doubles, integers)
    orders = integers + (2 * n * n + 3 * n)
    for step in range(n):
        place = _best(n, doubles, integers)
        if place < 0:
            return step
        orders[step], orders[n + step] = place // n, place % n
        _eliminate(n, doubles, integers, place // n, place % n)
    return n


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
    given = np.ascontiguousarray(values, dtype=float)
    doubles, integers = np.empty(3 * size * size + size), np.empty(2 * size * size + 5 * size, dtype=np.int64)
    if _ordered(len(i), i, j, given, size, doubles, integers) < size:
        raise SingularMatrixError("the Jacobian is numerically singular")
    orders = integers[2 * size * size + 3 * size :].tolist()
    return tuple(orders[:size]), tuple(orders[size:])
