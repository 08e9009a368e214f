"""Members in blocks: one after the other here, or on the workers of a cluster; kept on disk as they are done.

What is done of an ensemble with a file stands in a folder beside it, one part for each block, until all are there: a
process that is killed loses the blocks it was at, and the same call goes on with the others.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from livens.engine.batch import ARRAYS, Batch, Bins, Outcome, Schedule
from livens.engine.shipped import Shipped, run_block
from livens.errors import InputError, WriteError

#: A block takes about this many steps of members: some seconds.
_STEPS = 100_000_000
#: And has at most this many members.
_MOST = 65_536
#: What stands in the folder of an ensemble that is not done: what it is, and blocks, also half written ones.
_PART = re.compile(r"about\.json|\d{6,}\.npz|\.(about\.json|\d{6,}\.npz)\.\d+")
#: What may stand before an array in the file of a block, in bytes.
_HEAD = 4096
#: A block that fails on a worker is tried again so often; that of a worker that is lost is tried again anyway.
_RETRIES = 2


@dataclass(frozen=True)
class Work:
    """Members that are to be taken to their ends, sorted, and how."""

    batch: Batch
    z: np.ndarray
    k: np.ndarray
    schedule: Schedule
    bins: tuple[Bins, ...]
    threads: int

    @property
    def blocks(self) -> list[slice]:
        """What is done at once: whole groups of lanes, so that no bit depends on where blocks end."""
        width = self.batch.width
        size = int(min(max(_STEPS // max(1, self.schedule.steps), width), _MOST)) // width * width
        return [slice(first, min(first + size, len(self.z))) for first in range(0, len(self.z), size)]

    def shipped(self) -> Shipped:
        batch = self.batch
        return Shipped.of(batch.compiled.flat, batch.watched, batch.order, batch.width)


Told = Callable[[int], None]


def carried_out(work: Work, out: Path | None, client: Any, force: bool, told: Told) -> Outcome:
    """The outcome of all members; `told` is called with how many are done."""
    if out is None and client is None:
        return work.batch.run(work.z, work.k, work.schedule, work.threads, work.bins, told)
    parts = Parts(out, work, force) if out is not None else None
    blocks = work.blocks
    found: dict[int, Outcome] = {}
    done = 0

    def take(number: int, outcome: Outcome) -> None:
        nonlocal done
        found[number] = outcome
        done += blocks[number].stop - blocks[number].start
        told(done)

    todo = []
    for number in range(len(blocks)):
        known = parts.load(number) if parts is not None else None
        if known is None:
            todo.append(number)
        else:
            take(number, known)
    for number, outcome in _here(work, todo) if client is None else _on_cluster(work, todo, client):
        if parts is not None:
            parts.save(number, outcome)
        take(number, outcome)
    return joined([found[number] for number in range(len(blocks))], [block.start for block in blocks])


def _here(work: Work, todo: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    blocks = work.blocks
    for number in todo:
        block = blocks[number]
        yield number, work.batch.run(work.z[block], work.k[block], work.schedule, work.threads, work.bins)


def _on_cluster(work: Work, todo: Sequence[int], client: Any) -> Iterator[tuple[int, Outcome]]:
    """Blocks as tasks of dask: lost workers' blocks go to others, and what is done comes in any order."""
    if not todo:
        return
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise InputError("a client needs dask.distributed: pip install 'livens[cluster]'") from None
    if not isinstance(client, Client):
        raise InputError(f"client must be a dask.distributed.Client, got {client!r}")
    shipped, blocks = work.shipped(), work.blocks
    futures = {}
    for number in todo:
        block = blocks[number]
        # sent with every block and not once: data that were scattered are lost with the worker that holds them
        future = client.submit(
            run_block,
            shipped,
            work.z[block],
            work.k[block],
            work.schedule,
            work.threads,
            work.bins,
            pure=False,
            retries=_RETRIES,
        )
        futures[future] = number
    try:
        for future in as_completed(list(futures)):
            outcome = future.result()
            number = futures.pop(future)
            future.release()
            yield number, outcome
    finally:
        client.cancel(list(futures))


def joined(outcomes: Sequence[Outcome], starts: Sequence[int]) -> Outcome:
    """Outcomes of blocks, one after the other."""
    arrays = {name: np.concatenate([getattr(one, name) for one in outcomes]) for name in ARRAYS}
    reasons = {
        start + member: reason
        for one, start in zip(outcomes, starts, strict=True)
        for member, reason in one.reasons.items()
    }
    return Outcome(**arrays, reasons=reasons, left=sum(one.left for one in outcomes))


def _only_parts(folder: Path) -> bool:
    """Whether a folder has nothing in it but what is put there here, finished or not."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return all(_PART.fullmatch(one.name) and stat.S_ISREG(one.lstat().st_mode) for one in folder.iterdir())


def remove_parts(folder: Path) -> None:
    """Remove the folder of an ensemble, and nothing that is not from here."""
    if os.path.lexists(folder) and _only_parts(folder):
        for one in folder.iterdir():
            one.unlink()
        folder.rmdir()


def parts_folder(out: Path) -> Path:
    """Where the blocks of an ensemble are kept until all are done."""
    return out.with_name(f"{out.name}.parts")


class Parts:
    """The blocks of an ensemble that are done, in a folder beside the file it is going to be."""

    def __init__(self, out: Path, work: Work, force: bool) -> None:
        self.folder, self._work = parts_folder(out), work
        content = self._content(work)
        about = self.folder / "about.json"
        try:
            if os.path.lexists(self.folder) and not _only_parts(self.folder):
                raise InputError(
                    f"'{self.folder}', where an ensemble is kept until it is done, has something else in it: "
                    "choose another name"
                )
            if self.folder.exists() and force and self._told(about) != content:
                remove_parts(self.folder)
            self.folder.mkdir(exist_ok=True)
            known = self._told(about)
            if known is None:
                _written(about, json.dumps({"content": content}).encode())
            elif known != content:
                raise InputError(
                    f"'{self.folder}' has the beginning of another ensemble: choose another name, or pass force=True"
                )
        except OSError as error:
            raise InputError(f"cannot write the ensemble '{out}': {error.strerror or error}") from None

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
        digest.update(repr((s.h, s.t0, s.steps, s.rest, s.every, s.columns.tolist(), work.bins)).encode())
        for array in (work.z, work.k):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npz"

    def load(self, number: int) -> Outcome | None:
        """A block, if it is there; one that was damaged is computed again."""
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
                arrays = {name: file[name] for name in ARRAYS}
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
        arrays = {name: getattr(outcome, name) for name in ARRAYS}
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


def _written(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)
