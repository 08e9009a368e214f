"""Numeric factorization and solution for one run: fronts, substitutions, and the root front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.assembly import Bench
from livens.engine.assembled.elimination import Elimination
from livens.engine.assembled.front_records import Batch
from livens.engine.assembled.indexed import FIRST, LAST, OFFSETS, WIDTH
from livens.engine.assembled.memory import aligned_zeros
from livens.engine.assembled.multifrontal import DenseFronts, dense_fronts, factor_fronts, substitute
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import call
from livens.engine.native import Code

#: Operations on front batches: columns of their kernel addresses.
FACTOR, KEEP, FORWARD, BACK, _BASE, _COLUMNS = range(6)


@dataclass(frozen=True, eq=False)
class FrontArrays(Record):
    """Arrays of the compiled factorization."""

    batches: int
    addresses: Integers  # kernels of the batches, and pool offsets of their outputs
    tables: Integers
    core_size: int
    core: Integers  # unknowns of the root front
    core_rows: Integers  # positions of their equations in the residual
    entries: int
    rows: Integers
    columns: Integers
    positions: Integers
    right_size: int
    right: Integers
    right_positions: Integers
    lower: int  # numbers of lower and upper diagonals of the root matrix
    upper: int
    matrix: Doubles  # buffer of the root matrix
    pivots: Integers
    y: Doubles
    round_count: int
    rounds: Integers  # first batch of each level
    blocks: Integers  # number of blocks of fronts of each level
    dense: DenseFronts  # of the root, possibly empty


class Fronts:
    """Numeric factorization of one run; the updates of its fronts are stored in the pool of a workspace."""

    def __init__(self, elimination: Elimination, bench: Bench, threads: int = 1) -> None:
        self.elimination = e = elimination
        assert bench.pool.size >= e.pool_size
        self._factors = aligned_zeros(e.factor_size + WIDTH)
        self._codes: dict[tuple[int, str, bool], Code] = {}
        #: True if the kernels of chord iterations (stored factors) are compiled.
        self.chords = False
        number = {id(made): i for i, made in enumerate(e.classes)}
        self._tables = e.tables
        addresses, tables = [], []
        for batch in e.batches:
            made = batch.of
            factor, back = self._code(batch, "factor"), self._code(batch, "back")
            addresses.append([factor.address, 0, 0, back.address, e.bases[id(made)]])
            factors = self._factors.ctypes.data + 8 * e.factor_bases[id(made)]
            index = e.tables[number[id(made)]].ctypes.data
            tables.append([batch.first, batch.stop, index, factors, 0, 0, *[0] * (OFFSETS - 6)])
        rounds = np.array([batch.round for batch in e.batches], dtype=np.int64)
        blocks = np.bincount(rounds, [b.stop - b.first for b in e.batches], minlength=e.rounds).astype(np.int64)
        core, n = e.core, e.core.unknowns.size if e.core.plan is None else 0
        self.arrays = FrontArrays(
            len(e.batches),
            np.array(addresses, dtype=np.int64).reshape(-1, 5),
            np.array(tables, dtype=np.int64).reshape(-1, OFFSETS),
            core.unknowns.size,
            core.unknowns.astype(np.int64),
            bench.assembly.row_sums.places[core.unknowns if core.plan is None else core.plan.order],
            core.positions.size,
            core.rows.astype(np.int64),
            core.columns.astype(np.int64),
            core.positions.astype(np.int64),
            core.right_positions.size,
            core.right.astype(np.int64),
            core.right_positions.astype(np.int64),
            int(np.max(core.rows - core.columns, initial=0)),
            int(np.max(core.columns - core.rows, initial=0)),
            np.zeros((n, n)),
            np.zeros(n, dtype=np.int64),
            np.zeros(n),
            blocks.size,
            np.concatenate([[0], np.cumsum(np.bincount(rounds, minlength=e.rounds))]).astype(np.int64),
            blocks,
            dense_fronts(core.plan, core.positions, threads),
        )

    def enable_chords(self) -> None:
        """Compile the kernels that store and reuse factors (chord iteration); most runs do not need them."""
        for b, batch in enumerate(self.elimination.batches):
            for column, name in ((KEEP, "keep"), (FORWARD, "forward")):
                self.arrays.addresses[b, column] = self._code(batch, name).address
        self.chords = True

    def _code(self, batch: Batch, name: str) -> Code:
        in_runs = batch.in_runs and name != "back"  # the backward kernel does not read contributions
        key = id(batch.of), name, in_runs
        if key not in self._codes:
            self._codes[key] = batch.of.compile(name, in_runs)
        return self._codes[key]


def no_fronts() -> FrontArrays:
    """Return arrays of a factorization without fronts."""
    whole, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
    empty = dense_fronts(None, whole)
    return FrontArrays(
        0,
        whole,
        np.zeros((0, OFFSETS), dtype=np.int64),
        0,
        whole,
        whole,
        0,
        whole,
        whole,
        whole,
        0,
        whole,
        whole,
        0,
        0,
        numbers,
        whole,
        numbers,
        0,
        np.zeros(1, dtype=np.int64),
        whole,
        empty,
    )


@lowered
def band_factors(A: Doubles, n: int, lower: int, upper: int, pivots: Integers) -> None:
    """Compute the LU factors of a band matrix in place, with row pivoting; row exchanges add up to `lower` upper
    diagonals. A singular matrix gives infinities.
    """
    for k in range(n):
        best, below, behind = k, min(k + lower + 1, n), min(k + lower + upper + 1, n)
        for i in range(k + 1, below):
            if abs(A[i * n + k]) > abs(A[best * n + k]):
                best = i
        pivots[k] = best
        above = A + k * n
        if best != k:
            other = A + best * n
            for j in range(k, behind):
                above[j], other[j] = other[j], above[j]
        inverse = 1.0 / above[k]
        for i in range(k + 1, below):
            row = A + i * n
            if row[k] != 0.0:
                factor = row[k] * inverse
                row[k] = factor
                for j in range(k + 1, behind):
                    row[j] -= factor * above[j]


@lowered
def band_solution(A: Doubles, n: int, lower: int, upper: int, pivots: Integers, y: Doubles) -> None:
    """Solve in place with the factors of `band_lu`."""
    for k in range(n):
        best = pivots[k]
        y[k], y[best] = y[best], y[k]
        for i in range(k + 1, min(k + lower + 1, n)):
            y[i] -= A[i * n + k] * y[k]
    for k in range(n - 1, -1, -1):
        value, row = y[k], A + k * n
        for j in range(k + 1, min(k + lower + upper + 1, n)):
            value -= row[j] * y[j]
        y[k] = value / row[k]


@lowered
def eliminate(f: FrontArrays, how: int, first: int, stop: int, tables: Integers, pool: Doubles, r: Doubles) -> None:
    """Factorise the batches from `start` to `stop` in order; the tables define the range of fronts."""
    for b in range(first, stop):
        codes, table = f.addresses + b * _COLUMNS, tables + b * OFFSETS
        if table[FIRST] < table[LAST]:
            call(codes[how], pool, r, r, table, pool + codes[_BASE])


@lowered
def substitute_back(f: FrontArrays, first: int, stop: int, tables: Integers, pool: Doubles, dx: Doubles) -> None:
    """Compute the unknowns of batches from their boundaries (backward substitution)."""
    for b in range(stop - 1, first - 1, -1):
        table = tables + b * OFFSETS
        if table[FIRST] < table[LAST]:
            call(f.addresses[b * _COLUMNS + BACK], dx, dx, dx, table, pool)


@lowered
def solve_core(f: FrontArrays, how: int, pool: Doubles, r: Doubles, dx: Doubles) -> None:
    """Solve the root front; its dense fronts have been factorised before."""
    n = f.core_size
    if f.dense.count > 0:
        y, order = f.dense.y, f.dense.order
        for i in range(n):
            y[i] = r[f.core_rows[i]]
        substitute(f.dense)
        for i in range(n):
            dx[order[i]] = y[i]
    elif n > 0:
        A, y = f.matrix, f.y
        if how != FORWARD:
            for i in range(n * n):
                A[i] = 0.0
            for k in range(f.entries):
                A[f.rows[k] * n + f.columns[k]] += pool[f.positions[k]]
            band_factors(A, n, f.lower, f.upper, f.pivots)
        for i in range(n):
            y[i] = r[f.core_rows[i]]
        for k in range(f.right_size):
            y[f.right[k]] += pool[f.right_positions[k]]
        band_solution(A, n, f.lower, f.upper, f.pivots, y)
        for i in range(n):
            dx[f.core[i]] = y[i]


@lowered
def solve_fronts(f: FrontArrays, how: int, pool: Doubles, r: Doubles, dx: Doubles) -> None:
    """Solve ``dx = J^-1 r`` with the Jacobian in the pool and r in the order of `ResidualGather`.

    `operation` is FACTOR, FACTOR_STORE (for further right-hand sides), or FORWARD (with stored factors).
    """
    eliminate(f, how, 0, f.batches, f.tables, pool, r)
    if how != FORWARD:
        factor_fronts(f.dense, pool)
    solve_core(f, how, pool, r, dx)
    substitute_back(f, 0, f.batches, f.tables, pool, dx)
