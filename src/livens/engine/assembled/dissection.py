"""Nested dissection: an order of the vertices of a graph in which separators come last.

With pymetis, if it is there; else by level sets, which do well on nets and lattices.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

#: Parts with fewer vertices than this are not divided any more.
_SMALL = 12
#: The larger of two parts has at most this share of the vertices, if that is possible.
_FAIR = 0.6


def nested_dissection(graph: sp.csr_matrix) -> np.ndarray:
    """Vertices in an order of elimination; `graph` is symmetric, and its diagonal does not count."""
    try:
        import pymetis
    except ImportError:
        return by_level_sets(graph)
    found, _ = pymetis.nested_dissection(xadj=graph.indptr.tolist(), adjncy=graph.indices.tolist())
    return np.asarray(found, dtype=np.int64)


def by_level_sets(graph: sp.csr_matrix) -> np.ndarray:
    """Divide by a level of the distance from a vertex at the edge, again and again."""
    starts, neighbours = graph.indptr, graph.indices
    inside = np.zeros(graph.shape[0], dtype=np.int64)  # the number of the part a vertex is in
    order: list[np.ndarray] = []
    parts = [np.arange(graph.shape[0])]
    number = 0
    while parts:  # the last part first: order is turned around in the end
        part = parts.pop()
        number += 1
        inside[part] = number
        levels = _levels(part, inside, number, starts, neighbours)
        if part.size <= _SMALL or len(levels) < 3:
            order.append(part[::-1])
            continue
        sizes = np.array([level.size for level in levels])
        below = np.cumsum(sizes) - sizes
        larger = np.maximum(below, part.size - below - sizes)  # of what lies on both sides of a level
        fair = larger <= max(_FAIR * part.size, larger[1:-1].min())
        fair[[0, -1]] = False
        cut = int(np.argmin(np.where(fair, sizes, part.size + 1)))
        reached = np.concatenate(levels)
        rest = part[~np.isin(part, reached)] if reached.size < part.size else part[:0]
        order.append(levels[cut][::-1])
        for side in (levels[:cut], [*levels[cut + 1 :], rest]):
            vertices = np.concatenate([*side, part[:0]])
            if vertices.size:
                parts.append(vertices)
    return np.concatenate(order)[::-1]


def _levels(
    part: np.ndarray, inside: np.ndarray, number: int, starts: np.ndarray, neighbours: np.ndarray
) -> list[np.ndarray]:
    """Vertices by their distance from one that is far away from the others."""
    begin = int(part[0])
    levels: list[np.ndarray] = []
    for _ in range(3):
        seen = {begin}
        levels = [np.array([begin])]
        while True:
            near: list[int] = []
            for vertex in levels[-1]:
                for other in neighbours[starts[vertex] : starts[vertex + 1]]:
                    if inside[other] == number and int(other) not in seen:
                        seen.add(int(other))
                        near.append(int(other))
            if not near:
                break
            levels.append(np.array(near))
        begin = int(levels[-1][0])
    return levels
