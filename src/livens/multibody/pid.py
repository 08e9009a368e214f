"""PID controllers: the integrated error as an additional coordinate of the system.

The integrator state z is the coordinate of a body of negligible mass with the velocity constraint ``z' = error(t, q)``.
The constraint force acts on z alone and does not affect the joint. In a step, z increases by h times the error at the
midpoint, and the control law uses the mean of z at both ends. Its work is part of the energy balance, as for motors.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from livens.expressions.tracing import ModelFunction
from livens.models.element import InvariantForm, of_invariants
from livens.multibody.body_elements import BodyElement
from livens.multibody.inputs import Law
from livens.multibody.joint_forces import conjugate_force, joint_coordinate, joint_invariants, joint_rate
from livens.multibody.parametrisation import DirectorParametrisation, Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@dataclass(eq=False)
class ControllerState:
    """State of a controller: the coordinate of a body of negligible mass, with the name and the unit of its output."""

    body: BodyElement
    quantity: str
    unit: str
    initial: float = 0.0


#: Mass of the integrator coordinate in kg: an error of one radian has half of this as kinetic energy in J.
_INTEGRATOR_MASS = 1e-8


def integrator_body(name: str) -> BodyElement:
    """Return the body with the integrator coordinate ``name.x``."""
    return BodyElement(
        name,
        DirectorParametrisation(1, 0),
        _INTEGRATOR_MASS,
        np.zeros(1),
        np.zeros(1),
        kinetic=_energy,
        parameters=dict(mass=_INTEGRATOR_MASS),
        frames=[[range(1)]],
    )


def _energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return 0.5 * k.mass * v[0] ** 2


@functools.cache
def integrator_constraint(a: Parametrisation, b: Parametrisation, reference: Law, rotational: bool) -> ModelFunction:
    """Return the constraint ``z' = target - angle``, or that of a displacement."""
    invariants_of = joint_invariants(a, b, rotational)

    def rates(q: Vector, v: Vector, t: ScalarLike, k: ParameterNamespace) -> list[ScalarLike]:
        w = invariants_of(q[:-1], k)
        return [v[-1] - (reference(t, k) - joint_coordinate(w, k, rotational))]

    return rates


@functools.cache
def pid_force(a: Parametrisation, b: Parametrisation, law: Law, rotational: bool) -> InvariantForm:
    """Return the PID force: a law of time, joint coordinate and rate, plus ``k.integral`` times the integral."""
    invariants_of = joint_invariants(a, b, rotational)

    def forces(w: Vector, u: Vector, t: ScalarLike, k: ParameterNamespace) -> list[ScalarLike]:
        joint_w, joint_u = w[:-1], u[:-1]
        coordinate, rate = joint_coordinate(joint_w, k, rotational), joint_rate(joint_w, joint_u, rotational)
        magnitude = law(t, coordinate, rate, k) + k.integral * w[-1]
        return [*conjugate_force(joint_w, magnitude, rotational), 0.0]

    return of_invariants(lambda q, k: [*invariants_of(q[:-1], k), q[-1]], forces)
