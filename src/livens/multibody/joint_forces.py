"""Force elements and rheonomic constraints in joints: torsion springs and dampers, motors, drives."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.models.element import InvariantForm, of_invariants
from livens.models.velocity_constraints import AngleRateConstraint, angle_rate_constraint
from livens.multibody.couplings import displacement_rate
from livens.multibody.inputs import Law
from livens.multibody.joint_types import (
    angle_invariants,
    cos_sin_angle,
    cosine_sine,
    n_angle_invariants,
    split_pair,
)
from livens.multibody.parametrisation import GroundParametrisation, Parametrisation
from livens.types import FloatArray, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace

#: Branch of the angle in the reference configuration: reference angle in rad, its cosine and its sine.
ZERO_BRANCH = (0.0, 1.0, 0.0)


@functools.cache
def torsion_spring_potential(a: Parametrisation, b: Parametrisation) -> InvariantForm:
    """Return the torsion-spring potential ``stiffness/2 (angle - rest)^2`` of cosine and sine of the angle.

    Cosine and sine are bilinear in the directors. The angle is continuous over revolutions, see `continuous_angle`.
    """

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        return 0.5 * k.stiffness * (continuous_angle(w, k) - k.rest) ** 2

    return of_invariants(joint_invariants(a, b, True), energy)


def angle_rate(
    a: Parametrisation, b: Parametrisation, q: Vector, v: Vector, A: FloatArray, B: FloatArray
) -> ScalarLike:
    """Return the rate of the joint angle of b relative to a, from the rates of ``(cosine, sine)``.

    At the midpoint of a step this is ``2/h tan(Dtheta/2)``, the mean rate of the Cayley map.
    """
    (qa, qb), (va, vb) = split_pair(a, q), split_pair(a, v)
    axes, axis_b = [a.vector(qa, A[:, i]) for i in range(n_angle_invariants(B))], b.vector(qb, B[:, 0])
    rates: list[Any] = [0.0 for _ in axes]  # axes of the ground do not move
    if not isinstance(a, GroundParametrisation):
        rates = [m.dot(a.vector(va, A[:, i]), axis_b) for i in range(len(axes))]
    if not isinstance(b, GroundParametrisation):
        axis_b_rate = b.vector(vb, B[:, 0])
        rates = [rate + m.dot(axis, axis_b_rate) for rate, axis in zip(rates, axes, strict=True)]
    return joint_rate(angle_invariants(a, b, q, A, B), rates, True)


def angular_velocity(parametrisation: Parametrisation, q: Vector, v: Vector) -> ScalarLike | Vector:
    """Return the angular velocity ``A^-1 sum d_i x v_i``: exact for rigid motion, also for midpoint directors."""
    if isinstance(parametrisation, GroundParametrisation):
        return 0.0 if parametrisation.dimension == 2 else m.array([0.0, 0.0, 0.0])
    # the power of a torque is torque . omega: omega follows from the generalised forces of unit torques
    if parametrisation.dimension == 2:
        return m.dot(parametrisation.generalised_torque(q, [1.0]), v)
    units = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    return m.array([m.dot(parametrisation.generalised_torque(q, unit), v) for unit in units])


def joint_displacement(a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> ScalarLike:
    """Return the displacement of a sliding joint along the axis of the first body: bilinear in the directors."""
    qa, qb = split_pair(a, q)
    axis = a.vector(qa, k.A[:, a.dimension - 1 if a.dimension == 3 else 0])
    return m.dot(axis, b.point(qb, k.Y) - a.point(qa, k.X))


@functools.cache
def joint_invariants(a: Parametrisation, b: Parametrisation, rotational: bool) -> ModelFunction:
    """Return the invariants of a joint coordinate: those of the angle (`angle_invariants`), or the displacement."""
    if rotational:
        return lambda q, k: angle_invariants(a, b, q, k.A, k.B)
    return lambda q, k: [joint_displacement(a, b, q, k)]


def continuous_angle(w: Vector, k: ParameterNamespace) -> Any:
    """Return the continuous angle: its branch is the one nearest to the reference angle ``k.angle_branch[0]``.

    ``k.angle_branch`` contains the reference angle, its cosine and its sine. A run moves the reference angle with the
    joint, so that the angle is continuous over any number of revolutions.
    """
    reference, c, s = k.angle_branch
    cosine, sine = cosine_sine(w)
    return reference + m.atan2(c * sine - s * cosine, c * cosine + s * sine)


def joint_rate(w: Any, u: Any, rotational: bool) -> Any:
    """Return the rate of the joint coordinate (angle, or displacement) from the invariants and their rates."""
    if not rotational:
        return u[0]
    (cosine, sine), sine_rate = cosine_sine(w), u[-1]
    cosine_rate = u[0] if len(w) == 2 else (w[0] * u[0] + w[1] * u[1]) / cosine
    return (cosine * sine_rate - sine * cosine_rate) / (cosine**2 + sine**2)


def joint_coordinate(w: Any, k: Any, rotational: bool) -> Any:
    """Return the joint coordinate from its invariants: the continuous angle, or the displacement."""
    if not rotational:
        return w[0]
    if "angle_branch" in vars(k):
        return continuous_angle(w, k)
    cosine, sine = cosine_sine(w)
    return m.atan2(sine, cosine)


def conjugate_force(w: Any, magnitude: Any, rotational: bool) -> list[ScalarLike]:
    """Return the forces conjugate to the invariants; their power is `magnitude` times the rate of the joint coordinate.

    The invariants are products of axes, so that the torques on both bodies are equal and opposite. They have this
    magnitude for any rotation during a step. A force acts on both bodies at the same point.
    """
    if not rotational:
        return [magnitude]
    cosine, sine = cosine_sine(w)
    factor = magnitude / (cosine**2 + sine**2)
    if len(w) == 2:
        return [-factor * sine, factor * cosine]
    return [-factor * sine * w[0] / cosine, -factor * sine * w[1] / cosine, factor * cosine]


@functools.cache
def motor(a: Parametrisation, b: Parametrisation, law: Law, rotational: bool = True) -> InvariantForm:
    """Return the forces of a motor: a law of ``(t, coordinate, rate, k)``; on b, and with opposite sign on a."""

    def forces(w: Vector, u: Vector, t: ScalarLike, k: ParameterNamespace) -> Any:
        magnitude = law(t, joint_coordinate(w, k, rotational), joint_rate(w, u, rotational), k)
        return conjugate_force(w, magnitude, rotational)

    return of_invariants(joint_invariants(a, b, rotational), forces)


@functools.cache
def angle_drive(a: Parametrisation, b: Parametrisation, law: Law) -> ModelFunction:
    """Return the rheonomic constraint on a joint angle: ``cos(phi) sine - sin(phi) cosine = 0``."""

    def constraints(q: Vector, t: ScalarLike, k: ParameterNamespace) -> Any:
        cosine, sine = cos_sin_angle(a, b, q, k.A, k.B)
        angle = law(t, k)
        return [m.cos(angle) * sine - m.sin(angle) * cosine]

    return constraints


@functools.cache
def displacement_drive(a: Parametrisation, b: Parametrisation, law: Law) -> ModelFunction:
    """Return the rheonomic constraint on a joint displacement."""

    def constraints(q: Vector, t: ScalarLike, k: ParameterNamespace) -> Any:
        qa, qb = split_pair(a, q)
        axis = a.vector(qa, k.A[:, a.dimension - 1 if a.dimension == 3 else 0])
        return [m.dot(axis, b.point(qb, k.Y) - a.point(qa, k.X)) - law(t, k)]

    return constraints


@functools.cache
def rate_drive(
    a: Parametrisation, b: Parametrisation, law: Law, rotational: bool
) -> AngleRateConstraint | ModelFunction:
    """Return the rheonomic constraint on a joint rate, imposed on the increments of the joint coordinate."""
    if not rotational:
        axis_index = a.dimension - 1 if a.dimension == 3 else 0
        return lambda q, v, t, k: [displacement_rate(a, b, q, v, k.X, k.Y, k.A[:, axis_index]) - law(t, k)]
    return angle_rate_constraint(lambda q, k: [angle_invariants(a, b, q, k.A, k.B)], lambda w, t, k: [w[0] - law(t, k)])


@functools.cache
def torsion_damper(a: Parametrisation, b: Parametrisation) -> InvariantForm:
    """Return the Rayleigh function ``damping/2 rate^2`` of a torsion damper."""
    return of_invariants(joint_invariants(a, b, True), lambda w, u, k: 0.5 * k.viscosity * joint_rate(w, u, True) ** 2)


@functools.cache
def polynomial_spring(a: Parametrisation, b: Parametrisation, rotational: bool) -> InvariantForm:
    """Return the potential of the force ``-sum k_i x^(i+1)``, x: joint coordinate from its rest value."""

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        x = joint_coordinate(w, k, rotational) - k.rest
        return sum(coefficient / (i + 2) * x ** (i + 2) for i, coefficient in enumerate(k.stiffness))

    return of_invariants(joint_invariants(a, b, rotational), energy)


@functools.cache
def polynomial_damper(a: Parametrisation, b: Parametrisation, rotational: bool) -> InvariantForm:
    """Return the Rayleigh function of the force ``-sum d_i |r|^i r``, r: rate of the joint coordinate."""

    def dissipation(w: Vector, u: Vector, k: ParameterNamespace) -> Any:
        rate = joint_rate(w, u, rotational)
        powers = [rate**2, m.abs(rate) * rate**2, rate**4]
        return sum(coefficient / (i + 2) * powers[i] for i, coefficient in enumerate(k.viscosity))

    return of_invariants(joint_invariants(a, b, rotational), dissipation)
