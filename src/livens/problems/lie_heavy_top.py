"""Heavy top of Geradin and Cardona, the standard benchmark of Lie-group integrators."""

from __future__ import annotations

import numpy as np

from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem


def lie_heavy_top_mechanism(spin: float = 150.0, drift: float = -4.61538) -> Multibody:
    """Build the top with its centre of mass at (0, 1, 0) in body axes, fixed at the origin by a spherical joint."""
    mb = Multibody(gravity=[0, 0, -9.81])
    top = mb.body(
        "top",
        mass=15.0,
        inertia=[0.234375, 0.46875, 0.234375],
        position=[0, 1, 0],
        points=dict(tip=np.zeros(3)),
    )
    mb.spherical("tip", mb.ground, top, at=[0, 0, 0])
    mb.initial(top, omega=[0, spin, drift])
    return mb


@problem(
    "lie-heavy-top",
    summary="fast heavy top on a spherical joint that passes the hanging position: 12 coordinates",
    source="Bruels, Cardona, Arnold 2012",
    scheme="lie-em",
)
def lie_heavy_top(spin: float = 150.0, drift: float = -4.61538) -> Problem:
    """Build the problem; `spin` and `drift` are the initial rates about the axis and the z axis (rad/s)."""
    return lie_heavy_top_mechanism(spin, drift).problem("lie-heavy-top", h=2.5e-4, t_end=2.0)
