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

from livens.engine.ensemble.lane_run import ARRAYS, EnsembleArrays
from livens.errors import InputError, WriteError
from livens.results.ensemble import Ensemble
from livens.results.storage import ensemble_zarr, zarr_store
from livens.results.storage.atomic import replace_atomically, write_atomically
from livens.results.storage.ensemble_zarr import PRIVATE_FOLDER
from livens.results.storage.zarr_store import ZarrArray

if TYPE_CHECKING:
    from livens.run.ensemble.execution import EnsembleJob

#: File names in the folder of an unfinished ensemble: metadata and blocks, including partially written ones.
_BLOCK_FILE = re.compile(r"about\.json|\d{6,}\.npz|\.(about\.json|\d{6,}\.npz)\.\d+(\.part)?")
#: Largest header of an array in a block file, in bytes.
_MAX_HEADER_BYTES = 4096


def check_writable(out: Path, force: bool) -> None:
    """Raise an error if the output file of an ensemble cannot be written."""
    if out.suffix == ".zarr":
        ensemble_zarr.check_writable(out, force)
        return
    from livens.results.storage import hdf5_writer  # slow import, needed by few ensembles

    hdf5_writer.check_writable(out, force)


def blocks_folder(out: Path) -> Path:
    """Return the folder of the finished blocks of an unfinished ensemble."""
    return out.with_name(f"{out.name}.parts")


def _is_block_folder(folder: Path) -> bool:
    """Return True if a folder contains only block files of an ensemble and its unfinished Zarr store."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    private_folders = [folder / PRIVATE_FOLDER] if os.path.lexists(folder / PRIVATE_FOLDER) else []
    if private_folders and not zarr_store.has_only_store_files(folder, allowed=(PRIVATE_FOLDER,)):
        return False
    return all(
        directory.is_dir()
        and not directory.is_symlink()
        and all(_BLOCK_FILE.fullmatch(file.name) and stat.S_ISREG(file.lstat().st_mode) for file in directory.iterdir())
        for directory in private_folders or [folder]
    )


def remove_blocks(folder: Path) -> None:
    """Remove the folder of an unfinished ensemble if it contains only files of this module."""
    if os.path.lexists(folder) and _is_block_folder(folder):
        shutil.rmtree(folder)


def open_block_store(out: Path, job: EnsembleJob, force: bool) -> BlockStore:
    """Return the block store of an ensemble with this output file."""
    return (ZarrBlockStore if out.suffix == ".zarr" else BlockStore)(out, job, force)


def finalize(ensemble: Ensemble, out: Path, job: EnsembleJob | None, force: bool) -> None:
    """Write the output file of an ensemble whose blocks are all finished, and remove the block folder."""
    folder = blocks_folder(out)
    if out.suffix != ".zarr" or job is None:
        ensemble.save(out, force=force)
    else:
        missing = np.setdiff1d(np.arange(job.columns.n_members), job.columns.members)
        try:
            member_order = np.concatenate([job.columns.members, missing]).astype(np.int64)
            ensemble_zarr.write_remaining(ensemble, folder, member_order, existing=job.columns.variables)
            ensemble_zarr.publish(folder, out, force=force)
            shutil.rmtree(out / PRIVATE_FOLDER)  # blocks remain readable until the store has its final path
        except OSError as error:
            raise WriteError(f"cannot write the ensemble '{out}': {error.strerror or error}") from None
    remove_blocks(folder)


class BlockStore:
    """Finished blocks of an ensemble in a folder next to its output file."""

    #: Arrays of a block; the rest of an outcome is stored as JSON.
    arrays: tuple[str, ...] = ARRAYS

    def __init__(self, out: Path, job: EnsembleJob, force: bool) -> None:
        self.folder, self._job = blocks_folder(out), job
        fingerprint = self._fingerprint(job)
        self.private_folder = self._private_folder_of(self.folder)
        metadata_path = self.private_folder / "about.json"
        try:
            if os.path.lexists(self.folder) and not _is_block_folder(self.folder):
                raise InputError(
                    f"'{self.folder}', the folder for unfinished ensembles, contains other files: choose another name"
                )
            if self.folder.exists() and force and self._stored_fingerprint(metadata_path) != fingerprint:
                remove_blocks(self.folder)
            self.private_folder.mkdir(parents=True, exist_ok=True)
            stored = self._stored_fingerprint(metadata_path)
            if stored is None:
                self._initialise(job)
                write_atomically(metadata_path, json.dumps({"content": fingerprint}).encode())
            elif stored != fingerprint:
                raise InputError(
                    f"'{self.folder}' contains another unfinished ensemble: choose another name, or pass force=True"
                )
        except OSError as error:
            raise InputError(f"cannot write the ensemble '{out}': {error.strerror or error}") from None

    @staticmethod
    def _private_folder_of(folder: Path) -> Path:
        return folder

    def _initialise(self, job: EnsembleJob) -> None:
        """Initialise an empty store; nothing to do for block files."""

    @staticmethod
    def _stored_fingerprint(metadata_path: Path) -> str | None:
        try:
            return str(json.loads(metadata_path.read_text())["content"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @staticmethod
    def _fingerprint(job: EnsembleJob) -> str:
        """Return the fingerprint of all inputs of the ensemble."""
        hasher = hashlib.sha256(job.fingerprint.encode())
        s = job.schedule
        hasher.update(
            repr(
                (s.h, s.t0, s.n_steps, s.final_h, s.stride, s.stored.tolist(), job.bins, job.columns.n_members)
            ).encode()
        )
        for array in (job.z, job.k, job.inputs.steps, job.inputs.entries, job.inputs.values):
            hasher.update(np.ascontiguousarray(array).tobytes())
        return hasher.hexdigest()

    def _path(self, index: int) -> Path:
        return self.private_folder / f"{index:06d}.npz"

    def load(self, index: int) -> EnsembleArrays | None:
        """Return a finished block, or None if it is missing or damaged."""
        block, path = self._job.blocks[index], self._path(index)
        shapes = self._job.stepper.shapes(block.stop - block.start, self._job.schedule, self._job.bins)
        max_sizes = {f"{name}.npy": _MAX_HEADER_BYTES + 8 * math.prod(shape) for name, shape in shapes.items()}
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                return None
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > max_sizes.get(
                        entry.filename, path.stat().st_size
                    ):
                        return None
            with np.load(path, allow_pickle=False) as file:
                metadata = json.loads(file["told"].tobytes())
                reasons = {int(member): str(reason) for member, reason in metadata["reasons"].items()}
                arrays = {name: file[name] for name in self.arrays} | self._load_states(index)
                if any(
                    arrays[name].shape != shape or arrays[name].dtype.kind not in "fi" for name, shape in shapes.items()
                ):
                    return None
                return EnsembleArrays(**arrays, failures=reasons, n_scalar_fallbacks=int(metadata["left"]))
        except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, MemoryError):
            return None
        except (zipfile.BadZipFile, zlib.error, struct.error):
            return None

    def save(self, index: int, outcome: EnsembleArrays) -> None:
        metadata = json.dumps({"reasons": outcome.failures, "left": outcome.n_scalar_fallbacks}).encode()
        arrays = {name: getattr(outcome, name) for name in self.arrays}
        path = self._path(index)
        try:
            with replace_atomically(path) as part, part.open("wb") as file:
                np.savez(file, told=np.frombuffer(metadata, dtype=np.uint8), **arrays)
        except OSError as error:
            raise WriteError(f"cannot write '{path}': {error.strerror or error}") from None

    def _load_states(self, index: int) -> dict[str, np.ndarray]:
        """Return arrays of a block that are stored outside its file."""
        return {}


class ZarrBlockStore(BlockStore):
    """Block store with states in a Zarr store: one chunk per block and variable; the block file is written last."""

    arrays = tuple(name for name in ARRAYS if name != "states")

    def __init__(self, out: Path, job: EnsembleJob, force: bool) -> None:
        self._variables = job.columns.variables
        super().__init__(out, job, force)

    @staticmethod
    def _private_folder_of(folder: Path) -> Path:
        return folder / PRIVATE_FOLDER

    def _initialise(self, job: EnsembleJob) -> None:
        zarr_store.create_group(self.folder)
        size = job.blocks[0].stop - job.blocks[0].start
        for name, slice_ in self._variables.items():
            axes = ensemble_zarr.axes(name)
            row = (job.schedule.n_rows, slice_.stop - slice_.start)[: len(axes) - 1]
            ZarrArray.create(self.folder, name, (job.columns.n_members, *row), (size, *row), float, axes)

    def _load_states(self, index: int) -> dict[str, np.ndarray]:
        block = self._job.blocks[index]  # the last chunk has space for members that cannot start
        size = block.stop - block.start
        chunks = [ZarrArray.open(self.folder, name).read_chunk(index)[:size] for name in self._variables]
        return {"states": np.concatenate([chunk if chunk.ndim == 3 else chunk[:, :, None] for chunk in chunks], axis=2)}

    def save(self, index: int, outcome: EnsembleArrays) -> None:
        try:
            for name, slice_ in self._variables.items():
                array, values = ZarrArray.open(self.folder, name), outcome.states[:, :, slice_]
                array.write_chunk(index, values if len(array.shape) == 3 else values[:, :, 0])
        except OSError as error:
            raise WriteError(f"cannot write '{self.folder}': {error.strerror or error}") from None
        super().save(index, outcome)
