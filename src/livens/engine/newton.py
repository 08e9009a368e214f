"""Newton's method for one step: kernels come as addresses, everything else as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from livens.engine.floor import SMALL, at_the_floor
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import call

# A division by zero gives infinity or NaN, which the residual test sees.

#: How a step, or a call of `livens.engine.loop.advance`, ended.
DONE, FAILED, REPIVOT, REACHED, INACCURATE = 0, 1, 2, 3, 4
#: Newton's method gives up after this many corrections.
MOST_ITERATIONS = 25
#: Another pivot order is asked for if a step is not done after two corrections and elimination factors exceed
#: `GROWTH_LIMIT` (half the digits are lost), or after `SLOW_ITERATIONS` and they exceed `SUSPICIOUS`.
GROWTH_LIMIT, SLOW_ITERATIONS, SUSPICIOUS = 1e8, 5, 1e3
#: Where corrections that are nothing but round-off shake the unknowns so much that the curvature of the equations
#: lifts the residual above its bound (near singular positions), up to this many times the bound is accepted, if the
#: curvature explains it and nothing is gained any more.
CURVATURE_LIMIT = 1e6
#: How many past steps the predictor of the unknowns is made of.
PAST = 5
#: How much of the last change the extrapolation of the unknowns may be bent; more, as where they turn around, if the
#: bend itself hardly changes: by this part of it from step to step.
BENT, STEADY = 0.7, 0.1
#: What a call tells beside how it ended, and where: corrections of a step, whether it is the last one, and how many
#: steps of a chunk are done.
CORRECTIONS, LAST, TAKEN = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Kernels(Record):
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
    #: A force that is compiled elsewhere, and where coordinates, rates, time and result stand in the state.
    box: int = 0
    box_q: int = 0
    box_v: int = 0
    box_t: int = 0
    box_force: int = 0
    #: What such a force is given in place of parameters, if it has tables of its own.
    box_tables: int = 0


def kernel_names() -> tuple[str, ...]:
    """The kinds of native functions that a step may have."""
    return tuple(one.name for one in fields(Kernels) if not one.name.startswith("box"))


@dataclass(frozen=True, eq=False)
class Workspace(Record):
    """The arrays of a chunk of steps.

    Step s goes from ``Z[s]`` at ``t[s]`` to ``Z[s+1]`` at ``t[s+1]`` and leaves its unknowns in ``X[s+PAST]``;
    ``X[:PAST]`` are those of the steps before, oldest first.
    """

    c: Doubles  # h, t and the parameters of the step at work
    Z: Doubles
    X: Doubles
    t: Doubles
    iterations: Integers
    work: Doubles  # of the fused correction, see `livens.engine.places.Places`
    dx: Doubles  # the part of it with the last Newton correction
    scale: Doubles  # and that with the reciprocal round-off bounds of the residual
    r: Doubles  # residual, and the growth of the elimination behind it
    estimate: Doubles  # of the error of a step, what it is measured against, and the matrix that filters it
    kinds: Integers  # how many unknowns of one kind follow each other
    unknowns: int = field(init=False)
    entries: int = field(init=False)  # of a state
    kinds_count: int = field(init=False)
    told: Integers = field(init=False)
    scratch: Doubles = field(init=False)  # three times the unknowns, or a state and what estimates are made of

    def __post_init__(self) -> None:
        n, entries = self.X.shape[1], self.Z.shape[1]
        made = {"unknowns": n, "entries": entries, "kinds_count": self.kinds.size, "told": np.zeros(3, dtype=np.int64)}
        for name, value in (*made.items(), ("scratch", np.zeros(3 * n + entries + self.estimate.size))):
            object.__setattr__(self, name, value)
        super().__post_init__()


# -- predictors -------------------------------------------------------------------------------------------------------
@lowered
def extrapolate(X: Doubles, x: Doubles, n: int, kinds: Integers, count: int) -> bool:
    """The unknowns of the next step from those of the last five: exact for cubics and for alternating signs.

    Multipliers of energy-momentum schemes carry round-off that changes its sign in every step; the root -1 in
    ``(E - 1)^4 (E + 1)`` keeps the extrapolation from amplifying it. Returns whether it can be trusted: where steps are
    long, it differs from the linear one, ``x4 + x3 - x2``, by as much as the unknowns changed, and by as much from the
    parabola, ``2 (x4 - x2) + x1``. That is asked of each kind of unknowns by itself (`kinds` says how many there are of
    each): multipliers may be larger by far.
    """
    smooth, start = True, 0
    for j in range(count):
        bend, change, twist = 0.0, 0.0, 0.0
        for i in range(start, start + kinds[j]):
            x0, x1, x2, x3, x4 = X[i], X[n + i], X[2 * n + i], X[3 * n + i], X[4 * n + i]
            x[i] = 3.0 * (x4 + x1) - 2.0 * (x3 + x2) - x0
            bend = max(bend, abs(x[i] - (x4 + x3 - x2)))
            change = max(change, abs(x4 - x3))
            twist = max(twist, abs(x[i] - (2.0 * (x4 - x2) + x1)))
        smooth, start = smooth and (bend <= BENT * change or twist <= STEADY * bend), start + kinds[j]
    return smooth


# -- the residual test ------------------------------------------------------------------------------------------------
@lowered
def scaled(r: Doubles, scale: Doubles, n: int) -> float:
    """The largest residual in units of its round-off bound: 1 and below is zero. NaN if any of them is NaN."""
    worst, total = 0.0, 0.0
    for i in range(n):
        a = abs(r[i]) * scale[i]
        total += a  # a maximum loses what is not a number, a sum does not
        if a > worst:
            worst = a
    return worst if total == total else total


@lowered
def curvature_explains(
    residual: int, x: Doubles, z: Doubles, c: Doubles, r: Doubles, dx: Doubles, scale: Doubles, n: int, room: Doubles
) -> bool:
    """Whether the residual r at x is within its bound plus what the curvature makes of the last correction."""
    forth, back, there = room, room + n, room + 2 * n
    for i in range(n):
        there[i] = x[i] + dx[i]
    call(residual, there, z, c, forth, forth)
    for i in range(n):
        there[i] = x[i] - dx[i]
    call(residual, there, z, c, back, back)
    for i in range(n):
        curvature = 0.5 * abs(forth[i] - 2.0 * r[i] + back[i])
        if not abs(r[i]) <= 1.0 / scale[i] + 10.0 * curvature:
            return False
    return True


@lowered
def solve_step(kernels: Kernels, w: Workspace, x: Doubles, z: Doubles, slow: int, corrected: bool) -> int:
    """Newton's method for one step from the guess x, down to the round-off floor. Returns how it ended.

    If x has been `corrected` once already, which was not enough, that counts as the first correction. How many there
    were is told in the workspace.
    """
    n, c, r, dx, scale, guess = w.unknowns, w.c, w.r, w.dx, w.scale, w.scratch
    last, before, first, stalls = np.inf, np.inf, 0.0, 0
    if corrected:
        for i in range(n):
            guess[i] = x[i] + dx[i]
    for iteration in range(2 if corrected else 1, MOST_ITERATIONS + 1):
        w.told[CORRECTIONS] = iteration
        call(kernels.newton, x, z, c, r, dx)
        growth = r[n]
        if iteration == 1:
            first = scaled(r, scale, n)
        elif corrected and iteration == 2:
            last = scaled(r, scale, n)
        for i in range(n):
            x[i] -= dx[i]
        call(kernels.residual, x, z, c, r, dx)
        worst = scaled(r, scale, n)
        if worst > 0.5 * last:  # no gain: are the bounds those of another time, or is this the floor?
            stalls += 1
            call(kernels.floor, x, z, c, dx, scale)
            worst = scaled(r, scale, n)
            settled = stalls > 1 and worst <= CURVATURE_LIMIT
            if settled and curvature_explains(kernels.residual, x, z, c, r, dx, scale, n, w.scratch):
                return DONE
        if corrected and iteration == 2 and SMALL < worst <= 1.0:
            # nobody has measured the guess, which says whether convergence is quadratic
            call(kernels.residual, guess, z, c, guess + n, guess + n)
            first = scaled(guess + n, scale, n)
        if at_the_floor(worst, last, first if iteration == 2 else before, iteration):
            return DONE
        if not worst < np.inf:
            return FAILED
        if ((growth > GROWTH_LIMIT and iteration >= 2) or (growth > SUSPICIOUS and iteration >= slow)) and (
            slow <= MOST_ITERATIONS
        ):
            return REPIVOT
        before, last = last, worst
    return FAILED
