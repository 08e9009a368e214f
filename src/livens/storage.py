"""Runs on disk: HDF5 written as the run goes, readable by xarray, with all that is needed to go on."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import livens
from livens.errors import InputError
from livens.result import VARIABLES, Facts, Record, Result, Statistics, Summary
from livens.system import System

FORMAT = "livens-run-1"
_UNITS = {"t": "s", "step_size": "s", "supplied_energy": "J", "dissipated_energy": "J"}
#: How many numbers of a variable are stored together.
_CHUNK = 8192


def dimensions() -> dict[str, tuple[str, ...]]:
    """The axes of every variable."""
    second = {"q": "coordinate", "v": "coordinate", "p": "coordinate", "multipliers": "constraint"}
    return {name: ("t", second[name]) if name in second else ("t",) for name in VARIABLES}


def attributes(record: Record) -> dict[str, Any]:
    """What a file says about itself."""
    return {
        "format": FORMAT,
        "livens_version": livens.__version__,
        "status": record.status,
        "message": record.message,
        "facts": json.dumps(dataclasses.asdict(record.facts)),
        "summary": json.dumps(dataclasses.asdict(record.summary)),
        "statistics": json.dumps(dataclasses.asdict(record.statistics)),
    }


class RunFile:
    """A result file that grows with its run."""

    def __init__(self, path: Path, *, force: bool = False, facts: Facts | None = None) -> None:
        """Create a file for the run that `facts` describe; without facts, open the file of a run to go on with it."""
        self.path = path
        try:
            if facts is None:
                self._file = h5py.File(path, "r+")
            else:
                _claim(path, force)
                self._file = h5py.File(path, "w", libver="latest")
                self._lay_out(facts)
        except OSError as error:
            raise InputError(f"cannot write the result file '{path}': {error}") from None

    def _lay_out(self, facts: Facts) -> None:
        sizes = {"coordinate": len(facts.coordinates), "constraint": len(facts.constraint_names)}
        scales = {}
        for axis, names in (("coordinate", facts.coordinates), ("constraint", facts.constraint_names)):
            scales[axis] = self._file.create_dataset(axis, data=np.array(names, dtype=h5py.string_dtype()))
            scales[axis].make_scale(axis)
        for name, axes in dimensions().items():
            rest = tuple(sizes[axis] for axis in axes[1:])
            rows = max(1, _CHUNK // max(1, int(np.prod(rest))))
            kind = np.int64 if name == "newton_iterations" else np.float64
            chunks = (rows, *(max(1, size) for size in rest))
            limits = (None, *(size or None for size in rest))  # a fixed axis of no length cannot be chunked
            data = self._file.create_dataset(name, (0, *rest), dtype=kind, maxshape=limits, chunks=chunks)
            if name in _UNITS:
                data.attrs["units"] = _UNITS[name]
            if name == "t":
                data.make_scale("t")
                scales["t"] = data
        for name, axes in dimensions().items():
            if name != "t":
                for i, axis in enumerate(axes):
                    self._file[name].dims[i].attach_scale(scales[axis])

    def append(self, arrays: dict[str, np.ndarray]) -> None:
        """Add rows to every variable."""
        try:
            for name in VARIABLES:
                data, rows = self._file[name], arrays[name]
                data.resize(data.shape[0] + len(rows), axis=0)
                if len(rows):
                    data[-len(rows) :] = rows
        except OSError as error:
            raise InputError(f"cannot write to the result file '{self.path}': {error}") from None

    def truncate(self, rows: int) -> None:
        """Keep only the first rows of every variable."""
        for name in VARIABLES:
            self._file[name].resize(rows, axis=0)

    def record(self, record: Record) -> None:
        """Write what is known of the run so far, and the point from which it can go on."""
        try:
            for name, value in attributes(record).items():
                self._file.attrs[name] = value
            if "checkpoint" in self._file:
                del self._file["checkpoint"]
            group = self._file.create_group("checkpoint")
            for name, array in record.checkpoint.items():
                group[name] = array
            self._file.flush()
        except OSError as error:
            raise InputError(f"cannot write to the result file '{self.path}': {error}") from None

    def close(self) -> None:
        self._file.close()


def _claim(path: Path, force: bool) -> None:
    if path.is_dir():
        raise InputError(f"cannot write the result file '{path}': it is a folder")
    if path.exists() and not force:
        raise InputError(f"the file '{path}' exists already: choose another name, or replace it with force")
    if not path.parent.is_dir():
        raise InputError(f"cannot write the result file '{path}': the folder '{path.parent}' does not exist")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write the result file '{path}': no permission to write in '{path.parent}'")


def save(result: Result, path: Path, *, force: bool = False) -> Path:
    """Write a whole run to a file, which is there complete or not at all."""
    _claim(path, force)
    arrays = {name: getattr(result, name) for name in VARIABLES}  # perhaps from the very file that is replaced
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    file = RunFile(part, force=True, facts=result.facts)
    file.append(arrays)
    file.record(result.record)
    file.close()
    part.replace(path)
    return path


@contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    if not path.exists():
        raise InputError(f"there is no file '{path}'")
    try:
        file = h5py.File(path, "r")
    except OSError:
        raise InputError(f"'{path}' is not a result file of livens (it is not HDF5, or it is damaged)") from None
    with file:
        with _sound(path):
            found = file.attrs.get("format")
        if found != FORMAT:
            reason = f"its format is {found!r}, not {FORMAT!r}" if found else "it does not say so in itself"
            raise InputError(f"'{path}' is not a result file of livens: {reason}")
        yield file


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    """What a damaged file makes the library say, in our words."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, OSError, RuntimeError) as error:
        raise InputError(f"'{path}' is damaged: {error}") from None


class _Stored(Mapping[str, np.ndarray]):
    """The variables of a file, each read when first asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._read:
            with _opened(self._path) as file, _sound(self._path):
                self._read[name] = file[name][:]
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(VARIABLES)

    def __len__(self) -> int:
        return len(VARIABLES)


def load(path: str | Path, system: System | None = None) -> Result:
    """Read a run from its file. A system of your own is not in the file: pass it to use observables."""
    path = Path(path)
    with _opened(path) as file, _sound(path):
        record = _record(file)
    if system is not None and (
        system.coordinates != record.facts.coordinates or system.constraint_names != record.facts.constraint_names
    ):
        raise InputError(f"'{path}' was made with another system: its coordinates or constraints differ")
    return Result(_Stored(path), record, system=system, path=path)


def _record(file: h5py.File) -> Record:
    facts = json.loads(file.attrs["facts"])
    for name in ("coordinates", "constraint_names", "dropped"):
        facts[name] = tuple(facts[name])
    if len({file[name].shape[0] for name in VARIABLES}) != 1:
        raise ValueError("its variables differ in length")
    return Record(
        Facts(**facts),
        Summary(**json.loads(file.attrs["summary"])),
        Statistics(**json.loads(file.attrs["statistics"])),
        status=str(file.attrs["status"]),
        message=str(file.attrs["message"]),
        checkpoint={name: data[()] for name, data in file["checkpoint"].items()},
    )
