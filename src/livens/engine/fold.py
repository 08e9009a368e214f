"""Largest deviations over the rows of a table, compiled: one pass, and what is not a number stays so."""

from __future__ import annotations

import numpy as np

from livens.engine.jit import jit
from livens.engine.newton import call


@jit
def _take(
    row: np.ndarray,
    exchanged: float,
    first: np.ndarray,
    last: np.ndarray,
    largest: np.ndarray,
    sizes: np.ndarray,
    trusted: np.ndarray,
    found: np.ndarray,
) -> None:
    """Take one row into account; `found` is room for what it says."""
    energy = row[0] - exchanged
    found[0], found[1] = abs(energy - first[0]), abs(energy - last[0])
    last[0] = energy
    for i in range(3):
        found[2 + i] = abs(row[1 + i])
    if found[0] <= 0.5 * found[2] and trusted[0] < found[2] < np.inf:
        trusted[0] = found[2]
    column = 4
    for i in range(sizes.size):
        moved, size = 0.0, 0.0
        for j in range(column, column + sizes[i]):
            moved += (row[j] - first[j]) ** 2
            size += row[j] ** 2
        found[5 + 2 * i], found[6 + 2 * i] = np.sqrt(moved), np.sqrt(size)
        column += sizes[i]
    for i in range(largest.size):
        if not found[i] <= largest[i] and largest[i] == largest[i]:
            largest[i] = found[i]


@jit
def fold(
    table: np.ndarray,
    exchanged: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    largest: np.ndarray,
    sizes: np.ndarray,
    trusted: np.ndarray,
) -> None:
    """Take rows ``(energy, magnitude, |g|, |G v|, momenta...)`` into account.

    `exchanged` is the energy that came in less what went out. `first` is the first row of the run, ``last[0]`` the
    energy of the last row so far. `largest` are the largest drift and increment of the energy, magnitude, |g|, |G v|,
    then drift and size of each momentum, which have `sizes` columns each. ``trusted[0]`` is the largest magnitude while
    the drift is less than half of it: that of a motion which does not just grow by its own error.
    """
    found = np.empty_like(largest)
    for s in range(table.shape[0]):
        _take(table[s], exchanged[s], first, last, largest, sizes, trusted, found)


@jit
def fold_states(
    kernel: int,
    t: np.ndarray,
    Z: np.ndarray,
    c: np.ndarray,
    supplied: int,
    begins: bool,
    first: np.ndarray,
    last: np.ndarray,
    largest: np.ndarray,
    sizes: np.ndarray,
    trusted: np.ndarray,
) -> None:
    """The same with rows that a kernel finds for states Z at times t.

    `supplied` is where the state holds the energy that was supplied, in front of what was dissipated; -1 if nowhere.
    If the run `begins` with these states, the first of them makes the first row.
    """
    row, found = np.empty_like(first), np.empty_like(largest)
    for s in range(Z.shape[0]):
        c[1] = t[s]
        z = Z.ctypes.data + s * Z.shape[1] * 8
        call(kernel, z, z, c.ctypes.data, row.ctypes.data, row.ctypes.data)
        exchanged = Z[s, supplied] - Z[s, supplied + 1] if supplied >= 0 else 0.0
        if begins and s == 0:
            first[:] = row
            last[0] = row[0] - exchanged
        _take(row, exchanged, first, last, largest, sizes, trusted, found)
