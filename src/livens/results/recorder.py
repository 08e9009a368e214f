"""Recorder of the rows of a run, in memory or in a file."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.stepper import IntegratorState, StepChunk
from livens.errors import InputError
from livens.expressions.result_variables import RESULT_VARIABLES
from livens.expressions.state_layout import Layout
from livens.models.base import Model
from livens.results.background import BackgroundTask
from livens.results.record import RunInfo, RunRecord
from livens.results.result import Result

if TYPE_CHECKING:
    from livens.results.storage.hdf5_writer import RunFile

#: Size of the buffered rows, in bytes, above which they are written to the file.
FLUSH_BYTES = 8_000_000
#: Interval between commits in seconds, and upper bound of the fraction of time spent on commits.
COMMIT_INTERVAL, MAX_IO_SHARE = 1.0, 0.05
#: Initial capacity in rows; it is doubled when needed.
_INITIAL_ROWS = 1024
#: Name of the array with all stored parts of the state.
_STATE = "state"

RowArrays = dict[str, np.ndarray]


class Recorder:
    """Recorder of every n-th step of a run and of its last step.

    Rows of steps whose index is a multiple of `every` are regular. Rows of the final steps may be provisional; a run
    that is continued later discards provisional rows.
    """

    name = "recorder"

    def __init__(
        self, info: RunInfo, layout: Layout, file: RunFile | None = None, *, expected: int = _INITIAL_ROWS
    ) -> None:
        self._every, self._names = info.every, info.stored
        #: Stored parts of the state, packed: slice of each part, and columns of the state.
        self._slices, self._columns, self._width = packed_layout(tuple(layout.sizes.items()), self._names)
        self._stored_arrays = (*(name for name in self._names if name not in self._slices), _STATE)
        self.regular_rows, self._step = 0, 0
        self._buffer: RowArrays = {}
        self._spare_buffer: RowArrays = {}  # second buffer: its rows are being written to the file
        self._n_rows = 0
        self._expected = expected
        self._row_bytes = 8 * (len(self._stored_arrays) - 1 + self._width)
        self._pending_row: RowArrays | None = None
        self._n_provisional = 0  # number of stored provisional rows, which a continued run discards
        self._file, self._background = file, BackgroundTask()
        self._next_commit = 0.0

    # -- listener interface -------------------------------------------------------------------------------------------
    def start(self, state: IntegratorState) -> None:
        """Store the initial state as the first row."""
        self._grow(1)
        for column in self._buffer.values():
            column[0] = 0
        self._buffer["t"][0] = state.t
        self._buffer[_STATE][0] = state.z[self._columns]
        self._n_rows = self.regular_rows = 1

    def observe(self, steps: StepChunk, regular: bool = True) -> None:
        """Store the rows of a chunk of steps; the arrays of the chunk may be reused afterwards."""
        if not steps.n_steps:
            return
        rows = self._row_arrays(
            steps.t_end, steps.step_sizes, steps.end_states, steps.newton_iterations, steps.fictive_t
        )
        if regular:
            self._add(rows, self._step + 1)
            self._step += steps.n_steps
        else:
            if self._every == 1:
                self._n_provisional += self._store_pending_row() + steps.n_steps - 1
                self._store({name: array[:-1] for name, array in rows.items()}, steps.n_steps - 1)
            self._pending_row = {name: array[-1:].copy() for name, array in rows.items()}

    @property
    def has_pending_row(self) -> bool:
        """True if the last row is pending: it is stored only if no step follows."""
        return self._pending_row is not None

    def commit_tail(self) -> None:
        """Make all rows up to the last one regular: the run may continue from there."""
        self.regular_rows += self._n_provisional + self._store_pending_row()
        self._n_provisional = 0

    def record_discontinuity(self, state: IntegratorState) -> None:
        """Store a second row at the same time, after a discontinuity of the state."""
        zero, t = np.zeros(1), np.array([state.t])
        self._store(self._row_arrays(t, zero, state.z[None, :], np.zeros(1, dtype=np.int64), zero), 1)
        self.regular_rows += 1

    def checkpoint(self) -> dict[str, int]:
        return {"rows": self.regular_rows, "step": self._step}

    def restore(self, stored: dict[str, Any]) -> None:
        self.regular_rows, self._step = int(stored["rows"]), int(stored["step"])

    # -- rows ---------------------------------------------------------------------------------------------------------
    def _row_arrays(
        self, t: np.ndarray, sizes: np.ndarray, Z: np.ndarray, iterations: np.ndarray, fictive: np.ndarray | None
    ) -> RowArrays:
        available = {"t": t, "step_size": sizes, "newton_iterations": iterations, "fictive_time": fictive, _STATE: Z}
        return {name: available[name] for name in self._stored_arrays}  # type: ignore[misc]  # fictive_time may be None if unused

    def _add(self, rows: RowArrays, step0: int) -> None:
        """Add rows of consecutive steps; `step0` is the index of the first step."""
        every = self._every
        start, total = -step0 % every, len(rows["t"])
        count = (total - start + every - 1) // every if total > start else 0
        if count:
            self._store(rows if every == 1 else {name: array[start::every] for name, array in rows.items()}, count)
            self.regular_rows += count
        is_last_stored = count and start + (count - 1) * every == total - 1
        self._pending_row = None if is_last_stored else {name: array[-1:].copy() for name, array in rows.items()}

    def _store(self, rows: RowArrays, count: int) -> None:
        start, stop = self._n_rows, self._n_rows + count
        if not self._buffer or stop > len(self._buffer["t"]):
            self._grow(stop)
        for name, array in rows.items():
            self._buffer[name][start:stop] = array[:, self._columns] if name == _STATE else array
        self._n_rows = stop

    def _store_pending_row(self) -> bool:
        """Store the pending row, if any; return True if there was one."""
        pending_row, self._pending_row = self._pending_row, None
        if pending_row is not None:
            self._store(pending_row, 1)
        return pending_row is not None

    def _grow(self, n_required: int) -> None:
        spare_size = len(self._spare_buffer["t"]) if self._spare_buffer else 0
        size = max(n_required, 2 * self._n_rows, spare_size, _INITIAL_ROWS if self._file else self._expected)
        shapes = {name: (size, self._width) if name == _STATE else (size,) for name in self._stored_arrays}
        dtypes = {"newton_iterations": np.int64}
        try:
            buffer: RowArrays = {name: np.empty(shape, dtype=dtypes.get(name, float)) for name, shape in shapes.items()}
        except (MemoryError, ValueError, OverflowError):
            raise InputError(
                f"not enough memory for {size} rows: store fewer rows (every=1000), write them to a file (out=...) "
                "or use larger steps"
            ) from None
        for name, old in self._buffer.items():
            buffer[name][: self._n_rows] = old[: self._n_rows]
        self._buffer = buffer

    def _rows_by_variable(self) -> RowArrays:
        """Return the buffered rows by variable; state variables are views of one array."""
        rows, slices = slice(self._n_rows), self._slices
        state = self._buffer[_STATE][rows]
        return {name: state[:, slices[name]] if name in slices else self._buffer[name][rows] for name in self._names}

    def rows_in_memory(self) -> RowArrays:
        """Return the rows that have not been written to a file, by variable."""
        return self._rows_by_variable()

    # -- to the file --------------------------------------------------------------------------------------------------
    def flush_if_due(self, record: Callable[[], RunRecord]) -> None:
        """Write rows to the file and commit, if a commit is due."""
        if self._file is None:
            return
        t_start = time.monotonic()
        if t_start >= self._next_commit:
            self._write()
            self._background.result()
            self._file.commit(record())
            t_stop = time.monotonic()
            self._next_commit = t_stop + max(COMMIT_INTERVAL, (t_stop - t_start) / MAX_IO_SHARE)
        elif self._n_rows * self._row_bytes > FLUSH_BYTES:
            self._write()

    def _write(self) -> None:
        """Write the buffered rows to the file, in the background if there are many."""
        if self._file is None or not self._n_rows:
            return
        self._background.result()
        rows = self._rows_by_variable()
        if self._n_rows * self._row_bytes > FLUSH_BYTES:
            self._background.submit(functools.partial(self._file.append, rows))
            self._buffer, self._spare_buffer = self._spare_buffer, self._buffer
        else:
            self._file.append(rows)
        self._n_rows = 0

    def finish(self, record: RunRecord, system: Model) -> Result:
        """Store the pending row, close the file and return the result of the run."""
        self._store_pending_row()
        if self._file is None:
            return Result(self._rows_by_variable(), record, system=system)
        self._write()
        self._background.result()
        self._file.finish(record)
        return self.load_result(system)

    def load_result(self, system: Model) -> Result:
        """Return the result from the file, also if the run was not finished."""
        from livens.results.storage.hdf5_reader import load

        assert self._file is not None
        return load(self._file.path, system=system)

    def release(self) -> None:
        """Close the file in the state of its last commit."""
        if self._file is not None:
            self._background.join()
            self._file.close()

    def discard(self) -> None:
        """Remove the file of a run that did not start."""
        if self._file is not None:
            self._file.discard()


@functools.lru_cache(maxsize=64)
def packed_layout(sizes: tuple[tuple[str, int], ...], names: tuple[str, ...]) -> tuple[dict[str, Any], Any, int]:
    """Return the slices of packed state variables, their columns in the state, and the number of columns."""
    layout, slices, columns_in_state = Layout(**dict(sizes)), dict[str, slice | int](), list[int]()
    for name in layout.sizes:  # in the order of the state, so that a contiguous slice suffices in most cases
        if name in names and name != "t":
            part, offset = layout[name], len(columns_in_state)
            slices[name] = slice(offset, offset + part.stop - part.start) if RESULT_VARIABLES[name].dim else offset
            columns_in_state += range(part.start, part.stop)
    is_contiguous = columns_in_state == list(range(len(columns_in_state)))
    columns = slice(0, len(columns_in_state)) if is_contiguous else np.array(columns_in_state, dtype=np.int64)
    return slices, columns, len(columns_in_state)
