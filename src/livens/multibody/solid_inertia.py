"""Principal moments of inertia of homogeneous solids about their centre, in kg m^2."""

from __future__ import annotations

import numpy as np

from livens.types import ArrayLike

#: Default ratio of radius to length of a rod: without thickness, it has no inertia about its axis.
DEFAULT_SLENDERNESS = 0.02


def rod_inertia(length: float, mass: float, radius: float | None = None) -> np.ndarray:
    """Return the principal moments of a cylindrical rod along the first axis."""
    r = DEFAULT_SLENDERNESS * length if radius is None else radius
    transverse = mass * (3 * r**2 + length**2) / 12
    return np.array([mass * r**2 / 2, transverse, transverse])


def box_inertia(size: ArrayLike, mass: float) -> np.ndarray:
    """Return the principal moments of a box with edges along the axes."""
    x, y, z = np.asarray(size, dtype=float) ** 2
    return mass / 12 * np.array([y + z, x + z, x + y])


def cylinder_inertia(length: float, radius: float, mass: float) -> np.ndarray:
    """Return the principal moments of a solid cylinder about the third axis."""
    transverse = mass * (3 * radius**2 + length**2) / 12
    return np.array([transverse, transverse, mass * radius**2 / 2])


def sphere_inertia(radius: float, mass: float) -> np.ndarray:
    """Return the principal moments of a solid sphere."""
    return np.full(3, 0.4 * mass * radius**2)


def ring_inertia(radius: float, mass: float, tube_radius: float = 0.0) -> np.ndarray:
    """Return the principal moments of a torus about the third axis, with the cross-section radius `tube_radius`."""
    return mass * np.array([radius**2 / 2 + 5 * tube_radius**2 / 8] * 2 + [radius**2 + 3 * tube_radius**2 / 4])
