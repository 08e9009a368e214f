"""Largest deviations over the rows of a table, compiled: one pass, and what is not a number stays so."""

from __future__ import annotations

import numpy as np

from livens.engine.jit import jit


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
        energy = table[s, 0] - exchanged[s]
        found[0], found[1] = abs(energy - first[0]), abs(energy - last[0])
        last[0] = energy
        for i in range(3):
            found[2 + i] = abs(table[s, 1 + i])
        if found[0] <= 0.5 * found[2] and trusted[0] < found[2] < np.inf:
            trusted[0] = found[2]
        column = 4
        for i in range(sizes.size):
            moved, size = 0.0, 0.0
            for j in range(column, column + sizes[i]):
                moved += (table[s, j] - first[j]) ** 2
                size += table[s, j] ** 2
            found[5 + 2 * i], found[6 + 2 * i] = np.sqrt(moved), np.sqrt(size)
            column += sizes[i]
        for i in range(largest.size):
            if not found[i] <= largest[i] and largest[i] == largest[i]:
                largest[i] = found[i]
