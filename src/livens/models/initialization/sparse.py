"""Consistent initial values of large systems with sparse matrices."""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse as sp

from livens.errors import InputError
from livens.models.base import InitialState
from livens.models.initialization.dense import (
    check_consistent,
    check_finite,
    gauss_newton_to_constraints,
    generically_dependent,
    project_position,
    project_velocity,
)
from livens.models.initialization.redundancy import (
    cached_redundancy,
    dependent_off_singularity,
    redundancy_error,
)
from livens.models.initialization.sparse_linalg import SparseConstraintJacobian, solve_if_regular, solve_regularized
from livens.models.numeric_assembly import NumericAssembly, SparseAssembledTerms
from livens.models.system import System


def sparse_initial_state(
    system: System, q: np.ndarray, v: np.ndarray, k: np.ndarray, t0: float, project: bool, redundant: str
) -> InitialState:
    """Return the consistent, complete initial state of a large system; see `initialization.dense.initial_state`."""
    assembly = NumericAssembly(system, t0, k)
    terms = assembly.assemble(q, v)
    check_finite(terms)
    if system.m:
        if project:
            q = project_position(assembly, q, system)
            v = project_velocity(assembly, q, v)
            terms = assembly.assemble(q, v)
        check_consistent(system, assembly, terms.g, terms.g_dot, terms.G, q, v)
    removed, multipliers = complete_multipliers(system, assembly, terms, q, v, redundant)
    return InitialState(t0, {"q": q, "v": v, "p": terms.p, "multipliers": multipliers}, removed)


def complete_multipliers(
    system: System, assembly: NumericAssembly, terms: SparseAssembledTerms, q: np.ndarray, v: np.ndarray, redundant: str
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the removed redundant constraints and the multipliers of the initial accelerations."""
    if not system.m:
        return (), np.zeros(0)
    rhs = np.concatenate([terms.force, -terms.bias])
    matrix = sp.block_array([[terms.M, terms.G.T], [terms.G, None]], format="csc")
    if not (np.isfinite(rhs).all() and np.isfinite(matrix.data).all()):
        raise InputError("accelerations cannot be evaluated at q0, v0: the result is not finite")
    solution = solve_if_regular(matrix, rhs)
    if solution is not None:
        return (), solution[system.n :]
    find = functools.partial(_removed_constraints, system, assembly, terms, q, v, redundant)
    removed = cached_redundancy(system, (q, v, assembly.k, assembly.t), redundant, find)
    keep = np.setdiff1d(np.arange(system.n + system.m), system.n + np.array(removed, dtype=np.int64))
    solution = np.zeros(system.n + system.m)
    solution[keep] = solve_regularized(matrix[keep][:, keep], rhs[keep], system.n)
    return removed, solution[system.n :]


def _removed_constraints(
    system: System, assembly: NumericAssembly, terms: SparseAssembledTerms, q: np.ndarray, v: np.ndarray, redundant: str
) -> tuple[int, ...]:
    if redundant == "auto" or system.frames:
        removed = _redundant_off_singularity(system, assembly, terms, q, v)
    else:
        candidates = set(dependent_rows(terms.G))
        removed = (
            tuple(sorted(generically_dependent(system, assembly, candidates, q, dependent_rows))) if candidates else ()
        )
    if removed and redundant == "error":
        raise redundancy_error(system, removed)
    return removed


def dependent_rows(G: sp.csr_matrix, protected: np.ndarray | None = None) -> list[int]:
    """Return the linearly dependent rows of a sparse matrix; see `SparseConstraintJacobian.dependent_rows`."""
    return SparseConstraintJacobian(G).dependent_rows(protected)


def _redundant_off_singularity(
    system: System, assembly: NumericAssembly, terms: SparseAssembledTerms, q: np.ndarray, v: np.ndarray
) -> tuple[int, ...]:
    """Return the redundant constraints at an offset from a singular configuration; see `initialization.redundancy`."""
    protected = np.zeros(system.m, dtype=bool)
    protected[[i for frame in system.frames for i in frame.constraints]] = True
    protected[list(system.tree_constraints())] = True

    def find_dependent(position: np.ndarray) -> tuple[int, ...]:
        G = terms.G if position is q else assembly.constraint_jacobian(position)
        return tuple(dependent_rows(G, protected if protected.any() else None))

    project_to_tangent = functools.partial(_project_to_tangent, SparseConstraintJacobian(terms.G))
    project = functools.partial(gauss_newton_to_constraints, assembly)
    return dependent_off_singularity(system, q, v, project_to_tangent, project, find_dependent)


def _project_to_tangent(jacobian: SparseConstraintJacobian, v: np.ndarray) -> np.ndarray:
    """Return the orthogonal projection of a velocity onto ker G."""
    return v - jacobian.min_norm_solve(jacobian.G @ v)
