"""Drift monitor: running maxima over the rows of a trajectory, compiled. NaN propagates.

The names of the columns and maxima below are shared with the monitor of ensembles, whose kernel works on SIMD lanes.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import call_kernel, sqrt
from livens.engine.lowering.types import F64Array, I64Array

#: Columns of a monitored row: energy, magnitude of the energy, constraint residuals on position and velocity level, and
#: the first component of the first momentum.
ENERGY, MAGNITUDE, CONSTRAINT, HIDDEN_CONSTRAINT, MOMENTA = range(5)
#: Indices of the maxima: drift and increment of the energy, magnitude (followed by both constraint residuals), and the
#: first momentum; every momentum has a drift and a norm.
MAX_DRIFT, MAX_INCREMENT, MAX_MAGNITUDE, MAX_MOMENTA = 0, 1, 2, 5


def maxima_count(n_momenta: int) -> int:
    """Return the number of maxima of a monitor."""
    return MAX_MOMENTA + 2 * n_momenta


@lowered
def accumulate_row(
    row: F64Array,
    net_work: float,
    initial_row: F64Array,
    last_energy: F64Array,
    maxima: F64Array,
    momentum_sizes: I64Array,
    n_momenta: int,
    reference_energy: F64Array,
) -> None:
    """Update the monitor with one row; conditions are selections, so that the function is valid in lanes."""
    energy = row[ENERGY] - net_work
    drift, magnitude = abs(energy - initial_row[ENERGY]), abs(row[MAGNITUDE])
    _nanmax_into(maxima, MAX_DRIFT, drift)
    _nanmax_into(maxima, MAX_INCREMENT, abs(energy - last_energy[0]))
    last_energy[0] = energy
    for i in range(3):
        _nanmax_into(maxima, MAX_MAGNITUDE + i, abs(row[MAGNITUDE + i]))
    is_trusted = 1.0 if drift <= 0.5 * magnitude else 0.0
    is_trusted = is_trusted if magnitude < np.inf else 0.0
    is_trusted = is_trusted if reference_energy[0] < magnitude else 0.0
    reference_energy[0] = magnitude if is_trusted > 0.0 else reference_energy[0]
    column = MOMENTA
    for i in range(n_momenta):
        change2, norm2 = 0.0, 0.0
        for j in range(column, column + momentum_sizes[i]):
            change2 += (row[j] - initial_row[j]) ** 2
            norm2 += row[j] ** 2
        _nanmax_into(maxima, MAX_MOMENTA + 2 * i, sqrt(change2))
        _nanmax_into(maxima, MAX_MOMENTA + 1 + 2 * i, sqrt(norm2))
        column += momentum_sizes[i]


@lowered
def _nanmax_into(maxima: F64Array, i: int, value: float) -> None:
    larger = maxima[i] if value <= maxima[i] else value
    maxima[i] = larger if maxima[i] == maxima[i] else maxima[i]


@lowered
def _accumulate_rows(
    table: F64Array,
    n_rows: int,
    columns: int,
    net_work: F64Array,
    initial_row: F64Array,
    last_energy: F64Array,
    maxima: F64Array,
    momentum_sizes: I64Array,
    n_momenta: int,
    reference_energy: F64Array,
) -> None:
    for s in range(n_rows):
        accumulate_row(
            table + s * columns,
            net_work[s],
            initial_row,
            last_energy,
            maxima,
            momentum_sizes,
            n_momenta,
            reference_energy,
        )


def accumulate_rows(
    table: np.ndarray,
    net_work: np.ndarray,
    initial_row: np.ndarray,
    last_energy: np.ndarray,
    maxima: np.ndarray,
    momentum_sizes: np.ndarray,
    reference_energy: np.ndarray,
) -> None:
    """Update the monitor with rows ``(energy, magnitude, |g|, |G v|, momenta...)``.

    `net_work` is the supplied minus the dissipated energy. `initial_row` is the first row of the run,
    ``last_energy[0]`` the energy of the last row. `maxima` are the largest drift and increment of the energy,
    magnitude, |g|, |G v|, then drift and norm of each momentum, which has `momentum_sizes[i]` columns.
    ``reference_energy[0]`` is the largest magnitude while the drift is less than half of it; energy growth by
    numerical error does not enter.
    """
    n_rows, columns = table.shape
    _accumulate_rows(
        table,
        n_rows,
        columns,
        net_work,
        initial_row,
        last_energy,
        maxima,
        momentum_sizes,
        momentum_sizes.size,
        reference_energy,
    )


@lowered
def accumulate_states_native(
    kernel: int,
    n_rows: int,
    columns: int,
    t: F64Array,
    Z: F64Array,
    c: F64Array,
    supplied_index: int,
    is_start: bool,
    width: int,
    row: F64Array,
    initial_row: F64Array,
    last_energy: F64Array,
    maxima: F64Array,
    momentum_sizes: I64Array,
    n_momenta: int,
    reference_energy: F64Array,
) -> None:
    """Update the monitor with the rows of a kernel for states Z at times t, see `accumulate_states`."""
    for s in range(n_rows):
        c[1] = t[s]
        z = Z + s * columns
        call_kernel(kernel, z, z, c, row, row)
        net_work = z[supplied_index] - z[supplied_index + 1] if supplied_index >= 0 else 0.0
        if is_start and s == 0:
            for i in range(width):
                initial_row[i] = row[i]
            last_energy[0] = row[ENERGY] - net_work
        accumulate_row(row, net_work, initial_row, last_energy, maxima, momentum_sizes, n_momenta, reference_energy)


def accumulate_states(
    kernel: int,
    t: np.ndarray,
    Z: np.ndarray,
    c: np.ndarray,
    supplied_index: int,
    is_start: bool,
    initial_row: np.ndarray,
    last_energy: np.ndarray,
    maxima: np.ndarray,
    momentum_sizes: np.ndarray,
    reference_energy: np.ndarray,
) -> None:
    """Update the monitor with the rows of a kernel for states Z at times t.

    `supplied_index` is the index of the supplied energy in the state, followed by the dissipated energy; -1 if there is
    none. If `is_start`, the first state gives the initial row.
    """
    (n_rows, columns), width = Z.shape, initial_row.size
    row, n_momenta = np.empty(width), momentum_sizes.size
    accumulate_states_native(
        kernel,
        n_rows,
        columns,
        t,
        Z,
        c,
        supplied_index,
        is_start,
        width,
        row,
        initial_row,
        last_energy,
        maxima,
        momentum_sizes,
        n_momenta,
        reference_energy,
    )


def precompile() -> None:
    """Compile the native code, once per machine."""
    cast(Any, accumulate_states_native).compile()


compile_unit(accumulate_states_native, _accumulate_rows)
