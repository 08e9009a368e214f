"""A slider-crank with a motor, from its data to the angle of the crank: the same task for all codes.

A crank and a rod, both thin, in the plane x, y under gravity, and a slider on the axis x; it starts at rest, and a
torque of ``sin(3 t)/2`` turns the crank. Wanted is its angle after three seconds to 1e-4 rad.
"""

from __future__ import annotations

import functools
import math

import numpy as np

CRANK, ROD = 0.2, 0.5
MASSES = 1.0, 2.0, 0.5
GRAVITY, ANGLE, T_END, WITHIN = 9.81, math.pi / 4, 3.0, 1e-4
#: The step that is tried first.
H = 1e-2


def moments() -> tuple[float, float]:
    """Of crank and rod about their centres."""
    return MASSES[0] * CRANK**2 / 12, MASSES[1] * ROD**2 / 12


def slope(angle: float) -> float:
    """The angle of the rod."""
    return -math.asin(CRANK * math.sin(angle) / ROD)


@functools.cache
def exact() -> float:
    """The angle of the crank at the end, from the equation of its one freedom, ``M a'' + M' a'^2/2 + V' = torque``."""
    from scipy.integrate import solve_ivp

    def right(t: float, x: np.ndarray) -> list[float]:
        a, rate = float(x[0]), float(x[1])
        s, c = math.sin(a), math.cos(a)
        b = slope(a)
        cb, tb = math.cos(b), math.tan(b)
        b1 = -CRANK * c / (ROD * cb)  # slopes of the rod's angle by that of the crank
        b2 = CRANK * s / (ROD * cb) + tb * b1**2
        # centre of the rod and slider: slopes and curvatures
        x1, x2 = -CRANK * s - ROD / 2 * math.sin(b) * b1, -CRANK * c - ROD / 2 * (cb * b1**2 + math.sin(b) * b2)
        y1, y2 = CRANK * c + ROD / 2 * cb * b1, -CRANK * s + ROD / 2 * (cb * b2 - math.sin(b) * b1**2)
        z1, z2 = -CRANK * s - ROD * math.sin(b) * b1, -CRANK * c - ROD * (cb * b1**2 + math.sin(b) * b2)
        (of_crank, of_rod), (crank, rod, slider) = moments(), MASSES
        M = of_crank + crank * CRANK**2 / 4 + of_rod * b1**2 + rod * (x1**2 + y1**2) + slider * z1**2
        half = of_rod * b1 * b2 + rod * (x1 * x2 + y1 * y2) + slider * z1 * z2
        weight = GRAVITY * (crank * CRANK / 2 * c + rod * y1)
        return [rate, (0.5 * math.sin(3 * t) - weight - half * rate**2) / M]

    found = solve_ivp(right, (0.0, T_END), [ANGLE, 0.0], method="DOP853", rtol=1e-12, atol=1e-12)
    return float(found.y[0, -1])
