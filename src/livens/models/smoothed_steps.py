"""Smoothed step and ramp functions of a penetration depth, for the choice of step sizes (Modin 2009, paper II, 3.1)."""

from __future__ import annotations

from livens import math as m
from livens.types import ScalarLike


def smoothed_ramp(depth: float, c: float) -> float:
    """Return the smoothed ramp ``max(0, depth)`` with length c: the integral of `smoothed_step_function`.

    It is Modin 2009, paper II, eq. 29, used for step size selection only, not for forces.
    >>> round(float(smoothed_ramp(1.0, 1e-9)), 6), float(smoothed_ramp(0.0, 0.1))
    (1.0, 0.0)
    """
    s = depth / c
    return c * (s / 2 + (s * m.atan(s) - m.log(1 + s**2) / 2) / m.pi)


def positive_ramp(depth: ScalarLike, c: float) -> ScalarLike:
    """Return a positive smoothing of ``max(0, depth)``, as required by the root of the Hertz law."""
    return (depth + m.sqrt(depth**2 + c**2)) / 2


def smoothed_step_function(depth: ScalarLike, c: float) -> ScalarLike:
    """Return the smoothed step function, the derivative of `smoothed_ramp`: 0 outside of a contact, 1 inside.

    >>> float(smoothed_step_function(0.0, 0.1))
    0.5
    """
    return 0.5 + m.atan(depth / c) / m.pi
