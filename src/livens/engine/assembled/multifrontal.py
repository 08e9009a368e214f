"""Dense multifrontal LU factorization, for nets and other systems whose fronts are all different.

A front assembles entries of the matrix and the updates of its children, eliminates its pivots with row pivoting among
their equations, and passes the Schur complement to its parent. Products are blocked by columns, see `gemm_kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.dense_kernels import LANES, multiply_by, solve_lower, subtract_product
from livens.engine.assembled.front_plan import FrontPlan
from livens.engine.lowering.function import fast_lowered, lowered
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import call

#: Subtrees are divided until no subtree has more than the work of a thread divided by this number.
_PARTS = 4
#: Panel width: columns eliminated before the trailing matrix is updated.
_PANEL = 32


@dataclass(frozen=True, eq=False)
class DenseFronts(Record):
    """Arrays of the compiled factorization by dense fronts."""

    count: int
    kernels: Integers  # addresses of gemm_sub, gemm and trsm_lower
    order: Integers
    first: Integers
    pivots: Integers
    boundary: Integers
    row_starts: Integers
    rows: Integers
    inside: Integers
    entry_starts: Integers
    entry_rows: Integers
    entry_columns: Integers
    positions: Integers  # of the entries in the pool
    child_starts: Integers
    children: Integers
    update_starts: Integers
    factor_starts: Integers
    updates: Doubles  # Schur complements for the parents
    factors: Doubles
    swaps: Integers  # row exchanges
    owner: Integers  # thread of each front; fronts shared by all threads come last
    room: int  # buffer size of one front
    front: Doubles  # buffer for one front per thread
    small: Doubles  # buffers for two triangular blocks per thread
    sizes: Integers  # sizes of the current product per thread
    y: Doubles
    part: Doubles


def dense_fronts(plan: FrontPlan | None, positions: np.ndarray, threads: int = 1) -> DenseFronts:
    """Return the arrays of a symbolic factorization with entries at `positions` of a pool; empty for None."""
    none = np.zeros(0, dtype=np.int64)
    if plan is None:
        plan = FrontPlan._make([none] * 4 + [np.zeros(1, dtype=np.int64)] + [none] * 9)
        kernels = np.zeros(3, dtype=np.int64)
    else:
        kernels = np.array([code().address for code in (subtract_product, multiply_by, solve_lower)], dtype=np.int64)
    P, F = plan.pivots, plan.boundary
    largest = plan.largest
    room = (largest + LANES) * stride_for(largest)
    return DenseFronts(
        plan.first.size,
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
        room,
        np.zeros((threads, room)),
        np.zeros((threads, 2, LANES, LANES)),
        np.zeros((threads, 8), dtype=np.int64),
        np.zeros(plan.order.size),
        np.zeros(largest),
    )


def _owners(plan: FrontPlan, threads: int) -> np.ndarray:
    """Assign independent subtrees of the elimination tree to threads, balancing the flop count."""
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


def stride_for(size: int) -> int:
    """Return the row stride of a front: padded by a tile, and not a multiple of 64."""
    stride = (size + 2 * LANES - 1) // LANES * LANES
    return stride + LANES if stride % 64 == 0 else stride


_stride = lowered(stride_for)


@lowered
def factor_fronts(f: DenseFronts, pool: Doubles) -> None:
    """Factorise all fronts in order."""
    for s in range(f.count):
        _factor_front(f, s, pool, 0)


@lowered
def factor_share(f: DenseFronts, pool: Doubles, owner: int, rank: int) -> None:
    """Factorise the fronts of an owner by one thread."""
    for s in range(f.count):
        if f.owner[s] == owner:
            _factor_front(f, s, pool, rank)


@lowered
def _factor_front(f: DenseFronts, s: int, pool: Doubles, rank: int) -> None:
    """Assemble a front, eliminate its pivots, and store factors and Schur complement."""
    P, D = f.pivots[s], f.pivots[s] + f.boundary[s]
    stride = _stride(D)
    A = f.front + rank * f.room
    _sum_up(f, s, pool, A, D, stride)
    swaps = f.swaps + f.first[s]
    for begin in range(0, P, _PANEL):
        _eliminate_panel(f, rank, A, stride, P, D, begin, min(begin + _PANEL, P), swaps)
    _keep(f, s, A, stride)


@lowered
def _sum_up(f: DenseFronts, s: int, pool: Doubles, A: Doubles, D: int, stride: int) -> None:
    for i in range((D + LANES) * stride):
        A[i] = 0.0
    for k in range(f.entry_starts[s], f.entry_starts[s + 1]):
        A[f.entry_rows[k] * stride + f.entry_columns[k]] += pool[f.positions[k]]
    for c in range(f.child_starts[s], f.child_starts[s + 1]):
        child = f.children[c]
        size = f.boundary[child]
        place = f.inside + f.row_starts[child]
        for i in range(size):
            row, more = A + place[i] * stride, f.updates + (f.update_starts[child] + i * size)
            for j in range(size):
                row[place[j]] += more[j]


@lowered
def _eliminate_panel(
    f: DenseFronts, rank: int, A: Doubles, stride: int, P: int, D: int, begin: int, end: int, swaps: Integers
) -> None:
    """Eliminate the columns of a panel and update the trailing matrix."""
    lower = f.small + rank * (2 * LANES * LANES)
    inverse, sizes = lower + LANES * LANES, f.sizes + rank * 8
    subtract, multiply, solve = f.kernels[0], f.kernels[1], f.kernels[2]
    boundary = A + P * stride
    for k in range(begin, end, LANES):
        stop = min(k + LANES, end)
        row, below = A + k * stride, A + stop * stride
        _pivots(A, stride, P, D, k, stop, swaps)
        _triangles(A, stride, k, stop, lower, inverse)
        # L of the boundary rows
        _product(multiply, sizes, boundary + k, boundary + k, inverse, D - P, LANES, LANES, stride, LANES)
        if stop < end:
            _product(solve, sizes, row + stop, A, lower, LANES, end - stop, LANES, stride, LANES)
            _product(
                subtract, sizes, below + stop, below + k, row + stop, D - stop, end - stop, stop - k, stride, stride
            )
    if end < D:
        right = A + (begin * stride + end)
        for k in range(begin, end, LANES):
            stop, row = min(k + LANES, end), A + k * stride
            if k > begin:
                _product(subtract, sizes, row + end, row + begin, right, stop - k, D - end, k - begin, stride, stride)
            _triangles(A, stride, k, stop, lower, inverse)
            _product(solve, sizes, row + end, A, lower, LANES, D - end, LANES, stride, LANES)
        below = A + end * stride
        _product(subtract, sizes, below + end, below + begin, right, D - end, D - end, end - begin, stride, stride)


@lowered
def _product(
    kernel: int,
    sizes: Integers,
    C: Doubles,
    A: Doubles,
    B: Doubles,
    rows: int,
    columns: int,
    length: int,
    stride: int,
    b_stride: int,
) -> None:
    """Apply one of the kernels to submatrices."""
    if rows > 0 and columns > 0:
        sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = rows, columns, length, stride, b_stride
        call(kernel, C, A, B, sizes, 0)


@lowered
def _pivots(A: Doubles, stride: int, P: int, D: int, begin: int, end: int, swaps: Integers) -> None:
    """Eliminate columns in the pivot rows with partial pivoting."""
    for k in range(begin, end):
        best = k
        for i in range(k + 1, P):
            if abs(A[i * stride + k]) > abs(A[best * stride + k]):
                best = i
        swaps[k] = best
        above = A + k * stride
        if best != k:
            other = A + best * stride
            for j in range(D):
                above[j], other[j] = other[j], above[j]
        inverse = 1.0 / above[k]
        for i in range(k + 1, P):
            row = A + i * stride
            factor = row[k] * inverse
            row[k] = factor
            for j in range(k + 1, end):
                row[j] -= factor * above[j]


@lowered
def _triangles(A: Doubles, stride: int, begin: int, end: int, lower: Doubles, inverse: Doubles) -> None:
    """Store L of a diagonal block and the inverse of its U; blocks with fewer than eight columns are padded by ones."""
    n = end - begin
    block = A + (begin * stride + begin)
    for i in range(LANES):
        for j in range(LANES):
            one = 1.0 if i == j else 0.0
            lower[i * LANES + j], inverse[i * LANES + j] = one, one
    for i in range(n):
        for j in range(i):
            lower[i * LANES + j] = block[i * stride + j]
    for j in range(n):
        inverse[j * LANES + j] = 1.0 / block[j * stride + j]
        for i in range(j - 1, -1, -1):
            total = 0.0
            for k in range(i + 1, j + 1):
                total += block[i * stride + k] * inverse[k * LANES + j]
            inverse[i * LANES + j] = -total / block[i * stride + i]


@lowered
def _keep(f: DenseFronts, s: int, A: Doubles, stride: int) -> None:
    """Store the factors of a front and the Schur complement for its parent."""
    P, F = f.pivots[s], f.boundary[s]
    D = P + F
    upper, rest = f.factors + f.factor_starts[s], f.updates + f.update_starts[s]
    lower = upper + P * D
    for i in range(P):
        row, kept = A + i * stride, upper + i * D
        for j in range(D):
            kept[j] = row[j]
        kept[i] = 1.0 / row[i]
    for i in range(F):
        row, left, onward = A + (P + i) * stride, lower + i * P, rest + i * F
        for j in range(P):
            left[j] = row[j]
        for j in range(F):
            onward[j] = row[P + j]


@fast_lowered
def _dot(a: Doubles, b: Doubles, size: int) -> float:
    total = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


@lowered
def substitute(f: DenseFronts) -> None:
    """Solve for the right-hand side in y, in place."""
    y, others = f.y, f.part
    for s in range(f.count):
        P, F, a = f.pivots[s], f.boundary[s], f.first[s]
        D = P + F
        upper = f.factors + f.factor_starts[s]
        lower, own, rows = upper + P * D, y + a, f.rows + f.row_starts[s]
        for i in range(P):
            best = f.swaps[a + i]
            own[i], own[best] = own[best], own[i]
        for i in range(1, P):
            own[i] -= _dot(upper + i * D, own, i)
        for i in range(F):
            y[rows[i]] -= _dot(lower + i * P, own, P)
    for s in range(f.count - 1, -1, -1):
        P, F = f.pivots[s], f.boundary[s]
        D = P + F
        upper, own, rows = f.factors + f.factor_starts[s], y + f.first[s], f.rows + f.row_starts[s]
        for j in range(F):
            others[j] = y[rows[j]]
        for i in range(P - 1, -1, -1):
            row = upper + i * D
            known = _dot(row + P, others, F) + _dot(row + (i + 1), own + (i + 1), P - i - 1)
            own[i] = (own[i] - known) * row[i]
