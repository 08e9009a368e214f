"""Drift monitor: running maxima over the rows of a trajectory, compiled. NaN propagates."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from livens.engine.lowering.function import lowered, together
from livens.engine.lowering.kinds import Doubles, Integers
from livens.engine.lowering.words import call, square_root


@lowered
def _take(
    row: Doubles,
    exchanged: float,
    first: Doubles,
    last: Doubles,
    largest: Doubles,
    sizes: Integers,
    momenta: int,
    trusted: Doubles,
) -> None:
    """Update the monitor with one row."""
    energy = row[0] - exchanged
    drift, magnitude = abs(energy - first[0]), abs(row[1])
    _keep(largest, 0, drift)
    _keep(largest, 1, abs(energy - last[0]))
    last[0] = energy
    for i in range(3):
        _keep(largest, 2 + i, abs(row[1 + i]))
    if drift <= 0.5 * magnitude and trusted[0] < magnitude < np.inf:
        trusted[0] = magnitude
    column = 4
    for i in range(momenta):
        moved, size = 0.0, 0.0
        for j in range(column, column + sizes[i]):
            moved += (row[j] - first[j]) ** 2
            size += row[j] ** 2
        _keep(largest, 5 + 2 * i, square_root(moved))
        _keep(largest, 6 + 2 * i, square_root(size))
        column += sizes[i]


@lowered
def _keep(largest: Doubles, i: int, found: float) -> None:
    if not found <= largest[i] and largest[i] == largest[i]:
        largest[i] = found


@lowered
def _fold_rows(
    table: Doubles,
    rows: int,
    columns: int,
    exchanged: Doubles,
    first: Doubles,
    last: Doubles,
    largest: Doubles,
    sizes: Integers,
    momenta: int,
    trusted: Doubles,
) -> None:
    for s in range(rows):
        _take(table + s * columns, exchanged[s], first, last, largest, sizes, momenta, trusted)


def fold(
    table: np.ndarray,
    exchanged: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    largest: np.ndarray,
    sizes: np.ndarray,
    trusted: np.ndarray,
) -> None:
    """Update the monitor with rows ``(energy, magnitude, |g|, |G v|, momenta...)``.

    `net_work` is the supplied minus the dissipated energy. `initial_row` is the first row of the run,
    ``last_energy[0]`` the energy of the last row. `maxima` are the largest drift and increment of the energy,
    magnitude, |g|, |G v|, then drift and norm of each momentum, which has `momentum_sizes[i]` columns.
    ``reference_energy[0]`` is the largest magnitude while the drift is less than half of it; energy growth by
    numerical error does not enter.
    """
    rows, columns = table.shape
    _fold_rows(table, rows, columns, exchanged, first, last, largest, sizes, sizes.size, trusted)


@lowered
def take_states(
    kernel: int,
    rows: int,
    columns: int,
    t: Doubles,
    Z: Doubles,
    c: Doubles,
    supplied: int,
    begins: bool,
    width: int,
    row: Doubles,
    first: Doubles,
    last: Doubles,
    largest: Doubles,
    sizes: Integers,
    momenta: int,
    trusted: Doubles,
) -> None:
    """Update the monitor with the rows of a kernel for states Z at times t, see `accumulate_states`."""
    for s in range(rows):
        c[1] = t[s]
        z = Z + s * columns
        call(kernel, z, z, c, row, row)
        exchanged = z[supplied] - z[supplied + 1] if supplied >= 0 else 0.0
        if begins and s == 0:
            for i in range(width):
                first[i] = row[i]
            last[0] = row[0] - exchanged
        _take(row, exchanged, first, last, largest, sizes, momenta, trusted)


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
    """Update the monitor with the rows of a kernel for states Z at times t.

    `supplied_index` is the index of the supplied energy in the state, followed by the dissipated energy; -1 if there is
    none. If `is_start`, the first state gives the initial row.
    """
    (rows, columns), width = Z.shape, first.size
    row, momenta = np.empty(width), sizes.size
    take_states(
        kernel, rows, columns, t, Z, c, supplied, begins, width, row, first, last, largest, sizes, momenta, trusted
    )


def prepare() -> None:
    """Compile the native code, once per machine."""
    cast(Any, take_states).compile()


together(take_states, _fold_rows)
