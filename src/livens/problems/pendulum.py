"""Pendulum of Symank 2025, 7.3: the pendulum of the IFToMM library, released on the right side."""

from __future__ import annotations

import dataclasses

import numpy as np

from livens.models.problem import Problem
from livens.problems import problem
from livens.problems.simple_pendulum import simple_pendulum

_MIRROR = np.array([-1.0, 1.0])


@problem(
    "pendulum",
    summary="point mass on a rigid rod, released on the right, for 240 s",
    source="Symank 2025, 7.3",
    source_run="J-PRK, M-PRK and M-PRK-GGL, h = 0.01 s, until t = 240 s",
    scheme="livens-em",
)
def pendulum(m: float = 1.0, l: float = 1.0, g: float = 9.81) -> Problem:  # noqa: E741
    """Build the problem from (l, 0) at rest; the rod force is ``lam l``, where ``lam = m (v.v - g y)/l^2``."""
    mirrored = simple_pendulum(m, l, g)
    exact = mirrored.reference
    assert exact is not None

    def reference(t: float) -> dict[str, np.ndarray]:
        q, v = _MIRROR * exact(t)["q"], _MIRROR * exact(t)["v"]
        return {"q": q, "v": v, "multipliers": np.array([m * (v @ v - g * q[1]) / l**2])}

    return dataclasses.replace(
        mirrored, name="pendulum", q0=_MIRROR * mirrored.q0, h=0.005, t_end=240.0, reference=reference
    )
