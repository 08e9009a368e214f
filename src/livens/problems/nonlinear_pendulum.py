"""Pendulum in its angle, with unit length and weight (Modin 2009, 1.1 and 2.9.6)."""

from __future__ import annotations

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.problems.elliptic import jacobi, quarter_period
from livens.scene import shapes
from livens.types import Vector


def pendulum_visual(q: Vector) -> list[shapes.Shape]:
    """Return the shapes of a pendulum of unit length at the angle q."""
    bob = [m.sin(q[0]), -m.cos(q[0])]
    return [shapes.ground([0, 0]), shapes.rod([0, 0], bob), shapes.sphere(bob)]


@problem(
    "nonlinear-pendulum",
    summary="pendulum in its angle: one coordinate, no constraint",
    source="Modin 2009, 2.9.6",
    source_run="implicit-euler and symplectic-euler, h = 0.1 s",
    scheme="livens-em",
)
def nonlinear_pendulum(theta0: float = np.pi / 2) -> Problem:
    """Build the problem at rest at `theta0`: ``sin(theta/2) = k sn(K - t)``, ``k = sin(theta0/2)``. Two periods."""
    if not 0 < abs(theta0) < np.pi:
        raise InputError(f"option 'theta0' must lie between -pi and pi, and not be 0, got {theta0:g}")
    system = System(
        "theta", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: -m.cos(q[0]), visual=pendulum_visual
    )
    k = np.sin(theta0 / 2)
    quarter = quarter_period(k**2)

    def reference(t: float) -> dict[str, np.ndarray]:
        sn, cn, _ = jacobi(quarter - t, k**2)
        return {"q": np.array([2 * np.arcsin(k * sn)]), "v": np.array([-2 * k * cn])}

    return Problem(
        "nonlinear-pendulum",
        system,
        np.array([theta0]),
        np.zeros(1),
        "livens-em",
        0.1,
        8 * quarter,
        reference=reference,
    )
