"""Keeps the rows of a run, in memory or in a file, and gives out the Result."""

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

#: Rows go to the file when they fill this many bytes.
BYTES = 8_000_000
#: A run can go on from where it was at most this many seconds ago, but bringing things to disk must not take more of
#: the time than this share.
SECONDS, SHARE = 1.0, 0.05
#: Room for this many rows is made at first; it is doubled when needed.
_ROWS = 1024
#: Under this name the parts of the state are kept together.
_STATE = "state"

Rows = dict[str, np.ndarray]


class Recorder:
    """Stores every n-th step, as the plan says, and the last one in any case.

    Rows of steps whose number `every` divides are regular. Those of the last steps, which belong to where the run ends,
    may be others; a run that goes on later leaves them out.
    """

    name = "recorder"

    def __init__(self, facts: Facts, layout: Layout, file: RunFile | None = None, *, expected: int = _ROWS) -> None:
        self._every, self._names = facts.every, facts.stored
        #: The parts of the state that are kept stand side by side: where each is, and the columns of the state.
        self._places, self._columns, self._width = side_by_side(tuple(layout.sizes.items()), self._names)
        self._kept = (*(name for name in self._names if name not in self._places), _STATE)
        self.regular_rows, self._step = 0, 0
        self._room: Rows = {}
        self._spare: Rows = {}  # the rows in it are on their way to the file, or there
        self._used = 0
        self._expected = expected
        self._row_bytes = 8 * (len(self._kept) - 1 + self._width)
        self._tail: Rows | None = None
        self._beyond = 0  # rows that were stored and are not regular: a longer run leaves them out
        self._file, self._beside = file, Beside()
        self._next_commit = 0.0

    # -- as a listener ------------------------------------------------------------------------------------------------
    def begin(self, carry: Carry) -> None:
        """The initial state is the first row."""
        self._make_room(1)
        for column in self._room.values():
            column[0] = 0
        self._room["t"][0] = carry.t
        self._room[_STATE][0] = carry.z[self._columns]
        self._used = self.regular_rows = 1

    def look(self, steps: Steps, regular: bool = True) -> None:
        """Take the rows of the next steps; the arrays may be overwritten afterwards."""
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
        """Whether the last row so far is not stored: it will be, if no step follows."""
        return self._tail is not None

    def keep_tail(self) -> None:
        """All rows up to the last one count as regular from now on: the run may go on from there."""
        self.regular_rows += self._beyond + self._store_tail()
        self._beyond = 0

    def jump(self, carry: Carry) -> None:
        """A second row at the same time: the state is another one from here on."""
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
        return {name: given[name] for name in self._kept}  # type: ignore[misc]  # without fictive time, it is not kept

    def _add(self, rows: Rows, number: int) -> None:
        """Rows of steps with consecutive numbers, of which the first is given."""
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
        """Store the row that was kept back, if there is one."""
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
                f"there is no room in memory for {size} rows: store fewer (every=1000), write them to a file (out=...) "
                "or take larger steps"
            ) from None
        for name, old in self._room.items():
            room[name][: self._used] = old[: self._used]
        self._room = room

    def _taken(self) -> Rows:
        """The rows so far by variable; those of the state are columns of one array."""
        used, places = slice(self._used), self._places
        state = self._room[_STATE][used]
        return {name: state[:, places[name]] if name in places else self._room[name][used] for name in self._names}

    def in_memory(self) -> Rows:
        """The rows so far that have not gone to a file, by variable."""
        return self._taken()

    # -- to the file --------------------------------------------------------------------------------------------------
    def save_now_and_then(self, record: Callable[[], Record]) -> None:
        """Write to the file, if there is one and it is time."""
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
        """Give the rows so far to the file. Many of them are written while the next ones are computed."""
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
        """The run is over, one way or another."""
        self._store_tail()
        if self._file is None:
            return Result(self._taken(), record, system=system)
        self._write()
        self._beside.wait()
        self._file.finish(record)
        return self.stored_result(system)

    def stored_result(self, system: Model) -> Result:
        """What the file holds, also if its run could not be finished."""
        from livens.results.hdf5_reader import load

        assert self._file is not None
        return load(self._file.path, system=system)

    def release(self) -> None:
        """Leave the file to others, as it is."""
        if self._file is not None:
            self._beside.end()
            self._file.close()

    def discard(self) -> None:
        """The run did not begin: there is to be no file."""
        if self._file is not None:
            self._file.discard()


@functools.lru_cache(maxsize=64)
def side_by_side(sizes: tuple[tuple[str, int], ...], names: tuple[str, ...]) -> tuple[dict[str, Any], Any, int]:
    """Where variables of the state stand if they stand side by side, their columns in the state, and how many."""
    layout, places, chosen = Layout(**dict(sizes)), dict[str, slice | int](), list[int]()
    for name in layout.sizes:  # in the order of the state, so that mostly all of it can be copied as it is
        if name in names and name != "t":
            part, first = layout[name], len(chosen)
            places[name] = slice(first, first + part.stop - part.start) if VARIABLES[name].axis else first
            chosen += range(part.start, part.stop)
    in_order = chosen == list(range(len(chosen)))
    columns = slice(0, len(chosen)) if in_order else np.array(chosen, dtype=np.int64)
    return places, columns, len(chosen)
