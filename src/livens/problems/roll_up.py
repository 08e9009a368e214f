"""A straight cantilever that a moment at its tip rolls up to a circle (Simo and Vu-Quoc)."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.multibody.sections import Section
from livens.problems import problem

#: The moment has grown to its full size by then.
RAMP = 10.0


def rolled_beam(N: int = 10, turns: float = 1.0) -> Multibody:
    """Length 1 and bending stiffness 2, in the plane; the moment grows slowly, so that nothing swings much."""
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    if abs(turns) >= N / 2:
        raise InputError(f"option 'turns' must be below {N / 2:g}: no element turns by half a circle, got {turns:g}")
    mb = Multibody(planar=True)
    section = Section.general(EA=1e4, GA=1e4, GJ=2.0, EI=2.0, mass=1.0, inertia=0.01, radius=0.01)
    beam = mb.beam(
        "beam", points=[[0, 0], [1, 0]], section=section, elements=N, first=mb.ground, damping=0.05
    )  # fmt: skip
    full = 2 * np.pi * turns * 2.0

    def moment(t: Any) -> Any:
        return [full * m.minimum(t / RAMP, 1.0)]

    mb.wrench("moment", beam.b, torque=moment)
    return mb


@problem(
    "roll-up",
    summary="a moment rolls a cantilever of N elements up to a circle, which is exact",
    source="Simo and Vu-Quoc 1986",
    scheme="lie-em",
)
def roll_up(N: int = 10, turns: float = 1.0) -> Problem:
    """The moment grows for ten seconds; then the tip is at ``L sin(a)/a, L (1 - cos(a))/a`` with ``a = 2 pi turns``."""
    return rolled_beam(N, turns).problem("roll-up", h=0.02, t_end=12.0)
