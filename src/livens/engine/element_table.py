"""Sums over the elements of a system, at every row of a run: one small kernel per type, eight elements at a time.

Sums carry their rounding errors along, so that those over ten thousand elements are as good as those over ten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from livens.engine.fold import fold
from livens.engine.kernels import simple_kernel
from livens.engine.lowering.function import lowered, together
from livens.engine.lowering.kinds import Doubles, Indices, Integers, Record
from livens.engine.lowering.words import call
from livens.engine.native import Code
from livens.models.columns import ElementColumns, GroupColumns, Products

WIDTH = 8


@dataclass(frozen=True, eq=False)
class Tables(Record):
    """Where the elements of a type find what, in blocks of eight: entry by entry, one number an element."""

    elements: int
    filled: int  # their number in whole blocks
    place_count: int
    places: Indices  # entries of the state
    own_count: int
    own: Indices  # parameters of their own
    sum_count: int
    sums: Integers  # columns
    largest_count: int
    largest: Integers
    placed_count: int
    placed: Indices

    @property
    def outputs(self) -> int:
        """How many numbers the kernel finds for an element."""
        return self.sum_count + self.largest_count + self.placed_count


class ElementTable:
    """Columns of sums over elements, as native code over states as the engine lays them out."""

    def __init__(self, columns: ElementColumns) -> None:
        self.width, self._shared = columns.width, columns.shared
        self._code: list[Code] = []
        self._tables: list[Tables] = []
        for group in columns.groups:
            self._code.append(simple_kernel(group.function, "columns", effort=1, width=WIDTH))
            self._tables.append(_tables(group, columns.shared))
        self._products = [
            (column, absolute, *part) for column, absolute, products in columns.products for part in _parts(products)
        ]

    def __call__(self, t: np.ndarray, Z: np.ndarray, k: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """One row for each state, which begins with q, v and p; X are the multipliers, if columns depend on them."""
        Z = np.ascontiguousarray(Z if X is None else np.hstack([Z, X]))
        t, k = np.ascontiguousarray(t, dtype=float), np.ascontiguousarray(k, dtype=float)
        rows, width = Z.shape
        high, low = np.zeros((len(t), self.width)), np.zeros((len(t), self.width))
        for code, tables in zip(self._code, self._tables, strict=True):
            x, y = _aligned(max(1, tables.place_count)), _aligned(tables.outputs)
            c, work = _aligned(1 + self._shared + tables.own_count), _aligned(2 * tables.outputs)
            c[1 : 1 + self._shared] = k[: self._shared, None]
            _run_over(code.address, tables, rows, width, t, Z, k, self._shared, x, c, y, work, self.width, high, low)
        work = _aligned(2)
        for column, absolute, first, second, values in self._products:
            size, paired, wide = first.size, second.size > 0, self.width
            _multiply(Z, rows, width, first, second, values, size, paired, absolute, column, wide, work, high, low)
        return high + low

    def fold(
        self,
        t: np.ndarray,
        Z: np.ndarray,
        k: np.ndarray,
        supplied: int,
        begins: bool,
        first: np.ndarray,
        last: np.ndarray,
        *largest: np.ndarray,
    ) -> None:
        """Take the rows of these states into account, as `livens.engine.fold.fold_states` does."""
        table = self(t, Z, k)
        exchanged = np.zeros(len(t)) if supplied < 0 else Z[:, supplied] - Z[:, supplied + 1]
        if begins:
            first[:], last[0] = table[0], table[0, 0] - exchanged[0]
        fold(table, exchanged, first, last, *largest)


def _tables(group: GroupColumns, shared: int) -> Tables:
    places, own, placed = _lanes(group.places), _lanes(group.group.parameters[:, shared:]), _lanes(group.placed)
    sums, largest = np.array(group.sums, dtype=np.int64), np.array(group.largest, dtype=np.int64)
    return Tables(
        *(group.group.count, places.shape[1]),
        *(len(places), places),
        *(len(own), own),
        *(sums.size, sums),
        *(largest.size, largest),
        *(len(placed), placed),
    )


def _parts(products: Products) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Products of two entries, then single entries."""
    two = products.second >= 0
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for chosen, second in ((two, products.second[two]), (~two, np.zeros(0))):
        if chosen.any():
            first, values = _filled(products.first[chosen]), _filled(products.values[chosen])
            found.append((first.astype(np.int32), _filled(second).astype(np.int32), values))
    return found


def _filled(array: np.ndarray) -> np.ndarray:
    """Zeros behind it, so that there are whole blocks."""
    return np.concatenate([array, np.zeros(-len(array) % WIDTH, dtype=array.dtype)])


def _lanes(table: np.ndarray) -> np.ndarray:
    """Entry by entry instead of element by element; the last block is filled up with its last element."""
    blocks = -(-len(table) // WIDTH)
    filled = np.minimum(np.arange(blocks * WIDTH), len(table) - 1)
    return np.ascontiguousarray(table[filled].T, dtype=np.int32)


def _aligned(rows: int) -> np.ndarray:
    """Zeros for rows of one number per lane, where vectors may be loaded at once."""
    raw = np.zeros(rows * WIDTH + 8)
    first = (-raw.ctypes.data // 8) % 8
    return raw[first : first + rows * WIDTH].reshape(rows, WIDTH)


@lowered
def _run_over(
    kernel: int,
    tables: Tables,
    rows: int,
    width: int,
    t: Doubles,
    Z: Doubles,
    k: Doubles,
    shared: int,
    x: Doubles,
    c: Doubles,
    y: Doubles,
    work: Doubles,
    columns: int,
    high: Doubles,
    low: Doubles,
) -> None:
    """Add what all elements of a type say about every row of Z; what is not a number stays so."""
    sums, largest, placed = tables.sum_count, tables.largest_count, tables.placed_count
    total, rest, most = work, work + 8 * sums, work + 16 * sums
    outputs, filled = sums + largest + placed, tables.filled
    for s in range(rows):
        z, above, below = Z + s * width, high + s * columns, low + s * columns
        for lane in range(8):
            c[lane] = t[s]
        for i in range(8 * (2 * sums + largest)):
            work[i] = 0.0
        for first in range(0, tables.elements, 8):
            for i in range(tables.place_count):
                places = tables.places + (i * filled + first)
                for lane in range(8):
                    x[8 * i + lane] = z[places[lane]]
            for i in range(tables.own_count):
                own = tables.own + (i * filled + first)
                for lane in range(8):
                    c[8 * (1 + shared + i) + lane] = k[own[lane]]
            call(kernel, x, x, c, y, y)
            for lane in range(tables.elements - first, 8):  # filled up with an element that has been counted
                for j in range(outputs):
                    y[8 * j + lane] = 0.0
            for i in range(8 * sums):
                _add_to(total, rest, i, y[i])
            for i in range(8 * largest):
                value = y[8 * sums + i]
                if not value <= most[i] and most[i] == most[i]:
                    most[i] = value
            for j in range(placed):
                target, value_of = tables.placed + (j * filled + first), y + 8 * (sums + largest + j)
                for lane in range(8):
                    above[target[lane]] += value_of[lane]
        for j in range(sums):
            for lane in range(8):
                _add(above, below, tables.sums[j], total[8 * j + lane])
                below[tables.sums[j]] += rest[8 * j + lane]
        for j in range(largest):
            column = tables.largest[j]
            for lane in range(8):
                value = most[8 * j + lane]
                if not value <= above[column] and above[column] == above[column]:
                    above[column] = value


@lowered
def _multiply(
    Z: Doubles,
    rows: int,
    width: int,
    first: Indices,
    second: Indices,
    values: Doubles,
    size: int,
    paired: bool,
    absolute: bool,
    column: int,
    columns: int,
    work: Doubles,
    high: Doubles,
    low: Doubles,
) -> None:
    """Add products of entries of every row of Z to a column; if they are not `paired`, the entries themselves."""
    total, rest = work, work + 8  # eight sums side by side, as one would wait for itself
    for s in range(rows):
        z = Z + s * width
        for i in range(16):
            work[i] = 0.0
        for block in range(0, size, 8):
            for lane in range(8):
                i = block + lane
                b = values[i] * z[first[i]]
                if paired:
                    b *= z[second[i]]
                _add_to(total, rest, lane, abs(b) if absolute else b)
        above, below = high + s * columns, low + s * columns
        for lane in range(8):
            _add(above, below, column, total[lane])
            below[column] += rest[lane]


@lowered
def _add_to(total: Doubles, rest: Doubles, i: int, b: float) -> None:
    """Add a number to a sum, and what rounding takes away to another."""
    a = total[i]
    new = a + b
    part = new - a
    rest[i] += (a - (new - part)) + (b - part)
    total[i] = new


@lowered
def _add(high: Doubles, low: Doubles, column: int, b: float) -> None:
    """Add a number and keep what rounding takes away; infinities and NaN leave nothing to keep."""
    a = high[column]
    new = a + b
    part = new - a
    lost = (a - (new - part)) + (b - part)
    high[column] = new
    if lost == lost:
        low[column] += lost


together(_run_over, _multiply)


def prepare() -> None:
    """See to it that there is code for all tables: it is compiled once per machine."""
    cast(Any, _run_over).compile()
