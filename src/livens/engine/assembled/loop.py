"""Compiled time loop of the assembled tier."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.assembly import ENDS, NEWTON, POOL, RESIDUAL, TURN
from livens.engine.assembled.fronts import FACTOR, FORWARD, KEEP
from livens.engine.assembled.memory import aligned_zeros
from livens.engine.assembled.parts import (
    Parts,
    bounds,
    end,
    largest_scaled,
    predict_unknowns,
    run,
    solve,
    subtract,
    sum_rows,
    sweep_back,
    sweep_forward,
)
from livens.engine.assembled.prediction import CANDIDATES, RING, best_candidate
from livens.engine.floor import SMALL, at_the_floor
from livens.engine.loop import REFRESH
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import address
from livens.engine.newton import CURVATURE_LIMIT, DONE, FAILED
from livens.schemes.recipes.pieces import Pieces

#: Maximum number of Newton iterations.
MOST_CORRECTIONS = 25
#: Status: the step needs the kernels of chord iterations, which are not compiled yet.
CHORDS = 8
#: Number of consecutive steps with more than one Newton iteration after which chord iterations are used.
_PATIENCE = 4
#: Interval in steps of the selection of the predictor stencil, and interval for steps with several iterations.
_ASK, _ASK_OFTEN = 16, 4
#: Entries of the loop's state after the history of the equations: number of steps of equal size, and this size;
#: stencils of the predictors of coordinates and multipliers; Newton iterations of the last step; consecutive steps with
#: more than one iteration; whether factors are stored. The order is part of the checkpoint format.
KNOWN, SIZE, COORDINATES, MULTIPLIERS, CORRECTIONS, SLOW, KEPT, BOOK = range(8)


#: Entries of the counters of a call: completed substeps, and Newton iterations of the last substep.
PARTS_DONE, TAKEN, _TOLD = range(3)


@dataclass(frozen=True, eq=False)
class Room(Record):
    """Workspace of a chunk of steps. A step consists of one substep, or of several for compositions, whose sizes are
    `substep_weights` times the step size and which start at `substep_offsets` times the step size.

    Substep r goes from ``Z[r]`` to ``Z[r+1]`` and stores its unknowns in ``X[r+N_HISTORY*n_substeps]``. ``M[r]`` is the
    history of the equations. From entry `loop_state_offset` on, it contains the state of the loop for the same substep
    of the next step. Newton updates `dx` and bounds `scale` are stored for each substep.
    """

    c: Doubles
    parts: int
    weights: Doubles
    begins: Doubles
    states: int
    Z: Doubles
    size: int
    X: Doubles
    width: int
    M: Doubles
    book: int
    iterations: Integers
    dx: Doubles
    rows: int
    scale: Doubles
    r: Doubles
    work: Doubles
    other: Doubles  # two more buffers like r
    told: Integers

    @classmethod
    def of(
        cls, k: np.ndarray, weights: tuple[float, ...], states: int, unknowns: int, rows: int, memory: int, steps: int
    ) -> Room:
        """Allocate the workspace of a number of steps."""
        parts = len(weights)
        return cls(
            np.concatenate([[0.0, 0.0], k]),
            parts,
            np.array(weights),
            np.concatenate([[0.0], np.cumsum(weights)[:-1]]),
            states,
            np.zeros((steps * parts + 1, states)),
            unknowns,
            np.zeros(((steps + RING) * parts, unknowns)),
            memory + BOOK,
            np.zeros(((steps + 1) * parts, memory + BOOK)),
            memory,
            np.zeros(steps, dtype=np.int64),
            np.zeros((parts, unknowns)),
            rows,
            np.zeros((parts, rows)),
            aligned_zeros(rows),
            np.zeros(parts * unknowns + len(CANDIDATES)),
            np.zeros(2 * rows),
            np.zeros(_TOLD, dtype=np.int64),
        )

    def from_step(self, begun: int) -> Room:
        """Return a view of the workspace that starts at a step."""
        first = begun * self.parts
        return dataclasses.replace(self, Z=self.Z[first:], X=self.X[first:], M=self.M[first:])


def first_memory(pieces: Pieces, z: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the history before the first step for all substeps, with an empty loop state."""
    memory = np.zeros((len(pieces.weights), pieces.memory.size + BOOK))
    memory[0, : pieces.memory.size] = pieces.remember(z, np.concatenate([[0.0], c[1:]]))
    return memory.ravel()


@lowered
def _residual(p: Parts, x: Doubles, z: Doubles, c: Doubles, r: Doubles, scale: Doubles) -> float:
    """Evaluate the residual at x and return its scaled maximum norm."""
    if p.sweep.parts > 1:
        return sweep_forward(p, RESIDUAL, -1, x, z, c, r, scale)
    run(p, RESIDUAL, POOL, x, z, c, p.pool)
    return sum_rows(p, r, scale)


@lowered
def _curvature_explains(p: Parts, x: Doubles, z: Doubles, w: Room, dx: Doubles, scale: Doubles) -> bool:
    """Accept a stagnating residual explained by curvature; see `livens.engine.newton`."""
    there, forth, back = w.work, w.other, w.other + w.rows
    for i in range(w.size):
        there[i] = x[i] + dx[i]
    _residual(p, there, z, w.c, forth, scale)
    for i in range(w.size):
        there[i] = x[i] - dx[i]
    _residual(p, there, z, w.c, back, scale)
    for i in range(w.rows):
        curvature = 0.5 * abs(forth[i] - 2.0 * w.r[i] + back[i])
        if not abs(w.r[i]) <= 1.0 / scale[i] + 10.0 * curvature:
            return False
    return True


@lowered
def solve_step(p: Parts, x: Doubles, z: Doubles, w: Room, part: int, keep: bool) -> int:
    """Solve one substep by Newton's method from the initial guess x to round-off level; return the status.

    With `keep`, iterations after the first reuse its factors as long as each gains a digit (chord iteration).
    """
    dx, scale = w.dx + part * w.size, w.scale + part * w.rows
    last, before, first, stalls = np.inf, np.inf, 0.0, 0
    full = True
    for iteration in range(1, MOST_CORRECTIONS + 1):
        w.told[TAKEN] = iteration
        if full:
            how = KEEP if keep else FACTOR
            if p.sweep.parts > 1:
                found = sweep_forward(p, NEWTON, how, x, z, w.c, w.r, scale)
                sweep_back(p, how, w.r, dx)
            else:
                run(p, NEWTON, POOL, x, z, w.c, p.pool)
                found = sum_rows(p, w.r, scale)
                solve(p, how, w.r, dx)
            if iteration == 1:
                first = found
        else:
            solve(p, FORWARD, w.r, dx)
        if p.turning:
            p.context[3] = address(dx)
            run(p, TURN, ENDS, x, z, w.c, p.ends)
        subtract(p, x, dx)
        worst = _residual(p, x, z, w.c, w.r, scale)
        # stagnation or near convergence: update the round-off bounds, which costs a third of an iteration
        if worst > 0.5 * last or (iteration == 1 and 1.0 < worst < 1e4):
            stalls += iteration > 1
            bounds(p, x, z, w.c, dx, scale)
            worst = largest_scaled(p, w.r, scale)
            if stalls > 1 and worst <= CURVATURE_LIMIT and _curvature_explains(p, x, z, w, dx, scale):
                _residual(p, x, z, w.c, w.r, scale)  # restores the terms needed by the final state
                return DONE
        if iteration == 2:
            before = first
        if full and at_the_floor(worst, last, before, iteration):
            return DONE
        # chord iterations converge linearly
        small = worst <= SMALL or worst > 0.25 * last or last * (last / max(before, 1e-300)) <= SMALL
        if not full and worst <= 1.0 and small:
            return DONE
        if not worst < np.inf or stalls > 6:
            return FAILED
        full = not keep or worst > 0.1 * (first if iteration == 1 else last)
        before, last = last, worst
    return FAILED


@lowered
def finish_step(p: Parts, r: int, corrections: int, w: Room) -> None:
    """Compute the final state of substep r, and update the predictor selection and the loop state."""
    stride = w.parts * w.size
    x = w.X + (r * w.size + RING * stride)
    old, new = w.M + r * w.width, w.M + (r + 1) * w.width
    end(p, x, w.Z + r * w.states, old, w.c, w.Z + (r + 1) * w.states, new)
    old, new = old + w.book, w.M + ((r + w.parts) * w.width + w.book)
    for i in range(BOOK):
        new[i] = old[i]
    known = int(old[KNOWN]) if old[SIZE] == w.c[0] else 0
    count = known + 1
    if known > 0 and (known < RING or count % _ASK == 0 or (corrections > 1 and count % _ASK_OFTEN == 0)):
        cut, most = p.first_multiplier, min(known, RING)
        new[COORDINATES] = best_candidate(x, stride, p.weights, p.reach, most, 0, cut, w.work)
        new[MULTIPLIERS] = best_candidate(x, stride, p.weights, p.reach, most, cut, w.size, w.work)
    new[KNOWN], new[SIZE] = count, w.c[0]
    new[CORRECTIONS] = corrections
    new[SLOW] = old[SLOW] + 1.0 if corrections > 1 and known >= RING else 0.0
    s = r // w.parts
    w.iterations[s] = corrections if r == s * w.parts else w.iterations[s] + corrections


@lowered
def start_step(p: Parts, r: int, w: Room) -> bool:
    """Predict the unknowns of substep r; return False if there is no history to extrapolate."""
    stride = w.parts * w.size
    old, x = w.M + r * w.width, w.X + (r * w.size + RING * stride)
    p.context[0] = address(old)
    book = old + w.book
    if book[KNOWN] == 0.0 or book[SIZE] != w.c[0]:
        past = x + (-stride)
        for i in range(w.size):
            x[i] = past[i]
        return False
    predict_unknowns(p, x, stride, int(book[COORDINATES]), int(book[MULTIPLIERS]))
    return True


@lowered
def advance(p: Parts, w: Room, h: float, origin: float, first: int, done: int, steps: int, chords: bool) -> int:
    """Advance a chunk up to step `n_steps` from substep `first_substep` on; return the status."""
    for r in range(done, steps * w.parts):
        w.told[PARTS_DONE] = r
        s = r // w.parts
        part, number = r - s * w.parts, first + s
        w.c[0] = w.weights[part] * h
        w.c[1] = origin + number * h + w.begins[part] * h
        book = w.M + (r * w.width + w.book)
        if book[SLOW] >= _PATIENCE:
            book[KEPT] = 1.0
        kept = book[KEPT] != 0.0
        if kept and not chords:
            return CHORDS
        smooth = start_step(p, r, w)
        x, z = w.X + (r + RING * w.parts) * w.size, w.Z + r * w.states
        if number % REFRESH == 0 or not smooth:
            dx = w.dx + part * w.size
            if not smooth:
                for i in range(w.size):
                    dx[i] = 0.0
            bounds(p, x, z, w.c, dx, w.scale + part * w.rows)
        # dense fronts always store their factors
        keep = p.fronts.dense.count > 0 or (kept and book[CORRECTIONS] > 1.0)
        status = solve_step(p, x, z, w, part, keep)
        if status != DONE:
            return status
        finish_step(p, r, w.told[TAKEN], w)
    w.told[PARTS_DONE] = steps * w.parts
    return DONE
