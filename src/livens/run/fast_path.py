"""Fast path of prepared runs: all steps in one call of the compiled loop, or in few calls for adaptive steps.

A hundred steps of a pendulum take ten microseconds, and a `Run` with its observers takes twenty times that. The fast
path is used if nothing needs to be observed between steps. If anything fails, the run is repeated by a `Run`, which
takes the same steps, bit for bit, and handles the failure.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
import weakref
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from livens.engine.compiled_step import CompiledStep, compiled_step
from livens.engine.newton.convergence import CONVERGED, REPIVOT_AFTER
from livens.engine.newton.iteration import N_ITERATIONS
from livens.engine.newton.markowitz import SingularMatrixError
from livens.engine.newton.single_call import OutputGrid, integrate_fixed
from livens.engine.stepper import (
    CompleteRun,
    IntegratorState,
    StepChunk,
    Stepper,
    StepperStatistics,
    WorkspaceManager,
    step_inputs,
)
from livens.errors import IntegrationError
from livens.models.angle_branches import MOVE_DISTANCE
from livens.results.checkpoint import Checkpoint
from livens.results.record import RunRecord, Statistics
from livens.results.recorder import packed_layout
from livens.results.result import Result
from livens.run.drift_monitor import (
    DriftMonitor,
    describe_blow_up,
    monitor_spec,
    round_off_bounds,
    summary_from_maxima,
)
from livens.run.held_parameters import wrapped_angles
from livens.run.initial_step_size import initial_step_size
from livens.run.plan import Plan
from livens.run.startup import REFERENCE_H, chunk_size, initial_unknowns, start_integration
from livens.run.step_control import step_limit_message
from livens.run.stepping import AdaptiveStepping, make_stepping, split_interval

#: Key of the `FastRun` in the cache of a plan; key of adaptive runs in the caches of a compiled step and of a plan.
_CACHE_KEY, _ADAPTIVE_KEY = "short run", "short adaptive run"
#: Entry of the cache of a plan whose adaptive runs have more steps than one chunk.
_LONG = "long run"
#: Index of the variables that are not part of the state.
_EXTRA_COLUMNS = {"t": 0, "step_size": 1, "newton_iterations": 2}


def enable_fast_path(plan: Plan, compiled: CompiledStep) -> None:
    """Enable the fast path for further runs of a plan after a successful run."""
    if plan.control is not None:
        if _is_adaptive_eligible(plan, compiled):
            compiled.cached(_ADAPTIVE_KEY, lambda: True)
    elif _is_eligible(plan, compiled):
        plan.cache[_CACHE_KEY] = FastRun(plan, compiled)


def _is_eligible(plan: Plan, compiled: CompiledStep) -> bool:
    if plan.tier != "fused" or not plan.has_fixed_steps or not compiled.size or compiled.removed_constraints:
        return False
    controllers = getattr(plan.model, "controllers", ())
    if compiled.model.guards or controllers or plan.inputs is not None:
        return False
    steps, rest = split_interval(plan.h, plan.t0, plan.t_end)
    max_steps = chunk_size(plan.tier, compiled.layout.size + compiled.flat_equations.size)
    return not rest and 0 < steps <= max_steps and steps % plan.every == 0


def _is_adaptive_eligible(plan: Plan, compiled: CompiledStep) -> bool:
    model = compiled.model
    if plan.tier != "fused" or plan.scheme.fictive or plan.every != 1 or compiled.removed_constraints:
        return False
    has_controllers = bool(getattr(model, "controllers", ()))
    return not (model.guards or has_controllers or model.angle_branches is not None or plan.inputs is not None)


def run_fast_path(plan: Plan, t_start: float, checkpoint: Callable[[], Checkpoint]) -> Result | None:
    """Return the result of the fast path, or None if it is not enabled or fails.

    `t_start` is the time at which preparation started. `checkpoint` computes the checkpoint for a longer run, lazily.
    """
    if plan.control is not None:
        step = compiled_step(plan.model, plan.scheme)
        is_enabled = step.find_cached(_ADAPTIVE_KEY) and plan.cache.get(_ADAPTIVE_KEY) != _LONG
        if not is_enabled or not _is_adaptive_eligible(plan, step):
            return None
        return _run_adaptive(plan, step, t_start, checkpoint)
    fast_run: FastRun | None = plan.cache.get(_CACHE_KEY)
    compiled = None if fast_run is None else fast_run.compiled()
    return None if fast_run is None or compiled is None else fast_run.run(plan, compiled, t_start, checkpoint)


class FastRun:
    """Common data of the fast-path runs of a plan and of plans with other initial values or parameters."""

    def __init__(self, plan: Plan, compiled: CompiledStep) -> None:
        self.compiled = weakref.ref(compiled)
        self._info = plan.run_info(compiled)
        self._names = plan.variables(compiled)
        self._slices, self._columns, _ = packed_layout(tuple(compiled.layout.sizes.items()), self._names)
        steps, _ = split_interval(plan.h, plan.t0, plan.t_end)
        width = self._columns.stop if isinstance(self._columns, slice) else 0
        self._output_grid = OutputGrid(plan.h, plan.t0, steps, int(plan.every), width, REPIVOT_AFTER)
        self._n_rows = steps // self._output_grid.stride + 1
        self._reference_inputs = step_inputs(REFERENCE_H, plan.t0, plan.model.parameter_vector())

    def run(
        self, plan: Plan, compiled: CompiledStep, t_start: float, checkpoint: Callable[[], Checkpoint]
    ) -> Result | None:
        """Return the result, or None if not all steps were taken at once or a monitored value is invalid."""
        k, grid, info = plan.k, self._output_grid, self._info
        initial = compiled.model.initial_state(plan.start, k, plan.t0, plan.project, plan.redundant)
        spec = monitor_spec(compiled, k)
        if initial.removed_constraints or spec.arrays is None:
            return None
        counts = compiled.force_counts()
        z, x, c = initial_unknowns(plan, compiled, initial)
        try:
            order = compiled.initial_pivot_order(x, z, c, self._reference_inputs)
        except SingularMatrixError:
            return None
        monitor, output = np.zeros(spec.arrays.n_values), np.empty(self._n_rows * (3 + grid.width))
        buffers = WorkspaceManager(k, compiled.flat_equations.block_size_array, 0, compiled.workspace_pool)
        w = buffers.prepare_first(z, x, grid.n_steps)
        ready = time.perf_counter()
        try:
            if integrate_fixed(compiled.kernels(order), w, grid, spec.arrays, monitor, output) != CONVERGED:
                return None
            newton_iterations = w.counters.item(N_ITERATIONS)
            if compiled.model.angle_branches is not None:
                angles = wrapped_angles(compiled, w.t[: grid.n_steps + 1], w.Z[: grid.n_steps + 1], k)
                if (np.abs(compiled.model.angle_branches.deviation(angles, k)) > MOVE_DISTANCE).any():
                    return None
            states = None if grid.width else w.Z[: grid.n_steps + 1 : grid.stride, self._columns].copy()
        finally:
            buffers.release()
        monitor_values = monitor.tolist()
        reference_energy, initial_energy = monitor_values[spec.arrays.n_maxima + 1 : spec.arrays.n_maxima + 3]
        # a sum is finite only if all terms are finite
        if not math.isfinite(sum(monitor_values[: spec.arrays.n_maxima])) or describe_blow_up(
            spec, initial_energy, reference_energy, monitor_values[0], monitor_values[2]
        ):
            return None
        statistics = Statistics(grid.n_steps, newton_iterations, time.perf_counter() - ready, ready - t_start)
        statistics.count_forces(plan.scheme, compiled.evaluations_since(counts))
        record = RunRecord(
            lambda: plan.run_info_like(info),  # type: ignore[arg-type]  # evaluated lazily by the record
            functools.partial(  # type: ignore[arg-type]
                summary_from_maxima,
                spec.energy,
                spec.momenta,
                initial_energy,
                reference_energy,
                monitor[: spec.arrays.n_maxima],
                functools.partial(round_off_bounds, plan.model, compiled.layout, spec.momenta, k, plan.t0, z, plan.h),
            ),
            statistics,
            "complete",
            "",
            checkpoint,  # type: ignore[arg-type]
        )
        result = Result(
            _PackedTrajectory(self._names, self._slices, self._n_rows, output, states), record, system=plan.model
        )
        result._scheme = plan.scheme
        return result


def _run_adaptive(
    plan: Plan, compiled: CompiledStep, t_start: float, checkpoint: Callable[[], Checkpoint]
) -> Result | None:
    """Return the result of adaptive steps, or None if a step fails, the run is long or a monitored value is invalid."""
    initial = compiled.model.initial_state(plan.start, plan.k, plan.t0, plan.project, plan.redundant)
    if initial.removed_constraints:
        return None
    if plan.estimate_h0:
        plan = plan.with_step_size(initial_step_size(plan, compiled, initial))
    counts = compiled.force_counts()
    start, stepper = start_integration(plan, compiled, initial)
    ready = time.perf_counter()
    try:
        run = _integrate_adaptive(plan, compiled, stepper, start)
    except IntegrationError:
        return None
    finally:
        stepper.close()
    if run is None:
        return None
    monitor = DriftMonitor(compiled, plan.k, plan.tier, h=plan.h)
    monitor.start(start)
    monitor.observe_run(run.t, run.states)
    if monitor.nonfinite_quantity() or monitor.blow_up_message():
        return None
    cost, n_rows = stepper.statistics, len(run.t)
    statistics = Statistics(
        n_rows - 1,
        int(run.newton_iterations.sum()),
        time.perf_counter() - ready - cost.compile_s,
        ready - t_start + cost.compile_s,
        cost.repivots,
        cost.fallback_steps,
        cost.rejected,
        cost.newton_failures,
    )
    statistics.count_forces(plan.scheme, compiled.evaluations_since(counts))
    status, message = "complete", ""
    if not run.reached_end:
        status, message = "interrupted", step_limit_message(n_rows - 1, float(run.t[-1]))
    record = RunRecord(
        lambda: plan.run_info(compiled),  # type: ignore[arg-type]  # evaluated lazily by the record
        monitor.lazy_summary(),  # type: ignore[arg-type]
        statistics,
        status,
        message,
        checkpoint,  # type: ignore[arg-type]
    )
    names = plan.variables(compiled)
    slices, columns, _ = compiled.cached(
        ("packed layout", names), lambda: packed_layout(tuple(compiled.layout.sizes.items()), names)
    )
    output = np.empty(3 * n_rows)
    output[:n_rows], output[n_rows], output[2 * n_rows] = run.t, 0.0, 0.0
    np.subtract(run.t[1:], run.t[:-1], out=output[n_rows + 1 : 2 * n_rows])
    output[2 * n_rows + 1 :].view(np.int64)[:] = run.newton_iterations
    trajectory = _PackedTrajectory(names, slices, n_rows, output, run.states[:, columns])
    result = Result(trajectory, record, system=plan.model)
    result._scheme = plan.scheme
    return result


def _integrate_adaptive(
    plan: Plan, compiled: CompiledStep, stepper: Stepper, state: IntegratorState
) -> CompleteRun | None:
    """Return all steps, or None if they need a `Run`."""
    assert plan.control is not None
    max_steps = plan.control.most_steps
    max_chunk = chunk_size(plan.tier, state.z.size + state.unknown_history.shape[1])
    limit = min(max_chunk, max_steps) if max_steps else max_chunk
    stepping = make_stepping(plan, compiled.layout)
    if isinstance(stepping, AdaptiveStepping) and not stepping.has_breakpoints:
        run = stepper.advance_to_end(state, plan.h, plan.t_end, limit, stepping.controller_state)
        if run is not None and not stepping.crosses_switch(run.t, run.states):
            if run.reached_end or limit == max_steps:
                return run
            plan.cache[_ADAPTIVE_KEY] = _LONG
            return None
        stepper.statistics, stepping = StepperStatistics(), make_stepping(plan, compiled.layout)
    chunks, is_limited = list[StepChunk](), False
    while not stepping.is_finished(state) and not is_limited:
        rest = limit - stepping.n_steps
        if rest <= 0:
            plan.cache[_ADAPTIVE_KEY] = _LONG
            return None
        steps = stepping.advance(stepper, state, rest)
        if steps.failure is not None:
            return None
        chunks.append(_copied(steps))
        state = steps.final
        is_limited = 0 < max_steps <= stepping.n_steps and not stepping.is_finished(state)
    has_more = not is_limited
    while has_more:
        final_steps = stepping.final_steps(stepper, state)
        if final_steps is not None:
            if final_steps.failure is not None:
                return None
            chunks.append(_copied(final_steps))
            state = final_steps.final
        has_more = stepping.has_more_final_steps
    return CompleteRun(
        np.concatenate([chunks[0].t_nodes, *(chunk.t_end for chunk in chunks[1:])]),
        np.concatenate([chunks[0].states, *(chunk.end_states for chunk in chunks[1:])]),
        np.concatenate([chunk.newton_iterations for chunk in chunks]),
        not is_limited,
    )


def _copied(chunk: StepChunk) -> StepChunk:
    """Return a chunk that does not refer to the workspace of the stepper."""
    return dataclasses.replace(
        chunk,
        t_nodes=chunk.t_nodes.copy(),
        states=chunk.states.copy(),
        newton_iterations=chunk.newton_iterations.copy(),
        unknowns=chunk.unknowns[:0],
    )


class _PackedTrajectory(Mapping[str, np.ndarray]):
    """Variables of a run by name, as views of the packed output of `livens.engine.newton.single_call.short_run`."""

    def __init__(
        self,
        names: tuple[str, ...],
        slices: Mapping[str, slice | int],
        n_rows: int,
        output: np.ndarray,
        states: np.ndarray | None,
    ) -> None:
        self._names, self._slices, self._n_rows, self._output, self._states = names, slices, n_rows, output, states

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        n_rows = self._n_rows
        if name not in self._slices:
            start = _EXTRA_COLUMNS[name] * n_rows
            part = self._output[start : start + n_rows]
            return part.view(np.int64) if name == "newton_iterations" else part
        if self._states is None:
            self._states = self._output[3 * n_rows :].reshape(n_rows, -1)
        return self._states[:, self._slices[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
