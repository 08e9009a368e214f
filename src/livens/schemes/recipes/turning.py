"""How far a unit quaternion turns in a step: what schemes for quaternions have in common.

A quaternion that turns at the rate w goes along a great circle, its increment along the chord. Where steps turn a body
by a radian or more, the velocity at their start is a bad guess of ``(q1 - q0)/h``: it points out of the unit sphere.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.models.system import System
from livens.schemes.step import StepEquations


def chord_velocity(q0: Any, w: Any, h: Any) -> Any:
    """``(exp(h w/2) o q0 - q0)/h`` without cancellation, S004 (105), put right where |q0| is off by rounding."""
    square = ca.dot(w, w) * h**2  # theta^2
    short = square < 1e-4
    angle = ca.sqrt(ca.if_else(short, 1, square))
    # sin(theta/2)/theta and (cos(theta/2) - 1)/theta^2, by their series where theta is short
    sine = ca.if_else(short, 0.5 - square / 48 + square**2 / 3840, ca.sin(angle / 2) / angle)
    cosine = ca.if_else(short, -1 / 8 + square / 384 - square**2 / 46080, -2 * (ca.sin(angle / 4) / angle) ** 2)
    chord = sine * (E(q0).T @ w) + cosine * h * ca.dot(w, w) * q0
    return chord + (1 - ca.dot(q0, q0)) / (2 * h) * (q0 + h * chord)  # else the length would walk away at random


def chord_velocities(equations: StepEquations, system: System) -> Any:
    """A guess of ``(q1 - q0)/h``: the old velocities, for quaternions the chord of turning on at the old rate."""
    n, h = system.n, equations.c[0]
    q0, v = equations.z[:n], ca.SX(equations.z[n : 2 * n])
    for four in system.quaternions:
        i = list(four)
        v[i] = chord_velocity(q0[i], 2 * E(q0[i]) @ v[i], h)
    return v


def with_unit_multipliers(equations: StepEquations, system: System, guess: Any, balance: int) -> Any:
    """The guess with those multipliers of unit length that the balance of momentum along ``q_m`` asks for.

    They are large and change their sign from step to step, so those of the step before are a bad guess. `balance` is
    the first row of the balance of momentum; the multipliers are the last unknowns, and ``(q1 - q0)/h`` the first.
    """
    h, q0, first = equations.c[0], equations.z[: system.n], guess.numel() - system.m
    guess = ca.SX(guess)
    for number in system.quaternion_constraints:
        guess[first + number] = 0
    r = equations.residual_function(guess, equations.z, equations.c)
    for number, four in zip(system.quaternion_constraints, system.quaternions, strict=True):
        i = list(four)
        q_m = q0[i] + h / 2 * guess[i]
        guess[first + number] = unit_multiplier(q_m, r[[balance + j for j in i]], h)
    return guess


def unit_multiplier(q_m: Any, r: Any, h: Any) -> Any:
    """The lam of ``r + h lam q_m = 0``, as far as it can be solved: what is left of r is normal to q_m."""
    return -ca.dot(q_m, r) / (h * ca.dot(q_m, q_m))


def G(q: Any) -> Any:
    """``G(q)`` of S004 (35a): ``Omega = 2 G(q) v`` is the convective angular velocity."""
    return ca.horzcat(-q[1:], q[0] * ca.SX.eye(3) - ca.skew(q[1:]))


def E(q: Any) -> Any:
    """``E(q)`` of S004 (35b): ``omega = 2 E(q) v`` is the spatial angular velocity."""
    return ca.horzcat(-q[1:], q[0] * ca.SX.eye(3) + ca.skew(q[1:]))
