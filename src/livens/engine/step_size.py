"""Steps of controlled size: how long the next one is, and whether it was good; compiled once per machine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livens.engine.jit import jit
from livens.engine.newton import (
    DONE,
    FAILED,
    INACCURATE,
    PAST,
    REACHED,
    REPIVOT,
    Kernels,
    Workspace,
    call,
    extrapolate,
    solve_step,
)

#: The next step is this much shorter than the one that would just meet the tolerance.
SAFETY = 0.95
#: A step is shortened at most by this factor at once.
SHORTEST = 0.1
#: Steps that begin with a size nobody gave may grow like this until something says how long they ought to be.
FIRST_GROWTH, FIRST_STEPS = 1000.0, 4
#: No step is shorter than this many units in the last place of the time.
UNITS = 16.0 * 2.0**-52


class Control(NamedTuple):
    """How the size of controlled steps follows what they meet; see `livens.StepControl`."""

    smallest: float
    largest: float
    decrease: float
    increase: float
    patience: int  # steps without failure before they grow
    absolute: np.ndarray  # tolerated errors of a step, one for each variable; without any, no estimate is used
    relative: np.ndarray
    powers: np.ndarray  # errors are taken times h to these
    order: int  # of the estimate
    filtered: bool  # it is the solution of linear equations


#: For runs whose steps are equal.
NO_CONTROL = Control(0.0, np.inf, 0.5, 2.0, 1, np.zeros(0), np.zeros(0), np.zeros(0), 1, False)
#: What goes on from one controlled step to the next: its size, steps since the last failure, how many sizes failed, how
#: many steps were of equal size so far, and that size; the error of the last step in units of what is tolerated, how
#: many steps there were, how many sizes failed because equations could not be solved, and how many steps may still grow
#: freely.
FLOW = np.dtype(
    [
        (name, "f8")
        for name in ("size", "since_failure", "failures", "equal", "last", "norm", "steps", "unsolved", "free")
    ]
)


def flow(h: float, automatic: bool = False) -> np.ndarray:
    """The flow of step sizes before the first step; `automatic`: nobody said how long that one is."""
    going = np.zeros(1, dtype=FLOW)
    going["size"], going["free"] = h, FIRST_STEPS if automatic else 0
    return going


def restored_flow(numbers: np.ndarray) -> np.ndarray:
    """The flow from the numbers in a file; those of earlier versions had fewer."""
    going = np.zeros(1, dtype=FLOW)
    going.view("f8")[: np.size(numbers)] = np.ravel(numbers)
    return going


@jit
def solve_dense(A: np.ndarray, b: np.ndarray) -> bool:
    """``A x = b`` by elimination with scaled pivots; x takes the place of b. False if A is singular."""
    n = b.size
    scale = np.empty(n)
    for i in range(n):
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(A[i, j]))
        if not 0.0 < largest < np.inf:
            return False
        scale[i] = 1.0 / largest
    for k in range(n):
        pivot, best = k, -1.0
        for i in range(k, n):
            size = abs(A[i, k]) * scale[i]
            if size > best:
                pivot, best = i, size
        if not best > 0.0:
            return False
        if pivot != k:
            for j in range(n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            b[k], b[pivot] = b[pivot], b[k]
            scale[k], scale[pivot] = scale[pivot], scale[k]
        for i in range(k + 1, n):
            if A[i, k] != 0.0:
                factor = A[i, k] / A[k, k]
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
                b[i] -= factor * b[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= A[i, j] * b[j]
        b[i] /= A[i, i]
    return True


@jit
def _in_units(control: Control, estimate: np.ndarray, i: int, h: float) -> float:
    """The error of variable i in units of what is tolerated."""
    size = abs(estimate[i]) * h ** control.powers[i]
    allowed = control.absolute[i] + control.relative[i] * estimate[control.absolute.size + i]
    return 0.0 if allowed == np.inf else size / allowed


@jit
def worst_variable(control: Control, estimate: np.ndarray, h: float) -> int:
    """The variable whose error is largest in units of what is tolerated, or is no number."""
    worst, found = -1.0, 0
    for i in range(control.absolute.size):
        one = _in_units(control, estimate, i, h)
        if not one <= worst:
            worst, found = one, i
        if one != one:
            return i
    return found


@jit
def _estimated(kernels: Kernels, control: Control, w: Workspace, z: int, x: int) -> float:
    """The largest error that is estimated at a state z, in units of what is tolerated. NaN stays."""
    n = control.absolute.size
    call(kernels.error, x, z, w.c.ctypes.data, w.r.ctypes.data, w.estimate.ctypes.data)
    if control.filtered and not solve_dense(w.estimate[2 * n :].reshape((n, n)), w.estimate[:n]):
        return np.nan
    return _in_units(control, w.estimate, worst_variable(control, w.estimate, w.c[0]), w.c[0])


@jit
def _error_norm(kernels: Kernels, control: Control, w: Workspace, s: int, x: np.ndarray, doubtful: bool) -> float:
    """The largest estimated error of step s in units of what is tolerated; 0 without an estimate.

    Where a step begins anew, something stiff may move that is not resolved and need not be. The estimate at the state
    that the first one leads to then shows no more of it (Hairer and Wanner, IV.8.20).
    """
    n = control.absolute.size
    if n == 0:
        return 0.0
    norm = _estimated(kernels, control, w, w.Z.ctypes.data + s * w.Z.shape[1] * 8, x.ctypes.data)
    if control.filtered and doubtful and norm > 1.0:
        moved = w.Z[s].copy()
        for i in range(n):
            moved[i] += w.estimate[i]
        again = _estimated(kernels, control, w, moved.ctypes.data, x.ctypes.data)
        norm = again if again < norm else norm
    return norm


@jit
def _predict(kernels: Kernels, going: np.ndarray, w: Workspace, s: int, h: float) -> bool:
    """The unknowns of step s from those of the last steps, if there is a way to know them."""
    x, last = w.X[s + PAST], w.X[s + PAST - 1]
    if kernels.carry and going[0].steps > 0.0 and going[0].last > 0.0:
        w.r[0] = h / going[0].last
        z = w.Z.ctypes.data + s * w.Z.shape[1] * 8
        call(kernels.carry, last.ctypes.data, z, w.c.ctypes.data, w.r.ctypes.data, x.ctypes.data)
        return True
    return bool(going[0].equal >= PAST and h == going[0].last and extrapolate(w.X, s, x, w.kinds))


@jit
def controlled_step(
    kernels: Kernels,
    t_end: float,
    to_the_end: bool,
    control: Control,
    going: np.ndarray,
    w: Workspace,
    s: int,
    slow: int,
) -> tuple[int, int, bool]:
    """Solve step s with the largest size that succeeds. Returns (status, corrections, whether it is the last one)."""
    z, c, r, x = w.Z.ctypes.data + s * w.Z.shape[1] * 8, w.c.ctypes.data, w.r.ctypes.data, w.X[s + PAST]
    dx, scale, px, t, count = w.dx.ctypes.data, w.scale.ctypes.data, x.ctypes.data, w.t[s], 0
    failed = FAILED
    shortest = max(control.smallest, UNITS * abs(t))
    if not going[0].size >= shortest:
        going[0].size = shortest
    while True:
        h = min(going[0].size, control.largest)
        if not h >= shortest:
            return failed, count, False
        final = t + h >= t_end - 1e-10 * h
        if final:
            if not to_the_end:
                return REACHED, count, True
            h = t_end - t
        w.c[0], w.c[1] = h, t
        status, known = FAILED, _predict(kernels, going, w, s, h)
        for attempt in range(2):
            if attempt == 1 or not known:
                for i in range(x.size):
                    x[i] = w.X[s + PAST - 1, i]
                call(kernels.guess, px, z, c, r, px)
            for i in range(x.size):
                w.dx[i] = 0.0
            call(kernels.floor, px, z, c, dx, scale)
            status, again = solve_step(kernels, x, z, c, w.r, w.dx, w.scale, slow, False)
            count += again
            if status != FAILED or not known:
                break
        if status == REPIVOT:
            return REPIVOT, count, False
        doubtful = going[0].steps == 0.0 or going[0].since_failure == 0.0
        norm = _error_norm(kernels, control, w, s, x, doubtful) if status == DONE else 0.0
        if status == DONE and norm <= 1.0:
            break
        failed = INACCURATE if status == DONE else FAILED
        shorten(control, going, h, status == DONE, norm)
    w.t[s + 1] = t_end if final else t + h
    next_size(control, going, h, norm, final)
    return DONE, count, final


@jit
def shorten(control: Control, going: np.ndarray, h: float, solved: bool, norm: float) -> None:
    """The size of the next attempt, after one of size h that could not be solved, or whose error is too large."""
    now = going[0]
    now.since_failure, now.equal, now.free = 0.0, 0.0, 0.0
    now.failures += 1.0
    now.unsolved += 0.0 if solved else 1.0
    factor = control.decrease
    if solved and norm < np.inf:
        factor = max(SHORTEST, min(control.decrease, SAFETY * norm ** (-1.0 / (control.order + 1.0))))
    now.size = h * factor


@jit
def next_size(control: Control, going: np.ndarray, h: float, norm: float, final: bool) -> None:
    """The size of the next step, after one of size h with this error.

    With an estimate it follows Gustafsson's predictive controller, the lesser of what the error of this step says and
    what it says if its change goes on; without one it grows after so many steps without failure.
    """
    now = going[0]
    first, before, last = now.steps == 0.0 or now.last == 0.0, now.norm, now.last
    now.since_failure += 1.0
    now.equal = now.equal + 1.0 if h == last else 1.0
    now.last, now.norm, now.steps = h, max(norm, 1e-10), now.steps + 1.0
    if final:
        return
    growth = control.increase
    if now.free > 0.0:
        growth, now.free = max(growth, FIRST_GROWTH), now.free - 1.0
    factor = growth
    if control.absolute.size:
        power = 1.0 / (control.order + 1.0)
        factor = SAFETY * now.norm**-power
        if not first:
            factor = min(factor, SAFETY * (h / last) * (before / now.norm**2) ** power)
        factor = min(growth, max(0.2, factor))
    if factor < 1.0:
        now.size = h * factor
    elif now.since_failure >= control.patience:
        now.size = min(control.largest, h * factor)
        if not control.absolute.size:
            now.since_failure = 0.0
    else:
        now.size = h
