"""Many balls falling into a box, with collision detection during the run."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
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
    from livens import contacts
    from livens.multibody.multibody import Multibody

    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    spacing = 2 * _RADIUS * _SPACING
    side = max(1, int(np.ceil(np.sqrt(N / 5))))
    width, index = side * spacing, np.arange(N)
    cells = np.column_stack([index % side, index // side % side, index // side**2])
    random = np.random.default_rng(7)
    positions = (cells + 0.5) * spacing + random.uniform(-0.06, 0.06, (N, 3)) * _RADIUS
    mb = Multibody(gravity=[0, 0, -9.81])
    balls = [mb.sphere(f"ball{i + 1}", at=position, radius=_RADIUS, mass=_MASS) for i, position in enumerate(positions)]
    for ball, velocity in zip(balls, random.normal(0.0, 0.05, (N, 3)), strict=True):
        mb.initial(ball, velocity=velocity)
    walls = [
        contacts.HalfSpace(mb.ground, at=at, normal=normal)
        for at, normal in (
            ([0, 0, 0], [0, 0, 1]),
            ([0, 0, 0], [1, 0, 0]),
            ([0, 0, 0], [0, 1, 0]),
            ([width, 0, 0], [-1, 0, 0]),
            ([0, width, 0], [0, -1, 0]),
        )
    ]
    law = contacts.Friction(friction, slip_tolerance=1e-2) if friction else 0.0
    mb.contact_group("box", [*balls, *walls], stiffness=stiffness, dissipation=damping, friction=law)
    return mb.problem("balls-in-a-box", h=5e-5, t_end=0.5, scheme="semi-explicit-2:0.5")
