"""Thread team: several spinning threads work on the element batches and fronts of one step.

The stepping thread posts a command, executes its share, and waits for the other threads. Shares are ranges of blocks of
eight instances, or of equations. The order of operations for each number is fixed, so that results are bitwise
independent of the number of threads.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.engine.assembled.indexed_emitter import FIRST_BLOCK, STOP_BLOCK
from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import cpu_pause, load_acquire, store_release, yield_thread
from livens.engine.lowering.types import I64Array, Struct

#: Offsets in a command; the index of the command has a cache line of its own.
_COMMAND_INDEX, COMMAND, ARGUMENTS, _COMMAND_SIZE = 0, 8, 9, 24
#: Number of 64-bit integers in a cache line.
CACHE_LINE_I64 = 8
#: Commands, executed in `parallel_ops`.
STOP, ELEMENTS, GATHER, PREDICT, APPLY_UPDATE, FACTOR_LEVEL, BACKWARD_LEVEL, DENSE_FRONTS = range(8)
#: Number of polls before a waiting thread yields its core.
_N_POLLS = 2000
#: Minimum number of blocks of fronts for parallel execution of a level.
MIN_PARALLEL_BLOCKS = 12


@dataclass(frozen=True, eq=False)
class Team(Struct):
    """Shared data of the threads: commands, and tables with the share of each thread."""

    size: int
    command: I64Array
    completed: I64Array  # last command completed by each thread, one cache line each
    n_element_batches: int
    table_width: int
    element_tables: I64Array  # of the element batches, per thread
    n_front_batches: int
    front_tables: I64Array  # of the front batches, per thread
    n_sums: int
    sum_tables: I64Array  # of the residual gather, per thread
    largest: I64Array  # maxima of each thread, one cache line each


def make_team(size: int, tables: np.ndarray, fronts: np.ndarray, sums: np.ndarray) -> Team:
    """Return a team of `size` threads for the tables of element batches, front batches and sums."""
    return Team(
        size,
        np.zeros(_COMMAND_SIZE, dtype=np.int64),
        np.zeros(CACHE_LINE_I64 * size, dtype=np.int64),
        tables.shape[0],
        tables.shape[1],
        _split_tables(tables, size),
        len(fronts),
        _split_tables(fronts, size),
        len(sums),
        _split_tables(sums, size),
        np.zeros(CACHE_LINE_I64 * size, dtype=np.int64),
    )


def _split_tables(tables: np.ndarray, size: int) -> np.ndarray:
    """Return the tables of each thread, which differ in the range of blocks."""
    start, count = tables[:, FIRST_BLOCK], tables[:, STOP_BLOCK] - tables[:, FIRST_BLOCK]
    thread_tables = np.repeat(tables[None], size, axis=0)
    for rank in range(size):
        thread_tables[rank, :, FIRST_BLOCK] = start + count * rank // size
        thread_tables[rank, :, STOP_BLOCK] = start + count * (rank + 1) // size
    return thread_tables


@lowered
def spin_until(counter: I64Array, target: int) -> None:
    """Spin until the published number is at least `target`."""
    n_polls = 0
    while load_acquire(counter, 0) < target:
        n_polls += 1
        if n_polls < _N_POLLS:
            cpu_pause()
        else:
            yield_thread()


@lowered
def share_start(size: int, rank: int, threads: int) -> int:
    """Return the start of the share of a thread; shares do not have common cache lines."""
    return min(CACHE_LINE_I64 * (((size + 7) // CACHE_LINE_I64) * rank // threads), size)


@lowered
def post_command(t: Team, command: int, a: int, b: int, c: int, d: int, e: int, f: int) -> None:
    """Post the next command of all threads."""
    arguments = t.command + ARGUMENTS
    t.command[COMMAND] = command
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5] = a, b, c, d, e, f


@lowered
def signal(t: Team) -> None:
    """Signal the other threads to start."""
    if t.size > 1:
        store_release(t.command, _COMMAND_INDEX, t.command[_COMMAND_INDEX] + 1)


@lowered
def wait_all(t: Team) -> None:
    """Wait until all threads have completed the command."""
    for rank in range(1, t.size):
        spin_until(t.completed + CACHE_LINE_I64 * rank, t.command[_COMMAND_INDEX])


@lowered
def stop(t: Team) -> None:
    """Post the command that ends the worker loops."""
    post_command(t, STOP, 0, 0, 0, 0, 0, 0)
    signal(t)


@contextlib.contextmanager
def team_running(t: Team, worker_loop: Callable[[int, int], Any]) -> Iterator[None]:
    """Run the other threads of a team in a context; ``worker_loop(rank, index)`` returns after the command STOP."""
    if t.size == 1:
        yield
        return
    command_index = int(t.command[_COMMAND_INDEX])
    workers = [
        threading.Thread(target=worker_loop, args=(rank, command_index), daemon=True) for rank in range(1, t.size)
    ]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop(t)
        for worker in workers:
            worker.join()
