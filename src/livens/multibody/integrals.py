"""PID controllers: the integrated error as an additional coordinate of the system.

The integrator state z is the coordinate of a body of negligible mass with the velocity constraint ``z' = error(t, q)``.
The constraint force acts on z alone and does not affect the joint. In a step, z increases by h times the error at the
midpoint, and the control law uses the mean of z at both ends. Its work is part of the energy balance, as for motors.
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

#: Mass of the integrator coordinate in kg: an error of one radian has half of this as kinetic energy in J.
_MASS = 1e-8


def accumulator(name: str) -> Body:
    """Return the body with the integrator coordinate ``name.x``."""
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
    """Return the constraint ``z' = target - angle`` (within half a turn), or that of a displacement."""
    of = invariants(a, b, turns)

    def rates(q: Any, v: Any, t: Any, k: Any) -> Any:
        w = of(q[:-1], k)
        now = m.atan2(w[1], w[0]) if turns else w[0]
        return [v[-1] - error(target(t) - now, turns)]

    return rates


@functools.cache
def steered(a: Placement, b: Placement, law: Law, turns: bool) -> Through:
    """Return the PID force: a law of time, joint coordinate and rate, plus ``k.integral`` times the integral."""
    of = invariants(a, b, turns)

    def forces(w: Any, u: Any, t: Any, k: Any) -> Any:
        size = law(t, *angle_and_rate(w, u, turns), k) + k.integral * w[-1]
        return [*on_invariants(w, size, turns), 0.0]

    return through(lambda q, k: [*of(q[:-1], k), q[-1]], forces)


def error(gap: Any, turns: bool) -> Any:
    """Return a difference of angles within half a turn; a difference of displacements is unchanged."""
    return m.atan2(m.sin(gap), m.cos(gap)) if turns else gap
