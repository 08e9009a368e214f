"""Many balls that fall into a box: contacts are found by cells while they move."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.models.crowd import Crowd
from livens.models.problem import Problem
from livens.problems import problem

_RADIUS, _MASS = 0.01, 0.01
#: Places of balls in the loose grid that they start in, in diameters.
_APART = 1.15


@problem(
    "balls-in-a-box",
    summary="N balls fall into a box and come to rest in a heap; contacts are found by cells",
    source="livens",
    scheme="semi-explicit-2:0.5",
)
def balls_in_a_box(N: int = 100, friction: float = 0.3, damping: float = 0.5, stiffness: float = 2e4) -> Problem:
    """The box is as wide as its N balls need in about five layers, so that heaps of all sizes are alike.

    They start in layers, a little shaken so that none stands on another. At rest the floor carries their weight.
    """
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    step = 2 * _RADIUS * _APART
    side = max(1, int(np.ceil(np.sqrt(N / 5))))
    number = np.arange(N)
    cells = np.column_stack([number % side, number // side % side, number // side**2])
    random = np.random.default_rng(7)
    places = (cells + 0.5) * step + random.uniform(-0.06, 0.06, (N, 3)) * _RADIUS
    height = 2 * (cells[-1, 2] + 2) * step
    crowd = Crowd(
        places,
        radius=_RADIUS,
        mass=_MASS,
        lower=[0, 0, 0],
        upper=[side * step, side * step, height],
        stiffness=stiffness,
        damping=damping,
        friction=friction,
    )
    v0 = np.zeros((N, 6))
    v0[:, :3] = random.normal(0.0, 0.05, (N, 3))
    return Problem("balls-in-a-box", crowd, crowd.q0, v0.ravel(), "semi-explicit-2:0.5", 5e-5, 0.5)
