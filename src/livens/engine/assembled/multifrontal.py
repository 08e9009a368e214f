"""Dense multifrontal LU factorization, for nets and other systems whose fronts are all different.

A front assembles entries of the matrix and the updates of its children, eliminates its pivots with row pivoting among
their equations, and passes the Schur complement to its parent. Products are blocked by columns, see `gemm_kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.arrays import offsets
from livens.engine.assembled.dense_analysis import SymbolicFactorization
from livens.engine.assembled.gemm_kernels import LANES, gemm, gemm_sub, trsm_lower
from livens.engine.lowering.function import fast_lowered, lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I64Array, Struct

#: Subtrees are divided until no subtree has more than the work of a thread divided by this number.
_SUBTREES_PER_THREAD = 4
#: Panel width: columns eliminated before the trailing matrix is updated.
_PANEL = 32


@dataclass(frozen=True, eq=False)
class DenseFronts(Struct):
    """Arrays of the compiled factorization by dense fronts."""

    count: int
    kernels: I64Array  # addresses of gemm_sub, gemm and trsm_lower
    permutation: I64Array
    first_pivot: I64Array
    n_pivots: I64Array
    n_boundary: I64Array
    row_starts: I64Array
    rows: I64Array
    parent_rows: I64Array
    entry_starts: I64Array
    entry_rows: I64Array
    entry_columns: I64Array
    positions: I64Array  # of the entries in the pool
    child_starts: I64Array
    children: I64Array
    update_starts: I64Array
    factor_starts: I64Array
    updates: F64Array  # Schur complements for the parents
    factors: F64Array
    row_swaps: I64Array  # row exchanges
    owner: I64Array  # thread of each front; fronts shared by all threads come last
    front_size: int  # buffer size of one front
    front_buffers: F64Array  # buffer for one front per thread
    diag_blocks: F64Array  # buffers for two triangular blocks per thread
    sizes: I64Array  # sizes of the current product per thread
    y: F64Array
    boundary_values: F64Array


def make_dense_fronts(plan: SymbolicFactorization | None, positions: np.ndarray, threads: int = 1) -> DenseFronts:
    """Return the arrays of a symbolic factorization with entries at `positions` of a pool; empty for None."""
    empty = np.zeros(0, dtype=np.int64)
    if plan is None:
        plan = SymbolicFactorization._make([empty] * 4 + [np.zeros(1, dtype=np.int64)] + [empty] * 9)
        kernels = np.zeros(3, dtype=np.int64)
    else:
        kernels = np.array([code().address for code in (gemm_sub, gemm, trsm_lower)], dtype=np.int64)
    P, F = plan.n_pivots, plan.n_boundary
    max_front = plan.max_front
    front_size = (max_front + LANES) * stride_for(max_front)
    return DenseFronts(
        plan.first_pivot.size,
        kernels,
        plan.permutation,
        plan.first_pivot,
        P,
        F,
        plan.row_starts,
        plan.rows,
        plan.parent_rows,
        plan.entry_starts,
        plan.entry_rows,
        plan.entry_columns,
        positions[plan.entries].astype(np.int64),
        plan.child_starts,
        plan.children,
        offsets(F**2),
        offsets(P * (P + 2 * F)),
        np.zeros(int(np.sum(F**2)) + 1),
        np.zeros(int(np.sum(P * (P + 2 * F))) + 1),
        np.zeros(plan.permutation.size, dtype=np.int64),
        _assign_subtrees(plan, threads),
        front_size,
        np.zeros((threads, front_size)),
        np.zeros((threads, 2, LANES, LANES)),
        np.zeros((threads, 8), dtype=np.int64),
        np.zeros(plan.permutation.size),
        np.zeros(max_front),
    )


def _assign_subtrees(plan: SymbolicFactorization, threads: int) -> np.ndarray:
    """Assign independent subtrees of the elimination tree to threads, balancing the flop count."""
    P, F = plan.n_pivots.astype(float), plan.n_boundary.astype(float)
    work = P**3 / 3 + P**2 * F + P * F**2
    subtree_work = work.copy()
    children: list[list[int]] = [[] for _ in P]
    for s, parent in enumerate(plan.parent.tolist()):  # children come before their parents
        if parent >= 0:
            subtree_work[parent] += subtree_work[s]
            children[parent].append(s)
    roots = [int(s) for s in np.flatnonzero(plan.parent < 0)]
    owner, load = np.full(P.size, threads, dtype=np.int64), np.zeros(threads)
    subtrees = roots
    while subtrees and threads > 1:
        largest = max(subtrees, key=lambda s: (subtree_work[s], s))
        if (
            subtree_work[largest] <= subtree_work[roots].sum() / (_SUBTREES_PER_THREAD * threads)
            or not children[largest]
        ):
            break
        subtrees = [s for s in subtrees if s != largest] + children[largest]
    for root in sorted(subtrees, key=lambda s: (-subtree_work[s], s)):
        rank = int(np.argmin(load))
        load[rank] += subtree_work[root]
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
def factor_fronts(f: DenseFronts, pool: F64Array) -> None:
    """Factorise all fronts in order."""
    for s in range(f.count):
        _factor_front(f, s, pool, 0)


@lowered
def factor_owned(f: DenseFronts, pool: F64Array, owner: int, rank: int) -> None:
    """Factorise the fronts of an owner by one thread."""
    for s in range(f.count):
        if f.owner[s] == owner:
            _factor_front(f, s, pool, rank)


@lowered
def _factor_front(f: DenseFronts, s: int, pool: F64Array, rank: int) -> None:
    """Assemble a front, eliminate its pivots, and store factors and Schur complement."""
    P, D = f.n_pivots[s], f.n_pivots[s] + f.n_boundary[s]
    stride = _stride(D)
    A = f.front_buffers + rank * f.front_size
    _assemble_front(f, s, pool, A, D, stride)
    swaps = f.row_swaps + f.first_pivot[s]
    for panel_start in range(0, P, _PANEL):
        _eliminate_panel(f, rank, A, stride, P, D, panel_start, min(panel_start + _PANEL, P), swaps)
    _store_factors(f, s, A, stride)


@lowered
def _assemble_front(f: DenseFronts, s: int, pool: F64Array, A: F64Array, D: int, stride: int) -> None:
    for i in range((D + LANES) * stride):
        A[i] = 0.0
    for k in range(f.entry_starts[s], f.entry_starts[s + 1]):
        A[f.entry_rows[k] * stride + f.entry_columns[k]] += pool[f.positions[k]]
    for c in range(f.child_starts[s], f.child_starts[s + 1]):
        child = f.children[c]
        size = f.n_boundary[child]
        parent_rows = f.parent_rows + f.row_starts[child]
        for i in range(size):
            row, update = A + parent_rows[i] * stride, f.updates + (f.update_starts[child] + i * size)
            for j in range(size):
                row[parent_rows[j]] += update[j]


@lowered
def _eliminate_panel(
    f: DenseFronts,
    rank: int,
    A: F64Array,
    stride: int,
    P: int,
    D: int,
    panel_start: int,
    panel_stop: int,
    swaps: I64Array,
) -> None:
    """Eliminate the columns of a panel and update the trailing matrix."""
    lower = f.diag_blocks + rank * (2 * LANES * LANES)
    inverse, sizes = lower + LANES * LANES, f.sizes + rank * 8
    subtract, multiply, solve = f.kernels[0], f.kernels[1], f.kernels[2]
    boundary = A + P * stride
    for k in range(panel_start, panel_stop, LANES):
        stop = min(k + LANES, panel_stop)
        row, trailing = A + k * stride, A + stop * stride
        _eliminate_columns(A, stride, P, D, k, stop, swaps)
        _invert_diagonal_block(A, stride, k, stop, lower, inverse)
        # L of the boundary rows
        _apply_kernel(multiply, sizes, boundary + k, boundary + k, inverse, D - P, LANES, LANES, stride, LANES)
        if stop < panel_stop:
            _apply_kernel(solve, sizes, row + stop, A, lower, LANES, panel_stop - stop, LANES, stride, LANES)
            _apply_kernel(
                subtract,
                sizes,
                trailing + stop,
                trailing + k,
                row + stop,
                D - stop,
                panel_stop - stop,
                stop - k,
                stride,
                stride,
            )
    if panel_stop < D:
        trailing_row = A + (panel_start * stride + panel_stop)
        for k in range(panel_start, panel_stop, LANES):
            stop, row = min(k + LANES, panel_stop), A + k * stride
            if k > panel_start:
                _apply_kernel(
                    subtract,
                    sizes,
                    row + panel_stop,
                    row + panel_start,
                    trailing_row,
                    stop - k,
                    D - panel_stop,
                    k - panel_start,
                    stride,
                    stride,
                )
            _invert_diagonal_block(A, stride, k, stop, lower, inverse)
            _apply_kernel(solve, sizes, row + panel_stop, A, lower, LANES, D - panel_stop, LANES, stride, LANES)
        trailing = A + panel_stop * stride
        _apply_kernel(
            subtract,
            sizes,
            trailing + panel_stop,
            trailing + panel_start,
            trailing_row,
            D - panel_stop,
            D - panel_stop,
            panel_stop - panel_start,
            stride,
            stride,
        )


@lowered
def _apply_kernel(
    kernel: int,
    sizes: I64Array,
    C: F64Array,
    A: F64Array,
    B: F64Array,
    rows: int,
    columns: int,
    length: int,
    stride: int,
    b_stride: int,
) -> None:
    """Apply one of the kernels to submatrices."""
    if rows > 0 and columns > 0:
        sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = rows, columns, length, stride, b_stride
        call_kernel(kernel, C, A, B, sizes, 0)


@lowered
def _eliminate_columns(A: F64Array, stride: int, P: int, D: int, begin: int, end: int, swaps: I64Array) -> None:
    """Eliminate columns in the pivot rows with partial pivoting."""
    for k in range(begin, end):
        pivot_row = k
        for i in range(k + 1, P):
            if abs(A[i * stride + k]) > abs(A[pivot_row * stride + k]):
                pivot_row = i
        swaps[k] = pivot_row
        pivot_entries = A + k * stride
        if pivot_row != k:
            swapped = A + pivot_row * stride
            for j in range(D):
                pivot_entries[j], swapped[j] = swapped[j], pivot_entries[j]
        inverse = 1.0 / pivot_entries[k]
        for i in range(k + 1, P):
            row = A + i * stride
            factor = row[k] * inverse
            row[k] = factor
            for j in range(k + 1, end):
                row[j] -= factor * pivot_entries[j]


@lowered
def _invert_diagonal_block(A: F64Array, stride: int, begin: int, end: int, lower: F64Array, inverse: F64Array) -> None:
    """Store L of a diagonal block and the inverse of its U; blocks with fewer than eight columns are padded by ones."""
    n = end - begin
    block = A + (begin * stride + begin)
    for i in range(LANES):
        for j in range(LANES):
            diagonal = 1.0 if i == j else 0.0
            lower[i * LANES + j], inverse[i * LANES + j] = diagonal, diagonal
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
def _store_factors(f: DenseFronts, s: int, A: F64Array, stride: int) -> None:
    """Store the factors of a front and the Schur complement for its parent."""
    P, F = f.n_pivots[s], f.n_boundary[s]
    D = P + F
    upper, schur = f.factors + f.factor_starts[s], f.updates + f.update_starts[s]
    lower = upper + P * D
    for i in range(P):
        row, stored_row = A + i * stride, upper + i * D
        for j in range(D):
            stored_row[j] = row[j]
        stored_row[i] = 1.0 / row[i]
    for i in range(F):
        row, lower_row, schur_row = A + (P + i) * stride, lower + i * P, schur + i * F
        for j in range(P):
            lower_row[j] = row[j]
        for j in range(F):
            schur_row[j] = row[P + j]


@fast_lowered
def _dot(a: F64Array, b: F64Array, size: int) -> float:
    total = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


@lowered
def solve_dense_fronts(f: DenseFronts) -> None:
    """Solve for the right-hand side in y, in place."""
    y, boundary_values = f.y, f.boundary_values
    for s in range(f.count):
        P, F, a = f.n_pivots[s], f.n_boundary[s], f.first_pivot[s]
        D = P + F
        upper = f.factors + f.factor_starts[s]
        lower, pivot_values, rows = upper + P * D, y + a, f.rows + f.row_starts[s]
        for i in range(P):
            pivot_row = f.row_swaps[a + i]
            pivot_values[i], pivot_values[pivot_row] = pivot_values[pivot_row], pivot_values[i]
        for i in range(1, P):
            pivot_values[i] -= _dot(upper + i * D, pivot_values, i)
        for i in range(F):
            y[rows[i]] -= _dot(lower + i * P, pivot_values, P)
    for s in range(f.count - 1, -1, -1):
        P, F = f.n_pivots[s], f.n_boundary[s]
        D = P + F
        upper, pivot_values, rows = f.factors + f.factor_starts[s], y + f.first_pivot[s], f.rows + f.row_starts[s]
        for j in range(F):
            boundary_values[j] = y[rows[j]]
        for i in range(P - 1, -1, -1):
            row = upper + i * D
            substituted = _dot(row + P, boundary_values, F) + _dot(row + (i + 1), pivot_values + (i + 1), P - i - 1)
            pivot_values[i] = (pivot_values[i] - substituted) * row[i]
