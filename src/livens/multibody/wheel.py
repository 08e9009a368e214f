"""Wheels: flywheels, reaction wheels and gyroscopes as numbers of the body that carries them.

The spin of a wheel about an axis n of its body, ``s' = n . omega + rate``, is the velocity of an additional coordinate
with the inertia of the wheel. The wheel acts on the body with the torque ``-kappa n' - M n``, with its spin momentum
``kappa = inertia s'`` and the motor torque M, for which ``kappa' = M``. The angle of the wheel does not occur: it may
rotate by any angle in a step. At the midpoint of a step, the torque changes the angular momentum of the body exactly
by that of the wheel. Its power on the body and the wheel is ``M rate``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.parameters import shared
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element
from livens.models.quantity import Quantity
from livens.multibody.body import Body
from livens.multibody.body_elements import BodyElement
from livens.multibody.inputs import Law, TimeLaw
from livens.multibody.parametrisation import DirectorParametrisation, Parametrisation
from livens.types import Expr, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def spin_body(name: str, inertia: float) -> BodyElement:
    """Return the body with the spin coordinate ``name.x``."""
    return BodyElement(
        name,
        DirectorParametrisation(1, 0),
        inertia,
        np.zeros(1),
        np.zeros(1),
        kinetic=_spin_energy,
        parameters=dict(mass=inertia),
        frames=[[range(1)]],
    )


def _spin_energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return 0.5 * k.mass * v[0] ** 2


@functools.cache
def wheel_force(parametrisation: Parametrisation, torque: Law) -> ModelFunction:
    """Return the forces of a wheel on the coordinates of its body and on its spin."""

    def forces(q: Vector, v: Vector, t: ScalarLike, k: ParameterNamespace) -> Vector:
        body_q, body_v, motor = q[:-1], v[:-1], torque(t, k)
        axis, axis_rate = parametrisation.vector(body_q, k.axis), parametrisation.vector(body_v, k.axis)
        reaction = -k.inertia * v[-1] * axis_rate - motor * axis
        return np.concatenate([parametrisation.generalised_torque(body_q, reaction), m.array([motor])])

    return forces


@dataclass(frozen=True, eq=False)
class Wheel:
    """Wheel of a body: its spin, force element, axis in the body, and initial rate relative to the body."""

    name: str
    body: Body
    axis: np.ndarray
    spin: BodyElement
    element: Element
    initial_rate: float

    @classmethod
    def of_body(cls, name: str, body: Body, axis: np.ndarray, inertia: float, rate: float, torque: TimeLaw) -> Wheel:
        """Return a wheel about an axis in body axes."""
        spin, carrier = spin_body(f"{name} spin", inertia), body.element
        assert carrier is not None
        element = Element(
            [*carrier.coordinates, *spin.coordinates],
            forces=wheel_force(carrier.parametrisation, torque.function),
            parameters=dict(inertia=shared(spin, "mass"), axis=axis) | torque.parameters,
            name=name,
        )
        return cls(name, body, axis, spin, element, rate)

    def axial_rate(self, q: Expr, v: Expr) -> Expr:
        """Return the angular velocity of the body about the axis, from its coordinates and velocities."""
        axes = [ca.SX(1, 3), *(ca.SX(q[3 * i : 3 * i + 3]) for i in (1, 2, 3))]
        rates = [ca.SX(v[3 * i : 3 * i + 3]) for i in (1, 2, 3)]
        omega = sum((ca.cross(d, rate) for d, rate in zip(axes[1:], rates, strict=True)), ca.SX.zeros(3)) / 2
        axis = sum((float(a) * d for a, d in zip(self.axis, axes[1:], strict=True)), ca.SX.zeros(3))
        return ca.dot(axis, omega)

    def initial_spin(self, q: np.ndarray, v: np.ndarray) -> float:
        """Return the spin for the initial rate, from coordinates and velocities of the body."""
        return float(ca.DM(self.axial_rate(ca.SX(ca.DM(q)), ca.SX(ca.DM(v))))) + self.initial_rate

    def outputs(self, body_dofs: list[int], spin: int, mass_entry: int) -> dict[str, Quantity]:
        """Return rate relative to the body and spin momentum."""

        def rate(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
            return v[spin] - self.axial_rate(q[body_dofs], v[body_dofs])

        def momentum(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
            return k[mass_entry] * v[spin]

        name = self.body.name
        return {
            "rate": Quantity(f"angular rate of {self.name} relative to {name}", "rad/s", rate),
            "momentum": Quantity(f"spin momentum of {self.name} about its axis", "N m s", momentum),
        }
