"""A static pivot order for a sparse matrix: Markowitz' rule on a numeric sample.

SuperLU orders columns for fill without looking at the values and rows for the values without looking at fill. For the
small, very sparse matrices of one time step, choosing both together (least ``(r-1)(c-1)`` among the pivots that are
large enough in their column) halves the work: 316 against 679 multiplications on the double four-bar linkage.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: A pivot must be at least this part of the largest entry of its column.
THRESHOLD = 0.1
#: An entry is zero if it is not larger than this part of what its rounding has been through.
_ROUNDING = 1e-14
#: How many rows and columns with the fewest entries are looked at for each pivot.
_CANDIDATES = 8


class SingularMatrixError(ArithmeticError):
    """No acceptable pivot is left."""


def pivot_order(
    rows: Sequence[int] | np.ndarray, columns: Sequence[int] | np.ndarray, values: np.ndarray, size: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """``(row order, column order)``: the k-th pivot stands in row ``row_order[k]``, column ``column_order[k]``.

    Entries of all sizes can be pivots, such as tiny masses beside large forces, but not what elimination left of two
    that cancel: beside every entry goes the size of all terms it is made of.
    """
    if not np.all(np.isfinite(values)):
        raise SingularMatrixError("the Jacobian is not finite")
    work: list[dict[int, float]] = [{} for _ in range(size)]
    terms: list[dict[int, float]] = [{} for _ in range(size)]
    column_rows: list[set[int]] = [set() for _ in range(size)]
    for i, j, value in zip(rows, columns, values, strict=True):
        work[int(i)][int(j)] = float(value)
        terms[int(i)][int(j)] = abs(float(value))
        column_rows[int(j)].add(int(i))
    row_order: list[int] = []
    column_order: list[int] = []
    by_row = _Buckets([len(row) for row in work])
    by_column = _Buckets([len(column) for column in column_rows])
    for _ in range(size):
        i, j = _best_pivot(work, terms, column_rows, by_row, by_column)
        row_order.append(i)
        column_order.append(j)
        pivot_row, pivot_terms = work[i], terms[i]
        pivot = pivot_row.pop(j)
        amplified = pivot_terms.pop(j) / abs(pivot)
        by_row.remove(i)
        by_column.remove(j)
        column_rows[j].discard(i)
        for column in pivot_row:
            column_rows[column].discard(i)
        for other in column_rows[j]:
            target, target_terms = work[other], terms[other]
            entry = target.pop(j)
            factor, size_of_factor = entry / pivot, abs(entry / pivot)
            # a factor that is itself left of a cancellation is known to fewer digits, and so is what it multiplies
            error = target_terms.pop(j) / abs(pivot) + size_of_factor * (amplified - 1.0)
            for column, value in pivot_row.items():
                size_of_terms = size_of_factor * pivot_terms[column] + (error - size_of_factor) * abs(value)
                if column not in target:
                    column_rows[column].add(other)
                    target[column], target_terms[column] = -factor * value, size_of_terms
                else:
                    target[column] -= factor * value
                    target_terms[column] += size_of_terms
            by_row.move(other, len(target))
        for column in pivot_row:
            by_column.move(column, len(column_rows[column]))
    return tuple(row_order), tuple(column_order)


def _best_pivot(
    work: list[dict[int, float]], terms: list[dict[int, float]], column_rows: list[set[int]], by_row: _Buckets,
    by_column: _Buckets,
) -> tuple[int, int]:  # fmt: skip
    best: tuple[float, float] | None = None
    place = (-1, -1)
    seen = 0
    for j in by_column.sorted():
        found = [(abs(work[i][j]), i) for i in column_rows[j] if abs(work[i][j]) > _ROUNDING * terms[i][j]]
        if not found:
            continue
        largest = max(found)[0]
        for size, i in found:
            if size >= THRESHOLD * largest:
                merit = ((len(work[i]) - 1) * (len(column_rows[j]) - 1), -size / largest)
                if best is None or merit < best:
                    best, place = merit, (i, j)
        seen += 1
        if best is not None and (best[0] == 0 or seen >= _CANDIDATES):
            break
    if best is None:
        raise SingularMatrixError("the Jacobian is numerically singular")
    if best[0] > 0:
        for i in by_row.sorted(_CANDIDATES):
            for j, value in work[i].items():
                merit = ((len(work[i]) - 1) * (len(column_rows[j]) - 1), 0.0)
                if abs(value) > _ROUNDING * terms[i][j] and merit < best:
                    largest = max(abs(work[r][j]) for r in column_rows[j])
                    if abs(value) >= THRESHOLD * largest:
                        best, place = (merit[0], -abs(value) / largest), (i, j)
    return place


class _Buckets:
    """Rows or columns by the number of their entries."""

    def __init__(self, counts: list[int]) -> None:
        self.count = dict(enumerate(counts))
        self.members: dict[int, dict[int, None]] = {}
        for item, count in self.count.items():
            self.members.setdefault(count, {})[item] = None

    def move(self, item: int, count: int) -> None:
        old = self.count[item]
        if old != count:
            del self.members[old][item]
            self.members.setdefault(count, {})[item] = None
            self.count[item] = count

    def remove(self, item: int) -> None:
        del self.members[self.count.pop(item)][item]

    def sorted(self, most: int | None = None):  # type: ignore[no-untyped-def]
        """Items, fewest entries first."""
        given = 0
        for count in sorted(self.members):
            for item in self.members[count]:
                yield item
                given += 1
                if most is not None and given >= most:
                    return
