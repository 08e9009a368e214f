"""Newton iteration of one step: kernels are passed as addresses, everything else as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from livens.engine.floor import SMALL, at_the_floor
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import call

# A division by zero gives infinity or NaN; the convergence test rejects both.

#: Status codes of a step and of `livens.engine.newton.time_loop.advance`.
DONE, FAILED, REPIVOT, REACHED, INACCURATE = 0, 1, 2, 3, 4
#: Maximum number of Newton iterations of a step.
MOST_ITERATIONS = 25
#: Pivot growth above which a new pivot order is requested: `MAX_GROWTH` (half the digits lost) if two iterations do not
#: converge, `MODERATE_GROWTH` after `REPIVOT_AFTER` iterations.
GROWTH_LIMIT, SLOW_ITERATIONS, SUSPICIOUS = 1e8, 5, 1e3
#: Largest accepted residual, as a multiple of its round-off bound, near singular configurations. There the round-off of
#: the Newton update, through the curvature of the equations, lifts the residual above its bound. The residual is
#: accepted if the curvature explains it and the iteration stagnates.
CURVATURE_LIMIT = 1e6
#: Number of past steps used by the predictor of the unknowns.
PAST = 5
#: Acceptance thresholds of the predictor: largest second difference relative to the last increment, or (near turning
#: points) largest change of the second difference relative to the second difference.
BENT, STEADY = 0.7, 0.1
#: Indices into `Workspace.counters`: Newton iterations of the step, last-step flag, completed steps of the chunk.
CORRECTIONS, LAST, TAKEN = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Kernels(Record):
    """Addresses of the native functions of one step; 0 for functions that a scheme does not have."""

    newton: int
    first: int
    residual: int
    floor: int
    end: int
    guess: int
    predict: int
    error: int
    carry: int
    #: Address of an external force, and offsets of coordinates, velocities, time and force in the state.
    box: int = 0
    box_q: int = 0
    box_v: int = 0
    box_t: int = 0
    box_force: int = 0
    #: Address of the data passed to the external force instead of the parameters, or 0.
    box_tables: int = 0


def kernel_names() -> tuple[str, ...]:
    """Return the names of the kernels of a step."""
    return tuple(one.name for one in fields(Kernels) if not one.name.startswith("box"))


@dataclass(frozen=True, eq=False)
class Workspace(Record):
    """Workspace of a chunk of steps.

    Step s goes from ``Z[s]`` at ``t[s]`` to ``Z[s+1]`` at ``t[s+1]`` and stores its unknowns in ``X[s+HISTORY]``;
    ``X[:HISTORY]`` are the unknowns of the previous steps, oldest first.
    """

    c: Doubles  # step inputs: h, t and the parameters
    Z: Doubles
    X: Doubles
    t: Doubles
    iterations: Integers
    work: Doubles  # workspace of the fused Newton kernels, see `livens.engine.newton.workspace_layout`
    dx: Doubles  # view of `work`: last Newton update
    scale: Doubles  # view of `work`: reciprocal round-off bounds of the residual
    r: Doubles  # residual, followed by the pivot growth
    estimate: Doubles  # error estimate of a step, reference magnitudes, and the matrix of the filter
    kinds: Integers  # sizes of the consecutive groups of unknowns (velocities, multipliers, ...)
    unknowns: int = field(init=False)
    entries: int = field(init=False)  # size of a state
    kinds_count: int = field(init=False)
    told: Integers = field(init=False)
    scratch: Doubles = field(init=False)  # 3 n_unknowns, or n_state and the size of the error estimate

    def __post_init__(self) -> None:
        n, entries = self.X.shape[1], self.Z.shape[1]
        made = {"unknowns": n, "entries": entries, "kinds_count": self.kinds.size, "told": np.zeros(3, dtype=np.int64)}
        for name, value in (*made.items(), ("scratch", np.zeros(3 * n + entries + self.estimate.size))):
            object.__setattr__(self, name, value)
        super().__post_init__()


# -- predictors -------------------------------------------------------------------------------------------------------
@lowered
def extrapolate(X: Doubles, x: Doubles, n: int, kinds: Integers, count: int) -> bool:
    """Extrapolate the unknowns of the last five steps; exact for cubics and for alternating signs.

    Multipliers of energy-momentum schemes contain round-off that changes its sign in every step; the root -1 in
    ``(E - 1)^4 (E + 1)`` keeps the extrapolation from amplifying it. Returns True if the prediction is accepted. It is
    rejected if steps are too long: if its distance to the linear extrapolation, ``x4 + x3 - x2``, is large against the
    last increment, and so is that to the parabola, ``2 (x4 - x2) + x1``. Every group of unknowns is tested separately:
    multipliers may be larger by orders of magnitude.
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
    """Return the max norm of the residual scaled by its round-off bounds: converged if <= 1. NaN propagates."""
    worst, total = 0.0, 0.0
    for i in range(n):
        a = abs(r[i]) * scale[i]
        total += a  # the comparison ignores NaN, the sum propagates it
        if a > worst:
            worst = a
    return worst if total == total else total


@lowered
def curvature_explains(
    residual: int, x: Doubles, z: Doubles, c: Doubles, r: Doubles, dx: Doubles, scale: Doubles, n: int, room: Doubles
) -> bool:
    """Accept a stagnating residual that is explained by the second-order term of the last Newton update.

    Such residuals occur near singular configurations.
    """
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
    """Solve one step by Newton iteration from the initial guess x to the round-off level. Returns a status code.

    With `already_corrected`, x contains one Newton update already, which counts as the first iteration. The number of
    iterations is returned in `Workspace.counters`.
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
        if worst > 0.5 * last:  # stagnation: outdated round-off bounds, or the round-off level is reached
            stalls += 1
            call(kernels.floor, x, z, c, dx, scale)
            worst = scaled(r, scale, n)
            settled = stalls > 1 and worst <= CURVATURE_LIMIT
            if settled and curvature_explains(kernels.residual, x, z, c, r, dx, scale, n, w.scratch):
                return DONE
        if corrected and iteration == 2 and SMALL < worst <= 1.0:
            # the residual norm of the initial guess is needed to test for quadratic convergence
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
