"""Increments of unit quaternions over a step.

A quaternion with constant angular velocity w follows a great circle, its increment is the chord. For rotations of a
radian or more per step, the initial velocity is a poor guess of ``(q1 - q0)/h``, as it points out of the unit sphere.
"""

from __future__ import annotations

import casadi as ca

from livens.schemes.discretization.so3 import E
from livens.types import Expr


def quaternion_increment_rate(q0: Expr, w: Expr, h: Expr | float) -> Expr:
    """Return ``(exp(h w/2) o q0 - q0)/h`` without cancellation, with a correction of the norm of q0.

    See Kinon and Betsch 2024, eq. 105.
    """
    square = ca.dot(w, w) * h**2  # theta^2
    is_small = square < 1e-4
    angle = ca.sqrt(ca.if_else(is_small, 1, square))
    # sin(theta/2)/theta and (cos(theta/2) - 1)/theta^2, by their series for small theta
    sine = ca.if_else(is_small, 0.5 - square / 48 + square**2 / 3840, ca.sin(angle / 2) / angle)
    cosine = ca.if_else(is_small, -1 / 8 + square / 384 - square**2 / 46080, -2 * (ca.sin(angle / 4) / angle) ** 2)
    chord = sine * (E(q0).T @ w) + cosine * h * ca.dot(w, w) * q0
    return chord + (1 - ca.dot(q0, q0)) / (2 * h) * (q0 + h * chord)  # prevents a random walk of the norm


def free_rotation_guess(q0: Expr, v0: Expr, h: Expr) -> Expr:
    """Return an initial guess of ``(q1 - q0)/h``: the chord of a free rotation with the angular velocity of v0."""
    return quaternion_increment_rate(q0, 2 * E(q0) @ v0, h)


def unit_norm_multiplier(q_m: Expr, r: Expr, h: Expr) -> Expr:
    """Return the least-squares solution lam of ``r + h lam q_m = 0``; the remainder is normal to q_m."""
    return -ca.dot(q_m, r) / (h * ca.dot(q_m, q_m))
