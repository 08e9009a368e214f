"""Blocks of an ensemble that are done, kept on disk until all are: a process that is killed loses what it was at.

They stand in a folder beside the file that the ensemble is going to be. If that is a Zarr store, the folder is this
store in the making: states are added to it block by block, and it gets its name when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
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

#: In the folder of a store in the making, what is not part of it.
_OWN = ".livens"


def exists(out: Path) -> bool:
    """Whether a file is there, if it can be at all."""
    try:
        return out.exists()
    except OSError as error:
        raise InputError(f"cannot write the ensemble '{out}': {error.strerror}") from None


def parts_folder(out: Path) -> Path:
    """Where the blocks of an ensemble are kept until all are done."""
    return out.with_name(f"{out.name}.parts")


def parts_of(out: Path, work: Work, force: bool) -> Parts:
    """What is kept of an ensemble on its way to this file."""
    return (StoreParts if out.suffix == ".zarr" else Parts)(out, work, force)


def finish(many: Ensemble, out: Path, work: Work | None, force: bool) -> None:
    """Make one file of an ensemble of which all blocks are done, and leave nothing else."""
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
    shutil.rmtree(folder, ignore_errors=True)


class Parts:
    """The blocks of an ensemble that are done, in a folder beside the file it is going to be."""

    #: What a block is made of; the rest of an outcome is told in words.
    arrays: tuple[str, ...] = ARRAYS

    def __init__(self, out: Path, work: Work, force: bool) -> None:
        self.folder = parts_folder(out)
        content = self._content(work)
        self.own = self._inside(self.folder)
        about = self.own / "about.json"
        try:
            if self.folder.exists() and force and self._told(about) != content:
                shutil.rmtree(self.folder)
            self.own.mkdir(parents=True, exist_ok=True)
            known = self._told(about)
            if known is None:
                self._begin(work)
                write_atomically(about, json.dumps({"content": content}).encode())
            elif known != content:
                raise InputError(
                    f"'{self.folder}' has the beginning of another ensemble: choose another name, or pass force=True"
                )
        except OSError as error:
            raise InputError(f"cannot write the ensemble '{out}': {error.strerror or error}") from None

    @staticmethod
    def _inside(folder: Path) -> Path:
        return folder

    def _begin(self, work: Work) -> None:
        """Nothing has been kept yet."""

    @staticmethod
    def _told(about: Path) -> str | None:
        try:
            return str(json.loads(about.read_text())["content"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @staticmethod
    def _content(work: Work) -> str:
        """Everything that the outcome depends on."""
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
        """A block, if it is there; one that was damaged is computed again."""
        try:
            with np.load(self._path(number), allow_pickle=False) as file:
                told = json.loads(file["told"].tobytes())
                reasons = {int(member): str(reason) for member, reason in told["reasons"].items()}
                arrays = {name: file[name] for name in self.arrays} | self._more(number)
                return Outcome(**arrays, reasons=reasons, left=int(told["left"]))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
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
        """What of a block stands elsewhere."""
        return {}


class StoreParts(Parts):
    """The same, with states in a Zarr store: a block is a chunk of every variable, and is there with its last file."""

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
