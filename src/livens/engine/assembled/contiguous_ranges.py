"""Splitting of front batches into ranges with contiguous loads of contributions."""

from __future__ import annotations

import numpy as np

from livens.engine.assembled.front_class import FrontClass
from livens.engine.assembled.front_types import FrontBatch
from livens.engine.assembled.lane_assignment import contiguous_runs

#: Minimum number of consecutive blocks with contiguous contributions for a separate kernel.
_MIN_RANGE = 4


def split_contiguous(batches: list[FrontBatch], front_class: FrontClass, table: np.ndarray) -> list[FrontBatch]:
    """Split the batches of a class: long ranges of blocks with contiguous contributions become separate batches.

    The index table of these blocks is replaced by the encoding of `contiguous_runs`.
    """
    contributions = table[:, : front_class.n_read_slots]
    is_contiguous, is_single_run, encoding = contiguous_runs(contributions)
    is_contiguous = np.asarray(is_contiguous.all(axis=1))
    parts = {
        id(batch): _contiguous_ranges(is_contiguous, batch) for batch in batches if batch.front_class is front_class
    }
    selected = np.zeros(len(table), dtype=bool)
    for batch in (part for ranges in parts.values() for part in ranges if part.is_contiguous):
        selected[batch.first_block : batch.stop_block] = True
    if not selected.any():
        return batches
    front_class.split_runs = tuple(not ranges for ranges in np.asarray(is_single_run[selected].all(axis=0)).tolist())
    contributions[selected] = encoding[selected]
    return [part for batch in batches for part in parts.get(id(batch), [batch])]


def _contiguous_ranges(is_contiguous: np.ndarray, batch: FrontBatch) -> list[FrontBatch]:
    """Split a batch into long ranges of contiguous blocks and the remaining ranges."""
    edges = np.flatnonzero(
        np.diff(np.concatenate([[0], is_contiguous[batch.first_block : batch.stop_block].astype(int), [0]]))
    )
    batches, position = [], batch.first_block
    for start, stop in (batch.first_block + edges.reshape(-1, 2)).tolist():
        if stop - start >= _MIN_RANGE:
            batches += [FrontBatch(batch.front_class, position, start, batch.level)] if position < start else []
            batches.append(FrontBatch(batch.front_class, start, stop, batch.level, True))
            position = stop
    return (
        [*batches, FrontBatch(batch.front_class, position, batch.stop_block, batch.level)]
        if position < batch.stop_block
        else batches
    )
