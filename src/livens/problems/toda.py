"""Toda lattice: three particles on a ring with exponential springs, integrable (Toda, 1967)."""

from __future__ import annotations

import numpy as np

from livens import math as m
from livens.models.problem import Problem
from livens.models.symmetry import translations
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import Vector


def _visual(q: Vector) -> list[shapes.Shape]:
    """Return particles on a circle with radial displacements."""
    angles = 2 * np.pi * np.arange(3) / 3
    positions = [[(3 + 0.5 * q[i]) * np.cos(a), (3 + 0.5 * q[i]) * np.sin(a)] for i, a in enumerate(angles)]
    springs = [shapes.spring(positions[i], positions[(i + 1) % 3], 0.2) for i in range(3)]
    return [*springs, *(shapes.sphere(position, 0.25) for position in positions)]


@problem(
    "toda",
    summary="Toda lattice of three particles, integrable",
    source="Toda (1967); Hairer, Lubich, Wanner, X.1",
    scheme="kahan-li-8:stormer-verlet",
)
def toda() -> Problem:
    """Build ``V = sum exp(q_i - q_(i+1))``; the eigenvalues of the Lax matrix are constant."""
    system = System(
        "q1 q2 q3",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q: m.exp(q[0] - q[1]) + m.exp(q[1] - q[2]) + m.exp(q[2] - q[0]),
        symmetries=dict(momentum=translations([[0], [1], [2]])),
        visual=_visual,
    )
    initial = np.array([1.0, 2.0, -1.0]), np.array([-1.5, 1.0, 0.5])
    return Problem("toda", system, *initial, "kahan-li-8:stormer-verlet", 0.05, 50.0)
