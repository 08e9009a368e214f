"""Index test of multibody equations by the regularity of ``G Z M^-1 Z^T G^T`` (Symank 2025 theorem 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.linalg import dependent_rows

if TYPE_CHECKING:
    from livens.models.multibody_equations import MultibodyEquations

#: Reciprocal condition number of Gamma, scaled to unit diagonal, below which it is singular.
_RCOND_SINGULAR = 1e-10


@dataclass(frozen=True)
class IndexTest:
    """Result of the index test with ``Gamma = G Z M^-1 Z^T G^T``; see `MultibodyEquations.index_test`."""

    #: Gamma, of shape (n_constraints, n_constraints).
    gamma: np.ndarray
    #: Reciprocal condition number of Gamma scaled to unit diagonal: 1 is best, 0 is singular.
    rcond: float
    #: Constraints that depend on others at this configuration, or have a zero Jacobian.
    dependent_constraints: tuple[int, ...]
    #: Differentiation index: 3 with independent constraints, 1 or 0 without constraints; None if Gamma is singular.
    index: int | None

    def __str__(self) -> str:
        if self.index == 3:
            return f"Gamma is regular (reciprocal condition {self.rcond:.2g}): the index is 3"
        if self.index is not None:
            return f"there are no constraints: the index is {self.index}"
        which = ", ".join(f"constraint {i}" for i in self.dependent_constraints)
        reason = "has no unique multiplier" if len(self.dependent_constraints) == 1 else "have no unique multipliers"
        return f"Gamma is singular: {which} {reason} here, so the index is not 3"


def index_test(equations: MultibodyEquations, q: np.ndarray, s: np.ndarray, t: float, k: np.ndarray) -> IndexTest:
    """Return the index test at one configuration."""
    e = equations
    if not e.m:
        return IndexTest(np.zeros((0, 0)), 1.0, (), 1 if e.auxiliary else 0)
    evaluate = ca.Function("at", [e.q, e.v, e.s, e.t, e.k], [e.G @ e.Z, e.M])
    A, M = (np.array(part) for part in evaluate(q, np.zeros(e.n), s, t, k))
    if not (np.isfinite(A).all() and np.isfinite(M).all()):
        raise InputError("the constraints or the mass matrix cannot be evaluated at these coordinates")
    if np.linalg.matrix_rank(M) < e.n:
        raise InputError("the mass matrix is singular at these coordinates, and Gamma requires its inverse")
    gamma = A @ np.linalg.solve(M, A.T)
    size = np.sqrt(np.abs(np.diag(gamma)))
    scaled = gamma / np.outer(*[np.where(size > 0, size, 1.0)] * 2)
    rcond = float(1 / np.linalg.cond(scaled)) if np.abs(scaled).max() > 0 else 0.0
    if rcond > _RCOND_SINGULAR:
        return IndexTest(gamma, rcond, (), 3)
    zero_rows = tuple(int(i) for i in np.flatnonzero(size == 0))
    return IndexTest(gamma, rcond, tuple(sorted({*zero_rows, *dependent_rows(A)})), None)
