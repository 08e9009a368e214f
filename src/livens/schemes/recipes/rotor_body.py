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
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.frames import mass_and_euler
from livens.models.system import System
from livens.schemes.recipes.frame_bodies import BodyInertia, BodyState, LieBody, Motion

#: Number of series terms: sin(x)/x to round-off for x <= pi, atanh(z)/z for z <= 0.15 (change of spin in one step).
_SINE, _ATANH = 14, 10
#: Maximum rotation angle in a step, in radians: the corrected energy has a pole at pi.
MOST = 3.0


class RotorBody(LieBody):
    """Rotor step: `LieGroupStep` with additional unknowns ``sigma = J^-1 (Pi0 + Pi1)/2``, which determine w by

    0 = J (R0^T w - DG K_h(Pi0, 2 J sigma - Pi0))
    """

    def __init__(self, dimension: int, directors: int) -> None:
        super().__init__(dimension, directors)
        self.more = 3

    def guess(self, q: Any, v: Any) -> Any:
        plain = super().guess(q, v)
        return ca.vertcat(plain, ca.horzcat(*self.parts(q)[1:]).T @ plain[3:])

    def spin_of(self, b: Motion, inertia: BodyInertia) -> Any:
        """Return ``(Pi0 + Pi1)/2``."""
        return ca.vertcat(*(J * s for J, s in zip(_moments(inertia), ca.vertsplit(b.more), strict=True)))

    def balance(self, b: Motion, old: BodyState, rows: Any, pull: Any, inertia: BodyInertia, h: Any) -> Any:
        moments = ca.vertcat(*_moments(inertia))
        mean = self.spin_of(b, inertia)
        rate = corrected_rate(old.spin, 2 * mean - old.spin, moments[0], moments[2], h)
        relation = moments * (ca.horzcat(*b.start).T @ b.w - rate)
        return ca.vertcat(super().balance(b, old, rows, pull, inertia, h), relation)


def check_rotors(system: System, spins: np.ndarray, k: np.ndarray, h: float) -> None:
    """Raise an error unless all rotors are symmetric and rotate by less than `MAX_STEP_ANGLE` in a step."""
    at = 0
    for frame in system.frames:
        first, at = at, at + frame.turning
        if not frame.rotor:
            continue
        name = system.elements[frame.element].name
        euler = np.array(mass_and_euler(system, frame)(k[list(system.parameter_indices[frame.element])])[1])
        if np.abs(euler - np.diag([euler[0, 0], euler[0, 0], euler[2, 2]])).max() > 1e-9 * np.abs(euler).max():
            raise InputError(f"the rotor '{name}' must have the same inertia about all axes across its third")
        turned = abs(h * spins[first + 2]) / (2 * euler[0, 0])
        if turned > MOST:
            raise InputError(
                f"the rotor '{name}' turns by {turned:.3g} rad in a step of h = {h:g}; the phase correction is valid "
                f"up to {MOST:g} rad per step: take h = {h * MOST / turned * 0.9:.1g} or less"
            )


def _moments(inertia: BodyInertia) -> tuple[Any, Any, Any]:
    """Return the principal moments of inertia; the rotor axis is the third axis of the body."""
    across = inertia.euler[1, 1] + inertia.euler[2, 2]
    return across, across, inertia.euler[0, 0] + inertia.euler[1, 1]


def corrected_rate(first: Any, second: Any, across: Any, along: Any, h: Any) -> Any:
    """Return ``DG K_h``, a discrete gradient of the corrected kinetic energy between two body angular momenta."""
    s0, s1 = first[2], second[2]
    beta, xi = h / (2 * across), h / (2 * along)  # times Pi3
    # functions f of Pi3 as (value at s0, value at s1, divided difference)
    sine = _sine(beta * s0, beta * s1, beta)
    one, other = _over_cosine(s0, s1, xi), _over_cosine(s0, s1, xi - beta)
    B0, B1, slope = _product(_product(sine, one), other)
    squares = (first[0] ** 2 + first[1] ** 2 + second[0] ** 2 + second[1] ** 2) / 2
    turning = (B0 + B1) / (2 * across) * (first[:2] + second[:2]) / 2
    return ca.vertcat(turning, _spin(s0, s1, xi, h) + squares * slope / (2 * across))


def corrected_energy(spin: Any, across: Any, along: Any, h: Any) -> Any:
    """Return the corrected kinetic energy ``K_h`` of a body angular momentum."""
    s, still = spin[2], ca.SX(0)
    beta, xi = h / (2 * across), h / (2 * along)
    sine, one, other = _sine(beta * s, still, beta), _over_cosine(s, still, xi), _over_cosine(s, still, xi - beta)
    B = sine[0] * one[0] * other[0] / across
    return -(4 * along / h**2) * ca.log(ca.cos(xi * s)) + B * (spin[0] ** 2 + spin[1] ** 2) / 2


def _spin(s0: Any, s1: Any, xi: Any, h: Any) -> Any:
    """Return ``(A(s1) - A(s0))/(s1 - s0) = (2/h) tan(x) atanh(z)/z tan(d)/d``, ``z = tan(x) tan(d)``.

    x is the mean of both angles xi s, d half their difference.
    """
    x, d = xi * (s0 + s1) / 2, xi * (s1 - s0) / 2
    over = _sinc(d) / ca.cos(d)  # tan(d)/d
    z = ca.tan(x) * d * over
    series = ca.SX(0)
    for k in reversed(range(_ATANH)):
        series = series * z**2 + 1 / (2 * k + 1)
    return 2 / h * ca.tan(x) * over * series


def _sinc(x: Any) -> Any:
    found = ca.SX(0)
    for k in reversed(range(_SINE)):
        found = found * x**2 + (-1) ** k / math.factorial(2 * k + 1)
    return found


def _sine(x0: Any, x1: Any, scale: Any) -> tuple[Any, Any, Any]:
    """Return ``sin(x)/x`` at ``x = scale s`` and its divided difference in s, both by Horner's rule in x^2."""
    y0, y1 = x0**2, x1**2
    low, high, slope = ca.SX(0), ca.SX(0), ca.SX(0)
    for k in reversed(range(_SINE)):
        slope = low + y1 * slope
        coefficient = (-1) ** k / math.factorial(2 * k + 1)
        low, high = low * y0 + coefficient, high * y1 + coefficient
    return low, high, slope * scale * (x0 + x1)


def _over_cosine(s0: Any, s1: Any, scale: Any) -> tuple[Any, Any, Any]:
    """Return ``1/cos(scale s)`` at s0 and s1, and its divided difference in s."""
    first, second = ca.cos(scale * s0), ca.cos(scale * s1)
    x, d = scale * (s0 + s1) / 2, scale * (s1 - s0) / 2
    return 1 / first, 1 / second, scale * ca.sin(x) * _sinc(d) / (first * second)


def _product(f: tuple[Any, Any, Any], g: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Return the values of a product at s0 and s1, and its divided difference."""
    slope = (f[0] + f[1]) / 2 * g[2] + (g[0] + g[1]) / 2 * f[2]
    return f[0] * g[0], f[1] * g[1], slope
