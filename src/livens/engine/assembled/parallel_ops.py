"""Parallel operations of the time loop on the assembled system, by one thread or several."""

from __future__ import annotations

from dataclasses import dataclass

from livens.engine.assembled.assembly import (
    BOUNDS_OFFSET,
    FINAL_STATE,
    POOL_OFFSET,
    ROUNDOFF,
    STATE_OFFSET,
    gather_sums,
    invert_bounds,
    run_element_batches,
    unknown_uncertainties,
)
from livens.engine.assembled.cache_blocking import TileTables
from livens.engine.assembled.indexed_emitter import FIRST_BLOCK, OFFSETS, STOP_BLOCK
from livens.engine.assembled.multifrontal import factor_fronts, factor_owned
from livens.engine.assembled.numeric_factorization import (
    BACKWARD,
    FORWARD,
    FactorizationArrays,
    backward_batches,
    factor_batches,
    solve_root,
)
from livens.engine.assembled.thread_team import (
    APPLY_UPDATE,
    ARGUMENTS,
    BACKWARD_LEVEL,
    CACHE_LINE_I64,
    COMMAND,
    DENSE_FRONTS,
    ELEMENTS,
    FACTOR_LEVEL,
    GATHER,
    MIN_PARALLEL_BLOCKS,
    PREDICT,
    STOP,
    Team,
    post_command,
    share_start,
    signal,
    spin_until,
    wait_all,
)
from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import (
    address_of,
    bits_to_float,
    call_kernel,
    f64_pointer,
    float_to_bits,
    store_release,
)
from livens.engine.lowering.types import F64Array, I32Array, I64Array, Struct
from livens.engine.newton.predictors import N_HISTORY, extrapolate

#: Outputs of the element kernels that are gathered.
RESIDUAL_ROWS, BOUNDS, STATES = range(3)


@dataclass(frozen=True, eq=False)
class AssembledSystem(Struct):
    """Assembled system as arrays of the compiled loop."""

    size: int  # unknowns
    addresses: I64Array
    context: I64Array
    pool: F64Array
    roundoff_terms: F64Array
    state_terms: F64Array
    uncertainties: F64Array
    n_groups: int
    group_sizes: I64Array
    n_rows: int  # of the residual, including padding to blocks of eight
    gather_kernels: I64Array  # kernels of the residual gather, and first row of each
    bound_starts: I32Array
    bound_positions: I32Array
    end_starts: I32Array
    end_positions: I32Array
    n_summed: int
    summed_entries: I64Array
    n_zero: int
    zero_entries: I64Array
    stencil_weights: F64Array  # of the predictor stencils
    stencil_lengths: I64Array
    impulses: F64Array
    first_multiplier: int
    has_increment_map: bool
    team: Team
    tiles: TileTables
    fronts: FactorizationArrays


# -- operations of the time loop --------------------------------------------------------------------------------------
@lowered
def run_team(p: AssembledSystem) -> None:
    """Execute the posted command on all threads."""
    signal(p.team)
    execute_share(p, 0)
    wait_all(p.team)


@lowered
def run_element_kernels(
    p: AssembledSystem, kernel: int, offset_column: int, x: F64Array, z: F64Array, c: F64Array, out: F64Array
) -> None:
    """Evaluate one kernel of every element batch."""
    post_command(p.team, ELEMENTS, kernel, offset_column, address_of(x), address_of(z), address_of(c), address_of(out))
    run_team(p)


@lowered
def gather(p: AssembledSystem, target: int, out: F64Array, size: int) -> None:
    """Gather sums in a fixed order."""
    post_command(p.team, GATHER, target, address_of(out), size, 0, 0, 0)
    run_team(p)


@lowered
def gather_residual(p: AssembledSystem, r: F64Array, scale: F64Array) -> float:
    """Gather the residual and return its scaled maximum norm; see `livens.engine.newton.iteration`."""
    post_command(p.team, GATHER, RESIDUAL_ROWS, address_of(r), 0, address_of(scale), 0, 0)
    run_team(p)
    return _reduce_max(p)


@lowered
def _reduce_max(p: AssembledSystem) -> float:
    largest = 0
    for i in range(CACHE_LINE_I64 * p.team.size):
        largest = max(largest, p.team.largest[i])
    return bits_to_float(largest)


@lowered
def factor_tiled(
    p: AssembledSystem, kernel: int, operation: int, x: F64Array, z: F64Array, c: F64Array, r: F64Array, scale: F64Array
) -> float:
    """Evaluate elements, gather the residual and factorise the fronts tile by tile; without fronts if `operation` < 0.

    Returns the scaled maximum norm of the residual. Single-threaded; several threads work without tiles.
    """
    f, t, s = p.fronts, p.team, p.tiles
    for i in range(CACHE_LINE_I64):
        t.largest[i] = 0
    for tile in range(s.n_tiles):
        tables = s.elements + tile * t.n_element_batches * t.table_width
        run_element_batches(
            p.addresses, tables, t.n_element_batches, t.table_width, kernel, POOL_OFFSET, x, z, c, p.pool
        )
        _gather_batches(p, s.sums + tile * t.n_sums * OFFSETS, t.largest, r, scale)
        if operation >= 0:
            factor_batches(f, operation, 0, f.n_batches, s.fronts + tile * f.n_batches * OFFSETS, p.pool, r)
    return _reduce_max(p)


@lowered
def solve_tiled(p: AssembledSystem, operation: int, r: F64Array, dx: F64Array) -> None:
    """Solve the root front and substitute backward, after `factor_tiled`."""
    f, s = p.fronts, p.tiles
    solve_root(f, operation, p.pool, r, dx)
    for tile in range(s.n_tiles - 1, -1, -1):
        backward_batches(f, 0, f.n_batches, s.fronts + tile * f.n_batches * OFFSETS, p.pool, dx)


@lowered
def scaled_max_norm(p: AssembledSystem, r: F64Array, scale: F64Array) -> float:
    """Return the scaled maximum norm of the residual; see `livens.engine.newton.iteration`."""
    largest = 0
    for i in range(p.n_rows):
        largest = max(largest, float_to_bits(abs(r[i] * scale[i])))
    return bits_to_float(largest)


@lowered
def predict_unknowns(p: AssembledSystem, x: F64Array, stride: int, coordinates: int, multipliers: int) -> None:
    """Extrapolate x from previous rows, `stride` entries apart, with a stencil each for coordinates and multipliers."""
    post_command(p.team, PREDICT, address_of(x), coordinates, multipliers, stride, 0, 0)
    run_team(p)


@lowered
def apply_update(p: AssembledSystem, x: F64Array, dx: F64Array) -> None:
    """Compute ``x -= dx``."""
    post_command(p.team, APPLY_UPDATE, address_of(x), address_of(dx), 0, 0, 0, 0)
    run_team(p)


@lowered
def update_bounds(p: AssembledSystem, x: F64Array, z: F64Array, c: F64Array, dx: F64Array, scale: F64Array) -> None:
    """Update the reciprocal round-off bounds of the residual."""
    unknown_uncertainties(x, dx, p.group_sizes, p.n_groups, p.uncertainties)
    p.context[3] = address_of(p.uncertainties)
    run_element_kernels(p, ROUNDOFF, BOUNDS_OFFSET, x, z, c, p.roundoff_terms)
    gather(p, BOUNDS, scale, p.n_rows)
    invert_bounds(scale, p.n_rows)


@lowered
def update_state(
    p: AssembledSystem, x: F64Array, z: F64Array, m: F64Array, c: F64Array, z1: F64Array, m1: F64Array
) -> None:
    """Compute final state and history at the end of the step."""
    p.context[0], p.context[1], p.context[2] = address_of(m), address_of(z1), address_of(m1)
    run_element_kernels(p, FINAL_STATE, STATE_OFFSET, x, z, c, p.state_terms)
    if p.n_summed > 0:
        gather(p, STATES, z1, p.n_summed)
    for i in range(p.n_zero):
        z1[p.zero_entries[i]] = 0.0


@lowered
def solve(p: AssembledSystem, operation: int, r: F64Array, dx: F64Array) -> None:
    """Solve ``dx = J^-1 r`` with all threads; see `livens.engine.assembled.numeric_factorization.solve`."""
    f, t = p.fronts, p.team
    is_serial = t.size == 1
    for i in range(f.n_levels):
        if is_serial or f.level_blocks[i] < MIN_PARALLEL_BLOCKS:
            factor_batches(f, operation, f.level_starts[i], f.level_starts[i + 1], f.tables, p.pool, r)
        else:
            post_command(t, FACTOR_LEVEL, i, operation, address_of(r), 0, 0, 0)
            run_team(p)
    if operation != FORWARD and f.dense.count > 0:
        if is_serial:
            factor_fronts(f.dense, p.pool)
        else:
            post_command(t, DENSE_FRONTS, 0, 0, 0, 0, 0, 0)
            run_team(p)
            factor_owned(f.dense, p.pool, t.size, 0)
    solve_root(f, operation, p.pool, r, dx)
    for i in range(f.n_levels - 1, -1, -1):
        if is_serial or f.level_blocks[i] < MIN_PARALLEL_BLOCKS:
            backward_batches(f, f.level_starts[i], f.level_starts[i + 1], f.tables, p.pool, dx)
        else:
            post_command(t, BACKWARD_LEVEL, i, BACKWARD, address_of(dx), 0, 0, 0)
            run_team(p)


# -- work of each thread ----------------------------------------------------------------------------------------------
@lowered
def worker_loop(p: AssembledSystem, rank: int, command_index: int) -> None:
    """Execute the shares of all commands after `command_index` until STOP (worker loop)."""
    t = p.team
    while True:
        command_index += 1
        spin_until(t.command, command_index)
        if t.command[COMMAND] == STOP:
            return
        execute_share(p, rank)
        store_release(t.completed, CACHE_LINE_I64 * rank, command_index)


@lowered
def execute_share(p: AssembledSystem, rank: int) -> None:
    """Execute the share of a thread of the posted command."""
    t = p.team
    command, arguments = t.command[COMMAND], t.command + ARGUMENTS
    if command == ELEMENTS:
        x, z, c, out = (
            f64_pointer(arguments[2]),
            f64_pointer(arguments[3]),
            f64_pointer(arguments[4]),
            f64_pointer(arguments[5]),
        )
        tables = t.element_tables + rank * t.n_element_batches * t.table_width
        run_element_batches(
            p.addresses, tables, t.n_element_batches, t.table_width, arguments[0], arguments[1], x, z, c, out
        )
    elif command == GATHER:
        start = share_start(arguments[2], rank, t.size)
        stop = share_start(arguments[2], rank + 1, t.size)
        _gather_share(p, arguments[0], f64_pointer(arguments[1]), f64_pointer(arguments[3]), start, stop, rank)
    elif command == PREDICT:
        x, start, stop = (
            f64_pointer(arguments[0]),
            share_start(p.size, rank, t.size),
            share_start(p.size, rank + 1, t.size),
        )
        first_multiplier = min(max(p.first_multiplier, start), stop)
        extrapolate(x, arguments[3], p.stencil_weights + arguments[1] * N_HISTORY, x, start, first_multiplier)
        extrapolate(x, arguments[3], p.stencil_weights + arguments[2] * N_HISTORY, x, first_multiplier, stop)
    elif command == APPLY_UPDATE:
        x, dx = f64_pointer(arguments[0]), f64_pointer(arguments[1])
        for i in range(share_start(p.size, rank, t.size), share_start(p.size, rank + 1, t.size)):
            x[i] -= dx[i]
    elif command == DENSE_FRONTS:
        factor_owned(p.fronts.dense, p.pool, rank, rank)
    else:
        f = p.fronts
        start_batch, stop_batch, a = (
            f.level_starts[arguments[0]],
            f.level_starts[arguments[0] + 1],
            f64_pointer(arguments[2]),
        )
        tables = t.front_tables + rank * t.n_front_batches * OFFSETS
        if command == FACTOR_LEVEL:
            factor_batches(f, arguments[1], start_batch, stop_batch, tables, p.pool, a)
        else:
            backward_batches(f, start_batch, stop_batch, tables, p.pool, a)


@lowered
def _gather_share(
    p: AssembledSystem, target: int, out: F64Array, scale: F64Array, start: int, stop: int, rank: int
) -> None:
    if target == RESIDUAL_ROWS:
        largest = p.team.largest + CACHE_LINE_I64 * rank
        for i in range(CACHE_LINE_I64):
            largest[i] = 0
        _gather_batches(p, p.team.sum_tables + rank * p.team.n_sums * OFFSETS, largest, out, scale)
    elif target == STATES:
        for i in range(start, stop):
            total = 0.0
            for j in range(p.end_starts[i], p.end_starts[i + 1]):
                total += p.state_terms[p.end_positions[j]]
            out[p.summed_entries[i]] = total
    else:
        gather_sums(p.bound_starts, p.bound_positions, p.roundoff_terms, out, start, stop)


@lowered
def _gather_batches(p: AssembledSystem, tables: I64Array, largest: I64Array, out: F64Array, scale: F64Array) -> None:
    for b in range(p.team.n_sums):
        table, first_row = tables + b * OFFSETS, p.gather_kernels[2 * b + 1]
        if table[FIRST_BLOCK] < table[STOP_BLOCK]:
            call_kernel(p.gather_kernels[2 * b], p.pool, scale + first_row, largest, table, out + first_row)
