"""A short run in one call of native code: its steps, what is watched in every state, and the rows that are kept."""

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
    """What a short run keeps: every step whose number `every` divides, and of its states the first `width` entries."""

    h: float
    origin: float
    steps: int
    every: int
    width: int
    slow: int


@dataclass(frozen=True, eq=False)
class Columns(Record):
    """What is watched: the kernel of a `livens.engine.table.Table`, and what `livens.engine.fold` asks for."""

    kernel: int
    width: int
    supplied: int
    sizes: Integers
    momenta: int

    @property
    def numbers(self) -> int:
        """Room for the largest deviations, last energy, trusted magnitude, first row, and the row at hand."""
        return self.largest + 2 + 2 * self.width

    @property
    def largest(self) -> int:
        """How many largest deviations there are, see `livens.engine.fold.fold`."""
        return 5 + 2 * self.momenta


def short_run(kernels: Kernels, w: Workspace, rows: Rows, columns: Columns, seen: np.ndarray, kept: np.ndarray) -> int:
    """Take all steps; how it ended, as `livens.engine.loop.advance` says it.

    `seen` are zeros and become what `Columns.numbers` says. `kept` becomes times, step sizes, Newton corrections (as
    whole numbers) and rows of states, one after the other. How many corrections there were is told in the workspace.
    """
    return _short_run(kernels, w, rows, columns, seen, kept)


@lowered
def _short_run(kernels: Kernels, w: Workspace, rows: Rows, columns: Columns, seen: Doubles, kept: Doubles) -> int:
    steps, every, width, nz = rows.steps, rows.every, rows.width, w.entries
    status = advance_equally(kernels, w, rows.h, rows.origin, 0, -1, 0.0, 0, steps, rows.slow)
    if status != DONE:
        return status
    states, worst = w.Z + nz, 0
    for i in range(steps * nz):  # as whole numbers, what is not finite is larger than all others
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
