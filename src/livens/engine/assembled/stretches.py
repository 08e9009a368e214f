"""Splitting of front batches into ranges with contiguous loads of contributions."""

from __future__ import annotations

import numpy as np

from livens.engine.assembled.front_class import FrontClass
from livens.engine.assembled.front_records import Batch
from livens.engine.assembled.lane_order import runs

#: Minimum number of consecutive blocks with contiguous contributions for a separate kernel.
_STRETCH = 4


def in_stretches(batches: list[Batch], made: FrontClass, table: np.ndarray) -> list[Batch]:
    """Split the batches of a class: long ranges of blocks with contiguous contributions become separate batches.

    The index table of these blocks is replaced by the encoding of `contiguous_runs`.
    """
    sources = table[:, : made.read_slots]
    able, single, told = runs(sources)
    able = np.asarray(able.all(axis=1))
    parts = {id(batch): _stretches(able, batch) for batch in batches if batch.of is made}
    chosen = np.zeros(len(table), dtype=bool)
    for batch in (part for found in parts.values() for part in found if part.in_runs):
        chosen[batch.first : batch.stop] = True
    if not chosen.any():
        return batches
    made.two_runs = tuple(not found for found in np.asarray(single[chosen].all(axis=0)).tolist())
    sources[chosen] = told[chosen]
    return [part for batch in batches for part in parts.get(id(batch), [batch])]


def _stretches(able: np.ndarray, batch: Batch) -> list[Batch]:
    """Split a batch into long ranges of contiguous blocks and the remaining ranges."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], able[batch.first : batch.stop].astype(int), [0]])))
    found, at = [], batch.first
    for first, stop in (batch.first + edges.reshape(-1, 2)).tolist():
        if stop - first >= _STRETCH:
            found += [Batch(batch.of, at, first, batch.round)] if at < first else []
            found.append(Batch(batch.of, first, stop, batch.round, True))
            at = stop
    return [*found, Batch(batch.of, at, batch.stop, batch.round)] if at < batch.stop else found
