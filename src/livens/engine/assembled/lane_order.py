"""Assignment of instances to SIMD lanes, so that neighbouring bodies are in neighbouring vectors.

A chain is cut into segments of sixteen bodies, and each of eight consecutive segments has its own lane. Couplings of a
body to the next or second next body then couple whole vectors, lane by lane: vectors are loaded contiguously instead of
gathered. Rows of loops and other structures that are periodic in the order of their bodies gain as much; other
structures lose nothing.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from livens.engine.assembled.indexed import WIDTH
from livens.schemes.recipes.pieces import Piece, Pieces

#: Lengths of the segments, and of the segments of the remainder: powers of two, because each level eliminates about
#: every second body, and the same bodies in all lanes.
_STRETCHES = (16, 8, 4, 2, 1)
#: Instances keep their lanes if the number of vectors grows at most by this factor.
_MORE_VECTORS = 1.1
#: Attributes of an element batch with one row per instance.
_PLACES = ("x", "z", "k", "m", "equations", "end_places", "keep_places", "sum_places", "low_places")


def lane_keys(count: int) -> np.ndarray:
    """Return the lane key of each body: its position in the order of vectors; the lane is the key modulo eight."""
    keys, done = np.arange(count), 0
    for length in _STRETCHES:
        whole = (count - done) // (WIDTH * length) * WIDTH * length
        within = np.arange(whole).reshape(-1, WIDTH, length)  # segments in the order of bodies
        keys[done : done + whole] = done + np.argsort(within.transpose(0, 2, 1), axis=None)
        done += whole
    return keys


def in_lanes(pieces: Pieces) -> Pieces:
    """Return the assembly plan with the instances of every batch permuted to lane order."""
    keys = lane_keys(int(pieces.body.max(initial=-1)) + 1)
    return dataclasses.replace(pieces, pieces=tuple(_sorted(p, pieces.body, keys) for p in pieces.pieces))


def _sorted(piece: Piece, body: np.ndarray, keys: np.ndarray) -> Piece:
    bodies = body[piece.x]
    there = bodies >= 0
    if not keys.size or not there.any() or not piece.rows.numel():  # the batch writes no vectors to the pool
        return piece
    first = np.where(there, bodies, body.size).min(axis=1)
    key = np.where(first < body.size, keys[np.minimum(first, keys.size - 1)], body.size)
    alike = np.argsort(key, kind="stable")
    begins = np.flatnonzero(np.diff(key[alike], prepend=-1))
    occurrence = np.empty(key.size, dtype=np.int64)  # index among the instances of one body
    occurrence[alike] = np.arange(key.size) - np.repeat(begins, np.diff(begins, append=key.size))
    order = np.lexsort((key % WIDTH, occurrence, key // WIDTH))
    if (order == np.arange(order.size)).all():
        return piece
    tables = {name: getattr(piece, name) for name in _PLACES}
    return dataclasses.replace(piece, **{name: t[order] for name, t in tables.items() if len(t) == piece.count})


def in_whole_vectors(keys: list[int]) -> tuple[list[int], list[int]]:
    """Distribute instances with sorted keys over vectors; return the instance of every lane and the lane of every
    instance.

    Each instance occupies the lane of its key if that hardly needs more vectors than dense packing. Vectors are padded
    by repetition.
    """
    count = len(keys)
    lanes = [key % WIDTH for key in keys]
    begins = [i for i in range(count) if not i or keys[i] // WIDTH != keys[i - 1] // WIDTH]
    single = all(lanes[i] > lanes[i - 1] for i in range(1, count) if keys[i] // WIDTH == keys[i - 1] // WIDTH)
    fewest = -(-count // WIDTH)
    if not single or len(begins) > _MORE_VECTORS * fewest:
        return [min(i, count - 1) for i in range(fewest * WIDTH)], list(range(count))
    found: list[int] = []
    places: list[int] = []
    for first, stop in itertools.pairwise([*begins, count]):
        at = {lanes[i]: i for i in range(first, stop)}
        places += [len(found) + lanes[i] for i in range(first, stop)]
        found += [at.get(lane, first) for lane in range(WIDTH)]
    return found, places


def runs(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Analyse blocks of eight indices (last axis) as runs of consecutive numbers.

    Returns whether each block has at most two runs, whether it has one run, and its encoding for the kernel: start of
    both runs minus the lanes before, and the lanes of the second run as a bit mask.
    """
    breaks = np.diff(indices, axis=-1) != 1
    count = breaks.sum(axis=-1)
    second = np.where(count > 0, breaks.argmax(axis=-1) + 1, 0)
    begins = np.take_along_axis(indices, second[..., None], axis=-1)[..., 0] - second
    mask = np.where(count > 0, (0xFF << second) & 0xFF, 0)
    told = np.zeros_like(indices)
    told[..., 0], told[..., 1], told[..., 2] = indices[..., 0], begins, mask
    return count <= 1, count == 0, told
