"""The loop over time of the assembled tier, compiled once per machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.assembly import ENDS, NEWTON, POOL, RESIDUAL, TURN
from livens.engine.assembled.fronts import FACTOR, FORWARD, KEEP
from livens.engine.assembled.parts import (
    IMPULSES,
    Parts,
    bounds,
    end,
    largest_scaled,
    predict_unknowns,
    run,
    solve,
    subtract,
    sum_rows,
    sum_up,
)
from livens.engine.assembled.prediction import RING, best_candidate
from livens.engine.floor import SMALL, at_the_floor
from livens.engine.loop import REFRESH
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import address
from livens.engine.newton import CURVATURE_LIMIT, DONE, FAILED

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


#: Where a call says how many steps are done, and how many corrections the last one took.
STEPS_DONE, TAKEN, _TOLD = range(3)


@dataclass(frozen=True, eq=False)
class Room(Record):
    """The arrays of a chunk of steps: step s goes from ``Z[s]`` to ``Z[s+1]`` and leaves its unknowns in ``X[s+RING]``.

    ``M[s]`` is the memory of the equations, and behind it what the loop itself carries on, from entry `book` on.
    """

    c: Doubles
    states: int
    Z: Doubles
    size: int
    X: Doubles
    width: int
    M: Doubles
    book: int
    iterations: Integers
    dx: Doubles
    scale: Doubles
    r: Doubles
    work: Doubles
    other: Doubles  # two more like it
    told: Integers

    @classmethod
    def of(cls, k: np.ndarray, states: int, unknowns: int, memory: int, steps: int) -> Room:
        """Room for so many steps."""
        return cls(
            np.concatenate([[0.0, 0.0], k]),
            states,
            np.zeros((steps + 1, states)),
            unknowns,
            np.zeros((steps + RING, unknowns)),
            memory + BOOK,
            np.zeros((steps + 1, memory + BOOK)),
            memory,
            np.zeros(steps, dtype=np.int64),
            np.zeros(unknowns),
            np.zeros(unknowns),
            np.zeros(unknowns),
            np.zeros(unknowns),
            np.zeros(2 * unknowns),
            np.zeros(_TOLD, dtype=np.int64),
        )


@lowered
def _residual(p: Parts, x: Doubles, z: Doubles, c: Doubles, r: Doubles, scale: Doubles) -> float:
    """The residual at x; the largest of its entries in units of their bounds."""
    run(p, RESIDUAL, POOL, x, z, c, p.pool)
    return sum_rows(p, r, scale)


@lowered
def _curvature_explains(p: Parts, x: Doubles, z: Doubles, w: Room) -> bool:
    """As `livens.engine.newton.curvature_explains`."""
    there, forth, back = w.work, w.other, w.other + w.size
    for i in range(w.size):
        there[i] = x[i] + w.dx[i]
    _residual(p, there, z, w.c, forth, w.scale)
    for i in range(w.size):
        there[i] = x[i] - w.dx[i]
    _residual(p, there, z, w.c, back, w.scale)
    for i in range(w.size):
        curvature = 0.5 * abs(forth[i] - 2.0 * w.r[i] + back[i])
        if not abs(w.r[i]) <= 1.0 / w.scale[i] + 10.0 * curvature:
            return False
    return True


@lowered
def solve_step(p: Parts, x: Doubles, z: Doubles, w: Room, keep: bool) -> int:
    """Newton's method for one step from the guess x, down to the round-off floor: how it ended.

    With `keep`, corrections behind the first use its factors as long as each gains a digit.
    """
    last, before, first, stalls = np.inf, np.inf, 0.0, 0
    full = True
    for iteration in range(1, MOST_CORRECTIONS + 1):
        w.told[TAKEN] = iteration
        if full:
            run(p, NEWTON, POOL, x, z, w.c, p.pool)
            found = sum_rows(p, w.r, w.scale)
            if iteration == 1:
                first = found
            solve(p, KEEP if keep else FACTOR, w.r, w.dx)
        else:
            solve(p, FORWARD, w.r, w.dx)
        if p.turning:
            p.context[3] = address(w.dx)
            run(p, TURN, ENDS, x, z, w.c, p.ends)
        subtract(p, x, w.dx)
        worst = _residual(p, x, z, w.c, w.r, w.scale)
        # no gain, or nearly there: are the bounds those of another time? To ask costs a third of a correction
        if worst > 0.5 * last or (iteration == 1 and 1.0 < worst < 1e4):
            stalls += iteration > 1
            bounds(p, x, z, w.c, w.dx, w.scale)
            worst = largest_scaled(p, w.r, w.scale)
            if stalls > 1 and worst <= CURVATURE_LIMIT and _curvature_explains(p, x, z, w):
                _residual(p, x, z, w.c, w.r, w.scale)  # whose parts are needed at the end of the step
                return DONE
        if iteration == 2:
            before = first
        if full and at_the_floor(worst, last, before, iteration):
            return DONE
        # with kept factors convergence is linear
        small = worst <= SMALL or worst > 0.25 * last or last * (last / max(before, 1e-300)) <= SMALL
        if not full and worst <= 1.0 and small:
            return DONE
        if not worst < np.inf or stalls > 6:
            return FAILED
        full = not keep or worst > 0.1 * (first if iteration == 1 else last)
        before, last = last, worst
    return FAILED


@lowered
def finish_step(p: Parts, s: int, corrections: int, w: Room) -> None:
    """End of step s, and what goes on from it: the best predictors, and how many steps they can look back on."""
    x = w.X + (s + RING) * w.size
    old, new = w.M + s * w.width, w.M + (s + 1) * w.width
    if p.pushed:  # by what the last residual was made of
        sum_up(p, IMPULSES, p.impulses, p.first_multiplier)
    end(p, x, w.Z + s * w.states, old, w.c, w.Z + (s + 1) * w.states, new)
    old, new = old + w.book, new + w.book
    for i in range(BOOK):
        new[i] = old[i]
    known = int(old[KNOWN]) if old[SIZE] == w.c[0] else 0
    count = known + 1
    if known > 0 and (known < RING or count % _ASK == 0 or (corrections > 1 and count % _ASK_OFTEN == 0)):
        cut, most = p.first_multiplier, min(known, RING)
        new[COORDINATES] = best_candidate(x, w.size, p.weights, p.reach, most, 0, cut, w.work)
        new[MULTIPLIERS] = best_candidate(x, w.size, p.weights, p.reach, most, cut, w.size, w.work)
    new[KNOWN], new[SIZE] = count, w.c[0]
    new[CORRECTIONS] = corrections
    new[SLOW] = old[SLOW] + 1.0 if corrections > 1 and known >= RING else 0.0
    w.iterations[s] = corrections


@lowered
def start_step(p: Parts, s: int, w: Room) -> bool:
    """Predict the unknowns of step s; whether there was something to predict from."""
    old, x = w.M + s * w.width, w.X + (s + RING) * w.size
    p.context[0] = address(old)
    book = old + w.book
    if book[KNOWN] == 0.0 or book[SIZE] != w.c[0]:
        past = x + (-w.size)
        for i in range(w.size):
            x[i] = past[i]
        return False
    predict_unknowns(p, x, int(book[COORDINATES]), int(book[MULTIPLIERS]))
    return True


@lowered
def advance(p: Parts, w: Room, h: float, origin: float, first: int, done: int, steps: int, chords: bool) -> int:
    """Take the steps from number `done` to `steps` of a chunk: how it ended."""
    w.c[0] = h
    for s in range(done, steps):
        w.told[STEPS_DONE] = s
        number = first + s
        w.c[1] = origin + number * h
        book = w.M + (s * w.width + w.book)
        if book[SLOW] >= _PATIENCE:
            book[KEPT] = 1.0
        kept = book[KEPT] != 0.0
        if kept and not chords:
            return CHORDS
        smooth = start_step(p, s, w)
        x, z = w.X + (s + RING) * w.size, w.Z + s * w.states
        if number % REFRESH == 0 or not smooth:
            if not smooth:
                for i in range(w.size):
                    w.dx[i] = 0.0
            bounds(p, x, z, w.c, w.dx, w.scale)
        # dense fronts store their factors in any case
        keep = p.fronts.dense.count > 0 or (kept and book[CORRECTIONS] > 1.0)
        status = solve_step(p, x, z, w, keep)
        if status != DONE:
            return status
        finish_step(p, s, w.told[TAKEN], w)
    w.told[STEPS_DONE] = steps
    return DONE
