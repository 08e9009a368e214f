"""Stepper of the assembled tier for one run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
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
from livens.engine.assembled.variable_steps import AssembledSteps
from livens.engine.assembled.workspace_pool import WorkspacePool
from livens.engine.newton.convergence import CONVERGED, NEEDS_CHORD_KERNELS
from livens.engine.newton.predictors import N_HISTORY, STENCIL_LENGTH, STENCIL_WEIGHTS
from livens.engine.newton.step_size_control import FIXED_STEP, StepSizeController
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
from livens.engine.variable_steps import VariableSteps

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
        self.assembly_workspace = workspace = AssemblyWorkspace(assembly, k, n_extra)
        self.factorization = NumericFactorization(elimination, workspace, threads) if elimination is not None else None
        self.solver = AssembledSolver(workspace)
        fronts = empty_factorization() if self.factorization is None else self.factorization.arrays
        self.plan, self.n_substeps = assembly.plan, len(assembly.plan.substep_weights)
        sums = assembly.residual_gather
        self._equations, self._row_of, self._gather_kernels = sums.equations, sums.row_of, sums.compile()
        self._sum_tables = sums.tables(workspace.impulses)
        self.system = AssembledSystem(
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
                threads if self.factorization is not None else 1, workspace.tables, fronts.tables, self._sum_tables
            ),
            self._tile_tables(threads),
            fronts,
        )
        self._workspace_pool = WorkspacePool(self.allocate, compiled.cached("workspaces", list))
        compile_unit.prepare()

    def _tile_tables(self, threads: int) -> TileTables:
        """Return the tile tables; several threads or a small system use one tile."""
        e, workspace, empty = self._compiled.elimination, self.assembly_workspace, np.zeros(0, dtype=np.int64)
        if e is None or self.factorization is None or threads > 1 or e.tile_schedule.n_tiles == 1:
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
            split_tables(self.factorization.arrays.tables, front_tiles, n_tiles),
        )

    # -- stepper protocol ---------------------------------------------------------------------------------------------
    @classmethod
    def create(cls, compiled: CompiledStep, k: np.ndarray, options: StepperOptions) -> AssembledStepper:
        assert options.control is None or isinstance(options.control, StepSizeController)
        return cls(compiled, k, options.control, options.n_threads)

    def set_parameters(self, k: np.ndarray) -> None:
        self.assembly_workspace.set_parameters(k, np.flatnonzero(k != self._k))
        self._k = k

    def close(self) -> None:
        """Keep the chunk workspaces for later runs."""
        self._workspace_pool.release()

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        assert policy.stop_entry < 0, "schemes with a fictive time have no elements"
        w = self._prepare(state, n_steps)
        with team_running(self.system.team, self._run_worker):
            if policy.adaptive:
                info = self._compiled.error_estimate("assembled") if self._control.n_variables else None
                names = () if info is None else info.names
                steps = AssembledSteps(self, state, w).take(n_steps, policy, self._control, controller_state, names)
                self._count_rejections(controller_state)
                return steps
            return self._advance_fixed(state, w, n_steps, policy)

    @contextlib.contextmanager
    def variable_steps(self, state: IntegratorState, n_steps: int) -> Iterator[VariableSteps]:
        w = self._prepare(state, n_steps)
        with team_running(self.system.team, self._run_worker):
            yield AssembledSteps(self, state, w)

    def _run_worker(self, rank: int, command_index: int) -> None:
        """Run the worker loop of another thread."""
        worker_loop(self.system, rank, command_index)

    def _advance_fixed(self, state: IntegratorState, w: ChunkWorkspace, n_steps: int, policy: StepPolicy) -> StepChunk:
        n_done, failure = 0, None  # completed substeps
        while n_done < n_steps * self.n_substeps and failure is None:
            if self.factorization is not None:
                has_chord_kernels = self.factorization.chords
                status = time_loop.advance(
                    self.system, w, policy.h, policy.t_origin, policy.step0, n_done, n_steps, has_chord_kernels
                )
                n_done = int(w.counters[SUBSTEPS_DONE])
                if status == CONVERGED:
                    break
                if status == NEEDS_CHORD_KERNELS:
                    self._compile_chord_kernels()
                    continue
            self.set_substep_time(
                w, n_done, policy.h, policy.t_origin + (policy.step0 + n_done // self.n_substeps) * policy.h
            )
            failure = self.solve_with_fallback(w, n_done)
            n_done += failure is None
        n_done //= self.n_substeps
        t = policy.t_origin + np.arange(policy.step0 + 1, policy.step0 + n_done + 1) * policy.h
        return self.finished_chunk(state, w, n_done, t, np.full(n_done, policy.h), failure)

    def set_substep_time(self, w: ChunkWorkspace, r: int, h: float, t: float) -> None:
        """Set size and time of substep r of a step of size h from t."""
        substep = r % self.n_substeps
        w.c[0], w.c[1] = w.substep_weights[substep] * h, t + w.substep_offsets[substep] * h

    def _compile_chord_kernels(self) -> None:
        t_start = time.perf_counter()
        assert self.factorization is not None
        self.factorization.enable_chords()
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
        has_history = state.stepper_state.size == self.n_substeps * (self.plan.compensation_layout.size + N_LOOP_STATE)
        inputs = step_inputs(0.0, state.t, self._k)
        self._view_by_step(w.M)[0] = (
            state.stepper_state if has_history else time_loop.initial_history(self.plan, state.z, inputs)
        )
        return w

    def allocate(self, n_steps: int) -> ChunkWorkspace:
        plan = self.plan
        sizes = plan.layout.size, plan.size, self._equations.size, plan.compensation_layout.size
        return ChunkWorkspace.allocate(self._k, plan.substep_weights, *sizes, n_steps)

    def _view_by_step(self, substep_rows: np.ndarray) -> np.ndarray:
        """Return a view with one row per step of an array with one row per substep."""
        return substep_rows.reshape(-1, self.n_substeps * substep_rows.shape[1])

    def finished_chunk(
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
        states = np.ascontiguousarray(w.Z[: n_steps * self.n_substeps + 1 : self.n_substeps])
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
    def solve_with_fallback(self, w: ChunkWorkspace, r: int) -> StepFailure | None:
        """Solve a substep from other initial guesses, then with pivoting; return the failure, if any."""
        n_substeps, substep = self.n_substeps, r % self.n_substeps
        z, c, x = w.Z[r], w.c, w.X[r + N_HISTORY * n_substeps]
        failure: StepFailure | None = None
        self.solver.history = w.M[r]
        is_predicted = time_loop.predict_step(self.system, r, w)
        scheme_guess = self.plan.initial_guess(z, c, lambda y: self.assembly_workspace.residual(y, z, w.M[r], c))
        initial_guesses = [scheme_guess, w.X[r + N_HISTORY * n_substeps - n_substeps].copy()]
        if self.factorization is not None:
            for initial_guess in initial_guesses:
                status, n_iterations = self.newton_from_guess(w, r, initial_guess)
                if status == CONVERGED:
                    time_loop.finish_step(self.system, r, n_iterations, w)
                    return None
        elif is_predicted:
            initial_guesses.insert(0, x.copy())
        for initial_guess in initial_guesses:
            solution, n_iterations, failure, dx, scale = self.solver.solve(initial_guess, z, c)
            if failure is None:
                x[:], w.dx[substep], w.scale[substep] = solution, dx, scale[self._equations]
                self.assembly_workspace.residual(x, z, w.M[r], c)  # computes the impulses
                time_loop.finish_step(self.system, r, n_iterations, w)
                self.statistics.fallback_steps += 1
                return None
        return failure

    def newton_from_guess(self, w: ChunkWorkspace, r: int, initial_guess: np.ndarray) -> tuple[int, int]:
        """Solve by Newton's method on fronts from an initial guess, with updated round-off bounds."""
        assert self.factorization is not None
        x, substep = w.X[r + N_HISTORY * self.n_substeps], r % self.n_substeps
        x[:], w.dx[substep] = initial_guess, 0.0
        self.assembly_workspace.context[0] = w.M[r].ctypes.data
        update_bounds(self.system, x, w.Z[r], w.c, w.dx[substep], w.scale[substep])
        return time_loop.newton_solve(self.system, x, w.Z[r], w, substep, False), int(w.counters[ITERATIONS_TAKEN])
