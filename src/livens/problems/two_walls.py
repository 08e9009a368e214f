"""Particle between a soft and a stiff elastic wall (Modin 2009, paper II, example 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens import math as m
from livens import scaling
from livens.errors import InputError
from livens.models.problem import Problem
from livens.models.smoothed_steps import smoothed_step_function
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def _visual(q: Vector) -> list[shapes.Shape]:
    """Return the line, with the soft wall at q > 0 and the stiff wall at q < 0."""
    return [
        shapes.path([[-0.3, 0], [1.2, 0]], name="line"),
        shapes.path([[0, -0.3], [0, 0.3]], name="where the walls meet"),
        shapes.sphere([q[0], 0.0], 0.06, name="particle"),
    ]


@problem(
    "two-walls",
    summary="particle between a soft and a stiff elastic wall",
    source="Modin 2009, paper II, 3.2",
    source_run="met1 and met2: adaptive-variational:0.5,0.5 and adaptive-variational:0,0, until t = 200 s",
    scheme="livens-em",
)
def two_walls(K1: float = 1.0, K2: float = 1e4, smooth: float = 1e-3) -> Problem:
    """Build ``V = K1 max(0, q)^2/2 + K2 min(0, q)^2/2`` from q = 1 at rest: half a cosine in each wall.

    The step-size scaling is ``V''^(-1/2)``, with the walls smoothed over a length `smooth`. The paper uses a length
    proportional to the step, with the factors 0.033 and 0.04.
    """
    if min(K1, K2) <= 0:
        raise InputError("K1 and K2 must be greater than 0")
    if not smooth > 0:
        raise InputError(f"option 'smooth' must be greater than 0, got {smooth:g}")
    system = System(
        "q",
        kinetic=lambda v: 0.5 * v[0] ** 2,
        potential=lambda q, k: 0.5 * k.K1 * m.maximum(0, q[0]) ** 2 + 0.5 * k.K2 * m.minimum(0, q[0]) ** 2,
        parameters=dict(K1=K1, K2=K2),
        visual=_visual,
    )
    soft, stiff = np.sqrt(K1), np.sqrt(K2)

    def reference(t: float) -> dict[str, np.ndarray]:
        time_in_wall = (t + np.pi / (2 * soft)) % (np.pi / soft + np.pi / stiff)  # time since entry into the soft wall
        in_soft_wall = time_in_wall < np.pi / soft
        rate, sign, time_in_wall = (
            (soft, 1.0, time_in_wall) if in_soft_wall else (stiff, -1.0, time_in_wall - np.pi / soft)
        )
        position = sign * soft / rate * np.sin(rate * time_in_wall)
        return {"q": np.array([position]), "v": np.array([sign * soft * np.cos(rate * time_in_wall)])}

    def steps(q: Vector, k: ParameterNamespace) -> ScalarLike:
        return (
            k.K1 * smoothed_step_function(q[0], smooth) ** 2 + k.K2 * smoothed_step_function(-q[0], smooth) ** 2
        ) ** -0.5

    return Problem(
        "two-walls",
        system,
        np.ones(1),
        np.zeros(1),
        "livens-em",
        5e-4,
        200.0,
        reference=reference,
        scaling=scaling.user_scaling(steps),
    )
