"""Compiled time loop of an ensemble in SIMD lanes, one trajectory per lane.

Entry i of a vector is a row of one number per lane; arrays are consecutive rows. Lanes are independent: the values of a
lane, or its failure, do not change a bit of another lane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I64Array, Struct
from livens.engine.newton.convergence import (
    CONVERGED,
    DIVERGED,
    MAX_NEWTON_ITERATIONS,
    MODERATE_GROWTH,
    SAFE_FRACTION,
    newton_decision,
    stagnates,
)
from livens.engine.newton.iteration import BOUND_REFRESH_INTERVAL, HISTORY

#: Newton iterations after which a lane with moderate pivot growth falls back to the scalar stepper with another pivot
#: order. A few more slowly converging iterations cost far less than a new pivot order.
MAX_ITERATIONS_BEFORE_FALLBACK = 10
#: Number of stagnating Newton iterations after which a lane falls back to the scalar stepper.
_MAX_STALLS = 2
#: Indices into `LaneWorkspace.counters`: phase of the group (0 regular steps, 1 final shorter step), steps completed
#: before the current chunk, size of the chunk, and number of changes of inputs so far; then the number of counters.
PHASE, N_STEPS_DONE, CHUNK_SIZE, N_CHANGES, N_COUNTERS = range(5)


@dataclass(frozen=True, eq=False)
class LaneKernels(Struct):
    """Addresses of the native functions of one step in SIMD lanes; 0 for functions that a scheme does not have."""

    first_correction: int
    masked_correction: int
    residual: int
    predict: int
    inv_roundoff: int
    initial_guess: int
    update_state: int
    monitor_init: int  # monitor initialisation
    monitor: int  # monitor update


@dataclass(frozen=True, eq=False)
class LaneWorkspace(Struct):
    """Workspace of a chunk of steps; the SIMD version of `livens.engine.newton.iteration.Workspace`."""

    width: int
    n_state: int  # size of a state
    n_unknowns: int
    chunk_size: int  # number of steps
    c: F64Array
    Z: F64Array
    X: F64Array
    work: F64Array
    work_rows: int
    newton_iterations: I64Array  # Newton iterations of each lane
    failed: I64Array  # lanes that require a scalar fallback
    failed_at: I64Array  # their failed step, or -1
    valid_until: I64Array  # last valid state of a lane in the chunk
    member_of_lane: I64Array  # member of each lane; -1 for unused lanes
    monitor: F64Array  # monitor, see `livens.engine.ensemble.monitor_kernel.MonitorOffsets`
    monitor_init: F64Array  # monitor before the first state
    monitor_rows: int
    counters: I64Array


@dataclass(frozen=True, eq=False)
class LaneInputs(Struct):
    """Inputs over time: entries of the parameter vector that change before some steps."""

    n_changes: int
    steps: I64Array  # numbers of these steps, increasing
    n_entries: int
    entries: I64Array  # entries of the parameter vector
    values: F64Array  # (member, change, entry)
    member_stride: int  # 0 if all members have the same inputs


@dataclass(frozen=True, eq=False)
class MemberArrays(Struct):
    """Initial states, parameters and inputs over time; the first axis is the member."""

    n_members: int
    z: F64Array
    n_parameters: int
    k: F64Array
    inputs: LaneInputs


@dataclass(frozen=True, eq=False)
class Histograms(Struct):
    """Histograms of reduced columns with equally spaced edges; the first and last count collect the outliers."""

    n_histograms: int  # number of histograms
    columns: I64Array  # rows of the monitor
    low: F64Array
    inv_bin_width: F64Array  # reciprocal bin width
    n_bins: I64Array
    n_counts: int  # number of counts per histogram
    counts: I64Array  # (member, histogram, bin)


@dataclass(frozen=True, eq=False)
class EnsembleOutput(Struct):
    """Output arrays of an ensemble; the first axis is the member."""

    n_columns: int
    columns: I64Array  # stored entries of the state
    n_rows: int
    states: F64Array
    newton_iterations: I64Array
    n_steps: I64Array
    monitor: F64Array
    histograms: Histograms


@dataclass(frozen=True, eq=False)
class TimeGridStruct(Struct):
    """Time grid and output rows, see `livens.engine.ensemble.lane_run.TimeGrid`."""

    h: float
    t0: float
    n_steps: int
    final_h: float  # size of a last, shorter step; 0 if there is none
    stride: int
    n_rows: int


# -- steps ------------------------------------------------------------------------------------------------------------
@lowered
def _guess_residual_norm(
    kernels: LaneKernels, w: LaneWorkspace, z: F64Array, x_guess: F64Array, norms: F64Array
) -> None:
    """Evaluate the scaled residual norms of the initial guess in all lanes. NaN propagates."""
    n, width, residual = w.n_unknowns, w.width, x_guess + w.n_unknowns * w.width
    call_kernel(kernels.residual, x_guess, z, w.c, residual, residual)
    for i in range(width):
        largest, total = 0.0, 0.0
        for j in range(n):
            a = abs(residual[j * width + i]) * w.work[j * width + i]
            total += a
            if a > largest:
                largest = a
        norms[i] = largest if total == total else total


@lowered
def _newton_masked(kernels: LaneKernels, w: LaneWorkspace, x: F64Array, z: F64Array, out: F64Array) -> None:
    """Iterate further in the lanes that one Newton iteration did not converge."""
    n, width, work, failed = w.n_unknowns, w.width, w.work, w.failed
    active, norm_before = work + n * width, work + (n + 1) * width
    norm, pivot_growth = work + (n + 2) * width, work + (n + 3) * width
    dx, scratch = work + (n + 4) * width, work + (2 * n + 5) * width
    norm_prev = work + (3 * n + 5) * width
    norm_prev2, n_stalls, x_guess = norm_prev + width, norm_prev + 2 * width, norm_prev + 3 * width
    for j in range(n * width):
        x_guess[j] = x[j] + dx[j]
    for i in range(width):
        norm_prev[i], norm_prev2[i], n_stalls[i] = np.inf, 0.0, 0.0
        active[i] = 0.0 if failed[i] or norm[i] <= 1.0 else 1.0
    for iteration in range(2, MAX_NEWTON_ITERATIONS + 1):
        any_active = False
        for i in range(width):
            any_active = any_active or active[i] != 0.0
        if not any_active:
            break
        call_kernel(kernels.masked_correction, x, z, w.c, work, out)
        bounds_refreshed = False
        if iteration == 2:  # as in `newton_solve`: the test for quadratic convergence needs the norm of the guess
            near_bound = False
            for i in range(width):
                near_bound = near_bound or (active[i] != 0.0 and SAFE_FRACTION < norm[i] <= 1.0)
            if near_bound:
                _guess_residual_norm(kernels, w, z, x_guess, norm_prev2)
        for i in range(width):
            if active[i] == 0.0:
                continue
            w.newton_iterations[i] += 1
            if iteration == 2:  # residual norm after the first iteration
                norm_prev[i] = norm_before[i]
            has_new_bounds = n_stalls[i] > 0.0
            if stagnates(norm[i], norm_prev[i]):
                n_stalls[i] += 1.0
            status = newton_decision(
                norm[i],
                norm_prev[i],
                norm_prev2[i],
                iteration,
                False,
                int(n_stalls[i]),
                _MAX_STALLS,
                0.0,
                MAX_NEWTON_ITERATIONS + 1,
            )
            if status == CONVERGED or (has_new_bounds and norm[i] <= 1.0):
                active[i] = 0.0
            elif status == DIVERGED:
                active[i], failed[i] = 0.0, 1
            elif stagnates(norm[i], norm_prev[i]):  # the next iteration uses updated round-off bounds
                if not bounds_refreshed:
                    call_kernel(kernels.inv_roundoff, x, z, w.c, dx, scratch)
                    bounds_refreshed = True
                for j in range(n):
                    work[j * width + i] = scratch[j * width + i]
            elif pivot_growth[i] > MODERATE_GROWTH and iteration >= MAX_ITERATIONS_BEFORE_FALLBACK:
                active[i], failed[i] = 0.0, 1
            norm_prev2[i], norm_prev[i] = norm_prev[i], norm[i]
    for i in range(width):
        if active[i] != 0.0:
            failed[i] = 1


@lowered
def advance(kernels: LaneKernels, w: LaneWorkspace, n_steps: int, step0: int, h: float, t_origin: float) -> None:
    """Take fixed steps; a lane that fails is flagged in `failed`, with the number of its step in `failed_at`."""
    n, width, c, work, failed = w.n_unknowns, w.width, w.c, w.work, w.failed
    scaled_residual, dx = work + (n + 2) * width, work + (n + 4) * width
    predictor_ok, scratch = work + (2 * n + 4) * width, work + (2 * n + 5) * width
    for i in range(width):
        c[i] = h
        w.newton_iterations[i] += n_steps if n > 0 else 0
    for s in range(n_steps):
        t = t_origin + (step0 + s) * h
        for i in range(width):
            c[width + i] = t
        z, out = w.Z + s * w.n_state * width, w.Z + (s + 1) * w.n_state * width
        if n == 0:
            call_kernel(kernels.update_state, z, z, c, work, out)
            continue
        x_history, x = w.X + s * n * width, w.X + (s + HISTORY) * n * width
        call_kernel(kernels.predict, x_history, z, c, work, predictor_ok)
        n_rejected_predictions = 0
        for i in range(width):
            n_rejected_predictions += predictor_ok[i] == 0.0
        if n_rejected_predictions > 0:
            # the initial guess may read the unknowns, and lanes with accepted predictions must keep theirs
            call_kernel(kernels.initial_guess, x, z, c, work, scratch)
            for j in range(n):
                for i in range(width):
                    if predictor_ok[i] == 0.0:
                        x[j * width + i] = scratch[j * width + i]
        if (step0 + s) % BOUND_REFRESH_INTERVAL == 0:
            call_kernel(kernels.inv_roundoff, x, z, c, dx, work)
        call_kernel(kernels.first_correction, x, z, c, work, out)
        n_unconverged = 0
        for i in range(width):
            n_unconverged += (not scaled_residual[i] <= 1.0) & (failed[i] == 0)
        if n_unconverged > 0:
            _newton_masked(kernels, w, x, z, out)
            for i in range(width):
                if failed[i] and w.failed_at[i] < 0:
                    w.failed_at[i] = s


# -- states -----------------------------------------------------------------------------------------------------------
@lowered
def _monitor_state(kernel: int, w: LaneWorkspace, s: int, t: float) -> None:
    """Update the monitor with state s of the chunk."""
    for i in range(w.width):
        w.c[w.width + i] = t
    z = w.Z + s * w.n_state * w.width
    call_kernel(kernel, z, z, w.c, w.monitor, z)


@lowered
def _update_histograms(histograms: Histograms, w: LaneWorkspace) -> None:
    """Update the histograms with the current state, in the lanes of the mask."""
    for j in range(w.width):
        if w.member_of_lane[j] < 0 or w.monitor[j] == 0.0:
            continue
        for i in range(histograms.n_histograms):
            value = w.monitor[histograms.columns[i] * w.width + j]
            position = (value - histograms.low[i]) * histograms.inv_bin_width[i]
            if position != position:  # NaN belongs to no bin
                continue
            last = histograms.n_bins[i] + 1
            k = 0 if not position >= 0.0 else last if position >= histograms.n_bins[i] else 1 + int(position)
            histograms.counts[(w.member_of_lane[j] * histograms.n_histograms + i) * histograms.n_counts + k] += 1


@lowered
def _store_row(w: LaneWorkspace, s: int, row: int, output: EnsembleOutput) -> None:
    """Store state s of the chunk as an output row, in the lanes where it is valid."""
    z = w.Z + s * w.n_state * w.width
    for j in range(w.width):
        if w.member_of_lane[j] >= 0 and s <= w.valid_until[j]:
            out = output.states + (w.member_of_lane[j] * output.n_rows + row) * output.n_columns
            for i in range(output.n_columns):
                out[i] = z[output.columns[i] * w.width + j]


@lowered
def flush_chunk(
    kernels: LaneKernels,
    w: LaneWorkspace,
    output: EnsembleOutput,
    done: int,
    count: int,
    stride: int,
    h: float,
    t_origin: float,
) -> None:
    """Update the monitors with the chunk, store output rows, and move the last state and history to the front."""
    width, n_common = w.width, count
    for i in range(width):
        n_common = min(n_common, w.valid_until[i])
    for s in range(1, count + 1):
        if s > n_common:  # mask the lanes whose state is not valid
            for i in range(width):
                w.monitor[i] = 1.0 if s <= w.valid_until[i] else 0.0
        _monitor_state(kernels.monitor, w, s, t_origin + (done + s) * h)
        if output.histograms.n_histograms > 0:
            _update_histograms(output.histograms, w)
        if (done + s) % stride == 0:
            _store_row(w, s, (done + s) // stride, output)
    size = w.n_state * width
    for i in range(size):
        w.Z[i] = w.Z[count * size + i]
    size = w.n_unknowns * width
    for i in range(HISTORY * size):  # ascending, as source and target may overlap
        w.X[i] = w.X[count * size + i]


@lowered
def _all_converged(w: LaneWorkspace, count: int) -> bool:
    """Return True if all lanes completed the chunk with finite values."""
    z, n_failed = w.Z + count * w.n_state * w.width, 0
    for i in range(w.width):
        n_failed += w.failed[i]
    for i in range(w.n_state * w.width):
        n_failed += z[i] - z[i] != 0.0
    return n_failed == 0


@lowered
def _apply_inputs(w: LaneWorkspace, inputs: LaneInputs, step: int) -> int:
    """Set the inputs of a step in all lanes; return the number of the next step with other inputs, or -1."""
    while w.counters[N_CHANGES] < inputs.n_changes and inputs.steps[w.counters[N_CHANGES]] <= step:
        m = 0
        for i in range(w.width):  # unused lanes have the inputs of the first used one
            if w.member_of_lane[w.width - 1 - i] >= 0:
                m = w.member_of_lane[w.width - 1 - i]
        first_used = m
        for j in range(w.width):
            m = w.member_of_lane[j] if w.member_of_lane[j] >= 0 else first_used
            values = inputs.values + (m * inputs.member_stride + w.counters[N_CHANGES] * inputs.n_entries)
            for i in range(inputs.n_entries):
                w.c[(2 + inputs.entries[i]) * w.width + j] = values[i]
        w.counters[N_CHANGES] += 1
    return inputs.steps[w.counters[N_CHANGES]] if w.counters[N_CHANGES] < inputs.n_changes else -1


@lowered
def advance_chunks(
    kernels: LaneKernels,
    w: LaneWorkspace,
    inputs: LaneInputs,
    output: EnsembleOutput,
    done: int,
    n_steps: int,
    n_before: int,
    stride: int,
    h: float,
    t_origin: float,
) -> bool:
    """Advance chunk by chunk until all steps are taken, or a lane of the current chunk requires the scalar fallback.

    The workspace contains one chunk, which fits into the cache; inputs are constant in a chunk. `n_before` is the
    number of previous steps of another size. Returns True if all steps are taken.
    """
    while done < n_steps:
        count = min(w.chunk_size, n_steps - done)
        next_change = _apply_inputs(w, inputs, n_before + done)
        if next_change >= 0:
            count = min(count, next_change - n_before - done)
        w.counters[N_STEPS_DONE], w.counters[CHUNK_SIZE] = done, count
        advance(kernels, w, count, done, h, t_origin)
        if not _all_converged(w, count):
            return False
        for i in range(w.width):
            w.valid_until[i] = count
        flush_chunk(kernels, w, output, done, count, stride, h, t_origin)
        done += count
    return True


# -- members ----------------------------------------------------------------------------------------------------------
@lowered
def _load_members(
    kernels: LaneKernels, w: LaneWorkspace, members: MemberArrays, first_member: int, grid: TimeGridStruct
) -> None:
    """Load the members from number `first_member` into the lanes; unused lanes repeat the last member."""
    n, width = w.n_unknowns, w.width
    for j in range(width):
        m = min(first_member + j, members.n_members - 1)
        w.member_of_lane[j] = m if first_member + j < members.n_members else -1
        for i in range(w.n_state):
            w.Z[i * width + j] = members.z[m * w.n_state + i]
        for i in range(members.n_parameters):
            w.c[(2 + i) * width + j] = members.k[m * members.n_parameters + i]
        w.c[j], w.c[width + j] = grid.h, grid.t0
        w.newton_iterations[j], w.failed[j], w.failed_at[j] = 0, 0, -1
    w.counters[N_CHANGES] = 0
    if n > 0:
        size, scratch = n * width, w.work + (2 * n + 5) * width
        for i in range(HISTORY * size):
            w.X[i] = 0.0
        call_kernel(kernels.initial_guess, w.X, w.Z, w.c, w.work, scratch)
        for s in range(HISTORY):
            for i in range(size):
                w.X[s * size + i] = scratch[i]
        for i in range(w.work_rows * width):
            w.work[i] = np.inf if i < size else 0.0  # infinite reciprocal bounds until the first evaluation


@lowered
def _init_monitor(kernels: LaneKernels, w: LaneWorkspace, grid: TimeGridStruct, output: EnsembleOutput) -> None:
    """Initialise the monitor with the initial state, and store it as the first row."""
    for i in range(w.monitor_rows * w.width):
        w.monitor[i] = w.monitor_init[i]
    _monitor_state(kernels.monitor_init, w, 0, grid.t0)
    _monitor_state(kernels.monitor, w, 0, grid.t0)
    if output.histograms.n_histograms > 0:
        _update_histograms(output.histograms, w)
    for i in range(w.width):
        w.valid_until[i] = 0
    _store_row(w, 0, 0, output)


@lowered
def store_member_summary(w: LaneWorkspace, j: int, n_steps: int, output: EnsembleOutput) -> None:
    """Store the monitor and the counters of the member in lane j at the end of its integration."""
    m = w.member_of_lane[j]
    output.n_steps[m], output.newton_iterations[m] = n_steps, w.newton_iterations[j]
    for i in range(w.monitor_rows):
        output.monitor[m * w.monitor_rows + i] = w.monitor[i * w.width + j]


@lowered
def finish_group(w: LaneWorkspace, grid: TimeGridStruct, output: EnsembleOutput) -> None:
    """Store the last row, unless it belongs to a regular step, and the summaries of all completed members."""
    if grid.final_h > 0.0 or grid.n_steps % grid.stride != 0:
        for i in range(w.width):
            w.valid_until[i] = 0
        _store_row(w, 0, grid.n_rows - 1, output)
    for j in range(w.width):
        if w.member_of_lane[j] >= 0:
            store_member_summary(w, j, grid.n_steps + (1 if grid.final_h > 0.0 else 0), output)


@lowered
def run_groups(
    kernels: LaneKernels,
    w: LaneWorkspace,
    members: MemberArrays,
    first_group: int,
    last_group: int,
    grid: TimeGridStruct,
    output: EnsembleOutput,
) -> int:
    """Integrate groups of members from `first_group` to `last_group` - 1, until a lane requires the scalar fallback.

    Returns the current group, or `last_group` when all groups are finished.
    """
    for group in range(first_group, last_group):
        _load_members(kernels, w, members, group * w.width, grid)
        _init_monitor(kernels, w, grid, output)
        w.counters[PHASE] = 0
        if not advance_chunks(kernels, w, members.inputs, output, 0, grid.n_steps, 0, grid.stride, grid.h, grid.t0):
            return group
        if grid.final_h > 0.0:
            w.counters[PHASE] = 1
            t_origin = grid.t0 + grid.n_steps * grid.h
            if not advance_chunks(
                kernels, w, members.inputs, output, 0, 1, grid.n_steps, grid.n_rows, grid.final_h, t_origin
            ):
                return group
        finish_group(w, grid, output)
    return last_group


compile_unit(run_groups, advance_chunks, flush_chunk, store_member_summary, finish_group)
