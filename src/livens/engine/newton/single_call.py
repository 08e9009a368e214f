"""Whole fixed-step run in one native call: steps, monitor of all states, and output rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import bits_to_float, float_to_bits
from livens.engine.lowering.types import F64Array, I64Array, Struct
from livens.engine.newton.convergence import CONVERGED, DIVERGED
from livens.engine.newton.iteration import N_ITERATIONS, StepKernels, Workspace
from livens.engine.newton.time_loop import advance_fixed
from livens.engine.observables.drift_monitor import MAX_MOMENTA, accumulate_states_native, maxima_count


@dataclass(frozen=True, eq=False)
class OutputGrid(Struct):
    """Output grid: every step whose number `stride` divides; of each state the first `width` entries."""

    h: float
    t_origin: float
    n_steps: int
    stride: int
    width: int
    repivot_after: int


@dataclass(frozen=True, eq=False)
class MonitorArrays(Struct):
    """Arrays of the monitor: kernel of an `ObservableKernel` and arguments of `accumulate_states_native`."""

    kernel: int
    width: int
    supplied_index: int
    momentum_sizes: I64Array
    n_momenta: int

    @property
    def n_values(self) -> int:
        """Size of the monitor: maxima, last energy, reference energy, initial row, and current row."""
        return self.n_maxima + 2 + 2 * self.width

    @property
    def n_maxima(self) -> int:
        """Number of maxima, see `livens.engine.observables.drift_monitor`."""
        return maxima_count(self.n_momenta)


def integrate_fixed(
    kernels: StepKernels,
    w: Workspace,
    grid: OutputGrid,
    monitor_arrays: MonitorArrays,
    monitor: np.ndarray,
    output: np.ndarray,
) -> int:
    """Integrate all steps; return a status code as `livens.engine.newton.time_loop.advance` does.

    `monitor` contains zeros and receives `MonitorArrays.n_values` numbers. `output` receives times, step sizes, Newton
    iterations (as bit patterns of int64) and rows of states, in this order. The total number of Newton iterations is
    returned in `Workspace.counters`.
    """
    return _integrate_fixed(kernels, w, grid, monitor_arrays, monitor, output)


@lowered
def _integrate_fixed(
    kernels: StepKernels,
    w: Workspace,
    grid: OutputGrid,
    monitor_arrays: MonitorArrays,
    monitor: F64Array,
    output: F64Array,
) -> int:
    n_steps, stride, width, nz = grid.n_steps, grid.stride, grid.width, w.n_state
    status = advance_fixed(kernels, w, grid.h, grid.t_origin, 0, -1, 0.0, 0, n_steps, grid.repivot_after)
    if status != CONVERGED:
        return status
    states, largest_bits = w.Z + nz, 0
    for i in range(n_steps * nz):  # bit patterns of non-negative doubles order like int64; inf and NaN sort last
        largest_bits = max(largest_bits, float_to_bits(abs(states[i])))
    if not bits_to_float(largest_bits) < np.inf:
        return DIVERGED
    for s in range(n_steps + 1):
        w.t[s] = grid.t_origin + s * grid.h
    n_maxima = MAX_MOMENTA + 2 * monitor_arrays.n_momenta
    initial_row = monitor + (n_maxima + 2)
    accumulate_states_native(
        monitor_arrays.kernel,
        n_steps + 1,
        nz,
        w.t,
        w.Z,
        w.c,
        monitor_arrays.supplied_index,
        True,
        monitor_arrays.width,
        initial_row + monitor_arrays.width,
        initial_row,
        monitor + n_maxima,
        monitor,
        monitor_arrays.momentum_sizes,
        monitor_arrays.n_momenta,
        monitor + (n_maxima + 1),
    )
    n_rows = n_steps // stride + 1
    step_sizes, newton_iterations, table = output + n_rows, output + 2 * n_rows, output + 3 * n_rows
    for i in range(n_rows):
        s = i * stride
        output[i] = w.t[s]
        if s:
            step_sizes[i], newton_iterations[i] = grid.h, bits_to_float(w.newton_iterations[s - 1])
        else:
            step_sizes[i], newton_iterations[i] = 0.0, 0.0
        row, z = table + i * width, w.Z + s * nz
        for j in range(width):
            row[j] = z[j]
    total = 0
    for s in range(n_steps):
        total += w.newton_iterations[s]
    w.counters[N_ITERATIONS] = total
    return CONVERGED
