"""Numeric factorization and solution for one run: fronts, substitutions, and the root front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.arrays import aligned_zeros, offsets
from livens.engine.assembled.assembly import AssemblyWorkspace
from livens.engine.assembled.front_types import FrontBatch
from livens.engine.assembled.indexed_emitter import FIRST_BLOCK, OFFSETS, STOP_BLOCK, WIDTH
from livens.engine.assembled.multifrontal import DenseFronts, factor_fronts, make_dense_fronts, solve_dense_fronts
from livens.engine.assembled.symbolic_analysis import EliminationPlan
from livens.engine.codegen.jit import NativeCode
from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I64Array, Struct

#: Operations on front batches: columns of their kernel addresses.
FACTOR, FACTOR_STORE, FORWARD, BACKWARD, _POOL_OFFSET, _COLUMNS = range(6)


@dataclass(frozen=True, eq=False)
class FactorizationArrays(Struct):
    """Arrays of the compiled factorization."""

    n_batches: int
    addresses: I64Array  # kernels of the batches, and pool offsets of their outputs
    tables: I64Array
    root_size: int
    root_unknowns: I64Array  # unknowns of the root front
    root_rows: I64Array  # positions of their equations in the residual
    n_entries: int
    rows: I64Array
    columns: I64Array
    positions: I64Array
    n_rhs_terms: int
    rhs_rows: I64Array
    rhs_positions: I64Array
    n_lower: int  # numbers of lower and upper diagonals of the root matrix
    n_upper: int
    matrix: F64Array  # buffer of the root matrix
    pivots: I64Array
    y: F64Array
    n_levels: int
    level_starts: I64Array  # first batch of each level
    level_blocks: I64Array  # number of blocks of fronts of each level
    dense: DenseFronts  # of the root, possibly empty


class NumericFactorization:
    """Numeric factorization of one run; the updates of its fronts are stored in the pool of a workspace."""

    def __init__(self, elimination: EliminationPlan, workspace: AssemblyWorkspace, threads: int = 1) -> None:
        self.elimination = e = elimination
        assert workspace.pool.size >= e.pool_size
        self._factors = aligned_zeros(e.factor_size + WIDTH)
        self._kernels: dict[tuple[int, str, bool], NativeCode] = {}
        #: True if the kernels of chord iterations (stored factors) are compiled.
        self.chords = False
        class_index = {id(front_class): i for i, front_class in enumerate(e.classes)}
        self._tables = e.tables
        addresses, tables = [], []
        for batch in e.batches:
            front_class = batch.front_class
            factor, backward = self._kernel(batch, "factor"), self._kernel(batch, "back")
            addresses.append([factor.address, 0, 0, backward.address, e.pool_offsets[id(front_class)]])
            factors = self._factors.ctypes.data + 8 * e.factor_offsets[id(front_class)]
            index = e.tables[class_index[id(front_class)]].ctypes.data
            tables.append([batch.first_block, batch.stop_block, index, factors, 0, 0, *[0] * (OFFSETS - 6)])
        levels = np.array([batch.level for batch in e.batches], dtype=np.int64)
        blocks = np.bincount(levels, [b.stop_block - b.first_block for b in e.batches], minlength=e.levels).astype(
            np.int64
        )
        root, n = e.root, e.root.unknowns.size if e.root.plan is None else 0
        self.arrays = FactorizationArrays(
            len(e.batches),
            np.array(addresses, dtype=np.int64).reshape(-1, 5),
            np.array(tables, dtype=np.int64).reshape(-1, OFFSETS),
            root.unknowns.size,
            root.unknowns.astype(np.int64),
            workspace.assembly.residual_gather.row_of[root.unknowns if root.plan is None else root.plan.permutation],
            root.positions.size,
            root.rows.astype(np.int64),
            root.columns.astype(np.int64),
            root.positions.astype(np.int64),
            root.rhs_positions.size,
            root.rhs_rows.astype(np.int64),
            root.rhs_positions.astype(np.int64),
            int(np.max(root.rows - root.columns, initial=0)),
            int(np.max(root.columns - root.rows, initial=0)),
            np.zeros((n, n)),
            np.zeros(n, dtype=np.int64),
            np.zeros(n),
            blocks.size,
            offsets(np.bincount(levels, minlength=e.levels)),
            blocks,
            make_dense_fronts(root.plan, root.positions, threads),
        )

    def enable_chords(self) -> None:
        """Compile the kernels that store and reuse factors (chord iteration); most runs do not need them."""
        for b, batch in enumerate(self.elimination.batches):
            for column, name in ((FACTOR_STORE, "keep"), (FORWARD, "forward")):
                self.arrays.addresses[b, column] = self._kernel(batch, name).address
        self.chords = True

    def _kernel(self, batch: FrontBatch, name: str) -> NativeCode:
        in_runs = batch.is_contiguous and name != "back"  # the backward kernel does not read contributions
        key = id(batch.front_class), name, in_runs
        if key not in self._kernels:
            self._kernels[key] = batch.front_class.compile(name, in_runs)
        return self._kernels[key]


def empty_factorization() -> FactorizationArrays:
    """Return arrays of a factorization without fronts."""
    no_indices, no_values = np.zeros(0, dtype=np.int64), np.zeros(0)
    empty = make_dense_fronts(None, no_indices)
    return FactorizationArrays(
        0,
        no_indices,
        np.zeros((0, OFFSETS), dtype=np.int64),
        0,
        no_indices,
        no_indices,
        0,
        no_indices,
        no_indices,
        no_indices,
        0,
        no_indices,
        no_indices,
        0,
        0,
        no_values,
        no_indices,
        no_values,
        0,
        np.zeros(1, dtype=np.int64),
        no_indices,
        empty,
    )


@lowered
def band_lu(A: F64Array, n: int, lower: int, upper: int, pivots: I64Array) -> None:
    """Compute the LU factors of a band matrix in place, with row pivoting; row exchanges add up to `lower` upper
    diagonals. A singular matrix gives infinities.
    """
    for k in range(n):
        pivot_row, row_stop, column_stop = k, min(k + lower + 1, n), min(k + lower + upper + 1, n)
        for i in range(k + 1, row_stop):
            if abs(A[i * n + k]) > abs(A[pivot_row * n + k]):
                pivot_row = i
        pivots[k] = pivot_row
        pivot_entries = A + k * n
        if pivot_row != k:
            swapped = A + pivot_row * n
            for j in range(k, column_stop):
                pivot_entries[j], swapped[j] = swapped[j], pivot_entries[j]
        inverse = 1.0 / pivot_entries[k]
        for i in range(k + 1, row_stop):
            row = A + i * n
            if row[k] != 0.0:
                factor = row[k] * inverse
                row[k] = factor
                for j in range(k + 1, column_stop):
                    row[j] -= factor * pivot_entries[j]


@lowered
def band_solve(A: F64Array, n: int, lower: int, upper: int, pivots: I64Array, y: F64Array) -> None:
    """Solve in place with the factors of `band_lu`."""
    for k in range(n):
        pivot_row = pivots[k]
        y[k], y[pivot_row] = y[pivot_row], y[k]
        for i in range(k + 1, min(k + lower + 1, n)):
            y[i] -= A[i * n + k] * y[k]
    for k in range(n - 1, -1, -1):
        value, row = y[k], A + k * n
        for j in range(k + 1, min(k + lower + upper + 1, n)):
            value -= row[j] * y[j]
        y[k] = value / row[k]


@lowered
def factor_batches(
    f: FactorizationArrays, operation: int, start: int, stop: int, tables: I64Array, pool: F64Array, r: F64Array
) -> None:
    """Factorise the batches from `start` to `stop` in order; the tables define the range of fronts."""
    for b in range(start, stop):
        codes, table = f.addresses + b * _COLUMNS, tables + b * OFFSETS
        if table[FIRST_BLOCK] < table[STOP_BLOCK]:
            call_kernel(codes[operation], pool, r, r, table, pool + codes[_POOL_OFFSET])


@lowered
def backward_batches(
    f: FactorizationArrays, start: int, stop: int, tables: I64Array, pool: F64Array, dx: F64Array
) -> None:
    """Compute the unknowns of batches from their boundaries (backward substitution)."""
    for b in range(stop - 1, start - 1, -1):
        table = tables + b * OFFSETS
        if table[FIRST_BLOCK] < table[STOP_BLOCK]:
            call_kernel(f.addresses[b * _COLUMNS + BACKWARD], dx, dx, dx, table, pool)


@lowered
def solve_root(f: FactorizationArrays, operation: int, pool: F64Array, r: F64Array, dx: F64Array) -> None:
    """Solve the root front; its dense fronts have been factorised before."""
    n = f.root_size
    if f.dense.count > 0:
        y, order = f.dense.y, f.dense.permutation
        for i in range(n):
            y[i] = r[f.root_rows[i]]
        solve_dense_fronts(f.dense)
        for i in range(n):
            dx[order[i]] = y[i]
    elif n > 0:
        A, y = f.matrix, f.y
        if operation != FORWARD:
            for i in range(n * n):
                A[i] = 0.0
            for k in range(f.n_entries):
                A[f.rows[k] * n + f.columns[k]] += pool[f.positions[k]]
            band_lu(A, n, f.n_lower, f.n_upper, f.pivots)
        for i in range(n):
            y[i] = r[f.root_rows[i]]
        for k in range(f.n_rhs_terms):
            y[f.rhs_rows[k]] += pool[f.rhs_positions[k]]
        band_solve(A, n, f.n_lower, f.n_upper, f.pivots, y)
        for i in range(n):
            dx[f.root_unknowns[i]] = y[i]


@lowered
def solve(f: FactorizationArrays, operation: int, pool: F64Array, r: F64Array, dx: F64Array) -> None:
    """Solve ``dx = J^-1 r`` with the Jacobian in the pool and r in the order of `ResidualGather`.

    `operation` is FACTOR, FACTOR_STORE (for further right-hand sides), or FORWARD (with stored factors).
    """
    factor_batches(f, operation, 0, f.n_batches, f.tables, pool, r)
    if operation != FORWARD:
        factor_fronts(f.dense, pool)
    solve_root(f, operation, pool, r, dx)
    backward_batches(f, 0, f.n_batches, f.tables, pool, dx)
