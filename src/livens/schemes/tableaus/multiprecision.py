"""Shifted Legendre and Lagrange polynomials in multiprecision (decimal) arithmetic."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from contextlib import AbstractContextManager
from decimal import Decimal

import numpy as np

Vector = list[Decimal]
Matrix = list[Vector]


def precision(s: int) -> AbstractContextManager[decimal.Context]:
    """Return a decimal context with sufficient precision for s stages: results have at least 50 digits."""
    return decimal.localcontext(decimal.Context(prec=60 + 2 * s))


def legendre(n: int, x: Decimal) -> Vector:
    """Return the values ``P_0 .. P_n`` at x of the shifted Legendre polynomials (``P_k(1) = 1``)."""
    t, values = 2 * x - 1, [Decimal(1), 2 * x - 1]
    for k in range(1, n):
        values.append(((2 * k + 1) * t * values[k] - k * values[k - 1]) / (k + 1))
    return values[: n + 1]


def legendre_integrals(n: int, x: Decimal) -> Vector:
    """Return the integrals of ``P_0 .. P_n`` from 0 to x, by ``2 (2k+1) P_k = P_(k+1)' - P_(k-1)'``."""
    p = legendre(n + 1, x)
    return [x] + [(p[k + 1] - p[k - 1]) / (2 * (2 * k + 1)) for k in range(1, n + 1)]


def legendre_roots(coefficients: Sequence[int]) -> Vector:
    """Return all zeros of ``sum_k coefficients[k] P_k``, ascending, for simple zeros in [0, 1].

    The eigenvalues of a companion matrix are the initial guess of Newton's method.
    """
    tolerance = Decimal(10) ** -(decimal.getcontext().prec // 2 + 5)
    roots = []
    for estimate in np.sort(np.polynomial.legendre.legroots(coefficients).real):
        x, correction = (Decimal(float(estimate)) + 1) / 2, Decimal(1)
        while abs(correction) > tolerance:  # quadratic convergence: the remaining error is about its square
            correction = _newton_correction(coefficients, x)
            x -= correction
        roots.append(x)
    return roots


def _newton_correction(coefficients: Sequence[int], x: Decimal) -> Decimal:
    n = len(coefficients) - 1
    p = legendre(n, x)
    derivatives = [Decimal(0), Decimal(2)]
    for k in range(1, n):
        derivatives.append(derivatives[k - 1] + 2 * (2 * k + 1) * p[k])
    return _dot(coefficients, p) / _dot(coefficients, derivatives)


def lagrange_coefficients(nodes: Sequence[Decimal]) -> Matrix:
    """Return W with ``l_j = sum_k W[j][k] P_k``, where ``l_j`` is 1 at node j and 0 at all other nodes."""
    n = len(nodes)
    # row k of the system: sum_j P_k(c_j) l_j(x) = P_k(x) for all x, so W is the inverse of (P_k(c_j))
    values = [legendre(n - 1, c) for c in nodes]
    rows = [[values[j][k] for j in range(n)] + [Decimal(int(k == j)) for j in range(n)] for k in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(n):
            if r != i and rows[r][i]:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i], strict=True)]
    return [row[n:] for row in rows]


def matvec(W: Matrix, values: Vector) -> Vector:
    """Return ``sum_k W[j][k] values[k]`` for every j: Lagrange polynomials at x from Legendre polynomials at x."""
    return [_dot(row, values) for row in W]


def _dot(a: Sequence[Decimal | int], b: Sequence[Decimal]) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def to_doubles(values: Sequence[Decimal] | Sequence[Vector] | Sequence[Matrix]) -> np.ndarray:
    """Return read-only doubles; values below the decimal round-off are set to zero."""
    cutoff = Decimal(10) ** -40
    table = np.array(values, dtype=object)
    flat = [0.0 if abs(x) < cutoff else float(x) for x in table.ravel()]
    return read_only(np.array(flat).reshape(table.shape))


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only copy."""
    copy = np.array(array, dtype=float)
    copy.flags.writeable = False
    return copy
