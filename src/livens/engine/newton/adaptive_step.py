"""Adaptive steps: prediction of the unknowns, attempts with decreasing sizes, and acceptance."""

from __future__ import annotations

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array
from livens.engine.newton.convergence import CONVERGED, DIVERGED, END_REACHED, ERROR_TOO_LARGE, NEEDS_REPIVOT
from livens.engine.newton.error_estimate import error_norm
from livens.engine.newton.iteration import (
    BOUND_REFRESH_INTERVAL,
    HISTORY,
    IS_LAST_STEP,
    N_ITERATIONS,
    StepKernels,
    Workspace,
    has_outgrown_group,
    solve_step,
)
from livens.engine.newton.step_size_control import (
    END_IS_NEAR,
    H_BOUNDS,
    H_LAST,
    MAX_SLOW_CHANGE,
    N_ACCEPTED,
    N_EQUAL,
    NO_SIZE_LEFT,
    STEPS_SINCE_REJECT,
    StepSizeController,
    is_accepted,
    may_move_middle,
    move_middle,
    next_attempt_size,
    on_accept,
    on_reject,
)

#: Smallest number of Newton iterations of an ill-conditioned step.
MIN_ILL_CONDITIONED_ITERATIONS = 3


@lowered
def _predict_unknowns(
    kernels: StepKernels, controller_state: F64Array, w: Workspace, s: int, h: float, is_doubling: bool
) -> bool:
    """Predict the unknowns of step s from the last steps; return False without a prediction."""
    n = w.n_unknowns
    x = w.X + (s + HISTORY) * n
    if kernels.extrapolate_stages and controller_state[N_ACCEPTED] > 0.0 and controller_state[H_LAST] > 0.0:
        w.r[0] = h / controller_state[H_LAST]
        call_kernel(kernels.extrapolate_stages, w.X + (s + HISTORY - 1) * n, w.Z + s * w.n_state, w.c, w.r, x)
        return True
    # sizes that change slowly from step to step: unknowns are smooth functions of the number of the step
    is_slow = is_doubling and abs(h - controller_state[H_LAST]) <= MAX_SLOW_CHANGE * controller_state[H_LAST]
    if controller_state[N_EQUAL] >= HISTORY and (h == controller_state[H_LAST] or is_slow):
        predictor_row = 2 * n + 4  # offset as in `livens.engine.newton.workspace_layout`
        call_kernel(kernels.predict, w.X + s * n, w.Z + s * w.n_state, w.c, w.r, w.work + predictor_row)
        return w.work[predictor_row] != 0.0
    return False


@lowered
def adaptive_step(
    kernels: StepKernels,
    t_end: float,
    land_on_end: bool,
    controller: StepSizeController,
    controller_state: F64Array,
    w: Workspace,
    s: int,
    repivot_after: int,
) -> int:
    """Solve step s with the largest size that succeeds. Returns a status code.

    The number of Newton iterations and the last-step flag are returned in `Workspace.counters`.
    """
    n = w.n_unknowns
    z, x, x_prev, t, n_iterations = w.Z + s * w.n_state, w.X + (s + HISTORY) * n, w.X + (s + HISTORY - 1) * n, w.t[s], 0
    failure_status, status, norm, h, is_first_attempt = int(DIVERGED), int(DIVERGED), 0.0, 0.0, True
    w.counters[N_ITERATIONS], w.counters[IS_LAST_STEP] = 0, 0
    while True:
        h = next_attempt_size(controller, controller_state, t, t_end, land_on_end, is_first_attempt)
        is_first_attempt = False
        if h == NO_SIZE_LEFT:
            w.counters[N_ITERATIONS] = n_iterations
            return failure_status
        if h == END_IS_NEAR:
            w.counters[N_ITERATIONS], w.counters[IS_LAST_STEP] = n_iterations, 1
            return END_REACHED
        w.c[0], w.c[1] = h, t
        predicted = _predict_unknowns(kernels, controller_state, w, s, h, controller.doubling_order > 0)
        if not predicted:
            for i in range(n):
                x[i] = x_prev[i]
            call_kernel(kernels.initial_guess, x, z, w.c, w.r, x)
        is_refresh_due = int(controller_state[N_EQUAL]) % BOUND_REFRESH_INTERVAL == 0
        h_bounds = controller_state[H_BOUNDS]
        has_new_size = abs(h - h_bounds) > MAX_SLOW_CHANGE * h_bounds if controller.doubling_order else h != h_bounds
        if is_refresh_due or not predicted or has_new_size:
            controller_state[H_BOUNDS] = h
            for i in range(n):
                w.newton_update[i] = 0.0
            call_kernel(kernels.inv_roundoff, x, z, w.c, w.newton_update, w.inv_roundoff)
        status = solve_step(kernels, w, x, z, w.Z + (s + 1) * w.n_state, predicted, repivot_after)
        n_iterations += w.counters[N_ITERATIONS]
        if status == NEEDS_REPIVOT:
            w.counters[N_ITERATIONS] = n_iterations
            return NEEDS_REPIVOT
        is_ill_conditioned = status == CONVERGED and w.counters[N_ITERATIONS] >= MIN_ILL_CONDITIONED_ITERATIONS
        if is_ill_conditioned and may_move_middle(controller, controller_state):  # noqa: SIM102  # evaluated in this order
            if has_outgrown_group(x, x_prev, x_prev + (-n), w.group_sizes, w.n_groups):
                move_middle(controller, controller_state, h)
                continue
        refine_estimate = controller_state[STEPS_SINCE_REJECT] == 0.0
        norm = 0.0
        if status == CONVERGED:
            norm = error_norm(kernels, controller, controller_state, w, s, x, refine_estimate)
        if status == CONVERGED and is_accepted(controller, controller_state, h, norm):
            break
        failure_status = ERROR_TOO_LARGE if status == CONVERGED else DIVERGED
        on_reject(controller, controller_state, h, status == CONVERGED, norm)
    is_last = h >= t_end - t
    w.t[s + 1] = t_end if is_last else t + h
    on_accept(controller, controller_state, h, norm, is_last)
    w.counters[N_ITERATIONS], w.counters[IS_LAST_STEP] = n_iterations, is_last
    return CONVERGED
