"""Compiled time loops with fixed and adaptive steps, and tabulation of kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livens.engine.lowering.function import lowered, together
from livens.engine.lowering.kinds import Doubles
from livens.engine.lowering.words import bits, call, doubles_at, number
from livens.engine.newton import (
    CORRECTIONS,
    DONE,
    LAST,
    MOST_ITERATIONS,
    PAST,
    REACHED,
    TAKEN,
    Kernels,
    Workspace,
    scaled,
    solve_step,
)
from livens.engine.step_size import Control, controlled_step

#: Number of steps between evaluations of the round-off bounds; residuals above their bound also trigger one.
REFRESH = 64
#: Largest residual, relative to outdated round-off bounds, that may still be round-off. Larger residuals are not
#: converged, whatever the updated bounds are: near a difference quotient 0/0 the bounds are wide.
OUTDATED = 16.0


class Policy(NamedTuple):
    """Policy for the size of the next step: fixed steps on a time grid, or adaptive steps.

    Fixed step number ``step0 + s`` starts at ``t_origin + (step0 + s) * h``. If `stop_entry` is not negative, steps end
    before this entry of the state exceeds `stop_value` (the physical time of schemes with fictive time). Adaptive steps
    end before `t_end`, and with `land_on_end` exactly there; `StepSizeController` determines their sizes.
    """

    controlled: bool
    h: float
    origin: float
    first: int
    entry: int = -1
    limit: float = np.inf
    t_end: float = np.inf
    to_the_end: bool = True


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
    """Take the steps from number `done` to `n_steps` of a chunk. Returns (status code, completed steps).

    An explicit scheme has no unknowns: its step is the update of the state only. If a step fails, the number of
    completed steps is its index.
    """
    if policy.controlled:
        sizes = going.view(np.float64)
        status = _advance_controlled(
            kernels, control, sizes, w, policy.t_end, policy.to_the_end, policy.entry, policy.limit, done, steps, slow
        )
    else:
        status = advance_equally(
            kernels, w, policy.h, policy.origin, policy.first, policy.entry, policy.limit, done, steps, slow
        )
    return status, int(w.told[TAKEN])


@lowered
def _ask(kernels: Kernels, new: Doubles, c: Doubles) -> None:
    """Evaluate the external force at the end of a step."""
    given = c + 2
    if kernels.box_tables:
        given = doubles_at(kernels.box_tables)
    call(kernels.box, new + kernels.box_q, new + kernels.box_v, new + kernels.box_t, given, new + kernels.box_force)


@lowered
def advance_equally(
    kernels: Kernels,
    w: Workspace,
    h: float,
    origin: float,
    first: int,
    entry: int,
    limit: float,
    done: int,
    steps: int,
    slow: int,
) -> int:
    """Take fixed steps; return a status code."""
    n, nz, c, r, dx, scale, work = w.unknowns, w.entries, w.c, w.r, w.dx, w.scale, w.work
    # offsets as in `livens.engine.newton.workspace_layout`
    trusted, verdict = 2 * n + 4, n + 2
    c[0] = h
    for s in range(done, steps):
        z, new, number, ended = w.Z + s * nz, w.Z + (s + 1) * nz, first + s, False
        c[1] = origin + number * h
        x = w.X + (s + PAST) * n
        if n:
            call(kernels.predict, w.X + s * n, z, c, r, work + trusted)
            smooth = work[trusted] != 0.0
            if not smooth:
                call(kernels.guess, x, z, c, r, x)
            if number % REFRESH == 0:
                call(kernels.floor, x, z, c, dx, scale)
            if kernels.first:
                call(kernels.first, x, z, c, work, new)
                worst = work[verdict]
            else:  # long steps have no fused first correction
                call(kernels.newton, x, z, c, r, dx)
                for i in range(n):
                    x[i] -= dx[i]
                call(kernels.residual, x, z, c, r, dx)
                worst = scaled(r, scale, n)
                if worst <= 1.0:
                    call(kernels.end, x, z, c, r, new)
            w.iterations[s], ended = 1, worst <= 1.0
            if smooth and not ended and worst <= OUTDATED:
                # The bounds may be outdated. An unnecessary Newton update has a bias: constraints are rounded where
                # floating-point numbers may be denser on one side, which shifts positions outwards.
                call(kernels.floor, x, z, c, dx, scale)
                call(kernels.residual, x, z, c, r, dx)
                if scaled(r, scale, n) <= 1.0:
                    ended = True
                    call(kernels.end, x, z, c, r, new)
            if not ended:
                status = solve_step(kernels, w, x, z, slow, True)
                count = w.told[CORRECTIONS]
                if status != DONE:
                    past = w.X + (s + PAST - 1) * n
                    for i in range(n):  # retry from the last unknowns or from the scheme's initial guess
                        x[i], dx[i] = past[i], 0.0
                    if smooth:
                        call(kernels.guess, x, z, c, r, x)
                    call(kernels.floor, x, z, c, dx, scale)
                    status = solve_step(kernels, w, x, z, slow, False)
                    count += w.told[CORRECTIONS]
                    if status != DONE:
                        w.told[TAKEN] = s
                        return status
                w.iterations[s] = count
        if not ended:
            call(kernels.end, x, z, c, r, new)
        if kernels.box:
            _ask(kernels, new, c)
        if entry >= 0 and new[entry] > limit:  # a NaN completes the step, which is rejected later
            w.told[TAKEN] = s
            return REACHED
    w.told[TAKEN] = steps
    return DONE


@lowered
def _advance_controlled(
    kernels: Kernels,
    control: Control,
    going: Doubles,
    w: Workspace,
    t_end: float,
    to_the_end: bool,
    entry: int,
    limit: float,
    done: int,
    steps: int,
    slow: int,
) -> int:
    """Take adaptive steps; return a status code."""
    n, nz = w.unknowns, w.entries
    for s in range(done, steps):
        w.told[TAKEN] = s
        status = controlled_step(kernels, t_end, to_the_end, control, going, w, s, slow)
        w.iterations[s] = w.told[CORRECTIONS]
        if status != DONE:
            return status
        new = w.Z + (s + 1) * nz
        call(kernels.end, w.X + (s + PAST) * n, w.Z + s * nz, w.c, w.r, new)
        if kernels.box:
            _ask(kernels, new, w.c)
        if entry >= 0 and new[entry] > limit:
            return REACHED
        if w.told[LAST]:
            w.told[TAKEN] = s + 1
            return REACHED
    w.told[TAKEN] = steps
    return DONE


def count(times: np.ndarray, sizes: np.ndarray, origin: float, first: int, h: float) -> None:
    """Fill the time grid of fixed steps. Times are multiples of h: a sum would accumulate rounding errors."""
    _count(times, sizes, len(sizes), origin, first, h)


@lowered
def _count(times: Doubles, sizes: Doubles, steps: int, origin: float, first: int, h: float) -> None:
    for s in range(steps):
        times[s + 1], sizes[s] = origin + (first + s + 1) * h, h


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
    """Evaluate a kernel at every step: unknowns X, initial state Z, time, size and a row of additional inputs."""
    columns = X.shape[1], Z.shape[1], more.shape[1], out.shape[1]
    _tabulate_steps(kernel, X, Z, more, c, t, h, out, len(out), *columns)


@lowered
def _tabulate_steps(
    kernel: int,
    X: Doubles,
    Z: Doubles,
    more: Doubles,
    c: Doubles,
    t: Doubles,
    h: Doubles,
    out: Doubles,
    rows: int,
    n: int,
    nz: int,
    others: int,
    width: int,
) -> None:
    for s in range(rows):
        c[0], c[1] = h[s], t[s]
        call(kernel, X + s * n, Z + s * nz, c, more + s * others, out + s * width)


def solve_steps(
    kernels: Kernels, X: np.ndarray, Z: np.ndarray, c: np.ndarray, t: np.ndarray, h: np.ndarray, solved: np.ndarray
) -> None:
    """Solve steps from initial states Z, each independently; `converged` flags the solved steps."""
    n = X.shape[1]
    w = Workspace(
        c=c,
        Z=Z,
        X=X,
        t=t,
        iterations=np.zeros(len(Z), dtype=np.int64),
        work=np.empty(0),
        dx=np.zeros(n),
        scale=np.empty(n),
        r=np.empty(n + 1),
        estimate=np.empty(0),
        kinds=np.zeros(0, dtype=np.int64),
    )
    _solve_steps(kernels, w, h, len(Z))
    solved[:] = w.iterations


@lowered
def _solve_steps(kernels: Kernels, w: Workspace, h: Doubles, steps: int) -> None:
    n = w.unknowns
    for s in range(steps):
        w.c[0], w.c[1] = h[s], w.t[s]
        x, z = w.X + s * n, w.Z + s * w.entries
        for i in range(n):
            x[i], w.dx[i] = 0.0, 0.0
        call(kernels.guess, x, z, w.c, w.r, x)
        call(kernels.floor, x, z, w.c, w.dx, w.scale)
        w.iterations[s] = solve_step(kernels, w, x, z, MOST_ITERATIONS + 1, False) == DONE


def tabulate(kernel: int, X: np.ndarray, Z: np.ndarray, c: np.ndarray, t: np.ndarray, out: np.ndarray) -> None:
    """Evaluate a kernel at every row of (X, Z, t)."""
    _tabulate(kernel, X, Z, c, t, out, len(Z), X.shape[1], Z.shape[1], out.shape[1])


@lowered
def _tabulate(
    kernel: int, X: Doubles, Z: Doubles, c: Doubles, t: Doubles, out: Doubles, rows: int, n: int, nz: int, width: int
) -> None:
    for s in range(rows):
        c[1] = t[s]
        call(kernel, X + s * n, Z + s * nz, c, out + s * width, out + s * width)


@lowered
def all_finite(Z: Doubles, first: int, stop: int) -> bool:
    """Return True if all entries from `start` to `stop` are finite."""
    worst = 0
    for i in range(first, stop):  # bit patterns of non-negative doubles order like int64; inf and NaN sort last
        worst = max(worst, bits(abs(Z[i])))
    return number(worst) < np.inf


together(advance_equally, _advance_controlled, _count, _tabulate_steps, _solve_steps, _tabulate, all_finite)
