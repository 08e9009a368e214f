"""Error estimates of a step: embedded formulas, and comparison with a double step."""

from __future__ import annotations

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array
from livens.engine.newton.iteration import HISTORY, StepKernels, Workspace
from livens.engine.newton.step_size_control import (
    H_LAST,
    LOCAL_ERROR,
    MIN_STEPS_BEFORE_ROUND_OFF,
    N_ACCEPTED,
    NOT_ESTIMATED,
    REFERENCE_SPEED,
    ROUND_OFF,
    SINCE_ESTIMATE,
    StepSizeController,
    is_estimate_due,
)

#: Largest number of steps whose estimates by a double step may fail.
MAX_STEPS_WITHOUT_ESTIMATE = 64.0
#: Number of repetitions of an estimate that exceeds the tolerance, and smallest relative difference of their results by
#: which the estimate is dominated by round-off.
N_REPETITIONS, MIN_SCATTER = 3, 0.25
#: Largest local error, relative to the position, of a step whose estimate is dominated by round-off. At a singular
#: position constraints are quadratic, so that their round-off is the square of that of positions.
MAX_ROUND_OFF = 2.0**-26
#: Speed at rest relative to the reference speed, and largest ratio of the step sizes of the reference speed and of the
#: current phase, in the weights of errors by a double step.
REST_SPEED, MAX_PHASE_RATIO = 1e-2, 27.0


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


@lowered
def double_step_factor(order: int, h: float, h_last: float) -> float:
    """Return the local error of a step h relative to the difference of a double step ``h_last + h`` and two steps."""
    power = order + 1.0
    return h**power / ((h + h_last) ** power - h**power - h_last**power)


@lowered
def _max_grouped_error(controller: StepSizeController, estimate: F64Array, h: float) -> float:
    """Return the largest error relative to its tolerance; the scales of a group are replaced by their maximum."""
    n = controller.n_variables
    # the first variable of a group holds the largest scale of the group
    for i in range(n):
        first = controller.scale_groups[i]
        estimate[n + first] = max(estimate[n + first], estimate[n + i])
    for i in range(n):
        estimate[n + i] = estimate[n + controller.scale_groups[i]]
    return _scaled_error(controller, estimate, argmax_scaled_error(controller, estimate, h), h)


@lowered
def compare_double_step(
    controller: StepSizeController,
    controller_state: F64Array,
    estimate: F64Array,
    z_double: F64Array,
    z: F64Array,
    z_next: F64Array,
    h: float,
) -> float:
    """Return the scaled error of a step from z to z_next by comparison with a double step, or `NOT_ESTIMATED`.

    `estimate` starts with the positions before the last step, and `z_double` is the state to which the double step
    leads back from z_next; both are overwritten. A symmetric scheme of order p has local errors ``C h^(p+1)``. The
    difference of the positions is therefore ``C ((h + h_last)^(p+1) - h^(p+1) - h_last^(p+1))``. Only positions are
    compared: they have no components that alternate from step to step.
    """
    n, h_last = controller.n_variables, controller_state[H_LAST]
    factor = double_step_factor(controller.doubling_order, h, h_last)
    for i in range(n):
        estimate[i] = factor * (z_double[i] - estimate[i])
        estimate[n + i] = max(abs(z[i]), abs(z_next[i]))
        z_double[i] -= estimate[i] / factor  # position before the last step
    error = _max_grouped_error(controller, estimate, h)
    if error != error and controller_state[SINCE_ESTIMATE] < MAX_STEPS_WITHOUT_ESTIMATE:
        return NOT_ESTIMATED  # a pivot of the step may vanish in the double step; the next step has another one
    return _weighted_error(controller, controller_state, estimate, z_double, z, z_next, error, h)


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
    mean of their unknowns. Without a previous step there is no estimate. An estimate that exceeds the tolerance is
    repeated from other initial guesses: the smallest one counts, unless `is_round_off`.
    """
    n, nz, nq, h, t = w.n_unknowns, w.n_state, controller.n_variables, w.c[0], w.c[1]
    h_last = controller_state[H_LAST]
    if h_last <= 0.0 or controller_state[N_ACCEPTED] <= 0.0:
        return NOT_ESTIMATED
    z, x_last = w.Z + s * nz, w.X + (s + HISTORY - 1) * n
    x_double, dx_double, z_double, z_next = w.scratch, w.scratch + n, w.scratch + 2 * n, z + nz
    w.c[0] = -h_last
    call_kernel(kernels.update_state, x_last, z, w.c, w.r, z_double)
    for i in range(nq):
        w.estimate[i] = z_double[i]
    w.c[0], w.c[1] = -(h + h_last), t + h
    for i in range(n):
        x_double[i] = (h * x[i] + h_last * x_last[i]) / (h + h_last)
    call_kernel(kernels.newton, x_double, z_next, w.c, w.r, dx_double)
    dx_first = z_double + nz
    error, smallest, largest, n_repetitions = 0.0, np.inf, 0.0, 0
    while True:
        for i in range(n):
            x_double[i] -= dx_double[i]
        call_kernel(kernels.update_state, x_double, z_next, w.c, w.r, z_double)
        repeated = compare_double_step(controller, controller_state, w.estimate, z_double, z, z_next, h)
        error = repeated if n_repetitions == 0 else min(error, repeated)
        smallest = min(smallest, controller_state[LOCAL_ERROR])
        largest = max(largest, controller_state[LOCAL_ERROR])
        if not error > 1.0 or n_repetitions == N_REPETITIONS:
            break
        n_repetitions += 1
        for i in range(n):
            dx_first[i] = dx_double[i] if n_repetitions == 1 else dx_first[i]
            x_double[i] += 0.5**n_repetitions * dx_first[i]
        for i in range(nq):
            w.estimate[i] = z_double[i]
        call_kernel(kernels.newton, x_double, z_next, w.c, w.r, dx_double)
    w.c[0], w.c[1] = h, t
    controller_state[LOCAL_ERROR] = smallest
    return ROUND_OFF if error > 1.0 and is_round_off(controller, controller_state, smallest, largest, h) else error


@lowered
def is_round_off(
    controller: StepSizeController, controller_state: F64Array, smallest: float, largest: float, h: float
) -> bool:
    """Return True if repeated estimates, of which these are extremes, are dominated by round-off.

    Near a singular position at distance d, round-off of the constraints changes positions by about ``eps / d``. Shorter
    steps do not have smaller errors there. The size that earlier estimates allow is kept.
    """
    local_error = smallest * controller.tolerance * h / controller.span
    has_scatter = largest - smallest > MIN_SCATTER * smallest
    is_late = controller_state[N_ACCEPTED] >= MIN_STEPS_BEFORE_ROUND_OFF
    return is_late and has_scatter and local_error < MAX_ROUND_OFF


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
        controller_state[H_LAST],
        controller.span / controller.tolerance,
    )
    controller_state[LOCAL_ERROR] = error
    speed, acceleration = 0.0, 0.0
    for i in range(n):
        allowed = controller.atol[i] + controller.rtol[i] * estimate[n + i]
        if allowed < np.inf:
            scale = allowed * size_per_tolerance
            v, v_last = (z_next[i] - z[i]) / h, (z[i] - z_last[i]) / h_last
            speed = max(speed, abs(z_next[i] - z_last[i]) / (h + h_last) / scale)
            acceleration = max(acceleration, 2.0 * abs(v - v_last) / (h + h_last) / scale)
    if controller_state[REFERENCE_SPEED] <= 0.0:
        controller_state[REFERENCE_SPEED] = max(1.0 / controller.span, max(speed, acceleration**0.5))
    path_error = error / (speed / controller_state[REFERENCE_SPEED] + REST_SPEED)
    if not 0.0 < path_error < np.inf:
        return path_error
    # steps of equal error per unit of path, and steps of the reference speed; beyond the largest ratio h has no weight
    phase_size = h * path_error ** (-1.0 / controller.doubling_order)
    mean_size = controller.tolerance ** (1.0 / controller.doubling_order) / controller_state[REFERENCE_SPEED]
    mean_size = min(max(mean_size, phase_size / MAX_PHASE_RATIO), phase_size * MAX_PHASE_RATIO)
    return path_error * h / mean_size


@lowered
def error_norm(
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
    if not is_estimate_due(controller, controller_state):
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
