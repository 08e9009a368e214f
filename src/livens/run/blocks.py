"""Execution of an ensemble in blocks of members, locally or on a dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from livens.engine.batch import ARRAYS, Batch, Bins, Outcome, Schedule
from livens.engine.shipped import Shipped, run_block
from livens.errors import InputError
from livens.run.parts import parts_of

#: Member steps per block (number of members times number of steps): some seconds of computing time.
_STEPS = 100_000_000
#: Largest number of members per block.
_MOST = 65_536
#: Number of retries of a block that raises on a worker. Blocks of lost workers are always rescheduled.
_RETRIES = 2


@dataclass(frozen=True)
class Rows:
    """Names and slices of the stored columns, and the indices of the members in order of execution."""

    variables: dict[str, slice]
    members: np.ndarray
    count: int  # all members, including those without a valid initial state


@dataclass(frozen=True)
class Work:
    """Sorted members of an ensemble with everything needed to integrate them."""

    batch: Batch
    z: np.ndarray
    k: np.ndarray
    schedule: Schedule
    bins: tuple[Bins, ...]
    threads: int
    rows: Rows

    @property
    def blocks(self) -> list[slice]:
        """Slices of members per block, multiples of the SIMD width: results do not depend on the block size."""
        width = self.batch.width
        size = int(min(max(_STEPS // max(1, self.schedule.steps), width), _MOST)) // width * width
        return [slice(first, min(first + size, len(self.z))) for first in range(0, len(self.z), size)]

    def shipped(self) -> Shipped:
        batch = self.batch
        return Shipped.of(batch.compiled.flat, batch.watched, batch.order, batch.width)


Told = Callable[[int], None]


def carried_out(work: Work, out: Path | None, client: Any, force: bool, told: Told) -> Outcome:
    """Integrate all members; `on_progress` is called with the number of finished members."""
    if out is None and client is None:
        return work.batch.run(work.z, work.k, work.schedule, work.threads, work.bins, told)
    parts = parts_of(out, work, force) if out is not None else None
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
    """Run blocks as dask tasks and yield outcomes in order of completion; blocks of lost workers are rescheduled."""
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
        # Sent with every block: scattered data are lost together with the worker that stores them.
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
    """Concatenate the outcomes of consecutive blocks."""
    arrays = {name: np.concatenate([getattr(one, name) for one in outcomes]) for name in ARRAYS}
    reasons = {
        start + member: reason
        for one, start in zip(outcomes, starts, strict=True)
        for member, reason in one.reasons.items()
    }
    return Outcome(**arrays, reasons=reasons, left=sum(one.left for one in outcomes))
