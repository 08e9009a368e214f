"""Growing HDF5 result file of a run; every commit leaves a consistent file."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from livens.errors import InputError, WriteError
from livens.expressions.stages import stage
from livens.expressions.variables import VARIABLES, dimensions
from livens.results import checksums, inspection
from livens.results import journal as atomic
from livens.results.checkpoint import as_arrays
from livens.results.record import Facts, Record

try:
    import fcntl
except ImportError:  # pragma: no cover - no flock on this system
    fcntl = None  # type: ignore[assignment]

#: Format written, and formats that can be read.
FORMAT = "livens-run-4"
FORMATS = ("livens-run-2", "livens-run-3", FORMAT)
#: Attribute of the error estimate of a run.
ACCURACY = "accuracy"
#: Variables that are constant in most runs, with their fill value, which needs no storage.
_MOSTLY: dict[str, Callable[[Facts], float]] = {  # same names as `CONSTANT_VARIABLES` of the validation
    "step_size": lambda facts: facts.h,
    "supplied_energy": lambda facts: 0.0,
    "dissipated_energy": lambda facts: 0.0,
}
#: Lower and upper bound of the number of entries per chunk; short runs use smaller chunks.
_CHUNKS = 1024, 16384
#: Number of coordinates above which the creation of the scene is reported as progress.
_MANY = 1000
#: Superblock version without a "file is open" flag: plain readers can open the file after a crash.
_VERSION = ("v108", "v108")


#: Links at the path of a file to be written are not followed.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class RunFile:
    """Result file that grows with its run. Appended rows become valid with the next `commit`."""

    def __init__(self, path: Path, part: Path | None, descriptor: int, mode: str) -> None:
        self.path = path
        self._part = part  # temporary name of the file until its first commit
        self._descriptor = descriptor
        self._content = atomic.AtomicFile(descriptor)
        self._file = h5py.File(self._content, mode, libver=_VERSION)
        self._data: dict[str, h5py.Dataset] = {}  # kept open: a lookup takes as long as a write
        self._sums: dict[str, checksums.Blocks] = {}
        self._rows = 0

    @classmethod
    def create(cls, path: Path, facts: Facts, *, rows: int, force: bool = False) -> RunFile:
        """Create the file of a run described by `info`; it appears under its name with the first commit."""
        claim(path, force)
        part = path.with_name(f".{path.name}.part")
        descriptor = opened(path, part, os.O_RDWR | os.O_CREAT | _NO_LINK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError("its temporary path is not a regular file")
            os.ftruncate(descriptor, 0)
            file = cls(path, part, descriptor, "w")
            file._lay_out(facts, rows)
        except OSError as error:
            os.close(descriptor)
            raise InputError(f"cannot write the result file '{path}': {reason(error)}") from None
        return file

    @classmethod
    def reopen(cls, path: Path, rows: int, step: int) -> RunFile:
        """Open the file of a run at a checkpoint, to continue after `rows` rows."""
        descriptor = opened(path, path, os.O_RDWR)
        try:
            atomic.repair(descriptor)
            file = cls(path, None, descriptor, "r+")
            inspection.inspect(file._file, os.fstat(descriptor).st_size)
            group = file._file["checkpoint"]
            if group["recorder.step" if "recorder.step" in group else "step"][()] != step:
                raise OSError("another run has changed it in the meantime")
            file._file.attrs["format"] = FORMAT
            file._file.attrs.pop(ACCURACY, None)  # it refers to the run before the continuation
            file._data = {name: file._file[name] for name in dimensions() if name in file._file}
            file._rows = rows
            for name in file._data:  # before any change, from the committed rows
                file._sums[name] = checksums.taken_up(file._file, name, rows)
            for data in file._data.values():
                data.resize(rows, axis=0)
        except (OSError, RuntimeError, KeyError, ValueError) as error:
            os.close(descriptor)
            raise InputError(f"cannot resume the result file '{path}': {reason(error)}") from None
        return file

    def _lay_out(self, facts: Facts, expected: int) -> None:
        if len(facts.coordinates) > _MANY:
            stage("drawing the scene")
        labels = {"coordinate": facts.coordinates, "constraint": facts.constraint_names}
        if facts.algebraic:
            labels["algebraic"] = facts.algebraic
        scales = {}
        for axis, names in labels.items():
            scales[axis] = self._file.create_dataset(axis, data=np.array(names, dtype=h5py.string_dtype()))
            scales[axis].make_scale(axis)
        if facts.scene:  # stored once and compressed: it may be large, and it is constant
            text = np.frombuffer(json.dumps(facts.scene).encode(), dtype=np.uint8)
            # in a separate group: netCDF readers require dimension names for all datasets in the root group
            self._file.create_dataset("scene/text", data=text, compression="gzip", compression_opts=4)
        for name in facts.stored:
            axes = dimensions()[name]
            rest = tuple(len(labels[axis]) for axis in axes[1:])
            few, many = (max(1, size // max(1, int(np.prod(rest)))) for size in _CHUNKS)
            chunks = (min(max(few, expected), many), *(max(1, size) for size in rest))
            limits = (None, *(size or None for size in rest))  # HDF5 cannot chunk a fixed axis of length zero
            # uncompressed rows are written directly; compressed rows need the chunk cache
            how: dict[str, Any] = {"rdcc_nbytes": 1, "fill_time": "never"}
            if facts.compress:
                how = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
            if name in _MOSTLY:  # fill value of unwritten entries
                how |= {"fillvalue": _MOSTLY[name](facts), "fill_time": "alloc"}
            kind = np.int64 if name == "newton_iterations" else np.float64
            data = self._file.create_dataset(name, (0, *rest), dtype=kind, maxshape=limits, chunks=chunks, **how)
            self._data[name] = data
            self._sums[name] = checksums.Blocks(chunks[0])
            data.attrs["long_name"] = VARIABLES[name].words
            if VARIABLES[name].unit:
                data.attrs["units"] = VARIABLES[name].unit
            if name == "t":
                data.make_scale("t")
                scales["t"] = data
        for name, data in self._data.items():
            if name != "t":
                for i, axis in enumerate(dimensions()[name]):
                    data.dims[i].attach_scale(scales[axis])

    # -- growing ------------------------------------------------------------------------------------------------------
    def append(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Append rows to every variable."""
        with self._writing():
            for name, data in self._data.items():
                usual = data.fillvalue if name in _MOSTLY else None
                rows = np.ascontiguousarray(arrays[name])
                if usual == 0:
                    rows = rows + 0.0  # replaces -0.0 by the fill value 0.0
                _append(data.id, self._rows, rows, usual)
                self._sums[name].add(rows)
            self._rows += len(arrays["t"])
            if self._content.failure is not None:
                raise self._content.failure

    def commit(self, record: Record) -> None:
        """Commit all rows appended so far, together with the checkpoint."""
        with self._writing():
            self._write_record(record)
            self._file.flush()
            self._content.commit()
            self._appear()

    def finish(self, record: Record) -> None:
        """Make the last commit of a run, and write status and metadata as attributes."""
        with self._writing():
            self._write_record(record)
            self._write_attributes(record)
            self._file.close()
            self._content.commit()
            self._appear()
        self.close()

    def close(self) -> None:
        """Close the file in the state of its last commit."""
        if self._descriptor >= 0:
            self._file.close()
            os.close(self._descriptor)
            self._descriptor = -1

    def discard(self) -> None:
        """Close and remove a file that has not been committed yet."""
        self.close()
        if self._part is not None:
            self._part.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError) as error:
            self.close()
            if self._part is not None:
                self._part.unlink(missing_ok=True)
                raise InputError(f"cannot write the result file '{self.path}': {reason(error)}") from None
            raise WriteError(
                f"the result file '{self.path}' could not be written any further: {reason(error)}. "
                "Its committed contents are safe; remove the cause and continue with --resume"
            ) from None

    def _appear(self) -> None:
        if self._part is not None:
            self._part.replace(self.path)
            self._part = None
            _bring_to_disk(self.path.parent)

    # -- metadata -----------------------------------------------------------------------------------------------------
    def _write_record(self, record: Record) -> None:
        group = self._file.require_group("checkpoint")
        arrays = as_arrays(record.checkpoint)
        for name in [name for name in group if name not in arrays and name != "record"]:
            del group[name]
        for name, array in arrays.items():
            _put(group, name, array)
        sums = self._file.require_group(checksums.GROUP)
        for name, blocks in self._sums.items():
            blocks.write(sums, name)
        content = {
            "rows": self._rows,
            "checksum": checksum(arrays),
            "facts": _plain(record.facts),
            **{key: dataclasses.asdict(getattr(record, key)) for key in ("summary", "statistics")},
            "status": record.status,
            "message": record.message,
            "events": record.events,
        }
        text = np.frombuffer(checksums.with_checksum(json.dumps(content)), dtype=np.uint8)
        if "record" not in group or group["record"].shape[0] < len(text):
            room = np.full(len(text) + 2048, ord(" "), dtype=np.uint8)  # reserve for small changes of the length
            group.pop("record", None)
            group["record"] = room
        if "format" not in self._file.attrs:
            self._write_attributes(record)
        group["record"][:] = np.pad(text, (0, group["record"].shape[0] - len(text)), constant_values=ord(" "))

    def _write_attributes(self, record: Record) -> None:
        for name, value in attributes(record).items():
            if name not in self._file.attrs or not np.array_equal(self._file.attrs[name], value):
                self._file.attrs[name] = value


def note_accuracy(path: Path, estimate: Mapping[str, Any]) -> None:
    """Write the error estimate of a run to its file, atomically."""
    try:
        descriptor = opened(path, path, os.O_RDWR | _NO_LINK)
        try:
            atomic.repair(descriptor)
            content = atomic.AtomicFile(descriptor)
            with h5py.File(content, "r+", libver=_VERSION) as file:
                inspection.inspect(file, os.fstat(descriptor).st_size)
                file.attrs[ACCURACY] = json.dumps(estimate)
            content.commit()
        finally:
            os.close(descriptor)
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise WriteError(f"the accuracy of the run could not be added to '{path}': {reason(error)}") from None


def attributes(record: Record) -> dict[str, Any]:
    """Return the metadata of a run as HDF5 attributes, for general readers."""
    facts = record.facts
    title = f"{facts.problem or 'user-defined system'}, simulated with {facts.scheme}"
    return {
        "format": FORMAT,
        "title": title,
        "status": record.status,
        "message": record.message,
        **{name: getattr(facts, name) for name in ("scheme", "h", "t0", "t_end", "every", "tier")},
        "problem": facts.problem or "",
        "parameters": json.dumps(facts.parameters),
        "bodies": json.dumps(facts.bodies),
        **facts.made,
        "facts": json.dumps(_plain(facts)),
        "summary": json.dumps(dataclasses.asdict(record.summary)),
        "statistics": json.dumps(dataclasses.asdict(record.statistics)),
    }


def _plain(facts: Facts) -> dict[str, Any]:
    """Return the run metadata without the scene, which is stored separately."""
    return {f.name: getattr(facts, f.name) for f in dataclasses.fields(facts) if f.name != "scene"}


def checksum(arrays: Mapping[str, np.ndarray]) -> int:
    """Return the CRC-32 checksum of named arrays, such as a checkpoint."""
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).tobytes(), zlib.crc32(name.encode(), total))
    return total


def _append(data: h5py.h5d.DatasetID, old: int, rows: np.ndarray, usual: float | None) -> None:
    """Append rows to a dataset by the low-level API; rows equal to `fill_value` are not written."""
    data.set_extent((old + len(rows), *rows.shape[1:]))
    if usual is not None:
        first, end = 0, 0
        if not (rows == usual).all():
            unusual = np.flatnonzero(rows != usual)
            first, end = int(unusual[0]), int(unusual[-1]) + 1
        old, rows = old + first, rows[first:end]
    if rows.size:
        place = data.get_space()
        place.select_hyperslab((old, *(0,) * (rows.ndim - 1)), rows.shape)
        data.write(h5py.h5s.create_simple(rows.shape), place, rows)


def _put(group: h5py.Group, name: str, array: np.ndarray) -> None:
    """Overwrite a small array in place, or replace it if its shape or dtype differs."""
    if name in group and (group[name].shape != array.shape or group[name].dtype != array.dtype):
        del group[name]
    if name not in group:
        group[name] = array
    elif array.size:
        group[name][...] = array


# -- paths and locks --------------------------------------------------------------------------------------------------
def claim(path: Path, force: bool) -> None:
    """Raise `InputError` unless a result may be written to a path."""
    try:
        there = os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode)
        folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError) as error:  # name too long, or with a null byte
        raise InputError(f"cannot write the result file '{path}': {reason(error)}") from None
    if folder and not path.is_symlink():
        raise InputError(f"cannot write the result file '{path}': it is a folder")
    if there:
        raise InputError(f"cannot write the result file '{path}': it is a link, a device or a pipe, and not a file")
    if exists:
        if not force:
            raise InputError(f"the file '{path}' exists already: choose another name, or replace it with force")
        descriptor = opened(path, path, os.O_RDWR | _NO_LINK)  # fails if another process writes to it
        try:
            if not written_by_livens(descriptor):
                raise InputError(
                    f"the file '{path}' was not written by livens, or is damaged, and is not replaced: "
                    "choose another name, or remove it yourself"
                )
        finally:
            os.close(descriptor)
    if not path.parent.is_dir():
        raise InputError(f"cannot write the result file '{path}': the folder '{path.parent}' does not exist")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write the result file '{path}': no permission to write in '{path.parent}'")


def written_by_livens(descriptor: int) -> bool:
    """Return True if an open file is a result or an ensemble file of any version."""
    journal = atomic.pending(descriptor)
    try:
        with h5py.File(atomic.AtomicFile(descriptor, journal[0] if journal else ()), "r") as file:
            return (inspection.format_of(file) or "").startswith(("livens-run-", "livens-ensemble-"))
    except (OSError, RuntimeError, KeyError, TypeError, ValueError):
        return False


def opened(path: Path, actual: Path, flags: int) -> int:
    """Open a file exclusively and return its descriptor. `path` is the name used in messages."""
    try:
        descriptor = os.open(actual, flags, 0o666)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write the result file '{path}': {reason(error)}") from None
    if not locked(descriptor) or not _still_there(actual, descriptor):
        os.close(descriptor)
        raise InputError(f"the result file '{path}' is in use by another run, or open in another program")
    return descriptor


def locked(descriptor: int) -> bool:
    """Lock a file exclusively, compatible with HDF5; return False if another process has locked it."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # file system without locks
    return True


def _still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _bring_to_disk(folder: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def reason(error: BaseException) -> str:
    """Return the text of a system error without error numbers and HDF5 internals."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words[:1].lower() + words[1:]
