"""Dissipation of contacts: Hunt-Crossley damping, sliding and spinning friction, rolling resistance.

All dissipative forces are derivatives of convex functions of the velocities, so that no contact supplies energy.
Friction is proportional to the elastic part of the normal force: the impulse of the damping part over a whole collision
is zero, since the initial and final depths are equal.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca

from livens import math as m
from livens.errors import InputError, explain_call_errors
from livens.expressions.tracing import ModelFunction
from livens.multibody.contacts.geometry.pair_geometry import PairGeometry, relative_angular_velocity, slip_velocity
from livens.multibody.contacts.normal_laws.base import NormalLaw
from livens.multibody.parametrisation import Parametrisation
from livens.types import ScalarLike, Vector
from livens.validation import check_nonnegative, check_positive

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@explain_call_errors
@dataclass(frozen=True)
class Friction:
    """Regularised Coulomb friction ``coefficient N v/sqrt(v^2 + slip_tolerance^2)``, with spinning and rolling parts.

    Parameters
    ----------
    coefficient : float
        Coulomb friction coefficient.
    slip_tolerance : float, default 1e-3
        Regularisation velocity in m/s.
    spinning : float, default 0
        Friction radius in m of the torque ``coefficient N spinning`` about the normal.
    rolling : float, default 0
        Lever arm in m of the rolling-resistance torque ``N rolling``.
    rate_tolerance : float, default 1e-2
        Regularisation rate in rad/s of spinning and rolling friction.

    Raises
    ------
    InputError
        If a value is negative, or if `spinning` is given without a coefficient.
    """

    coefficient: float
    slip_tolerance: float = 1e-3
    spinning: float = 0.0
    rolling: float = 0.0
    rate_tolerance: float = 1e-2

    def __post_init__(self) -> None:
        for field in ("coefficient", "spinning", "rolling"):
            check_nonnegative(f"the {field} of a friction", getattr(self, field), allow_strings=False)
        for field in ("slip_tolerance", "rate_tolerance"):
            check_positive(f"{field} of a friction", getattr(self, field), allow_strings=False)
        if self.spinning and not self.coefficient:
            raise InputError("spinning friction needs a friction coefficient")

    @classmethod
    def of(cls, value: Friction | float) -> Friction | None:
        """Return friction parameters from a coefficient or a `Friction`.

        Parameters
        ----------
        value : float or Friction
            Coulomb friction coefficient, or friction parameters.

        Returns
        -------
        Friction or None
            Friction parameters; None without friction.
        """
        if isinstance(value, cls):
            return value if value.coefficient or value.rolling else None
        coefficient = check_nonnegative("friction", value)
        return cls(coefficient) if coefficient else None


def penetration(gap: ScalarLike) -> ScalarLike:
    return m.maximum(-gap, 0.0)


def hunt_crossley_force(elastic: ScalarLike, dissipation: ScalarLike, depth_rate: ScalarLike) -> ScalarLike:
    """Return the normal force ``elastic max(0, 1 + dissipation depth_rate)``, which is never tensile."""
    return elastic * m.maximum(0.0, 1 + dissipation * depth_rate)


def hunt_crossley_potential(dissipation: ScalarLike, depth_rate: ScalarLike) -> ScalarLike:
    """Return the dissipation potential of unit elastic force: the integral of ``max(-1, dissipation depth_rate)``."""
    free = -depth_rate - 0.5 / dissipation
    return m.where(dissipation * depth_rate > -1.0, 0.5 * dissipation * depth_rate**2, free)


def friction_force(load: ScalarLike, slip: Vector, coefficient: ScalarLike, slip_tolerance: ScalarLike) -> Vector:
    """Return the regularised Coulomb force of a slip velocity: minus the gradient of `friction_potential`."""
    return -(coefficient * load / m.sqrt(m.dot(slip, slip) + slip_tolerance**2)) * slip


def friction_potential(coefficient: ScalarLike, slip: Vector, slip_tolerance: ScalarLike) -> ScalarLike:
    """Return the dissipation potential of regularised Coulomb friction for a unit load."""
    return coefficient * m.sqrt(m.dot(slip, slip) + slip_tolerance**2)


def spinning_torque(
    load: ScalarLike, rate: ScalarLike, coefficient: ScalarLike, radius: ScalarLike, rate_tolerance: ScalarLike
) -> ScalarLike:
    """Return the regularised torque of spinning friction about the normal, against a rate of spin."""
    return -(coefficient * radius * load * rate / m.sqrt(rate**2 + rate_tolerance**2))


@functools.cache
def damping_of_gaps(gaps: ModelFunction, law: NormalLaw) -> ModelFunction:
    """Return the Hunt-Crossley dissipation: the normal force is ``elastic max(0, 1 + damping depth rate)``.

    `gaps` is a function of q and k; q must be symbols.
    """

    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        values = list(gaps(q, k))
        rates = m.from_casadi(ca.jtimes(m.to_casadi(m.array(values)), m.to_casadi(q), m.to_casadi(v)))
        terms = [
            law.force(penetration(gap), k) * hunt_crossley_potential(k.damping, -rate)
            for gap, rate in zip(values, rates, strict=True)
        ]
        return sum(terms[1:], terms[0])

    return dissipation


@functools.cache
def damping(geometry: PairGeometry, law: NormalLaw, a: Parametrisation, b: Parametrisation) -> ModelFunction:
    """Return the Hunt-Crossley dissipation of a pair."""
    return damping_of_gaps(lambda q, k: [geometry.gap_at(a, b, q, k)], law)


@functools.cache
def sliding(geometry: PairGeometry, law: NormalLaw, a: Parametrisation, b: Parametrisation) -> ModelFunction:
    """Return the dissipation potential of regularised Coulomb friction in the tangent plane."""

    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        gap, normal, point = geometry.contact_frame(a, b, q, k)
        along = slip_velocity(a, b, q, v, normal, point)
        return law.force(penetration(gap), k) * friction_potential(k.friction, along, k.smooth)

    return dissipation


@functools.cache
def pivoting(geometry: PairGeometry, law: NormalLaw, a: Parametrisation, b: Parametrisation) -> ModelFunction:
    """Return the dissipation potential of spinning friction: a torque about the normal."""

    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        gap, normal, _ = geometry.contact_frame(a, b, q, k)
        rate = m.dot(relative_angular_velocity(a, b, q, v), normal)
        return k.friction * k.pivoting * law.force(penetration(gap), k) * m.sqrt(rate**2 + k.smooth_rate**2)

    return dissipation


@functools.cache
def rolling(geometry: PairGeometry, law: NormalLaw, a: Parametrisation, b: Parametrisation) -> ModelFunction:
    """Return the dissipation potential of rolling resistance: a torque in the tangent plane."""

    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        gap, normal, _ = geometry.contact_frame(a, b, q, k)
        rate = relative_angular_velocity(a, b, q, v)
        square = m.dot(rate, rate) - m.dot(rate, normal) ** 2 if a.dimension == 3 else rate**2
        return k.rolling * law.force(penetration(gap), k) * m.sqrt(m.maximum(square, 0.0) + k.smooth_rate**2)

    return dissipation
