"""The loop over time of the assembled tier, compiled once per machine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livens.engine.assembled.assembly import ENDS, NEWTON, POOL, RESIDUAL, TURN
from livens.engine.assembled.fronts import FACTOR, FORWARD, KEEP, FrontArrays
from livens.engine.assembled.parts import (
    IMPULSES,
    ROWS,
    Parts,
    bounds,
    end,
    largest_scaled,
    predict_unknowns,
    run,
    solve,
    subtract,
    sum_up,
)
from livens.engine.assembled.prediction import RING, best_candidate
from livens.engine.jit import jit
from livens.engine.loop import REFRESH
from livens.engine.newton import CURVATURE_LIMIT, DONE, FAILED, SMALL, at_the_floor

#: Newton's method gives up after this many corrections.
MOST_CORRECTIONS = 25
#: A step ended because further corrections should keep their factors, for which code is needed.
CHORDS = 8
#: So many steps in a row with more than one correction ask for that.
_PATIENCE = 4
#: Which predictors are best is asked after so many steps, and more often while steps need more than one correction.
_ASK, _ASK_OFTEN = 16, 4
#: What goes on from step to step behind the memory of the equations: how many steps were of equal size, and that size;
#: the predictors in use, of coordinates and of multipliers; corrections of the last step, and steps in a row with more
#: than one; whether factors are kept.
KNOWN, SIZE, COORDINATES, MULTIPLIERS, CORRECTIONS, SLOW, KEPT, BOOK = range(8)


class Room(NamedTuple):
    """The arrays of a chunk of steps: step s goes from ``Z[s]`` to ``Z[s+1]`` and leaves its unknowns in ``X[s+RING]``.

    ``M[s]`` is the memory of the equations, and behind it what the loop itself carries on.
    """

    c: np.ndarray
    Z: np.ndarray
    X: np.ndarray
    M: np.ndarray
    iterations: np.ndarray
    dx: np.ndarray
    scale: np.ndarray
    r: np.ndarray
    work: np.ndarray


@jit
def residual(p: Parts, x: np.ndarray, z: np.ndarray, c: np.ndarray, r: np.ndarray) -> None:
    run(p, RESIDUAL, POOL, x, z, c, p.pool)
    sum_up(p, ROWS, r)


@jit
def _curvature_explains(p: Parts, x: np.ndarray, z: np.ndarray, w: Room) -> bool:
    """As `livens.engine.newton.curvature_explains`."""
    forth, back = np.empty_like(w.r), np.empty_like(w.r)
    residual(p, x + w.dx, z, w.c, forth)
    residual(p, x - w.dx, z, w.c, back)
    for i in range(x.size):
        curvature = 0.5 * abs(forth[i] - 2.0 * w.r[i] + back[i])
        if not abs(w.r[i]) <= 1.0 / w.scale[i] + 10.0 * curvature:
            return False
    return True


@jit
def _correct(p: Parts, f: FrontArrays, how: int, x: np.ndarray, z: np.ndarray, w: Room) -> None:
    """One correction; with kept factors, the residual of the last one is in `r`."""
    if how != FORWARD:
        run(p, NEWTON, POOL, x, z, w.c, p.pool)
        sum_up(p, ROWS, w.r)
    solve(p, f, how, w.r, w.dx)
    if p.turning:
        p.context[3] = w.dx.ctypes.data
        run(p, TURN, ENDS, x, z, w.c, p.ends)


@jit
def solve_step(p: Parts, f: FrontArrays, x: np.ndarray, z: np.ndarray, w: Room, keep: bool) -> tuple[int, int]:
    """Newton's method for one step from the guess x, down to the round-off floor: (status, corrections).

    With `keep`, corrections behind the first use its factors as long as each gains a digit.
    """
    last, before, first, stalls = np.inf, np.inf, 0.0, 0
    full = True
    for iteration in range(1, MOST_CORRECTIONS + 1):
        _correct(p, f, (KEEP if keep else FACTOR) if full else FORWARD, x, z, w)
        if iteration == 1:
            first = largest_scaled(p, w.r, w.scale)
        subtract(p, x, w.dx)
        residual(p, x, z, w.c, w.r)
        worst = largest_scaled(p, w.r, w.scale)
        # no gain, or nearly there: are the bounds those of another time? To ask costs a third of a correction
        if worst > 0.5 * last or (iteration == 1 and 1.0 < worst < 1e4):
            stalls += iteration > 1
            bounds(p, x, z, w.c, w.dx, w.scale)
            worst = largest_scaled(p, w.r, w.scale)
            if stalls > 1 and worst <= CURVATURE_LIMIT and _curvature_explains(p, x, z, w):
                residual(p, x, z, w.c, w.r)  # whose parts are needed at the end of the step
                return DONE, iteration
        if iteration == 2:
            before = first
        if full and at_the_floor(worst, last, before, iteration):
            return DONE, iteration
        # with kept factors convergence is linear
        small = worst <= SMALL or worst > 0.25 * last or last * (last / max(before, 1e-300)) <= SMALL
        if not full and worst <= 1.0 and small:
            return DONE, iteration
        if not worst < np.inf or stalls > 6:
            return FAILED, iteration
        full = not keep or worst > 0.1 * (first if iteration == 1 else last)
        before, last = last, worst
    return FAILED, MOST_CORRECTIONS


@jit
def finish_step(p: Parts, s: int, corrections: int, w: Room) -> None:
    """End of step s, and what goes on from it: the best predictors, and how many steps they can look back on."""
    book, size, at = w.M.shape[1] - BOOK, w.X.shape[1], s + RING
    old, new = w.M[s], w.M[s + 1]
    if p.pushed:  # by what the last residual was made of
        sum_up(p, IMPULSES, p.impulses)
    end(p, w.X[at], w.Z[s], old, w.c, w.Z[s + 1], new)
    for i in range(book, old.size):
        new[i] = old[i]
    equal = old[book + SIZE] == w.c[0]
    known = int(old[book + KNOWN]) if equal else 0
    count = known + 1
    if known > 0 and (known < RING or count % _ASK == 0 or (corrections > 1 and count % _ASK_OFTEN == 0)):
        cut, most = p.first_multiplier, min(known, RING)
        new[book + COORDINATES] = best_candidate(w.X, at, p.weights, p.reach, most, 0, cut, w.work)
        new[book + MULTIPLIERS] = best_candidate(w.X, at, p.weights, p.reach, most, cut, size, w.work)
    new[book + KNOWN], new[book + SIZE] = count, w.c[0]
    new[book + CORRECTIONS] = corrections
    new[book + SLOW] = old[book + SLOW] + 1.0 if corrections > 1 and known >= RING else 0.0
    w.iterations[s] = corrections


@jit
def start_step(p: Parts, s: int, w: Room) -> bool:
    """Predict the unknowns of step s; whether there was something to predict from."""
    old, size, at = w.M[s], w.X.shape[1], s + RING
    book = old.size - BOOK
    p.context[0] = old.ctypes.data
    if old[book + KNOWN] == 0.0 or old[book + SIZE] != w.c[0]:
        for i in range(size):
            w.X[at, i] = w.X[at - 1, i]
        return False
    predict_unknowns(p, w.X, at, int(old[book + COORDINATES]), int(old[book + MULTIPLIERS]))
    return True


@jit
def advance(
    p: Parts, f: FrontArrays, w: Room, h: float, origin: float, first: int, done: int, steps: int, chords: bool
) -> tuple[int, int]:
    """Take the steps from number `done` to `steps` of a chunk; (how it ended, steps that are done)."""
    book = w.M.shape[1] - BOOK
    w.c[0] = h
    for s in range(done, steps):
        number = first + s
        w.c[1] = origin + number * h
        if w.M[s, book + SLOW] >= _PATIENCE:
            w.M[s, book + KEPT] = 1.0
        kept = w.M[s, book + KEPT] != 0.0
        if kept and not chords:
            return CHORDS, s
        smooth = start_step(p, s, w)
        x, z = w.X[s + RING], w.Z[s]
        if number % REFRESH == 0 or not smooth:
            if not smooth:
                w.dx[:] = 0.0
            bounds(p, x, z, w.c, w.dx, w.scale)
        # dense fronts store their factors in any case
        keep = f.dense.first.size > 0 or (kept and w.M[s, book + CORRECTIONS] > 1.0)
        status, corrections = solve_step(p, f, x, z, w, keep)
        if status != DONE:
            return status, s
        finish_step(p, s, corrections, w)
    return DONE, steps
