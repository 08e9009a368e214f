"""Step-size control: error estimate, rejection, Gustafsson's predictive controller, and the adaptive step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Record
from livens.engine.lowering.words import call
from livens.engine.newton import (
    CORRECTIONS,
    DONE,
    FAILED,
    INACCURATE,
    LAST,
    PAST,
    REACHED,
    REPIVOT,
    Kernels,
    Workspace,
    extrapolate,
    solve_step,
)

#: Safety factor of the step size that would just meet the tolerance.
SAFETY = 0.95
#: Smallest factor by which one rejection shortens a step.
SHORTEST = 0.1
#: Growth factor and number of start-up steps after an automatic initial step size.
FIRST_GROWTH, FIRST_STEPS = 1000.0, 4
#: Remaining step count below which the last steps are fitted to the end; two steps up to rounding remain two.
FEWER = 2.0 - 1e-10
#: Smallest step size relative to the time, in units in the last place.
UNITS = 16.0 * 2.0**-52


@dataclass(frozen=True, eq=False)
class Control(Record):
    """Parameters of the step-size controller; see `livens.StepControl`."""

    smallest: float
    largest: float
    decrease: float
    increase: float
    patience: int  # number of accepted steps before a step grows
    absolute: Doubles  # absolute error tolerances per step, one for each variable; empty without an error estimate
    relative: Doubles
    powers: Doubles  # the error of variable i is multiplied by h ** h_powers[i]
    order: int  # order of the error estimate
    filtered: bool  # the estimate is the solution of linear equations
    variables: int = field(init=False)  # number of variables with a tolerance

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", self.absolute.size)
        super().__post_init__()


#: Controller of fixed steps.
NO_CONTROL = Control(0.0, np.inf, 0.5, 2.0, 1, np.zeros(0), np.zeros(0), np.zeros(0), 1, False)
#: State of the step-size controller: next step size, steps since the last rejection, number of rejections, number of
#: consecutive steps of equal size, last step size, scaled error of the last step, number of steps, rejections by Newton
#: failure, remaining start-up steps with free growth. The order of the fields is part of the checkpoint format.
FLOW = np.dtype(
    [
        (name, "f8")
        for name in ("size", "since_failure", "failures", "equal", "last", "norm", "steps", "unsolved", "free")
    ]
)


#: Indices of the fields.
_SIZE, _SINCE_FAILURE, _FAILURES, _EQUAL, _LAST, _NORM, _STEPS, _UNSOLVED, _FREE = range(9)


def flow(h: float, automatic: bool = False) -> np.ndarray:
    """Return the controller state before the first step; `automatic`: the initial step size was not specified."""
    going = np.zeros(1, dtype=FLOW)
    going["size"], going["free"] = h, FIRST_STEPS if automatic else 0
    return going


def restored_flow(numbers: np.ndarray) -> np.ndarray:
    """Return the controller state from the numbers in a checkpoint; earlier versions stored fewer numbers."""
    going = np.zeros(1, dtype=FLOW)
    going.view("f8")[: np.size(numbers)] = np.ravel(numbers)
    return going


@lowered
def last_size(h: float, left: float, before: float, largest: float) -> float:
    """Return the size of a step h if less than two steps remain: all that remains, or half of it.

    The whole remainder is one step if it is hardly longer than h or than the previous step. The last step is then not
    much shorter than the previous ones: an index-3 multiplier is a difference divided by h^2, which a very short step
    would turn into rounding errors.
    """
    whole = SAFETY * left <= h or left <= (1.0 + 1e-9) * before
    return left if whole and left <= (1.0 + 1e-10) * largest else 0.5 * left


@lowered
def solve_dense(A: Doubles, b: Doubles, n: int, scale: Doubles) -> bool:
    """Solve ``A x = b`` by LU with scaled partial pivoting; x replaces b. Returns False if A is singular."""
    for i in range(n):
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(A[i * n + j]))
        if not 0.0 < largest < np.inf:
            return False
        scale[i] = 1.0 / largest
    for k in range(n):
        pivot, best = k, -1.0
        for i in range(k, n):
            size = abs(A[i * n + k]) * scale[i]
            if size > best:
                pivot, best = i, size
        if not best > 0.0:
            return False
        if pivot != k:
            for j in range(n):
                A[k * n + j], A[pivot * n + j] = A[pivot * n + j], A[k * n + j]
            b[k], b[pivot] = b[pivot], b[k]
            scale[k], scale[pivot] = scale[pivot], scale[k]
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
def _in_units(control: Control, estimate: Doubles, i: int, h: float) -> float:
    """Return the error of variable i relative to its tolerance."""
    size = abs(estimate[i]) * h ** control.powers[i]
    allowed = control.absolute[i] + control.relative[i] * estimate[control.variables + i]
    return 0.0 if allowed == np.inf else size / allowed


@lowered
def worst_variable(control: Control, estimate: Doubles, h: float) -> int:
    """Return the variable with the largest error relative to its tolerance, or the first one with a NaN."""
    worst, found = -1.0, 0
    for i in range(control.variables):
        one = _in_units(control, estimate, i, h)
        if not one <= worst:
            worst, found = one, i
        if one != one:
            return i
    return found


@lowered
def _estimated(kernels: Kernels, control: Control, w: Workspace, z: Doubles, x: Doubles) -> float:
    """Return the largest estimated error at a state z relative to its tolerance. NaN propagates."""
    n, h = control.variables, w.c[0]
    call(kernels.error, x, z, w.c, w.r, w.estimate)
    if control.filtered and not solve_dense(w.estimate + 2 * n, w.estimate, n, w.scratch + w.entries):
        return np.nan
    return _in_units(control, w.estimate, worst_variable(control, w.estimate, h), h)


@lowered
def _error_norm(kernels: Kernels, control: Control, w: Workspace, s: int, x: Doubles, doubtful: bool) -> float:
    """Return the largest estimated error of step s relative to its tolerance; 0 without an estimate.

    After a restart the estimate may contain a stiff component that need not be resolved. The estimate at the state
    moved by the first estimate no longer contains it (Hairer and Wanner, IV.8.20).
    """
    n, z = control.variables, w.Z + s * w.entries
    if n == 0:
        return 0.0
    norm = _estimated(kernels, control, w, z, x)
    if control.filtered and doubtful and norm > 1.0:
        moved = w.scratch
        for i in range(w.entries):
            moved[i] = z[i]
        for i in range(n):
            moved[i] += w.estimate[i]
        again = _estimated(kernels, control, w, moved, x)
        norm = again if again < norm else norm
    return norm


@lowered
def _predict(kernels: Kernels, going: Doubles, w: Workspace, s: int, h: float) -> bool:
    """Predict the unknowns of step s from the last steps; return False without a prediction."""
    n = w.unknowns
    x = w.X + (s + PAST) * n
    if kernels.carry and going[_STEPS] > 0.0 and going[_LAST] > 0.0:
        w.r[0] = h / going[_LAST]
        call(kernels.carry, w.X + (s + PAST - 1) * n, w.Z + s * w.entries, w.c, w.r, x)
        return True
    if going[_EQUAL] >= PAST and h == going[_LAST]:
        return extrapolate(w.X + s * n, x, n, w.kinds, w.kinds_count)
    return False


@lowered
def controlled_step(
    kernels: Kernels,
    t_end: float,
    to_the_end: bool,
    control: Control,
    going: Doubles,
    w: Workspace,
    s: int,
    slow: int,
) -> int:
    """Solve step s with the largest size that succeeds. Returns a status code.

    The number of Newton iterations and the last-step flag are returned in `Workspace.counters`.
    """
    n = w.unknowns
    z, x, past, t, count = w.Z + s * w.entries, w.X + (s + PAST) * n, w.X + (s + PAST - 1) * n, w.t[s], 0
    failed, status, norm, h, final = FAILED, FAILED, 0.0, 0.0, False
    w.told[CORRECTIONS], w.told[LAST] = 0, 0
    shortest = max(control.smallest, UNITS * abs(t))
    if not going[_SIZE] >= shortest:
        going[_SIZE] = shortest
    while True:
        h = min(going[_SIZE], control.largest)
        if not h >= shortest:
            w.told[CORRECTIONS] = count
            return failed
        if t_end - t < FEWER * h:
            if not to_the_end:
                w.told[CORRECTIONS], w.told[LAST] = count, 1
                return REACHED
            h = last_size(h, t_end - t, going[_LAST] if going[_SINCE_FAILURE] > 0.0 else 0.0, control.largest)
        final = h >= t_end - t
        w.c[0], w.c[1] = h, t
        known = _predict(kernels, going, w, s, h)
        for attempt in range(2):
            if attempt == 1 or not known:
                for i in range(n):
                    x[i] = past[i]
                call(kernels.guess, x, z, w.c, w.r, x)
            for i in range(n):
                w.dx[i] = 0.0
            call(kernels.floor, x, z, w.c, w.dx, w.scale)
            status = solve_step(kernels, w, x, z, slow, False)
            count += w.told[CORRECTIONS]
            if status != FAILED or not known:
                break
        if status == REPIVOT:
            w.told[CORRECTIONS] = count
            return REPIVOT
        doubtful = going[_STEPS] == 0.0 or going[_SINCE_FAILURE] == 0.0
        norm = _error_norm(kernels, control, w, s, x, doubtful) if status == DONE else 0.0
        if status == DONE and norm <= 1.0:
            break
        failed = INACCURATE if status == DONE else FAILED
        _shorten(control, going, h, status == DONE, norm)
    w.t[s + 1] = t_end if final else t + h
    _next_size(control, going, h, norm, final)
    w.told[CORRECTIONS], w.told[LAST] = count, final
    return DONE


def shorten(control: Control, going: np.ndarray, h: float, solved: bool, norm: float) -> None:
    """Set the size of the next attempt after a rejected step of size h (Newton failure or error too large)."""
    _shorten(control, going.view(np.float64), h, solved, norm)


@lowered
def _shorten(control: Control, going: Doubles, h: float, solved: bool, norm: float) -> None:
    going[_SINCE_FAILURE], going[_EQUAL], going[_FREE] = 0.0, 0.0, 0.0
    going[_FAILURES] += 1.0
    going[_UNSOLVED] += 0.0 if solved else 1.0
    factor = control.decrease
    if solved and norm < np.inf:
        factor = max(SHORTEST, min(control.decrease, SAFETY * norm ** (-1.0 / (control.order + 1.0))))
    going[_SIZE] = h * factor


def next_size(control: Control, going: np.ndarray, h: float, norm: float, final: bool) -> None:
    """Set the size of the next step after an accepted step of size h with this scaled error.

    With an error estimate the size follows Gustafsson's predictive controller: the smaller of the sizes that the last
    error and its extrapolation allow. Without an estimate it grows after a number of accepted steps.
    """
    _next_size(control, going.view(np.float64), h, norm, final)


@lowered
def _next_size(control: Control, going: Doubles, h: float, norm: float, final: bool) -> None:
    first, before, last = going[_STEPS] == 0.0 or going[_LAST] == 0.0, going[_NORM], going[_LAST]
    going[_SINCE_FAILURE] += 1.0
    going[_EQUAL] = going[_EQUAL] + 1.0 if h == last else 1.0
    going[_LAST], going[_NORM], going[_STEPS] = h, max(norm, 1e-10), going[_STEPS] + 1.0
    if final:
        return
    growth = control.increase
    if going[_FREE] > 0.0:
        growth, going[_FREE] = max(growth, FIRST_GROWTH), going[_FREE] - 1.0
    factor = growth
    if control.variables:
        power = 1.0 / (control.order + 1.0)
        factor = SAFETY * going[_NORM] ** -power
        if not first:
            factor = min(factor, SAFETY * (h / last) * (before / going[_NORM] ** 2) ** power)
        factor = min(growth, max(0.2, factor))
    if factor < 1.0:
        going[_SIZE] = h * factor
    elif going[_SINCE_FAILURE] >= control.patience:
        going[_SIZE] = min(control.largest, h * factor)
        if not control.variables:
            going[_SINCE_FAILURE] = 0.0
    else:
        going[_SIZE] = h
