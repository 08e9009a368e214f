"""Inertia of bodies of simple shape, about their centre and in their own principal axes."""

from __future__ import annotations

from typing import Any

import numpy as np

#: A rod without thickness has no moment about its own axis; it gets that of a round one this thin, in lengths.
SLENDER = 0.02


def rod(length: float, mass: float, radius: float | None = None) -> np.ndarray:
    """A round rod along the first axis."""
    r = SLENDER * length if radius is None else radius
    across = mass * (3 * r**2 + length**2) / 12
    return np.array([mass * r**2 / 2, across, across])


def box(size: Any, mass: float) -> np.ndarray:
    """A box with edges along the axes."""
    x, y, z = np.asarray(size, dtype=float) ** 2
    return mass / 12 * np.array([y + z, x + z, x + y])


def cylinder(length: float, radius: float, mass: float) -> np.ndarray:
    """A full cylinder about the third axis."""
    across = mass * (3 * radius**2 + length**2) / 12
    return np.array([across, across, mass * radius**2 / 2])


def sphere(radius: float, mass: float) -> np.ndarray:
    """A full sphere."""
    return np.full(3, 0.4 * mass * radius**2)


def ring(radius: float, mass: float, tube: float = 0.0) -> np.ndarray:
    """A ring about the third axis, with a round section of radius `tube`."""
    return mass * np.array([radius**2 / 2 + 5 * tube**2 / 8] * 2 + [radius**2 + 3 * tube**2 / 4])
