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

from livens.errors import InputError, explain_call_errors
from livens.expressions.result_variables import RESULT_VARIABLES
from livens.models.base import Model
from livens.results.checkpoint import from_arrays
from livens.results.record import RunInfo, RunRecord, Statistics, Summary
from livens.results.result import MissingVariableError, Result
from livens.results.storage import checksums, hdf5_validation
from livens.results.storage import journal as atomic
from livens.results.storage.hdf5_writer import FORMATS, RunFile, checksum, os_error_text, try_lock
from livens.scene.scene import Scene
from livens.validation import check_path

T = TypeVar("T")

#: Number of names read at a time: a crafted name may take as much memory as the whole file.
_LABEL_BLOCK = 64
#: Number of attempts to read a file that its run is changing, and the pause between them, in seconds.
_TRIES, _PAUSE = 20, 0.05


def save(result: Result, path: Path, *, force: bool = False) -> Path:
    """Write a result atomically to a file."""
    arrays = {name: getattr(result, name) for name in result.stored}  # read first: the file may be the one replaced
    file = RunFile.create(path, result.info, rows=len(result), force=force)
    file.append(arrays)
    file.finish(result.record)
    return path


@explain_call_errors
def load(path: str | Path, system: Model | None = None) -> Result:
    """Read a result from its file.

    The file of a run that is still running, or was killed, contains all committed rows.

    Parameters
    ----------
    path : str or pathlib.Path
        Name of the HDF5 file.
    system : Model or Multibody, optional
        Model or mechanism of the run. Required for named results and observables of a user-defined model, which is not
        stored in the file.

    Returns
    -------
    Result
        The result; variables are read on first access.

    Raises
    ------
    InputError
        If the file does not exist, is not a result file or is damaged, or if `system` does not match the run.
    """
    path = check_path("the path of a run", path)
    if system is not None and not isinstance(system, Model):
        system = getattr(system, "system", system)  # of a mechanism
    if system is not None and not isinstance(system, Model):
        raise InputError(f"system must be the model of the run, got {system!r}")
    record, rows = _retry_while_written(path, _read_record)
    if system is not None and (
        system.coordinates != record.info.coordinates or system.constraint_names != record.info.constraint_names
    ):
        raise InputError(f"'{path}' was made with another system: its coordinates or constraints differ")
    return Result(LazyVariables(path, record.info.stored, rows), record, system=system, path=path)


class LazyVariables(Mapping[str, np.ndarray]):
    """Variables of a file, each read on first access."""

    def __init__(self, path: Path, names: tuple[str, ...], rows: int) -> None:
        self._path, self._names, self._n_rows = path, names, rows
        self._cache: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        self._require(name)
        if name not in self._cache:
            self._cache[name] = _retry_while_written(
                self._path, lambda file: self._read_rows(file, name, 0, self._n_rows), [name]
            )
        return self._cache[name]

    def _require(self, name: str) -> None:
        if name not in self._names:
            raise MissingVariableError(name, self._names)

    def _read_rows(self, file: h5py.File, name: str, start: int, stop: int) -> np.ndarray:
        part = checksums.read_verified(file, name, start, min(stop, self._n_rows))
        if len(part) != max(0, min(stop, self._n_rows) - start):
            raise ValueError(f"it has fewer than {self._n_rows} rows of '{name}'")
        return part

    def last(self, name: str) -> np.ndarray:
        """Return the last row of a variable."""
        self._require(name)
        return np.asarray(
            _retry_while_written(
                self._path, lambda file: self._read_rows(file, name, self._n_rows - 1, self._n_rows), [name]
            )[0]
        )

    def blocks(self, names: Sequence[str], rows: int) -> Iterator[dict[str, np.ndarray]]:
        """Yield variables in blocks of at most `rows` rows without caching: the run need not fit into memory."""
        for name in names:
            self._require(name)
        if all(name in self._cache for name in names):
            for a in range(0, self._n_rows, rows):
                yield {name: self._cache[name][a : a + rows] for name in names}
            return
        with _open_validated(self._path, list(names)) as file:
            for a in range(0, self._n_rows, rows):
                with damage_as_input_error(self._path):
                    block = {name: self._read_rows(file, name, a, a + rows) for name in names}
                yield block

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _read_record(file: h5py.File) -> tuple[RunRecord, int]:
    stored = file["checkpoint"]
    content = json.loads(checksums.strip_checksum(stored["record"][:].tobytes()))
    info = content["facts"]
    for name in ("coordinates", "constraint_names", "dropped", "stored", "algebraic", "events"):
        info[name] = tuple(info.get(name, ()))
    arrays = {name: data[()] for name, data in stored.items() if name != "record"}
    if checksum({name: np.asarray(value) for name, value in arrays.items()}) != content["checksum"]:
        raise ValueError("the checkpoint does not match its checksum")
    rows = int(content["rows"])
    if not set(info["stored"]) <= set(RESULT_VARIABLES) or {file[name].shape[0] for name in info["stored"]} != {rows}:
        raise ValueError("its variables differ in length")
    _check_labels(file, info)
    scene = json.loads(file["scene/text"][:].tobytes()) if "scene" in file else {}
    run_info = RunInfo(**info | {"scene": Scene.from_json(scene, len(info["coordinates"])).to_json()})
    record = RunRecord(
        run_info,
        Summary(**content["summary"]),
        Statistics(**content["statistics"]),
        status=str(content["status"]),
        message=str(content["message"]),
        events=content.get("events", []),
        checkpoint=from_arrays(arrays, run_info),
    )
    return record, rows


def _check_labels(file: h5py.File, info: dict[str, Any]) -> None:
    """Raise ValueError unless the names of coordinates and constraints in the file match those of the run."""
    labels = {"coordinate": "coordinates", "constraint": "constraint_names", "algebraic": "algebraic"}
    for axis, names in ((axis, info[name]) for axis, name in labels.items() if axis in file):
        data = file[axis]
        if data.shape != (len(names),):
            raise ValueError(f"it has {data.shape} names of the axis '{axis}' instead of {len(names)}")
        for a in range(0, len(names), _LABEL_BLOCK):
            if tuple(data.asstr()[a : a + _LABEL_BLOCK]) != names[a : a + _LABEL_BLOCK]:
                raise ValueError(f"the names of the axis '{axis}' do not match the record of the run")


# -- opening ----------------------------------------------------------------------------------------------------------
def _retry_while_written(path: Path, read: Callable[[h5py.File], T], names: Sequence[str] | None = None) -> T:
    """Read from a file, and retry while its run is changing it; `names` are the variables to validate.

    A read during a change may return neither the old nor the new state.
    """
    for n_remaining in reversed(range(_TRIES)):
        try:
            with _open_validated(path, names) as file, damage_as_input_error(path):
                return read(file)
        except InputError:
            if not n_remaining or not _is_locked(path):
                raise
            time.sleep(_PAUSE)
    raise AssertionError


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe without writer would block
    except (OSError, ValueError):
        return False
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _open_validated(path: Path, names: Sequence[str] | None = None) -> Iterator[h5py.File]:
    with open_readable(path, FORMATS, "a result file of livens") as (file, size):
        with damage_as_input_error(path):
            hdf5_validation.validate(file, size, _datasets_to_validate(file, names))
        yield file


@contextmanager
def open_readable(path: Path, formats: Sequence[str], description: str) -> Iterator[tuple[h5py.File, int]]:
    """Open a file of one of the given formats; yield the file and its size. Its contents are not validated."""
    try:
        if not path.exists():
            raise InputError(f"there is no file '{path}'")
        if not hdf5_validation.is_regular_file(path):
            raise InputError(f"'{path}' is not {description}: it is a folder, a device or a pipe")
    except (OSError, ValueError) as error:  # name too long, or with a null byte
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot read '{path}': {os_error_text(error)}") from None
    with ExitStack() as stack:
        try:
            descriptor = stack.enter_context(path.open("rb")).fileno()
            journal = atomic.pending(descriptor)
            if journal is not None and _finish_journal(path):
                journal = None
            if journal is None and atomic.unfinished(descriptor):
                raise InputError(f"'{path}' is damaged: a change was interrupted, and its journal is missing")
            # by descriptor: opened by name, HDF5 would lock the file, and its run may be writing to it
            file = h5py.File(atomic.AtomicFile(descriptor, journal[0] if journal else ()), "r")
        except PermissionError as error:
            raise InputError(f"cannot read '{path}': {os_error_text(error)}") from None
        except OSError:
            raise InputError(f"'{path}' is not {description} (it is not HDF5, or it is damaged)") from None
        stack.enter_context(file)
        with damage_as_input_error(path):
            version = hdf5_validation.read_format(file)
        if version not in formats:
            why = f"its format is {version!r}, not {formats[-1]!r}" if version else "it has no format attribute"
            readers = {"livens-ensemble": "lv.Ensemble.load", "livens-run": "lv.load"}
            file_type = str(version).rpartition("-")[0]
            if file_type in readers and not formats[-1].startswith(file_type):
                why += f": read it with {readers[file_type]}"
            raise InputError(f"'{path}' is not {description}: {why}")
        yield file, os.fstat(descriptor).st_size


def _datasets_to_validate(file: h5py.File, names: Sequence[str] | None) -> Sequence[str] | None:
    """Return the datasets to validate before these variables are read."""
    if names is None or checksums.GROUP not in file:
        return names
    return [*names, *(f"{checksums.GROUP}/{name}" for name in names)]


def _finish_journal(path: Path) -> bool:
    """Apply the journal of an interrupted change, so that any program can read the file; False if not permitted."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        if not try_lock(descriptor):
            return False  # its run is writing
        atomic.repair(descriptor)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


@contextmanager
def damage_as_input_error(path: Path) -> Iterator[None]:
    """Convert errors caused by a damaged file to `InputError`."""
    try:
        yield
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, OSError, RuntimeError, MemoryError) as error:
        raise InputError(f"'{path}' is damaged: {error}") from None
