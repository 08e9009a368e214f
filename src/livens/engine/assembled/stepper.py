"""Stepper of the assembled tier for one run."""

from __future__ import annotations

import functools
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.assembled import compile_unit, time_loop
from livens.engine.assembled.assembly import AssemblyWorkspace
from livens.engine.assembled.cache_blocking import TileTables, split_tables
from livens.engine.assembled.fallback_solver import AssembledSolver
from livens.engine.assembled.indexed_emitter import STOP_BLOCK
from livens.engine.assembled.numeric_factorization import NumericFactorization, empty_factorization
from livens.engine.assembled.parallel_ops import AssembledSystem, update_bounds, worker_loop
from livens.engine.assembled.thread_team import make_team, team_running
from livens.engine.assembled.time_loop import (
    ITERATIONS_TAKEN,
    N_LOOP_STATE,
    SUBSTEPS_DONE,
    ChunkWorkspace,
)
from livens.engine.assembled.workspace_pool import WorkspacePool
from livens.engine.newton.convergence import CONVERGED, NEEDS_CHORD_KERNELS
from livens.engine.newton.predictors import N_HISTORY, STENCIL_LENGTH, STENCIL_WEIGHTS
from livens.engine.newton.step_size_control import (
    FIXED_STEP,
    MAX_STEPS_WITHOUT_ESTIMATE,
    MIN_ULPS,
    NOT_ESTIMATED,
    TWO_STEPS_LEFT,
    StepSizeController,
    clip_to_end,
    double_step_factor,
    is_estimate_due,
    max_grouped_error,
    on_accept,
    on_reject,
    weighted_error,
)
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import (
    IntegratorState,
    StepChunk,
    StepFailure,
    Stepper,
    StepperOptions,
    step_inputs,
    truncate_at_nonfinite,
)

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep


class AssembledStepper(Stepper):
    """Stepper for large systems: element kernels over index maps, and elimination by front classes.

    Steps that static pivots do not solve are solved by SuperLU with pivoting; otherwise the failure is reported.
    """

    def __init__(
        self, compiled: CompiledStep, k: np.ndarray, control: StepSizeController | None = None, threads: int = 1
    ) -> None:
        super().__init__(compiled.layout)
        self._compiled = compiled
        self._control = FIXED_STEP if control is None else control
        self._k = k
        assembly, elimination = compiled.assembly, compiled.elimination
        n_extra = elimination.pool_size - int(assembly.pool_sizes[0]) if elimination is not None else 0
        self._workspace = workspace = AssemblyWorkspace(assembly, k, n_extra)
        self._factorization = NumericFactorization(elimination, workspace, threads) if elimination is not None else None
        self._solver = AssembledSolver(workspace)
        fronts = empty_factorization() if self._factorization is None else self._factorization.arrays
        self._plan, self._n_substeps = assembly.plan, len(assembly.plan.substep_weights)
        sums = assembly.residual_gather
        self._equations, self._row_of, self._gather_kernels = sums.equations, sums.row_of, sums.compile()
        self._sum_tables = sums.tables(workspace.impulses)
        self._system = AssembledSystem(
            assembly.plan.size,
            assembly.addresses,
            workspace.context,
            workspace.pool,
            workspace.roundoff_terms,
            workspace.state_terms,
            workspace.uncertainties,
            workspace.group_sizes.size,
            workspace.group_sizes,
            assembly.residual_gather.equations.size,
            np.array(
                [
                    [code.address, batch.first_row]
                    for code, batch in zip(self._gather_kernels, sums.batches, strict=True)
                ]
            ),
            assembly.bound_sums.starts,
            assembly.bound_sums.positions,
            assembly.state_sums.starts,
            assembly.state_sums.positions,
            assembly.summed_entries.size,
            assembly.summed_entries,
            assembly.zero_entries.size,
            assembly.zero_entries,
            STENCIL_WEIGHTS,
            STENCIL_LENGTH,
            workspace.impulses,
            assembly.first_multiplier,
            assembly.has_increment_map,
            make_team(
                threads if self._factorization is not None else 1, workspace.tables, fronts.tables, self._sum_tables
            ),
            self._tile_tables(threads),
            fronts,
        )
        self._workspace_pool = WorkspacePool(self._allocate, compiled.cached("rooms", list))
        compile_unit.prepare()

    def _tile_tables(self, threads: int) -> TileTables:
        """Return the tile tables; several threads or a small system use one tile."""
        e, workspace, empty = self._compiled.elimination, self._workspace, np.zeros(0, dtype=np.int64)
        if e is None or self._factorization is None or threads > 1 or e.tile_schedule.n_tiles == 1:
            return TileTables(1, empty, empty, empty)
        n_tiles = e.tile_schedule.n_tiles
        element_tiles = [e.tile_schedule.initial_tiles(int(blocks)) for blocks in workspace.tables[:, STOP_BLOCK]]
        front_tiles = [
            e.front_tiles[batch.front_class.index][batch.first_block : batch.stop_block] for batch in e.batches
        ]
        return TileTables(
            n_tiles,
            split_tables(workspace.tables, element_tiles, n_tiles),
            split_tables(self._sum_tables, e.sum_tiles, n_tiles),
            split_tables(self._factorization.arrays.tables, front_tiles, n_tiles),
        )

    # -- stepper protocol ---------------------------------------------------------------------------------------------
    @classmethod
    def create(cls, compiled: CompiledStep, k: np.ndarray, options: StepperOptions) -> AssembledStepper:
        assert options.control is None or isinstance(options.control, StepSizeController)
        return cls(compiled, k, options.control, options.n_threads)

    def set_parameters(self, k: np.ndarray) -> None:
        self._workspace.set_parameters(k, np.flatnonzero(k != self._k))
        self._k = k

    def close(self) -> None:
        """Keep the chunk workspaces for later runs."""
        self._workspace_pool.release()

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        assert policy.stop_entry < 0, "schemes with a fictive time have no elements"
        w = self._prepare(state, n_steps)
        with team_running(self._system.team, self._run_worker):
            if policy.adaptive:
                return self._advance_adaptive(state, w, n_steps, policy, controller_state)
            return self._advance_fixed(state, w, n_steps, policy)

    def _run_worker(self, rank: int, command_index: int) -> None:
        """Run the worker loop of another thread."""
        worker_loop(self._system, rank, command_index)

    def _advance_fixed(self, state: IntegratorState, w: ChunkWorkspace, n_steps: int, policy: StepPolicy) -> StepChunk:
        n_done, failure = 0, None  # completed substeps
        while n_done < n_steps * self._n_substeps and failure is None:
            if self._factorization is not None:
                has_chord_kernels = self._factorization.chords
                status = time_loop.advance(
                    self._system, w, policy.h, policy.t_origin, policy.step0, n_done, n_steps, has_chord_kernels
                )
                n_done = int(w.counters[SUBSTEPS_DONE])
                if status == CONVERGED:
                    break
                if status == NEEDS_CHORD_KERNELS:
                    self._compile_chord_kernels()
                    continue
            self._set_substep_time(
                w, n_done, policy.h, policy.t_origin + (policy.step0 + n_done // self._n_substeps) * policy.h
            )
            failure = self._solve_with_fallback(w, n_done)
            n_done += failure is None
        n_done //= self._n_substeps
        t = policy.t_origin + np.arange(policy.step0 + 1, policy.step0 + n_done + 1) * policy.h
        return self._chunk(state, w, n_done, t, np.full(n_done, policy.h), failure)

    def _set_substep_time(self, w: ChunkWorkspace, r: int, h: float, t: float) -> None:
        """Set size and time of substep r of a step of size h from t."""
        substep = r % self._n_substeps
        w.c[0], w.c[1] = w.substep_weights[substep] * h, t + w.substep_offsets[substep] * h

    def _compile_chord_kernels(self) -> None:
        t_start = time.perf_counter()
        assert self._factorization is not None
        self._factorization.enable_chords()
        self.statistics.compile_s += time.perf_counter() - t_start

    # -- arrays -------------------------------------------------------------------------------------------------------
    def _prepare(self, state: IntegratorState, n_steps: int) -> ChunkWorkspace:
        """Return a workspace for `n_steps` steps, initialised with the integrator state."""
        w, is_initialized = self._workspace_pool.acquire(state, n_steps)
        if is_initialized:
            w.c[2:] = self._k
            return w
        w.Z[0], w.dx.ravel()[:], w.c[2:] = state.z, state.newton_update, self._k
        np.take(state.inv_roundoff.reshape(w.dx.shape), self._equations, axis=1, out=w.scale)
        self._view_by_step(w.X)[:N_HISTORY] = (
            state.unknown_history if len(state.unknown_history) == N_HISTORY else state.unknown_history[-1]
        )
        has_history = state.stepper_state.size == self._n_substeps * (
            self._plan.compensation_layout.size + N_LOOP_STATE
        )
        inputs = step_inputs(0.0, state.t, self._k)
        self._view_by_step(w.M)[0] = (
            state.stepper_state if has_history else time_loop.initial_history(self._plan, state.z, inputs)
        )
        return w

    def _allocate(self, n_steps: int) -> ChunkWorkspace:
        plan = self._plan
        sizes = plan.layout.size, plan.size, self._equations.size, plan.compensation_layout.size
        return ChunkWorkspace.allocate(self._k, plan.substep_weights, *sizes, n_steps)

    def _view_by_step(self, substep_rows: np.ndarray) -> np.ndarray:
        """Return a view with one row per step of an array with one row per substep."""
        return substep_rows.reshape(-1, self._n_substeps * substep_rows.shape[1])

    def _chunk(
        self,
        initial: IntegratorState,
        w: ChunkWorkspace,
        n_steps: int,
        t: np.ndarray,
        step_sizes: np.ndarray,
        failure: StepFailure | None = None,
        reached_end: bool = False,
    ) -> StepChunk:
        t_final, X, M = float(t[-1]) if n_steps else initial.t, self._view_by_step(w.X), self._view_by_step(w.M)
        states = np.ascontiguousarray(w.Z[: n_steps * self._n_substeps + 1 : self._n_substeps])
        scale = np.take(w.scale, self._row_of, axis=1).ravel()
        final = IntegratorState(
            t_final, states[-1], X[n_steps : n_steps + N_HISTORY], w.dx.ravel().copy(), scale, M[n_steps]
        )
        self._workspace_pool.mark_end(final, n_steps)
        times, X, M = np.concatenate([[initial.t], t]), X[N_HISTORY : N_HISTORY + n_steps], M[1 : n_steps + 1]
        chunk = StepChunk(
            times,
            states,
            step_sizes,
            X,
            w.newton_iterations[:n_steps],
            initial,
            final,
            failure,
            reached_end,
            stepper_states=M,
        )
        return truncate_at_nonfinite(chunk, self._layout)

    # -- single steps and substeps ------------------------------------------------------------------------------------
    def _solve_with_fallback(self, w: ChunkWorkspace, r: int) -> StepFailure | None:
        """Solve a substep from other initial guesses, then with pivoting; return the failure, if any."""
        n_substeps, substep = self._n_substeps, r % self._n_substeps
        z, c, x = w.Z[r], w.c, w.X[r + N_HISTORY * n_substeps]
        failure: StepFailure | None = None
        self._solver.history = w.M[r]
        is_predicted = time_loop.predict_step(self._system, r, w)
        scheme_guess = self._plan.initial_guess(z, c, lambda y: self._workspace.residual(y, z, w.M[r], c))
        initial_guesses = [scheme_guess, w.X[r + N_HISTORY * n_substeps - n_substeps].copy()]
        if self._factorization is not None:
            for initial_guess in initial_guesses:
                status, n_iterations = self._newton_from_guess(w, r, initial_guess)
                if status == CONVERGED:
                    time_loop.finish_step(self._system, r, n_iterations, w)
                    return None
        elif is_predicted:
            initial_guesses.insert(0, x.copy())
        for initial_guess in initial_guesses:
            solution, n_iterations, failure, dx, scale = self._solver.solve(initial_guess, z, c)
            if failure is None:
                x[:], w.dx[substep], w.scale[substep] = solution, dx, scale[self._equations]
                self._workspace.residual(x, z, w.M[r], c)  # computes the impulses
                time_loop.finish_step(self._system, r, n_iterations, w)
                self.statistics.fallback_steps += 1
                return None
        return failure

    def _newton_from_guess(self, w: ChunkWorkspace, r: int, initial_guess: np.ndarray) -> tuple[int, int]:
        """Solve by Newton's method on fronts from an initial guess, with updated round-off bounds."""
        assert self._factorization is not None
        x, substep = w.X[r + N_HISTORY * self._n_substeps], r % self._n_substeps
        x[:], w.dx[substep] = initial_guess, 0.0
        self._workspace.context[0] = w.M[r].ctypes.data
        update_bounds(self._system, x, w.Z[r], w.c, w.dx[substep], w.scale[substep])
        return time_loop.newton_solve(self._system, x, w.Z[r], w, substep, False), int(w.counters[ITERATIONS_TAKEN])

    # -- adaptive steps -----------------------------------------------------------------------------------------------
    def _advance_adaptive(
        self, state: IntegratorState, w: ChunkWorkspace, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        """Take adaptive steps, one call per step; see the time loop in `livens.engine`."""
        times = [state.t]
        failure, reached_end, n_done = None, False, 0
        while n_done < n_steps and failure is None and not reached_end:
            outcome = self._adaptive_step(w, n_done, times[-1], policy, controller_state)
            if isinstance(outcome, StepFailure):
                failure = outcome
                break
            t_next, reached_end = outcome
            if t_next is not None:
                times.append(t_next)
                n_done += 1
        self._count_rejections(controller_state)
        return self._chunk(state, w, n_done, np.array(times[1:]), np.diff(times), failure, reached_end)

    def _adaptive_step(
        self, w: ChunkWorkspace, s: int, t: float, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepFailure | tuple[float | None, bool]:
        """Take step s with the largest size that succeeds; return its end time, if any, and whether it is the last."""
        control, controller = self._control, controller_state[0]
        shortest = max(control.h_min, MIN_ULPS * abs(t))
        if not controller["size"] >= shortest:
            controller_state["size"] = shortest
        while True:
            h = min(float(controller["size"]), control.h_max)
            if not h >= shortest:
                reason = f"no step of at least {shortest:.3g} succeeded"
                first_substep = s * self._n_substeps
                self._solver.history = w.M[first_substep]
                return self._solver.describe_failure(
                    w.X[first_substep + N_HISTORY * self._n_substeps], w.Z[first_substep], w.c, w.dx[0], reason
                )
            t_remaining = policy.t_end - t
            if t_remaining < TWO_STEPS_LEFT * h:
                if not policy.land_on_end:
                    return None, True
                h = clip_to_end(
                    h, t_remaining, controller["last"] if controller["since_failure"] > 0.0 else 0.0, control.h_max
                )
            is_last = h >= t_remaining
            norm = self._try_step(w, s, h, t, controller_state)
            if norm is not None and norm <= 1.0:
                break
            on_reject(control, controller_state, h, norm is not None, 0.0 if norm is None else norm)
        on_accept(control, controller_state, h, norm, is_last)
        return (policy.t_end if is_last else t + h), is_last

    def _try_step(self, w: ChunkWorkspace, s: int, h: float, t: float, controller_state: np.ndarray) -> float | None:
        """Solve step s with size h; return the error estimate relative to the tolerance, None if it failed."""
        for r in range(s * self._n_substeps, (s + 1) * self._n_substeps):
            self._set_substep_time(w, r, h, t)
            if not self._try_substep(w, r):
                return None
        if not self._control.atol.size:
            return 0.0
        if not is_estimate_due(self._control, controller_state):
            return NOT_ESTIMATED
        if self._control.doubling_order:
            return self._double_step_error(w, s, h, t, controller_state)
        if self._plan.error_estimate is None:
            return 0.0
        error, size = self._plan.error_estimate(w.X[s + N_HISTORY], w.Z[s], w.c)
        return float(np.max(np.abs(error) / (self._control.atol + self._control.rtol * size), initial=0.0))

    def _double_step_error(self, w: ChunkWorkspace, s: int, h: float, t: float, controller_state: np.ndarray) -> float:
        """Return the error of step s by comparison with a double step, as the fused tier does."""
        control, h_last = self._control, float(controller_state[0]["last"])
        if h_last <= 0.0 or controller_state[0]["steps"] <= 0.0:
            return NOT_ESTIMATED
        n, trial = control.n_variables, self._trial
        trial.c[2:] = w.c[2:]
        x, x_last = w.X[s + N_HISTORY], w.X[s + N_HISTORY - 1]
        trial.Z[0], trial.M[0], trial.c[:2] = w.Z[s], w.M[s], (-h_last, t)
        self._workspace.residual(x_last, trial.Z[0], trial.M[0], trial.c)  # computes the impulses
        trial.X[N_HISTORY] = x_last
        time_loop.finish_step(self._system, 0, 0, trial)
        q_last = trial.Z[1, :n].copy()
        trial.Z[0], trial.M[0], trial.c[:2] = w.Z[s + 1], w.M[s + 1], (-(h + h_last), t + h)
        if not self._solve_trial(trial, (h * x + h_last * x_last) / (h + h_last)):
            return math.nan
        factor = double_step_factor(control.doubling_order, h, h_last)
        estimate = np.concatenate(
            [factor * (trial.Z[1, :n] - q_last), np.maximum(np.abs(w.Z[s, :n]), np.abs(w.Z[s + 1, :n]))]
        )
        error = max_grouped_error(control, estimate, h)
        if math.isnan(error) and controller_state[0]["since_estimate"] < MAX_STEPS_WITHOUT_ESTIMATE:
            return NOT_ESTIMATED
        return weighted_error(control, controller_state, estimate, (q_last, w.Z[s], w.Z[s + 1]), error, h)

    def _solve_trial(self, trial: ChunkWorkspace, initial_guess: np.ndarray) -> bool:
        """Solve the first step of a trial workspace; return True if it succeeded."""
        if self._factorization is not None:
            status, _ = self._newton_from_guess(trial, 0, initial_guess)
            if status == CONVERGED:
                time_loop.finish_step(self._system, 0, 0, trial)
                return True
        self._solver.history = trial.M[0]
        solution, _, failure, _, _ = self._solver.solve(initial_guess, trial.Z[0], trial.c)
        if failure is not None:
            return False
        trial.X[N_HISTORY] = solution
        self._workspace.residual(solution, trial.Z[0], trial.M[0], trial.c)
        time_loop.finish_step(self._system, 0, 0, trial)
        return True

    @functools.cached_property
    def _trial(self) -> ChunkWorkspace:
        """Workspace of one step for error estimates."""
        return self._allocate(1)

    def _try_substep(self, w: ChunkWorkspace, r: int) -> bool:
        """Solve substep r with the size and time in c; return True if it succeeded."""
        is_predicted = time_loop.predict_step(self._system, r, w)
        x, z = w.X[r + N_HISTORY * self._n_substeps], w.Z[r]
        if self._factorization is not None:
            initial_guess = x.copy() if is_predicted else self._plan.initial_guess(
                z, w.c, lambda y: self._workspace.residual(y, z, w.M[r], w.c)
            )  # fmt: skip
            status, n_iterations = self._newton_from_guess(w, r, initial_guess)
            if status == CONVERGED:
                time_loop.finish_step(self._system, r, n_iterations, w)
                return True
        return self._solve_with_fallback(w, r) is None
