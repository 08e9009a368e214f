"""Reading of result files: all committed rows of a run that is complete, still running or was killed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import path_of
from livens.expressions.variables import VARIABLES
from livens.models.model import Model
from livens.models.scene import Scene
from livens.results import checksums, inspection
from livens.results import journal as atomic
from livens.results.checkpoint import from_arrays
from livens.results.hdf5_writer import FORMATS, RunFile, checksum, locked, reason
from livens.results.record import Facts, Record, Statistics, Summary
from livens.results.result import MissingVariableError, Result

T = TypeVar("T")

#: Number of names read at a time: a crafted name may take as much memory as the whole file.
_LABELS = 64
#: Number of attempts to read a file that its run is changing, and the pause between them, in seconds.
_TRIES, _PAUSE = 20, 0.05


def save(result: Result, path: Path, *, force: bool = False) -> Path:
    """Write a result atomically to a file."""
    arrays = {name: getattr(result, name) for name in result.stored}  # read first: the file may be the one replaced
    file = RunFile.create(path, result.facts, rows=len(result), force=force)
    file.append(arrays)
    file.finish(result.record)
    return path


def load(path: str | Path, system: Model | None = None) -> Result:
    """Read a result from its file.

    The file of a run that is still running, or was killed, contains all committed rows.

    Parameters
    ----------
    path : str or pathlib.Path
        Name of the HDF5 file.
    system : Model, optional
        Model of the run. Required for observables of a user-defined model, which is not stored in the file.

    Returns
    -------
    Result
        The result; variables are read on first access.

    Raises
    ------
    InputError
        If the file does not exist, is not a result file or is damaged, or if `system` does not match the run.
    """
    path = path_of("the path of a run", path)
    if system is not None and not isinstance(system, Model):
        raise InputError(f"system must be the model of the run, got {system!r}")
    record, rows = _patiently(path, _record)
    if system is not None and (
        system.coordinates != record.facts.coordinates or system.constraint_names != record.facts.constraint_names
    ):
        raise InputError(f"'{path}' was made with another system: its coordinates or constraints differ")
    return Result(_Stored(path, record.facts.stored, rows), record, system=system, path=path)


class _Stored(Mapping[str, np.ndarray]):
    """Variables of a file, each read on first access."""

    def __init__(self, path: Path, names: tuple[str, ...], rows: int) -> None:
        self._path, self._names, self._rows = path, names, rows
        self._read: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        self._require(name)
        if name not in self._read:
            self._read[name] = _patiently(self._path, lambda file: self._part(file, name, 0, self._rows), [name])
        return self._read[name]

    def _require(self, name: str) -> None:
        if name not in self._names:
            raise MissingVariableError(name, self._names)

    def _part(self, file: h5py.File, name: str, first: int, last: int) -> np.ndarray:
        part = checksums.verified(file, name, first, min(last, self._rows))
        if len(part) != max(0, min(last, self._rows) - first):
            raise ValueError(f"it has fewer than {self._rows} rows of '{name}'")
        return part

    def last(self, name: str) -> np.ndarray:
        """Return the last row of a variable."""
        self._require(name)
        return np.asarray(
            _patiently(self._path, lambda file: self._part(file, name, self._rows - 1, self._rows), [name])[0]
        )

    def blocks(self, names: Sequence[str], rows: int) -> Iterator[dict[str, np.ndarray]]:
        """Yield variables in blocks of at most `rows` rows without caching: the run need not fit into memory."""
        for name in names:
            self._require(name)
        if all(name in self._read for name in names):
            for a in range(0, self._rows, rows):
                yield {name: self._read[name][a : a + rows] for name in names}
            return
        with _opened(self._path, list(names)) as file:
            for a in range(0, self._rows, rows):
                with sound(self._path):
                    block = {name: self._part(file, name, a, a + rows) for name in names}
                yield block

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _record(file: h5py.File) -> tuple[Record, int]:
    stored = file["checkpoint"]
    content = json.loads(checksums.without_checksum(stored["record"][:].tobytes()))
    facts = content["facts"]
    for name in ("coordinates", "constraint_names", "dropped", "stored", "algebraic", "events"):
        facts[name] = tuple(facts.get(name, ()))
    arrays = {name: data[()] for name, data in stored.items() if name != "record"}
    if checksum({name: np.asarray(value) for name, value in arrays.items()}) != content["checksum"]:
        raise ValueError("the checkpoint does not match its checksum")
    rows = int(content["rows"])
    if not set(facts["stored"]) <= set(VARIABLES) or {file[name].shape[0] for name in facts["stored"]} != {rows}:
        raise ValueError("its variables differ in length")
    _compare_labels(file, facts)
    scene = json.loads(file["scene/text"][:].tobytes()) if "scene" in file else {}
    described = Facts(**facts | {"scene": Scene.read(scene, len(facts["coordinates"])).plain()})
    record = Record(
        described,
        Summary(**content["summary"]),
        Statistics(**content["statistics"]),
        status=str(content["status"]),
        message=str(content["message"]),
        events=content.get("events", []),
        checkpoint=from_arrays(arrays, described),
    )
    return record, rows


def _compare_labels(file: h5py.File, facts: dict[str, Any]) -> None:
    """Raise ValueError unless the names of coordinates and constraints in the file match those of the run."""
    labels = {"coordinate": "coordinates", "constraint": "constraint_names", "algebraic": "algebraic"}
    for axis, names in ((axis, facts[name]) for axis, name in labels.items() if axis in file):
        data = file[axis]
        if data.shape != (len(names),):
            raise ValueError(f"it has {data.shape} names of the axis '{axis}' instead of {len(names)}")
        for a in range(0, len(names), _LABELS):
            if tuple(data.asstr()[a : a + _LABELS]) != names[a : a + _LABELS]:
                raise ValueError(f"the names of the axis '{axis}' do not match the record of the run")


# -- opening ----------------------------------------------------------------------------------------------------------
def _patiently(path: Path, read: Callable[[h5py.File], T], names: Sequence[str] | None = None) -> T:
    """Read from a file, and retry while its run is changing it; `names` are the variables to validate.

    A read during a change may return neither the old nor the new state.
    """
    for left in reversed(range(_TRIES)):
        try:
            with _opened(path, names) as file, sound(path):
                return read(file)
        except InputError:
            if not left or not _in_use(path):
                raise
            time.sleep(_PAUSE)
    raise AssertionError


def _in_use(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe without writer would block
    except (OSError, ValueError):
        return False
    try:
        return not locked(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _opened(path: Path, names: Sequence[str] | None = None) -> Iterator[h5py.File]:
    with readable(path, FORMATS, "a result file of livens") as (file, size):
        with sound(path):
            inspection.inspect(file, size, _places(file, names))
        yield file


@contextmanager
def readable(path: Path, formats: Sequence[str], what: str) -> Iterator[tuple[h5py.File, int]]:
    """Open a file of one of the given formats; yield the file and its size. Its contents are not validated."""
    try:
        if not path.exists():
            raise InputError(f"there is no file '{path}'")
        if not inspection.regular(path):
            raise InputError(f"'{path}' is not {what}: it is a folder, a device or a pipe")
    except (OSError, ValueError) as error:  # name too long, or with a null byte
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot read '{path}': {reason(error)}") from None
    with ExitStack() as stack:
        try:
            descriptor = stack.enter_context(path.open("rb")).fileno()
            journal = atomic.pending(descriptor)
            if journal is not None and _repaired(path):
                journal = None
            if journal is None and atomic.unfinished(descriptor):
                raise InputError(f"'{path}' is damaged: a change was interrupted, and its journal is missing")
            # by descriptor: opened by name, HDF5 would lock the file, and its run may be writing to it
            file = h5py.File(atomic.AtomicFile(descriptor, journal[0] if journal else ()), "r")
        except PermissionError as error:
            raise InputError(f"cannot read '{path}': {reason(error)}") from None
        except OSError:
            raise InputError(f"'{path}' is not {what} (it is not HDF5, or it is damaged)") from None
        stack.enter_context(file)
        with sound(path):
            version = inspection.format_of(file)
        if version not in formats:
            why = f"its format is {version!r}, not {formats[-1]!r}" if version else "it has no format attribute"
            raise InputError(f"'{path}' is not {what}: {why}")
        yield file, os.fstat(descriptor).st_size


def _places(file: h5py.File, names: Sequence[str] | None) -> Sequence[str] | None:
    """Return the datasets to validate before these variables are read."""
    if names is None or checksums.GROUP not in file:
        return names
    return [*names, *(f"{checksums.GROUP}/{name}" for name in names)]


def _repaired(path: Path) -> bool:
    """Apply the journal of an interrupted change, so that any program can read the file; False if not permitted."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        if not locked(descriptor):
            return False  # its run is writing
        atomic.repair(descriptor)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


@contextmanager
def sound(path: Path) -> Iterator[None]:
    """Convert errors caused by a damaged file to `InputError`."""
    try:
        yield
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, OSError, RuntimeError, MemoryError) as error:
        raise InputError(f"'{path}' is damaged: {error}") from None
