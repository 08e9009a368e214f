"""Runs on disk, read: what the file vouches for, whether its run ended well, is under way or was killed."""

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

#: Names are read at most this many at a time: in a file made for the purpose, each may take as much memory as the file.
_LABELS = 64
#: A file that its run is just changing is read again, at most this many times, after this many seconds.
_TRIES, _PAUSE = 20, 0.05


def save(result: Result, path: Path, *, force: bool = False) -> Path:
    """Write a whole run to a file, which is there complete or not at all."""
    arrays = {name: getattr(result, name) for name in result.stored}  # perhaps from the very file that is replaced
    file = RunFile.create(path, result.facts, rows=len(result), force=force)
    file.append(arrays)
    file.finish(result.record)
    return path


def load(path: str | Path, system: Model | None = None) -> Result:
    """Read a run from its file. A system of your own is not in the file: pass it to use observables.

    The file of a run that is still going, or was killed, gives what it holds so far.
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
    """The variables of a file, each read when first asked for."""

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
        """The last row of a variable."""
        self._require(name)
        return np.asarray(
            _patiently(self._path, lambda file: self._part(file, name, self._rows - 1, self._rows), [name])[0]
        )

    def blocks(self, names: Sequence[str], rows: int) -> Iterator[dict[str, np.ndarray]]:
        """Some variables, at most this many rows at a time and not kept: a long run need not fit into memory."""
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
        raise ValueError("the point from which its run can go on is not what was written")
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
    """The names of coordinates and constraints are in the file for other readers, and must be those of the run."""
    labels = {"coordinate": "coordinates", "constraint": "constraint_names", "algebraic": "algebraic"}
    for axis, names in ((axis, facts[name]) for axis, name in labels.items() if axis in file):
        data = file[axis]
        if data.shape != (len(names),):
            raise ValueError(f"it has {data.shape} names of the axis '{axis}' instead of {len(names)}")
        for a in range(0, len(names), _LABELS):
            if tuple(data.asstr()[a : a + _LABELS]) != names[a : a + _LABELS]:
                raise ValueError(f"the names of the axis '{axis}' are not what was written")


# -- opening ----------------------------------------------------------------------------------------------------------
def _patiently(path: Path, read: Callable[[h5py.File], T], names: Sequence[str] | None = None) -> T:
    """Read something, of these variables if they are given.

    If the run is just changing its file, what is read may be neither old nor new: try again.
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
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # nobody may be at a pipe's other end
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
    """A file that says it has one of these formats, and its size; nothing else in it has been looked at."""
    try:
        if not path.exists():
            raise InputError(f"there is no file '{path}'")
        if not inspection.regular(path):
            raise InputError(f"'{path}' is not {what}: it is a folder, a device or a pipe")
    except (OSError, ValueError) as error:  # a name that is too long, or has a zero in it
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
                raise InputError(f"'{path}' is damaged: it was being changed, and what the change was is missing")
            # not by its name: HDF5 would lock it, and its run may be writing to it
            file = h5py.File(atomic.AtomicFile(descriptor, journal[0] if journal else ()), "r")
        except PermissionError as error:
            raise InputError(f"cannot read '{path}': {reason(error)}") from None
        except OSError:
            raise InputError(f"'{path}' is not {what} (it is not HDF5, or it is damaged)") from None
        stack.enter_context(file)
        with sound(path):
            version = inspection.format_of(file)
        if version not in formats:
            why = f"its format is {version!r}, not {formats[-1]!r}" if version else "it does not say so in itself"
            raise InputError(f"'{path}' is not {what}: {why}")
        yield file, os.fstat(descriptor).st_size


def _places(file: h5py.File, names: Sequence[str] | None) -> Sequence[str] | None:
    """What has to be looked at before these variables are read."""
    if names is None or checksums.GROUP not in file:
        return names
    return [*names, *(f"{checksums.GROUP}/{name}" for name in names)]


def _repaired(path: Path) -> bool:
    """Finish a change in which the run was stopped, so that any program can read the file; false if it may not be."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        if not locked(descriptor):
            return False  # its run is busy with just that
        atomic.repair(descriptor)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


@contextmanager
def sound(path: Path) -> Iterator[None]:
    """What a damaged file makes the library say, in our words."""
    try:
        yield
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, OSError, RuntimeError, MemoryError) as error:
        raise InputError(f"'{path}' is damaged: {error}") from None
