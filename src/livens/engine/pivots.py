"""A static pivot order for a sparse matrix: Markowitz' rule on a numeric sample.

SuperLU orders columns for fill without looking at the values and rows for the values without looking at fill. For the
small, very sparse matrices of one time step, choosing both together (least ``(r-1)(c-1)`` among the pivots that are
large enough in their column) halves the work: 316 against 679 multiplications on the double four-bar linkage. Of those
that cost the same, one is taken that is known early: chains of instructions that wait for each other stay short.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Integers

#: A pivot must be at least this part of the largest entry of its column.
THRESHOLD = 0.1
#: An entry is zero if it is not larger than this part of what its rounding has been through.
_ROUNDING = 1e-14
#: How many cycles an instruction takes until its result is there: a product with a sum, and a reciprocal.
_PRODUCT, _RECIPROCAL = 4.0, 13.0
#: A pivot that is known this many cycles later is as good as one that is not larger than this part of it.
_CYCLES = 8.0


class SingularMatrixError(ArithmeticError):
    """No acceptable pivot is left."""


# The matrix is dense, n by n, with lists of where its entries are; `doubles` and `integers` hold all of that one behind
# the other, in blocks of n * n and then of n numbers:
#   doubles   values, terms (the size of all terms that an entry is made of), known (the cycle in which an entry is
#             known, negative where there is none); largest (of every column)
#   integers  columns (of row i, from i * n on), rows (of column j, from j * n on); how many these are of each row, and
#             of each column; columns that are gone; the orders of rows and columns


@lowered
def _fill(entries: int, rows: Integers, columns: Integers, given: Doubles, n: int, m: Doubles, lists: Integers) -> None:
    """Write the entries of a matrix where they belong."""
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
    """The place of the best pivot; -1 if there is none."""
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
    """Take an item out of a list; the last one gets its place."""
    for k in range(count):
        if items[k] == item:
            items[k] = items[count - 1]
            return


@lowered
def _eliminate(n: int, m: Doubles, lists: Integers, row: int, column: int) -> None:
    """Take the pivot in this row and column."""
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
        # a factor that is itself left of a cancellation is known to fewer digits, and so is what it multiplies
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
    """Choose all pivots. Returns how many there are."""
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
    """``(row order, column order)``: the k-th pivot stands in row ``row_order[k]``, column ``column_order[k]``.

    Entries of all sizes can be pivots, such as tiny masses beside large forces, but not what elimination left of two
    that cancel: beside every entry goes the size of all terms it is made of.
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
