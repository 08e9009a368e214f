"""Spherical pendulum: point mass on a rigid rod in space."""

from __future__ import annotations

import numpy as np

from livens.models.problem import Problem
from livens.models.symmetry import rotations
from livens.models.system import System
from livens.problems import problem
from livens.problems.reference_solution import reference_motion
from livens.scene import shapes


@problem(
    "spherical-pendulum",
    summary="point mass on a rigid rod in space: 3 coordinates, 1 constraint, one angular momentum",
    source="a common test of constrained integrators; data chosen here",
    scheme="livens-em",
)
def spherical_pendulum(
    m: float = 1.0,
    l: float = 1.0,  # noqa: E741
    g: float = 9.81,
    theta: float = 1.2,
    speed: float = 2.0,
) -> Problem:
    """Build the problem at the angle `theta` from the lowest position, with a horizontal velocity; L3 is vertical."""
    system = System(
        "x y z",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, k: k.m * k.g * q[2],
        constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
        constraint_names=["length of the rod"],
        parameters=dict(m=m, l=l, g=g),
        visual=lambda q: [shapes.ground([0, 0, 0]), shapes.rod([0, 0, 0], q), shapes.sphere(q)],
        symmetries=dict(L3=lambda q: rotations([[0, 1, 2]])(q)[2]),
    )
    q0, v0 = l * np.array([np.sin(theta), 0.0, -np.cos(theta)]), np.array([0.0, speed, 0.0])
    return Problem(
        "spherical-pendulum", system, q0, v0, "livens-em", 0.01, 10.0, reference=reference_motion(system, q0, v0)
    )
