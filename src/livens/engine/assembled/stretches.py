"""Fronts whose sources stand side by side in the pool: their vectors are read as they stand."""

from __future__ import annotations

import numpy as np

from livens.engine.assembled.front_class import FrontClass
from livens.engine.assembled.front_records import Batch

#: So many blocks of fronts in a row, whose sources stand side by side, are worth a kernel that reads them like that.
_STRETCH = 4


def in_stretches(batches: list[Batch], made: FrontClass, table: np.ndarray) -> list[Batch]:
    """The same batches; blocks of a class whose sources stand side by side are batches of their own, if they are many.

    In the table of the class, these blocks say of each source what `runs` says.
    """
    sources = table[:, : made.source_count]
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
    """A batch in parts: long stretches of blocks that are `able`, and the others."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], able[batch.first : batch.stop].astype(int), [0]])))
    found, at = [], batch.first
    for first, stop in (batch.first + edges.reshape(-1, 2)).tolist():
        if stop - first >= _STRETCH:
            found += [Batch(batch.of, at, first, batch.round)] if at < first else []
            found.append(Batch(batch.of, first, stop, batch.round, True))
            at = stop
    return [*found, Batch(batch.of, at, batch.stop, batch.round)] if at < batch.stop else found


def runs(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of blocks of eight indices, on the last axis: whether each is one or two runs of numbers that follow each other,
    whether it is one, and what a kernel is told of it: where both begin, less the lanes before, and which lanes are of
    the second, as bits.
    """
    breaks = np.diff(indices, axis=-1) != 1
    count = breaks.sum(axis=-1)
    second = np.where(count > 0, breaks.argmax(axis=-1) + 1, 0)
    begins = np.take_along_axis(indices, second[..., None], axis=-1)[..., 0] - second
    mask = np.where(count > 0, (0xFF << second) & 0xFF, 0)
    told = np.zeros_like(indices)
    told[..., 0], told[..., 1], told[..., 2] = indices[..., 0], begins, mask
    return count <= 1, count == 0, told
