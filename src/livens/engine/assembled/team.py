"""Several threads at the pieces and fronts of one step.

The thread that steps says what is to be done, does its own share, and waits for the others. Shares are ranges of blocks
of eight instances, or of equations: whoever computes a number computes it from the same numbers in the same order, so a
run is the same bit for bit with any number of threads.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba as nb
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from livens.engine.assembled.indexed import FIRST, LAST, WIDTH
from livens.engine.jit import jit
from livens.engine.native import Code, compile_function
from livens.engine.newton import call

#: Where things stand in a command, which has a cache line for the number of the command alone.
_NUMBER, _WHAT, _FIRST_ARGUMENT, _SIZE = 0, 8, 9, 24
#: What can be asked for; by whom it is done is said in `loop`.
STOP, PIECES, SUMS, PREDICT, CORRECT, LARGEST, FACTOR_ROUND, BACK_ROUND, DENSE = range(9)
#: A waiting thread looks this often before it lets others have the core.
_LOOKS = 2000
#: With fewer blocks of fronts than this, a round is not worth sharing.
FEW_BLOCKS = 12


class Team(NamedTuple):
    """What threads share: commands, and which part of the pieces and fronts is whose."""

    size: int
    native: np.ndarray  # addresses of the functions that say and wait
    command: np.ndarray
    done: np.ndarray  # the last command that each thread has finished, a cache line for each
    tables: np.ndarray  # of the pieces, for each thread
    fronts: np.ndarray  # of the batches of fronts, for each thread
    growth: np.ndarray
    largest: np.ndarray  # a result of each thread, and whether it is a number


def team_of(size: int, tables: np.ndarray, fronts: np.ndarray) -> Team:
    """A team of so many threads for these tables of pieces and of batches of fronts."""
    native = [say().address, wait().address] if size > 1 else [0, 0]
    return Team(
        size,
        np.array(native, dtype=np.int64),
        np.zeros(_SIZE, dtype=np.int64),
        np.zeros(8 * size, dtype=np.int64),
        _shared_out(tables, size),
        _shared_out(fronts, size),
        np.zeros((size, WIDTH)),
        np.zeros((size, 2)),
    )


def _shared_out(tables: np.ndarray, size: int) -> np.ndarray:
    """The tables of each thread: the same, but for the range of blocks."""
    first, count = tables[:, FIRST], tables[:, LAST] - tables[:, FIRST]
    found = np.repeat(tables[None], size, axis=0)
    for rank in range(size):
        found[rank, :, FIRST] = first + count * rank // size
        found[rank, :, LAST] = first + count * (rank + 1) // size
    return found


@functools.cache
def say() -> Code:
    """``*a0 = a1``, after everything that was written before."""
    text = """define void @say(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4) {
%value = ptrtoint ptr %a1 to i64
store atomic i64 %value, ptr %a0 release, align 8
ret void
}
"""
    return compile_function(text, "say")


@functools.cache
def wait() -> Code:
    """Wait until ``*a0 >= a1``; whatever was written before it was said can be read then."""
    there = bool(llvm.address_of_symbol("sched_yield"))
    declared, give_way = ("declare i32 @sched_yield()", "%ignored = call i32 @sched_yield()") if there else ("", "")
    text = f"""{declared}
define void @wait(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4) {{
entry:
%wanted = ptrtoint ptr %a1 to i64
br label %look
look:
%looks = phi i64 [0, %entry], [%next, %again]
%found = load atomic i64, ptr %a0 acquire, align 8
%there = icmp sge i64 %found, %wanted
br i1 %there, label %done, label %again
again:
%next = add i64 %looks, 1
%long = icmp sgt i64 %looks, {_LOOKS}
br i1 %long, label %yield, label %look
yield:
{give_way}
%found.again = load atomic i64, ptr %a0 acquire, align 8
%there.again = icmp sge i64 %found.again, %wanted
br i1 %there.again, label %done, label %yield
done:
ret void
}}
"""
    return compile_function(text, "wait")


@intrinsic
def _pointer(typingctx: Any, address: Any) -> Any:
    """An address as a pointer."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), codegen


@jit
def numbers_at(address: int, size: int) -> np.ndarray:
    """The array of numbers at an address."""
    return nb.carray(_pointer(address), (size,), np.float64)


@jit
def share_of(size: int, rank: int, threads: int) -> tuple[int, int]:
    """A range of equations; shares of different threads do not meet in a cache line."""
    lines = (size + 7) // 8
    return min(8 * (lines * rank // threads), size), min(8 * (lines * (rank + 1) // threads), size)


@jit
def argument(t: Team, i: int) -> int:
    return int(t.command[_FIRST_ARGUMENT + i])


@jit
def task(t: Team) -> int:
    return int(t.command[_WHAT])


@jit
def order_(t: Team, what: int, a: int, b: int, c: int, d: int, e: int, f: int) -> None:
    """Say what is to be done by everybody."""
    command = t.command
    command[_WHAT] = what
    command[_FIRST_ARGUMENT], command[_FIRST_ARGUMENT + 1], command[_FIRST_ARGUMENT + 2] = a, b, c
    command[_FIRST_ARGUMENT + 3], command[_FIRST_ARGUMENT + 4], command[_FIRST_ARGUMENT + 5] = d, e, f
    if t.size > 1:
        call(t.native[0], command.ctypes.data, command[_NUMBER] + 1, 0, 0, 0)


@jit
def finished(t: Team) -> None:
    """Wait until everybody has done it."""
    for rank in range(1, t.size):
        call(t.native[1], t.done.ctypes.data + 64 * rank, t.command[_NUMBER], 0, 0, 0)


@jit
def next_order(t: Team, last: int) -> int:
    """Wait for the order behind number `last`."""
    call(t.native[1], t.command.ctypes.data, last + 1, 0, 0, 0)
    return last + 1


@jit
def report_done(t: Team, rank: int, number: int) -> None:
    call(t.native[0], t.done.ctypes.data + 64 * rank, number, 0, 0, 0)


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
        order_(t, STOP, 0, 0, 0, 0, 0, 0)
        for other in others:
            other.join()
