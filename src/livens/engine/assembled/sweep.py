"""A sweep over large systems, part by part: what a part writes is read again while it is in the cache.

Pieces are evaluated, equations summed up and fronts eliminated of one part after the other. A part of the pieces is a
range of their blocks; sums and fronts belong to the first part behind which all that they read is there. Who computes a
number computes it from the same numbers, so parts change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.indexed import FIRST, LAST, WIDTH
from livens.engine.lowering.kinds import Integers, Record

#: So many numbers of the pool belong to a part: they take a third of the cache of a core.
_NUMBERS = 40_000


class Sweep:
    """In which part each block is done."""

    def __init__(self, pool_size: int, numbers: int = _NUMBERS) -> None:
        self.parts = max(1, pool_size // numbers)
        self._written = np.zeros(-(-pool_size // WIDTH), dtype=np.int64)  # of eight numbers of the pool each

    def in_order(self, blocks: int) -> np.ndarray:
        """Parts of blocks that wait for nothing."""
        return np.arange(blocks) * self.parts // max(blocks, 1)

    def write(self, base: int, outputs: int, parts: np.ndarray) -> None:
        """Blocks of so many outputs each, from `base` on in the pool, are written in these parts."""
        first = base // WIDTH
        self._written[first : first + parts.size * outputs] = np.repeat(parts, outputs)

    def behind(self, positions: np.ndarray) -> np.ndarray:
        """The parts in which blocks can be done that read these positions, one row for each, one after the other."""
        return in_turn(self._written[positions.reshape(len(positions), -1) // WIDTH])


def in_turn(parts: np.ndarray) -> np.ndarray:
    """The last of the parts in each row; no block is done before the one before it."""
    return np.maximum.accumulate(parts.max(axis=1, initial=0))


@dataclass(frozen=True, eq=False)
class SweepTables(Record):
    """The tables of all kernels, part by part."""

    parts: int
    pieces: Integers
    sums: Integers
    fronts: Integers


def in_parts(tables: np.ndarray, of_blocks: list[np.ndarray], parts: int) -> np.ndarray:
    """Tables of kernels for each part, whose blocks are done in the parts `of_blocks`."""
    found = np.repeat(tables[None], parts, axis=0)
    each = np.arange(parts)
    for i, own in enumerate(of_blocks):
        found[:, i, FIRST] = tables[i, FIRST] + np.searchsorted(own, each, "left")
        found[:, i, LAST] = tables[i, FIRST] + np.searchsorted(own, each, "right")
    return found
