"""Which instances share a vector: bodies a little apart, so that neighbours are in neighbouring vectors.

A chain is cut into stretches of sixteen bodies, and each of eight stretches that follow each other has a lane of its
own. What couples a body to the next one then couples whole vectors, lane by lane, and so does what couples it to the
second next: vectors are read as they stand, and not gathered number by number. Rows of loops and other structures that
repeat themselves in the order of their bodies gain as much, others lose nothing.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from livens.engine.assembled.indexed import WIDTH
from livens.schemes.recipes.pieces import Piece, Pieces

#: How long stretches are, the first ones and those of what is left over: powers of two, as in every round about every
#: second body is eliminated, and the same ones in all lanes.
_STRETCHES = (16, 8, 4, 2, 1)
#: Instances stand in lanes of their own if that takes at most this many times as many vectors.
_MORE_VECTORS = 1.1
#: What has a row for each instance of a piece.
_PLACES = ("x", "z", "k", "m", "equations", "end_places", "keep_places", "sum_places", "low_places")


def lane_keys(count: int) -> np.ndarray:
    """The place of each of so many bodies in the order of vectors: its lane is what is left over of eights."""
    keys, done = np.arange(count), 0
    for length in _STRETCHES:
        whole = (count - done) // (WIDTH * length) * WIDTH * length
        within = np.arange(whole).reshape(-1, WIDTH, length)  # stretches in the order of bodies
        keys[done : done + whole] = done + np.argsort(within.transpose(0, 2, 1), axis=None)
        done += whole
    return keys


def in_lanes(pieces: Pieces) -> Pieces:
    """The same pieces, with their instances in the order of vectors."""
    keys = lane_keys(int(pieces.body.max(initial=-1)) + 1)
    return dataclasses.replace(pieces, pieces=tuple(_sorted(p, pieces.body, keys) for p in pieces.pieces))


def _sorted(piece: Piece, body: np.ndarray, keys: np.ndarray) -> Piece:
    bodies = body[piece.x]
    there = bodies >= 0
    if not keys.size or not there.any() or not piece.rows.numel():  # nobody reads vectors of it
        return piece
    first = np.where(there, bodies, body.size).min(axis=1)
    key = np.where(first < body.size, keys[np.minimum(first, keys.size - 1)], body.size)
    alike = np.argsort(key, kind="stable")
    begins = np.flatnonzero(np.diff(key[alike], prepend=-1))
    occurrence = np.empty(key.size, dtype=np.int64)  # among those of one body
    occurrence[alike] = np.arange(key.size) - np.repeat(begins, np.diff(begins, append=key.size))
    order = np.lexsort((key % WIDTH, occurrence, key // WIDTH))
    if (order == np.arange(order.size)).all():
        return piece
    tables = {name: getattr(piece, name) for name in _PLACES}
    return dataclasses.replace(piece, **{name: t[order] for name, t in tables.items() if len(t) == piece.count})


def in_whole_vectors(keys: list[int]) -> tuple[list[int], list[int]]:
    """Which of some instances, with these keys in order, stands where, in vectors that are filled up by repeating them;
    and where each is looked for.

    Each stands in the lane that its key says if that takes hardly more vectors than to put one beside the other.
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
