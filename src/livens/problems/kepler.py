"""Kepler problem (Modin 2009, paper III, example 1)."""

from __future__ import annotations

import numpy as np

from livens import math as m
from livens import scaling
from livens.errors import InputError
from livens.models.element import of_invariants
from livens.models.problem import Problem
from livens.models.symmetry import rotations
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes


def _eccentric_anomaly(mean: float, e: float) -> float:
    """Solve Kepler's equation ``E - e sin(E) = mean`` for a mean anomaly in [-pi, pi] by Newton's method."""
    E = np.pi * np.sign(mean)  # from here the iteration converges monotonically for every e
    for _ in range(60):
        step = (E - e * np.sin(E) - mean) / (1 - e * np.cos(E))
        E -= step
        if abs(step) <= 1e-16 * abs(E):
            break
    return float(E)


@problem(
    "kepler",
    summary="planet on an ellipse, period 2 pi",
    source="Modin 2009, paper III, 1",
    source_run="sundman and step-density, eps = 0.02, e = 0.8",
    scheme="livens-em",
)
def kepler(e: float = 0.8) -> Problem:
    """Build the problem from perihelion; eccentricity `e`, semi-major axis 1. Steps scale as ``r^(3/2)``."""
    if not 0 <= e < 1:
        raise InputError(f"option 'e' must be at least 0 and less than 1, got {e:g}")
    system = System(
        "x y",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=of_invariants(lambda q: [q @ q], lambda w: -1 / m.sqrt(w[0])),
        symmetries=dict(angular_momentum=rotations([[0, 1]])),
        visual=lambda q: [shapes.sphere([0, 0], 0.08, name="sun", trace=None), shapes.sphere(q, 0.04, name="planet")],
    )
    b = np.sqrt(1 - e**2)

    def reference(t: float) -> dict[str, np.ndarray]:
        E = _eccentric_anomaly(float(np.remainder(t + np.pi, 2 * np.pi) - np.pi), e)
        rate = 1 / (1 - e * np.cos(E))
        q = np.array([np.cos(E) - e, b * np.sin(E)])
        return {"q": q, "v": rate * np.array([-np.sin(E), b * np.cos(E)])}

    initial = reference(0.0)
    return Problem(
        "kepler",
        system,
        initial["q"],
        initial["v"],
        "livens-em",
        0.002,
        20 * np.pi,
        reference=reference,
        scaling=scaling.potential(1.5),
    )
