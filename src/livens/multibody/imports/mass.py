"""Spatial inertia of links: mass, centre of mass and inertia tensor; sums and simple solids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from livens.multibody import shapes


@dataclass(frozen=True, eq=False)
class Mass:
    """Mass, centre of mass in a frame, and inertia tensor about the centre in the axes of that frame."""

    mass: float
    centre: np.ndarray
    tensor: np.ndarray

    def placed(self, position: np.ndarray, rotation: np.ndarray) -> Mass:
        """Return the inertia in a frame in which the current frame has the given pose."""
        return Mass(self.mass, position + rotation @ self.centre, rotation @ self.tensor @ rotation.T)

    def scaled(self, factor: float) -> Mass:
        return Mass(factor * self.mass, self.centre, factor * self.tensor)


def summed(masses: Iterable[Mass]) -> Mass | None:
    """Return the inertia of a rigid assembly; None without mass."""
    parts = [one for one in masses if one.mass > 0]
    if len(parts) <= 1:
        return parts[0] if parts else None
    total = sum(one.mass for one in parts)
    centre = sum((one.mass * one.centre for one in parts), np.zeros(3)) / total
    tensor = np.zeros((3, 3))
    for one in parts:
        x = one.centre - centre
        tensor = tensor + one.tensor + one.mass * (x @ x * np.eye(3) - np.outer(x, x))
    return Mass(total, centre, tensor)


# -- simple solids, in their own axes ---------------------------------------------------------------------------------
def _full(volume: float, moments: np.ndarray) -> Mass:
    """Return the inertia of a solid of unit density, from the principal moments of unit mass."""
    return Mass(volume, np.zeros(3), volume * np.diag(moments))


def sphere(radius: float) -> Mass:
    return _full(4 / 3 * np.pi * radius**3, shapes.sphere(radius, 1.0))


def box(size: np.ndarray) -> Mass:
    return _full(float(np.prod(size)), shapes.box(size, 1.0))


def cylinder(radius: float, length: float) -> Mass:
    return _full(np.pi * radius**2 * length, shapes.cylinder(length, radius, 1.0))


def ellipsoid(axes: np.ndarray) -> Mass:
    """Return the inertia of an ellipsoid with these semi-axes."""
    x, y, z = axes**2
    return _full(4 / 3 * np.pi * float(np.prod(axes)), np.array([y + z, x + z, x + y]) / 5)


def capsule(radius: float, length: float) -> Mass:
    """Return the inertia of a capsule: a cylinder about the third axis with hemispherical caps."""
    barrel, ball = cylinder(radius, length), sphere(radius)
    # the centre of a hemisphere is 3/8 of its radius from the flat side; its transverse moment there is 83/320 m r^2
    shift = length / 2 + 3 / 8 * radius
    across = 83 / 320 * ball.mass * radius**2 + ball.mass * shift**2
    ends = np.diag([across, across, 0.4 * ball.mass * radius**2])
    return Mass(barrel.mass + ball.mass, np.zeros(3), barrel.tensor + ends)
