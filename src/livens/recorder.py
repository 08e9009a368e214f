"""Keeps the rows of a run, in memory or in a file, and hands out the Result."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from livens.result import VARIABLES, Facts, Record, Result
from livens.system import System

#: Rows go to the file when they fill this many bytes, or after this many seconds.
_BYTES, _SECONDS = 8_000_000, 1.0
#: Room for this many rows is made at first; it is doubled when needed.
_ROWS = 1024

Rows = dict[str, np.ndarray]


class Recorder:
    """Stores every so many steps, and the last one in any case.

    Rows of steps whose number `every` divides are regular. The last row may be another; a run that goes on later
    leaves it out.
    """

    #: Step number of a row that belongs to no regular step.
    IRREGULAR = -1

    def __init__(self, facts: Facts, path: Path | None, *, expected: int = _ROWS, force: bool = False) -> None:
        self._every = facts.every
        self.regular_rows = 0
        self._room: Rows = {}
        self._used = 0
        self._expected = expected
        self._tail: Rows | None = None
        self._saved = time.monotonic()
        self.path = path
        self._file = None
        if path is not None:
            from livens.storage import RunFile

            self._file = RunFile(path, force=force, facts=facts)

    @classmethod
    def reopened(cls, facts: Facts, path: Path, regular_rows: int) -> Recorder:
        """Go on with a file, after its regular rows."""
        from livens.storage import RunFile

        recorder = cls(facts, None)
        recorder.path, recorder._file = path, RunFile(path)
        recorder._file.truncate(regular_rows)
        recorder.regular_rows = regular_rows
        return recorder

    def add(self, rows: Rows, numbers: np.ndarray) -> None:
        """Take the rows of steps with consecutive numbers; the arrays may be overwritten afterwards."""
        if not len(numbers):
            return
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
            self._room[name][self._used : self._used + count] = array
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
        return {name: self._room[name][: self._used] for name in VARIABLES}

    def save_now_and_then(self, record: Callable[[], Record]) -> None:
        """Write to the file, if there is one and it is time."""
        if self._file is None or not self._room:
            return
        size = sum(array.nbytes for array in self._taken().values())
        if size > _BYTES or time.monotonic() - self._saved > _SECONDS:
            self._write()
            self._file.record(record())
            self._saved = time.monotonic()

    def _write(self) -> None:
        if self._file is not None and self._used:
            self._file.append(self._taken())
            self._used = 0

    def finish(self, record: Record, system: System) -> Result:
        """The run is over, one way or another."""
        if self._tail is not None:
            self._store(self._tail, 1)
        if self._file is None or self.path is None:
            return Result(self._taken(), record, system=system)
        self._write()
        self._file.record(record)
        self._file.close()
        from livens.storage import load

        return load(self.path, system=system)
