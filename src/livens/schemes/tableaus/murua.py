"""Murua's partitioned method for ``x' = f(x, z)``, ``g(x) = 0`` of index 2 (S002 def. 6.5)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property

import numpy as np

from livens.schemes.tableaus import conditions
from livens.schemes.tableaus import digits as d
from livens.schemes.tableaus.families import collocation, gauss, gauss_nodes, lobatto_nodes, stages
from livens.schemes.tableaus.polynomials import Extrapolation, Interpolant
from livens.schemes.tableaus.tableau import Tableau


@dataclass(frozen=True, eq=False)
class Murua:
    """One polynomial of degree s for x, with slopes at Gauss nodes and constraints at Lobatto nodes (S002 6.7).

    ``X_i = x0 + h sum_k a_ik X'_k`` with ``X'_i = f(X_i, Z_i)`` at the nodes c of `dynamics`, and
    ``Xbar_i = x0 + h sum_k abar_ik X'_k`` with ``g(Xbar_i) = 0`` at the nodes `c_bar`, of which the last is 1: so
    ``x1 = Xbar_s``. The polynomial of the multipliers goes through ``z_0, Z_1 .. Z_s``, and
    ``z_1 = gamma_0 z_0 + sum_i gamma_i Z_i``. As ``gamma_0 = (-1)^s``, an error of ``z_0`` never dies out.
    """

    name: str
    dynamics: Tableau
    c_bar: np.ndarray
    A_bar: np.ndarray
    gamma_0: float
    gamma: np.ndarray

    @property
    def s(self) -> int:
        """The number of stages."""
        return self.dynamics.s

    @property
    def constraint_nodes(self) -> np.ndarray:
        """All s+1 Lobatto nodes, ``0 = cbar_0, cbar_1 .. cbar_s = 1``."""
        return np.concatenate([[0.0], self.c_bar])

    @property
    def multiplier_nodes(self) -> np.ndarray:
        """Where ``z_0, Z_1 .. Z_s`` belong: ``0, c_1 .. c_s``."""
        return np.concatenate([[0.0], self.dynamics.c])

    def residual_c_bar(self, k: int) -> float:
        """Of the k-th part of Cbar: ``sum_j abar_ij c_j^(k-1) = cbar_i^k / k`` (S002 6.3.2)."""
        return conditions.residual_c(k, self.dynamics.c, self.A_bar, self.c_bar)

    @cached_property
    def C_bar(self) -> int:
        """Cbar holds up to this number. It is s+1, as the integrals of ``P_s`` from 0 to Lobatto nodes vanish."""
        return conditions.largest(self.residual_c_bar, self.s)

    @property
    def order(self) -> int:
        """Of x: the lesser of the orders of the two quadratures (S002 thm. 6.7). That of the ``Z_i`` is s."""
        lobatto = Interpolant.through(self.constraint_nodes)(1.0)
        return min(
            self.dynamics.B,
            conditions.largest(lambda k: conditions.residual_b(k, self.constraint_nodes, lobatto), self.s + 1),
        )

    def interpolant(self) -> Interpolant:
        """Of x, as `Tableau.interpolant`: it goes through all ``X_i`` and ``Xbar_i``."""
        return self.dynamics.interpolant()

    def multiplier_interpolant(self) -> Interpolant:
        """Of z: ``z(t0 + theta h) = sum_k l_k(theta) Z_k`` with ``Z_0 = z_0`` and l from its method `lagrange`."""
        return Interpolant.through(self.multiplier_nodes)

    def extrapolation(self) -> Extrapolation:
        """From the stages of x and z of a step to those of the next step."""
        return self.dynamics.extrapolation()


def murua(s: int) -> Murua:
    """Gauss with s nodes and Lobatto with s+1, the pair S002 means by M-PRK.

    >>> murua(1).gamma_0, murua(1).gamma, murua(1).A_bar
    (-1.0, array([2.]), array([[1.]]))
    """
    return _murua(stages(s, 1, "murua"))


@cache
def _murua(s: int) -> Murua:
    with d.digits(s):
        c, c_bar = gauss_nodes(s), lobatto_nodes(s + 1)[1:]
        gamma = d.rounded(d.combine(d.lagrange([Decimal(0), *c]), d.legendre(s, Decimal(1))))
        return Murua(
            name=f"murua-{s}",
            dynamics=gauss(s),
            c_bar=d.rounded(c_bar),
            A_bar=d.rounded(collocation(c, c_bar)),
            gamma_0=float(gamma[0]),
            gamma=d.frozen(gamma[1:]),
        )
