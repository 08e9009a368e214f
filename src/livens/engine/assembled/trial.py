"""Selection of the elimination order from a numeric sample, and its numeric test at another sample point.

Both sample points are the same for all runs of a model, so that a resumed run has the same order.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from livens.engine.assembled.assembly import Assembly, Bench
from livens.engine.assembled.dissection import width
from livens.engine.assembled.elimination import Elimination
from livens.engine.assembled.fronts import FACTOR, Fronts, solve_fronts

#: Step size of the numeric sample, in seconds.
_STEP = 2.0**-10
#: Maximum number of unknowns of the root front, which is solved as a dense matrix.
_LARGEST_CORE = 200
#: Maximum level width of the graph of bodies for front classes; wider graphs use dense fronts, unless the largest dense
#: front has at most this many unknowns.
_NARROW, _SMALL_FRONTS = 12, 100
#: Code size in flops above which, and number of fronts per class below which, the compile time is not worthwhile.
_MUCH_CODE, _LITTLE_REUSE = 3000, 4.0
#: Maximum number of flops per unknown of dense fronts; beyond, SuperLU is faster.
_MOST_PRODUCTS = 100_000
#: Relative variation of the sample between instances of one element type.
_NOISE = 0.05
#: Maximum backward error: residual of the linear solution relative to the terms of the residual. The bound is
#: independent of the condition of the matrix.
_GOOD = 1e-9


def planned(assembly: Assembly, k: np.ndarray) -> Elimination | None:
    """Return an elimination plan with usable pivots, or None if there is none."""
    bench = Bench(assembly, k)
    dense = Elimination(assembly, None) if width(_graph(assembly)) > _NARROW else None
    if dense is not None and dense.core.plan is not None and dense.core.plan.largest <= _SMALL_FRONTS:
        dense = None  # the fronts are small in spite of the width
    for seed, positive in ((1, False), (2, True)):
        if not _evaluated(bench, k, seed, positive):
            continue
        if dense is None:
            found = Elimination(assembly, bench.pool)
            dear = found.code > _MUCH_CODE and found.reuse < _LITTLE_REUSE
            small = found.core.unknowns.size <= _LARGEST_CORE
            if small and not dear and _works(found, assembly, k, seed + 10, positive):
                return found
        found = Elimination(assembly, None) if dense is None else dense
        few = found.products <= _MOST_PRODUCTS * assembly.pieces.size
        if few and _works(found, assembly, k, seed + 10, positive):
            return found
    return None


def _graph(assembly: Assembly) -> sp.csr_matrix:
    """Return the graph of bodies that share an element."""
    pieces = assembly.pieces
    count = int(pieces.body.max(initial=-1)) + 1
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for piece in pieces.pieces:
        bodies = pieces.body[piece.x].T
        columns = [column for i, column in enumerate(bodies) if not i or (column != bodies[i - 1]).any()]
        for i, one in enumerate(columns):
            for other in columns[:i]:
                chosen = (one != other) & (one >= 0) & (other >= 0)
                pairs += [np.stack([one[chosen], other[chosen]], axis=1)]
    both = np.concatenate(pairs)
    both = np.unique(np.concatenate([both, both[:, ::-1]]), axis=0)
    return sp.csr_matrix((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(count, count))


def _evaluated(bench: Bench, k: np.ndarray, seed: int, positive: bool) -> bool:
    """Evaluate the Jacobian at a sample point into the pool; return True if all values are finite."""
    x, z, c = _position(bench.assembly, k, seed, positive)
    memory = np.zeros(bench.assembly.pieces.memory.size)
    return bool(np.all(np.isfinite(bench.newton(x, z, memory, c)[1])))


def _position(
    assembly: Assembly, k: np.ndarray, seed: int, positive: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a sample point that is nearly equal for all instances of an element type.

    With independent random values, residuals would grow exponentially along a long row of loops, and no elimination
    order would be accepted.
    """
    random, pieces = np.random.default_rng(seed), assembly.pieces
    x, z = np.full(pieces.size, np.nan), np.full(pieces.layout.size, np.nan)
    for piece in pieces.pieces:
        if piece.name == "coordinates":
            continue
        for values, places in ((x, piece.x), (z, piece.z)):
            for column in places.T:
                free = column[np.isnan(values[column])]
                values[free] = random.normal()
    for values in (x, z):
        others = np.isnan(values)
        values[others] = random.normal(size=int(others.sum()))
        values += _NOISE * random.normal(size=values.size)
    if positive:  # coordinates with roots or logarithms
        x, z = 0.1 * x, 0.5 + random.random(pieces.layout.size)
    return x, z, np.concatenate([[_STEP, 0.0], k])


def _works(found: Elimination, assembly: Assembly, k: np.ndarray, seed: int, positive: bool) -> bool:
    """Return True if the backward error of the solution at another sample point is small."""
    bench = Bench(assembly, k, found.pool_size - int(assembly.tops[0]))
    fronts = Fronts(found, bench)
    x, z, c = _position(assembly, k, seed, positive)
    memory = np.zeros(assembly.pieces.memory.size)
    r, values = bench.newton(x, z, memory, c)
    dx = np.zeros(r.size)
    with np.errstate(all="ignore"):
        solve_fronts(fronts.arrays, FACTOR, bench.pool, r[assembly.row_sums.rows], dx)
        rows, columns, _ = assembly.pattern
        products = values * dx[columns]
        left = r - np.bincount(rows, products, minlength=r.size)
        size = np.abs(r) + np.bincount(rows, np.abs(products), minlength=r.size)
        return bool(np.abs(left).max() <= _GOOD * size.max())
