"""Symbolic factorization by dense fronts: elimination tree, amalgamation, and index lists of the fronts.

Each multiplier is paired with a body that has a free degree of freedom, so that every diagonal block is nonsingular.
Nested dissection orders the blocks; fronts are amalgamated where one large front is faster than two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from livens.engine.arrays import offsets
from livens.engine.assembled.nested_dissection import nested_dissection

#: Cost model of a front for amalgamation, in nanoseconds: per call, per flop, per cleared entry, and per entry that is
#: assembled into the parent.
_COST_CALL, _COST_FLOP, _COST_ZERO, _COST_ASSEMBLE = 1000.0, 0.08, 0.3, 1.0
#: Additional cost per flop, relative, of fronts with few pivots.
_SMALL_PIVOT_PENALTY = 8.0


class SymbolicFactorization(NamedTuple):
    """Symbolic factorization: fronts in elimination order, as arrays; unknowns are numbered in that order."""

    permutation: np.ndarray  # permutation: original index of each unknown
    first_pivot: np.ndarray  # first pivot of each front
    n_pivots: np.ndarray  # number of pivots
    n_boundary: np.ndarray  # number of boundary unknowns
    row_starts: np.ndarray
    rows: np.ndarray  # boundary unknowns
    parent_rows: np.ndarray  # positions of boundary unknowns in the front of the parent
    entry_starts: np.ndarray
    entry_rows: np.ndarray  # positions of matrix entries in their front
    entry_columns: np.ndarray
    entries: np.ndarray  # indices of these entries
    child_starts: np.ndarray
    children: np.ndarray
    parent: np.ndarray

    @property
    def flops(self) -> float:
        """Number of flops of the factorization."""
        P, F = self.n_pivots.astype(float), self.n_boundary.astype(float)
        return float(np.sum(P**3 / 3 + P**2 * F + P * F**2))

    @property
    def max_front(self) -> int:
        """Number of unknowns of the largest front."""
        return int((self.n_pivots + self.n_boundary).max(initial=0))


def pair_multipliers_with_bodies(
    multiplier: np.ndarray, body: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Return the block of every unknown: its body, or for multipliers a body with a free degree of freedom."""
    block = body.copy()
    count = int(body.max(initial=-1)) + 1
    n_free_dofs = np.bincount(body[body >= 0], minlength=count).tolist()
    of_force = multiplier[columns] & ~multiplier[rows]
    pairs = np.unique(np.stack([columns[of_force], body[rows[of_force]]], axis=1), axis=0)
    bodies_of: dict[int, list[int]] = {}
    for unknown, neighbour in pairs.tolist():
        bodies_of.setdefault(unknown, []).append(neighbour)
    unknowns = np.flatnonzero(multiplier).tolist()
    for unknown in sorted(unknowns, key=lambda u: len(bodies_of.get(u, ()))):
        bodies = bodies_of.get(unknown, [])
        best = max(bodies, key=lambda b: n_free_dofs[b], default=-1)
        if best >= 0 and n_free_dofs[best] >= (1 if len(bodies) == 1 else 2):
            n_free_dofs[best] -= 1
            block[unknown] = best
        else:
            block[unknown], count = count, count + 1
    return block


def analyze(rows: np.ndarray, columns: np.ndarray, block: np.ndarray, multiplier: np.ndarray) -> SymbolicFactorization:
    """Analyse a matrix with entries at these rows and columns; `block` is the block index of each unknown."""
    count = int(block.max()) + 1
    pairs = np.unique(np.concatenate([block[rows] * count + block[columns], block[columns] * count + block[rows]]))
    a, b = pairs // count, pairs % count
    graph = sp.csr_matrix((np.ones(int((a != b).sum())), (a[a != b], b[a != b])), shape=(count, count))
    rank = np.empty(count, dtype=np.int64)
    rank[nested_dissection(graph)] = np.arange(count)
    sizes = np.bincount(rank[block], minlength=count)
    groups, coupled, parent = _elimination_tree(graph, rank, sizes)
    # blocks in the order of their fronts
    position = np.empty(count, dtype=np.int64)
    position[np.concatenate([np.array(group) for group in groups])] = np.arange(count)
    structure: list[list[int]] = [sorted(position[list(boundary_blocks)].tolist()) for boundary_blocks in coupled]
    order = np.lexsort((np.arange(block.size), multiplier, position[rank[block]]))
    new_index = np.empty(block.size, dtype=np.int64)
    new_index[order] = np.arange(block.size)
    new_sizes = np.empty(count, dtype=np.int64)
    new_sizes[position] = sizes
    starts = offsets(new_sizes)
    block_ends = np.cumsum([len(group) for group in groups])
    stop_pivot = starts[block_ends]
    first_pivot = np.concatenate([[0], stop_pivot[:-1]])
    return _pack(order, first_pivot, stop_pivot, starts, structure, parent, new_index[rows], new_index[columns])


def _front_cost(P: int, F: int) -> float:
    flops = P**3 / 3 + P**2 * F + P * F**2
    return (
        _COST_CALL
        + _COST_FLOP * flops * (1 + _SMALL_PIVOT_PENALTY / max(P, 1))
        + _COST_ZERO * (P + F) ** 2
        + _COST_ASSEMBLE * F**2
    )


def _elimination_tree(
    graph: sp.csr_matrix, rank: np.ndarray, sizes: np.ndarray
) -> tuple[list[list[int]], list[set[int]], np.ndarray]:
    """Return the amalgamated groups of blocks (children before parents), their boundaries, and their parents."""
    count = sizes.size
    vertex = np.argsort(rank)
    structure: list[set[int]] = []
    children: list[list[int]] = [[] for _ in range(count)]
    indptr, neighbours = graph.indptr, rank[graph.indices]
    for i in range(count):
        adjacent = neighbours[indptr[vertex[i]] : indptr[vertex[i] + 1]]
        row_structure = set(adjacent[adjacent > i].tolist())
        for child in children[i]:
            row_structure |= structure[child]
        row_structure.discard(i)
        structure.append(row_structure)
        if row_structure:
            children[min(row_structure)].append(i)
    weight = sizes.tolist()
    groups: list[list[int]] = [[i] for i in range(count)]
    pivots, bound = list(weight), [sum(weight[j] for j in row_structure_of) for row_structure_of in structure]
    for i in range(count):  # amalgamate children with their parent where that is faster
        remaining_children: list[int] = []
        for child in sorted(children[i], key=lambda c: (-bound[c], c)):
            merged_pivots = pivots[child] + pivots[i]
            if _front_cost(merged_pivots, bound[i]) <= _front_cost(pivots[child], bound[child]) + _front_cost(
                pivots[i], bound[i]
            ):
                groups[i] = groups[child] + groups[i]
                pivots[i] = merged_pivots
                remaining_children += children[child]
                groups[child] = []
            else:
                remaining_children.append(child)
        children[i] = sorted(remaining_children)
    ordered: list[int] = []
    stack = [i for i in range(count) if not structure[i]][::-1]
    while stack:  # parents before children, reversed below
        i = stack.pop()
        ordered.append(i)
        stack += children[i]
    ordered.reverse()
    front_index = {i: s for s, i in enumerate(ordered)}
    parent = np.full(len(ordered), -1, dtype=np.int64)
    for i in ordered:
        for child in children[i]:
            parent[front_index[child]] = front_index[i]
    return [groups[i] for i in ordered], [structure[i] for i in ordered], parent


def _pack(
    order: np.ndarray,
    first_pivot: np.ndarray,
    stop_pivot: np.ndarray,
    starts: np.ndarray,
    structure: list[list[int]],
    parent: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
) -> SymbolicFactorization:
    empty = np.zeros(0, dtype=np.int64)
    count, pivots = first_pivot.size, stop_pivot - first_pivot
    bounds = [np.concatenate([*(np.arange(starts[j], starts[j + 1]) for j in blocks), empty]) for blocks in structure]
    boundary = np.array([b.size for b in bounds], dtype=np.int64)

    def front_positions(s: int, unknowns: np.ndarray) -> np.ndarray:
        """Return the positions of unknowns in front s."""
        return np.where(
            unknowns < stop_pivot[s], unknowns - first_pivot[s], pivots[s] + np.searchsorted(bounds[s], unknowns)
        )

    parent_rows = [front_positions(p, b) if p >= 0 else b for p, b in zip(parent.tolist(), bounds, strict=True)]
    owner = np.repeat(np.arange(count), pivots)[np.minimum(rows, columns)]
    entries = np.argsort(owner, kind="stable")
    entry_starts = offsets(np.bincount(owner, minlength=count))
    entry_rows, entry_columns = np.empty(entries.size, dtype=np.int64), np.empty(entries.size, dtype=np.int64)
    for s in range(count):
        entry_range = slice(entry_starts[s], entry_starts[s + 1])
        entry_rows[entry_range], entry_columns[entry_range] = (
            front_positions(s, rows[entries[entry_range]]),
            front_positions(s, columns[entries[entry_range]]),
        )
    children = np.argsort(parent, kind="stable")
    children = children[parent[children] >= 0]
    return SymbolicFactorization(
        order.astype(np.int64),
        first_pivot.astype(np.int64),
        pivots.astype(np.int64),
        boundary,
        offsets(boundary),
        np.concatenate([*bounds, empty]).astype(np.int64),
        np.concatenate([*parent_rows, empty]).astype(np.int64),
        entry_starts,
        entry_rows,
        entry_columns,
        entries.astype(np.int64),
        offsets(np.bincount(parent[parent >= 0], minlength=count)),
        children.astype(np.int64),
        parent,
    )
