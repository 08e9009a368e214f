"""Crash-safe partial results of an ensemble: finished blocks are stored on disk until all blocks are finished.

The blocks are stored in a folder next to the output file. For a Zarr store, this folder is the unfinished store: states
are appended block by block, and the folder is renamed when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.batch import ARRAYS, Outcome
from livens.errors import InputError, WriteError
from livens.results import ensemble_store, zarr_store
from livens.results.ensemble import Ensemble
from livens.results.zarr_store import ZarrArray, write_atomically

if TYPE_CHECKING:
    from livens.run.blocks import Work

#: File names in the folder of an unfinished ensemble: metadata and blocks, including partially written ones.
_PART = re.compile(r"about\.json|\d{6,}\.npz|\.(about\.json|\d{6,}\.npz)\.\d+(\.part)?")
#: Largest header of an array in a block file, in bytes.
_HEAD = 4096
#: Folder of the private files inside an unfinished Zarr store.
_OWN = ".livens"


def claim(out: Path, force: bool) -> None:
    """Raise an error if the output file of an ensemble cannot be written."""
    if out.suffix == ".zarr":
        ensemble_store.claim(out, force)
        return
    from livens.results import hdf5_writer  # slow import, needed by few ensembles

    hdf5_writer.claim(out, force)


def parts_folder(out: Path) -> Path:
    """Return the folder of the finished blocks of an unfinished ensemble."""
    return out.with_name(f"{out.name}.parts")


def _only_parts(folder: Path) -> bool:
    """Return True if a folder contains only block files of an ensemble and its unfinished Zarr store."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    inside = [folder / _OWN] if os.path.lexists(folder / _OWN) else []
    if inside and not zarr_store.is_plain(folder, besides=(_OWN,)):
        return False
    return all(
        one.is_dir()
        and not one.is_symlink()
        and all(_PART.fullmatch(file.name) and stat.S_ISREG(file.lstat().st_mode) for file in one.iterdir())
        for one in inside or [folder]
    )


def remove_parts(folder: Path) -> None:
    """Remove the folder of an unfinished ensemble if it contains only files of this module."""
    if os.path.lexists(folder) and _only_parts(folder):
        shutil.rmtree(folder)


def parts_of(out: Path, work: Work, force: bool) -> Parts:
    """Return the block store of an ensemble with this output file."""
    return (StoreParts if out.suffix == ".zarr" else Parts)(out, work, force)


def finish(many: Ensemble, out: Path, work: Work | None, force: bool) -> None:
    """Write the output file of an ensemble whose blocks are all finished, and remove the block folder."""
    folder = parts_folder(out)
    if out.suffix != ".zarr" or work is None:
        many.save(out, force=force)
    else:
        missing = np.setdiff1d(np.arange(work.rows.count), work.rows.members)
        try:
            shutil.rmtree(folder / _OWN)
            rows = np.concatenate([work.rows.members, missing]).astype(np.int64)
            ensemble_store.complete(many, folder, rows, there=work.rows.variables)
            ensemble_store.put_in_place(folder, out, force=force)
        except OSError as error:
            raise WriteError(f"cannot write the ensemble '{out}': {error.strerror or error}") from None
    remove_parts(folder)


class Parts:
    """Finished blocks of an ensemble in a folder next to its output file."""

    #: Arrays of a block; the rest of an outcome is stored as JSON.
    arrays: tuple[str, ...] = ARRAYS

    def __init__(self, out: Path, work: Work, force: bool) -> None:
        self.folder, self._work = parts_folder(out), work
        content = self._content(work)
        self.own = self._inside(self.folder)
        about = self.own / "about.json"
        try:
            if os.path.lexists(self.folder) and not _only_parts(self.folder):
                raise InputError(
                    f"'{self.folder}', the folder for unfinished ensembles, contains other files: "
                    "choose another name"
                )
            if self.folder.exists() and force and self._told(about) != content:
                remove_parts(self.folder)
            self.own.mkdir(parents=True, exist_ok=True)
            known = self._told(about)
            if known is None:
                self._begin(work)
                write_atomically(about, json.dumps({"content": content}).encode())
            elif known != content:
                raise InputError(
                    f"'{self.folder}' contains another unfinished ensemble: choose another name, or pass force=True"
                )
        except OSError as error:
            raise InputError(f"cannot write the ensemble '{out}': {error.strerror or error}") from None

    @staticmethod
    def _inside(folder: Path) -> Path:
        return folder

    def _begin(self, work: Work) -> None:
        """Initialise an empty store; nothing to do for block files."""

    @staticmethod
    def _told(about: Path) -> str | None:
        try:
            return str(json.loads(about.read_text())["content"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @staticmethod
    def _content(work: Work) -> str:
        """Return the fingerprint of all inputs of the ensemble."""
        digest = hashlib.sha256(work.shipped().content.encode())
        s = work.schedule
        digest.update(
            repr((s.h, s.t0, s.steps, s.rest, s.every, s.columns.tolist(), work.bins, work.rows.count)).encode()
        )
        for array in (work.z, work.k):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _path(self, number: int) -> Path:
        return self.own / f"{number:06d}.npz"

    def load(self, number: int) -> Outcome | None:
        """Return a finished block, or None if it is missing or damaged."""
        block, path = self._work.blocks[number], self._path(number)
        shapes = self._work.batch.shapes(block.stop - block.start, self._work.schedule, self._work.bins)
        largest = {f"{name}.npy": _HEAD + 8 * math.prod(shape) for name, shape in shapes.items()}
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                return None
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > largest.get(
                        entry.filename, path.stat().st_size
                    ):
                        return None
            with np.load(path, allow_pickle=False) as file:
                told = json.loads(file["told"].tobytes())
                reasons = {int(member): str(reason) for member, reason in told["reasons"].items()}
                arrays = {name: file[name] for name in self.arrays} | self._more(number)
                if any(
                    arrays[name].shape != shape or arrays[name].dtype.kind not in "fi" for name, shape in shapes.items()
                ):
                    return None
                return Outcome(**arrays, reasons=reasons, left=int(told["left"]))
        except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, MemoryError):
            return None
        except (zipfile.BadZipFile, zlib.error, struct.error):
            return None

    def save(self, number: int, outcome: Outcome) -> None:
        told = json.dumps({"reasons": outcome.reasons, "left": outcome.left}).encode()
        arrays = {name: getattr(outcome, name) for name in self.arrays}
        path = self._path(number)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with part.open("wb") as file:
                np.savez(file, told=np.frombuffer(told, dtype=np.uint8), **arrays)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise WriteError(f"cannot write '{path}': {error.strerror or error}") from None

    def _more(self, number: int) -> dict[str, np.ndarray]:
        """Return arrays of a block that are stored outside its file."""
        return {}


class StoreParts(Parts):
    """Block store with states in a Zarr store: one chunk per block and variable; the block file is written last."""

    arrays = tuple(name for name in ARRAYS if name != "states")

    def __init__(self, out: Path, work: Work, force: bool) -> None:
        self._variables = work.rows.variables
        super().__init__(out, work, force)

    @staticmethod
    def _inside(folder: Path) -> Path:
        return folder / _OWN

    def _begin(self, work: Work) -> None:
        zarr_store.begin(self.folder)
        size = work.blocks[0].stop - work.blocks[0].start
        for name, place in self._variables.items():
            axes = ensemble_store.axes_of(name)
            row = (work.schedule.rows, place.stop - place.start)[: len(axes) - 1]
            ZarrArray.create(self.folder, name, (work.rows.count, *row), (size, *row), float, axes)

    def _more(self, number: int) -> dict[str, np.ndarray]:
        parts = [ZarrArray.open(self.folder, name).read_chunk(number) for name in self._variables]
        return {"states": np.concatenate([one if one.ndim == 3 else one[:, :, None] for one in parts], axis=2)}

    def save(self, number: int, outcome: Outcome) -> None:
        try:
            for name, place in self._variables.items():
                array, values = ZarrArray.open(self.folder, name), outcome.states[:, :, place]
                array.write_chunk(number, values if len(array.shape) == 3 else values[:, :, 0])
        except OSError as error:
            raise WriteError(f"cannot write '{self.folder}': {error.strerror or error}") from None
        super().save(number, outcome)
