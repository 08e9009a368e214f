"""The heavy top of Geradin and Cardona, the usual benchmark of integrators on Lie groups."""

from __future__ import annotations

import numpy as np

from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.problems import problem


def lie_heavy_top_mechanism(spin: float = 150.0, drift: float = -4.61538) -> Multibody:
    """Its centre is at (0, 1, 0) of its own axes, which are those of space at the start; the origin is held."""
    mb = Multibody(gravity=[0, 0, -9.81])
    top = mb.body(
        "top",
        mass=15.0,
        inertia=[0.234375, 0.46875, 0.234375],
        position=[0, 1, 0],
        points=dict(tip=np.zeros(3)),
    )
    mb.spherical("tip", mb.ground, top, at=[0, 0, 0])
    mb.start(top, omega=[0, spin, drift])
    return mb


@problem(
    "lie-heavy-top",
    summary="a fast heavy top on a ball joint that passes the hanging position: 12 coordinates",
    source="Bruels, Cardona, Arnold 2012",
    scheme="lie-em",
)
def lie_heavy_top(spin: float = 150.0, drift: float = -4.61538) -> Problem:
    """`spin` is the rate about its axis, `drift` that about z of the body at the start."""
    return lie_heavy_top_mechanism(spin, drift).problem("lie-heavy-top", h=2.5e-4, t_end=2.0)
