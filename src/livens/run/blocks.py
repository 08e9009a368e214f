"""Members in blocks: one after the other here, or on the workers of a cluster."""

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

#: A block takes about this many steps of members: some seconds.
_STEPS = 100_000_000
#: And has at most this many members.
_MOST = 65_536
#: A block that fails on a worker is tried again so often; that of a worker that is lost is tried again anyway.
_RETRIES = 2


@dataclass(frozen=True)
class Rows:
    """What the kept columns of the states are called, and which members they are of, in the order these are taken."""

    variables: dict[str, slice]
    members: np.ndarray
    count: int  # with those that never begin


@dataclass(frozen=True)
class Work:
    """Members that are to be taken to their ends, sorted, and how."""

    batch: Batch
    z: np.ndarray
    k: np.ndarray
    schedule: Schedule
    bins: tuple[Bins, ...]
    threads: int
    rows: Rows

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
