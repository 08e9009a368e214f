"""Interpolation and extrapolation polynomials of stages: dense output, and initial guess of the next stages."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike

from livens.errors import InputError
from livens.schemes.tableaus import conditions
from livens.schemes.tableaus import multiprecision as d


@dataclass(frozen=True, eq=False)
class Interpolant:
    """Lagrange polynomials ``l_i`` of given nodes, and their integrals ``b_i(theta)`` from 0 to theta.

    Parameters
    ----------
    nodes : array of shape (s,)
        Distinct nodes.
    weights : array of shape (s, s)
        ``weights[i, k]`` are the coefficients of ``l_i`` in the shifted Legendre polynomials ``P_k``.

    Examples
    --------
    >>> trapezoidal = Interpolant.through([0, 1])
    >>> trapezoidal(0.5), trapezoidal.lagrange(0.5)
    (array([0.375, 0.125]), array([0.5, 0.5]))
    """

    nodes: np.ndarray
    weights: np.ndarray

    @classmethod
    def through(cls, nodes: ArrayLike) -> Interpolant:
        """Return the interpolant of these nodes.

        Parameters
        ----------
        nodes : array_like of shape (s,)
            Distinct nodes.

        Returns
        -------
        Interpolant
            Interpolation polynomials.

        Raises
        ------
        InputError
            If two nodes are equal.
        """
        exact = _exact(nodes)
        with d.precision(len(exact)):
            return cls(d.read_only(np.asarray(nodes)), d.to_doubles(d.lagrange_coefficients(exact)))

    def __call__(self, theta: ArrayLike) -> np.ndarray:
        """Return ``b_i(theta)``, along a new last axis: ``x(t0 + theta h) = x0 + h sum_i b_i(theta) X'_i``."""
        return conditions.legendre_integral_vandermonde(len(self.nodes) - 1, np.asarray(theta)) @ self.weights.T

    def lagrange(self, theta: ArrayLike) -> np.ndarray:
        """Return ``l_i(theta)``, along a new last axis: ``z(t0 + theta h) = sum_i l_i(theta) Z_i``.

        Parameters
        ----------
        theta : array_like
            Relative time in the step.

        Returns
        -------
        array
            Values of shape ``theta.shape + (s,)``.
        """
        return conditions.legendre_vandermonde(len(self.nodes) - 1, np.asarray(theta)) @ self.weights.T


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """Extrapolation of values at the nodes of one step to the stages of the next step, which is r times as long.

    The matrix ``l_j(1 + r c_i)`` is ``sum_k coefficients[k] r^k``. All zeros of ``l_j`` are at most 1, so that the
    terms of an entry have one sign and no cancellation occurs.

    Parameters
    ----------
    coefficients : array of shape (n, s, n)
        Matrix coefficients of the powers of r.

    Examples
    --------
    >>> Extrapolation.between([0, 1], [0.5])(2.0)
    array([[-1.,  2.]])
    """

    coefficients: np.ndarray

    @classmethod
    def between(cls, nodes: ArrayLike, stages: ArrayLike) -> Extrapolation:
        """Return the extrapolation from values at nodes of a step to stages of the next step.

        Parameters
        ----------
        nodes : array_like of shape (n,)
            Distinct nodes of the step.
        stages : array_like of shape (s,)
            Stages of the next step.

        Returns
        -------
        Extrapolation
            Extrapolation matrix as a function of the ratio of step sizes.
        """
        c, targets = _exact(nodes), [Decimal(x) for x in np.asarray(stages, dtype=float).tolist()]
        with d.precision(len(c)):
            taylor = [_taylor_at_one(c, j) for j in range(len(c))]
            powers = [[Decimal(1) if k == 0 else x**k for x in targets] for k in range(len(c))]  # Decimal(0)**0 raises
            return cls(d.to_doubles([[[t[k] * x for t in taylor] for x in powers[k]] for k in range(len(c))]))

    def __call__(self, r: float) -> np.ndarray:
        """Return the extrapolation matrix for the ratio r of the new step size to the old one."""
        matrix = np.zeros(self.coefficients.shape[1:])
        for c in self.coefficients[::-1]:
            matrix = matrix * r + c
        return matrix


def _taylor_at_one(c: list[Decimal], j: int) -> list[Decimal]:
    """Return the coefficients of ``l_j(1 + x)`` in powers of x, lowest first."""
    product = [Decimal(1)]
    for m, node in enumerate(c):
        if m != j:
            constant, linear = (1 - node) / (c[j] - node), 1 / (c[j] - node)
            low, high = [constant * x for x in product] + [Decimal(0)], [Decimal(0)] + [linear * x for x in product]
            product = [x + y for x, y in zip(low, high, strict=True)]
    return product


def _exact(nodes: ArrayLike) -> list[Decimal]:
    values = np.asarray(nodes, dtype=float)
    if values.ndim != 1 or not values.size or len(set(values.tolist())) < len(values):
        raise InputError(f"the nodes of an interpolation polynomial must be distinct, got {values.tolist()}")
    return [Decimal(x) for x in values.tolist()]
