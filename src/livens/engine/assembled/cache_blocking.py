"""Cache blocking (loop tiling) of large systems: the output of a tile is read again while it is in the cache.

Elements are evaluated, equations gathered and fronts factorised tile by tile. A tile of an element batch is a range of
its blocks; sums and fronts belong to the first tile after which all their inputs are available. Tiles do not change
the order of operations, and therefore not the results.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.indexed_emitter import FIRST_BLOCK, STOP_BLOCK, WIDTH
from livens.engine.lowering.types import I64Array, Struct

#: Number of pool entries per tile: a third of the cache of a core.
_TILE_ENTRIES = 40_000


class TileSchedule:
    """Schedule of tiles: tile index of each block."""

    def __init__(self, pool_size: int, tile_entries: int = _TILE_ENTRIES) -> None:
        self.n_tiles = max(1, pool_size // tile_entries)
        self._tile_of = np.zeros(-(-pool_size // WIDTH), dtype=np.int64)  # tile of each group of eight pool entries

    def initial_tiles(self, n_blocks: int) -> np.ndarray:
        """Return the tiles of blocks without dependencies."""
        return np.arange(n_blocks) * self.n_tiles // max(n_blocks, 1)

    def mark_written(self, offset: int, n_outputs: int, tiles: np.ndarray) -> None:
        """Record that blocks with `n_outputs` outputs each, from `offset` of the pool on, belong to these tiles."""
        start = offset // WIDTH
        self._tile_of[start : start + tiles.size * n_outputs] = np.repeat(tiles, n_outputs)

    def tiles_after(self, positions: np.ndarray) -> np.ndarray:
        """Return the earliest tiles of blocks that read these positions (one row per block), in order."""
        return monotone_max(self._tile_of[positions.reshape(len(positions), -1) // WIDTH])


def monotone_max(tiles: np.ndarray) -> np.ndarray:
    """Return the maximum of each row, made monotone: no block precedes the block before it."""
    return np.maximum.accumulate(tiles.max(axis=1, initial=0))


@dataclass(frozen=True, eq=False)
class TileTables(Struct):
    """Tables of all kernels, tile by tile."""

    n_tiles: int
    elements: I64Array
    sums: I64Array
    fronts: I64Array


def split_tables(tables: np.ndarray, block_tiles: list[np.ndarray], n_tiles: int) -> np.ndarray:
    """Return the kernel tables of each tile; `block_tiles` contains the tile of every block."""
    tile_tables = np.repeat(tables[None], n_tiles, axis=0)
    tiles = np.arange(n_tiles)
    for i, tiles_of_kernel in enumerate(block_tiles):
        tile_tables[:, i, FIRST_BLOCK] = tables[i, FIRST_BLOCK] + np.searchsorted(tiles_of_kernel, tiles, "left")
        tile_tables[:, i, STOP_BLOCK] = tables[i, FIRST_BLOCK] + np.searchsorted(tiles_of_kernel, tiles, "right")
    return tile_tables
