"""Newton's method for one step, compiled once per machine: kernels come as addresses, everything else as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from livens.engine.jit import jit

# Functions are compiled with NumPy's rules for division by zero: infinities and NaN are seen by the residual test, and
# an exception from compiled code would lose the run.

#: How a step, or a call of `livens.engine.loop.advance`, ended.
DONE, FAILED, REPIVOT, REACHED, INACCURATE = 0, 1, 2, 3, 4
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
CURVATURE_LIMIT = 1e6
#: How many past steps the predictor of the unknowns is made of.
PAST = 5
#: How much of the last change the extrapolation of the unknowns may be bent.
BENT = 0.7


class Kernels(NamedTuple):
    """Addresses of the native functions of one step; 0 for those a scheme has not."""

    newton: int
    first: int
    residual: int
    floor: int
    end: int
    guess: int
    predict: int
    error: int
    carry: int


class Workspace(NamedTuple):
    """The arrays of a chunk of steps.

    Step s goes from ``Z[s]`` at ``t[s]`` to ``Z[s+1]`` at ``t[s+1]`` and leaves its unknowns in ``X[s+PAST]``;
    ``X[:PAST]`` are those of the steps before, oldest first.
    """

    c: np.ndarray  # h, t and the parameters of the step at work
    Z: np.ndarray
    X: np.ndarray
    t: np.ndarray
    iterations: np.ndarray
    work: np.ndarray  # of the fused correction, see `livens.engine.places.Places`
    dx: np.ndarray  # the part of it with the last Newton correction
    scale: np.ndarray  # and that with the reciprocal round-off bounds of the residual
    r: np.ndarray  # residual, and the growth of the elimination behind it
    estimate: np.ndarray  # of the error of a step, what it is measured against, and the matrix that filters it
    kinds: np.ndarray  # how many unknowns of one kind follow each other


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


# -- predictors -------------------------------------------------------------------------------------------------------
@jit
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


# -- the residual test ------------------------------------------------------------------------------------------------
@jit
def scaled(r: np.ndarray, scale: np.ndarray) -> float:
    """The largest residual in units of its round-off bound: 1 and below is zero. NaN if any of them is NaN."""
    worst, total = 0.0, 0.0
    for i in range(scale.size):
        a = abs(r[i]) * scale[i]
        total += a  # a maximum loses what is not a number, a sum does not
        if a > worst:
            worst = a
    return worst if total == total else total


@jit
def at_the_floor(worst: float, last: float, before: float, iteration: int) -> bool:
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


@jit
def curvature_explains(
    residual: int, x: np.ndarray, z: int, c: int, r: np.ndarray, dx: np.ndarray, scale: np.ndarray
) -> bool:
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


@jit
def solve_step(
    kernels: Kernels,
    x: np.ndarray,
    z: int,
    c: int,
    r: np.ndarray,
    dx: np.ndarray,
    scale: np.ndarray,
    slow: int,
    corrected: bool,
) -> tuple[int, int]:
    """Newton's method for one step from the guess x, down to the round-off floor. Returns (status, corrections).

    If x has been `corrected` once already, which was not enough, that counts as the first correction. The arrays come
    one by one: to pass all of the workspace, Numba would count references to each in every step.
    """
    n = x.size
    px, pr, pdx, pscale = x.ctypes.data, r.ctypes.data, dx.ctypes.data, scale.ctypes.data
    last, before, stalls = np.inf, np.inf, 0
    first = 0.0  # nobody has measured it: then convergence counts as quadratic only from the third correction on
    for iteration in range(2 if corrected else 1, MOST_ITERATIONS + 1):
        call(kernels.newton, px, z, c, pr, pdx)
        growth = r[n]
        if iteration == 1:
            first = scaled(r, scale)
        elif corrected and iteration == 2:
            last = scaled(r, scale)
        for i in range(n):
            x[i] -= dx[i]
        call(kernels.residual, px, z, c, pr, pdx)
        worst = scaled(r, scale)
        if worst > 0.5 * last:  # no gain: are the bounds those of another time, or is this the floor?
            stalls += 1
            call(kernels.floor, px, z, c, pdx, pscale)
            worst = scaled(r, scale)
            if stalls > 1 and worst <= CURVATURE_LIMIT and curvature_explains(kernels.residual, x, z, c, r, dx, scale):
                return DONE, iteration
        if at_the_floor(worst, last, first if iteration == 2 else before, iteration):
            return DONE, iteration
        if not worst < np.inf:
            return FAILED, iteration
        if ((growth > GROWTH_LIMIT and iteration >= 2) or (growth > SUSPICIOUS and iteration >= slow)) and (
            slow <= MOST_ITERATIONS
        ):
            return REPIVOT, iteration
        before, last = last, worst
    return FAILED, MOST_ITERATIONS
