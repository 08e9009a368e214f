"""Keeps the rows of a run, in memory or in a file, and hands out the Result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from livens.models.model import Model
from livens.results.result import Facts, Record, Result

if TYPE_CHECKING:
    from livens.results.hdf5_writer import RunFile

#: Rows go to the file when they fill this many bytes.
BYTES = 8_000_000
#: A run can go on from where it was at most so many seconds ago, but bringing things to disk must not take more of the
#: time than this share.
SECONDS, SHARE = 1.0, 0.05
#: Room for this many rows is made at first; it is doubled when needed.
_ROWS = 1024
#: So many columns are few.
_FEW = 8

Rows = dict[str, np.ndarray]


class Recorder:
    """Stores every so many steps, and the last one in any case.

    Rows of steps whose number `every` divides are regular. The last row may be another; a run that goes on later
    leaves it out.
    """

    #: Step number of a row that belongs to no regular step.
    IRREGULAR = -1

    def __init__(
        self, facts: Facts, file: RunFile | None = None, *, expected: int = _ROWS, regular_rows: int = 0
    ) -> None:
        self._every, self._names = facts.every, facts.stored
        self.regular_rows = regular_rows
        self._room: Rows = {}
        self._used = 0
        self._expected = expected
        self._tail: Rows | None = None
        self._file = file
        self._next_commit = 0.0

    def add(self, rows: Rows, numbers: np.ndarray) -> None:
        """Take the rows of steps with consecutive numbers; the arrays may be overwritten afterwards."""
        if not len(numbers):
            return
        rows = {name: rows[name] for name in self._names}
        first = len(numbers) if numbers[0] == self.IRREGULAR else int(-numbers[0] % self._every)
        kept = {name: array[first :: self._every] for name, array in rows.items()}
        count = len(kept["t"])
        self._store(kept, count)
        self.regular_rows += count
        last_kept = count and first + (count - 1) * self._every == len(numbers) - 1
        self._tail = None if last_kept else {name: array[-1:].copy() for name, array in rows.items()}

    def _store(self, rows: Rows, count: int) -> None:
        if not self._room or self._used + count > len(self._room["t"]):
            self._make_room(rows, self._used + count)
        for name, array in rows.items():
            _copy(array, self._room[name][self._used : self._used + count])
        self._used += count

    def _make_room(self, rows: Rows, needed: int) -> None:
        size = max(needed, 2 * self._used, _ROWS if self._file else self._expected)
        # one piece of memory for all variables: large pieces come in large pages, which are there sooner
        widths = {name: int(np.prod(array.shape[1:])) for name, array in rows.items()}
        flat, first, room = np.empty(size * sum(widths.values())), 0, {}
        for name, array in rows.items():
            part = flat[first : first + size * widths[name]].view(array.dtype)
            room[name] = part.reshape(size, *array.shape[1:])
            first += part.size
        for name, old in self._room.items():
            room[name][: self._used] = old[: self._used]
        self._room = room

    def _taken(self) -> Rows:
        return {name: self._room[name][: self._used] for name in self._names}

    # -- to the file --------------------------------------------------------------------------------------------------
    def save_now_and_then(self, record: Callable[[], Record]) -> None:
        """Write to the file, if there is one and it is time."""
        if self._file is None:
            return
        begun = time.monotonic()
        if begun >= self._next_commit:
            self._write()
            self._file.commit(record())
            end = time.monotonic()
            self._next_commit = end + max(SECONDS, (end - begun) / SHARE)
        elif self._used and sum(array.nbytes for array in self._taken().values()) > BYTES:
            self._write()

    def _write(self) -> None:
        if self._file is not None and self._used:
            self._file.append(self._taken())
            self._used = 0

    def finish(self, record: Record, system: Model) -> Result:
        """The run is over, one way or another."""
        if self._tail is not None:
            self._store(self._tail, 1)
        if self._file is None:
            return Result(self._taken(), record, system=system)
        self._write()
        self._file.finish(record)
        return self.kept(system)

    def kept(self, system: Model) -> Result:
        """What the file holds, also if its run could not be finished."""
        from livens.results.hdf5_reader import load

        assert self._file is not None
        return load(self._file.path, system=system)

    def release(self) -> None:
        """Leave the file to others, as it is."""
        if self._file is not None:
            self._file.close()


def _copy(source: np.ndarray, target: np.ndarray) -> None:
    """Column by column if there are few: NumPy's loop over the rows costs more than copying two or three numbers."""
    if source.ndim == 2 and source.shape[1] <= _FEW:
        for j in range(source.shape[1]):
            target[:, j] = source[:, j]
    else:
        target[...] = source
