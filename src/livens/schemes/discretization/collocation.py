"""Collocation polynomials of Runge-Kutta methods: Lagrange basis, dense output, extrapolation, embedded quadrature."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from livens.schemes.tableaus.interpolation import Interpolant
from livens.types import Expr, FloatArray


def embedded_error_weights(c: np.ndarray, b: np.ndarray, uses_initial_derivative: bool) -> np.ndarray:
    """Return the weights of the initial derivative and of the stage derivatives, for the difference to a quadrature.

    With `uses_initial_derivative`, the initial derivative gets the weight of the first stage and the polynomial through
    the stages the negative weight; the quadrature has order s. Otherwise the quadrature of order s - 1 uses the stages
    only.
    """
    if uses_initial_derivative:
        return b[0] * np.concatenate([[1.0], -Interpolant.through(c).lagrange(0.0)])
    V, rhs = np.vander(c, increasing=True).T, 1.0 / np.arange(1, len(c) + 1)
    rhs[-1] *= 0.5
    return np.concatenate([[0.0], b - np.linalg.solve(V, rhs)])


def linear_combination(weights: FloatArray | Sequence[Expr] | Sequence[float], terms: Sequence[Expr]) -> Expr:
    """Return the linear combination ``sum_i weights_i terms_i``."""
    return sum((weight * term for weight, term in zip(weights, terms, strict=True)), 0 * terms[0])


def lagrange_basis(nodes: np.ndarray, theta: Expr) -> list[Expr]:
    """Return the Lagrange polynomials ``l_i(theta)`` of these nodes, as expressions."""
    return [linear_combination(row, shifted_legendre(len(nodes), theta)) for row in Interpolant.through(nodes).weights]


def lagrange_integrals(nodes: np.ndarray, theta: Expr) -> list[Expr]:
    """Return the integrals b_i of the Lagrange polynomials from 0 to theta.

    The collocation polynomial is ``x0 + h sum_i b_i(theta) X'_i``.
    """
    P = shifted_legendre(len(nodes) + 1, theta)
    integrals = [theta] + [(P[k + 1] - P[k - 1]) / (2 * (2 * k + 1)) for k in range(1, len(nodes))]
    return [linear_combination(row, integrals) for row in Interpolant.through(nodes).weights]


def shifted_legendre(count: int, theta: Expr) -> list[Expr]:
    """Return the shifted Legendre polynomials on [0, 1]."""
    P = [ca.SX(1), 2 * theta - 1]
    for k in range(1, count - 1):
        P.append(((2 * k + 1) * (2 * theta - 1) * P[k] - k * P[k - 1]) / (k + 1))
    return P[:count]


def stage_extrapolation_matrix(nodes: np.ndarray) -> np.ndarray:
    """Return the matrix from the deviations ``(q(c_i) - q(0))/h - c_i q'(0)`` of a step to those of the next step.

    The extrapolation polynomial has these values and the derivatives of q at both ends; ``q'(1) - q'(0)`` comes last.

    >>> stage_extrapolation_matrix(np.array([1.0])) @ [0.5, 1.0]  # q'' = 1
    array([0.5])
    """
    power = np.arange(2, len(nodes) + 3)
    conditions = np.vstack([nodes[:, None] ** power, power])
    next_deviations = (1 + nodes[:, None]) ** power - 1 - nodes[:, None] * power
    return np.asarray(np.linalg.solve(conditions.T, next_deviations.T).T)
