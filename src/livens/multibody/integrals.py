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
from livens.models.element import Through, through
from livens.multibody.actuators import Law, angle_and_rate, invariants, on_invariants
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
    of = invariants(a, b, turns)

    def rates(q: Any, v: Any, t: Any, k: Any) -> Any:
        w = of(q[:-1], k)
        now = m.atan2(w[1], w[0]) if turns else w[0]
        return [v[-1] - error(target(t) - now, turns)]

    return rates


@functools.cache
def steered(a: Placement, b: Placement, law: Law, turns: bool) -> Through:
    """A torque or force by a law of time, angle and rate, and ``k.integral`` times the integral."""
    of = invariants(a, b, turns)

    def forces(w: Any, u: Any, t: Any, k: Any) -> Any:
        size = law(t, *angle_and_rate(w, u, turns), k) + k.integral * w[-1]
        return [*on_invariants(w, size, turns), 0.0]

    return through(lambda q, k: [*of(q[:-1], k), q[-1]], forces)


def error(gap: Any, turns: bool) -> Any:
    """A difference of angles within half a turn; of positions, as it is."""
    return m.atan2(m.sin(gap), m.cos(gap)) if turns else gap
