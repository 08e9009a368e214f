"""LU factors by dense fronts, for nets and other systems whose fronts are all different.

Joints are glued to a body that has freedom left; such blocks have usable pivots on the diagonal in any order. The order
is that of nested dissection, which makes the fronts small.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from livens.engine.assembled.dissection import nested_dissection
from livens.engine.jit import jit

#: Fronts are joined if that stores at most this many more zeros for each of their rows.
_ZEROS = 12
#: Below this many products, a loop is as fast as a matrix product of the library.
_FEW_PRODUCTS = 256


class _Fronts(NamedTuple):
    """Fronts in the order of elimination, as arrays."""

    first: np.ndarray  # their first pivots
    pivots: np.ndarray  # how many they have
    boundary: np.ndarray  # how many unknowns they are coupled to
    row_starts: np.ndarray
    rows: np.ndarray  # these unknowns
    inside: np.ndarray  # and where they stand in the front of the parent
    entry_starts: np.ndarray
    entry_rows: np.ndarray
    entry_columns: np.ndarray
    child_starts: np.ndarray
    children: np.ndarray
    update_starts: np.ndarray
    factor_starts: np.ndarray


class Multifrontal:
    """Solves sparse equations of one pattern, with pivots on the diagonal in a fixed order."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray, block: np.ndarray, multiplier: np.ndarray) -> None:
        """`block` is the number of the block of each unknown; rows and columns are those of the nonzeros."""
        count = int(block.max()) + 1
        pairs = np.unique(np.concatenate([block[rows] * count + block[columns], block[columns] * count + block[rows]]))
        a, b = pairs // count, pairs % count
        graph = sp.csr_matrix((np.ones(int((a != b).sum())), (a[a != b], b[a != b])), shape=(count, count))
        rank = np.empty(count, dtype=np.int64)
        rank[nested_dissection(graph)] = np.arange(count)
        self._order = np.lexsort((np.arange(block.size), multiplier, rank[block]))
        at = np.empty(block.size, dtype=np.int64)
        at[self._order] = np.arange(block.size)
        sizes = np.bincount(rank[block], minlength=count)
        self._fronts, self._entries = _planned(at[rows], at[columns], sizes, rank, graph)
        f = self._fronts
        self._updates, self._factors = np.zeros(f.update_starts[-1] + 1), np.zeros(f.factor_starts[-1] + 1)
        self._work = np.zeros(int((f.pivots + f.boundary).max()) ** 2)
        self.products = float(np.sum(f.pivots * (f.pivots + f.boundary) ** 2))

    def solve(self, values: np.ndarray, r: np.ndarray) -> np.ndarray:
        """The solution for the values of the nonzeros; not finite where a pivot vanishes."""
        _factor(self._fronts, values[self._entries], self._updates, self._factors, self._work)
        y = r[self._order]
        _substitute(self._fronts, self._factors, y)
        found = np.empty_like(y)
        found[self._order] = y
        return found


def glued(multiplier: np.ndarray, body: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The block of every unknown: that of its body, and for multipliers one of a body that has freedom left."""
    block = body.copy()
    count = int(body.max(initial=-1)) + 1
    free = np.bincount(body[body >= 0], minlength=count).astype(np.int64)
    of_force = multiplier[columns] & ~multiplier[rows]
    near: dict[int, list[int]] = {}
    for unknown, other in zip(columns[of_force].tolist(), body[rows[of_force]].tolist(), strict=True):
        bodies = near.setdefault(unknown, [])
        if other not in bodies:
            bodies.append(other)
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


def _planned(
    rows: np.ndarray, columns: np.ndarray, sizes: np.ndarray, rank: np.ndarray, graph: sp.csr_matrix
) -> tuple[_Fronts, np.ndarray]:
    """Fronts, and which nonzero each of their entries is; rows and columns are numbered in the order of elimination."""
    count = sizes.size
    vertex = np.argsort(rank)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    structure: list[set[int]] = []
    children: list[list[int]] = [[] for _ in range(count)]
    parent = np.full(count, -1)
    for i in range(count):
        near = rank[graph.indices[graph.indptr[vertex[i]] : graph.indptr[vertex[i] + 1]]]
        own = {int(j) for j in near if j > i}
        for child in children[i]:
            own |= structure[child]
        own.discard(i)
        structure.append(own)
        if own:
            parent[i] = min(own)
            children[parent[i]].append(i)
    # blocks that follow each other become one front, if that stores few zeros
    groups: list[list[int]] = []
    for i in range(count):
        if groups and parent[i - 1] == i:
            more = int(sizes[i]) + sum(int(sizes[j]) for j in structure[i])
            if more - sum(int(sizes[j]) for j in structure[i - 1]) <= _ZEROS:
                groups[-1].append(i)
                continue
        groups.append([i])
    front_of = np.empty(count, dtype=np.int64)
    for s, group in enumerate(groups):
        front_of[group] = s
    first = np.array([starts[group[0]] for group in groups], dtype=np.int64)
    ends = np.array([starts[group[-1] + 1] for group in groups], dtype=np.int64)
    bounds = [
        np.concatenate([np.arange(starts[j], starts[j + 1]) for j in sorted(structure[group[-1]])] or [first[:0]])
        for group in groups
    ]
    boundary = np.array([b.size for b in bounds], dtype=np.int64)
    pivots = ends - first
    front_parent = np.array([front_of[parent[group[-1]]] if parent[group[-1]] >= 0 else -1 for group in groups])

    def place(s: int, unknowns: np.ndarray) -> np.ndarray:
        """Where unknowns stand in front s."""
        return np.where(unknowns < ends[s], unknowns - first[s], pivots[s] + np.searchsorted(bounds[s], unknowns))

    inside = [place(p, b) if p >= 0 else b for p, b in zip(front_parent, bounds, strict=True)]
    kids: list[list[int]] = [[] for _ in groups]
    for s, p in enumerate(front_parent):
        if p >= 0:
            kids[p].append(s)
    unknown_front = np.repeat(np.arange(len(groups)), pivots)
    owner = unknown_front[np.minimum(rows, columns)]
    entries = np.argsort(owner, kind="stable")
    entry_starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(groups)))])
    entry_rows, entry_columns = np.empty(entries.size, dtype=np.int64), np.empty(entries.size, dtype=np.int64)
    for s in range(len(groups)):
        here = slice(entry_starts[s], entry_starts[s + 1])
        entry_rows[here], entry_columns[here] = place(s, rows[entries[here]]), place(s, columns[entries[here]])

    def stacked(sizes: np.ndarray) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    none = np.zeros(0, dtype=np.int64)
    found = _Fronts(
        first,
        pivots,
        boundary,
        stacked(boundary),
        np.concatenate([*bounds, none]).astype(np.int64),
        np.concatenate([*inside, none]).astype(np.int64),
        entry_starts.astype(np.int64),
        entry_rows,
        entry_columns,
        stacked(np.array([len(k) for k in kids])),
        np.array([c for k in kids for c in k], dtype=np.int64),
        stacked(boundary**2),
        stacked(pivots * (pivots + 2 * boundary)),
    )
    return found, entries


@jit
def _factor(f: _Fronts, values: np.ndarray, updates: np.ndarray, factors: np.ndarray, work: np.ndarray) -> None:
    """Front by front: sum up, eliminate, and leave the rest to the parent."""
    for s in range(f.first.size):
        P, F = f.pivots[s], f.boundary[s]
        D = P + F
        A = work[: D * D].reshape(D, D)
        A[:, :] = 0.0
        for k in range(f.entry_starts[s], f.entry_starts[s + 1]):
            A[f.entry_rows[k], f.entry_columns[k]] += values[k]
        for c in range(f.child_starts[s], f.child_starts[s + 1]):
            child = f.children[c]
            g = f.boundary[child]
            place = f.inside[f.row_starts[child] : f.row_starts[child] + g]
            U = updates[f.update_starts[child] : f.update_starts[child] + g * g].reshape(g, g)
            for i in range(g):
                row = A[place[i]]
                for j in range(g):
                    row[place[j]] += U[i, j]
        o = f.factor_starts[s]
        upper = factors[o : o + P * P].reshape(P, P)
        right = factors[o + P * P : o + P * D].reshape(P, F)
        lower = factors[o + P * D : o + P * D + P * F].reshape(F, P)
        for i in range(P):
            row = A[i]
            for k in range(i):
                factor = row[k] * upper[k, k]
                row[k] = factor
                above = A[k]
                for j in range(k + 1, D):
                    row[j] -= factor * above[j]
            for j in range(P):
                upper[i, j] = row[j]
            upper[i, i] = 1.0 / row[i]
            for j in range(F):
                right[i, j] = row[P + j]
        for i in range(F):
            row, out = A[P + i], lower[i]
            for k in range(P):
                factor = row[k] * upper[k, k]
                out[k] = factor
                above = upper[k]
                for j in range(k + 1, P):
                    row[j] -= factor * above[j]
        if F:
            U = updates[f.update_starts[s] : f.update_starts[s] + F * F].reshape(F, F)
            if P * F >= _FEW_PRODUCTS:
                np.dot(lower, right, U)
                for i in range(F):
                    there, row = U[i], A[P + i]
                    for j in range(F):
                        there[j] = row[P + j] - there[j]
            else:
                for i in range(F):
                    there, row, out = U[i], A[P + i], lower[i]
                    for j in range(F):
                        there[j] = row[P + j]
                    for k in range(P):
                        factor, above = out[k], right[k]
                        for j in range(F):
                            there[j] -= factor * above[j]


@jit
def _substitute(f: _Fronts, factors: np.ndarray, y: np.ndarray) -> None:
    for s in range(f.first.size):
        P, F, a, o = f.pivots[s], f.boundary[s], f.first[s], f.factor_starts[s]
        upper = factors[o : o + P * P].reshape(P, P)
        lower = factors[o + P * (P + F) : o + P * (P + F) + P * F].reshape(F, P)
        for i in range(P):
            value = y[a + i]
            for k in range(i):
                value -= upper[i, k] * y[a + k]
            y[a + i] = value
        for i in range(F):
            value = 0.0
            for k in range(P):
                value += lower[i, k] * y[a + k]
            y[f.rows[f.row_starts[s] + i]] -= value
    for s in range(f.first.size - 1, -1, -1):
        P, F, a, o = f.pivots[s], f.boundary[s], f.first[s], f.factor_starts[s]
        upper = factors[o : o + P * P].reshape(P, P)
        right = factors[o + P * P : o + P * (P + F)].reshape(P, F)
        for i in range(P - 1, -1, -1):
            value = y[a + i]
            for j in range(F):
                value -= right[i, j] * y[f.rows[f.row_starts[s] + j]]
            for k in range(i + 1, P):
                value -= upper[i, k] * y[a + k]
            y[a + i] = value * upper[i, i]
