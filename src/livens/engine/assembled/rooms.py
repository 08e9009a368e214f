"""Pool of chunk workspaces: the end of a chunk is the start of the next one.

States and unknowns are written once and not changed, so that nothing is copied between chunks. When a workspace is
full, another one without remaining references is used.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from livens.engine.assembled.loop import Room
from livens.engine.steps import Carry

#: Size in bytes up to which a workspace has capacity for two chunks, and up to which it is kept for later runs.
_KEPT = 64_000_000
#: Reference count of an unshared array: its workspace, two references of the loop over arrays, and `getrefcount`.
_ALONE = 4


class Rooms:
    """Pool of workspaces for chunks of steps."""

    def __init__(self, make: Callable[[int], Room], spare: list[Room]) -> None:
        """Create a pool; `allocate` returns a workspace for n steps, `spare` contains workspaces of earlier runs."""
        self._make, self._spare = make, spare
        self._rooms: list[Room] = []
        with contextlib.suppress(IndexError):  # concurrent runs may empty the list
            while True:
                self._rooms.append(spare.pop())
        self._now: Room | None = None
        self._begun = 0  # first step of the current chunk
        self._end: tuple[Carry, int] | None = None  # final state of the last chunk, and its step index

    def for_steps(self, carry: Carry, steps: int) -> tuple[Room, bool]:
        """Return a workspace for steps from a state, and whether it already contains the history of the state."""
        room, end, self._end = self._now, self._end, None
        if room is not None and end is not None and end[0] is carry and end[1] + steps <= len(room.iterations):
            self._begun = end[1]
            return room.from_step(self._begun), True
        self._now, self._begun = self._free(steps), 0
        return self._now.from_step(0), False

    def ended(self, carry: Carry, taken: int) -> None:
        """Record the final state of the current chunk, after `n_steps` steps."""
        self._end = carry, self._begun + taken

    def release(self) -> None:
        """Return workspaces of moderate size to the spare list: new memory is slower than reuse."""
        self._now = self._end = None
        self._spare += [room for room in self._rooms if _size(room) <= _KEPT]
        self._rooms = []

    def _free(self, steps: int) -> Room:
        """Return a workspace whose arrays have no views, or allocate a new one."""
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
    """Return the size of a workspace in bytes."""
    return int(room.Z.nbytes + room.X.nbytes + room.M.nbytes)
