"""The loop over time, compiled once per machine, with a policy for the size of the next step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livens.engine.jit import jit
from livens.engine.newton import DONE, MOST_ITERATIONS, PAST, REACHED, Kernels, Workspace, call, solve_step
from livens.engine.step_size import Control, controlled_step, flow

#: The round-off bounds are computed anew after this many steps, and whenever a residual does not reach them.
REFRESH = 64


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
            status, iterations[s], final = controlled_step(
                kernels, policy.t_end, policy.to_the_end, control, going, w, s, slow
            )
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


def compile(kernels: Kernels, control: Control, w: Workspace) -> None:
    """Call the loop without taking a step."""
    advance(kernels, Policy(False, 1.0, 0.0, 0, -1, np.inf, np.inf, True), control, flow(1.0), w, 0, 0, 0)


@jit
def count(times: np.ndarray, sizes: np.ndarray, origin: float, first: int, h: float) -> None:
    """Where equal steps end, and their sizes. They are counted from the origin: a sum would gather rounding errors."""
    for s in range(sizes.size):
        times[s + 1], sizes[s] = origin + (first + s + 1) * h, h


@jit
def told(
    iterations: np.ndarray, origin: float, h: float, times: np.ndarray, sizes: np.ndarray, counts: np.ndarray
) -> int:
    """Rows of a run of equal steps from its beginning: times, sizes and Newton corrections; the sum of these."""
    times[0], sizes[0], counts[0], total = origin, 0.0, 0, 0
    for s in range(sizes.size - 1):
        times[s + 1], sizes[s + 1], counts[s + 1] = origin + (s + 1) * h, h, iterations[s]
        total += iterations[s]
    return total


@jit
def tabulate_steps(
    kernel: int,
    X: np.ndarray,
    Z: np.ndarray,
    more: np.ndarray,
    c: np.ndarray,
    t: np.ndarray,
    h: np.ndarray,
    out: np.ndarray,
) -> None:
    """Evaluate a kernel at every step: its unknowns X, state Z before it, time, size and a row of something more."""
    for s in range(out.shape[0]):
        c[0], c[1] = h[s], t[s]
        call(kernel, X[s].ctypes.data, Z[s].ctypes.data, c.ctypes.data, more[s].ctypes.data, out[s].ctypes.data)


@jit
def solve_steps(
    kernels: Kernels, X: np.ndarray, Z: np.ndarray, c: np.ndarray, t: np.ndarray, h: np.ndarray, solved: np.ndarray
) -> None:
    """The unknowns of steps that begin at states Z, each by itself; `solved` says which were found."""
    n = X.shape[1]
    r, dx, scale = np.empty(n + 1), np.zeros(n), np.empty(n)
    pc, pr, pdx, pscale = c.ctypes.data, r.ctypes.data, dx.ctypes.data, scale.ctypes.data
    for s in range(Z.shape[0]):
        c[0], c[1] = h[s], t[s]
        x, z = X[s], Z[s].ctypes.data
        x[:], dx[:] = 0.0, 0.0
        call(kernels.guess, x.ctypes.data, z, pc, pr, x.ctypes.data)
        call(kernels.floor, x.ctypes.data, z, pc, pdx, pscale)
        status, _ = solve_step(kernels, x, z, pc, r, dx, scale, MOST_ITERATIONS + 1, False)
        solved[s] = status == DONE


@jit
def tabulate(kernel: int, X: np.ndarray, Z: np.ndarray, c: np.ndarray, t: np.ndarray, out: np.ndarray) -> None:
    """Evaluate a kernel at every row of (X, Z, t)."""
    for s in range(Z.shape[0]):
        c[1] = t[s]
        call(kernel, X[s].ctypes.data, Z[s].ctypes.data, c.ctypes.data, out[s].ctypes.data, out[s].ctypes.data)
