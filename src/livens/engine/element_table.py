"""Observables summed over elements at every row of a run: one small kernel per element type, eight elements at a time.

Sums are compensated (TwoSum), so that sums over ten thousand elements are as accurate as sums over ten.
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
    """Index arrays of the elements of one type, in blocks of eight: (n_entries, n_padded), one column per element."""

    elements: int
    filled: int  # number of elements rounded up to whole blocks
    place_count: int
    places: Indices  # indices of state entries
    own_count: int
    own: Indices  # indices of element parameters
    sum_count: int
    sums: Integers  # output columns
    largest_count: int
    largest: Integers
    placed_count: int
    placed: Indices

    @property
    def outputs(self) -> int:
        """Number of kernel outputs per element."""
        return self.sum_count + self.largest_count + self.placed_count


class ElementTable:
    """Observables summed over elements, compiled to native code over engine states.

    Parameters
    ----------
    columns : ElementColumns
        Element groups, output columns and products of state entries.
    """

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
        """Return one row for each state.

        Parameters
        ----------
        t : ndarray
            Times, (n_rows,).
        Z : ndarray
            States that start with q, v and p, (n_rows, n_state).
        k : ndarray
            Parameter vector.
        X : ndarray, optional
            Lagrange multipliers, (n_rows, n_multipliers), if columns depend on them.

        Returns
        -------
        ndarray
            Observables, (n_rows, width).
        """
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
        """Update the drift monitor with the rows of these states.

        Parameters
        ----------
        t : ndarray
            Times, (n_rows,).
        Z : ndarray
            States, (n_rows, n_state).
        k : ndarray
            Parameter vector.
        supplied_index : int
            Index of the supplied energy in the state, followed by the dissipated energy; -1 if there is none.
        is_start : bool
            Whether the first state is the initial state of the run.
        initial_row : ndarray
            Initial monitor row; overwritten if `is_start`.
        last_energy : ndarray
            Energy of the last row, (1,); updated.
        *monitor : ndarray
            Further arguments of `livens.engine.observables.drift_monitor.accumulate_rows`.
        """
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
    """Split products into products of two entries and single entries."""
    two = products.second >= 0
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for chosen, second in ((two, products.second[two]), (~two, np.zeros(0))):
        if chosen.any():
            first, values = _filled(products.first[chosen]), _filled(products.values[chosen])
            found.append((first.astype(np.int32), _filled(second).astype(np.int32), values))
    return found


def _filled(array: np.ndarray) -> np.ndarray:
    """Pad an array with zeros to whole blocks."""
    return np.concatenate([array, np.zeros(-len(array) % WIDTH, dtype=array.dtype)])


def _lanes(table: np.ndarray) -> np.ndarray:
    """Transpose a table to (n_entries, n_padded); the last block is padded with the last element."""
    blocks = -(-len(table) // WIDTH)
    filled = np.minimum(np.arange(blocks * WIDTH), len(table) - 1)
    return np.ascontiguousarray(table[filled].T, dtype=np.int32)


def _aligned(rows: int) -> np.ndarray:
    """Return aligned zeros of the shape (rows, WIDTH)."""
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
    """Accumulate the outputs of all elements of a type for every row of Z. NaN propagates."""
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
            for lane in range(tables.elements - first, 8):  # padding: a repeated element
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
    """Accumulate products of state entries of every row of Z in a column; if not `paired`, single entries."""
    total, rest = work, work + 8  # eight independent sums: one would be limited by the latency of additions
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
    """Add a number to a compensated sum (TwoSum)."""
    a = total[i]
    new = a + b
    part = new - a
    rest[i] += (a - (new - part)) + (b - part)
    total[i] = new


@lowered
def _add(high: Doubles, low: Doubles, column: int, b: float) -> None:
    """Add a number to a compensated sum (TwoSum); infinities and NaN leave the compensation unchanged."""
    a = high[column]
    new = a + b
    part = new - a
    lost = (a - (new - part)) + (b - part)
    high[column] = new
    if lost == lost:
        low[column] += lost


together(_run_over, _multiply)


def prepare() -> None:
    """Compile the native code, once per machine."""
    cast(Any, _run_over).compile()
