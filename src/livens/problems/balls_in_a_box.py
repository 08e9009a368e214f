"""Many balls falling into a box, with collision detection by a cell grid."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.models.granular_box import GranularBox
from livens.models.problem import Problem
from livens.problems import problem

_RADIUS, _MASS = 0.01, 0.01
#: Distance of neighbouring balls in the initial grid, in ball diameters.
_SPACING = 1.15


@problem(
    "balls-in-a-box",
    summary="N balls fall into a box and come to rest; contacts are detected with a cell grid",
    source="livens",
    scheme="semi-explicit-2:0.5",
)
def balls_in_a_box(N: int = 100, friction: float = 0.3, damping: float = 0.5, stiffness: float = 2e4) -> Problem:
    """Build N balls in about five layers; the width of the box grows with N so that all heaps have the same depth.

    Initial positions are randomly perturbed, so that no ball stands exactly on another. At rest, the floor carries the
    weight of all balls.
    """
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    spacing = 2 * _RADIUS * _SPACING
    side = max(1, int(np.ceil(np.sqrt(N / 5))))
    index = np.arange(N)
    cells = np.column_stack([index % side, index // side % side, index // side**2])
    random = np.random.default_rng(7)
    positions = (cells + 0.5) * spacing + random.uniform(-0.06, 0.06, (N, 3)) * _RADIUS
    height = 2 * (cells[-1, 2] + 2) * spacing
    model = GranularBox(
        positions,
        radius=_RADIUS,
        mass=_MASS,
        lower=[0, 0, 0],
        upper=[side * spacing, side * spacing, height],
        stiffness=stiffness,
        damping=damping,
        friction=friction,
    )
    v0 = np.zeros((N, 6))
    v0[:, :3] = random.normal(0.0, 0.05, (N, 3))
    return Problem("balls-in-a-box", model, model.q0, v0.ravel(), "semi-explicit-2:0.5", 5e-5, 0.5)
