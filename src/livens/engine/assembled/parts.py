"""Parallel operations of the time loop on the assembled system, by one thread or several."""

from __future__ import annotations

from dataclasses import dataclass

from livens.engine.assembled.assembly import (
    END,
    ENDS,
    FLOOR,
    FLOORS,
    POOL,
    errors_of,
    gather_sums,
    reciprocals,
    run_pieces,
)
from livens.engine.assembled.fronts import BACK, FORWARD, FrontArrays, eliminate, solve_core, substitute_back
from livens.engine.assembled.indexed import FIRST, LAST, OFFSETS
from livens.engine.assembled.multifrontal import factor_fronts, factor_share
from livens.engine.assembled.prediction import RING, predict
from livens.engine.assembled.sweep import SweepTables
from livens.engine.assembled.team import (
    ARGUMENTS,
    BACK_ROUND,
    CORRECT,
    DENSE,
    FACTOR_ROUND,
    FEW_BLOCKS,
    LINE,
    PIECES,
    PREDICT,
    STOP,
    SUMS,
    WHAT,
    Team,
    finished,
    order,
    say,
    share_begins,
    wait_for,
)
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Indices, Integers, Record
from livens.engine.lowering.words import address, bits, call, doubles_at, number, publish

#: Outputs of the element kernels that are gathered.
ROWS, BOUNDS, STATES = range(3)


@dataclass(frozen=True, eq=False)
class Parts(Record):
    """Assembled system as arrays of the compiled loop."""

    size: int  # unknowns
    addresses: Integers
    context: Integers
    pool: Doubles
    floors: Doubles
    ends: Doubles
    errors: Doubles
    kind_count: int
    kinds: Integers
    row_size: int  # of the residual, including padding to blocks of eight
    sums: Integers  # kernels of the residual gather, and first row of each
    bound_starts: Indices
    bound_positions: Indices
    end_starts: Indices
    end_positions: Indices
    summed_count: int
    summed: Integers
    blank_count: int
    blank: Integers
    weights: Doubles  # of the predictor stencils
    reach: Integers
    impulses: Doubles
    first_multiplier: int
    turning: bool
    team: Team
    sweep: SweepTables
    fronts: FrontArrays


# -- operations of the time loop --------------------------------------------------------------------------------------
@lowered
def everybody(p: Parts) -> None:
    """Execute the posted command on all threads."""
    say(p.team)
    share(p, 0)
    finished(p.team)


@lowered
def run(p: Parts, which: int, base: int, x: Doubles, z: Doubles, c: Doubles, out: Doubles) -> None:
    """Evaluate one kernel of every element batch."""
    order(p.team, PIECES, which, base, address(x), address(z), address(c), address(out))
    everybody(p)


@lowered
def sum_up(p: Parts, which: int, out: Doubles, size: int) -> None:
    """Gather sums in a fixed order."""
    order(p.team, SUMS, which, address(out), size, 0, 0, 0)
    everybody(p)


@lowered
def sum_rows(p: Parts, r: Doubles, scale: Doubles) -> float:
    """Gather the residual and return its scaled maximum norm; see `livens.engine.newton`."""
    order(p.team, SUMS, ROWS, address(r), 0, address(scale), 0, 0)
    everybody(p)
    return _largest(p)


@lowered
def _largest(p: Parts) -> float:
    worst = 0
    for i in range(LINE * p.team.size):
        worst = max(worst, p.team.largest[i])
    return number(worst)


@lowered
def sweep_forward(
    p: Parts, which: int, how: int, x: Doubles, z: Doubles, c: Doubles, r: Doubles, scale: Doubles
) -> float:
    """Evaluate elements, gather the residual and factorise the fronts tile by tile; without fronts if `operation` < 0.

    Returns the scaled maximum norm of the residual. Single-threaded; several threads work without tiles.
    """
    f, t, s = p.fronts, p.team, p.sweep
    for i in range(LINE):
        t.largest[i] = 0
    for part in range(s.parts):
        tables = s.pieces + part * t.pieces * t.width
        run_pieces(p.addresses, tables, t.pieces, t.width, which, POOL, x, z, c, p.pool)
        _sum_batches(p, s.sums + part * t.sums * OFFSETS, t.largest, r, scale)
        if how >= 0:
            eliminate(f, how, 0, f.batches, s.fronts + part * f.batches * OFFSETS, p.pool, r)
    return _largest(p)


@lowered
def sweep_back(p: Parts, how: int, r: Doubles, dx: Doubles) -> None:
    """Solve the root front and substitute backward, after `factor_tiled`."""
    f, s = p.fronts, p.sweep
    solve_core(f, how, p.pool, r, dx)
    for part in range(s.parts - 1, -1, -1):
        substitute_back(f, 0, f.batches, s.fronts + part * f.batches * OFFSETS, p.pool, dx)


@lowered
def largest_scaled(p: Parts, r: Doubles, scale: Doubles) -> float:
    """Return the scaled maximum norm of the residual; see `livens.engine.newton`."""
    worst = 0
    for i in range(p.row_size):
        worst = max(worst, bits(abs(r[i] * scale[i])))
    return number(worst)


@lowered
def predict_unknowns(p: Parts, x: Doubles, stride: int, coordinates: int, multipliers: int) -> None:
    """Extrapolate x from previous rows, `stride` entries apart, with a stencil each for coordinates and multipliers."""
    order(p.team, PREDICT, address(x), coordinates, multipliers, stride, 0, 0)
    everybody(p)


@lowered
def subtract(p: Parts, x: Doubles, dx: Doubles) -> None:
    """Compute ``x -= dx``."""
    order(p.team, CORRECT, address(x), address(dx), 0, 0, 0, 0)
    everybody(p)


@lowered
def bounds(p: Parts, x: Doubles, z: Doubles, c: Doubles, dx: Doubles, scale: Doubles) -> None:
    """Update the reciprocal round-off bounds of the residual."""
    errors_of(x, dx, p.kinds, p.kind_count, p.errors)
    p.context[3] = address(p.errors)
    run(p, FLOOR, FLOORS, x, z, c, p.floors)
    sum_up(p, BOUNDS, scale, p.row_size)
    reciprocals(scale, p.row_size)


@lowered
def end(p: Parts, x: Doubles, z: Doubles, m: Doubles, c: Doubles, z1: Doubles, m1: Doubles) -> None:
    """Compute final state and history at the end of the step."""
    p.context[0], p.context[1], p.context[2] = address(m), address(z1), address(m1)
    run(p, END, ENDS, x, z, c, p.ends)
    if p.summed_count > 0:
        sum_up(p, STATES, z1, p.summed_count)
    for i in range(p.blank_count):
        z1[p.blank[i]] = 0.0


@lowered
def solve(p: Parts, how: int, r: Doubles, dx: Doubles) -> None:
    """Solve ``dx = J^-1 r`` with all threads; see `livens.engine.assembled.numeric_factorization.solve`."""
    f, t = p.fronts, p.team
    alone = t.size == 1
    for i in range(f.round_count):
        if alone or f.blocks[i] < FEW_BLOCKS:
            eliminate(f, how, f.rounds[i], f.rounds[i + 1], f.tables, p.pool, r)
        else:
            order(t, FACTOR_ROUND, i, how, address(r), 0, 0, 0)
            everybody(p)
    if how != FORWARD and f.dense.count > 0:
        if alone:
            factor_fronts(f.dense, p.pool)
        else:
            order(t, DENSE, 0, 0, 0, 0, 0, 0)
            everybody(p)
            factor_share(f.dense, p.pool, t.size, 0)
    solve_core(f, how, p.pool, r, dx)
    for i in range(f.round_count - 1, -1, -1):
        if alone or f.blocks[i] < FEW_BLOCKS:
            substitute_back(f, f.rounds[i], f.rounds[i + 1], f.tables, p.pool, dx)
        else:
            order(t, BACK_ROUND, i, BACK, address(dx), 0, 0, 0)
            everybody(p)


# -- work of each thread ----------------------------------------------------------------------------------------------
@lowered
def serve(p: Parts, rank: int, last: int) -> None:
    """Execute the shares of all commands after `command_index` until STOP (worker loop)."""
    t = p.team
    while True:
        last += 1
        wait_for(t.command, last)
        if t.command[WHAT] == STOP:
            return
        share(p, rank)
        publish(t.done, LINE * rank, last)


@lowered
def share(p: Parts, rank: int) -> None:
    """Execute the share of a thread of the posted command."""
    t = p.team
    what, given = t.command[WHAT], t.command + ARGUMENTS
    if what == PIECES:
        x, z, c, out = doubles_at(given[2]), doubles_at(given[3]), doubles_at(given[4]), doubles_at(given[5])
        tables = t.tables + rank * t.pieces * t.width
        run_pieces(p.addresses, tables, t.pieces, t.width, given[0], given[1], x, z, c, out)
    elif what == SUMS:
        first = share_begins(given[2], rank, t.size)
        stop = share_begins(given[2], rank + 1, t.size)
        _share_of_sums(p, given[0], doubles_at(given[1]), doubles_at(given[3]), first, stop, rank)
    elif what == PREDICT:
        x, first, stop = (
            doubles_at(given[0]),
            share_begins(p.size, rank, t.size),
            share_begins(p.size, rank + 1, t.size),
        )
        cut = min(max(p.first_multiplier, first), stop)
        predict(x, given[3], p.weights + given[1] * RING, x, first, cut)
        predict(x, given[3], p.weights + given[2] * RING, x, cut, stop)
    elif what == CORRECT:
        x, dx = doubles_at(given[0]), doubles_at(given[1])
        for i in range(share_begins(p.size, rank, t.size), share_begins(p.size, rank + 1, t.size)):
            x[i] -= dx[i]
    elif what == DENSE:
        factor_share(p.fronts.dense, p.pool, rank, rank)
    else:
        f = p.fronts
        begin, behind, a = f.rounds[given[0]], f.rounds[given[0] + 1], doubles_at(given[2])
        tables = t.fronts + rank * t.batches * OFFSETS
        if what == FACTOR_ROUND:
            eliminate(f, given[1], begin, behind, tables, p.pool, a)
        else:
            substitute_back(f, begin, behind, tables, p.pool, a)


@lowered
def _share_of_sums(p: Parts, which: int, out: Doubles, scale: Doubles, first: int, stop: int, rank: int) -> None:
    if which == ROWS:
        largest = p.team.largest + LINE * rank
        for i in range(LINE):
            largest[i] = 0
        _sum_batches(p, p.team.sum_tables + rank * p.team.sums * OFFSETS, largest, out, scale)
    elif which == STATES:
        for i in range(first, stop):
            total = 0.0
            for j in range(p.end_starts[i], p.end_starts[i + 1]):
                total += p.ends[p.end_positions[j]]
            out[p.summed[i]] = total
    else:
        gather_sums(p.bound_starts, p.bound_positions, p.floors, out, first, stop)


@lowered
def _sum_batches(p: Parts, tables: Integers, largest: Integers, out: Doubles, scale: Doubles) -> None:
    for b in range(p.team.sums):
        table, begin = tables + b * OFFSETS, p.sums[2 * b + 1]
        if table[FIRST] < table[LAST]:
            call(p.sums[2 * b], p.pool, scale + begin, largest, table, out + begin)
