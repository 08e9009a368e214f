"""Closed loop of four bars (Kinon and Betsch 2024, 5.5) built with `Multibody`.

`closed-loop-bars` has the published formulation.
"""

from __future__ import annotations

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem
from livens.types import ScalarLike

#: Initial centres of the bars, in half bar lengths, and the coordinate axis of each bar.
_BARS = (((1, 0, 0), 1), ((0, 1, 0), 0), ((-1, 0, 0), 1), ((0, -1, 0), 0))
_CORNERS = ((1, 1, 0), (-1, 1, 0), (-1, -1, 0), (1, -1, 0))


def bars_mechanism(l: float = 10.0, width: float = 1.0, rho: float = 1.0, f_m: float = 100.0) -> Multibody:  # noqa: E741
    """Build the bars with spherical joints at the corners; force and torque along x act on the first bar for 1 s."""
    mb, mass = Multibody(), rho * width**2 * l
    for i, (centre, axis) in enumerate(_BARS):
        size = np.full(3, width)
        size[axis] = l
        mb.box(f"bar{i + 1}", at=l / 2 * np.array(centre), size=size, mass=mass)
    bars = list(mb.bodies.values())
    for i, corner in enumerate(_CORNERS):
        mb.spherical(f"corner{i + 1}", bars[i], bars[i - 3], at=l / 2 * np.array(corner))

    def ramp(t: ScalarLike) -> ScalarLike:
        """Return the load function (127): linear from 0 to 1 at t = 1/2, back to 0 at t = 1."""
        return m.where(t < 0.5, 2 * t, m.where(t < 1, 2 * (1 - t), 0.0))

    push, twist = (lambda t: [8 * f_m * ramp(t), 0, 0]), (lambda t: [6 * f_m * ramp(t), 0, 0])
    mb.wrench("load", bars[0], force=push, torque=twist)
    return mb


@problem(
    "closed-loop-bars-multibody",
    summary="closed loop of four bars with spherical joints, built with Multibody",
    source="Kinon and Betsch 2024, 5.5",
    scheme="lie-em",
)
def closed_loop_bars_multibody(l: float = 10.0, width: float = 1.0, rho: float = 1.0, f_m: float = 100.0) -> Problem:  # noqa: E741
    """Build the problem as `closed-loop-bars`; `f_m` is the maximum of the load function."""
    if min(l, width, rho) <= 0:
        raise InputError("options l, width and rho must be greater than 0")
    return bars_mechanism(l, width, rho, f_m).problem("closed-loop-bars-multibody", h=0.1, t_end=10.0)
