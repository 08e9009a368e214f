"""The arrays in which steps are taken, chunk behind chunk: what a chunk ends with is where the next one begins.

States and unknowns are written once and stay as they are, so nothing has to be copied between chunks. When the arrays
are full, those take their place that nobody looks at any more.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from livens.engine.assembled.loop import Room
from livens.engine.steps import Carry

#: There is room for two chunks if these take no more than this many bytes; room of as many is kept for later runs.
_KEPT = 64_000_000
#: References to an array that nobody else has: from its room, twice from the loop over arrays, from who counts them.
_ALONE = 4


class Rooms:
    """Hands out room for chunks of steps."""

    def __init__(self, make: Callable[[int], Room], spare: list[Room]) -> None:
        """`make` makes room for a number of steps; `spare` is left over by earlier runs, and taken away from there."""
        self._make, self._spare = make, spare
        self._rooms: list[Room] = []
        with contextlib.suppress(IndexError):  # as other runs may take it as well
            while True:
                self._rooms.append(spare.pop())
        self._now: Room | None = None
        self._begun = 0  # where the chunk at hand begins
        self._end: tuple[Carry, int] | None = None  # what the last chunk ended with, and where

    def for_steps(self, carry: Carry, steps: int) -> tuple[Room, bool]:
        """Room for steps that go on from a carry, and whether all that is in the carry is there already."""
        room, end, self._end = self._now, self._end, None
        if room is not None and end is not None and end[0] is carry and end[1] + steps <= len(room.iterations):
            self._begun = end[1]
            return room.from_step(self._begun), True
        self._now, self._begun = self._free(steps), 0
        return self._now.from_step(0), False

    def ended(self, carry: Carry, taken: int) -> None:
        """The chunk at hand ended with this carry, after so many steps."""
        self._end = carry, self._begun + taken

    def release(self) -> None:
        """Leave what is not too large to later runs: memory that is new costs more than to fill it."""
        self._now = self._end = None
        self._spare += [room for room in self._rooms if _size(room) <= _KEPT]
        self._rooms = []

    def _free(self, steps: int) -> Room:
        """Room that nobody looks at: its arrays have no views."""
        self._rooms = [room for room in self._rooms if len(room.iterations) >= steps]
        for room in self._rooms:
            if all(sys.getrefcount(array) == _ALONE for array in (room.Z, room.X, room.M)):
                return room
        made = self._make(steps)
        if 2 * _size(made) <= _KEPT:
            made = self._make(2 * steps)
        self._rooms.append(made)
        return made


def _size(room: Room) -> int:
    """In bytes."""
    return int(room.Z.nbytes + room.X.nbytes + room.M.nbytes)
