"""Step-size control: error estimates, rejection, predictive and digital-filter controllers, and the adaptive step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I64Array, Struct
from livens.engine.newton.convergence import CONVERGED, DIVERGED, END_REACHED, ERROR_TOO_LARGE, NEEDS_REPIVOT
from livens.engine.newton.iteration import (
    HISTORY,
    IS_LAST_STEP,
    N_ITERATIONS,
    StepKernels,
    Workspace,
    solve_step,
)

#: Safety factor of the step size that would just meet the tolerance.
SAFETY = 0.95
#: Scaled error that digital-filter controllers aim at; steps with a scaled error above 1 are rejected.
SETPOINT = 0.5
#: Smallest factor by which one rejection shortens a step.
MIN_FACTOR = 0.1
#: Growth factor and number of start-up steps after an automatic initial step size.
STARTUP_MAX_GROWTH, STARTUP_STEPS = 1000.0, 4
#: Remaining step count below which the last steps are fitted to the end; two steps up to rounding remain two.
TWO_STEPS_LEFT = 2.0 - 1e-10
#: Number of equal steps between evaluations of the round-off bounds; residuals above their bound also trigger one.
BOUND_REFRESH_INTERVAL = 64
#: Largest relative change of successive step sizes across which unknowns are extrapolated as if steps were equal, and
#: of the step size since the last evaluation of the round-off bounds.
MAX_SLOW_CHANGE = 0.25
#: Smallest factor of the step size that is spread over the steps until the next estimate; smaller ones act at once.
MIN_SPREAD_FACTOR = 0.5
#: Largest number of steps between estimates by a double step, as a multiple of the smallest one, and change of the
#: logarithm of the step size in that many steps that leads to more frequent estimates.
MAX_INTERVAL, INTERVAL_CHANGE = 4.0, 0.2
#: Largest number of steps whose estimates by a double step may fail.
MAX_STEPS_WITHOUT_ESTIMATE = 64.0
#: Speed at rest relative to the reference speed, and largest ratio of the step sizes of the reference speed and of the
#: current phase, in the weights of errors by a double step.
REST_SPEED, MAX_PHASE_RATIO = 1e-2, 27.0
#: Smallest step size relative to the time, in units in the last place.
MIN_ULPS = 16.0 * 2.0**-52


#: Weights (b1, b2, b3, a2, a3) of the controllers (Soederlind 2003): the next step is ``h_n`` times
#: ``(e_n^-b1 e_{n-1}^-b2 e_{n-2}^-b3)^(1/k) (h_n/h_{n-1})^-a2 (h_{n-1}/h_{n-2})^-a3``, with errors relative to the
#: tolerance. The predictive controller (Gustafsson) is also bounded by the elementary one.
CONTROLLERS = {
    "predictive": (2.0, -1.0, 0.0, -1.0, 0.0),
    "H211b": (0.25, 0.25, 0.0, 0.25, 0.0),
    "H0321": (1.25, 0.5, -0.75, -0.25, -0.75),
}


@dataclass(frozen=True, eq=False)
class StepSizeController(Struct):
    """Parameters of the step-size controller; see `livens.StepControl`."""

    h_min: float
    h_max: float
    reject_factor: float
    max_growth: float
    steps_before_growth: int  # number of accepted steps before a step grows, and between estimates by a double step
    atol: F64Array  # absolute error tolerances per step, one for each variable; empty without an error estimate
    rtol: F64Array
    h_powers: F64Array  # the error of variable i is multiplied by h ** h_powers[i]
    error_order: int  # order of the error estimate
    has_filter: bool  # the estimate is the solution of linear equations
    doubling_order: int = 0  # order of the scheme if the error is estimated by a double step; else 0
    scale_groups: I64Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # group of every variable
    filter_weights: F64Array = field(default_factory=lambda: np.array(CONTROLLERS["predictive"]))
    span: float = 1.0  # time span of the run
    tolerance: float = 1.0  # smallest relative tolerance
    n_variables: int = field(init=False)  # number of variables with a tolerance

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_variables", self.atol.size)
        super().__post_init__()


#: Controller of fixed steps.
FIXED_STEP = StepSizeController(0.0, np.inf, 0.5, 2.0, 1, np.zeros(0), np.zeros(0), np.zeros(0), 1, False)
#: State of the step-size controller. The order of the fields is part of the checkpoint format.
CONTROLLER_STATE = np.dtype(
    [
        (name, "f8")
        for name in (
            "size",  # size of the next step
            "since_failure",  # steps since the last rejection
            "failures",  # number of rejections
            "equal",  # number of last steps of equal size; with estimates by a double step, of sizes that change slowly
            "last",  # size of the last step
            "norm",  # scaled error of the last estimate
            "steps",  # number of steps
            "unsolved",  # number of rejections by Newton failure
            "free",  # remaining start-up steps with free growth
            "estimated_before",  # size of the step of the estimate before the last one
            "norm_before",  # scaled error of that estimate
            "estimated",  # size of the step of the last estimate
            "since_estimate",  # steps since the last estimate
            "ratio",  # ratio of successive step sizes until the next estimate by a double step; 0 for equal steps
            "bounds",  # size of the step for which the round-off bounds were evaluated
            "interval",  # number of steps between estimates by a double step; 0 for the smallest one
            "local_error",  # error of the last estimate by a double step, relative to the tolerance per unit of time
            "reference_speed",  # relative speed of the motion at which errors have the weight 1; 0 before an estimate
        )
    ]
)


#: Indices of the fields.
(
    _H_NEXT,
    _STEPS_SINCE_REJECT,
    _N_REJECTED,
    _N_EQUAL,
    _H_LAST,
    _ERROR_LAST,
    _N_STEPS,
    _N_NEWTON_FAILURES,
    _N_FREE_GROWTH,
    _H_ESTIMATED2,
    _ERROR_LAST2,
    _H_ESTIMATED,
    _SINCE_ESTIMATE,
    _RATIO,
    _H_BOUNDS,
    _INTERVAL,
    _LOCAL_ERROR,
    _REFERENCE_SPEED,
) = range(18)
#: Scaled error of a step whose error is not estimated.
NOT_ESTIMATED = -1.0


def initial_controller_state(h: float, automatic: bool = False) -> np.ndarray:
    """Return the controller state before the first step; `automatic`: the initial step size was not specified."""
    controller_state = np.zeros(1, dtype=CONTROLLER_STATE)
    controller_state["size"], controller_state["free"] = h, STARTUP_STEPS if automatic else 0
    return controller_state


def controller_state_from(values: np.ndarray) -> np.ndarray:
    """Return the controller state from the numbers in a checkpoint; earlier versions stored fewer numbers."""
    controller_state = np.zeros(1, dtype=CONTROLLER_STATE)
    controller_state.view("f8")[: np.size(values)] = np.ravel(values)
    return controller_state


@lowered
def clip_to_end(h: float, remaining: float, h_prev: float, h_max: float) -> float:
    """Return the size of a step h if less than two steps remain: all that remains, or half of it.

    The whole remainder is one step if it is hardly longer than h or than the previous step. The last step is then not
    much shorter than the previous ones: an index-3 multiplier is a difference divided by h^2, which a very short step
    would turn into rounding errors.
    """
    takes_all = SAFETY * remaining <= h or remaining <= (1.0 + 1e-9) * h_prev
    return remaining if takes_all and remaining <= (1.0 + 1e-10) * h_max else 0.5 * remaining


@lowered
def lu_solve_inplace(A: F64Array, b: F64Array, n: int, row_scale: F64Array) -> bool:
    """Solve ``A x = b`` by LU with scaled partial pivoting; x replaces b. Returns False if A is singular."""
    for i in range(n):
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(A[i * n + j]))
        if not 0.0 < largest < np.inf:
            return False
        row_scale[i] = 1.0 / largest
    for k in range(n):
        pivot, best = k, -1.0
        for i in range(k, n):
            size = abs(A[i * n + k]) * row_scale[i]
            if size > best:
                pivot, best = i, size
        if not best > 0.0:
            return False
        if pivot != k:
            for j in range(n):
                A[k * n + j], A[pivot * n + j] = A[pivot * n + j], A[k * n + j]
            b[k], b[pivot] = b[pivot], b[k]
            row_scale[k], row_scale[pivot] = row_scale[pivot], row_scale[k]
        for i in range(k + 1, n):
            if A[i * n + k] != 0.0:
                factor = A[i * n + k] / A[k * n + k]
                for j in range(k + 1, n):
                    A[i * n + j] -= factor * A[k * n + j]
                b[i] -= factor * b[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= A[i * n + j] * b[j]
        b[i] = b[i] / A[i * n + i]
    return True


@lowered
def _scaled_error(controller: StepSizeController, estimate: F64Array, i: int, h: float) -> float:
    """Return the error of variable i relative to its tolerance."""
    size = abs(estimate[i]) * h ** controller.h_powers[i]
    allowed = controller.atol[i] + controller.rtol[i] * estimate[controller.n_variables + i]
    return 0.0 if allowed == np.inf else size / allowed


@lowered
def argmax_scaled_error(controller: StepSizeController, estimate: F64Array, h: float) -> int:
    """Return the variable with the largest error relative to its tolerance, or the first one with a NaN."""
    largest, index = -1.0, 0
    for i in range(controller.n_variables):
        error = _scaled_error(controller, estimate, i, h)
        if not error <= largest:
            largest, index = error, i
        if error != error:
            return i
    return index


@lowered
def _estimate_error(
    kernels: StepKernels, controller: StepSizeController, w: Workspace, z: F64Array, x: F64Array
) -> float:
    """Return the largest estimated error at a state z relative to its tolerance. NaN propagates."""
    n, h = controller.n_variables, w.c[0]
    call_kernel(kernels.error, x, z, w.c, w.r, w.estimate)
    if controller.has_filter and not lu_solve_inplace(w.estimate + 2 * n, w.estimate, n, w.scratch + w.n_state):
        return np.nan
    return _scaled_error(controller, w.estimate, argmax_scaled_error(controller, w.estimate, h), h)


def double_step_factor(order: int, h: float, h_last: float) -> float:
    """Return the local error of a step h relative to the difference of a double step ``h_last + h`` and two steps."""
    return _double_step_factor(order, h, h_last)


@lowered
def _double_step_factor(order: int, h: float, h_last: float) -> float:
    power = order + 1.0
    return h**power / ((h + h_last) ** power - h**power - h_last**power)


def max_grouped_error(controller: StepSizeController, estimate: np.ndarray, h: float) -> float:
    """Return the largest error relative to its tolerance; the scales of a group are replaced by their maximum."""
    return _max_grouped_error(controller, estimate, h)


@lowered
def _max_grouped_error(controller: StepSizeController, estimate: F64Array, h: float) -> float:
    n = controller.n_variables
    # the first variable of a group holds the largest scale of the group
    for i in range(n):
        first = controller.scale_groups[i]
        estimate[n + first] = max(estimate[n + first], estimate[n + i])
    for i in range(n):
        estimate[n + i] = estimate[n + controller.scale_groups[i]]
    return _scaled_error(controller, estimate, argmax_scaled_error(controller, estimate, h), h)


@lowered
def _double_step_error(
    kernels: StepKernels,
    controller: StepSizeController,
    controller_state: F64Array,
    w: Workspace,
    s: int,
    x: F64Array,
) -> float:
    """Return the largest estimated error of step s by comparison with a double step, relative to its tolerance.

    The double step leads back from the end of step s over the last two steps: one Newton iteration from the weighted
    mean of their unknowns. A symmetric scheme of order p has local errors ``C h^(p+1)``. The difference of the
    positions is therefore ``C ((h + h_last)^(p+1) - h^(p+1) - h_last^(p+1))``. Only positions are compared: they have
    no components that alternate from step to step. Without a previous step there is no estimate.
    """
    n, nz, nq, h, t = w.n_unknowns, w.n_state, controller.n_variables, w.c[0], w.c[1]
    h_last = controller_state[_H_LAST]
    if h_last <= 0.0 or controller_state[_N_STEPS] <= 0.0:
        return NOT_ESTIMATED
    z, x_last = w.Z + s * nz, w.X + (s + HISTORY - 1) * n
    x_double, dx_double, z_last, z_next = w.scratch, w.scratch + n, w.scratch + 2 * n, z + nz
    w.c[0] = -h_last
    call_kernel(kernels.update_state, x_last, z, w.c, w.r, z_last)
    for i in range(nq):
        w.estimate[i], w.estimate[nq + i] = z_last[i], max(abs(z[i]), abs(z_next[i]))
    w.c[0], w.c[1] = -(h + h_last), t + h
    for i in range(n):
        x_double[i] = (h * x[i] + h_last * x_last[i]) / (h + h_last)
    call_kernel(kernels.newton, x_double, z_next, w.c, w.r, dx_double)
    for i in range(n):
        x_double[i] -= dx_double[i]
    call_kernel(kernels.update_state, x_double, z_next, w.c, w.r, z_last)
    w.c[0], w.c[1] = h, t
    factor = _double_step_factor(controller.doubling_order, h, h_last)
    for i in range(nq):
        w.estimate[i] = factor * (z_last[i] - w.estimate[i])
        z_last[i] -= w.estimate[i] / factor
    error = _max_grouped_error(controller, w.estimate, h)
    if error != error and controller_state[_SINCE_ESTIMATE] < MAX_STEPS_WITHOUT_ESTIMATE:
        return NOT_ESTIMATED  # a pivot of the step may vanish in the double step; the next step has another one
    return _weighted_error(controller, controller_state, w.estimate, z_last, z, z_next, error, h)


def weighted_error(
    controller: StepSizeController,
    controller_state: np.ndarray,
    estimate: np.ndarray,
    nodes: tuple[np.ndarray, np.ndarray, np.ndarray],
    error: float,
    h: float,
) -> float:
    """Return an error per unit of time as an error per step of the path; `nodes` are the last three states."""
    return _weighted_error(controller, controller_state.view(np.float64), estimate, *nodes, error, h)


@lowered
def _weighted_error(
    controller: StepSizeController,
    controller_state: F64Array,
    estimate: F64Array,
    z_last: F64Array,
    z: F64Array,
    z_next: F64Array,
    error: float,
    h: float,
) -> float:
    """Return an error per unit of time as an error per step of the path, both relative to the tolerance.

    Errors of slow phases act on the fast phases that follow: an error is a delay of the motion, and is divided by the
    speed. The reference speed is the initial one, or that which the initial acceleration gives over the size of the
    mechanism. The number of steps is smallest if all steps have equal errors, not all units of time. An error h^p per
    unit of time is therefore multiplied by h, relative to steps of the reference speed.
    """
    n, h_last, size_per_tolerance = (
        controller.n_variables,
        controller_state[_H_LAST],
        controller.span / controller.tolerance,
    )
    controller_state[_LOCAL_ERROR] = error
    speed, acceleration = 0.0, 0.0
    for i in range(n):
        allowed = controller.atol[i] + controller.rtol[i] * estimate[n + i]
        if allowed < np.inf:
            scale = allowed * size_per_tolerance
            v, v_last = (z_next[i] - z[i]) / h, (z[i] - z_last[i]) / h_last
            speed = max(speed, abs(z_next[i] - z_last[i]) / (h + h_last) / scale)
            acceleration = max(acceleration, 2.0 * abs(v - v_last) / (h + h_last) / scale)
    if controller_state[_REFERENCE_SPEED] <= 0.0:
        controller_state[_REFERENCE_SPEED] = max(1.0 / controller.span, max(speed, acceleration**0.5))
    path_error = error / (speed / controller_state[_REFERENCE_SPEED] + REST_SPEED)
    if not 0.0 < path_error < np.inf:
        return path_error
    # steps of equal error per unit of path, and steps of the reference speed; beyond the largest ratio h has no weight
    phase_size = h * path_error ** (-1.0 / controller.doubling_order)
    mean_size = controller.tolerance ** (1.0 / controller.doubling_order) / controller_state[_REFERENCE_SPEED]
    mean_size = min(max(mean_size, phase_size / MAX_PHASE_RATIO), phase_size * MAX_PHASE_RATIO)
    return path_error * h / mean_size


@lowered
def _error_norm(
    kernels: StepKernels,
    controller: StepSizeController,
    controller_state: F64Array,
    w: Workspace,
    s: int,
    x: F64Array,
    refine_estimate: bool,
) -> float:
    """Return the largest estimated error of step s relative to its tolerance; 0 without error estimates.

    After a restart the estimate may contain a stiff component that need not be resolved. The estimate at the state
    moved by the first estimate no longer contains it (Hairer and Wanner, IV.8.20).
    """
    n, z = controller.n_variables, w.Z + s * w.n_state
    if n == 0:
        return 0.0
    if not _is_estimate_due(controller, controller_state):
        return NOT_ESTIMATED
    if controller.doubling_order > 0:
        return _double_step_error(kernels, controller, controller_state, w, s, x)
    norm = _estimate_error(kernels, controller, w, z, x)
    if controller.has_filter and refine_estimate and norm > 1.0:
        z_trial = w.scratch
        for i in range(w.n_state):
            z_trial[i] = z[i]
        for i in range(n):
            z_trial[i] += w.estimate[i]
        norm_refined = _estimate_error(kernels, controller, w, z_trial, x)
        norm = norm_refined if norm_refined < norm else norm
    return norm


@lowered
def _predict_unknowns(
    kernels: StepKernels, controller_state: F64Array, w: Workspace, s: int, h: float, is_doubling: bool
) -> bool:
    """Predict the unknowns of step s from the last steps; return False without a prediction."""
    n = w.n_unknowns
    x = w.X + (s + HISTORY) * n
    if kernels.extrapolate_stages and controller_state[_N_STEPS] > 0.0 and controller_state[_H_LAST] > 0.0:
        w.r[0] = h / controller_state[_H_LAST]
        call_kernel(kernels.extrapolate_stages, w.X + (s + HISTORY - 1) * n, w.Z + s * w.n_state, w.c, w.r, x)
        return True
    # sizes that change slowly from step to step: unknowns are smooth functions of the number of the step
    is_slow = is_doubling and abs(h - controller_state[_H_LAST]) <= MAX_SLOW_CHANGE * controller_state[_H_LAST]
    if controller_state[_N_EQUAL] >= HISTORY and (h == controller_state[_H_LAST] or is_slow):
        predictor_row = 2 * n + 4  # offset as in `livens.engine.newton.workspace_layout`
        call_kernel(kernels.predict, w.X + s * n, w.Z + s * w.n_state, w.c, w.r, w.work + predictor_row)
        return w.work[predictor_row] != 0.0
    return False


@lowered
def _is_estimate_due(controller: StepSizeController, controller_state: F64Array) -> bool:
    """Return True if the error of this step is estimated: always, or at intervals by a double step."""
    return (
        controller.doubling_order == 0
        or controller_state[_H_ESTIMATED] <= 0.0
        or controller_state[_SINCE_ESTIMATE] + 1.0 >= max(controller_state[_INTERVAL], controller.steps_before_growth)
    )


def is_estimate_due(controller: StepSizeController, controller_state: np.ndarray) -> bool:
    """Return True if the error of this step is estimated: always, or at intervals by a double step."""
    return bool(_is_estimate_due(controller, controller_state.view(np.float64)))


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
    failure_status, status, error_norm, h, is_last = int(DIVERGED), int(DIVERGED), 0.0, 0.0, False
    w.counters[N_ITERATIONS], w.counters[IS_LAST_STEP] = 0, 0
    h_min = max(controller.h_min, MIN_ULPS * abs(t))
    if not controller_state[_H_NEXT] >= h_min:
        controller_state[_H_NEXT] = h_min
    while True:
        h = min(controller_state[_H_NEXT], controller.h_max)
        if not h >= h_min:
            w.counters[N_ITERATIONS] = n_iterations
            return failure_status
        if t_end - t < TWO_STEPS_LEFT * h:
            if not land_on_end:
                w.counters[N_ITERATIONS], w.counters[IS_LAST_STEP] = n_iterations, 1
                return END_REACHED
            h = clip_to_end(
                h,
                t_end - t,
                controller_state[_H_LAST] if controller_state[_STEPS_SINCE_REJECT] > 0.0 else 0.0,
                controller.h_max,
            )
        is_last = h >= t_end - t
        w.c[0], w.c[1] = h, t
        predicted = _predict_unknowns(kernels, controller_state, w, s, h, controller.doubling_order > 0)
        if not predicted:
            for i in range(n):
                x[i] = x_prev[i]
            call_kernel(kernels.initial_guess, x, z, w.c, w.r, x)
        is_refresh_due = int(controller_state[_N_EQUAL]) % BOUND_REFRESH_INTERVAL == 0
        h_bounds = controller_state[_H_BOUNDS]
        has_new_size = abs(h - h_bounds) > MAX_SLOW_CHANGE * h_bounds if controller.doubling_order else h != h_bounds
        if is_refresh_due or not predicted or has_new_size:
            controller_state[_H_BOUNDS] = h
            for i in range(n):
                w.newton_update[i] = 0.0
            call_kernel(kernels.inv_roundoff, x, z, w.c, w.newton_update, w.inv_roundoff)
        status = solve_step(kernels, w, x, z, w.Z + (s + 1) * w.n_state, predicted, repivot_after)
        n_iterations += w.counters[N_ITERATIONS]
        if status == NEEDS_REPIVOT:
            w.counters[N_ITERATIONS] = n_iterations
            return NEEDS_REPIVOT
        refine_estimate = controller_state[_N_STEPS] == 0.0 or controller_state[_STEPS_SINCE_REJECT] == 0.0
        error_norm = 0.0
        if status == CONVERGED:
            error_norm = _error_norm(kernels, controller, controller_state, w, s, x, refine_estimate)
        if status == CONVERGED and error_norm <= 1.0:
            break
        failure_status = ERROR_TOO_LARGE if status == CONVERGED else DIVERGED
        _on_reject(controller, controller_state, h, status == CONVERGED, error_norm)
    w.t[s + 1] = t_end if is_last else t + h
    _on_accept(controller, controller_state, h, error_norm, is_last)
    w.counters[N_ITERATIONS], w.counters[IS_LAST_STEP] = n_iterations, is_last
    return CONVERGED


def on_reject(
    controller: StepSizeController, controller_state: np.ndarray, h: float, solved: bool, error_norm: float
) -> None:
    """Set the size of the next attempt after a rejected step of size h (Newton failure or error too large)."""
    _on_reject(controller, controller_state.view(np.float64), h, solved, error_norm)


@lowered
def _on_reject(
    controller: StepSizeController, controller_state: F64Array, h: float, solved: bool, error_norm: float
) -> None:
    controller_state[_STEPS_SINCE_REJECT], controller_state[_N_EQUAL], controller_state[_N_FREE_GROWTH] = 0.0, 0.0, 0.0
    controller_state[_RATIO], controller_state[_INTERVAL] = 0.0, 0.0
    controller_state[_N_REJECTED] += 1.0
    controller_state[_N_NEWTON_FAILURES] += 0.0 if solved else 1.0
    factor = controller.reject_factor
    if solved and error_norm < np.inf:
        factor = max(
            MIN_FACTOR, min(controller.reject_factor, SAFETY * error_norm ** (-1.0 / (controller.error_order + 1.0)))
        )
    controller_state[_H_NEXT] = h * factor


def on_accept(
    controller: StepSizeController, controller_state: np.ndarray, h: float, error_norm: float, is_last: bool
) -> None:
    """Set the size of the next step after an accepted step of size h with this scaled error.

    With an error estimate the size follows the controller of `CONTROLLERS`. Gustafsson's predictive controller takes
    the smaller of the sizes that the last error and its extrapolation allow. Without an estimate it grows after a
    number of accepted steps.
    """
    _on_accept(controller, controller_state.view(np.float64), h, error_norm, is_last)


@lowered
def _on_accept(
    controller: StepSizeController, controller_state: F64Array, h: float, error_norm: float, is_last: bool
) -> None:
    is_estimated, h_last = error_norm != NOT_ESTIMATED, controller_state[_H_LAST]
    h_prev, error_prev = controller_state[_H_ESTIMATED], controller_state[_ERROR_LAST]
    h_prev2, error_prev2 = controller_state[_H_ESTIMATED2], controller_state[_ERROR_LAST2]
    steps_since_estimate = controller_state[_SINCE_ESTIMATE] + 1.0
    is_slow = controller.doubling_order > 0 and abs(h - h_last) <= MAX_SLOW_CHANGE * h_last
    controller_state[_N_EQUAL] = controller_state[_N_EQUAL] + 1.0 if h == h_last or is_slow else 1.0
    controller_state[_STEPS_SINCE_REJECT] += 1.0
    controller_state[_N_STEPS] += 1.0
    controller_state[_H_LAST] = h
    controller_state[_SINCE_ESTIMATE] = 0.0 if is_estimated else steps_since_estimate
    if is_estimated:
        controller_state[_H_ESTIMATED2], controller_state[_ERROR_LAST2] = h_prev, error_prev
        controller_state[_H_ESTIMATED], controller_state[_ERROR_LAST] = h, max(error_norm, 1e-10)
    if is_last:
        return
    if not is_estimated:
        ratio = controller_state[_RATIO]
        controller_state[_H_NEXT] = min(controller.h_max, h * ratio) if ratio > 0.0 else h
        return
    controller_state[_RATIO], controller_state[_INTERVAL] = 0.0, 0.0
    growth = controller.max_growth
    if controller.doubling_order > 0:
        growth = controller.max_growth ** float(controller.steps_before_growth)
    if controller_state[_N_FREE_GROWTH] > 0.0:
        growth, controller_state[_N_FREE_GROWTH] = (
            max(growth, STARTUP_MAX_GROWTH),
            controller_state[_N_FREE_GROWTH] - 1.0,
        )
    factor = growth
    if controller.n_variables:
        power, weights, error = 1.0 / (controller.error_order + 1.0), controller.filter_weights, max(error_norm, 1e-10)
        factor = SAFETY * error**-power
        if h_prev > 0.0:
            # digital filters aim at a fraction of the tolerance, as they respond smoothly
            is_predictive = weights[0] == 2.0
            aim = 1.0 if is_predictive else SETPOINT
            response = (error / aim) ** -weights[0] * (error_prev / aim) ** -weights[1]
            ratios = (h / h_prev) ** -weights[3]
            if weights[2] != 0.0:
                if h_prev2 > 0.0:
                    response *= (error_prev2 / aim) ** -weights[2]
                    ratios *= (h_prev / h_prev2) ** -weights[4]
                else:  # the elementary controller until three errors are known
                    response, ratios = aim / error, 1.0
            filtered = ratios * response**power
            factor = min(factor, SAFETY * filtered) if is_predictive else filtered
        factor = min(growth, max(0.2, factor))
    if controller.doubling_order > 0 and factor > MIN_SPREAD_FACTOR and controller_state[_N_FREE_GROWTH] == 0.0:
        # the size changes a little in every step: jumps of the size would excite parts that alternate
        shortest_interval, interval = float(controller.steps_before_growth), float(controller.steps_before_growth)
        change = abs(factor - 1.0)
        if h_prev > 0.0:
            change = max(change, abs(h / h_prev - 1.0) * shortest_interval / steps_since_estimate)
            interval = max(interval, min(MAX_INTERVAL, INTERVAL_CHANGE / max(change, 1e-3)) * shortest_interval)
        controller_state[_INTERVAL] = float(int(interval))
        controller_state[_RATIO] = factor ** (1.0 / controller_state[_INTERVAL])
        controller_state[_H_NEXT] = min(controller.h_max, h * controller_state[_RATIO])
    elif factor < 1.0:
        controller_state[_H_NEXT] = h * factor
    elif controller_state[_STEPS_SINCE_REJECT] >= controller.steps_before_growth:
        controller_state[_H_NEXT] = min(controller.h_max, h * factor)
        if not controller.n_variables:
            controller_state[_STEPS_SINCE_REJECT] = 0.0
    else:
        controller_state[_H_NEXT] = h
