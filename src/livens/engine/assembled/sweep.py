"""Cache blocking (loop tiling) of large systems: the output of a tile is read again while it is in the cache.

Elements are evaluated, equations gathered and fronts factorised tile by tile. A tile of an element batch is a range of
its blocks; sums and fronts belong to the first tile after which all their inputs are available. Tiles do not change
the order of operations, and therefore not the results.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.indexed import FIRST, LAST, WIDTH
from livens.engine.lowering.kinds import Integers, Record

#: Number of pool entries per tile: a third of the cache of a core.
_NUMBERS = 40_000


class Sweep:
    """Schedule of tiles: tile index of each block."""

    def __init__(self, pool_size: int, numbers: int = _NUMBERS) -> None:
        self.parts = max(1, pool_size // numbers)
        self._written = np.zeros(-(-pool_size // WIDTH), dtype=np.int64)  # tile of each group of eight pool entries

    def in_order(self, blocks: int) -> np.ndarray:
        """Return the tiles of blocks without dependencies."""
        return np.arange(blocks) * self.parts // max(blocks, 1)

    def write(self, base: int, outputs: int, parts: np.ndarray) -> None:
        """Record that blocks with `n_outputs` outputs each, from `offset` of the pool on, belong to these tiles."""
        first = base // WIDTH
        self._written[first : first + parts.size * outputs] = np.repeat(parts, outputs)

    def behind(self, positions: np.ndarray) -> np.ndarray:
        """Return the earliest tiles of blocks that read these positions (one row per block), in order."""
        return in_turn(self._written[positions.reshape(len(positions), -1) // WIDTH])


def in_turn(parts: np.ndarray) -> np.ndarray:
    """Return the maximum of each row, made monotone: no block precedes the block before it."""
    return np.maximum.accumulate(parts.max(axis=1, initial=0))


@dataclass(frozen=True, eq=False)
class SweepTables(Record):
    """Tables of all kernels, tile by tile."""

    parts: int
    pieces: Integers
    sums: Integers
    fronts: Integers


def in_parts(tables: np.ndarray, of_blocks: list[np.ndarray], parts: int) -> np.ndarray:
    """Return the kernel tables of each tile; `block_tiles` contains the tile of every block."""
    found = np.repeat(tables[None], parts, axis=0)
    each = np.arange(parts)
    for i, own in enumerate(of_blocks):
        found[:, i, FIRST] = tables[i, FIRST] + np.searchsorted(own, each, "left")
        found[:, i, LAST] = tables[i, FIRST] + np.searchsorted(own, each, "right")
    return found
