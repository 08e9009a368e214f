"""Compiled time loop of the assembled tier."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from livens.engine.arrays import aligned_zeros
from livens.engine.assembled.assembly import INCREMENT_MAP, NEWTON, POOL_OFFSET, RESIDUAL, STATE_OFFSET
from livens.engine.assembled.numeric_factorization import FACTOR, FACTOR_STORE, FORWARD
from livens.engine.assembled.parallel_ops import (
    AssembledSystem,
    apply_update,
    factor_tiled,
    gather_residual,
    predict_unknowns,
    run_element_kernels,
    scaled_max_norm,
    solve,
    solve_tiled,
    update_bounds,
    update_state,
)
from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import address_of
from livens.engine.lowering.types import F64Array, I64Array, Struct
from livens.engine.newton.convergence import (
    CONTINUE,
    CONVERGED,
    DIVERGED,
    MAX_CURVATURE_RESIDUAL,
    MAX_NEWTON_ITERATIONS,
    NEEDS_CHORD_KERNELS,
    explained_by_curvature,
    newton_decision,
    stagnates,
)
from livens.engine.newton.iteration import BOUND_REFRESH_INTERVAL, within_rounding_of_all_equations
from livens.engine.newton.predictors import N_HISTORY, STENCILS, best_stencil
from livens.engine.newton.step_size_control import MAX_SLOW_CHANGE
from livens.schemes.discretization.assembly_plan import AssemblyPlan

#: Number of stagnating Newton iterations after which the iteration has failed.
_MAX_STALLS = 6
#: Number of consecutive steps with more than one Newton iteration after which chord iterations are used.
_SLOW_STEPS_BEFORE_CHORD = 4
#: Interval in steps of the selection of the predictor stencil, and interval for steps with several iterations.
_SELECT_INTERVAL, _SHORT_SELECT_INTERVAL = 16, 4
#: Entries of the loop's state after the history of the equations: number of steps of equal size, and this size;
#: stencils of the predictors of coordinates and multipliers; Newton iterations of the last step; consecutive steps with
#: more than one iteration; whether factors are stored. The order is part of the checkpoint format.
N_EQUAL, H, PREDICTOR_Q, PREDICTOR_LAMBDA, N_ITERATIONS, N_SLOW, KEEP_FACTORS, N_LOOP_STATE = range(8)


#: Entries of the counters of a call: completed substeps, and Newton iterations of the last substep.
SUBSTEPS_DONE, ITERATIONS_TAKEN, _N_COUNTERS = range(3)


@dataclass(frozen=True, eq=False)
class ChunkWorkspace(Struct):
    """Workspace of a chunk of steps. A step consists of one substep, or of several for compositions, whose sizes are
    `substep_weights` times the step size and which start at `substep_offsets` times the step size.

    Substep r goes from ``Z[r]`` to ``Z[r+1]`` and stores its unknowns in ``X[r+N_HISTORY*n_substeps]``. ``M[r]`` is the
    history of the equations. From entry `loop_state_offset` on, it contains the state of the loop for the same substep
    of the next step. Newton updates `dx` and bounds `scale` are stored for each substep.
    """

    c: F64Array
    n_substeps: int
    substep_weights: F64Array
    substep_offsets: F64Array
    n_state: int
    Z: F64Array
    size: int
    X: F64Array
    history_width: int
    M: F64Array
    loop_state_offset: int
    newton_iterations: I64Array
    dx: F64Array
    n_rows: int
    scale: F64Array
    r: F64Array
    work: F64Array
    scratch: F64Array  # two more buffers like r
    counters: I64Array

    @classmethod
    def allocate(
        cls,
        k: np.ndarray,
        weights: tuple[float, ...],
        n_state: int,
        n_unknowns: int,
        n_rows: int,
        n_history: int,
        n_steps: int,
    ) -> ChunkWorkspace:
        """Allocate the workspace of a number of steps."""
        n_substeps = len(weights)
        return cls(
            np.concatenate([[0.0, 0.0], k]),
            n_substeps,
            np.array(weights),
            np.concatenate([[0.0], np.cumsum(weights)[:-1]]),
            n_state,
            np.zeros((n_steps * n_substeps + 1, n_state)),
            n_unknowns,
            np.zeros(((n_steps + N_HISTORY) * n_substeps, n_unknowns)),
            n_history + N_LOOP_STATE,
            np.zeros(((n_steps + 1) * n_substeps, n_history + N_LOOP_STATE)),
            n_history,
            np.zeros(n_steps, dtype=np.int64),
            np.zeros((n_substeps, n_unknowns)),
            n_rows,
            np.zeros((n_substeps, n_rows)),
            aligned_zeros(n_rows),
            np.zeros(n_substeps * n_unknowns + len(STENCILS)),
            np.zeros(2 * n_rows),
            np.zeros(_N_COUNTERS, dtype=np.int64),
        )

    def view_from(self, step: int) -> ChunkWorkspace:
        """Return a view of the workspace that starts at a step."""
        first_substep = step * self.n_substeps
        return dataclasses.replace(self, Z=self.Z[first_substep:], X=self.X[first_substep:], M=self.M[first_substep:])


def initial_history(plan: AssemblyPlan, z: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the history before the first step for all substeps, with an empty loop state."""
    history = np.zeros((len(plan.substep_weights), plan.compensation_layout.size + N_LOOP_STATE))
    history[0, : plan.compensation_layout.size] = plan.initial_compensation(z, np.concatenate([[0.0], c[1:]]))
    return history.ravel()


@lowered
def _residual(p: AssembledSystem, x: F64Array, z: F64Array, c: F64Array, r: F64Array, scale: F64Array) -> float:
    """Evaluate the residual at x and return its scaled maximum norm."""
    if p.tiles.n_tiles > 1:
        return factor_tiled(p, RESIDUAL, -1, x, z, c, r, scale)
    run_element_kernels(p, RESIDUAL, POOL_OFFSET, x, z, c, p.pool)
    return gather_residual(p, r, scale)


@lowered
def _within_curvature_bound(
    p: AssembledSystem, x: F64Array, z: F64Array, w: ChunkWorkspace, dx: F64Array, scale: F64Array
) -> bool:
    """Return True if the second-order term of the last Newton update explains a stagnating residual."""
    x_trial, r_plus, r_minus = w.work, w.scratch, w.scratch + w.n_rows
    for i in range(w.size):
        x_trial[i] = x[i] + dx[i]
    _residual(p, x_trial, z, w.c, r_plus, scale)
    for i in range(w.size):
        x_trial[i] = x[i] - dx[i]
    _residual(p, x_trial, z, w.c, r_minus, scale)
    return explained_by_curvature(w.r, r_plus, r_minus, scale, w.n_rows)


@lowered
def newton_solve(p: AssembledSystem, x: F64Array, z: F64Array, w: ChunkWorkspace, substep: int, keep: bool) -> int:
    """Solve one substep by Newton's method from the initial guess x to round-off level; return the status.

    With `keep`, iterations after the first reuse its factors as long as each gains a digit (chord iteration).
    """
    dx, scale = w.dx + substep * w.size, w.scale + substep * w.n_rows
    norm_prev, norm_prev2, first_norm, stalls = np.inf, np.inf, 0.0, 0
    refactor = True
    for iteration in range(1, MAX_NEWTON_ITERATIONS + 1):
        w.counters[ITERATIONS_TAKEN] = iteration
        if refactor:
            operation = FACTOR_STORE if keep else FACTOR
            if p.tiles.n_tiles > 1:
                norm_initial = factor_tiled(p, NEWTON, operation, x, z, w.c, w.r, scale)
                solve_tiled(p, operation, w.r, dx)
            else:
                run_element_kernels(p, NEWTON, POOL_OFFSET, x, z, w.c, p.pool)
                norm_initial = gather_residual(p, w.r, scale)
                solve(p, operation, w.r, dx)
            if iteration == 1:
                first_norm = norm_initial
        else:
            solve(p, FORWARD, w.r, dx)
        if p.has_increment_map:
            p.context[3] = address_of(dx)
            run_element_kernels(p, INCREMENT_MAP, STATE_OFFSET, x, z, w.c, p.state_terms)
        apply_update(p, x, dx)
        norm = _residual(p, x, z, w.c, w.r, scale)
        # stagnation or near convergence: update the round-off bounds, which costs a third of an iteration
        if stagnates(norm, norm_prev) or (iteration == 1 and 1.0 < norm < 1e4):
            stalls += iteration > 1
            update_bounds(p, x, z, w.c, dx, scale)
            norm = scaled_max_norm(p, w.r, scale)
            if stalls > 1 and within_rounding_of_all_equations(w.r, scale, w.n_rows):
                return CONVERGED
            if stalls > 1 and norm <= MAX_CURVATURE_RESIDUAL and _within_curvature_bound(p, x, z, w, dx, scale):
                _residual(p, x, z, w.c, w.r, scale)  # restores the terms needed by the final state
                return CONVERGED
        if iteration == 2:
            norm_prev2 = first_norm
        status = newton_decision(
            norm, norm_prev, norm_prev2, iteration, not refactor, stalls, _MAX_STALLS, 0.0, MAX_NEWTON_ITERATIONS + 1
        )
        if status != CONTINUE:
            return status
        refactor = not keep or norm > 0.1 * (first_norm if iteration == 1 else norm_prev)
        norm_prev2, norm_prev = norm_prev, norm
    return DIVERGED


@lowered
def finish_step(p: AssembledSystem, r: int, n_iterations: int, w: ChunkWorkspace) -> None:
    """Compute the final state of substep r, and update the predictor selection and the loop state."""
    stride = w.n_substeps * w.size
    x = w.X + (r * w.size + N_HISTORY * stride)
    history, next_history = w.M + r * w.history_width, w.M + (r + 1) * w.history_width
    update_state(p, x, w.Z + r * w.n_state, history, w.c, w.Z + (r + 1) * w.n_state, next_history)
    history, next_history = (
        history + w.loop_state_offset,
        w.M + ((r + w.n_substeps) * w.history_width + w.loop_state_offset),
    )
    for i in range(N_LOOP_STATE):
        next_history[i] = history[i]
    n_equal = 0 if has_new_size(w.c[0], history[H]) else int(history[N_EQUAL])
    n_equal_next = n_equal + 1
    if n_equal > 0 and (
        n_equal < N_HISTORY
        or n_equal_next % _SELECT_INTERVAL == 0
        or (n_iterations > 1 and n_equal_next % _SHORT_SELECT_INTERVAL == 0)
    ):
        first_multiplier, n_history = p.first_multiplier, min(n_equal, N_HISTORY)
        next_history[PREDICTOR_Q] = best_stencil(
            x, stride, p.stencil_weights, p.stencil_lengths, n_history, 0, first_multiplier, w.work
        )
        next_history[PREDICTOR_LAMBDA] = best_stencil(
            x, stride, p.stencil_weights, p.stencil_lengths, n_history, first_multiplier, w.size, w.work
        )
    next_history[N_EQUAL], next_history[H] = n_equal_next, w.c[0]
    next_history[N_ITERATIONS] = n_iterations
    next_history[N_SLOW] = history[N_SLOW] + 1.0 if n_iterations > 1 and n_equal >= N_HISTORY else 0.0
    step = r // w.n_substeps
    w.newton_iterations[step] = n_iterations if r == step * w.n_substeps else w.newton_iterations[step] + n_iterations


@lowered
def has_new_size(h: float, h_last: float) -> bool:
    """Return True if a step is not extrapolated from the last ones, because its size differs too much from theirs."""
    return abs(h - h_last) > MAX_SLOW_CHANGE * abs(h_last)


@lowered
def predict_step(p: AssembledSystem, r: int, w: ChunkWorkspace) -> bool:
    """Predict the unknowns of substep r; return False if there is no history to extrapolate."""
    stride = w.n_substeps * w.size
    history, x = w.M + r * w.history_width, w.X + (r * w.size + N_HISTORY * stride)
    p.context[0] = address_of(history)
    loop_state = history + w.loop_state_offset
    if loop_state[N_EQUAL] == 0.0 or has_new_size(w.c[0], loop_state[H]):
        previous = x + (-stride)
        for i in range(w.size):
            x[i] = previous[i]
        return False
    predict_unknowns(p, x, stride, int(loop_state[PREDICTOR_Q]), int(loop_state[PREDICTOR_LAMBDA]))
    return True


@lowered
def advance(
    p: AssembledSystem,
    w: ChunkWorkspace,
    h: float,
    t_origin: float,
    step0: int,
    first_substep: int,
    n_steps: int,
    has_chord_kernels: bool,
) -> int:
    """Advance a chunk up to step `n_steps` from substep `first_substep` on; return the status."""
    for r in range(first_substep, n_steps * w.n_substeps):
        w.counters[SUBSTEPS_DONE] = r
        s = r // w.n_substeps
        substep, step_index = r - s * w.n_substeps, step0 + s
        w.c[0] = w.substep_weights[substep] * h
        w.c[1] = t_origin + step_index * h + w.substep_offsets[substep] * h
        loop_state = w.M + (r * w.history_width + w.loop_state_offset)
        if loop_state[N_SLOW] >= _SLOW_STEPS_BEFORE_CHORD:
            loop_state[KEEP_FACTORS] = 1.0
        keeps_factors = loop_state[KEEP_FACTORS] != 0.0
        if keeps_factors and not has_chord_kernels:
            return NEEDS_CHORD_KERNELS
        is_predicted = predict_step(p, r, w)
        x, z = w.X + (r + N_HISTORY * w.n_substeps) * w.size, w.Z + r * w.n_state
        if step_index % BOUND_REFRESH_INTERVAL == 0 or not is_predicted:
            dx = w.dx + substep * w.size
            if not is_predicted:
                for i in range(w.size):
                    dx[i] = 0.0
            update_bounds(p, x, z, w.c, dx, w.scale + substep * w.n_rows)
        # dense fronts always store their factors
        keep = p.fronts.dense.count > 0 or (keeps_factors and loop_state[N_ITERATIONS] > 1.0)
        status = newton_solve(p, x, z, w, substep, keep)
        if status != CONVERGED:
            return status
        finish_step(p, r, w.counters[ITERATIONS_TAKEN], w)
    w.counters[SUBSTEPS_DONE] = n_steps * w.n_substeps
    return CONVERGED
