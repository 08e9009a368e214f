"""Symbolic factorization by dense fronts: elimination tree, amalgamation, and index lists of the fronts.

Each multiplier is paired with a body that has a free degree of freedom, so that every diagonal block is nonsingular.
Nested dissection orders the blocks; fronts are amalgamated where one large front is faster than two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from livens.engine.assembled.dissection import nested_dissection

#: Cost model of a front for amalgamation, in nanoseconds: per call, per flop, per cleared entry, and per entry that is
#: assembled into the parent.
_ONCE, _PRODUCT, _CLEAR, _HAND_ON = 1000.0, 0.08, 0.3, 1.0
#: Additional cost per flop, relative, of fronts with few pivots.
_FEW_PIVOTS = 8.0


class FrontPlan(NamedTuple):
    """Symbolic factorization: fronts in elimination order, as arrays; unknowns are numbered in that order."""

    order: np.ndarray  # permutation: original index of each unknown
    first: np.ndarray  # first pivot of each front
    pivots: np.ndarray  # number of pivots
    boundary: np.ndarray  # number of boundary unknowns
    row_starts: np.ndarray
    rows: np.ndarray  # boundary unknowns
    inside: np.ndarray  # positions of boundary unknowns in the front of the parent
    entry_starts: np.ndarray
    entry_rows: np.ndarray  # positions of matrix entries in their front
    entry_columns: np.ndarray
    entries: np.ndarray  # indices of these entries
    child_starts: np.ndarray
    children: np.ndarray
    parent: np.ndarray

    @property
    def products(self) -> float:
        """Number of flops of the factorization."""
        P, F = self.pivots.astype(float), self.boundary.astype(float)
        return float(np.sum(P**3 / 3 + P**2 * F + P * F**2))

    @property
    def largest(self) -> int:
        """Number of unknowns of the largest front."""
        return int((self.pivots + self.boundary).max(initial=0))


def glued(multiplier: np.ndarray, body: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the block of every unknown: its body, or for multipliers a body with a free degree of freedom."""
    block = body.copy()
    count = int(body.max(initial=-1)) + 1
    free = np.bincount(body[body >= 0], minlength=count).tolist()
    of_force = multiplier[columns] & ~multiplier[rows]
    pairs = np.unique(np.stack([columns[of_force], body[rows[of_force]]], axis=1), axis=0)
    near: dict[int, list[int]] = {}
    for unknown, other in pairs.tolist():
        near.setdefault(unknown, []).append(other)
    unknowns = np.flatnonzero(multiplier).tolist()
    for unknown in sorted(unknowns, key=lambda u: len(near.get(u, ()))):
        bodies = near.get(unknown, [])
        best = max(bodies, key=lambda b: free[b], default=-1)
        if best >= 0 and free[best] >= (1 if len(bodies) == 1 else 2):
            free[best] -= 1
            block[unknown] = best
        else:
            block[unknown], count = count, count + 1
    return block


def planned_fronts(rows: np.ndarray, columns: np.ndarray, block: np.ndarray, multiplier: np.ndarray) -> FrontPlan:
    """Analyse a matrix with entries at these rows and columns; `block` is the block index of each unknown."""
    count = int(block.max()) + 1
    pairs = np.unique(np.concatenate([block[rows] * count + block[columns], block[columns] * count + block[rows]]))
    a, b = pairs // count, pairs % count
    graph = sp.csr_matrix((np.ones(int((a != b).sum())), (a[a != b], b[a != b])), shape=(count, count))
    rank = np.empty(count, dtype=np.int64)
    rank[nested_dissection(graph)] = np.arange(count)
    sizes = np.bincount(rank[block], minlength=count)
    groups, coupled, parent = _fronts(graph, rank, sizes)
    # blocks in the order of their fronts
    place = np.empty(count, dtype=np.int64)
    place[np.concatenate([np.array(group) for group in groups])] = np.arange(count)
    structure: list[list[int]] = [sorted(place[list(there)].tolist()) for there in coupled]
    order = np.lexsort((np.arange(block.size), multiplier, place[rank[block]]))
    at = np.empty(block.size, dtype=np.int64)
    at[order] = np.arange(block.size)
    new_sizes = np.empty(count, dtype=np.int64)
    new_sizes[place] = sizes
    starts = np.concatenate([[0], np.cumsum(new_sizes)])
    block_ends = np.cumsum([len(group) for group in groups])
    ends = starts[block_ends]
    first = np.concatenate([[0], ends[:-1]])
    return _arrays(order, first, ends, starts, structure, parent, at[rows], at[columns])


def _cost(P: int, F: int) -> float:
    products = P**3 / 3 + P**2 * F + P * F**2
    return _ONCE + _PRODUCT * products * (1 + _FEW_PIVOTS / max(P, 1)) + _CLEAR * (P + F) ** 2 + _HAND_ON * F**2


def _fronts(
    graph: sp.csr_matrix, rank: np.ndarray, sizes: np.ndarray
) -> tuple[list[list[int]], list[set[int]], np.ndarray]:
    """Return the amalgamated groups of blocks (children before parents), their boundaries, and their parents."""
    count = sizes.size
    vertex = np.argsort(rank)
    structure: list[set[int]] = []
    children: list[list[int]] = [[] for _ in range(count)]
    indptr, neighbours = graph.indptr, rank[graph.indices]
    for i in range(count):
        near = neighbours[indptr[vertex[i]] : indptr[vertex[i] + 1]]
        own = set(near[near > i].tolist())
        for child in children[i]:
            own |= structure[child]
        own.discard(i)
        structure.append(own)
        if own:
            children[min(own)].append(i)
    weight = sizes.tolist()
    groups: list[list[int]] = [[i] for i in range(count)]
    pivots, bound = list(weight), [sum(weight[j] for j in there) for there in structure]
    for i in range(count):  # amalgamate children with their parent where that is faster
        kept: list[int] = []
        for child in sorted(children[i], key=lambda c: (-bound[c], c)):
            joined = pivots[child] + pivots[i]
            if _cost(joined, bound[i]) <= _cost(pivots[child], bound[child]) + _cost(pivots[i], bound[i]):
                groups[i] = groups[child] + groups[i]
                pivots[i] = joined
                kept += children[child]
                groups[child] = []
            else:
                kept.append(child)
        children[i] = sorted(kept)
    ordered: list[int] = []
    stack = [i for i in range(count) if not structure[i]][::-1]
    while stack:  # parents before children, reversed below
        i = stack.pop()
        ordered.append(i)
        stack += children[i]
    ordered.reverse()
    number = {i: s for s, i in enumerate(ordered)}
    parent = np.full(len(ordered), -1, dtype=np.int64)
    for i in ordered:
        for child in children[i]:
            parent[number[child]] = number[i]
    return [groups[i] for i in ordered], [structure[i] for i in ordered], parent


def _arrays(
    order: np.ndarray,
    first: np.ndarray,
    ends: np.ndarray,
    starts: np.ndarray,
    structure: list[list[int]],
    parent: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
) -> FrontPlan:
    none = np.zeros(0, dtype=np.int64)
    count, pivots = first.size, ends - first
    bounds = [np.concatenate([*(np.arange(starts[j], starts[j + 1]) for j in there), none]) for there in structure]
    boundary = np.array([b.size for b in bounds], dtype=np.int64)

    def place(s: int, unknowns: np.ndarray) -> np.ndarray:
        """Return the positions of unknowns in front s."""
        return np.where(unknowns < ends[s], unknowns - first[s], pivots[s] + np.searchsorted(bounds[s], unknowns))

    inside = [place(p, b) if p >= 0 else b for p, b in zip(parent.tolist(), bounds, strict=True)]
    owner = np.repeat(np.arange(count), pivots)[np.minimum(rows, columns)]
    entries = np.argsort(owner, kind="stable")
    entry_starts = _stacked(np.bincount(owner, minlength=count))
    entry_rows, entry_columns = np.empty(entries.size, dtype=np.int64), np.empty(entries.size, dtype=np.int64)
    for s in range(count):
        here = slice(entry_starts[s], entry_starts[s + 1])
        entry_rows[here], entry_columns[here] = place(s, rows[entries[here]]), place(s, columns[entries[here]])
    children = np.argsort(parent, kind="stable")
    children = children[parent[children] >= 0]
    return FrontPlan(
        order.astype(np.int64),
        first.astype(np.int64),
        pivots.astype(np.int64),
        boundary,
        _stacked(boundary),
        np.concatenate([*bounds, none]).astype(np.int64),
        np.concatenate([*inside, none]).astype(np.int64),
        entry_starts,
        entry_rows,
        entry_columns,
        entries.astype(np.int64),
        _stacked(np.bincount(parent[parent >= 0], minlength=count)),
        children.astype(np.int64),
        parent,
    )


def _stacked(sizes: np.ndarray) -> np.ndarray:
    """Return the offsets of contiguous segments of these sizes."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
