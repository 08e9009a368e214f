"""The loop over time, compiled once per machine, with a policy for the size of the next step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livens.engine.jit import jit
from livens.engine.newton import (
    DONE,
    FAILED,
    PAST,
    REACHED,
    REPIVOT,
    Kernels,
    Workspace,
    call,
    extrapolate,
    solve_step,
)

#: The round-off bounds are computed anew after this many steps, and whenever a residual does not reach them.
REFRESH = 64
#: A step that would have been longer by less than this stays as it is: equal steps have better predictors.
WORTH_CHANGING = 1.2
#: The next step is this much shorter than the one that would just meet the tolerance.
SAFETY = 0.9


class Policy(NamedTuple):
    """How the size of the next step is chosen: equal steps, counted from a time, or controlled ones.

    Equal steps of number ``first``, ``first + 1``, ... begin at ``origin + number * h``. If `entry` is not negative,
    steps end before that entry of the state exceeds `limit`: so does time in schemes with a fictive one. Controlled
    steps end before `t_end`, and with `to_the_end` just there; `Control` says what their sizes follow.
    """

    controlled: bool
    h: float
    origin: float
    first: int
    entry: int
    limit: float
    t_end: float
    to_the_end: bool


class Control(NamedTuple):
    """How the size of controlled steps follows what they meet; see `livens.StepControl`."""

    smallest: float
    largest: float
    decrease: float
    increase: float
    patience: int  # steps without failure before they grow
    absolute: float  # tolerated error of a step; no estimate is used if both are zero
    relative: float
    order: int  # of the estimate


#: For runs whose steps are equal.
NO_CONTROL = Control(0.0, np.inf, 0.5, 2.0, 1, 0.0, 0.0, 1)
#: What goes on from one controlled step to the next: its size, steps since the last failure, how many sizes failed, how
#: many steps were of equal size so far, and that size.
FLOW = np.dtype([(name, "f8") for name in ("size", "since_failure", "failures", "equal", "last")])


def flow(h: float) -> np.ndarray:
    """The flow of step sizes before the first step."""
    return np.array([(h, 0.0, 0.0, 0.0, 0.0)], dtype=FLOW)


@jit
def _error_norm(kernels: Kernels, control: Control, w: Workspace, s: int, x: np.ndarray) -> float:
    """The largest estimated error of step s in units of what is tolerated; 0 without an estimate, NaN stays."""
    half, norm = w.estimate.size // 2, 0.0
    if half:
        z = w.Z.ctypes.data + s * w.Z.shape[1] * 8
        call(kernels.error, x.ctypes.data, z, w.c.ctypes.data, w.r.ctypes.data, w.estimate.ctypes.data)
        for i in range(half):
            one = abs(w.estimate[i]) / (control.absolute + control.relative * w.estimate[half + i])
            if one != one:
                return one
            norm = max(norm, one)
    return norm


@jit
def _controlled_step(
    kernels: Kernels, policy: Policy, control: Control, going: np.ndarray, w: Workspace, s: int, slow: int
) -> tuple[int, int, bool]:
    """Solve step s with the largest size that succeeds; whether it is the last one."""
    z, c, r, x = w.Z.ctypes.data + s * w.Z.shape[1] * 8, w.c.ctypes.data, w.r.ctypes.data, w.X[s + PAST]
    dx, scale, px, t, count = w.dx.ctypes.data, w.scale.ctypes.data, x.ctypes.data, w.t[s], 0
    estimated = w.estimate.size > 0
    while True:
        h = min(going[0].size, control.largest)
        if not h >= control.smallest:
            return FAILED, count, False
        final = t + h >= policy.t_end - 1e-10 * h
        if final:
            if not policy.to_the_end:
                return REACHED, count, True
            h = policy.t_end - t
        w.c[0], w.c[1] = h, t
        smooth = going[0].equal >= PAST and h == going[0].last and extrapolate(w.X, s, x, w.kinds)
        if not smooth:
            for i in range(x.size):
                x[i] = w.X[s + PAST - 1, i]
            call(kernels.guess, px, z, c, r, px)
            for i in range(x.size):
                w.dx[i] = 0.0
        if not smooth or going[0].equal % REFRESH == 0:
            call(kernels.floor, px, z, c, dx, scale)
        status, again = solve_step(kernels, x, z, c, w.r, w.dx, w.scale, slow, False)
        count += again
        if status == REPIVOT:
            return REPIVOT, count, False
        norm = _error_norm(kernels, control, w, s, x) if status == DONE else 0.0
        if status == DONE and norm <= 1.0:
            break
        going[0].since_failure, going[0].equal = 0.0, 0.0
        going[0].failures += 1.0
        factor = control.decrease
        if status == DONE and norm < np.inf:
            factor = max(0.1, min(control.decrease, SAFETY * norm ** (-1.0 / (control.order + 1.0))))
        going[0].size = h * factor
    w.t[s + 1] = policy.t_end if final else t + h
    going[0].since_failure += 1.0
    going[0].equal = going[0].equal + 1.0 if h == going[0].last else 1.0
    going[0].last = h
    factor = control.increase
    if estimated:
        factor = min(control.increase, SAFETY * max(norm, 1e-10) ** (-1.0 / (control.order + 1.0)))
    if not final:
        if going[0].since_failure >= control.patience and factor >= WORTH_CHANGING:
            going[0].size, going[0].since_failure = min(control.largest, h * factor), 0.0
        elif estimated and factor < 1.0:
            going[0].size = h * factor
    return DONE, count, final


@jit
def advance(
    kernels: Kernels,
    policy: Policy,
    control: Control,
    going: np.ndarray,
    w: Workspace,
    done: int,
    steps: int,
    slow: int,
) -> tuple[int, int]:
    """Take the steps from number `done` to `steps` of a chunk. Returns (how it ended, steps that are done).

    A scheme with nothing to solve has no unknowns: its step is its end. If a step is refused, `done` says which one.
    The arrays are taken out of the workspace once: where they are passed on together, Numba counts references to each
    of them in every step, which takes longer than a step of a pendulum.
    """
    c, Z, X, dx, scale, r, work, iterations = w.c, w.Z, w.X, w.dx, w.scale, w.r, w.work, w.iterations
    n, size = X.shape[1], Z.shape[1] * 8
    pc, pr, pdx, pscale, pw = c.ctypes.data, r.ctypes.data, dx.ctypes.data, scale.ctypes.data, work.ctypes.data
    guess, floor, end, h = kernels.guess, kernels.floor, kernels.end, policy.h
    predict, first = kernels.predict, kernels.first
    # as in `livens.engine.places`, whose tuple would be built anew here
    entry, limit, row, trusted, verdict = policy.entry, policy.limit, n * 8, 2 * n + 4, n + 2
    c[0] = h
    for s in range(done, steps):
        z, px = Z.ctypes.data + s * size, X.ctypes.data + (s + PAST) * row
        final, ended = False, False
        if policy.controlled:
            status, iterations[s], final = _controlled_step(kernels, policy, control, going, w, s, slow)
            if status != DONE:
                return status, s
        else:
            number = policy.first + s
            c[1] = policy.origin + number * h
            if n:
                call(predict, px - PAST * row, z, pc, pr, pw + 8 * trusted)
                smooth = work[trusted] != 0.0
                if not smooth:
                    call(guess, px, z, pc, pr, px)
                if number % REFRESH == 0:
                    call(floor, px, z, pc, pdx, pscale)
                call(first, px, z, pc, pw, z + size)
                iterations[s], ended = 1, work[verdict] <= 1.0
                if not ended:
                    x = X[s + PAST]
                    status, count = solve_step(kernels, x, z, pc, r, dx, scale, slow, True)
                    if status != DONE:
                        for i in range(n):  # once more, from the last unknowns or from the scheme's own guess
                            x[i] = X[s + PAST - 1, i]
                            dx[i] = 0.0
                        if smooth:
                            call(guess, px, z, pc, pr, px)
                        call(floor, px, z, pc, pdx, pscale)
                        status, again = solve_step(kernels, x, z, pc, r, dx, scale, slow, False)
                        count += again
                        if status != DONE:
                            return status, s
                    iterations[s] = count
        if not ended:
            call(end, px, z, pc, pr, z + size)
        if entry >= 0 and not Z[s + 1, entry] <= limit:
            return REACHED, s
        if final:
            return REACHED, s + 1
    return DONE, steps


@jit
def count(times: np.ndarray, sizes: np.ndarray, origin: float, first: int, h: float) -> None:
    """Where equal steps end, and their sizes. They are counted from the origin: a sum would gather rounding errors."""
    for s in range(sizes.size):
        times[s + 1], sizes[s] = origin + (first + s + 1) * h, h


@jit
def tabulate(kernel: int, X: np.ndarray, Z: np.ndarray, c: np.ndarray, t: np.ndarray, out: np.ndarray) -> None:
    """Evaluate a kernel at every row of (X, Z, t)."""
    for s in range(Z.shape[0]):
        c[1] = t[s]
        call(kernel, X[s].ctypes.data, Z[s].ctypes.data, c.ctypes.data, out[s].ctypes.data, out[s].ctypes.data)
