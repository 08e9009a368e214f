"""Fronts whose sources stand side by side in the pool: their vectors are read as they stand."""

from __future__ import annotations

import numpy as np

from livens.engine.assembled.front_class import FrontClass
from livens.engine.assembled.front_records import Batch
from livens.engine.assembled.lane_order import runs

#: So many blocks of fronts in a row, whose sources stand side by side, are worth a kernel that reads them like that.
_STRETCH = 4


def in_stretches(batches: list[Batch], made: FrontClass, table: np.ndarray) -> list[Batch]:
    """The same batches; blocks of a class whose sources stand side by side are batches of their own, if they are many.

    In the table of the class, these blocks say of each source what `runs` says.
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
    """A batch in parts: long stretches of blocks that are `able`, and the others."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], able[batch.first : batch.stop].astype(int), [0]])))
    found, at = [], batch.first
    for first, stop in (batch.first + edges.reshape(-1, 2)).tolist():
        if stop - first >= _STRETCH:
            found += [Batch(batch.of, at, first, batch.round)] if at < first else []
            found.append(Batch(batch.of, first, stop, batch.round, True))
            at = stop
    return [*found, Batch(batch.of, at, batch.stop, batch.round)] if at < batch.stop else found
