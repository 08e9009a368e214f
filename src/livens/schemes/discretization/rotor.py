"""Step of a fast symmetric rotor: `lie-em` with a phase-corrected kinetic energy.

For a body that spins about an axis, conservation of energy, angular momentum and joint work determines the Cayley map:
it rotates by ``2 atan(h Omega/2)`` in a step, with a phase error of ``(h Omega)^3/12``. The kinetic energy is free.
With any ``K_h(Pi)`` that converges to that of the body, ``w = Rm DG K_h(Pi0, Pi1)`` conserves ``K_h + V`` and angular
momentum exactly. For a body with ``J1 = J2``, the exact free motion for small nutation is that of ::

    K_h = A(Pi3) + B(Pi3) (Pi1^2 + Pi2^2)/2
    A'  = (2/h) tan(xi)                         xi   = h Pi3/(2 J3)
    B   = sin(beta)/(beta J1 cos(xi) cos(xi - beta))     beta = h Pi3/(2 J1)

for ``xi < pi/2``. Divided differences are written without cancellation for small changes of Pi3.
"""

from __future__ import annotations

import math

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.director_bodies import inertia_function
from livens.models.system import System
from livens.schemes.discretization.rigid_body_step import BodyInertia, BodyState, LieGroupStep, StepKinematics
from livens.types import Expr

#: Number of series terms: sin(x)/x to round-off for x <= pi, atanh(z)/z for z <= 0.15 (change of spin in one step).
_SINC_TERMS, _ATANH_TERMS = 14, 10
#: Maximum rotation angle in a step, in radians: the corrected energy has a pole at pi.
MAX_STEP_ANGLE = 3.0


class RotorStep(LieGroupStep):
    """Rotor step: `LieGroupStep` with additional unknowns ``sigma = J^-1 (Pi0 + Pi1)/2``, which determine w by

    0 = J (R0^T w - DG K_h(Pi0, 2 J sigma - Pi0))
    """

    def __init__(self, dimension: int, directors: int) -> None:
        super().__init__(dimension, directors)
        self.n_extra = 3

    def initial_guess(self, q: Expr, v: Expr) -> Expr:
        rigid_guess = super().initial_guess(q, v)
        return ca.vertcat(rigid_guess, ca.horzcat(*self.split_coordinates(q)[1:]).T @ rigid_guess[3:])

    def body_momentum(self, b: StepKinematics, inertia: BodyInertia) -> Expr:
        """Return ``(Pi0 + Pi1)/2``."""
        return ca.vertcat(*(J * s for J, s in zip(_principal_moments(inertia), ca.vertsplit(b.extra), strict=True)))

    def residual(
        self,
        b: StepKinematics,
        old: BodyState,
        element_residual: Expr,
        ggl_correction: Expr,
        inertia: BodyInertia,
        h: Expr,
    ) -> Expr:
        moments = ca.vertcat(*_principal_moments(inertia))
        mean = self.body_momentum(b, inertia)
        rate = corrected_discrete_gradient(
            old.body_angular_momentum, 2 * mean - old.body_angular_momentum, moments[0], moments[2], h
        )
        relation = moments * (ca.horzcat(*b.d_0).T @ b.w - rate)
        return ca.vertcat(super().residual(b, old, element_residual, ggl_correction, inertia, h), relation)


def check_rotors(system: System, body_momenta: np.ndarray, k: np.ndarray, h: float) -> None:
    """Raise an error unless all rotors are symmetric and rotate by less than `MAX_STEP_ANGLE` in a step."""
    next_start = 0
    for frame in system.frames:
        start, next_start = next_start, next_start + frame.n_rot
        if not frame.rotor:
            continue
        name = system.elements[frame.element_index].name
        euler = np.array(inertia_function(system, frame)(k[list(system.element_parameters[frame.element_index])])[1])
        if np.abs(euler - np.diag([euler[0, 0], euler[0, 0], euler[2, 2]])).max() > 1e-9 * np.abs(euler).max():
            raise InputError(f"the rotor '{name}' must have the same inertia about all axes across its third")
        angle = abs(h * body_momenta[start + 2]) / (2 * euler[0, 0])
        if angle > MAX_STEP_ANGLE:
            raise InputError(
                f"the rotor '{name}' turns by {angle:.3g} rad in a step of h = {h:g}; the phase correction is valid "
                f"up to {MAX_STEP_ANGLE:g} rad per step: take h = {h * MAX_STEP_ANGLE / angle * 0.9:.1g} or less"
            )


def _principal_moments(inertia: BodyInertia) -> tuple[Expr, Expr, Expr]:
    """Return the principal moments of inertia; the rotor axis is the third axis of the body."""
    across = inertia.euler_tensor[1, 1] + inertia.euler_tensor[2, 2]
    return across, across, inertia.euler_tensor[0, 0] + inertia.euler_tensor[1, 1]


def corrected_discrete_gradient(
    Pi0: Expr | ca.DM, Pi1: Expr | ca.DM, across: Expr | float, along: Expr | float, h: Expr | float
) -> Expr:
    """Return ``DG K_h``, a discrete gradient of the corrected kinetic energy between two body angular momenta."""
    s0, s1 = Pi0[2], Pi1[2]
    beta, xi = h / (2 * across), h / (2 * along)  # times Pi3
    # functions f of Pi3 as (value at s0, value at s1, divided difference)
    sinc = _sinc_divided_difference(beta * s0, beta * s1, beta)
    sec_xi, sec_difference = _sec_divided_difference(s0, s1, xi), _sec_divided_difference(s0, s1, xi - beta)
    B0, B1, B_difference = _product_divided_difference(_product_divided_difference(sinc, sec_xi), sec_difference)
    squares = (Pi0[0] ** 2 + Pi0[1] ** 2 + Pi1[0] ** 2 + Pi1[1] ** 2) / 2
    transverse = (B0 + B1) / (2 * across) * (Pi0[:2] + Pi1[:2]) / 2
    return ca.vertcat(transverse, _spin_rate(s0, s1, xi, h) + squares * B_difference / (2 * across))


def corrected_energy(Pi: Expr, across: float, along: float, h: float) -> Expr:
    """Return the corrected kinetic energy ``K_h`` of a body angular momentum."""
    s, zero = Pi[2], ca.SX(0)
    beta, xi = h / (2 * across), h / (2 * along)
    sinc, sec_xi, sec_difference = (
        _sinc_divided_difference(beta * s, zero, beta),
        _sec_divided_difference(s, zero, xi),
        _sec_divided_difference(s, zero, xi - beta),
    )
    B = sinc[0] * sec_xi[0] * sec_difference[0] / across
    return -(4 * along / h**2) * ca.log(ca.cos(xi * s)) + B * (Pi[0] ** 2 + Pi[1] ** 2) / 2


def _spin_rate(s0: Expr | ca.DM, s1: Expr | ca.DM, xi: Expr | float, h: Expr | float) -> Expr:
    """Return ``(A(s1) - A(s0))/(s1 - s0) = (2/h) tan(x) atanh(z)/z tan(d)/d``, ``z = tan(x) tan(d)``.

    x is the mean of both angles xi s, d half their difference.
    """
    x, d = xi * (s0 + s1) / 2, xi * (s1 - s0) / 2
    over = _sinc(d) / ca.cos(d)  # tan(d)/d
    z = ca.tan(x) * d * over
    series = ca.SX(0)
    for k in reversed(range(_ATANH_TERMS)):
        series = series * z**2 + 1 / (2 * k + 1)
    return 2 / h * ca.tan(x) * over * series


def _sinc(x: Expr | ca.DM) -> Expr:
    series = ca.SX(0)
    for k in reversed(range(_SINC_TERMS)):
        series = series * x**2 + (-1) ** k / math.factorial(2 * k + 1)
    return series


def _sinc_divided_difference(x0: Expr | ca.DM, x1: Expr | ca.DM, scale: Expr | float) -> tuple[Expr, Expr, Expr]:
    """Return ``sin(x)/x`` at ``x = scale s`` and its divided difference in s, both by Horner's rule in x^2."""
    y0, y1 = x0**2, x1**2
    low, high, difference = ca.SX(0), ca.SX(0), ca.SX(0)
    for k in reversed(range(_SINC_TERMS)):
        difference = low + y1 * difference
        coefficient = (-1) ** k / math.factorial(2 * k + 1)
        low, high = low * y0 + coefficient, high * y1 + coefficient
    return low, high, difference * scale * (x0 + x1)


def _sec_divided_difference(s0: Expr | ca.DM, s1: Expr | ca.DM, scale: Expr | float) -> tuple[Expr, Expr, Expr]:
    """Return ``1/cos(scale s)`` at s0 and s1, and its divided difference in s."""
    cos0, cos1 = ca.cos(scale * s0), ca.cos(scale * s1)
    x, d = scale * (s0 + s1) / 2, scale * (s1 - s0) / 2
    return 1 / cos0, 1 / cos1, scale * ca.sin(x) * _sinc(d) / (cos0 * cos1)


def _product_divided_difference(f: tuple[Expr, Expr, Expr], g: tuple[Expr, Expr, Expr]) -> tuple[Expr, Expr, Expr]:
    """Return the values of a product at s0 and s1, and its divided difference."""
    difference = (f[0] + f[1]) / 2 * g[2] + (g[0] + g[1]) / 2 * f[2]
    return f[0] * g[0], f[1] * g[1], difference
