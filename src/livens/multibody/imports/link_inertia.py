"""Spatial inertia of links: mass, centre of mass and inertia tensor; sums and simple solids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from livens.multibody import solid_inertia


@dataclass(frozen=True, eq=False)
class LinkInertia:
    """Mass, centre of mass in a frame, and inertia tensor about the centre in the axes of that frame."""

    mass: float
    centre: np.ndarray
    tensor: np.ndarray

    def transformed(self, position: np.ndarray, rotation: np.ndarray) -> LinkInertia:
        """Return the inertia in a frame in which the current frame has the given pose."""
        return LinkInertia(self.mass, position + rotation @ self.centre, rotation @ self.tensor @ rotation.T)

    def scaled(self, factor: float) -> LinkInertia:
        return LinkInertia(factor * self.mass, self.centre, factor * self.tensor)


def sum_inertias(inertias: Iterable[LinkInertia]) -> LinkInertia | None:
    """Return the inertia of a rigid assembly; None without mass. Parts may have an inertia and no mass."""
    parts = [part for part in inertias if part.mass or part.tensor.any()]
    if len(parts) <= 1:
        return parts[0] if parts else None
    total = sum(part.mass for part in parts)
    if not total > 0:
        return LinkInertia(0.0, parts[0].centre, sum((part.tensor for part in parts), np.zeros((3, 3))))
    centre = sum((part.mass * part.centre for part in parts), np.zeros(3)) / total
    tensor = np.zeros((3, 3))
    for part in parts:
        x = part.centre - centre
        tensor = tensor + part.tensor + part.mass * (x @ x * np.eye(3) - np.outer(x, x))
    return LinkInertia(total, centre, tensor)


# -- simple solids, in their own axes ---------------------------------------------------------------------------------
def _unit_density(volume: float, moments: np.ndarray) -> LinkInertia:
    """Return the inertia of a solid of unit density, from the principal moments of unit mass."""
    return LinkInertia(volume, np.zeros(3), volume * np.diag(moments))


def sphere(radius: float) -> LinkInertia:
    return _unit_density(4 / 3 * np.pi * radius**3, solid_inertia.sphere_inertia(radius, 1.0))


def box(size: np.ndarray) -> LinkInertia:
    return _unit_density(float(np.prod(size)), solid_inertia.box_inertia(size, 1.0))


def cylinder(radius: float, length: float) -> LinkInertia:
    return _unit_density(np.pi * radius**2 * length, solid_inertia.cylinder_inertia(length, radius, 1.0))


def ellipsoid(axes: np.ndarray) -> LinkInertia:
    """Return the inertia of an ellipsoid with these semi-axes."""
    x, y, z = axes**2
    return _unit_density(4 / 3 * np.pi * float(np.prod(axes)), np.array([y + z, x + z, x + y]) / 5)


def capsule(radius: float, length: float) -> LinkInertia:
    """Return the inertia of a capsule: a cylinder about the third axis with hemispherical caps."""
    cylinder_inertia, sphere_inertia = cylinder(radius, length), sphere(radius)
    # the centre of a hemisphere is 3/8 of its radius from the flat side; its transverse moment there is 83/320 m r^2
    shift = length / 2 + 3 / 8 * radius
    across = 83 / 320 * sphere_inertia.mass * radius**2 + sphere_inertia.mass * shift**2
    ends = np.diag([across, across, 0.4 * sphere_inertia.mass * radius**2])
    return LinkInertia(cylinder_inertia.mass + sphere_inertia.mass, np.zeros(3), cylinder_inertia.tensor + ends)
