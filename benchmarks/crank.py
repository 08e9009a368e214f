"""Slider-crank with a motor: data and reference solution of a task for all codes.

Crank and rod are thin and move in the x, y plane under gravity; the slider moves along x. The mechanism starts at rest,
driven by the torque ``sin(3 t)/2``. The task is the crank angle after 3 s with an error of at most 1e-4 rad.
"""

from __future__ import annotations

import functools
import math

import numpy as np

CRANK, ROD = 0.2, 0.5
MASSES = 1.0, 2.0, 0.5
GRAVITY, ANGLE, T_END, TOLERANCE = 9.81, math.pi / 4, 3.0, 1e-4
#: First step size in s.
H = 1e-2


def moments() -> tuple[float, float]:
    """Return the moments of inertia of crank and rod about their centres."""
    return MASSES[0] * CRANK**2 / 12, MASSES[1] * ROD**2 / 12


def rod_angle(angle: float) -> float:
    """Return the angle of the rod."""
    return -math.asin(CRANK * math.sin(angle) / ROD)


@functools.cache
def exact() -> float:
    """Return the final crank angle from the equation of one degree of freedom, ``M a'' + M' a'^2/2 + V' = torque``."""
    from scipy.integrate import solve_ivp

    def rhs(t: float, x: np.ndarray) -> list[float]:
        a, rate = float(x[0]), float(x[1])
        s, c = math.sin(a), math.cos(a)
        b = rod_angle(a)
        cb, tb = math.cos(b), math.tan(b)
        b1 = -CRANK * c / (ROD * cb)  # derivatives of the rod angle by the crank angle
        b2 = CRANK * s / (ROD * cb) + tb * b1**2
        # first and second derivatives of the positions of rod centre and slider
        x1, x2 = -CRANK * s - ROD / 2 * math.sin(b) * b1, -CRANK * c - ROD / 2 * (cb * b1**2 + math.sin(b) * b2)
        y1, y2 = CRANK * c + ROD / 2 * cb * b1, -CRANK * s + ROD / 2 * (cb * b2 - math.sin(b) * b1**2)
        z1, z2 = -CRANK * s - ROD * math.sin(b) * b1, -CRANK * c - ROD * (cb * b1**2 + math.sin(b) * b2)
        (of_crank, of_rod), (crank, rod, slider) = moments(), MASSES
        M = of_crank + crank * CRANK**2 / 4 + of_rod * b1**2 + rod * (x1**2 + y1**2) + slider * z1**2
        half = of_rod * b1 * b2 + rod * (x1 * x2 + y1 * y2) + slider * z1 * z2
        weight = GRAVITY * (crank * CRANK / 2 * c + rod * y1)
        return [rate, (0.5 * math.sin(3 * t) - weight - half * rate**2) / M]

    solution = solve_ivp(rhs, (0.0, T_END), [ANGLE, 0.0], method="DOP853", rtol=1e-12, atol=1e-12)
    return float(solution.y[0, -1])
