"""Henon-Heiles system: a star in the mean field of a galaxy, with regular and chaotic motion (1964)."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector


def _potential(q: Vector) -> ScalarLike:
    return 0.5 * (q @ q) + q[0] ** 2 * q[1] - q[1] ** 3 / 3


def _visual(q: Vector) -> list[shapes.Shape]:
    """Return the star and the triangle that bounds its motion for energies below 1/6."""
    corners = [[0.0, 1.0], [-np.sqrt(0.75), -0.5], [np.sqrt(0.75), -0.5], [0.0, 1.0]]
    return [shapes.path(corners, name="edge"), shapes.sphere(q, 0.03, name="star")]


@problem(
    "henon-heiles",
    summary="Henon-Heiles system: regular and chaotic motion of a star in a galaxy",
    source="Henon, Heiles (1964)",
    scheme="kahan-li-8:stormer-verlet",
)
def henon_heiles(energy: float = 0.15) -> Problem:
    """Build the problem; the star starts at (0, 0.1) along x with the given energy and may escape above 1/6."""
    q0 = np.array([0.0, 0.1])
    speed_squared = 2 * (energy - float(_potential(q0)))
    if not speed_squared >= 0 or energy > 1 / 6:
        raise InputError(f"option 'energy' must be between {float(_potential(q0)):.4g} and 1/6, got {energy:g}")
    system = System("x y", kinetic=lambda v: 0.5 * (v @ v), potential=_potential, visual=_visual)
    return Problem(
        "henon-heiles", system, q0, np.array([np.sqrt(speed_squared), 0.0]), "kahan-li-8:stormer-verlet", 0.25, 200.0
    )
