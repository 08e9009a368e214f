"""Integral action of controllers: a number that grows with the error of a joint, as a coordinate of the system.

It is a body with one coordinate z and next to no mass whose velocity is held, ``z' = error(t, q)``. The constraint on
velocity level acts on z alone, so nothing of it is felt by the joint; in a step, z grows by h times the error in its
middle, and the controller sees the mean of both ends. Its work is part of the balance of energy, as that of motors is.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.multibody.actuators import Law, measured, pushing_force, turning_force
from livens.multibody.bodies import Body
from livens.multibody.placement import Directors, Placement

#: In kilograms: an error of one radian has an energy of half of this.
_MASS = 1e-8


def accumulator(name: str) -> Body:
    """The coordinate ``name.x`` of an integral."""
    return Body(
        name,
        Directors(1, 0),
        _MASS,
        np.zeros(1),
        np.zeros(1),
        kinetic=_energy,
        parameters=dict(mass=_MASS),
        frames=[[range(1)]],
    )


def _energy(v: Any, k: Any) -> Any:
    return 0.5 * k.mass * v[0] ** 2


@functools.cache
def integrating(a: Placement, b: Placement, target: Law, turns: bool) -> ModelFunction:
    """``z' = target - angle`` (within half a turn), or of a position."""

    def rates(q: Any, v: Any, t: Any, k: Any) -> Any:
        now, _ = measured(a, b, q[:-1], v[:-1], k, turns)
        return [v[-1] - error(target(t) - now, turns)]

    return rates


@functools.cache
def steered(a: Placement, b: Placement, law: Law, turns: bool) -> ModelFunction:
    """A torque or force by a law of time, angle and rate, and ``k.integral`` times the integral."""

    def forces(q: Any, v: Any, t: Any, k: Any) -> Any:
        own = q[:-1]
        size = law(t, *measured(a, b, own, v[:-1], k, turns), k) + k.integral * q[-1]
        acting = turning_force(a, b, own, k.A, k.B, size) if turns else pushing_force(a, b, own, k, size)
        return m.array([*acting, 0.0])

    return forces


def error(gap: Any, turns: bool) -> Any:
    """A difference of angles within half a turn; of positions, as it is."""
    return m.atan2(m.sin(gap), m.cos(gap)) if turns else gap
