"""Simple pendulum of the IFToMM benchmark library, A01."""

from __future__ import annotations

import numpy as np

from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.problems.elliptic import jacobi, quarter_period
from livens.scene import shapes


@problem(
    "simple-pendulum",
    summary="point mass on a rigid rod, in Cartesian coordinates",
    source="IFToMM A01",
    scheme="livens-em",
)
def simple_pendulum(m: float = 1.0, l: float = 1.0, g: float = 9.81) -> Problem:  # noqa: E741
    """Build the problem at rest in the horizontal position: ``sin(phi/2) = k sn(w t + K)`` with ``k^2 = 1/2``."""
    system = System(
        "x y",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, k: k.m * k.g * q[1],
        constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
        constraint_names=["length of the rod"],
        parameters=dict(m=m, l=l, g=g),
        visual=lambda q: [shapes.ground([0, 0]), shapes.rod([0, 0], q), shapes.sphere(q)],
    )

    def reference(t: float) -> dict[str, np.ndarray]:
        """Evaluate the exact motion; the angle from the lowest position starts at -pi/2."""
        frequency, modulus = np.sqrt(g / l), 0.5
        sn, cn, _ = jacobi(frequency * t - quarter_period(modulus), modulus)
        half_angle, rate = np.arcsin(np.sqrt(modulus) * sn), 2 * np.sqrt(modulus) * frequency * cn
        angle = 2 * half_angle
        position = l * np.array([np.sin(angle), -np.cos(angle)])
        return {"q": position, "v": rate * l * np.array([np.cos(angle), np.sin(angle)])}

    return Problem(
        "simple-pendulum", system, np.array([-l, 0.0]), np.zeros(2), "livens-em", 1e-3, 10.0, reference=reference
    )
