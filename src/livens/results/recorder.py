"""Recorder of the rows of a run, in memory or in a file."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.steps import Carry, Steps
from livens.errors import InputError
from livens.expressions.layout import Layout
from livens.expressions.variables import VARIABLES
from livens.models.model import Model
from livens.results.beside import Beside
from livens.results.record import Facts, Record
from livens.results.result import Result

if TYPE_CHECKING:
    from livens.results.hdf5_writer import RunFile

#: Size of the buffered rows, in bytes, above which they are written to the file.
BYTES = 8_000_000
#: Interval between commits in seconds, and upper bound of the fraction of time spent on commits.
SECONDS, SHARE = 1.0, 0.05
#: Initial capacity in rows; it is doubled when needed.
_ROWS = 1024
#: Name of the array with all stored parts of the state.
_STATE = "state"

Rows = dict[str, np.ndarray]


class Recorder:
    """Recorder of every n-th step of a run and of its last step.

    Rows of steps whose index is a multiple of `every` are regular. Rows of the final steps may be provisional; a run
    that is continued later discards provisional rows.
    """

    name = "recorder"

    def __init__(self, facts: Facts, layout: Layout, file: RunFile | None = None, *, expected: int = _ROWS) -> None:
        self._every, self._names = facts.every, facts.stored
        #: Stored parts of the state, packed: slice of each part, and columns of the state.
        self._places, self._columns, self._width = side_by_side(tuple(layout.sizes.items()), self._names)
        self._kept = (*(name for name in self._names if name not in self._places), _STATE)
        self.regular_rows, self._step = 0, 0
        self._room: Rows = {}
        self._spare: Rows = {}  # second buffer: its rows are being written to the file
        self._used = 0
        self._expected = expected
        self._row_bytes = 8 * (len(self._kept) - 1 + self._width)
        self._tail: Rows | None = None
        self._beyond = 0  # number of stored provisional rows, which a continued run discards
        self._file, self._beside = file, Beside()
        self._next_commit = 0.0

    # -- listener interface -------------------------------------------------------------------------------------------
    def begin(self, carry: Carry) -> None:
        """Store the initial state as the first row."""
        self._make_room(1)
        for column in self._room.values():
            column[0] = 0
        self._room["t"][0] = carry.t
        self._room[_STATE][0] = carry.z[self._columns]
        self._used = self.regular_rows = 1

    def look(self, steps: Steps, regular: bool = True) -> None:
        """Store the rows of a chunk of steps; the arrays of the chunk may be reused afterwards."""
        if not steps.taken:
            return
        rows = self._rows(steps.t, steps.sizes, steps.Z, steps.iterations, steps.fictive)
        if regular:
            self._add(rows, self._step + 1)
            self._step += steps.taken
        else:
            if self._every == 1:
                self._beyond += self._store_tail() + steps.taken - 1
                self._store({name: array[:-1] for name, array in rows.items()}, steps.taken - 1)
            self._tail = {name: array[-1:].copy() for name, array in rows.items()}

    @property
    def keeps_back(self) -> bool:
        """True if the last row is pending: it is stored only if no step follows."""
        return self._tail is not None

    def keep_tail(self) -> None:
        """Make all rows up to the last one regular: the run may continue from there."""
        self.regular_rows += self._beyond + self._store_tail()
        self._beyond = 0

    def jump(self, carry: Carry) -> None:
        """Store a second row at the same time, after a discontinuity of the state."""
        zero, t = np.zeros(1), np.array([carry.t])
        self._store(self._rows(t, zero, carry.z[None, :], np.zeros(1, dtype=np.int64), zero), 1)
        self.regular_rows += 1

    def state(self) -> dict[str, Any]:
        return {"rows": self.regular_rows, "step": self._step}

    def restore(self, stored: dict[str, Any]) -> None:
        self.regular_rows, self._step = int(stored["rows"]), int(stored["step"])

    # -- rows ---------------------------------------------------------------------------------------------------------
    def _rows(
        self, t: np.ndarray, sizes: np.ndarray, Z: np.ndarray, iterations: np.ndarray, fictive: np.ndarray | None
    ) -> Rows:
        given = {"t": t, "step_size": sizes, "newton_iterations": iterations, "fictive_time": fictive, _STATE: Z}
        return {name: given[name] for name in self._kept}  # type: ignore[misc]  # fictive_time may be None if unused

    def _add(self, rows: Rows, number: int) -> None:
        """Add rows of consecutive steps; `step0` is the index of the first step."""
        every = self._every
        first, total = -number % every, len(rows["t"])
        count = (total - first + every - 1) // every if total > first else 0
        if count:
            self._store(rows if every == 1 else {name: array[first::every] for name, array in rows.items()}, count)
            self.regular_rows += count
        last_kept = count and first + (count - 1) * every == total - 1
        self._tail = None if last_kept else {name: array[-1:].copy() for name, array in rows.items()}

    def _store(self, rows: Rows, count: int) -> None:
        first, last = self._used, self._used + count
        if not self._room or last > len(self._room["t"]):
            self._make_room(last)
        for name, array in rows.items():
            self._room[name][first:last] = array[:, self._columns] if name == _STATE else array
        self._used = last

    def _store_tail(self) -> bool:
        """Store the pending row, if any; return True if there was one."""
        tail, self._tail = self._tail, None
        if tail is not None:
            self._store(tail, 1)
        return tail is not None

    def _make_room(self, needed: int) -> None:
        as_before = len(self._spare["t"]) if self._spare else 0
        size = max(needed, 2 * self._used, as_before, _ROWS if self._file else self._expected)
        shapes = {name: (size, self._width) if name == _STATE else (size,) for name in self._kept}
        kinds = {"newton_iterations": np.int64}
        try:
            room: Rows = {name: np.empty(shape, dtype=kinds.get(name, float)) for name, shape in shapes.items()}
        except (MemoryError, ValueError, OverflowError):
            raise InputError(
                f"not enough memory for {size} rows: store fewer rows (every=1000), write them to a file (out=...) "
                "or use larger steps"
            ) from None
        for name, old in self._room.items():
            room[name][: self._used] = old[: self._used]
        self._room = room

    def _taken(self) -> Rows:
        """Return the buffered rows by variable; state variables are views of one array."""
        used, places = slice(self._used), self._places
        state = self._room[_STATE][used]
        return {name: state[:, places[name]] if name in places else self._room[name][used] for name in self._names}

    def in_memory(self) -> Rows:
        """Return the rows that have not been written to a file, by variable."""
        return self._taken()

    # -- to the file --------------------------------------------------------------------------------------------------
    def save_now_and_then(self, record: Callable[[], Record]) -> None:
        """Write rows to the file and commit, if a commit is due."""
        if self._file is None:
            return
        begun = time.monotonic()
        if begun >= self._next_commit:
            self._write()
            self._beside.wait()
            self._file.commit(record())
            end = time.monotonic()
            self._next_commit = end + max(SECONDS, (end - begun) / SHARE)
        elif self._used * self._row_bytes > BYTES:
            self._write()

    def _write(self) -> None:
        """Write the buffered rows to the file, in the background if there are many."""
        if self._file is None or not self._used:
            return
        self._beside.wait()
        rows = self._taken()
        if self._used * self._row_bytes > BYTES:
            self._beside.do(functools.partial(self._file.append, rows))
            self._room, self._spare = self._spare, self._room
        else:
            self._file.append(rows)
        self._used = 0

    def finish(self, record: Record, system: Model) -> Result:
        """Store the pending row, close the file and return the result of the run."""
        self._store_tail()
        if self._file is None:
            return Result(self._taken(), record, system=system)
        self._write()
        self._beside.wait()
        self._file.finish(record)
        return self.stored_result(system)

    def stored_result(self, system: Model) -> Result:
        """Return the result from the file, also if the run was not finished."""
        from livens.results.hdf5_reader import load

        assert self._file is not None
        return load(self._file.path, system=system)

    def release(self) -> None:
        """Close the file in the state of its last commit."""
        if self._file is not None:
            self._beside.end()
            self._file.close()

    def discard(self) -> None:
        """Remove the file of a run that did not start."""
        if self._file is not None:
            self._file.discard()


@functools.lru_cache(maxsize=64)
def side_by_side(sizes: tuple[tuple[str, int], ...], names: tuple[str, ...]) -> tuple[dict[str, Any], Any, int]:
    """Return the slices of packed state variables, their columns in the state, and the number of columns."""
    layout, places, chosen = Layout(**dict(sizes)), dict[str, slice | int](), list[int]()
    for name in layout.sizes:  # in the order of the state, so that a contiguous slice suffices in most cases
        if name in names and name != "t":
            part, first = layout[name], len(chosen)
            places[name] = slice(first, first + part.stop - part.start) if VARIABLES[name].axis else first
            chosen += range(part.start, part.stop)
    in_order = chosen == list(range(len(chosen)))
    columns = slice(0, len(chosen)) if in_order else np.array(chosen, dtype=np.int64)
    return places, columns, len(chosen)
