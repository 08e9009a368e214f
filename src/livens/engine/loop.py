"""The loop over time, compiled once per machine: kernels come as addresses, everything else as arrays."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

#: How a call of `advance` ended.
DONE, FAILED, REPIVOT, REACHED = 0, 1, 2, 3
#: Newton's method gives up after this many corrections.
MOST_ITERATIONS = 25
#: Another pivot order is asked for if a step is not done after two corrections and elimination factors exceed
#: `GROWTH_LIMIT` (half the digits are lost), or after `SLOW_ITERATIONS` and they exceed `SUSPICIOUS`.
GROWTH_LIMIT, SLOW_ITERATIONS, SUSPICIOUS = 1e8, 5, 1e3
#: Below this part of its bound, a residual is round-off beyond doubt.
SMALL = 1.0 / 16.0
#: Where corrections that are nothing but round-off shake the unknowns so much that the curvature of the equations
#: lifts the residual above its bound (near singular positions), up to this many times the bound is accepted, if the
#: curvature explains it and nothing is gained any more.
SHAKEN_LIMIT = 1e6
#: How many past steps the starting guess of the unknowns is made of.
PAST = 5
#: How much of the last change the extrapolation of the unknowns may be bent.
BENT = 0.7
#: The round-off bounds are computed anew every so many steps, and whenever a residual does not reach them.
REFRESH = 64


@intrinsic
def call(typingctx: Any, address: Any, x: Any, z: Any, c: Any, r: Any, out: Any) -> Any:
    """Call the native function at `address` with five addresses of doubles."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = cgutils.voidptr_t
        function = cgutils.ir.FunctionType(cgutils.ir.VoidType(), [pointer] * 5)
        target = builder.inttoptr(arguments[0], function.as_pointer())
        builder.call(target, [builder.inttoptr(a, pointer) for a in arguments[1:]])
        return context.get_dummy_value()

    return types.void(*[types.intp] * 6), codegen


@nb.njit(cache=True, nogil=True)
def extrapolate(X: np.ndarray, s: int, x: np.ndarray, kinds: np.ndarray) -> bool:
    """The unknowns of the next step from those of the last five: exact for cubics and for alternating signs.

    Multipliers of energy-momentum schemes carry round-off that changes its sign in every step; the root -1 in
    ``(E - 1)^4 (E + 1)`` keeps the extrapolation from amplifying it. Returns whether it can be trusted: where steps are
    long, it differs from the linear one, ``x4 + x3 - x2``, by as much as the unknowns changed. That is asked of each
    kind of unknowns by itself (`kinds` says how many there are of each): multipliers may be larger by far.
    """
    smooth, start = True, 0
    for kind in kinds:
        bend, change = 0.0, 0.0
        for i in range(start, start + kind):
            x[i] = 3.0 * (X[s + 4, i] + X[s + 1, i]) - 2.0 * (X[s + 3, i] + X[s + 2, i]) - X[s, i]
            bend = max(bend, abs(x[i] - (X[s + 4, i] + X[s + 3, i] - X[s + 2, i])))
            change = max(change, abs(X[s + 4, i] - X[s + 3, i]))
        smooth, start = smooth and bend <= BENT * change, start + kind
    return smooth


@nb.njit(cache=True, nogil=True)
def extrapolate_onward(onward: int, X: np.ndarray, s: int, x: np.ndarray, z: int, c: int, work: np.ndarray) -> bool:
    """As `extrapolate`, where a scheme knows more: A x of its unknowns x are carried on to the next step.

    What is left, ``d_n = x_n - A x_(n-1)``, is smaller and as smooth. It is extrapolated from the last four steps by
    ``d4 = 2 (d3 - d1) + d0``: exact for parabolas and for alternating signs.
    """
    for i in range(x.size):
        work[0, i] = X[s + 4, i] - 2.0 * (X[s + 3, i] - X[s + 1, i]) - X[s, i]
    call(onward, work[0].ctypes.data, z, c, work[1].ctypes.data, work[1].ctypes.data)
    bend, change = 0.0, 0.0
    for i in range(x.size):
        x[i] = 2.0 * (X[s + 4, i] - X[s + 2, i]) + X[s + 1, i] + work[1, i]
        bend = max(bend, abs(x[i] - (X[s + 4, i] + X[s + 3, i] - X[s + 2, i])))
        change = max(change, abs(X[s + 4, i] - X[s + 3, i]))
    return bend <= BENT * change


@nb.njit(cache=True, nogil=True)
def scaled(r: np.ndarray, scale: np.ndarray) -> float:
    """The largest residual in units of its round-off bound: 1 and below is zero. NaN if any is."""
    worst = 0.0
    for i in range(scale.size):
        a = abs(r[i]) * scale[i]
        if not a <= worst:  # also true for NaN, which then stays
            worst = a
    return worst


@nb.njit(cache=True, nogil=True)
def settled(worst: float, last: float, before: float, iteration: int) -> bool:
    """Whether a scaled residual is round-off and nothing else; `last` and `before` are those of the corrections before.

    The bound is on the safe side: where Newton's method came from afar, a residual just below it may still be what is
    left of the error, and one more correction shows. That is not needed where quadratic convergence, ``r_i = C
    r_{i-1}^2`` with the C of the correction before, leaves far less than the bound. An extrapolated guess that needs
    but one correction was close enough.
    """
    if not worst <= 1.0:
        return False
    quadratic = last < before and last * (last / before) ** 2 <= SMALL
    return iteration == 1 or worst <= SMALL or worst > 0.25 * last or quadratic


@nb.njit(cache=True, nogil=True)
def shaken(residual: int, x: np.ndarray, z: int, c: int, r: np.ndarray, dx: np.ndarray, scale: np.ndarray) -> bool:
    """Whether the residual r at x is within its bound plus what the curvature makes of the last correction."""
    forth, back, there = np.empty_like(r), np.empty_like(r), np.empty_like(x)
    there[:] = x + dx
    call(residual, there.ctypes.data, z, c, forth.ctypes.data, forth.ctypes.data)
    there[:] = x - dx
    call(residual, there.ctypes.data, z, c, back.ctypes.data, back.ctypes.data)
    for i in range(x.size):
        curvature = 0.5 * abs(forth[i] - 2.0 * r[i] + back[i])
        if not abs(r[i]) <= 1.0 / scale[i] + 10.0 * curvature:
            return False
    return True


@nb.njit(cache=True, nogil=True)
def solve_step(
    newton: int, residual: int, floor: int, x: np.ndarray, z: int, c: int, r: np.ndarray, dx: np.ndarray,
    scale: np.ndarray, slow: int,
) -> tuple[int, int, float]:  # fmt: skip
    """Newton's method for one step, down to the round-off floor. Returns (status, corrections, scaled residual)."""
    n = x.size
    px, pr, pdx, pscale = x.ctypes.data, r.ctypes.data, dx.ctypes.data, scale.ctypes.data
    last, before, stalls = np.inf, np.inf, 0
    for iteration in range(1, MOST_ITERATIONS + 1):
        call(newton, px, z, c, pr, pdx)
        growth = r[n]
        if iteration == 1:
            first = scaled(r, scale)
        for i in range(n):
            x[i] -= dx[i]
        call(residual, px, z, c, pr, pdx)
        worst = scaled(r, scale)
        if worst > 0.5 * last:  # no gain: are the bounds those of another time, or is this the floor?
            stalls += 1
            call(floor, px, z, c, pdx, pscale)
            worst = scaled(r, scale)
            if stalls > 1 and worst <= SHAKEN_LIMIT and shaken(residual, x, z, c, r, dx, scale):
                return DONE, iteration, worst
        if settled(worst, last, first if iteration == 2 else before, iteration):
            return DONE, iteration, worst
        if not worst < np.inf:
            return FAILED, iteration, worst
        if ((growth > GROWTH_LIMIT and iteration >= 2) or (growth > SUSPICIOUS and iteration >= slow)) and (
            slow <= MOST_ITERATIONS
        ):
            return REPIVOT, iteration, worst
        before, last = last, worst
    return FAILED, MOST_ITERATIONS, last


@nb.njit(cache=True, nogil=True)
def advance(
    kernels: tuple[int, int, int, int, int], onward: int, steps: int, first: int, h: float, t0: float, c: np.ndarray,
    Z: np.ndarray, X: np.ndarray, scale: np.ndarray, r: np.ndarray, dx: np.ndarray, iterations: np.ndarray, slow: int,
    stop: int, limit: float, kinds: np.ndarray,
) -> tuple[int, int, float]:  # fmt: skip
    """Take `steps` steps from state ``Z[0]``; ``X[:PAST]`` are the unknowns of the steps before, oldest first.

    Step s (of number ``first + s`` in the run) leaves its end in ``Z[s+1]`` and its unknowns in ``X[s+PAST]``. If entry
    `stop` of the state (none if negative) exceeds `limit` after a step, that step is not taken. Returns (status, steps
    taken, scaled residual of the step that was refused).
    """
    newton, residual, floor, end, guess = kernels
    n = X.shape[1]
    pz, size, pc = Z.ctypes.data, Z.shape[1] * 8, c.ctypes.data
    pr, pdx, pscale = r.ctypes.data, dx.ctypes.data, scale.ctypes.data
    work = np.empty((2, n if onward else 0))
    c[0] = h
    for s in range(steps):
        number = first + s
        c[1] = t0 + number * h
        z, x = pz + s * size, X[s + PAST]
        smooth = extrapolate_onward(onward, X, s, x, z, pc, work) if onward else extrapolate(X, s, x, kinds)
        if not smooth:
            call(guess, x.ctypes.data, z, pc, pr, x.ctypes.data)
        if number % REFRESH == 0:
            call(floor, x.ctypes.data, z, pc, pdx, pscale)
        status, count, worst = solve_step(newton, residual, floor, x, z, pc, r, dx, scale, slow)
        if status != DONE:
            for i in range(n):  # once more, from the unknowns of the last step or from the scheme's own guess
                x[i] = X[s + PAST - 1, i]
                dx[i] = 0.0
            if smooth:
                call(guess, x.ctypes.data, z, pc, pr, x.ctypes.data)
            call(floor, x.ctypes.data, z, pc, pdx, pscale)
            status, again, worst = solve_step(newton, residual, floor, x, z, pc, r, dx, scale, slow)
            count += again
            if status != DONE:
                return status, s, worst
        iterations[s] = count
        call(end, x.ctypes.data, z, pc, pr, z + size)
        if stop >= 0 and not Z[s + 1, stop] <= limit:
            return REACHED, s, 0.0
    return DONE, steps, 0.0


@nb.njit(cache=True, nogil=True)
def advance_explicitly(
    end: int, steps: int, first: int, h: float, t0: float, c: np.ndarray, Z: np.ndarray, stop: int, limit: float
) -> tuple[int, int]:
    """As `advance`, where nothing has to be solved."""
    z, size, pc = Z.ctypes.data, Z.shape[1] * 8, c.ctypes.data
    c[0] = h
    for s in range(steps):
        c[1] = t0 + (first + s) * h
        call(end, z, z, pc, pc, z + size)
        z += size
        if stop >= 0 and not Z[s + 1, stop] <= limit:
            return REACHED, s
    return DONE, steps


@nb.njit(cache=True, nogil=True)
def tabulate(kernel: int, X: np.ndarray, Z: np.ndarray, c: np.ndarray, t: np.ndarray, out: np.ndarray) -> None:
    """Evaluate a kernel at every row of (X, Z, t)."""
    for s in range(Z.shape[0]):
        c[1] = t[s]
        call(kernel, X[s].ctypes.data, Z[s].ctypes.data, c.ctypes.data, out[s].ctypes.data, out[s].ctypes.data)
