"""Roll-up of a straight cantilever to a circle by a tip moment (Simo and Vu-Quoc)."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.multibody.sections import Section
from livens.problems import problem
from livens.types import ScalarLike

#: Time in s after which the moment has its full value.
RAMP = 10.0


def rolled_beam(N: int = 10, revolutions: float = 1.0) -> Multibody:
    """Build a planar beam of length 1 and bending stiffness 2; the moment grows slowly to limit vibrations."""
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    if abs(revolutions) >= N / 2:
        raise InputError(
            f"option 'turns' must be below {N / 2:g} (less than half a turn per element), got {revolutions:g}"
        )
    mb = Multibody(planar=True)
    section = Section.general(EA=1e4, GA=1e4, GJ=2.0, EI=2.0, mass=1.0, inertia=0.01, radius=0.01)
    beam = mb.beam(
        "beam", points=[[0, 0], [1, 0]], section=section, elements=N, clamp_first=mb.ground, damping_time=0.05
    )  # fmt: skip
    full_moment = 2 * np.pi * revolutions * 2.0

    def moment(t: ScalarLike) -> Any:
        return [full_moment * m.minimum(t / RAMP, 1.0)]

    mb.wrench("moment", beam.b, torque=moment)
    return mb


@problem(
    "roll-up",
    summary="tip moment rolls a cantilever of N elements up to a circle; exact solution known",
    source="Simo and Vu-Quoc 1986",
    scheme="lie-em",
)
def roll_up(N: int = 10, revolutions: float = 1.0) -> Problem:
    """Build the problem; after 10 s the tip is at ``L sin(a)/a, L (1 - cos(a))/a`` with ``a = 2 pi revolutions``."""
    return rolled_beam(N, revolutions).problem("roll-up", h=0.02, t_end=12.0)
