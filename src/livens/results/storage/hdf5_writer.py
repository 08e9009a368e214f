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
from livens.expressions.result_variables import RESULT_VARIABLES, variable_dims
from livens.progress import report_progress
from livens.results.checkpoint import as_arrays
from livens.results.record import RunInfo, RunRecord
from livens.results.storage import checksums, hdf5_validation
from livens.results.storage import journal as atomic

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
_CONSTANT_VARIABLES: dict[str, Callable[[RunInfo], float]] = {  # same names as `CONSTANT_VARIABLES` of the validation
    "step_size": lambda info: info.h,
    "supplied_energy": lambda info: 0.0,
    "dissipated_energy": lambda info: 0.0,
}
#: Lower and upper bound of the number of entries per chunk; short runs use smaller chunks.
_CHUNK_ENTRIES = 1024, 16384
#: Number of coordinates above which the creation of the scene is reported as progress.
_LARGE_MODEL = 1000
#: Superblock version without a "file is open" flag: plain readers can open the file after a crash.
_VERSION = ("v108", "v108")


#: Links at the path of a file to be written are not followed.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class RunFile:
    """Result file that grows with its run. Appended rows become valid with the next `commit`."""

    def __init__(self, path: Path, part: Path | None, content: atomic.AtomicFile, mode: str) -> None:
        self.path = path
        self._part = part  # temporary name of the file until its first commit
        self._content = content
        self._file = h5py.File(self._content, mode, libver=_VERSION)
        self._is_closed = False
        self._data: dict[str, h5py.Dataset] = {}  # kept open: a lookup takes as long as a write
        self._sums: dict[str, checksums.BlockChecksums] = {}
        self._n_rows = 0

    @classmethod
    def create(cls, path: Path, info: RunInfo, *, rows: int, force: bool = False) -> RunFile:
        """Create the file of a run described by `info`; it appears under its name with the first commit."""
        check_writable(path, force)
        part = path.with_name(f".{path.name}.part")
        descriptor = open_exclusive(path, part, os.O_RDWR | os.O_CREAT | _NO_LINK)
        content: atomic.AtomicFile | None = None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError("its temporary path is not a regular file")
            os.ftruncate(descriptor, 0)
            content = atomic.AtomicFile(descriptor)
            file = cls(path, part, content, "w")
            file._create_datasets(info, rows)
        except BaseException as error:  # Ctrl-C as well: the file would be locked until the process ends
            _release(descriptor, content)
            if isinstance(error, OSError):
                raise InputError(f"cannot write the result file '{path}': {os_error_text(error)}") from None
            raise
        return file

    @classmethod
    def reopen(cls, path: Path, rows: int, step: int) -> RunFile:
        """Open the file of a run at a checkpoint, to continue after `rows` rows."""
        descriptor = open_exclusive(path, path, os.O_RDWR)
        content: atomic.AtomicFile | None = None
        try:
            atomic.repair(descriptor)
            content = atomic.AtomicFile(descriptor)
            file = cls(path, None, content, "r+")
            hdf5_validation.validate(file._file, os.fstat(descriptor).st_size)
            group = file._file["checkpoint"]
            if group["recorder.step" if "recorder.step" in group else "step"][()] != step:
                raise OSError("another run has changed it in the meantime")
            file._file.attrs["format"] = FORMAT
            file._file.attrs.pop(ACCURACY, None)  # it refers to the run before the continuation
            file._data = {name: file._file[name] for name in variable_dims() if name in file._file}
            file._n_rows = rows
            for name in file._data:  # before any change, from the committed rows
                file._sums[name] = checksums.rebuild(file._file, name, rows)
            for data in file._data.values():
                data.resize(rows, axis=0)
        except BaseException as error:
            _release(descriptor, content)
            if isinstance(error, (OSError, RuntimeError, KeyError, ValueError)):
                raise InputError(f"cannot resume the result file '{path}': {os_error_text(error)}") from None
            raise
        return file

    def _create_datasets(self, info: RunInfo, expected: int) -> None:
        if len(info.coordinates) > _LARGE_MODEL:
            report_progress("drawing the scene")
        labels = {"coordinate": info.coordinates, "constraint": info.constraint_names}
        if info.algebraic:
            labels["algebraic"] = info.algebraic
        scales = {}
        for axis, names in labels.items():
            scales[axis] = self._file.create_dataset(axis, data=np.array(names, dtype=h5py.string_dtype()))
            scales[axis].make_scale(axis)
        if info.scene:  # stored once and compressed: it may be large, and it is constant
            text = np.frombuffer(json.dumps(info.scene).encode(), dtype=np.uint8)
            # in a separate group: netCDF readers require dimension names for all datasets in the root group
            self._file.create_dataset("scene/text", data=text, compression="gzip", compression_opts=4)
        for name in info.stored:
            axes = variable_dims()[name]
            row_shape = tuple(len(labels[axis]) for axis in axes[1:])
            min_rows, max_rows = (max(1, size // max(1, int(np.prod(row_shape)))) for size in _CHUNK_ENTRIES)
            chunks = (min(max(min_rows, expected), max_rows), *(max(1, size) for size in row_shape))
            limits = (None, *(size or None for size in row_shape))  # HDF5 cannot chunk a fixed axis of length zero
            # uncompressed rows are written directly; compressed rows need the chunk cache
            options: dict[str, Any] = {"rdcc_nbytes": 1, "fill_time": "never"}
            if info.compress:
                options = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
            if name in _CONSTANT_VARIABLES:  # fill value of unwritten entries
                options |= {"fillvalue": _CONSTANT_VARIABLES[name](info), "fill_time": "alloc"}
            dtype = np.int64 if name == "newton_iterations" else np.float64
            data = self._file.create_dataset(
                name, (0, *row_shape), dtype=dtype, maxshape=limits, chunks=chunks, **options
            )
            self._data[name] = data
            self._sums[name] = checksums.BlockChecksums(chunks[0])
            data.attrs["long_name"] = RESULT_VARIABLES[name].description
            if RESULT_VARIABLES[name].unit:
                data.attrs["units"] = RESULT_VARIABLES[name].unit
            if name == "t":
                data.make_scale("t")
                scales["t"] = data
        for name, data in self._data.items():
            if name != "t":
                for i, axis in enumerate(variable_dims()[name]):
                    data.dims[i].attach_scale(scales[axis])

    # -- growing ------------------------------------------------------------------------------------------------------
    def append(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Append rows to every variable."""
        with self._writing():
            for name, data in self._data.items():
                fill_value = data.fillvalue if name in _CONSTANT_VARIABLES else None
                rows = np.ascontiguousarray(arrays[name])
                if fill_value == 0:
                    rows = rows + 0.0  # replaces -0.0 by the fill value 0.0
                _append(data.id, self._n_rows, rows, fill_value)
                self._sums[name].add(rows)
            self._n_rows += len(arrays["t"])
            if self._content.failure is not None:
                raise self._content.failure

    def commit(self, record: RunRecord) -> None:
        """Commit all rows appended so far, together with the checkpoint."""
        with self._writing():
            self._write_record(record)
            self._file.flush()
            self._content.commit()
            self._publish()

    def finish(self, record: RunRecord) -> None:
        """Make the last commit of a run, and write status and metadata as attributes."""
        with self._writing():
            self._write_record(record)
            self._write_attributes(record)
            self._file.close()
            self._content.commit()
            self._publish()
        self.close()

    def close(self) -> None:
        """Close the file in the state of its last commit."""
        if not self._is_closed:
            self._file.close()
            self._content.close()
            self._is_closed = True

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
                raise InputError(f"cannot write the result file '{self.path}': {os_error_text(error)}") from None
            raise WriteError(
                f"the result file '{self.path}' could not be written any further: {os_error_text(error)}. "
                "Its committed contents are safe; remove the cause and continue with --resume"
            ) from None

    def _publish(self) -> None:
        if self._part is not None:
            self._part.replace(self.path)
            self._part = None
            _fsync_dir(self.path.parent)

    # -- metadata -----------------------------------------------------------------------------------------------------
    def _write_record(self, record: RunRecord) -> None:
        group = self._file.require_group("checkpoint")
        arrays = as_arrays(record.checkpoint)
        for name in [name for name in group if name not in arrays and name != "record"]:
            del group[name]
        for name, array in arrays.items():
            _overwrite(group, name, array)
        sums = self._file.require_group(checksums.GROUP)
        for name, blocks in self._sums.items():
            blocks.write(sums, name)
        content = {
            "rows": self._n_rows,
            "checksum": checksum(arrays),
            "facts": _info_without_scene(record.info),
            **{key: dataclasses.asdict(getattr(record, key)) for key in ("summary", "statistics")},
            "status": record.status,
            "message": record.message,
            "events": record.events,
        }
        text = np.frombuffer(checksums.add_checksum(json.dumps(content)), dtype=np.uint8)
        if "record" not in group or group["record"].shape[0] < len(text):
            padded = np.full(len(text) + 2048, ord(" "), dtype=np.uint8)  # reserve for small changes of the length
            group.pop("record", None)
            group["record"] = padded
        if "format" not in self._file.attrs:
            self._write_attributes(record)
        group["record"][:] = np.pad(text, (0, group["record"].shape[0] - len(text)), constant_values=ord(" "))

    def _write_attributes(self, record: RunRecord) -> None:
        for name, value in attributes(record).items():
            if name not in self._file.attrs or not np.array_equal(self._file.attrs[name], value):
                self._file.attrs[name] = value


def write_accuracy(path: Path, estimate: Mapping[str, object]) -> None:
    """Write the error estimate of a run to its file, atomically."""
    try:
        descriptor = open_exclusive(path, path, os.O_RDWR | _NO_LINK)
        try:
            atomic.repair(descriptor)
            content = atomic.AtomicFile(descriptor)
            with h5py.File(content, "r+", libver=_VERSION) as file:
                hdf5_validation.validate(file, os.fstat(descriptor).st_size)
                file.attrs[ACCURACY] = json.dumps(estimate)
            content.commit()
        finally:
            os.close(descriptor)
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise WriteError(f"the accuracy of the run could not be added to '{path}': {os_error_text(error)}") from None


def attributes(record: RunRecord) -> dict[str, float | str]:
    """Return the metadata of a run as HDF5 attributes, for general readers."""
    info = record.info
    title = f"{info.title}, simulated with {info.scheme}"
    return {
        "format": FORMAT,
        "title": title,
        "status": record.status,
        "message": record.message,
        **{name: getattr(info, name) for name in ("scheme", "h", "t0", "t_end", "every", "tier")},
        "problem": info.problem or "",
        "parameters": json.dumps(info.parameters),
        "bodies": json.dumps(info.bodies),
        **info.made,
        "facts": json.dumps(_info_without_scene(info)),
        "summary": json.dumps(dataclasses.asdict(record.summary)),
        "statistics": json.dumps(dataclasses.asdict(record.statistics)),
    }


def _info_without_scene(info: RunInfo) -> dict[str, Any]:
    """Return the run metadata without the scene, which is stored separately."""
    return {f.name: getattr(info, f.name) for f in dataclasses.fields(info) if f.name != "scene"}


def checksum(arrays: Mapping[str, np.ndarray]) -> int:
    """Return the CRC-32 checksum of named arrays, such as a checkpoint."""
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).tobytes(), zlib.crc32(name.encode(), total))
    return total


def _append(data: h5py.h5d.DatasetID, n_rows: int, rows: np.ndarray, fill_value: float | None) -> None:
    """Append rows to a dataset by the low-level API; rows equal to `fill_value` are not written."""
    data.set_extent((n_rows + len(rows), *rows.shape[1:]))
    if fill_value is not None:
        start, stop = 0, 0
        if not (rows == fill_value).all():
            nonconstant = np.flatnonzero(rows != fill_value)
            start, stop = int(nonconstant[0]), int(nonconstant[-1]) + 1
        n_rows, rows = n_rows + start, rows[start:stop]
    if rows.size:
        dataspace = data.get_space()
        dataspace.select_hyperslab((n_rows, *(0,) * (rows.ndim - 1)), rows.shape)
        data.write(h5py.h5s.create_simple(rows.shape), dataspace, rows)


def _overwrite(group: h5py.Group, name: str, array: np.ndarray) -> None:
    """Overwrite a small array in place, or replace it if its shape or dtype differs."""
    if name in group and (group[name].shape != array.shape or group[name].dtype != array.dtype):
        del group[name]
    if name not in group:
        group[name] = array
    elif array.size:
        group[name][...] = array


# -- paths and locks --------------------------------------------------------------------------------------------------
def check_writable(path: Path, force: bool) -> None:
    """Raise `InputError` unless a result may be written to a path."""
    try:
        is_special = os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode)
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError) as error:  # name too long, or with a null byte
        raise InputError(f"cannot write the result file '{path}': {os_error_text(error)}") from None
    if is_folder and not path.is_symlink():
        raise InputError(f"cannot write the result file '{path}': it is a folder")
    if is_special:
        raise InputError(f"cannot write the result file '{path}': it is a link, a device or a pipe, and not a file")
    if exists:
        if not force:
            raise InputError(f"the file '{path}' exists already: choose another name, or replace it with force")
        descriptor = open_exclusive(path, path, os.O_RDWR | _NO_LINK)  # fails if another process writes to it
        try:
            if not is_livens_file(descriptor):
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


def _release(descriptor: int, content: atomic.AtomicFile | None) -> None:
    """Close a file that could not be opened by HDF5 or prepared; HDF5 may still access its content."""
    if content is None:
        os.close(descriptor)
    else:
        content.close()


def is_livens_file(descriptor: int) -> bool:
    """Return True if an open file is a result or an ensemble file of any version."""
    journal = atomic.pending(descriptor)
    try:
        with h5py.File(atomic.AtomicFile(descriptor, journal[0] if journal else ()), "r") as file:
            return (hdf5_validation.read_format(file) or "").startswith(("livens-run-", "livens-ensemble-"))
    except (OSError, RuntimeError, KeyError, TypeError, ValueError):
        return False


def open_exclusive(path: Path, actual: Path, flags: int) -> int:
    """Open a file exclusively and return its descriptor. `path` is the name used in messages."""
    try:
        descriptor = os.open(actual, flags, 0o666)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write the result file '{path}': {os_error_text(error)}") from None
    try:
        is_exclusive = try_lock(descriptor) and _is_same_file(actual, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    if not is_exclusive:
        os.close(descriptor)
        raise InputError(f"the result file '{path}' is in use by another run, or open in another program")
    return descriptor


def try_lock(descriptor: int) -> bool:
    """Lock a file exclusively, compatible with HDF5; return False if another process has locked it."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # file system without locks
    return True


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _fsync_dir(folder: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def os_error_text(error: BaseException) -> str:
    """Return the text of a system error without error numbers and HDF5 internals."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:]
