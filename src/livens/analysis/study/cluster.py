"""The runs of a sweep on the workers of a cluster, by dask.distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from livens.analysis.study.grouped import run_block
from livens.errors import InputError
from livens.models.problem import Problem

#: Every worker gets about this many blocks, so that none waits long for the last one, with at most this many runs each.
_SHARES, _MOST = 4, 512
#: A block that fails on a worker is tried again this often; that of a worker that is lost is tried again anyway.
_RETRIES = 2


def connected(address: str) -> Any:
    """A client of the scheduler at an address, such as ``tcp://host:8786``."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError("a cluster needs dask.distributed: pip install 'livens[cluster]'") from None
    try:
        return Client(address, timeout="30s")
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"no cluster answers at '{address}': {error}") from None


def run_on_cluster(
    client: Any,
    build: str | Callable[..., Problem],
    options: Mapping[str, Any],
    members: Sequence[Mapping[str, Any]],
    final: bool,
) -> Iterator[list[tuple[int, Any]]]:
    """Numbers of members and their rows, as blocks of them are done; an error in place of the row if a block is not."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise InputError("a client needs dask.distributed: pip install 'livens[cluster]'") from None
    if not isinstance(client, Client):
        raise InputError(f"client must be a dask.distributed.Client, got {client!r}")
    workers = max(1, len(client.scheduler_info()["workers"]))
    size = max(1, min(_MOST, -(-len(members) // (_SHARES * workers))))
    futures = {}
    for first in range(0, len(members), size):
        block = list(members[first : first + size])
        future = client.submit(run_block, build, dict(options), block, final, pure=False, retries=_RETRIES)
        futures[future] = range(first, first + len(block))
    try:
        for future in as_completed(list(futures)):
            numbers = futures.pop(future)
            error = future.exception()
            rows = [error] * len(numbers) if error is not None else future.result()
            future.release()
            yield list(zip(numbers, rows, strict=True))
    finally:
        client.cancel(list(futures))
