"""Pleiades: seven stars in the plane with close encounters (Hairer, Norsett, Wanner II.10)."""

from __future__ import annotations

import numpy as np

from livens.models.point_masses import PointMasses
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector

_POSITIONS = [[3, 3], [3, -3], [-1, 2], [-3, 0], [2, 0], [-2, -4], [2, 4]]
_VELOCITIES = [[0, 0], [0, 0], [0, 0], [0, -1.25], [0, 1], [1.75, 0], [-1.5, 0]]


def _visual(q: Vector) -> list[shapes.Shape]:
    return [shapes.sphere(q[2 * i : 2 * i + 2], 0.05 + 0.015 * i, name=f"star {i + 1}") for i in range(7)]


@problem(
    "pleiades",
    summary="seven stars in the plane with close encounters",
    source="IVP test set; Hairer, Norsett, Wanner",
    scheme="taylor",
)
def pleiades() -> Problem:
    """Build masses 1 to 7 with G = 1; the closest encounters are at t = 1.23 and 1.68."""
    names = [f"{axis}{i + 1}" for i in range(7) for axis in "xy"]
    system = PointMasses(7, range(1, 8), dimension=2, coordinates=names, visual=_visual)
    q0, v0 = np.array(_POSITIONS, dtype=float).ravel(), np.array(_VELOCITIES, dtype=float).ravel()
    return Problem("pleiades", system, q0, v0, "taylor", 1e-3, 3.0)
