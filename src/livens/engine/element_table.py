"""Sums over the elements of a system, at every row of a run: one small kernel per type, eight elements at a time.

Sums carry their rounding errors along, so that those over ten thousand elements are as good as those over ten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livens.engine.fold import fold
from livens.engine.jit import jit
from livens.engine.kernels import simple_kernel
from livens.engine.native import Code
from livens.engine.newton import call
from livens.models.columns import ElementColumns, GroupColumns, Products

WIDTH = 8


class Tables(NamedTuple):
    """Where the elements of a type find what, in blocks of eight: entry by entry, one number an element."""

    places: np.ndarray  # entries of the state
    own: np.ndarray  # parameters of their own
    sums: np.ndarray  # columns
    largest: np.ndarray
    placed: np.ndarray
    elements: int


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
        high, low = np.zeros((len(t), self.width)), np.zeros((len(t), self.width))
        for code, tables in zip(self._code, self._tables, strict=True):
            outputs = tables.sums.size + tables.largest.size + tables.placed.shape[0]
            x, y = _aligned(max(1, tables.places.shape[0])), _aligned(outputs)
            c = _aligned(1 + self._shared + tables.own.shape[0])
            c[1 : 1 + self._shared] = k[: self._shared, None]
            _run_over(
                code.address, tables, t, Z, np.ascontiguousarray(k, dtype=float), self._shared, x, c, y, high, low
            )
        for column, absolute, first, second, values in self._products:
            _multiply(Z, first, second, values, absolute, column, high, low)
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
    count = group.group.count
    return Tables(
        _lanes(group.places),
        _lanes(group.group.parameters[:, shared:]),
        np.array(group.sums, dtype=np.int64),
        np.array(group.largest, dtype=np.int64),
        _lanes(group.placed),
        count,
    )


def _parts(products: Products) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Products of two entries, then single entries."""
    two = products.second >= 0
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for chosen, second in ((two, products.second[two]), (~two, np.zeros(0))):
        if chosen.any():
            first, values = _filled(products.first[chosen]), _filled(products.values[chosen])
            found.append((first.astype(np.uint32), _filled(second).astype(np.uint32), values))
    return found


def _filled(array: np.ndarray) -> np.ndarray:
    """Zeros behind it, so that there are whole blocks."""
    return np.concatenate([array, np.zeros(-len(array) % WIDTH, dtype=array.dtype)])


def _lanes(table: np.ndarray) -> np.ndarray:
    """Entry by entry instead of element by element; the last block is filled up with its last element."""
    blocks = -(-len(table) // WIDTH)
    filled = np.minimum(np.arange(blocks * WIDTH), len(table) - 1)
    return np.ascontiguousarray(table[filled].T, dtype=np.uint32)


def _aligned(rows: int) -> np.ndarray:
    """Zeros for rows of one number per lane, where vectors may be loaded at once."""
    raw = np.zeros(rows * WIDTH + 8)
    first = (-raw.ctypes.data // 8) % 8
    return raw[first : first + rows * WIDTH].reshape(rows, WIDTH)


@jit
def _run_over(
    kernel: int,
    tables: Tables,
    t: np.ndarray,
    Z: np.ndarray,
    k: np.ndarray,
    shared: int,
    x: np.ndarray,
    c: np.ndarray,
    y: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
) -> None:
    """Add what all elements of a type say about every row of Z; what is not a number stays so."""
    sums, largest = tables.sums.size, tables.largest.size
    total, rest = np.zeros((sums, 8)), np.zeros((sums, 8))
    most = np.zeros((largest, 8))
    for s in range(Z.shape[0]):
        z = Z[s]
        c[0, :] = t[s]
        total[:], rest[:], most[:] = 0.0, 0.0, 0.0
        for first in range(0, tables.elements, 8):
            for i in range(tables.places.shape[0]):
                for lane in range(8):
                    x[i, lane] = z[tables.places[i, first + lane]]
            for i in range(tables.own.shape[0]):
                for lane in range(8):
                    c[1 + shared + i, lane] = k[tables.own[i, first + lane]]
            call(kernel, x.ctypes.data, x.ctypes.data, c.ctypes.data, y.ctypes.data, y.ctypes.data)
            for lane in range(tables.elements - first, 8):  # filled up with an element that has been counted
                for j in range(y.shape[0]):
                    y[j, lane] = 0.0
            for j in range(sums):
                for lane in range(8):
                    a, b = total[j, lane], y[j, lane]
                    new = a + b
                    part = new - a
                    rest[j, lane] += (a - (new - part)) + (b - part)
                    total[j, lane] = new
            for j in range(largest):
                for lane in range(8):
                    value = y[sums + j, lane]
                    if not value <= most[j, lane] and most[j, lane] == most[j, lane]:
                        most[j, lane] = value
            for j in range(tables.placed.shape[0]):
                for lane in range(8):
                    high[s, tables.placed[j, first + lane]] += y[sums + largest + j, lane]
        for j in range(sums):
            for lane in range(8):
                _add(high, low, s, tables.sums[j], total[j, lane])
                low[s, tables.sums[j]] += rest[j, lane]
        for j in range(largest):
            column = tables.largest[j]
            for lane in range(8):
                if not most[j, lane] <= high[s, column] and high[s, column] == high[s, column]:
                    high[s, column] = most[j, lane]


@jit
def _multiply(
    Z: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    values: np.ndarray,
    absolute: bool,
    column: int,
    high: np.ndarray,
    low: np.ndarray,
) -> None:
    """Add products of entries of every row of Z to a column; without `second`, the entries themselves."""
    total, rest = np.zeros(8), np.zeros(8)  # eight sums side by side, as one would wait for itself
    for s in range(Z.shape[0]):
        z = Z[s]
        total[:], rest[:] = 0.0, 0.0
        for block in range(0, first.size, 8):
            for lane in range(8):
                i = block + lane
                b = values[i] * z[first[i]]
                if second.size:
                    b *= z[second[i]]
                b = abs(b) if absolute else b
                a = total[lane]
                new = a + b
                part = new - a
                rest[lane] += (a - (new - part)) + (b - part)
                total[lane] = new
        for lane in range(8):
            _add(high, low, s, column, total[lane])
            low[s, column] += rest[lane]


@jit
def _add(high: np.ndarray, low: np.ndarray, s: int, column: int, b: float) -> None:
    """Add a number and keep what rounding takes away; infinities and NaN leave nothing to keep."""
    a = high[s, column]
    new = a + b
    part = new - a
    lost = (a - (new - part)) + (b - part)
    high[s, column] = new
    if lost == lost:
        low[s, column] += lost
