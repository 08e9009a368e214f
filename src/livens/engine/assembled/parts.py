"""The pieces of a step at work, by one thread or several: what the loop over time asks for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livens.engine.assembled.assembly import END, ENDS, FLOOR, FLOORS, errors_of, gather_range, reciprocals
from livens.engine.assembled.fronts import (
    BACK,
    FORWARD,
    FrontArrays,
    eliminate,
    share_of_round,
    solve_core,
    substitute_back,
)
from livens.engine.assembled.indexed import FIRST, LAST
from livens.engine.assembled.multifrontal import factor_fronts, factor_share
from livens.engine.assembled.prediction import predict
from livens.engine.assembled.team import (
    BACK_ROUND,
    CORRECT,
    DENSE,
    FACTOR_ROUND,
    FEW_BLOCKS,
    LARGEST,
    PIECES,
    PREDICT,
    STOP,
    SUMS,
    Team,
    argument,
    finished,
    next_order,
    numbers_at,
    order_,
    report_done,
    share_of,
    task,
)
from livens.engine.jit import jit
from livens.engine.newton import call

#: What is summed up of the outputs of the pieces.
ROWS, BOUNDS, IMPULSES, STATES = range(4)


class Parts(NamedTuple):
    """The pieces of a step as the compiled loop takes them."""

    addresses: np.ndarray
    context: np.ndarray
    pool: np.ndarray
    floors: np.ndarray
    ends: np.ndarray
    errors: np.ndarray
    kinds: np.ndarray
    row_starts: np.ndarray
    row_positions: np.ndarray
    floor_positions: np.ndarray
    end_starts: np.ndarray
    end_positions: np.ndarray
    summed: np.ndarray
    blank: np.ndarray
    weights: np.ndarray  # of the predictors
    reach: np.ndarray
    impulse_starts: np.ndarray
    impulse_positions: np.ndarray
    impulses: np.ndarray
    first_multiplier: int
    turning: bool
    pushed: bool
    team: Team


# -- what the loop asks for -------------------------------------------------------------------------------------------
@jit
def run(p: Parts, which: int, base: int, x: np.ndarray, z: np.ndarray, c: np.ndarray, out: np.ndarray) -> None:
    """Call one kernel of every piece that has it."""
    order_(p.team, PIECES, which, base, x.ctypes.data, z.ctypes.data, c.ctypes.data, out.ctypes.data)
    _share(p, 0)
    finished(p.team)


@jit
def sum_up(p: Parts, which: int, out: np.ndarray) -> None:
    """Sum up what belongs together, always in the same order."""
    order_(p.team, SUMS, which, out.ctypes.data, out.size, 0, 0, 0)
    _share(p, 0)
    finished(p.team)


@jit
def predict_unknowns(p: Parts, X: np.ndarray, at: int, coordinates: int, multipliers: int) -> None:
    """``X[at]`` from the rows before it, by one predictor for coordinates and another for multipliers."""
    order_(p.team, PREDICT, X.ctypes.data, at, X.shape[1], coordinates, multipliers, 0)
    _share(p, 0)
    finished(p.team)


@jit
def subtract(p: Parts, x: np.ndarray, dx: np.ndarray) -> None:
    """``x -= dx``"""
    order_(p.team, CORRECT, x.ctypes.data, dx.ctypes.data, x.size, 0, 0, 0)
    _share(p, 0)
    finished(p.team)


@jit
def largest_scaled(p: Parts, r: np.ndarray, scale: np.ndarray) -> float:
    """As `livens.engine.newton.scaled`."""
    order_(p.team, LARGEST, r.ctypes.data, scale.ctypes.data, scale.size, 0, 0, 0)
    _share(p, 0)
    finished(p.team)
    worst, total = 0.0, 0.0
    for rank in range(p.team.size):
        worst = max(worst, p.team.largest[rank, 0])
        total += p.team.largest[rank, 1]
    return worst if total == total else total


@jit
def bounds(p: Parts, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray, scale: np.ndarray) -> None:
    """Reciprocal round-off bounds of the residual."""
    errors_of(x, dx, p.kinds, p.errors)
    p.context[3] = p.errors.ctypes.data
    run(p, FLOOR, FLOORS, x, z, c, p.floors)
    sum_up(p, BOUNDS, scale)
    reciprocals(scale)


@jit
def end(p: Parts, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray, z1: np.ndarray, m1: np.ndarray) -> None:
    """State and memory at the end of the step."""
    p.context[0], p.context[1], p.context[2] = m.ctypes.data, z1.ctypes.data, m1.ctypes.data
    run(p, END, ENDS, x, z, c, p.ends)
    sum_up(p, STATES, z1)
    for i in p.blank:
        z1[i] = 0.0


@jit
def solve(p: Parts, f: FrontArrays, how: int, r: np.ndarray, dx: np.ndarray) -> None:
    """``dx = J^-1 r``, as `livens.engine.assembled.fronts.solve_fronts`, with all threads."""
    alone = p.team.size == 1
    for i in range(f.blocks.size):
        if alone or f.blocks[i] < FEW_BLOCKS:
            eliminate(f, how, f.rounds[i], f.rounds[i + 1], p.pool, r)
        else:
            order_(p.team, FACTOR_ROUND, i, how, r.ctypes.data, 0, 0, 0)
            _share_of_fronts(p, f, 0)
            finished(p.team)
    if how != FORWARD and f.dense.first.size:
        if alone:
            factor_fronts(f.dense, p.pool)
        else:
            order_(p.team, DENSE, 0, 0, 0, 0, 0, 0)
            _share_of_fronts(p, f, 0)
            finished(p.team)
            factor_share(f.dense, p.pool, p.team.size, 0)
    solve_core(f, how, p.pool, r, dx)
    for i in range(f.blocks.size - 1, -1, -1):
        if alone or f.blocks[i] < FEW_BLOCKS:
            substitute_back(f, f.rounds[i], f.rounds[i + 1], p.pool, dx)
        else:
            order_(p.team, BACK_ROUND, i, BACK, dx.ctypes.data, 0, 0, 0)
            _share_of_fronts(p, f, 0)
            finished(p.team)


# -- what each thread does --------------------------------------------------------------------------------------------
@jit
def serve(p: Parts, f: FrontArrays, rank: int, number: int) -> None:
    """Do a share of everything that is asked for, behind order `number`, until it is to stop."""
    while True:
        number = next_order(p.team, number)
        what = task(p.team)
        if what == STOP:
            return
        if what >= FACTOR_ROUND:
            _share_of_fronts(p, f, rank)
        else:
            _share(p, rank)
        report_done(p.team, rank, number)


@jit
def _share(p: Parts, rank: int) -> None:
    t, what = p.team, task(p.team)
    if what == PIECES:
        which, base, out = argument(t, 0), argument(t, 1), argument(t, 5)
        tables = t.tables[rank]
        for i in range(p.addresses.shape[0]):
            if p.addresses[i, which] and tables[i, FIRST] < tables[i, LAST]:
                begin = out + 8 * p.addresses[i, base]
                table = tables[i].ctypes.data
                call(p.addresses[i, which], argument(t, 2), argument(t, 3), argument(t, 4), table, begin)
    elif what == SUMS:
        _share_of_sums(p, argument(t, 0), numbers_at(argument(t, 1), argument(t, 2)), rank)
    elif what == PREDICT:
        at, n = argument(t, 1), argument(t, 2)
        X = numbers_at(argument(t, 0), (at + 1) * n).reshape(at + 1, n)
        first, stop = share_of(n, rank, t.size)
        cut = min(max(p.first_multiplier, first), stop)
        predict(X, at, p.weights[argument(t, 3)], X[at], first, cut)
        predict(X, at, p.weights[argument(t, 4)], X[at], cut, stop)
    else:
        n = argument(t, 2)
        a, b = numbers_at(argument(t, 0), n), numbers_at(argument(t, 1), n)
        first, stop = share_of(n, rank, t.size)
        if what == CORRECT:
            for i in range(first, stop):
                a[i] -= b[i]
        else:
            worst, total = 0.0, 0.0
            for i in range(first, stop):
                value = abs(a[i]) * b[i]
                total += value  # a maximum loses what is not a number, a sum does not
                if value > worst:
                    worst = value
            t.largest[rank, 0], t.largest[rank, 1] = worst, total


@jit
def _share_of_sums(p: Parts, which: int, out: np.ndarray, rank: int) -> None:
    size = p.team.size
    if which == STATES:
        first, stop = share_of(p.summed.size, rank, size)
        for i in range(first, stop):
            total = 0.0
            for j in range(p.end_starts[i], p.end_starts[i + 1]):
                total += p.ends[p.end_positions[j]]
            out[p.summed[i]] = total
        return
    first, stop = share_of(out.size, rank, size)
    if which == ROWS:
        gather_range(p.row_starts, p.row_positions, p.pool, out, first, stop)
    elif which == BOUNDS:
        gather_range(p.row_starts, p.floor_positions, p.floors, out, first, stop)
    else:
        gather_range(p.impulse_starts, p.impulse_positions, p.pool, out, first, stop)


@jit
def _share_of_fronts(p: Parts, f: FrontArrays, rank: int) -> None:
    t = p.team
    if task(t) == DENSE:
        factor_share(f.dense, p.pool, rank, rank)
        return
    i, how = argument(t, 0), argument(t, 1)
    pool = p.pool.ctypes.data
    share_of_round(f, how, f.rounds[i], f.rounds[i + 1], t.fronts[rank], t.growth[rank], pool, argument(t, 2))
