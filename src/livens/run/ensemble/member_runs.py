"""Ensemble integration by the steps of single runs: on spanning trees in SIMD lanes, or member by member."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.engine.ensemble.lane_run import EnsembleArrays, HistogramSpec, InputTable, TimeGrid
from livens.engine.ensemble.stepper import array_shapes
from livens.engine.observables.drift_monitor import maxima_count
from livens.engine.stepper import IntegratorState, StepChunk, Stepper, step_inputs
from livens.engine.trees.observables import TreeObservables
from livens.errors import LivensError
from livens.run.drift_monitor import MonitorSpec
from livens.run.plan import Plan
from livens.run.startup import chunk_size
from livens.run.stepping import FixedStepping

if TYPE_CHECKING:
    from livens.engine.trees.lanes import LaneGroup

#: Number of steps between progress reports, about a tenth of a second.
_STEPS_PER_REPORT = 100_000


class MemberRuns:
    """Integration of the members of an ensemble in the tier of single runs; thread-safe.

    Each member takes the steps of a single run. On a tree nothing is compiled for the model, and members advance in
    SIMD lanes unless it has closures or inputs over time; a member whose lane fails is run again by itself. In the
    assembled tier members run one after another, and only the kernels of elements are compiled.

    Parameters
    ----------
    compiled : CompiledStep
        Step that the tier supports.
    plan : Plan
        Plan of all members, with the tier; initial values and parameters are those of the members.
    momenta : tuple of str
        Names of the monitored momenta; on trees see `TreeObservables.supports`.
    """

    def __init__(self, compiled: CompiledStep, plan: Plan, momenta: tuple[str, ...]) -> None:
        self.compiled, self._plan = compiled, plan
        self._monitor = MonitorSpec.from_step(compiled, momenta, plan.tier)
        self._has_lanes = plan.tier == "tree" and self.supports_lanes(compiled)
        #: Members that advance together.
        self.width = 1
        if self._has_lanes:
            from livens.engine.trees.lanes import WIDTH  # imports multibody

            self.width = WIDTH

    @staticmethod
    def supports_lanes(compiled: CompiledStep) -> bool:
        """Return True if the model is a tree without closures, whose members advance in SIMD lanes."""
        tree = compiled.tree_or_reason
        return not isinstance(tree, str) and not tree.closures and compiled.base_step is None

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the equations."""
        return f"{self._plan.tier} {self.compiled.fingerprint}"

    def shapes(self, n_members: int, grid: TimeGrid, bins: Sequence[HistogramSpec]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the result arrays for a number of members."""
        n_maxima = maxima_count(len(self._monitor.momentum_sizes))
        return array_shapes(n_members, grid, bins, self._monitor.table.width, n_maxima, 0)

    def integrate(
        self,
        z: np.ndarray,
        k: np.ndarray,
        grid: TimeGrid,
        n_threads: int = 1,
        bins: Sequence[HistogramSpec] = (),
        on_progress: Callable[[int], None] | None = None,
        inputs: InputTable | None = None,
    ) -> EnsembleArrays:
        """Integrate all members from states z with parameters k, and inputs over time, over the time grid.

        `on_progress` is called with the number of completed members.
        """
        n_members = len(z)
        counts = ("corrections", "steps", "counts")
        shapes = self.shapes(n_members, grid, bins).items()
        arrays = {name: np.zeros(shape, dtype=np.int64 if name in counts else float) for name, shape in shapes}
        out = EnsembleArrays(**arrays)  # type: ignore[arg-type]
        out.states.fill(np.nan)
        table, lock = InputTable.empty() if inputs is None else inputs, threading.Lock()

        groups: queue.SimpleQueue[LaneGroup] = queue.SimpleQueue()

        def run_in_lanes(members: range) -> list[int]:
            """Integrate members in lanes, and return those whose lanes failed."""
            try:
                group = groups.get_nowait()
            except queue.Empty:
                from livens.engine.trees.lanes import LaneGroup

                table = self._monitor.table
                assert isinstance(table, TreeObservables)
                group = LaneGroup(self.compiled.new_tree_model(k[0]), table.columns, table.momentum_sizes)
            failed = list[int]()
            for start in range(members.start, members.stop, self.width):
                block = slice(start, min(start + self.width, members.stop))
                out.states[block, 0] = z[block][:, grid.stored]
                group.integrate(z[block], k[block], grid, out.states[block])
                is_done = group.failed[: block.stop - start] == 0
                numbers = start + np.flatnonzero(is_done)
                failed += (start + np.flatnonzero(~is_done)).tolist()
                lanes = numbers - start
                out.corrections[numbers], out.trusted[numbers] = group.newton_iterations[lanes], group.trusted[lanes]
                out.first[numbers], out.largest[numbers] = group.initial_row.T[lanes], group.maxima.T[lanes]
                out.steps[numbers] = grid.n_steps + (grid.final_h > 0.0)
            groups.put(group)
            return failed

        def run_members(members: range) -> int:
            alone: Sequence[int] = members
            if self._has_lanes and not table.steps.size:
                alone = run_in_lanes(members)
                with lock:
                    out.n_scalar_fallbacks += len(alone)
            for member in alone:
                rows = table.values[member if len(table.values) > 1 else 0]
                run = _MemberRun(self.compiled, self._plan, self._monitor, grid, out, member)
                failure, n_fallbacks = run.integrate(z[member], k[member].copy(), table, rows)
                with lock:
                    out.n_scalar_fallbacks += n_fallbacks
                    if failure:
                        out.failures[member] = failure
            return len(members)

        size = max(1, min(-(-n_members // n_threads), _STEPS_PER_REPORT // max(1, grid.n_steps)))
        size = -(-size // self.width) * self.width
        spans = [range(start, min(start + size, n_members)) for start in range(0, n_members, size)]
        pool, done = ThreadPoolExecutor(n_threads) if n_threads > 1 and len(spans) > 1 else None, 0
        try:
            for count in (map if pool is None else pool.map)(run_members, spans):
                done += count
                if on_progress is not None:
                    on_progress(done)
        finally:
            if pool is not None:
                pool.shutdown(cancel_futures=True)
        return out


class _MemberRun:
    """Run of one member: its steps, output rows and monitored quantities."""

    def __init__(
        self,
        compiled: CompiledStep,
        plan: Plan,
        monitor: MonitorSpec,
        grid: TimeGrid,
        out: EnsembleArrays,
        member: int,
    ) -> None:
        self._compiled, self._plan, self._monitor, self._grid = compiled, plan, monitor, grid
        self._out, self._member, self._last_energy = out, member, np.zeros(1)
        self._has_started = False

    def integrate(self, z: np.ndarray, k: np.ndarray, table: InputTable, rows: np.ndarray) -> tuple[str, int]:
        """Integrate to the end time; return a failure message, if any, and the number of fallback steps.

        The parameters `table.entries` of k become the values in `rows` before the steps `table.steps`.
        """
        grid, compiled = self._grid, self._compiled
        self._out.states[self._member, 0] = z[grid.stored]
        tier, c = self._plan.tier, step_inputs(grid.h, grid.t0, k)
        state = IntegratorState.initial(grid.t0, z, compiled.initial_unknowns(z, c, tier))
        if tier == "assembled":
            state = replace(state, stepper_state=compiled.initial_history(z, c))
        stepper = compiled.make_stepper(tier, k)
        try:
            return self._take_steps(state, stepper, k, table, rows), stepper.statistics.fallback_steps
        except LivensError as error:  # a step that no tier solves
            return str(error), stepper.statistics.fallback_steps
        finally:
            stepper.close()

    def _take_steps(
        self, state: IntegratorState, stepper: Stepper, k: np.ndarray, table: InputTable, rows: np.ndarray
    ) -> str:
        """Take all steps; return a failure message, or an empty string."""
        stepping = FixedStepping(self._plan)
        max_steps = chunk_size(self._plan.tier, state.z.size + state.unknown_history.shape[1])
        next_change, is_final = 0, False
        while True:
            done = stepping.n_steps
            if next_change < table.steps.size and table.steps[next_change] == done:
                k[table.entries] = rows[next_change]
                stepper.set_parameters(k)
                next_change += 1
            if stepping.is_finished(state):
                steps, is_final = stepping.final_steps(stepper, state), True
            else:
                left = table.steps[next_change] - done if next_change < table.steps.size else max_steps
                steps = stepping.advance(stepper, state, int(min(max_steps, left)))
            if steps is not None:
                self._observe(steps, done, k)
                state = steps.final
                if steps.failure is not None:
                    return f"the step from t = {state.t:.9g} failed: {steps.failure.reason}"
            if is_final:
                return ""

    def _observe(self, steps: StepChunk, done: int, k: np.ndarray) -> None:
        """Store the output rows of a chunk after `done` steps, and update the drift monitor."""
        out, member, numbers = self._out, self._member, self._grid.steps_of_rows
        first, last = np.searchsorted(numbers, [done, done + steps.n_steps], side="right").tolist()
        if last > first:
            out.states[member, first:last] = steps.states[numbers[first:last] - done][:, self._grid.stored]
        out.corrections[member] += steps.newton_iterations.sum()
        out.steps[member] += steps.n_steps
        is_start, self._has_started = not self._has_started, True
        if is_start or steps.n_steps:
            t, states = (steps.t_nodes, steps.states) if is_start else (steps.t_end, steps.end_states)
            largest, sizes, trusted = (
                out.largest[member],
                self._monitor.momentum_sizes,
                out.trusted[member : member + 1],
            )
            supplied, first_row = self._monitor.supplied_index, out.first[member]
            self._monitor.table.accumulate(
                t, states, k, supplied, is_start, first_row, self._last_energy, largest, sizes, trusted
            )
