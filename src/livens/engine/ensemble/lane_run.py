"""Run of an ensemble in SIMD lanes: arrays that stay in place, and workers that integrate groups of members."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.arrays import aligned_zeros
from livens.engine.ensemble import lane_loop
from livens.engine.ensemble.lane_loop import (
    CHUNK_SIZE,
    N_COUNTERS,
    N_STEPS_DONE,
    EnsembleOutput,
    Histograms,
    LaneInputs,
    LaneWorkspace,
    MemberArrays,
    TimeGridStruct,
)
from livens.engine.ensemble.monitor_kernel import initial_monitor
from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.step_size_control import initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.newton.workspace_layout import newton_offsets
from livens.engine.stepper import IntegratorState

if TYPE_CHECKING:
    from livens.engine.ensemble.stepper import EnsembleStepper

#: Bytes of states and unknowns per chunk, well below the size of the second-level cache.
_L2_CHUNK_BYTES = 400_000
#: Number of steps per native call of the lane loop, about a tenth of a second.
_STEPS_PER_CALL = 200_000


@dataclass(frozen=True)
class TimeGrid:
    """Fixed time grid and output rows of an ensemble."""

    h: float
    t0: float
    n_steps: int
    final_h: float  # size of a last, shorter step; 0 if there is none
    stride: int
    stored: np.ndarray  # stored entries of the state

    @property
    def n_rows(self) -> int:
        """Number of output rows: steps that `stride` divides, and the last one."""
        regular = self.n_steps // self.stride + 1
        return regular + bool(self.final_h > 0.0 or self.n_steps % self.stride)

    @property
    def times(self) -> np.ndarray:
        t = self.t0 + np.arange(self.n_steps // self.stride + 1) * self.stride * self.h
        if self.final_h > 0.0:
            return np.append(t, self.t0 + self.n_steps * self.h + self.final_h)
        return np.append(t, self.t0 + self.n_steps * self.h) if self.n_steps % self.stride else t

    @property
    def steps_of_rows(self) -> np.ndarray:
        """Numbers of the steps that end at the output rows; 0 for the initial state."""
        return np.minimum(np.arange(self.n_rows) * self.stride, self.n_steps + (self.final_h > 0.0))

    @property
    def to_struct(self) -> TimeGridStruct:
        """The time grid as a struct for native code."""
        return TimeGridStruct(self.h, self.t0, self.n_steps, self.final_h, self.stride, self.n_rows)


@dataclass(frozen=True)
class InputTable:
    """Inputs over time: entries of the parameter vector, and their values from some steps on."""

    steps: np.ndarray  # numbers of these steps, increasing
    entries: np.ndarray  # entries of the parameter vector
    values: np.ndarray  # (member, change, entry), with one member if all have the same inputs

    @classmethod
    def empty(cls) -> InputTable:
        """Return the table of members without inputs over time."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none, np.zeros((1, 0, 0)))

    def of_members(self, members: slice | np.ndarray) -> InputTable:
        """Return the table of some members, in their order."""
        return self if len(self.values) == 1 else dataclasses.replace(self, values=self.values[members])

    @property
    def to_struct(self) -> LaneInputs:
        """The table as a struct for native code."""
        stride = self.values[0].size if len(self.values) > 1 else 0
        steps, entries = (np.ascontiguousarray(part, dtype=np.int64) for part in (self.steps, self.entries))
        return LaneInputs(
            steps.size, steps, entries.size, entries, np.ascontiguousarray(self.values, dtype=float), stride
        )


@dataclass
class EnsembleArrays:
    """Result arrays of an ensemble; the first axis is the member."""

    states: np.ndarray
    corrections: np.ndarray
    steps: np.ndarray
    first: np.ndarray  # monitored columns of the initial state
    largest: np.ndarray
    trusted: np.ndarray  # reference energy: largest magnitude while the drift is small
    sums: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    counts: np.ndarray  # histogram counts: (member, histogram, bin)
    failures: dict[int, str] = field(default_factory=dict)  # failure messages by member
    n_scalar_fallbacks: int = 0  # number of scalar fallbacks


ARRAYS = ("states", "corrections", "steps", "first", "largest", "trusted", "sums", "lowest", "highest", "counts")


@dataclass(frozen=True)
class HistogramSpec:
    """Histogram with equally spaced edges of one reduced column."""

    column: int
    low: float
    high: float
    count: int


class EnsembleRun:
    """Run of all members from states z with parameters k, and inputs over time, over a time grid.

    A run may be repeated: arrays and workspaces stay in place, and states and parameters are read anew from z and k.
    Results of the former run are overwritten.

    Parameters
    ----------
    stepper : EnsembleStepper
        Compiled step.
    z, k : ndarray
        Initial states (n_members, n_state) and parameters (n_members, n_parameters); contiguous arrays are not copied.
    grid : TimeGrid
        Steps and output rows.
    n_threads : int, default 1
        Number of threads.
    bins : sequence of HistogramSpec, default ()
        Histograms.
    inputs : InputTable, optional
        Inputs over time.
    """

    def __init__(
        self,
        stepper: EnsembleStepper,
        z: np.ndarray,
        k: np.ndarray,
        grid: TimeGrid,
        n_threads: int = 1,
        bins: Sequence[HistogramSpec] = (),
        inputs: InputTable | None = None,
    ) -> None:
        self._stepper, self._n_threads = stepper, n_threads
        n_members, self._offsets = len(z), stepper.monitor_spec.offsets
        n_counts = 2 + max((histogram.count for histogram in bins), default=-2)
        output = EnsembleOutput(
            n_columns=len(grid.stored),
            columns=np.ascontiguousarray(grid.stored, dtype=np.int64),
            n_rows=grid.n_rows,
            states=np.empty((n_members, grid.n_rows, len(grid.stored))),
            newton_iterations=np.zeros(n_members, dtype=np.int64),
            n_steps=np.zeros(n_members, dtype=np.int64),
            monitor=np.zeros((n_members, self._offsets.n_rows)),
            histograms=Histograms(
                n_histograms=len(bins),
                columns=np.array([self._offsets.current + histogram.column for histogram in bins], dtype=np.int64),
                low=np.array([histogram.low for histogram in bins], dtype=float),
                inv_bin_width=np.array(
                    [histogram.count / (histogram.high - histogram.low) for histogram in bins], dtype=float
                ),
                n_bins=np.array([histogram.count for histogram in bins], dtype=np.int64),
                n_counts=n_counts,
                counts=np.zeros((n_members, len(bins), n_counts), dtype=np.int64),
            ),
        )
        output.monitor[:, self._offsets.minimum : self._offsets.maximum] = np.inf
        output.monitor[:, self._offsets.maximum : self._offsets.current] = -np.inf
        z, k = np.ascontiguousarray(z, dtype=float), np.ascontiguousarray(k, dtype=float)
        table = InputTable.empty() if inputs is None else inputs
        self._shared = _SharedRun(MemberArrays(n_members, z, k.shape[1], k, table.to_struct), grid, output)
        groups = -(-n_members // stepper.width)
        # few calls, short enough for progress reports, and equally many for every thread
        size = max(1, min(-(-groups // n_threads), _STEPS_PER_CALL // max(1, grid.n_steps)))
        size = -(-groups // (-(-groups // (size * n_threads)) * n_threads))
        self._spans = [(start, min(start + size, groups)) for start in range(0, groups, size)]
        self._steps_of_rows = grid.steps_of_rows
        self._idle_workers: list[_LaneWorker] = []

    def run(self, on_progress: Callable[[int], None] | None = None) -> EnsembleArrays:
        """Integrate all members; `on_progress` is called with the number of completed members."""
        shared, spans, done = self._shared, self._spans, 0
        shared.failures, shared.n_scalar_fallbacks = {}, 0
        n_members, n_threads, output = shared.members.n_members, self._n_threads, shared.output
        if output.histograms.n_histograms:
            output.histograms.counts.fill(0)
        pool = ThreadPoolExecutor(n_threads) if n_threads > 1 and len(spans) > 1 else None
        try:
            for count in (map if pool is None else pool.map)(self._run_span, spans):
                done = min(done + count * self._stepper.width, n_members)
                if on_progress is not None:
                    on_progress(done)
        finally:
            if pool is not None:
                pool.shutdown(cancel_futures=True)
        for member in shared.failures:  # rows after the failure
            output.states[member, self._steps_of_rows > output.n_steps[member]] = np.nan
        monitor, offsets = output.monitor, self._offsets
        return EnsembleArrays(
            states=output.states,
            corrections=output.newton_iterations,
            steps=output.n_steps,
            first=monitor[:, offsets.initial_row : offsets.maxima],
            largest=monitor[:, offsets.maxima : offsets.sums],
            trusted=monitor[:, offsets.reference_energy],
            sums=monitor[:, offsets.sums : offsets.minimum],
            lowest=monitor[:, offsets.minimum : offsets.maximum],
            highest=monitor[:, offsets.maximum : offsets.current],
            counts=output.histograms.counts,
            failures=shared.failures,
            n_scalar_fallbacks=shared.n_scalar_fallbacks,
        )

    def _run_span(self, span: tuple[int, int]) -> int:
        try:
            worker = self._idle_workers.pop()
        except IndexError:
            worker = _LaneWorker(self._stepper, self._shared)
        worker.run(*span)
        self._idle_workers.append(worker)
        return span[1] - span[0]


@dataclass
class _SharedRun:
    """Data shared by all workers of a run."""

    members: MemberArrays
    grid: TimeGrid
    output: EnsembleOutput
    failures: dict[int, str] = field(default_factory=dict)
    n_scalar_fallbacks: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class _LaneWorker:
    """Worker that integrates groups of members in SIMD lanes, with its own workspace."""

    def __init__(self, stepper: EnsembleStepper, shared: _SharedRun) -> None:
        self._stepper, self._shared, self._grid = stepper, shared, shared.grid.to_struct
        width, n, nz = stepper.width, stepper.compiled.flat_equations.size, shared.members.z.shape[1]
        chunk = max(1, min(max(shared.grid.n_steps, 1), _L2_CHUNK_BYTES // (8 * width * (n + nz))))
        work_rows, monitor_rows = newton_offsets(n).n_rows, stepper.monitor_spec.offsets.n_rows
        self._w = LaneWorkspace(
            width=width,
            n_state=nz,
            n_unknowns=n,
            chunk_size=chunk,
            c=aligned_zeros(2 + shared.members.n_parameters, width),
            Z=aligned_zeros(chunk + 1, nz, width),
            X=aligned_zeros(chunk + HISTORY, n, width),
            work=aligned_zeros(work_rows, width),
            work_rows=work_rows,
            newton_iterations=np.zeros(width, dtype=np.int64),
            failed=np.zeros(width, dtype=np.int64),
            failed_at=np.full(width, -1, dtype=np.int64),
            valid_until=np.zeros(width, dtype=np.int64),
            member_of_lane=np.full(width, -1, dtype=np.int64),
            monitor=aligned_zeros(monitor_rows, width),
            monitor_init=initial_monitor(stepper.monitor_spec, width, aligned_zeros(monitor_rows, width)),
            monitor_rows=monitor_rows,
            counters=np.zeros(N_COUNTERS, dtype=np.int64),
        )

    def run(self, first_group: int, last_group: int) -> None:
        """Integrate the groups from number `first_group` to `last_group` - 1."""
        shared, w = self._shared, self._w
        while first_group < last_group:
            first_group = lane_loop.run_groups(
                self._stepper._kernels, w, shared.members, first_group, last_group, self._grid, shared.output
            )
            if first_group < last_group:
                self._finish_group(*map(int, w.counters[: CHUNK_SIZE + 1]))
                first_group += 1

    def _finish_group(self, phase: int, done: int, count: int) -> None:
        """Replace failed lanes of the current group by scalar steps, and finish the group."""
        grid = self._shared.grid
        if phase == 0:
            self._step_with_fallback(grid.n_steps, grid.h, grid.t0, 0, grid.stride, done, count)
            done = count = 0
        if grid.final_h > 0.0:
            # the final step: row number 1 of a separate grid, no other row is stored
            t = grid.t0 + grid.n_steps * grid.h
            self._step_with_fallback(1, grid.final_h, t, grid.n_steps, grid.n_rows, done, count)
        lane_loop.finish_group(self._w, self._grid, self._shared.output)

    def _step_with_fallback(
        self, n_steps: int, h: float, t_origin: float, n_before: int, stride: int, done: int = 0, count: int = 0
    ) -> None:
        """Take fixed steps with scalar fallback, starting with the current chunk if `count` is not zero.

        `n_before` is the number of previous steps of another size.
        """
        stepper, w, output, member_of_lane = self._stepper, self._w, self._shared.output, self._w.member_of_lane
        while np.any(member_of_lane >= 0):
            if not count:
                inputs = self._shared.members.inputs
                if lane_loop.advance_chunks(
                    stepper._kernels, w, inputs, output, done, n_steps, n_before, stride, h, t_origin
                ):
                    return
                done, count = int(w.counters[N_STEPS_DONE]), int(w.counters[CHUNK_SIZE])
            valid_until = w.valid_until
            valid_until[:] = count
            for lane in np.flatnonzero(w.failed):
                valid_until[lane] = self._step_scalar(int(lane), done, count, h, t_origin)
            for lane in np.flatnonzero(valid_until == count):
                finite = np.isfinite(w.Z[: count + 1, :, lane]).all(axis=1)
                if not finite[-1]:
                    valid_until[lane] = int(np.argmin(finite)) - 1
                    entry = int(np.argmin(np.isfinite(w.Z[valid_until[lane] + 1, :, lane])))
                    name = stepper.compiled.layout.entry_label(entry)
                    t = t_origin + (done + valid_until[lane]) * h
                    self._record_failure(int(lane), f"the step from t = {t:.9g} failed: {name} is not finite any more")
            w.failed[:], w.failed_at[:] = 0, -1
            self._refill_failed_lanes(valid_until, count)
            lane_loop.flush_chunk(stepper._kernels, w, output, done, count, stride, h, t_origin)
            for lane in np.flatnonzero(valid_until < count):
                if member_of_lane[lane] >= 0:
                    lane_loop.store_member_summary(w, int(lane), n_before + done + int(valid_until[lane]), output)
                    member_of_lane[lane] = -1
            done, count = done + count, 0

    def _step_scalar(self, lane: int, done: int, count: int, h: float, t_origin: float) -> int:
        """Integrate one trajectory by the scalar stepper to the end of the chunk; return the number of valid steps."""
        w, compiled, n = self._w, self._stepper.compiled, self._stepper.compiled.flat_equations.size
        start = int(w.failed_at[lane])
        if w.member_of_lane[lane] < 0:
            return 0
        state = IntegratorState(
            t_origin + (done + start) * h,
            w.Z[start, :, lane].copy(),
            w.X[start : start + HISTORY, :, lane].copy(),
            np.zeros(n),
            np.full(n, np.inf),  # the bounds of the lane may stem from steps after its failure
        )
        with self._shared.lock:
            self._shared.n_scalar_fallbacks += 1
            stepper = compiled.make_stepper("fused", w.c[2:, lane].copy(), self._stepper.order)
            policy = StepPolicy(False, h, t_origin, done + start)
            steps_taken = stepper.advance(state, count - start, policy, initial_controller_state(h))
        n_valid = start + steps_taken.n_steps
        w.Z[start + 1 : n_valid + 1, :, lane] = steps_taken.end_states
        w.X[start + HISTORY : n_valid + HISTORY, :, lane] = steps_taken.unknowns
        w.newton_iterations[lane] += int(steps_taken.newton_iterations.sum()) - (
            count - start
        )  # the lane counted one iteration for each step
        offsets = newton_offsets(n)
        w.work[offsets.inv_roundoff : offsets.inv_roundoff + n, lane] = steps_taken.final.inv_roundoff
        w.work[offsets.update : offsets.update + n, lane] = steps_taken.final.newton_update
        if steps_taken.failure is not None:
            self._record_failure(
                lane, f"the step from t = {steps_taken.final.t:.9g} failed: {steps_taken.failure.reason}"
            )
        return n_valid

    def _record_failure(self, lane: int, reason: str) -> None:
        member = int(self._w.member_of_lane[lane])
        if member >= 0:
            with self._shared.lock:
                self._shared.failures[member] = reason

    def _refill_failed_lanes(self, valid_until: np.ndarray, count: int) -> None:
        """Refill failed lanes with a healthy one: non-finite values would slow all lanes down."""
        healthy = np.flatnonzero(valid_until == count)
        if healthy.size:
            w = self._w
            for lane in np.flatnonzero(valid_until < count):
                w.Z[count, :, lane] = w.Z[count, :, healthy[0]]
                w.X[count:, :, lane] = w.X[count:, :, healthy[0]]
                w.c[:, lane], w.work[:, lane] = w.c[:, healthy[0]], w.work[:, healthy[0]]
