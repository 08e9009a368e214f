"""Butcher tableaus of Runge-Kutta methods and partitioned methods, and their properties."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.schemes.tableaus import conditions
from livens.schemes.tableaus.interpolation import Extrapolation, Interpolant
from livens.schemes.tableaus.multiprecision import read_only


@explain_call_errors
@dataclass(frozen=True, eq=False)
class Tableau:
    """Butcher tableau: nodes c, matrix A and weights b of a Runge-Kutta method (Symank 2025, def. 5.1).

    ``X_i = x0 + h sum_j a_ij X'_j``, ``X'_i = f(t0 + c_i h, X_i)``, ``x1 = x0 + h sum_i b_i X'_i``.

    Parameters
    ----------
    name : str
        Name of the method.
    c : array_like of shape (s,)
        Nodes.
    A : array_like of shape (s, s)
        Runge-Kutta matrix.
    b : array_like of shape (s,)
        Weights.

    Raises
    ------
    InputError
        If the shapes do not match, or a coefficient is not finite.

    Examples
    --------
    >>> heun = Tableau("heun", c=[0, 1], A=[[0, 0], [1, 0]], b=[0.5, 0.5])
    >>> heun.order, heun.stiffly_accurate, heun.symplectic
    (2, False, False)
    """

    name: str
    c: np.ndarray
    A: np.ndarray
    b: np.ndarray

    def __post_init__(self) -> None:
        for field in ("c", "A", "b"):
            object.__setattr__(self, field, read_only(np.asarray(getattr(self, field))))
        s = self.b.size
        if s < 1 or self.b.shape != (s,) or self.c.shape != (s,) or self.A.shape != (s, s):
            raise InputError(
                f"tableau '{self.name}' needs c and b of one length s and A of shape (s, s), "
                f"got {self.c.shape}, {self.b.shape}, {self.A.shape}"
            )
        if not all(np.all(np.isfinite(coefficients)) for coefficients in (self.c, self.A, self.b)):
            raise InputError(f"tableau '{self.name}' has a coefficient that is not a finite number")

    @property
    def s(self) -> int:
        """Number of stages."""
        return len(self.b)

    def residual_b(self, k: int) -> float:
        """Return the residual of the k-th part of condition B, see `livens.schemes.tableaus.conditions`.

        Parameters
        ----------
        k : int
            Number of the condition, from 1.

        Returns
        -------
        float
            Absolute residual.
        """
        return conditions.residual_b(k, self.c, self.b)

    def residual_c(self, k: int) -> float:
        """Return the residual of the k-th part of condition C.

        Parameters
        ----------
        k : int
            Number of the condition, from 1.

        Returns
        -------
        float
            Absolute residual.
        """
        return conditions.residual_c(k, self.c, self.A, self.c)

    def residual_d(self, k: int) -> float:
        """Return the residual of the k-th part of condition D.

        Parameters
        ----------
        k : int
            Number of the condition, from 1.

        Returns
        -------
        float
            Absolute residual.
        """
        return conditions.residual_d(k, self.c, self.A, self.b)

    @cached_property
    def B(self) -> int:
        """Order of the quadrature: largest p of B(p), ``sum_i b_i c_i^(k-1) = 1/k`` for k <= p."""
        return conditions.highest_order_satisfied(self.residual_b, self.s)

    @cached_property
    def C(self) -> int:
        """Stage order: largest q of C(q), ``sum_j a_ij c_j^(k-1) = c_i^k/k`` for k <= q."""
        return conditions.highest_order_satisfied(self.residual_c, self.s)

    @cached_property
    def D(self) -> int:
        """Largest r of D(r), ``sum_i b_i c_i^(k-1) a_ij = b_j (1 - c_j^k)/k`` for k <= r."""
        return conditions.highest_order_satisfied(self.residual_d, self.s)

    @cached_property
    def order(self) -> int:
        """Order of convergence for smooth ordinary differential equations.

        Orders up to 8 follow from the order conditions of rooted trees, higher orders from B, C, D and symmetry, which
        guarantee the order of all families in this package.
        """
        guaranteed = conditions.guaranteed_order(self.B, self.C, self.D, self.symmetric)
        if guaranteed >= conditions.MAX_TREE_ORDER or np.abs(self.A.sum(axis=1) - self.c).max() > conditions.ROUNDOFF:
            return guaranteed
        return max(guaranteed, conditions.order_by_rooted_trees(self.A, self.b))

    @property
    def has_distinct_nodes(self) -> bool:
        """True if no two nodes are equal, so that a polynomial passes through the stages."""
        return len(set(self.c.tolist())) == self.s

    @property
    def symplecticity_defect(self) -> float:
        """Maximum of ``|b_i a_ij + b_j a_ji - b_i b_j|``."""
        return conditions.symplecticity_defect(self.A, self.b, self.A, self.b)

    @property
    def symplectic(self) -> bool:
        """True if the method conserves quadratic invariants and the symplectic form."""
        return self.symplecticity_defect < conditions.ROUNDOFF

    @property
    def symmetric(self) -> bool:
        """True if the method is self-adjoint: a step of -h inverts a step of h."""
        return conditions.symmetry_defect(self.c, self.A, self.b) < conditions.ROUNDOFF

    @property
    def stiffly_accurate(self) -> bool:
        """True if the last stage is the final state, ``c_s = 1`` and ``a_sj = b_j`` (Symank 2025, def. 5.2)."""
        return bool(
            abs(self.c[-1] - 1) < conditions.ROUNDOFF and np.all(abs(self.A[-1] - self.b) < conditions.ROUNDOFF)
        )

    @property
    def collocation(self) -> bool:
        """True if C(s) holds with distinct nodes: a polynomial of degree s passes through all stages."""
        return self.s <= self.C and self.has_distinct_nodes

    @cached_property
    def stability_at_infinity(self) -> float:
        """Stability function ``R(z)`` for z to minus infinity: 0 damps infinitely stiff modes, +-1 does not."""
        return conditions.stability_at_infinity(self.A, self.b)

    @property
    def conjugate(self) -> Tableau:
        """Conjugate method for momenta, which forms a symplectic pair with this method for coordinates.

        From ``b_i ahat_ij + b_j a_ji = b_i b_j``, for nonzero b_i; Lobatto IIIA and IIIB are conjugate to each other.
        """
        if not np.all(self.b):
            raise InputError(f"tableau '{self.name}' has a weight that is zero, so it has no conjugate")
        A = self.b[None, :] * (1 - self.A.T / self.b[:, None])
        return Tableau(f"{self.name}-conjugate", self.c, A, self.b)

    def interpolant(self) -> Interpolant:
        """Return the dense output: ``b_i(theta)`` with ``x(t0 + theta h) = x0 + h sum_i b_i(theta) X'_i``.

        It starts at x0 and, if B(s) holds, ends at x1. For collocation methods it passes through the stages too.

        Returns
        -------
        Interpolant
            Interpolation polynomials of the nodes c.
        """
        return Interpolant.through(self.c)

    def extrapolation(self) -> Extrapolation:
        """Return the extrapolation of the stages to the next step, as initial guess for any ratio of step sizes.

        Returns
        -------
        Extrapolation
            Extrapolation matrix as a function of the ratio of step sizes.
        """
        return Extrapolation.between(self.c, self.c)


@explain_call_errors
@dataclass(frozen=True, eq=False)
class PartitionedTableau:
    """Partitioned Runge-Kutta method: one tableau for coordinates, another for momenta (Symank 2025, def. 6.1).

    Parameters
    ----------
    name : str
        Name of the method.
    q : Tableau
        Method for coordinates.
    p : Tableau
        Method for momenta, with the same number of stages.

    Raises
    ------
    InputError
        If the numbers of stages differ.
    """

    name: str
    q: Tableau
    p: Tableau

    def __post_init__(self) -> None:
        if self.q.s != self.p.s:
            raise InputError(
                f"the methods of pair '{self.name}' must have equally many stages, they have {self.q.s} and {self.p.s}"
            )

    @property
    def s(self) -> int:
        """Number of stages."""
        return self.q.s

    @property
    def symplecticity_defect(self) -> float:
        """Maximum of ``|b_i - bhat_i|`` and ``|b_i ahat_ij + bhat_j a_ji - b_i bhat_j|`` (Symank 2025, 6.5)."""
        x, y = self.q, self.p
        return max(conditions.symplecticity_defect(x.A, x.b, y.A, y.b), float(np.abs(x.b - y.b).max()))

    @property
    def symplectic(self) -> bool:
        """True if the pair conserves the symplectic form and invariants ``q^T D p``."""
        return self.symplecticity_defect < conditions.ROUNDOFF

    @property
    def symmetric(self) -> bool:
        """True if both methods are symmetric."""
        return self.q.symmetric and self.p.symmetric

    @property
    def has_common_nodes(self) -> bool:
        """True if both methods have the same nodes and weights."""
        x, y = self.q, self.p
        return np.allclose(x.c, y.c, rtol=0, atol=1e-14) and np.allclose(x.b, y.b, rtol=0, atol=1e-14)

    @property
    def order(self) -> int:
        """Order of the pair: with common nodes and weights by the conditions of both methods, else by rooted trees."""
        x, y = self.q, self.p
        if not self.has_common_nodes:
            return conditions.order_by_bicoloured_trees(x.A, x.b, y.A, y.b)
        return conditions.guaranteed_order(x.B, min(x.C, y.C), min(x.D, y.D), self.symmetric)
