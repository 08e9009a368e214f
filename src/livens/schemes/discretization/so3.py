"""Rotations on symbols: cross products, exponential map, orthonormal directors, matrices of unit quaternions.

`livens.rotations` has the numerical functions for users, `livens.multibody.twist_coordinates` those of bodies.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.types import Expr


def skew(a: Expr) -> Expr:
    """Return the skew-symmetric matrix of ``a x``."""
    return ca.skew(a)


def cross(a: Expr, b: Expr) -> Any:
    """Return ``a x b``, written out, as CasADi's version keeps products with zero."""
    (a0, a1, a2), (b0, b1, b2) = ca.SX(a).elements(), ca.SX(b).elements()

    def minor(a: Any, b: Any, c: Any, d: Any) -> Expr:
        return ca.SX.binary(ca.OP_SUB, ca.SX.binary(ca.OP_MUL, a, b), ca.SX.binary(ca.OP_MUL, c, d))

    return ca.vertcat(minor(a1, b2, a2, b1), minor(a2, b0, a0, b2), minor(a0, b1, a1, b0))


def perp(d: Expr) -> Expr:
    """Return a vector of the plane rotated by 90 degrees counter-clockwise."""
    return ca.vertcat(-d[1], d[0])


def solve_3x3(J: Expr, b: Expr) -> Expr:
    """Return ``J^-1 b`` of a symmetric 3 x 3 matrix, by its cofactors."""
    columns = [J[:, i] for i in range(3)]
    cofactors = [cross(columns[(i + 1) % 3], columns[(i + 2) % 3]) for i in range(3)]
    return ca.vertcat(*(ca.dot(c, b) for c in cofactors)) / ca.dot(columns[0], cofactors[0])


def cross_in_space_or_plane(x: Any, y: Any) -> Expr:
    """Return ``x x y``; a scalar in the plane."""
    return cross(x, y) if x.numel() == 3 else x[0] * y[1] - x[1] * y[0]


def rotation_matrix(angle: Expr) -> Expr:
    """Return the rotation matrix ``exp(skew(angle))``, by Rodrigues' formula."""
    square = ca.dot(angle, angle)
    if angle.numel() == 1:
        c, s = ca.cos(angle), ca.sin(angle)
        return ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))
    is_small = square < 1e-3
    size = ca.sqrt(ca.if_else(is_small, 1, square))
    # sin(a)/a and (1 - cos(a))/a^2, by their series for small angles
    sinc = ca.if_else(is_small, 1 - square / 6 * (1 - square / 20 * (1 - square / 42)), ca.sin(size) / size)
    half = ca.sin(size / 2) / size
    cosc = ca.if_else(is_small, (1 - square / 12 * (1 - square / 30 * (1 - square / 56))) / 2, 2 * half * half)
    hat = ca.skew(angle)
    return ca.SX.eye(3) + sinc * hat + cosc * (hat @ hat)


def orthonormalize(D: Expr) -> Expr:
    """Return the columns of D orthonormal to round-off, by one step of Newton's iteration for the polar factor."""
    return D @ (3 * ca.SX.eye(D.shape[1]) - D.T @ D) / 2


def G(q: Expr) -> Expr:
    """Return ``G(q)`` of Kinon and Betsch 2024, (35a): ``Omega = 2 G(q) v`` is the convective angular velocity."""
    return ca.horzcat(-q[1:], q[0] * ca.SX.eye(3) - ca.skew(q[1:]))


def E(q: Expr) -> Expr:
    """Return ``E(q)`` of Kinon and Betsch 2024, (35b): ``omega = 2 E(q) v`` is the spatial angular velocity."""
    return ca.horzcat(-q[1:], q[0] * ca.SX.eye(3) + ca.skew(q[1:]))


def left_multiplication(q: Expr) -> Expr:
    """Return the left multiplication matrix ``Q_l(q) = [q, G(q)^T]``, Kinon and Betsch 2024, (33a)."""
    return ca.horzcat(q, G(q).T)
