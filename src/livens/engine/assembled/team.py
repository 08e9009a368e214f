"""Several threads at the pieces and fronts of one step.

The thread that steps says what is to be done, does its own share, and waits for the others. Shares are ranges of blocks
of eight instances, or of equations: whoever computes a number computes it from the same numbers in the same order, so a
run is the same bit for bit with any number of threads.
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

#: Where things stand in a command, which has a cache line for the number of the command alone.
_NUMBER, WHAT, ARGUMENTS, _SIZE = 0, 8, 9, 24
#: Numbers in a cache line.
LINE = 8
#: What can be asked for; by whom it is done is said in `parts`.
STOP, PIECES, SUMS, PREDICT, CORRECT, FACTOR_ROUND, BACK_ROUND, DENSE = range(8)
#: A waiting thread looks this often before it lets others have the core.
_LOOKS = 2000
#: With fewer blocks of fronts than this, a round is not worth sharing.
FEW_BLOCKS = 12


@dataclass(frozen=True, eq=False)
class Team(Record):
    """What threads share: commands, and which part of the pieces and fronts is whose."""

    size: int
    command: Integers
    done: Integers  # the last command that each thread has finished, a cache line for each
    pieces: int
    width: int
    tables: Integers  # of the pieces, for each thread
    batches: int
    fronts: Integers  # of the batches of fronts, for each thread
    sums: int
    sum_tables: Integers  # of the sums of the residual, for each thread
    largest: Integers  # results of each thread, a cache line for each


def team_of(size: int, tables: np.ndarray, fronts: np.ndarray, sums: np.ndarray) -> Team:
    """A team of so many threads for these tables of pieces, of batches of fronts, and of sums."""
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
    """The tables of each thread: the same, but for the range of blocks."""
    first, count = tables[:, FIRST], tables[:, LAST] - tables[:, FIRST]
    found = np.repeat(tables[None], size, axis=0)
    for rank in range(size):
        found[rank, :, FIRST] = first + count * rank // size
        found[rank, :, LAST] = first + count * (rank + 1) // size
    return found


@lowered
def wait_for(place: Integers, wanted: int) -> None:
    """Wait until a number is published that is not smaller."""
    looks = 0
    while published(place, 0) < wanted:
        looks += 1
        if looks < _LOOKS:
            pause()
        else:
            give_way()


@lowered
def share_begins(size: int, rank: int, threads: int) -> int:
    """Where the share of a thread begins; shares of different threads do not meet in a cache line."""
    return min(LINE * (((size + 7) // LINE) * rank // threads), size)


@lowered
def order(t: Team, what: int, a: int, b: int, c: int, d: int, e: int, f: int) -> None:
    """Write down what everybody is to do next."""
    given = t.command + ARGUMENTS
    t.command[WHAT] = what
    given[0], given[1], given[2], given[3], given[4], given[5] = a, b, c, d, e, f


@lowered
def say(t: Team) -> None:
    """Let the others begin."""
    if t.size > 1:
        publish(t.command, _NUMBER, t.command[_NUMBER] + 1)


@lowered
def finished(t: Team) -> None:
    """Wait until everybody has done it."""
    for rank in range(1, t.size):
        wait_for(t.done + LINE * rank, t.command[_NUMBER])


@lowered
def stop(t: Team) -> None:
    """There is nothing more to be done."""
    order(t, STOP, 0, 0, 0, 0, 0, 0)
    say(t)


@contextlib.contextmanager
def at_work(t: Team, serve: Callable[[int, int], Any]) -> Iterator[None]:
    """Meanwhile the other threads of a team serve; ``serve(rank, number)`` comes back when it is told to stop."""
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
