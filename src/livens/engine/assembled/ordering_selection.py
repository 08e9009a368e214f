"""Selection of the elimination order from a numeric sample, and its numeric test at another sample point.

Both sample points are the same for all runs of a model, so that a resumed run has the same order.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from livens.engine.assembled.assembly import Assembly, AssemblyWorkspace
from livens.engine.assembled.nested_dissection import level_width
from livens.engine.assembled.numeric_factorization import FACTOR, NumericFactorization, solve
from livens.engine.assembled.symbolic_analysis import EliminationPlan

#: Step size of the numeric sample, in seconds.
_SAMPLE_H = 2.0**-10
#: Maximum number of unknowns of the root front, which is solved as a dense matrix.
_MAX_ROOT = 200
#: Maximum level width of the graph of bodies for front classes; wider graphs use dense fronts, unless the largest dense
#: front has at most this many unknowns.
_MAX_LEVEL_WIDTH, _MAX_SMALL_FRONT = 12, 100
#: Code size in flops above which, and number of fronts per class below which, the compile time is not worthwhile.
_MAX_CODE, _MIN_FRONTS_PER_CLASS = 3000, 4.0
#: Maximum number of flops per unknown of dense fronts; beyond, SuperLU is faster.
_MAX_FLOPS_PER_UNKNOWN = 100_000
#: Relative variation of the sample between instances of one element type.
_SAMPLE_VARIATION = 0.05
#: Maximum backward error: residual of the linear solution relative to the terms of the residual. The bound is
#: independent of the condition of the matrix.
_MAX_BACKWARD_ERROR = 1e-9


def choose_elimination(assembly: Assembly, k: np.ndarray) -> EliminationPlan | None:
    """Return an elimination plan with usable pivots, or None if there is none."""
    workspace = AssemblyWorkspace(assembly, k)
    dense = EliminationPlan(assembly, None) if level_width(_body_graph(assembly)) > _MAX_LEVEL_WIDTH else None
    if dense is not None and dense.root.plan is not None and dense.root.plan.max_front <= _MAX_SMALL_FRONT:
        dense = None  # the fronts are small in spite of the width
    for seed, positive in ((1, False), (2, True)):
        if not _sample_jacobian(workspace, k, seed, positive):
            continue
        if dense is None:
            plan = EliminationPlan(assembly, workspace.pool)
            too_expensive = plan.code_size > _MAX_CODE and plan.fronts_per_class < _MIN_FRONTS_PER_CLASS
            has_small_root = plan.root.unknowns.size <= _MAX_ROOT
            if has_small_root and not too_expensive and _backward_error_ok(plan, assembly, k, seed + 10, positive):
                return plan
        plan = EliminationPlan(assembly, None) if dense is None else dense
        is_affordable = plan.flops <= _MAX_FLOPS_PER_UNKNOWN * assembly.plan.size
        if is_affordable and _backward_error_ok(plan, assembly, k, seed + 10, positive):
            return plan
    return None


def _body_graph(assembly: Assembly) -> sp.csr_matrix:
    """Return the graph of bodies that share an element."""
    plan = assembly.plan
    count = int(plan.body_index.max(initial=-1)) + 1
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for element_batch in plan.batches:
        bodies = plan.body_index[element_batch.unknown_dofs].T
        columns = [column for i, column in enumerate(bodies) if not i or (column != bodies[i - 1]).any()]
        for i, bodies_a in enumerate(columns):
            for bodies_b in columns[:i]:
                is_pair = (bodies_a != bodies_b) & (bodies_a >= 0) & (bodies_b >= 0)
                pairs += [np.stack([bodies_a[is_pair], bodies_b[is_pair]], axis=1)]
    edges = np.concatenate(pairs)
    edges = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    return sp.csr_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count))


def _sample_jacobian(workspace: AssemblyWorkspace, k: np.ndarray, seed: int, positive: bool) -> bool:
    """Evaluate the Jacobian at a sample point into the pool; return True if all values are finite."""
    x, z, c = _sample_point(workspace.assembly, k, seed, positive)
    history = np.zeros(workspace.assembly.plan.compensation_layout.size)
    return bool(np.all(np.isfinite(workspace.newton(x, z, history, c)[1])))


def _sample_point(
    assembly: Assembly, k: np.ndarray, seed: int, positive: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a sample point that is nearly equal for all instances of an element type.

    With independent random values, residuals would grow exponentially along a long row of loops, and no elimination
    order would be accepted.
    """
    random, plan = np.random.default_rng(seed), assembly.plan
    x, z = np.full(plan.size, np.nan), np.full(plan.layout.size, np.nan)
    for element_batch in plan.batches:
        if element_batch.name == "coordinates":
            continue
        for values, indices in ((x, element_batch.unknown_dofs), (z, element_batch.state_dofs)):
            for column in indices.T:
                unset = column[np.isnan(values[column])]
                values[unset] = random.normal()
    for values in (x, z):
        is_unset = np.isnan(values)
        values[is_unset] = random.normal(size=int(is_unset.sum()))
        values += _SAMPLE_VARIATION * random.normal(size=values.size)
    if positive:  # coordinates with roots or logarithms
        x, z = 0.1 * x, 0.5 + random.random(plan.layout.size)
    return x, z, np.concatenate([[_SAMPLE_H, 0.0], k])


def _backward_error_ok(plan: EliminationPlan, assembly: Assembly, k: np.ndarray, seed: int, positive: bool) -> bool:
    """Return True if the backward error of the solution at another sample point is small."""
    workspace = AssemblyWorkspace(assembly, k, plan.pool_size - int(assembly.pool_sizes[0]))
    factorization = NumericFactorization(plan, workspace)
    x, z, c = _sample_point(assembly, k, seed, positive)
    history = np.zeros(assembly.plan.compensation_layout.size)
    r, values = workspace.newton(x, z, history, c)
    dx = np.zeros(r.size)
    with np.errstate(all="ignore"):
        solve(factorization.arrays, FACTOR, workspace.pool, r[assembly.residual_gather.equations], dx)
        rows, columns, _ = assembly.pattern
        terms = values * dx[columns]
        residual = r - np.bincount(rows, terms, minlength=r.size)
        magnitude = np.abs(r) + np.bincount(rows, np.abs(terms), minlength=r.size)
        return bool(np.abs(residual).max() <= _MAX_BACKWARD_ERROR * magnitude.max())
