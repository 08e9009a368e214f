"""Princeton beam experiment (Dowell, Traybar and Hodges): flat cantilever under a tip load at an angle."""

from __future__ import annotations

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.multibody.sections import Section
from livens.problems import problem
from livens.types import ScalarLike

#: Time in s after which the load has its full value.
RAMP = 1.0


def princeton_cantilever(N: int = 10, load: float = 13.345, angle: float = 45.0) -> Multibody:
    """Build a cantilever along x, thin along y, high along z; at 0 degrees the load acts along the height."""
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    section = Section.rectangular(3.2024e-3, 12.377e-3, E=71.7e9, nu=0.31, density=2700.0)
    mb = Multibody()
    ends = [[0, 0, 0], [0.508, 0, 0]]
    beam = mb.beam(
        "beam", points=ends, section=section, elements=N, clamp_first=mb.ground, section_axis="y", damping_time=5e-3
    )
    direction = load * np.array([0.0, np.sin(np.radians(angle)), -np.cos(np.radians(angle))])

    def push(t: ScalarLike) -> list[ScalarLike]:
        return [float(x) * m.minimum(t / RAMP, 1.0) for x in direction]

    mb.wrench("load", beam.b, force=push)
    return mb


@problem(
    "princeton-beam",
    summary="flat cantilever of N elements in biaxial bending and torsion under a tip load at an angle",
    source="Dowell, Traybar and Hodges 1977",
    scheme="lie-em",
)
def princeton_beam(N: int = 10, load: float = 13.345, angle: float = 45.0) -> Problem:
    """Build the problem; the load grows for 1 s, `angle` is in degrees from the height of the section."""
    return princeton_cantilever(N, load, angle).problem("princeton-beam", h=5e-3, t_end=1.2)
