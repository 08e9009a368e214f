"""Runs of a sweep on a dask.distributed cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from livens.analysis.study.batched_runs import run_block
from livens.errors import InputError, MissingExtraError
from livens.models.problem import Problem

#: Target number of blocks per worker (for load balancing), and maximum number of runs per block.
_BLOCKS_PER_WORKER, _MAX_BLOCK = 4, 512
#: Number of retries of a failed block; blocks of lost workers are always rescheduled.
_RETRIES = 2


def connect(address: str) -> Any:
    """Connect to the scheduler at an address such as ``tcp://host:8786``."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("a cluster", "cluster") from None
    try:
        return Client(address, timeout="30s")
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"cannot connect to a cluster at '{address}': {error}") from None


def run_on_cluster(
    client: object,
    build: str | Callable[..., Problem],
    options: Mapping[str, object],
    members: Sequence[Mapping[str, object]],
    final: bool,
) -> Iterator[list[tuple[int, Any]]]:
    """Iterate over indices and rows of members as blocks complete; the rows of a failed block are its exception."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise MissingExtraError("a client", "cluster") from None
    if not isinstance(client, Client):
        raise InputError(f"client must be a dask.distributed.Client, got {client!r}")
    workers = max(1, len(client.scheduler_info()["workers"]))
    size = max(1, min(_MAX_BLOCK, -(-len(members) // (_BLOCKS_PER_WORKER * workers))))
    futures = {}
    for start in range(0, len(members), size):
        block = list(members[start : start + size])
        future = client.submit(run_block, build, dict(options), block, final, pure=False, retries=_RETRIES)
        futures[future] = range(start, start + len(block))
    try:
        for future in as_completed(list(futures)):
            indices = futures.pop(future)
            error = future.exception()
            rows = [error] * len(indices) if error is not None else future.result()
            future.release()
            yield list(zip(indices, rows, strict=True))
    finally:
        client.cancel(list(futures))
