"""Unilateral contact as a switchable element: closed gap, sliding with Coulomb friction or sticking.

The gap is an exact constraint while `touching` is one. In sliding, its force N causes the friction force against the
slip; in sticking, velocity constraints keep the slip at zero. While a constraint is inactive, it acts on a slack
coordinate instead, which it keeps at zero. The number of equations is therefore constant, and a contact opens and
closes by a change of parameters::

    0 = touching gap(q) + (1 - touching) z_0        0 = sticking slip_i(q, v) + (1 - sticking) z_i'

A constraint that other contacts and joints imply is inactive too: its entry of `independent` is zero.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element
from livens.models.velocity_constraints import FrictionalConstraint
from livens.multibody.body_elements import BodyElement
from livens.multibody.contacts.geometry.pair_geometry import SQRT_EPS, PairGeometry, slip_velocity
from livens.multibody.contacts.narrow_phase import ContactPoint
from livens.multibody.parametrisation import DirectorParametrisation, Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Regularisation velocity of the slip direction in m/s.
SLIP_TOLERANCE = 1e-9


class RigidContact:
    """Rigid (unilateral) contact of two bodies at one contact point, as an element; initially open.

    Its parameters are those of the contact point, then ``friction``, ``touching``, ``sticking``, the ``direction`` of
    the slip, a unit vector in space, and ``independent``, one flag for each constraint. Without persistent contact
    there is no element: the contact is always open.
    """

    def __init__(
        self,
        name: str,
        contact_point: ContactPoint,
        restitution: float,
        friction: float,
        persistent: bool = True,
        unique: bool = False,
    ) -> None:
        self.name, self.contact_point, self.restitution, self.friction = name, contact_point, restitution, friction
        self.persistent, self.unique = persistent, unique
        d, a, b = (
            contact_point.body_a.dimension,
            contact_point.body_a.parametrisation,
            contact_point.body_b.parametrisation,
        )
        masses = [
            body.element.mass for body in (contact_point.body_a, contact_point.body_b) if body.element is not None
        ]
        #: Names of the constraints: gap and, with friction, slip.
        labels = ["gap", "slip 1", "slip 2"][: d if friction else 1]
        #: Number of relative velocities: normal and, with friction, tangential.
        self.n_directions = len(labels)
        body_coordinates = tuple(
            str(c) for body in (contact_point.body_a, contact_point.body_b) for c in body.coordinates
        )
        self.coordinates = body_coordinates
        self.slack_states: list[BodyElement] = []
        self.element: Element | None = None
        if not persistent:
            return
        self.slack_states = [_slack_state(f"{name} {label}", min(masses)) for label in labels]
        functions: dict[str, Any] = dict(
            constraints=_normal_constraint(contact_point.geometry, a, b, len(body_coordinates))
        )
        parameters = dict(contact_point.parameters) | dict(
            friction=friction, touching=0.0, sticking=0.0, direction=np.eye(d)[0], independent=np.ones(len(labels))
        )
        if friction:
            functions["velocity_constraints"] = FrictionalConstraint(
                _stick_constraint(contact_point.geometry, a, b, len(body_coordinates)),
                _sliding_friction(contact_point.geometry, a, b, len(body_coordinates)),
            )
        self.element = Element(
            [*body_coordinates, *(str(slack.coordinates[0]) for slack in self.slack_states)],
            parameters=parameters,
            constants=contact_point.constants,
            name=name,
            constraint_names=labels,
            **functions,
        )


def _slack_state(name: str, mass: float) -> BodyElement:
    """Return a slack coordinate, constrained to zero while the contact is open; its mass is that of a body."""
    return BodyElement(
        name, DirectorParametrisation(1, 0), mass, np.zeros(1), np.zeros(1),
        kinetic=_energy, parameters=dict(mass=mass), frames=[[range(1)]],
    )  # fmt: skip


def _energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return 0.5 * k.mass * v[0] ** 2


@functools.cache
def _normal_constraint(geometry: PairGeometry, a: Parametrisation, b: Parametrisation, n: int) -> ModelFunction:
    def constraints(q: Vector, k: ParameterNamespace) -> Any:
        active = k.touching * k.independent[0]
        return [active * geometry.gap_at(a, b, q[:n], k) + (1 - active) * q[n]]

    return constraints


@functools.cache
def _stick_constraint(geometry: PairGeometry, a: Parametrisation, b: Parametrisation, n: int) -> ModelFunction:
    def rates(q: Vector, v: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        along = slip_components(geometry, a, b, q[:n], v[:n], k)
        active = [k.sticking * flag for flag in k.independent[1:]]
        return [s * x + (1 - s) * rate for s, x, rate in zip(active, along, v[n + 1 :], strict=True)]

    return rates


@functools.cache
def _sliding_friction(geometry: PairGeometry, a: Parametrisation, b: Parametrisation, n: int) -> ModelFunction:
    def friction(q: Vector, v: Vector, k: ParameterNamespace) -> Any:
        _, normal, point = geometry.contact_frame(a, b, q[:n], k)
        along = slip_velocity(a, b, q[:n], v[:n], normal, point)
        slip_direction = m.to_casadi(m.array(regularised_slip_direction(along, normal, k.direction)))
        jacobian_transpose_direction = ca.jtimes(m.to_casadi(m.array(along)), m.to_casadi(v), slip_direction, True)
        size = -k.touching * (1 - k.sticking) * k.friction
        return [size * x for x in m.from_casadi(ca.densify(jacobian_transpose_direction))]

    return friction


def slip_components(
    geometry: PairGeometry, a: Parametrisation, b: Parametrisation, q: Vector, v: Vector, k: ParameterNamespace
) -> list[ScalarLike]:
    """Return the tangential slip components: two in space, one in the plane; q must be symbols."""
    _, normal, point = geometry.contact_frame(a, b, q, k)
    along = slip_velocity(a, b, q, v, normal, point)
    return [m.dot(axis, along) for axis in tangents(normal)]


def tangents(normal: Vector) -> list[Vector]:
    """Return orthonormal tangent vectors of a surface from its unit normal (Duff et al. 2017)."""
    if len(normal) == 2:
        return [m.array([-normal[1], normal[0]])]
    x, y, z = normal
    sign = m.where(z < 0, -1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return [m.array([1.0 + sign * x**2 * a, sign * b, -sign * x]), m.array([b, sign + y**2 * a, -y])]


def regularised_slip_direction(slip: Vector, normal: Vector, previous_direction: Vector) -> Vector:
    """Return the regularised slip direction; at zero or reversing slip it is the previous direction.

    A reversal of friction within a step would make the step unsolvable; an event stops the slip before.
    """
    previous = previous_direction - m.dot(previous_direction, normal) * normal
    square = m.dot(previous, previous) + SQRT_EPS
    projection = m.dot(slip, previous) / square
    transverse = slip - projection * previous
    regularised = m.sqrt(projection**2 + SLIP_TOLERANCE**2) * previous + transverse
    return regularised / m.sqrt(m.dot(regularised, regularised) + SQRT_EPS)
