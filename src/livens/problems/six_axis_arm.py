"""Six-axis robot arm with PD control of all joints along a trajectory."""

from __future__ import annotations

import functools

from livens import math as m
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem
from livens.types import ModelFunction

#: Axis, link length (m, upwards) and link mass (kg) of each joint, from base to hand.
_LINKS = (("z", 0.3, 8.0), ("y", 0.5, 6.0), ("y", 0.4, 4.0), ("z", 0.2, 2.0), ("y", 0.1, 1.0), ("z", 0.1, 0.5))


@functools.cache
def _joint_trajectory(i: int) -> tuple[ModelFunction, ModelFunction]:
    """Return reference angle and rate of joint i as functions of time; both start at zero."""
    size = 0.6 - 0.05 * i
    return lambda t: size * (1 - m.cos((1 + 0.2 * i) * t)), lambda t: size * (1 + 0.2 * i) * m.sin((1 + 0.2 * i) * t)


def arm_mechanism(stiffness: float = 2000.0, damping: float = 100.0) -> Multibody:
    """Build the upright arm; each joint has PD gains proportional to the mass that it carries."""
    mb, previous, height = Multibody(gravity=[0, 0, -9.81]), None, 0.0
    for i, (axis, length, mass) in enumerate(_LINKS):
        ends = dict(a=[0, 0, height], b=[0, 0, height + length])
        link = mb.rod(f"link{i + 1}", **ends, mass=mass, radius=0.05)
        joint = mb.revolute(f"joint{i + 1}", previous or mb.ground, link, at=link.a, axis=axis)
        angle, rate = _joint_trajectory(i)
        mass_ratio = sum(link_data[2] for link_data in _LINKS[i:]) / _LINKS[0][2]
        mb.pd(joint, kp=stiffness * mass_ratio, kd=damping * mass_ratio, reference=angle, reference_rate=rate)
        previous, height = link, height + length
    return mb


@problem(
    "six-axis-arm",
    summary="six-axis robot arm with PD controllers: 72 coordinates, six degrees of freedom",
    source="livens",
    scheme="lie-em",
)
def six_axis_arm(stiffness: float = 2000.0, damping: float = 100.0) -> Problem:
    """Build the problem; `stiffness` (N m) and `damping` (N m s) are the gains of the first joint."""
    return arm_mechanism(stiffness, damping).problem("six-axis-arm", h=1e-3, t_end=3.0)
