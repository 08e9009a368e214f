"""Step-size controllers: settings and state, size of the next attempt, acceptance and rejection of steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.types import F64Array, I64Array, Struct

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
#: Largest relative change of successive step sizes across which unknowns are extrapolated as if steps were equal, and
#: of the step size since the last evaluation of the round-off bounds.
MAX_SLOW_CHANGE = 0.25
#: Smallest factor of the step size that is spread over the steps until the next estimate; smaller ones act at once.
MIN_SPREAD_FACTOR = 0.5
#: Largest number of steps between estimates by a double step, as a multiple of the smallest one, and change of the
#: logarithm of the step size in that many steps that leads to more frequent estimates.
MAX_INTERVAL, INTERVAL_CHANGE = 4.0, 0.2
#: Largest multiple for short steps, and time between estimates of short steps relative to that of the reference speed.
MAX_INTERVAL_OF_SHORT_STEPS, INTERVAL_TIME = 10.0, 0.02
#: Smallest step size relative to the time, in units in the last place.
MIN_ULPS = 16.0 * 2.0**-52
#: Largest number of longer attempts after a step of nearly the last size was not solved, and ratio of their sizes.
#: Steps that end near a singular position are ill-conditioned, and shorter steps end nearer. With the golden ratio
#: neither the end nor the middle of another attempt is at the same position.
MAX_LONGER_ATTEMPTS, LONGER_RATIO = 8, 1.618
#: Number of steps after a start from which on errors may be recognised as round-off. At the start, they are a reason to
#: reject the tolerance.
MIN_STEPS_BEFORE_ROUND_OFF = 32.0
#: Largest error of a longer attempt, relative to the tolerance of the whole run.
LONGER_SHARE = 0.01
#: Factor by which the size of a recent longer step decreases from step to step as the size that longer attempts exceed.
FIRST_SIZE_DECAY = 0.9
#: Factor of the size of a step whose middle is near a singular position, and largest number of such attempts.
MOVED_MIDDLE, MAX_MOVED = 0.7, 4.0
#: Results of `next_attempt_size` without a size: all sizes are rejected, or fewer than two steps remain.
NO_SIZE_LEFT, END_IS_NEAR = -1.0, 0.0


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
            "longer",  # number of the longer attempt of the current step; 0 for other attempts
            "first",  # size of the first attempt of the current step, or of a recent longer step
            "error_first",  # error of the first attempt of the current step, relative to the tolerance per unit of time
            "moved",  # number of attempts of the current step whose middle is ill-conditioned
        )
    ]
)


#: Indices of the fields.
(
    H_NEXT,
    STEPS_SINCE_REJECT,
    N_REJECTED,
    N_EQUAL,
    H_LAST,
    ERROR_LAST,
    N_ACCEPTED,
    N_NEWTON_FAILURES,
    N_FREE_GROWTH,
    H_ESTIMATED2,
    ERROR_LAST2,
    H_ESTIMATED,
    SINCE_ESTIMATE,
    RATIO,
    H_BOUNDS,
    INTERVAL,
    LOCAL_ERROR,
    REFERENCE_SPEED,
    N_LONGER,
    H_FIRST,
    ERROR_FIRST,
    N_MOVED,
) = range(22)
#: Scaled error of a step whose error is not estimated.
NOT_ESTIMATED = -1.0
#: Scaled error of a step whose estimate is dominated by round-off.
ROUND_OFF = -2.0


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
def next_attempt_size(
    controller: StepSizeController,
    controller_state: F64Array,
    t: float,
    t_end: float,
    land_on_end: bool,
    is_first_attempt: bool,
) -> float:
    """Return the size of the next attempt of a step at time t, or `NO_SIZE_LEFT` or `END_IS_NEAR`."""
    h_min = max(controller.h_min, MIN_ULPS * abs(t))
    if is_first_attempt and not controller_state[H_NEXT] >= h_min:
        controller_state[H_NEXT] = h_min
    h = min(controller_state[H_NEXT], controller.h_max)
    if not h >= h_min:
        return NO_SIZE_LEFT
    if t_end - t < TWO_STEPS_LEFT * h:
        if not land_on_end:
            return END_IS_NEAR
        h_last = controller_state[H_LAST] if controller_state[STEPS_SINCE_REJECT] > 0.0 else 0.0
        h = clip_to_end(h, t_end - t, h_last, controller.h_max)
    if is_first_attempt:
        controller_state[H_FIRST] = max(h, FIRST_SIZE_DECAY * controller_state[H_FIRST])
        controller_state[N_LONGER], controller_state[N_MOVED], controller_state[ERROR_FIRST] = 0.0, 0.0, 0.0
    return h


@lowered
def is_accepted(controller: StepSizeController, controller_state: F64Array, h: float, error_norm: float) -> bool:
    """Return True if a solved step with this scaled error is accepted.

    A longer attempt, over a singular position, may have an error of a small part of the tolerance of the whole run.
    """
    if error_norm <= 1.0 or controller_state[N_LONGER] == 0.0:
        return error_norm <= 1.0
    return controller_state[LOCAL_ERROR] * h <= LONGER_SHARE * controller.span


@lowered
def is_estimate_due(controller: StepSizeController, controller_state: F64Array) -> bool:
    """Return True if the error of this step is estimated: always, or at intervals by a double step."""
    return (
        controller.doubling_order == 0
        or controller_state[H_ESTIMATED] <= 0.0
        or controller_state[N_LONGER] > 0.0
        or controller_state[SINCE_ESTIMATE] + 1.0 >= max(controller_state[INTERVAL], controller.steps_before_growth)
    )


@lowered
def on_reject(
    controller: StepSizeController, controller_state: F64Array, h: float, solved: bool, error_norm: float
) -> None:
    """Set the size of the next attempt after a rejected step of size h (Newton failure or error too large)."""
    is_first = controller_state[N_EQUAL] > 0.0
    was_smooth = is_first and controller_state[H_FIRST] <= (1.0 + MAX_SLOW_CHANGE) * controller_state[H_LAST]
    controller_state[STEPS_SINCE_REJECT], controller_state[N_EQUAL], controller_state[N_FREE_GROWTH] = 0.0, 0.0, 0.0
    controller_state[RATIO], controller_state[INTERVAL] = 0.0, 0.0
    controller_state[N_REJECTED] += 1.0
    controller_state[N_NEWTON_FAILURES] += 0.0 if solved else 1.0
    factor = controller.reject_factor
    if solved and error_norm < np.inf:
        factor = max(
            MIN_FACTOR, min(controller.reject_factor, SAFETY * error_norm ** (-1.0 / (controller.error_order + 1.0)))
        )
    controller_state[H_NEXT] = h * factor
    if controller.doubling_order > 0:
        _attempt_longer(controller, controller_state, h, solved, was_smooth)


@lowered
def _attempt_longer(
    controller: StepSizeController, controller_state: F64Array, h: float, solved: bool, was_smooth: bool
) -> None:
    """Replace the size of the next attempt by a longer one if shorter steps do not help: near a singular position."""
    error, error_first = controller_state[LOCAL_ERROR], controller_state[ERROR_FIRST]
    starts = was_smooth and not solved
    if solved and controller_state[N_LONGER] == 0.0:
        # errors per unit of time fall as h^p with the order p, unless they are due to round-off
        expected = error_first * (h / controller_state[H_FIRST]) ** (0.5 * controller.doubling_order)
        is_small = error * h <= LONGER_SHARE * controller.span
        is_late = controller_state[N_ACCEPTED] >= MIN_STEPS_BEFORE_ROUND_OFF
        starts = error_first > 0.0 and error > expected and is_small and is_late
        if error_first == 0.0 and was_smooth:
            controller_state[ERROR_FIRST] = error
    if starts or controller_state[N_LONGER] > 0.0:
        controller_state[N_LONGER], controller_state[ERROR_FIRST] = controller_state[N_LONGER] + 1.0, 0.0
        if controller_state[N_LONGER] <= MAX_LONGER_ATTEMPTS:
            longer = controller_state[H_FIRST] * LONGER_RATIO ** controller_state[N_LONGER]
            controller_state[H_NEXT] = min(controller.h_max, longer)
        else:
            controller_state[N_LONGER], controller_state[N_MOVED] = 0.0, MAX_MOVED  # the next step is not short again
            controller_state[H_NEXT] = controller_state[H_FIRST] * controller.reject_factor


@lowered
def may_move_middle(controller: StepSizeController, controller_state: F64Array) -> bool:
    """Return True if the current attempt may be repeated because the middle of the step is ill-conditioned."""
    return (
        controller.doubling_order > 0 and controller_state[N_ACCEPTED] > 0.0 and controller_state[N_MOVED] < MAX_MOVED
    )


@lowered
def move_middle(controller: StepSizeController, controller_state: F64Array, h: float) -> None:
    """Set the size of the next attempt after an attempt whose middle is near a singular position."""
    controller_state[STEPS_SINCE_REJECT] = 0.0
    controller_state[N_REJECTED] += 1.0
    controller_state[N_MOVED] += 1.0
    ratio = MOVED_MIDDLE
    if controller_state[N_LONGER] > 0.0:
        controller_state[N_LONGER] += 1.0
        ratio = LONGER_RATIO
    controller_state[H_NEXT] = min(controller.h_max, h * ratio)


@lowered
def on_accept(
    controller: StepSizeController, controller_state: F64Array, h: float, error_norm: float, is_last: bool
) -> None:
    """Set the size of the next step after an accepted step of size h with this scaled error.

    With an error estimate the size follows the controller of `CONTROLLERS`. Gustafsson's predictive controller takes
    the smaller of the sizes that the last error and its extrapolation allow. Without an estimate it grows after a
    number of accepted steps.
    """
    is_resized = controller_state[N_LONGER] > 0.0 or controller_state[N_MOVED] > 0.0
    is_estimated, h_last = error_norm >= 0.0 and not is_resized, controller_state[H_LAST]
    h_prev, error_prev = controller_state[H_ESTIMATED], controller_state[ERROR_LAST]
    h_prev2, error_prev2 = controller_state[H_ESTIMATED2], controller_state[ERROR_LAST2]
    steps_since_estimate = controller_state[SINCE_ESTIMATE] + 1.0
    is_slow = controller.doubling_order > 0 and abs(h - h_last) <= MAX_SLOW_CHANGE * h_last
    controller_state[N_EQUAL] = controller_state[N_EQUAL] + 1.0 if h == h_last or is_slow else 1.0
    controller_state[STEPS_SINCE_REJECT] += 1.0
    controller_state[N_ACCEPTED] += 1.0
    controller_state[H_LAST] = h
    controller_state[SINCE_ESTIMATE] = 0.0 if is_estimated else steps_since_estimate
    if is_estimated:
        controller_state[H_ESTIMATED2], controller_state[ERROR_LAST2] = h_prev, error_prev
        controller_state[H_ESTIMATED], controller_state[ERROR_LAST] = h, max(error_norm, 1e-10)
    if error_norm == ROUND_OFF:  # steps of equal size up to the next estimate
        controller_state[RATIO], controller_state[SINCE_ESTIMATE] = 1.0, 0.0
    if is_last:
        return
    if not is_estimated:
        ratio = controller_state[RATIO]
        controller_state[H_NEXT] = min(controller.h_max, h * ratio) if ratio > 0.0 else h
        if is_resized:
            controller_state[H_NEXT] = controller_state[H_FIRST]
        return
    controller_state[RATIO], controller_state[INTERVAL] = 0.0, 0.0
    growth = controller.max_growth
    if controller.doubling_order > 0:
        growth = controller.max_growth ** float(controller.steps_before_growth)
    if controller_state[N_FREE_GROWTH] > 0.0:
        growth, controller_state[N_FREE_GROWTH] = (
            max(growth, STARTUP_MAX_GROWTH),
            controller_state[N_FREE_GROWTH] - 1.0,
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
    if controller.doubling_order > 0 and factor > MIN_SPREAD_FACTOR and controller_state[N_FREE_GROWTH] == 0.0:
        # the size changes a little in every step: jumps of the size would excite parts that alternate
        shortest_interval, interval = float(controller.steps_before_growth), float(controller.steps_before_growth)
        change = abs(factor - 1.0)
        if h_prev > 0.0:
            change = max(change, abs(h / h_prev - 1.0) * shortest_interval / steps_since_estimate)
            largest = INTERVAL_TIME / max(h * controller_state[REFERENCE_SPEED] * shortest_interval, 1e-300)
            largest = max(MAX_INTERVAL, min(MAX_INTERVAL_OF_SHORT_STEPS, largest))
            interval = max(interval, min(largest, INTERVAL_CHANGE / max(change, 1e-3)) * shortest_interval)
        controller_state[INTERVAL] = float(int(interval))
        controller_state[RATIO] = factor ** (1.0 / controller_state[INTERVAL])
        controller_state[H_NEXT] = min(controller.h_max, h * controller_state[RATIO])
    elif factor < 1.0:
        controller_state[H_NEXT] = h * factor
    elif controller_state[STEPS_SINCE_REJECT] >= controller.steps_before_growth:
        controller_state[H_NEXT] = min(controller.h_max, h * factor)
        if not controller.n_variables:
            controller_state[STEPS_SINCE_REJECT] = 0.0
    else:
        controller_state[H_NEXT] = h
