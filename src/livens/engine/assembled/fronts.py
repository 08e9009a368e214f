"""Elimination at work: factors, substitutions, and the core that is left, for one run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livens.engine.assembled.assembly import Bench
from livens.engine.assembled.elimination import Elimination
from livens.engine.assembled.indexed import FIRST, LAST, OFFSETS, WIDTH
from livens.engine.assembled.multifrontal import DenseFronts, dense_fronts, factor_fronts, substitute
from livens.engine.jit import jit
from livens.engine.newton import call

#: What is done with the batches: columns of their addresses.
FACTOR, KEEP, FORWARD, BACK, _BASE = range(5)


class FrontArrays(NamedTuple):
    """Everything the compiled elimination needs."""

    addresses: np.ndarray  # kernels of the batches, and where their outputs begin in the pool
    tables: np.ndarray
    growth: np.ndarray
    core: np.ndarray  # unknowns of the core
    rows: np.ndarray
    columns: np.ndarray
    positions: np.ndarray
    right: np.ndarray
    right_positions: np.ndarray
    matrix: np.ndarray  # room for the core
    pivots: np.ndarray
    y: np.ndarray
    rounds: np.ndarray  # where the batches of each round begin
    blocks: np.ndarray  # and how many blocks of fronts it has
    dense: DenseFronts  # of the core, if it has any


class Fronts:
    """Elimination with the arrays of one run; its fronts use the pool of a bench."""

    def __init__(self, elimination: Elimination, bench: Bench, threads: int = 1) -> None:
        self.elimination = e = elimination
        assert bench.pool.size >= e.pool_size
        self._factors = np.zeros(e.factor_size + WIDTH)
        self._codes = {id(made): {name: made.compile(name) for name in ("factor", "back")} for made in e.classes}
        #: Whether there is code for further corrections with the factors of the first.
        self.chords = False
        number = {id(made): i for i, made in enumerate(e.classes)}
        self._tables = e.tables
        addresses, tables = [], []
        for batch in e.batches:
            made = batch.of
            codes = self._codes[id(made)]
            addresses.append([codes["factor"].address, 0, 0, codes["back"].address, e.bases[id(made)]])
            factors = self._factors.ctypes.data + 8 * e.factor_bases[id(made)]
            index = e.tables[number[id(made)]].ctypes.data
            tables.append([batch.first, batch.stop, index, factors, 0, 0, *[0] * (OFFSETS - 6)])
        rounds = np.array([batch.round for batch in e.batches], dtype=np.int64)
        core, n = e.core, e.core.unknowns.size if e.core.plan is None else 0
        self.arrays = FrontArrays(
            np.array(addresses, dtype=np.int64).reshape(-1, 5),
            np.array(tables, dtype=np.int64).reshape(-1, OFFSETS),
            np.zeros(WIDTH),
            core.unknowns,
            core.rows,
            core.columns,
            core.positions,
            core.right,
            core.right_positions,
            np.zeros((n, n)),
            np.zeros(n, dtype=np.int64),
            np.zeros(n),
            np.concatenate([[0], np.cumsum(np.bincount(rounds, minlength=e.rounds))]).astype(np.int64),
            np.bincount(rounds, [b.stop - b.first for b in e.batches], minlength=e.rounds).astype(np.int64),
            dense_fronts(core.plan, core.positions, threads),
        )

    def enable_chords(self) -> None:
        """Compile what keeps factors and uses them again; most runs never need it."""
        for b, batch in enumerate(self.elimination.batches):
            codes = self._codes[id(batch.of)]
            for column, name in ((KEEP, "keep"), (FORWARD, "forward")):
                if name not in codes:
                    codes[name] = batch.of.compile(name)
                self.arrays.addresses[b, column] = codes[name].address
        self.chords = True


@jit
def dense_factors(A: np.ndarray, pivots: np.ndarray) -> None:
    """LU factors in place, with row pivoting; a singular matrix gives infinities."""
    n = A.shape[0]
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        pivots[k] = best
        if best != k:
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
        inverse = 1.0 / A[k, k]
        for i in range(k + 1, n):
            if A[i, k] != 0.0:
                factor = A[i, k] * inverse
                A[i, k] = factor
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]


@jit
def dense_solution(A: np.ndarray, pivots: np.ndarray, y: np.ndarray) -> None:
    """Solve in place with the factors of `dense_factors`."""
    n = A.shape[0]
    for k in range(n):
        best = pivots[k]
        y[k], y[best] = y[best], y[k]
    for k in range(n):
        for i in range(k + 1, n):
            y[i] -= A[i, k] * y[k]
    for k in range(n - 1, -1, -1):
        value = y[k]
        for j in range(k + 1, n):
            value -= A[k, j] * y[j]
        y[k] = value / A[k, k]


@jit
def eliminate(f: FrontArrays, how: int, first: int, stop: int, pool: np.ndarray, r: np.ndarray) -> None:
    """Batches from `first` to `stop`, one after the other."""
    p = pool.ctypes.data
    for b in range(first, stop):
        begin = p + 8 * f.addresses[b, _BASE]
        call(f.addresses[b, how], p, r.ctypes.data, f.growth.ctypes.data, f.tables[b].ctypes.data, begin)


@jit
def substitute_back(f: FrontArrays, first: int, stop: int, pool: np.ndarray, dx: np.ndarray) -> None:
    """The unknowns of these batches from those of their boundaries."""
    out, p = dx.ctypes.data, pool.ctypes.data
    for b in range(stop - 1, first - 1, -1):
        call(f.addresses[b, BACK], out, out, f.growth.ctypes.data, f.tables[b].ctypes.data, p)


@jit
def share_of_round(
    f: FrontArrays, how: int, first: int, stop: int, tables: np.ndarray, growth: np.ndarray, p: int, a: int
) -> None:
    """The share of one thread in some batches: elimination of right-hand sides at a, or back substitution into it."""
    for b in range(first, stop):
        if tables[b, FIRST] < tables[b, LAST]:
            if how == BACK:
                call(f.addresses[b, BACK], a, a, growth.ctypes.data, tables[b].ctypes.data, p)
            else:
                begin = p + 8 * f.addresses[b, _BASE]
                call(f.addresses[b, how], p, a, growth.ctypes.data, tables[b].ctypes.data, begin)


@jit
def solve_core(f: FrontArrays, how: int, pool: np.ndarray, r: np.ndarray, dx: np.ndarray) -> None:
    """What is left by the batches; dense fronts have been factorised."""
    n = f.core.size
    if f.dense.first.size:
        y = f.dense.y
        for i in range(n):
            y[i] = r[f.dense.order[i]]
        substitute(f.dense)
        for i in range(n):
            dx[f.dense.order[i]] = y[i]
    elif n:
        if how != FORWARD:
            f.matrix[:] = 0.0
            for k in range(f.positions.size):
                f.matrix[f.rows[k], f.columns[k]] += pool[f.positions[k]]
            dense_factors(f.matrix, f.pivots)
        for i in range(n):
            f.y[i] = r[f.core[i]]
        for k in range(f.right_positions.size):
            f.y[f.right[k]] += pool[f.right_positions[k]]
        dense_solution(f.matrix, f.pivots, f.y)
        for i in range(n):
            dx[f.core[i]] = f.y[i]


@jit
def solve_fronts(f: FrontArrays, how: int, pool: np.ndarray, r: np.ndarray, dx: np.ndarray) -> float:
    """``dx = J^-1 r`` of the Jacobian in the pool; the largest elimination factor.

    `how` is FACTOR, KEEP (so that other right-hand sides can follow), or FORWARD (with the factors that were kept).
    """
    f.growth[:] = 0.0
    eliminate(f, how, 0, f.addresses.shape[0], pool, r)
    if how != FORWARD:
        factor_fronts(f.dense, pool)
    solve_core(f, how, pool, r, dx)
    substitute_back(f, 0, f.addresses.shape[0], pool, dx)
    largest = 0.0
    for value in f.growth:
        largest = max(largest, value)
    return largest
