"""LU factors by dense fronts, for nets and other systems whose fronts are all different.

A front sums up entries of the matrix and what its children left, eliminates its own unknowns, with pivots among their
equations, and leaves the rest to its parent. Products are taken by blocks of columns, see `dense_kernels`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livens.engine.assembled.dense_kernels import LANES, multiply_by, solve_lower, subtract_product
from livens.engine.assembled.front_plan import FrontPlan
from livens.engine.jit import fast_jit, jit
from livens.engine.newton import call

#: The work is divided until no part is larger than that of a thread divided by this.
_PARTS = 4
#: Columns that are eliminated before all that is right of them is brought up to date.
_PANEL = 32


class DenseFronts(NamedTuple):
    """Everything the compiled elimination needs."""

    kernels: np.ndarray  # addresses: subtract a product, multiply, solve with a lower triangle
    order: np.ndarray
    first: np.ndarray
    pivots: np.ndarray
    boundary: np.ndarray
    row_starts: np.ndarray
    rows: np.ndarray
    inside: np.ndarray
    entry_starts: np.ndarray
    entry_rows: np.ndarray
    entry_columns: np.ndarray
    positions: np.ndarray  # of the entries in a pool
    child_starts: np.ndarray
    children: np.ndarray
    update_starts: np.ndarray
    factor_starts: np.ndarray
    updates: np.ndarray  # what fronts leave to their parents
    factors: np.ndarray
    swaps: np.ndarray  # row exchanges
    owner: np.ndarray  # the thread that eliminates a front; those of nobody come last
    front: np.ndarray  # for each thread, room for one front
    small: np.ndarray  # and for two triangles of a block of columns
    sizes: np.ndarray  # and the sizes of the product at work
    y: np.ndarray
    part: np.ndarray


def dense_fronts(plan: FrontPlan | None, positions: np.ndarray, threads: int = 1) -> DenseFronts:
    """Arrays for a plan, whose entries stand at `positions` of a pool; without a plan there are no fronts."""
    none = np.zeros(0, dtype=np.int64)
    if plan is None:
        plan = FrontPlan._make([none] * 4 + [np.zeros(1, dtype=np.int64)] + [none] * 9)
        kernels = np.zeros(3, dtype=np.int64)
    else:
        kernels = np.array([code().address for code in (subtract_product, multiply_by, solve_lower)], dtype=np.int64)
    P, F = plan.pivots, plan.boundary
    largest = plan.largest
    return DenseFronts(
        kernels,
        plan.order,
        plan.first,
        P,
        F,
        plan.row_starts,
        plan.rows,
        plan.inside,
        plan.entry_starts,
        plan.entry_rows,
        plan.entry_columns,
        positions[plan.entries].astype(np.int64),
        plan.child_starts,
        plan.children,
        np.concatenate([[0], np.cumsum(F**2)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(P * (P + 2 * F))]).astype(np.int64),
        np.zeros(int(np.sum(F**2)) + 1),
        np.zeros(int(np.sum(P * (P + 2 * F))) + 1),
        np.zeros(plan.order.size, dtype=np.int64),
        _owners(plan, threads),
        np.zeros((threads, (largest + LANES) * _stride(largest))),
        np.zeros((threads, 2, LANES, LANES)),
        np.zeros((threads, 8), dtype=np.int64),
        np.zeros(plan.order.size),
        np.zeros(largest),
    )


def _owners(plan: FrontPlan, threads: int) -> np.ndarray:
    """Who eliminates what: subtrees that do not depend on each other, in shares of about equal work."""
    P, F = plan.pivots.astype(float), plan.boundary.astype(float)
    work = P**3 / 3 + P**2 * F + P * F**2
    below = work.copy()
    children: list[list[int]] = [[] for _ in P]
    for s, parent in enumerate(plan.parent.tolist()):  # children come before their parents
        if parent >= 0:
            below[parent] += below[s]
            children[parent].append(s)
    roots = [int(s) for s in np.flatnonzero(plan.parent < 0)]
    owner, load = np.full(P.size, threads, dtype=np.int64), np.zeros(threads)
    subtrees = roots
    while subtrees and threads > 1:
        largest = max(subtrees, key=lambda s: (below[s], s))
        if below[largest] <= below[roots].sum() / (_PARTS * threads) or not children[largest]:
            break
        subtrees = [s for s in subtrees if s != largest] + children[largest]
    for root in sorted(subtrees, key=lambda s: (-below[s], s)):
        rank = int(np.argmin(load))
        load[rank] += below[root]
        stack = [root]
        while stack:
            s = stack.pop()
            owner[s] = rank
            stack += children[s]
    return owner


@jit
def _stride(size: int) -> int:
    """Numbers from one row of a front to the next: room for a tile at its end, and not a power of two."""
    stride = (size + 2 * LANES - 1) // LANES * LANES
    return stride + LANES if stride % 64 == 0 else stride


@jit
def factor_fronts(f: DenseFronts, pool: np.ndarray) -> None:
    """All fronts, one after the other."""
    for s in range(f.first.size):
        _factor_front(f, s, pool, 0)


@jit
def factor_share(f: DenseFronts, pool: np.ndarray, owner: int, rank: int) -> None:
    """The fronts of an owner, by a thread."""
    for s in range(f.first.size):
        if f.owner[s] == owner:
            _factor_front(f, s, pool, rank)


@jit
def _factor_front(f: DenseFronts, s: int, pool: np.ndarray, rank: int) -> None:
    """Sum up, eliminate, and leave the rest to the parent."""
    P, D = f.pivots[s], f.pivots[s] + f.boundary[s]
    stride = _stride(D)
    A = f.front[rank, : (D + LANES) * stride].reshape(D + LANES, stride)
    _sum_up(f, s, pool, A)
    swaps = f.swaps[f.first[s] : f.first[s] + P]
    for begin in range(0, P, _PANEL):
        _eliminate_panel(f, rank, A, P, D, begin, min(begin + _PANEL, P), swaps)
    _keep(f, s, A)


@jit
def _sum_up(f: DenseFronts, s: int, pool: np.ndarray, A: np.ndarray) -> None:
    A[:, :] = 0.0
    for k in range(f.entry_starts[s], f.entry_starts[s + 1]):
        A[f.entry_rows[k], f.entry_columns[k]] += pool[f.positions[k]]
    for c in range(f.child_starts[s], f.child_starts[s + 1]):
        child = f.children[c]
        size = f.boundary[child]
        place = f.inside[f.row_starts[child] : f.row_starts[child] + size]
        U = f.updates[f.update_starts[child] : f.update_starts[child] + size * size].reshape(size, size)
        for i in range(size):
            row, more = A[place[i]], U[i]
            for j in range(size):
                row[place[j]] += more[j]


@jit
def _eliminate_panel(
    f: DenseFronts, rank: int, A: np.ndarray, P: int, D: int, begin: int, end: int, swaps: np.ndarray
) -> None:
    """Eliminate the columns of a panel, and bring what is right of it and below up to date."""
    stride = A.shape[1]
    lower, inverse = f.small[rank, 0], f.small[rank, 1]
    for k in range(begin, end, LANES):
        stop = min(k + LANES, end)
        _pivots(A, P, D, k, stop, swaps)
        _triangles(A, k, stop, lower, inverse)
        # rows of the boundary: their part of L
        _product(f, rank, 1, A, P, k, A, P, k, inverse, 0, 0, D - P, LANES, LANES, stride)
        if stop < end:
            _product(f, rank, 2, A, k, stop, A, 0, 0, lower, 0, 0, LANES, end - stop, LANES, stride)
            _product(f, rank, 0, A, stop, stop, A, stop, k, A, k, stop, D - stop, end - stop, stop - k, stride)
    if end == D:
        return
    for k in range(begin, end, LANES):
        stop = min(k + LANES, end)
        if k > begin:
            _product(f, rank, 0, A, k, end, A, k, begin, A, begin, end, stop - k, D - end, k - begin, stride)
        _triangles(A, k, stop, lower, inverse)
        _product(f, rank, 2, A, k, end, A, 0, 0, lower, 0, 0, LANES, D - end, LANES, stride)
    _product(f, rank, 0, A, end, end, A, end, begin, A, begin, end, D - end, D - end, end - begin, stride)


@jit
def _product(
    f: DenseFronts,
    rank: int,
    which: int,
    C: np.ndarray,
    row: int,
    column: int,
    A: np.ndarray,
    a_row: int,
    a_column: int,
    B: np.ndarray,
    b_row: int,
    b_column: int,
    rows: int,
    columns: int,
    length: int,
    stride: int,
) -> None:
    """One of the kernels on parts of matrices that begin at the rows and columns given."""
    if rows <= 0 or columns <= 0:
        return
    sizes = f.sizes[rank]
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = rows, columns, length, stride, B.shape[1]
    call(
        f.kernels[which],
        C.ctypes.data + 8 * (row * stride + column),
        A.ctypes.data + 8 * (a_row * stride + a_column),
        B.ctypes.data + 8 * (b_row * B.shape[1] + b_column),
        sizes.ctypes.data,
        0,
    )


@jit
def _pivots(A: np.ndarray, P: int, D: int, begin: int, end: int, swaps: np.ndarray) -> None:
    """Eliminate a few columns in the rows of the pivots, the largest entry of each column first."""
    for k in range(begin, end):
        best = k
        for i in range(k + 1, P):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        swaps[k] = best
        if best != k:
            one, other = A[k], A[best]
            for j in range(D):
                one[j], other[j] = other[j], one[j]
        above, inverse = A[k], 1.0 / A[k, k]
        for i in range(k + 1, P):
            row = A[i]
            factor = row[k] * inverse
            row[k] = factor
            for j in range(k + 1, end):
                row[j] -= factor * above[j]


@jit
def _triangles(A: np.ndarray, begin: int, end: int, lower: np.ndarray, inverse: np.ndarray) -> None:
    """L of a block of columns, and the inverse of its U; where there are fewer than eight columns, ones are added."""
    n = end - begin
    for i in range(LANES):
        for j in range(LANES):
            one = 1.0 if i == j else 0.0
            lower[i, j], inverse[i, j] = one, one
    for i in range(n):
        for j in range(i):
            lower[i, j] = A[begin + i, begin + j]
    for j in range(n):
        inverse[j, j] = 1.0 / A[begin + j, begin + j]
        for i in range(j - 1, -1, -1):
            total = 0.0
            for k in range(i + 1, j + 1):
                total += A[begin + i, begin + k] * inverse[k, j]
            inverse[i, j] = -total / A[begin + i, begin + i]


@jit
def _keep(f: DenseFronts, s: int, A: np.ndarray) -> None:
    """Store the factors of a front, and what is left to its parent."""
    P, F, o = f.pivots[s], f.boundary[s], f.factor_starts[s]
    D = P + F
    upper = f.factors[o : o + P * D].reshape(P, D)
    lower = f.factors[o + P * D : o + P * D + P * F].reshape(F, P)
    rest = f.updates[f.update_starts[s] : f.update_starts[s] + F * F].reshape(F, F)
    for i in range(P):
        upper[i, :] = A[i, :D]
        upper[i, i] = 1.0 / A[i, i]
    for i in range(F):
        lower[i, :] = A[P + i, :P]
        rest[i, :] = A[P + i, P:D]


@fast_jit
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@jit
def substitute(f: DenseFronts) -> None:
    """Solve for the right-hand side in y, in place."""
    y = f.y
    for s in range(f.first.size):
        P, F, a, o = f.pivots[s], f.boundary[s], f.first[s], f.factor_starts[s]
        D = P + F
        upper = f.factors[o : o + P * D].reshape(P, D)
        lower = f.factors[o + P * D : o + P * D + P * F].reshape(F, P)
        own = y[a : a + P]
        for i in range(P):
            best = f.swaps[a + i]
            own[i], own[best] = own[best], own[i]
        for i in range(1, P):
            own[i] -= _dot(upper[i, :i], own[:i])
        start = f.row_starts[s]
        for i in range(F):
            y[f.rows[start + i]] -= _dot(lower[i], own)
    for s in range(f.first.size - 1, -1, -1):
        P, F, a, o = f.pivots[s], f.boundary[s], f.first[s], f.factor_starts[s]
        D, start = P + F, f.row_starts[s]
        upper = f.factors[o : o + P * D].reshape(P, D)
        own, others = y[a : a + P], f.part[:F]
        for j in range(F):
            others[j] = y[f.rows[start + j]]
        for i in range(P - 1, -1, -1):
            row = upper[i]
            own[i] = (own[i] - _dot(row[P:], others) - _dot(row[i + 1 : P], own[i + 1 :])) * row[i]
