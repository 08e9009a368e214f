"""45-degree bend (Bathe and Bolourchi): curved cantilever under an out-of-plane tip force, in bending and torsion."""

from __future__ import annotations

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.multibody.sections import Section
from livens.problems import problem
from livens.types import ScalarLike

#: Time in s after which the force has its full value.
RAMP = 100.0


def bent_beam(N: int = 8, force: float = 600.0) -> Multibody:
    """Build a 45-degree arc of radius 100 with a unit square section, clamped at the origin."""
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    E, G = 1e7, 5e6
    section = Section.general(EA=E, GA=G, GJ=G / 6, EI=E / 12, mass=1.0, inertia=[1 / 6, 1 / 12, 1 / 12], radius=0.8)

    def arc(s: float) -> list[float]:
        return [100 * (1 - np.cos(np.pi / 4 * s)), 100 * np.sin(np.pi / 4 * s), 0.0]

    mb = Multibody()
    beam = mb.beam(
        "bend", points=arc, section=section, elements=N, clamp_first=mb.ground, section_axis="z", damping_time=1.0
    )

    def push(t: ScalarLike) -> list[ScalarLike]:
        return [0.0, 0.0, force * m.minimum(t / RAMP, 1.0)]

    mb.wrench("force", beam.b, force=push)
    return mb


@problem(
    "45-degree-bend",
    summary="curved cantilever of N elements under an out-of-plane tip force",
    source="Bathe and Bolourchi 1979",
    scheme="lie-em",
)
def bend_45(N: int = 8, force: float = 600.0) -> Problem:
    """Build the problem: the force grows linearly for 100 s; unit mass per length (without effect on the statics)."""
    return bent_beam(N, force).problem("45-degree-bend", h=0.5, t_end=120.0)
