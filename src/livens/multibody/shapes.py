"""Principal moments of inertia of homogeneous solids about their centre, in kg m^2."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Default ratio of radius to length of a rod: without thickness, it has no inertia about its axis.
SLENDER = 0.02


def rod(length: float, mass: float, radius: float | None = None) -> np.ndarray:
    """Return the principal moments of a cylindrical rod along the first axis."""
    r = SLENDER * length if radius is None else radius
    across = mass * (3 * r**2 + length**2) / 12
    return np.array([mass * r**2 / 2, across, across])


def box(size: Any, mass: float) -> np.ndarray:
    """Return the principal moments of a box with edges along the axes."""
    x, y, z = np.asarray(size, dtype=float) ** 2
    return mass / 12 * np.array([y + z, x + z, x + y])


def cylinder(length: float, radius: float, mass: float) -> np.ndarray:
    """Return the principal moments of a solid cylinder about the third axis."""
    across = mass * (3 * radius**2 + length**2) / 12
    return np.array([across, across, mass * radius**2 / 2])


def sphere(radius: float, mass: float) -> np.ndarray:
    """Return the principal moments of a solid sphere."""
    return np.full(3, 0.4 * mass * radius**2)


def ring(radius: float, mass: float, tube: float = 0.0) -> np.ndarray:
    """Return the principal moments of a torus about the third axis, with the cross-section radius `tube_radius`."""
    return mass * np.array([radius**2 / 2 + 5 * tube**2 / 8] * 2 + [radius**2 + 3 * tube**2 / 4])
