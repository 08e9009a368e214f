"""Conditions on the coefficients of Runge-Kutta methods, as residuals that vanish to round-off if a condition holds.

Butcher's simplifying conditions B(p), C(q), D(r) equate sums and integrals for all polynomials of degree less than p, q
or r. They are tested on the shifted Legendre polynomials ``P_(k-1)``, k = 1, 2, ...: with powers of c, the residual of
a violated condition decreases like ``16^-s`` and would soon be below round-off.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

#: Absolute tolerance of residuals. For the families of this package up to s = 30, satisfied conditions have residuals
#: up to 4e-16, violated conditions have residuals from 3e-5.
ROUNDOFF = 1e-12


def legendre_vandermonde(n: int, x: np.ndarray) -> np.ndarray:
    """Return the shifted Legendre polynomials ``P_0 .. P_n`` at x, along a new last axis."""
    x = np.asarray(x, dtype=float)
    return np.polynomial.legendre.legvander(2 * x - 1, n).reshape(*x.shape, n + 1)


def legendre_integral_vandermonde(n: int, x: np.ndarray) -> np.ndarray:
    """Return the integrals of ``P_0 .. P_n`` from 0 to x, along a new last axis."""
    p, k = legendre_vandermonde(n + 1, x), np.arange(1, n + 1)
    zeroth = np.asarray(x, dtype=float)[..., None]
    return np.concatenate([zeroth, (p[..., 2:] - p[..., :-2]) / (2 * (2 * k + 1))], axis=-1)


def residual_b(k: int, c: np.ndarray, b: np.ndarray) -> float:
    """Return the residual of ``sum_i b_i P(c_i) = int_0^1 P``, for ``P = P_(k-1)``."""
    return float(abs(b @ legendre_vandermonde(k - 1, c)[:, -1] - (k == 1)))


def residual_c(k: int, c: np.ndarray, A: np.ndarray, upper: np.ndarray) -> float:
    """Return the maximum residual of ``sum_j a_ij P(c_j) = int_0^(u_i) P`` over i, for ``P = P_(k-1)``."""
    return float(
        np.abs(A @ legendre_vandermonde(k - 1, c)[:, -1] - legendre_integral_vandermonde(k - 1, upper)[:, -1]).max()
    )


def residual_d(k: int, c: np.ndarray, A: np.ndarray, b: np.ndarray) -> float:
    """Return the maximum residual of ``sum_i b_i P(c_i) a_ij = b_j int_(c_j)^1 P`` over j, for ``P = P_(k-1)``."""
    integral = (k == 1) - legendre_integral_vandermonde(k - 1, c)[:, -1]
    return float(np.abs((b * legendre_vandermonde(k - 1, c)[:, -1]) @ A - b * integral).max())


def highest_order_satisfied(residual: Callable[[int], float], s: int) -> int:
    """Return the highest number, at most 2s, up to which a condition holds."""
    k = 0
    while k < 2 * s and residual(k + 1) < ROUNDOFF:
        k += 1
    return k


def guaranteed_order(p: int, q: int, r: int, symmetric: bool) -> int:
    """Return the order ``min(p, q+r+1, 2q+2)`` of Butcher's theorem, rounded up to even for symmetric methods."""
    order = min(p, q + r + 1, 2 * q + 2)
    return order + order % 2 if symmetric else order


#: Largest order that is decided by order conditions of rooted trees: 200 conditions.
MAX_TREE_ORDER = 8


def order_by_rooted_trees(A: np.ndarray, b: np.ndarray) -> int:
    """Return the order of a Runge-Kutta method, at most 8, from the order conditions of all rooted trees.

    The method has order p if ``b . Phi(tau) = 1/gamma(tau)`` for all rooted trees of up to p vertices, with elementary
    weights Phi and densities gamma (Hairer, Norsett and Wanner, thm. II.2.13).
    """
    for order in range(1, MAX_TREE_ORDER + 1):
        for branches in _rooted_trees(order):
            weights, density = _elementary_weight(branches, A)
            if abs(b @ weights - 1 / density) > ROUNDOFF:
                return order - 1
    return MAX_TREE_ORDER


def order_by_bicoloured_trees(A: np.ndarray, b: np.ndarray, A_hat: np.ndarray, b_hat: np.ndarray) -> int:
    """Return the order of a partitioned Runge-Kutta method, at most 8, from all bicoloured rooted trees.

    Every vertex belongs to one of both parts. The conditions are those of rooted trees, with the coefficients of the
    part of each vertex (Hairer, Lubich and Wanner 2006, thm. III.2.5).
    """
    matrices = A, A_hat
    for order in range(1, MAX_TREE_ORDER + 1):
        for branches in _rooted_trees(order):
            density = _elementary_weight(branches, A)[1]
            for stage_weights in _coloured_weights(branches, matrices):
                if max(abs(weights @ stage_weights - 1 / density) for weights in (b, b_hat)) > ROUNDOFF:
                    return order - 1
    return MAX_TREE_ORDER


def _coloured_weights(tree: RootedTree, matrices: tuple[np.ndarray, np.ndarray]) -> list[np.ndarray]:
    """Return the elementary weights of the stages of a rooted tree for all colours of the vertices but the root."""
    choices = [
        [matrix @ weights for weights in _coloured_weights(branch, matrices) for matrix in matrices] for branch in tree
    ]
    return [functools.reduce(np.multiply, chosen, np.ones(len(matrices[0]))) for chosen in itertools.product(*choices)]


#: Rooted tree: the subtrees of its root.
RootedTree = tuple["RootedTree", ...]


@functools.cache
def _rooted_trees(order: int) -> tuple[RootedTree, ...]:
    """Return all rooted trees with this number of vertices."""
    return tuple(_forests(order - 1, order - 1))


def _forests(n_vertices: int, largest: int) -> Iterator[RootedTree]:
    """Yield all multisets of rooted trees with n vertices in total, none with more vertices than `largest`."""
    if not n_vertices:
        yield ()
        return
    for size in range(min(n_vertices, largest), 0, -1):
        trees = _rooted_trees(size)
        for count in range(n_vertices // size, 0, -1):
            for chosen in itertools.combinations_with_replacement(trees, count):
                for others in _forests(n_vertices - count * size, size - 1):
                    yield (*chosen, *others)


def _elementary_weight(tree: RootedTree, A: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the elementary weights of the stages and the density gamma of a rooted tree."""
    weights, density = np.ones(len(A)), _n_vertices(tree)
    for branch in tree:
        branch_weights, branch_density = _elementary_weight(branch, A)
        weights, density = weights * (A @ branch_weights), density * branch_density
    return weights, density


def _n_vertices(tree: RootedTree) -> int:
    return 1 + sum(_n_vertices(branch) for branch in tree)


def symplecticity_defect(A: np.ndarray, b: np.ndarray, A_hat: np.ndarray, b_hat: np.ndarray) -> float:
    """Return the maximum of ``|b_i ahat_ij + bhat_j a_ji - b_i bhat_j|`` (Symank 2025, 6.5)."""
    return float(np.abs(b[:, None] * A_hat + b_hat[None, :] * A.T - np.outer(b, b_hat)).max())


def symmetry_defect(c: np.ndarray, A: np.ndarray, b: np.ndarray) -> float:
    """Return the maximum deviation from the adjoint method: ``a_(s+1-i,s+1-j) + a_ij = b_j``, b and c mirrored."""
    residuals = [A[::-1, ::-1] + A - b[None, :], b[::-1] - b, c[::-1] + c - 1]
    return float(max(np.abs(residual).max() for residual in residuals))


def stability_at_infinity(A: np.ndarray, b: np.ndarray) -> float:
    """Return the limit of ``R(z) = det(I - z A + z 1 b^T) / det(I - z A)`` for z to minus infinity.

    An infinite limit has its sign. The limit depends on which leading coefficients vanish; they are therefore computed
    exactly from the doubles.
    """
    numerator, denominator = _characteristic_polynomial(A - b[None, :]), _characteristic_polynomial(A)
    n, d = _degree(numerator), _degree(denominator)
    if n < d:
        return 0.0
    ratio = float(numerator[n] / denominator[d])
    # stiff modes have z to minus infinity
    return ratio if n == d else float(np.copysign(np.inf, ratio * (-1) ** (n - d)))


def _characteristic_polynomial(M: np.ndarray) -> list[Fraction]:
    """Return the coefficients in z of ``det(I - z M)``, lowest first (Faddeev-LeVerrier algorithm)."""
    s = len(M)
    exact = [[Fraction(x) for x in row] for row in M.tolist()]
    coefficients, power = [Fraction(1)], [[Fraction(int(i == j)) for j in range(s)] for i in range(s)]
    for k in range(1, s + 1):
        power = [
            [sum((a * b for a, b in zip(row, col, strict=True)), Fraction(0)) for col in zip(*power, strict=True)]
            for row in exact
        ]
        coefficients.append(-sum((power[i][i] for i in range(s)), Fraction(0)) / k)
        for i in range(s):
            power[i][i] += coefficients[k]
    return coefficients


def _degree(coefficients: list[Fraction]) -> int:
    return max(k for k, x in enumerate(coefficients) if x)
