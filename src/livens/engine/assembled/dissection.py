"""Nested dissection: fill-reducing ordering of the vertices of a graph in which separators come last.

Uses pymetis if it is installed; otherwise separators from distances to landmarks, which suit nets and lattices.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Integers

#: Number of vertices below which a part is not divided.
_SMALL = 8
#: Tested fractions of the vertices on one side of a separator.
_SHARES = (0.4, 0.45, 0.5, 0.55, 0.6)
#: Imbalance penalty: relative increase of the score of a separator per excess of its larger side above one half.
_UNFAIR = 2.0
#: Number of smoothing iterations of the fields before parts are divided along them.
_SMOOTHINGS = 40


def nested_dissection(graph: sp.csr_matrix) -> np.ndarray:
    """Return an elimination order of the vertices; `graph` is symmetric, and its diagonal is ignored."""
    try:
        import pymetis
    except ImportError:
        return by_landmarks(graph)
    found, _ = pymetis.nested_dissection(pymetis.CSRAdjacency(graph.indptr.tolist(), graph.indices.tolist()))
    return np.asarray(found, dtype=np.int64)


def by_landmarks(graph: sp.csr_matrix) -> np.ndarray:
    """Return a nested-dissection ordering by recursive bisection along differences of landmark distances."""
    starts, neighbours = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    count = graph.shape[0]
    inside = np.zeros(count, dtype=np.int64)  # part index of each vertex
    order: list[np.ndarray] = []
    parts = [np.arange(count)]
    number = 0
    while parts:  # the last part first: the order is reversed at the end
        part = parts.pop()
        number += 1
        inside[part] = number
        if part.size <= _SMALL:
            order.append(part[::-1])
            continue
        far = _Distances(part, inside, number, starts, neighbours)
        first = far.of(int(part[0]))
        if (first < 0).any():  # disconnected
            parts += [part[first < 0], part[first >= 0]]
            continue
        separator, one, other = _cut(part, far, first)
        if not one.size or not other.size:
            order.append(part[::-1])
            continue
        order.append(separator[::-1])
        parts += [one, other]
    return np.concatenate([*order, np.zeros(0, dtype=np.int64)])[::-1]


class _Distances:
    """Subgraph of a part: its edges and breadth-first distances."""

    def __init__(
        self, part: np.ndarray, inside: np.ndarray, number: int, starts: np.ndarray, neighbours: np.ndarray
    ) -> None:
        self._inside, self._number, self._starts, self._neighbours = inside, number, starts, neighbours
        self._part, self._distance = part, np.full(inside.size, -1, dtype=np.int64)
        sizes = starts[part + 1] - starts[part]
        places = np.repeat(starts[part] - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
        ends = neighbours[places]
        kept = inside[ends] == number
        local = np.zeros(inside.size, dtype=np.int64)
        local[part] = np.arange(part.size)
        #: Edges between vertices of the part by local index, in both directions.
        self.edges = np.repeat(np.arange(part.size), sizes)[kept], local[ends[kept]]
        self.degree = np.bincount(self.edges[0], minlength=part.size)

    def of(self, vertex: int) -> np.ndarray:
        """Return the distances of the vertices of the part from one vertex; -1 for unreachable vertices."""
        self._distance[self._part] = -1
        queue = np.empty(self._part.size, dtype=np.int64)
        spread(vertex, self._inside, self._number, self._starts, self._neighbours, self._distance, queue)
        return self._distance[self._part]

    def farthest(self, distance: np.ndarray) -> int:
        """Return the vertex of largest distance; ties are broken by the smallest degree (pseudo-peripheral vertex)."""
        ends = np.flatnonzero(distance == distance.max())
        return int(self._part[ends[np.argmin(self.degree[ends])]])


@lowered
def spread(
    vertex: int,
    inside: Integers,
    number: int,
    starts: Integers,
    neighbours: Integers,
    distance: Integers,
    queue: Integers,
) -> None:
    queue[0], distance[vertex] = vertex, 0
    head, tail = 0, 1
    while head < tail:
        at = queue[head]
        head += 1
        for k in range(starts[at], starts[at + 1]):
            other = neighbours[k]
            if inside[other] == number and distance[other] < 0:
                distance[other] = distance[at] + 1
                queue[tail] = other
                tail += 1


def _cut(part: np.ndarray, far: _Distances, first: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the separator with the best score and its two sides; one side is empty if there is none."""
    a = far.of(far.farthest(first))
    b = far.of(far.farthest(a))
    c = far.of(far.farthest(np.minimum(a, b)))
    d = far.of(far.farthest(c))
    along, across = _smooth(far, np.stack([a - b, c - d], axis=1).astype(float)).T
    heads, tails = far.edges
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for value in (along, across, along + across, along - across, a):
        ordered = np.sort(value)
        for limit in np.unique(ordered[[int(share * part.size) for share in _SHARES]]):
            left = value < limit
            crossing = left[heads] & ~left[tails]
            for ends in (heads, tails):
                separator = np.zeros(part.size, dtype=bool)
                separator[ends[crossing]] = True
                size, one = int(separator.sum()), int((left & ~separator).sum())
                other = part.size - one - size
                score = size * (1.0 + _UNFAIR * (max(one, other) / part.size - 0.5))
                if one and other and (best is None or score < best[0]):
                    best = score, separator, left
    if best is None:
        return part[:0], part, part[:0]
    _, separator, left = best
    return part[separator], part[left & ~separator], part[~left & ~separator]


def _smooth(far: _Distances, fields: np.ndarray) -> np.ndarray:
    """Smooth fields on the part by damped averaging over neighbours, orthogonal to constants and to each other."""
    heads, tails = far.edges
    count = far.degree.size
    mean = sp.csr_matrix((0.5 / far.degree[heads], (heads, tails)), shape=(count, count))
    weights = far.degree / far.degree.sum()
    for i in range(_SMOOTHINGS):
        fields = 0.5 * fields + mean @ fields
        if i % 5 == 4:
            fields -= weights @ fields
            fields[:, 1] -= (
                fields[:, 0]
                * ((weights * fields[:, 0]) @ fields[:, 1])
                / ((weights * fields[:, 0]) @ fields[:, 0] + 1e-300)
            )
            fields /= np.abs(fields).max(axis=0) + 1e-300
    return fields


def width(graph: sp.csr_matrix) -> int:
    """Return the median size of breadth-first levels of a graph without hanging trees.

    Chains, rows of loops and trees are narrow; nets are wide.
    """
    starts, neighbours = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    inside = np.ones(graph.shape[0], dtype=np.int64)
    strip(starts, neighbours, np.diff(starts), inside, inside.size)
    widest = 0
    while (rest := np.flatnonzero(inside == 1)).size > widest:
        far = _Distances(rest, inside, 1, starts, neighbours)
        distance = far.of(int(rest[0]))
        here = distance >= 0
        distance = far.of(int(rest[np.argmax(distance)]))
        levels = np.sort(np.bincount(distance[here]))
        widest = max(widest, int(levels[levels.size // 2]))
        inside[rest[here]] = 0
    return widest


@lowered
def strip(starts: Integers, neighbours: Integers, degree: Integers, inside: Integers, count: int) -> None:
    """Remove vertices of degree one or zero repeatedly."""
    for vertex in range(count):
        at = vertex
        while at >= 0 and inside[at] == 1 and degree[at] <= 1:
            inside[at] = 0
            onward = -1
            for k in range(starts[at], starts[at + 1]):
                other = neighbours[k]
                if inside[other] == 1:
                    degree[other] -= 1
                    onward = other
            at = onward
