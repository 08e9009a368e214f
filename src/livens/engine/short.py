"""Whole fixed-step run in one native call: steps, monitor of all states, and output rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.fold import take_states
from livens.engine.loop import advance_equally
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import bits, number
from livens.engine.newton import CORRECTIONS, DONE, FAILED, Kernels, Workspace


@dataclass(frozen=True, eq=False)
class Rows(Record):
    """Output grid: every step whose number `stride` divides; of each state the first `width` entries."""

    h: float
    origin: float
    steps: int
    every: int
    width: int
    slow: int


@dataclass(frozen=True, eq=False)
class Columns(Record):
    """Arrays of the monitor: kernel of an `ObservableKernel` and arguments of `accumulate_states_native`."""

    kernel: int
    width: int
    supplied: int
    sizes: Integers
    momenta: int

    @property
    def numbers(self) -> int:
        """Size of the monitor: maxima, last energy, reference energy, initial row, and current row."""
        return self.largest + 2 + 2 * self.width

    @property
    def largest(self) -> int:
        """Number of maxima, see `livens.engine.observables.drift_monitor`."""
        return 5 + 2 * self.momenta


def short_run(kernels: Kernels, w: Workspace, rows: Rows, columns: Columns, seen: np.ndarray, kept: np.ndarray) -> int:
    """Integrate all steps; return a status code as `livens.engine.newton.time_loop.advance` does.

    `monitor` contains zeros and receives `MonitorArrays.n_values` numbers. `output` receives times, step sizes, Newton
    iterations (as bit patterns of int64) and rows of states, in this order. The total number of Newton iterations is
    returned in `Workspace.counters`.
    """
    return _short_run(kernels, w, rows, columns, seen, kept)


@lowered
def _short_run(kernels: Kernels, w: Workspace, rows: Rows, columns: Columns, seen: Doubles, kept: Doubles) -> int:
    steps, every, width, nz = rows.steps, rows.every, rows.width, w.entries
    status = advance_equally(kernels, w, rows.h, rows.origin, 0, -1, 0.0, 0, steps, rows.slow)
    if status != DONE:
        return status
    states, worst = w.Z + nz, 0
    for i in range(steps * nz):  # bit patterns of non-negative doubles order like int64; inf and NaN sort last
        worst = max(worst, bits(abs(states[i])))
    if not number(worst) < np.inf:
        return FAILED
    for s in range(steps + 1):
        w.t[s] = rows.origin + s * rows.h
    largest = 5 + 2 * columns.momenta
    first = seen + (largest + 2)
    take_states(
        columns.kernel,
        steps + 1,
        nz,
        w.t,
        w.Z,
        w.c,
        columns.supplied,
        True,
        columns.width,
        first + columns.width,
        first,
        seen + largest,
        seen,
        columns.sizes,
        columns.momenta,
        seen + (largest + 1),
    )
    count = steps // every + 1
    sizes, corrections, table = kept + count, kept + 2 * count, kept + 3 * count
    for i in range(count):
        s = i * every
        kept[i] = w.t[s]
        if s:
            sizes[i], corrections[i] = rows.h, number(w.iterations[s - 1])
        else:
            sizes[i], corrections[i] = 0.0, 0.0
        row, z = table + i * width, w.Z + s * nz
        for j in range(width):
            row[j] = z[j]
    total = 0
    for s in range(steps):
        total += w.iterations[s]
    w.told[CORRECTIONS] = total
    return DONE
