"""Murua's partitioned method for index-2 DAEs ``x' = f(x, z)``, ``g(x) = 0`` (Symank 2025, def. 6.5)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property

import numpy as np

from livens.schemes.tableaus import conditions
from livens.schemes.tableaus import multiprecision as d
from livens.schemes.tableaus.families import check_stage_count, collocation, gauss, gauss_nodes, lobatto_nodes
from livens.schemes.tableaus.interpolation import Extrapolation, Interpolant
from livens.schemes.tableaus.tableau import Tableau


@dataclass(frozen=True, eq=False)
class MuruaTableau:
    """Tableau of Murua's method: derivatives at Gauss nodes, constraints at Lobatto nodes (Symank 2025, 6.7).

    x is one polynomial of degree s: ``X_i = x0 + h sum_k a_ik X'_k`` with ``X'_i = f(X_i, Z_i)`` at the nodes c of
    `gauss`, and ``Xbar_i = x0 + h sum_k abar_ik X'_k`` with ``g(Xbar_i) = 0`` at the nodes `c_bar`. The last node is
    1, so that ``x1 = Xbar_s``. The polynomial of the multipliers passes through ``z_0, Z_1 .. Z_s``, and
    ``z_1 = gamma_0 z_0 + sum_i gamma_i Z_i``. As ``gamma_0 = (-1)^s``, an error of ``z_0`` persists.

    Parameters
    ----------
    name : str
        Name of the method.
    gauss : Tableau
        Gauss method for x.
    c_bar : array of shape (s,)
        Lobatto nodes without the first.
    A_bar : array of shape (s, s)
        Coefficients of the constraint stages.
    gamma_0 : float
        Weight of z_0.
    gamma : array of shape (s,)
        Weights of Z_i.
    """

    name: str
    gauss: Tableau
    c_bar: np.ndarray
    A_bar: np.ndarray
    gamma_0: float
    gamma: np.ndarray

    @property
    def s(self) -> int:
        """Number of stages."""
        return self.gauss.s

    @property
    def constraint_nodes(self) -> np.ndarray:
        """All s + 1 Lobatto nodes, from ``cbar_0 = 0`` to ``cbar_s = 1``."""
        return np.concatenate([[0.0], self.c_bar])

    @property
    def multiplier_nodes(self) -> np.ndarray:
        """Nodes of ``z_0`` and of the stages ``Z_i``: 0 and the Gauss nodes ``c_i``."""
        return np.concatenate([[0.0], self.gauss.c])

    def residual_c_bar(self, k: int) -> float:
        """Return the residual of the k-th part of Cbar: ``sum_j abar_ij c_j^(k-1) = cbar_i^k / k``.

        See Symank 2025, 6.3.2.

        Parameters
        ----------
        k : int
            Number of the condition, from 1.

        Returns
        -------
        float
            Absolute residual.
        """
        return conditions.residual_c(k, self.gauss.c, self.A_bar, self.c_bar)

    @cached_property
    def C_bar(self) -> int:
        """Largest number for which Cbar holds: s + 1, as the integrals of ``P_s`` from 0 to Lobatto nodes vanish."""
        return conditions.highest_order_satisfied(self.residual_c_bar, self.s)

    @property
    def order(self) -> int:
        """Order of x: minimum of the orders of both quadratures (Symank 2025, thm. 6.7)."""
        lobatto = Interpolant.through(self.constraint_nodes)(1.0)
        return min(
            self.gauss.B,
            conditions.highest_order_satisfied(
                lambda k: conditions.residual_b(k, self.constraint_nodes, lobatto), self.s + 1
            ),
        )

    def interpolant(self) -> Interpolant:
        """Return the dense output of x, which passes through all ``X_i`` and ``Xbar_i``; see `Tableau.interpolant`.

        Returns
        -------
        Interpolant
            Interpolation polynomials of the Gauss nodes.
        """
        return self.gauss.interpolant()

    def multiplier_interpolant(self) -> Interpolant:
        """Return the dense output of z: ``z(t0 + theta h) = sum_k l_k(theta) Z_k`` with ``Z_0 = z_0``.

        Returns
        -------
        Interpolant
            Interpolation polynomials of the multiplier nodes; ``l_k`` is its method `lagrange`.
        """
        return Interpolant.through(self.multiplier_nodes)

    def extrapolation(self) -> Extrapolation:
        """Return the extrapolation of the stages of x and z to the next step.

        Returns
        -------
        Extrapolation
            Extrapolation matrix as a function of the ratio of step sizes.
        """
        return self.gauss.extrapolation()


def murua(s: int) -> MuruaTableau:
    """Return Murua's method with s Gauss nodes and s + 1 Lobatto nodes (M-PRK of Symank 2025).

    Parameters
    ----------
    s : int
        Number of stages, from 1.

    Returns
    -------
    MuruaTableau
        The method.

    Examples
    --------
    >>> murua(1).gamma_0, murua(1).gamma, murua(1).A_bar
    (-1.0, array([2.]), array([[1.]]))
    """
    return _murua(check_stage_count(s, 1, "murua"))


@cache
def _murua(s: int) -> MuruaTableau:
    with d.precision(s):
        c, c_bar = gauss_nodes(s), lobatto_nodes(s + 1)[1:]
        gamma = d.to_doubles(d.matvec(d.lagrange_coefficients([Decimal(0), *c]), d.legendre(s, Decimal(1))))
        return MuruaTableau(
            name=f"murua-{s}",
            gauss=gauss(s),
            c_bar=d.to_doubles(c_bar),
            A_bar=d.to_doubles(collocation(c, c_bar)),
            gamma_0=float(gamma[0]),
            gamma=d.read_only(gamma[1:]),
        )
