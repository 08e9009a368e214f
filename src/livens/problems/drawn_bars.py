"""Four bars in a ring (S004 5.5), drawn with the multibody library; `closed-loop-bars` has the published form."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.problems import problem

#: Half-way between the corners of a square: where the bars are at the start, and the axis each is along.
_BARS = (((1, 0, 0), 1), ((0, 1, 0), 0), ((-1, 0, 0), 1), ((0, -1, 0), 0))
_CORNERS = ((1, 1, 0), (-1, 1, 0), (-1, -1, 0), (1, -1, 0))


def bars_mechanism(l: float = 10.0, width: float = 1.0, rho: float = 1.0, f_m: float = 100.0) -> Multibody:  # noqa: E741
    """Ball joints at the corners; the first bar is pushed and twisted along x, for one second."""
    mb, mass = Multibody(), rho * width**2 * l
    for i, (centre, axis) in enumerate(_BARS):
        size = np.full(3, width)
        size[axis] = l
        mb.box(f"bar{i + 1}", at=l / 2 * np.array(centre), size=size, mass=mass)
    bars = list(mb.bodies.values())
    for i, corner in enumerate(_CORNERS):
        mb.spherical(f"corner{i + 1}", bars[i], bars[i - 3], at=l / 2 * np.array(corner))

    def ramp(t: Any) -> Any:
        """From 0 to 1 at t = 1/2, and back to 0 at t = 1 (127)."""
        return m.where(t < 0.5, 2 * t, m.where(t < 1, 2 * (1 - t), 0.0))

    push, twist = (lambda t: [8 * f_m * ramp(t), 0, 0]), (lambda t: [6 * f_m * ramp(t), 0, 0])
    mb.wrench("load", bars[0], force=push, torque=twist)
    return mb


@problem(
    "drawn-bars",
    summary="four bars in a ring with ball joints, drawn as bodies and joints",
    source="S004 5.5",
    scheme="lie-em",
)
def drawn_bars(l: float = 10.0, width: float = 1.0, rho: float = 1.0, f_m: float = 100.0) -> Problem:  # noqa: E741
    """As `closed-loop-bars`; `f_m` is the greatest value of the load's time function."""
    if min(l, width, rho) <= 0:
        raise InputError("options l, width and rho must be greater than 0")
    return bars_mechanism(l, width, rho, f_m).problem("drawn-bars", h=0.1, t_end=10.0)
