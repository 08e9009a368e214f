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

from livens.engine.assembled.indexed import FIRST, LAST
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Integers, Record
from livens.engine.lowering.words import give_way, pause, publish, published

#: Offsets in a command; the index of the command has a cache line of its own.
_NUMBER, WHAT, ARGUMENTS, _SIZE = 0, 8, 9, 24
#: Number of 64-bit integers in a cache line.
LINE = 8
#: Commands, executed in `parallel_ops`.
STOP, PIECES, SUMS, PREDICT, CORRECT, FACTOR_ROUND, BACK_ROUND, DENSE = range(8)
#: Number of polls before a waiting thread yields its core.
_LOOKS = 2000
#: Minimum number of blocks of fronts for parallel execution of a level.
FEW_BLOCKS = 12


@dataclass(frozen=True, eq=False)
class Team(Record):
    """Shared data of the threads: commands, and tables with the share of each thread."""

    size: int
    command: Integers
    done: Integers  # last command completed by each thread, one cache line each
    pieces: int
    width: int
    tables: Integers  # of the element batches, per thread
    batches: int
    fronts: Integers  # of the front batches, per thread
    sums: int
    sum_tables: Integers  # of the residual gather, per thread
    largest: Integers  # maxima of each thread, one cache line each


def team_of(size: int, tables: np.ndarray, fronts: np.ndarray, sums: np.ndarray) -> Team:
    """Return a team of `size` threads for the tables of element batches, front batches and sums."""
    return Team(
        size,
        np.zeros(_SIZE, dtype=np.int64),
        np.zeros(LINE * size, dtype=np.int64),
        tables.shape[0],
        tables.shape[1],
        _shared_out(tables, size),
        len(fronts),
        _shared_out(fronts, size),
        len(sums),
        _shared_out(sums, size),
        np.zeros(LINE * size, dtype=np.int64),
    )


def _shared_out(tables: np.ndarray, size: int) -> np.ndarray:
    """Return the tables of each thread, which differ in the range of blocks."""
    first, count = tables[:, FIRST], tables[:, LAST] - tables[:, FIRST]
    found = np.repeat(tables[None], size, axis=0)
    for rank in range(size):
        found[rank, :, FIRST] = first + count * rank // size
        found[rank, :, LAST] = first + count * (rank + 1) // size
    return found


@lowered
def wait_for(place: Integers, wanted: int) -> None:
    """Spin until the published number is at least `target`."""
    looks = 0
    while published(place, 0) < wanted:
        looks += 1
        if looks < _LOOKS:
            pause()
        else:
            give_way()


@lowered
def share_begins(size: int, rank: int, threads: int) -> int:
    """Return the start of the share of a thread; shares do not have common cache lines."""
    return min(LINE * (((size + 7) // LINE) * rank // threads), size)


@lowered
def order(t: Team, what: int, a: int, b: int, c: int, d: int, e: int, f: int) -> None:
    """Post the next command of all threads."""
    given = t.command + ARGUMENTS
    t.command[WHAT] = what
    given[0], given[1], given[2], given[3], given[4], given[5] = a, b, c, d, e, f


@lowered
def say(t: Team) -> None:
    """Signal the other threads to start."""
    if t.size > 1:
        publish(t.command, _NUMBER, t.command[_NUMBER] + 1)


@lowered
def finished(t: Team) -> None:
    """Wait until all threads have completed the command."""
    for rank in range(1, t.size):
        wait_for(t.done + LINE * rank, t.command[_NUMBER])


@lowered
def stop(t: Team) -> None:
    """Post the command that ends the worker loops."""
    order(t, STOP, 0, 0, 0, 0, 0, 0)
    say(t)


@contextlib.contextmanager
def at_work(t: Team, serve: Callable[[int, int], Any]) -> Iterator[None]:
    """Run the other threads of a team in a context; ``worker_loop(rank, index)`` returns after the command STOP."""
    if t.size == 1:
        yield
        return
    last = int(t.command[_NUMBER])
    others = [threading.Thread(target=serve, args=(rank, last), daemon=True) for rank in range(1, t.size)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        stop(t)
        for other in others:
            other.join()
