"""Nested dissection: fill-reducing ordering of the vertices of a graph in which separators come last.

Uses pymetis if it is installed; otherwise separators from distances to landmarks, which suit nets and lattices.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from livens.engine.lowering.function import lowered
from livens.engine.lowering.types import I64Array

#: Number of vertices below which a part is not divided.
_MIN_PART = 8
#: Tested fractions of the vertices on one side of a separator.
_FRACTIONS = (0.4, 0.45, 0.5, 0.55, 0.6)
#: Imbalance penalty: relative increase of the score of a separator per excess of its larger side above one half.
_IMBALANCE_PENALTY = 2.0
#: Number of smoothing iterations of the fields before parts are divided along them.
_N_SMOOTHING = 40


def nested_dissection(graph: sp.csr_matrix) -> np.ndarray:
    """Return an elimination order of the vertices; `graph` is symmetric, and its diagonal is ignored."""
    try:
        import pymetis
    except ImportError:
        return landmark_dissection(graph)
    order, _ = pymetis.nested_dissection(pymetis.CSRAdjacency(graph.indptr.tolist(), graph.indices.tolist()))
    return np.asarray(order, dtype=np.int64)


def landmark_dissection(graph: sp.csr_matrix) -> np.ndarray:
    """Return a nested-dissection ordering by recursive bisection along differences of landmark distances."""
    starts, neighbours = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    count = graph.shape[0]
    part_of = np.zeros(count, dtype=np.int64)  # part index of each vertex
    order: list[np.ndarray] = []
    parts = [np.arange(count)]
    part_index = 0
    while parts:  # the last part first: the order is reversed at the end
        part = parts.pop()
        part_index += 1
        part_of[part] = part_index
        if part.size <= _MIN_PART:
            order.append(part[::-1])
            continue
        subgraph = _PartGraph(part, part_of, part_index, starts, neighbours)
        distance = subgraph.distances(int(part[0]))
        if (distance < 0).any():  # disconnected
            parts += [part[distance < 0], part[distance >= 0]]
            continue
        separator, side_a, side_b = _best_separator(part, subgraph, distance)
        if not side_a.size or not side_b.size:
            order.append(part[::-1])
            continue
        order.append(separator[::-1])
        parts += [side_a, side_b]
    return np.concatenate([*order, np.zeros(0, dtype=np.int64)])[::-1]


class _PartGraph:
    """Subgraph of a part: its edges and breadth-first distances."""

    def __init__(
        self, part: np.ndarray, part_of: np.ndarray, part_index: int, starts: np.ndarray, neighbours: np.ndarray
    ) -> None:
        self._part_of, self._part_index, self._starts, self._neighbours = part_of, part_index, starts, neighbours
        self._part, self._distance = part, np.full(part_of.size, -1, dtype=np.int64)
        sizes = starts[part + 1] - starts[part]
        edge_indices = np.repeat(starts[part] - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
        targets = neighbours[edge_indices]
        is_internal = part_of[targets] == part_index
        local = np.zeros(part_of.size, dtype=np.int64)
        local[part] = np.arange(part.size)
        #: Edges between vertices of the part by local index, in both directions.
        self.edges = np.repeat(np.arange(part.size), sizes)[is_internal], local[targets[is_internal]]
        self.degree = np.bincount(self.edges[0], minlength=part.size)

    def distances(self, vertex: int) -> np.ndarray:
        """Return the distances of the vertices of the part from one vertex; -1 for unreachable vertices."""
        self._distance[self._part] = -1
        queue = np.empty(self._part.size, dtype=np.int64)
        bfs(vertex, self._part_of, self._part_index, self._starts, self._neighbours, self._distance, queue)
        return self._distance[self._part]

    def pseudo_peripheral_vertex(self, distance: np.ndarray) -> int:
        """Return the vertex of largest distance; ties are broken by the smallest degree (pseudo-peripheral vertex)."""
        farthest = np.flatnonzero(distance == distance.max())
        return int(self._part[farthest[np.argmin(self.degree[farthest])]])


@lowered
def bfs(
    vertex: int,
    part_of: I64Array,
    part_index: int,
    starts: I64Array,
    neighbours: I64Array,
    distance: I64Array,
    queue: I64Array,
) -> None:
    queue[0], distance[vertex] = vertex, 0
    head, tail = 0, 1
    while head < tail:
        current = queue[head]
        head += 1
        for k in range(starts[current], starts[current + 1]):
            neighbour = neighbours[k]
            if part_of[neighbour] == part_index and distance[neighbour] < 0:
                distance[neighbour] = distance[current] + 1
                queue[tail] = neighbour
                tail += 1


def _best_separator(
    part: np.ndarray, subgraph: _PartGraph, distance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the separator with the best score and its two sides; one side is empty if there is none."""
    a = subgraph.distances(subgraph.pseudo_peripheral_vertex(distance))
    b = subgraph.distances(subgraph.pseudo_peripheral_vertex(a))
    c = subgraph.distances(subgraph.pseudo_peripheral_vertex(np.minimum(a, b)))
    d = subgraph.distances(subgraph.pseudo_peripheral_vertex(c))
    along, across = _smooth_fields(subgraph, np.stack([a - b, c - d], axis=1).astype(float)).T
    heads, tails = subgraph.edges
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for value in (along, across, along + across, along - across, a):
        ordered = np.sort(value)
        for limit in np.unique(ordered[[int(fraction * part.size) for fraction in _FRACTIONS]]):
            is_left = value < limit
            crossing = is_left[heads] & ~is_left[tails]
            for endpoints in (heads, tails):
                separator = np.zeros(part.size, dtype=bool)
                separator[endpoints[crossing]] = True
                size, n_left = int(separator.sum()), int((is_left & ~separator).sum())
                n_right = part.size - n_left - size
                score = size * (1.0 + _IMBALANCE_PENALTY * (max(n_left, n_right) / part.size - 0.5))
                if n_left and n_right and (best is None or score < best[0]):
                    best = score, separator, is_left
    if best is None:
        return part[:0], part, part[:0]
    _, separator, is_left = best
    return part[separator], part[is_left & ~separator], part[~is_left & ~separator]


def _smooth_fields(subgraph: _PartGraph, fields: np.ndarray) -> np.ndarray:
    """Smooth fields on the part by damped averaging over neighbours, orthogonal to constants and to each other."""
    heads, tails = subgraph.edges
    count = subgraph.degree.size
    mean = sp.csr_matrix((0.5 / subgraph.degree[heads], (heads, tails)), shape=(count, count))
    weights = subgraph.degree / subgraph.degree.sum()
    for i in range(_N_SMOOTHING):
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


def level_width(graph: sp.csr_matrix) -> int:
    """Return the median size of breadth-first levels of a graph without hanging trees.

    Chains, rows of loops and trees are narrow; nets are wide.
    """
    starts, neighbours = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    is_active = np.ones(graph.shape[0], dtype=np.int64)
    peel_leaves(starts, neighbours, np.diff(starts), is_active, is_active.size)
    widest = 0
    while (remaining := np.flatnonzero(is_active == 1)).size > widest:
        subgraph = _PartGraph(remaining, is_active, 1, starts, neighbours)
        distance = subgraph.distances(int(remaining[0]))
        is_reachable = distance >= 0
        distance = subgraph.distances(int(remaining[np.argmax(distance)]))
        levels = np.sort(np.bincount(distance[is_reachable]))
        widest = max(widest, int(levels[levels.size // 2]))
        is_active[remaining[is_reachable]] = 0
    return widest


@lowered
def peel_leaves(starts: I64Array, neighbours: I64Array, degree: I64Array, is_active: I64Array, count: int) -> None:
    """Remove vertices of degree one or zero repeatedly."""
    for vertex in range(count):
        current = vertex
        while current >= 0 and is_active[current] == 1 and degree[current] <= 1:
            is_active[current] = 0
            successor = -1
            for k in range(starts[current], starts[current + 1]):
                neighbour = neighbours[k]
                if is_active[neighbour] == 1:
                    degree[neighbour] -= 1
                    successor = neighbour
            current = successor
