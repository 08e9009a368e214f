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
from collections.abc import Callable
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


class UnilateralContact:
    """Unilateral contact as a switchable element, initially open: a gap, and with friction slip components.

    The parameters of the element are those of the gap, then ``friction``, ``touching``, ``sticking``, the ``direction``
    of the slip, a unit vector in space, and ``independent``, one flag for each constraint. Without persistent contact
    there is no element: the contact is always open.
    """

    #: Type of the contact in messages.
    label = "rigid contacts"

    name: str
    restitution: float
    friction: float
    unique: bool
    #: Number of components of a vector in space or in the plane.
    dimension: int
    #: Coordinates of both bodies.
    coordinates: tuple[str, ...]
    #: Parameters and constants of the gap.
    gap_parameters: dict[str, Any]
    gap_constants: dict[str, Any]
    element: Element | None
    slack_states: list[BodyElement]

    @property
    def persistent(self) -> bool:
        """Persistent contact: it can close; otherwise it only collides."""
        return self.element is not None

    @property
    def constraint_labels(self) -> list[str]:
        """Names of the constraints: gap and, with friction, slip."""
        return ["gap", "slip 1", "slip 2"][: self.dimension if self.friction else 1]

    @property
    def n_directions(self) -> int:
        """Number of relative velocities: normal and, with friction, tangential."""
        return len(self.constraint_labels)

    def kinematics(self, q: Vector, v: Vector, k: ParameterNamespace) -> tuple[Any, Vector, Vector]:
        """Return the gap, the slip velocity and the unit normal in space."""
        raise NotImplementedError

    def overlap_message(self, overlap: float) -> str:
        """Return the error message for a start with a negative gap."""
        raise NotImplementedError

    def _set_element(self, slack_mass: float, **functions: Any) -> None:
        """Build the switchable element and its slack coordinates."""
        labels = self.constraint_labels
        self.slack_states = [_slack_state(f"{self.name} {label}", slack_mass) for label in labels]
        switches = dict(friction=self.friction, touching=0.0, sticking=0.0, direction=np.eye(self.dimension)[0])
        self.element = Element(
            [*self.coordinates, *(str(slack.coordinates[0]) for slack in self.slack_states)],
            parameters=self.gap_parameters | switches | dict(independent=np.ones(len(labels))),
            constants=self.gap_constants,
            name=self.name,
            constraint_names=labels,
            **functions,
        )


class RigidContact(UnilateralContact):
    """Rigid (unilateral) contact of two bodies at one contact point."""

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
        self.unique, self.element, self.slack_states = unique, None, []
        bodies = contact_point.body_a, contact_point.body_b
        self.dimension = contact_point.body_a.dimension
        self.coordinates = tuple(str(c) for body in bodies for c in body.coordinates)
        self.gap_parameters, self.gap_constants = dict(contact_point.parameters), dict(contact_point.constants)
        if not persistent:
            return
        arguments = contact_point.geometry, bodies[0].parametrisation, bodies[1].parametrisation, len(self.coordinates)
        functions: dict[str, Any] = dict(constraints=_normal_constraint(*arguments))
        if friction:
            functions["velocity_constraints"] = FrictionalConstraint(
                _stick_constraint(*arguments), _sliding_friction(*arguments)
            )
        self._set_element(min(body.element.mass for body in bodies if body.element is not None), **functions)

    def kinematics(self, q: Vector, v: Vector, k: ParameterNamespace) -> tuple[Any, Vector, Vector]:
        a, b = self.contact_point.body_a.parametrisation, self.contact_point.body_b.parametrisation
        gap, normal, point = self.contact_point.geometry.contact_frame(a, b, q, k)
        return gap, slip_velocity(a, b, q, v, normal, point), normal

    def overlap_message(self, overlap: float) -> str:
        return f"{self.name}: the bodies overlap by {overlap:.3g} m; move them apart"


def _slack_state(name: str, mass: float) -> BodyElement:
    """Return a slack coordinate, constrained to zero while the contact is open; its mass is that of a body."""
    return BodyElement(
        name, DirectorParametrisation(1, 0), mass, np.zeros(1), np.zeros(1),
        kinetic=_energy, parameters=dict(mass=mass), frames=[[range(1)]],
    )  # fmt: skip


def _energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return 0.5 * k.mass * v[0] ** 2


def switchable_constraint(gap: Callable[[Vector, ParameterNamespace], ScalarLike], n: int) -> ModelFunction:
    """Return the constraint on a gap of n coordinates, or on the slack coordinate behind them while it is open."""

    def constraints(q: Vector, k: ParameterNamespace) -> Any:
        active = k.touching * k.independent[0]
        return [active * gap(q[:n], k) + (1 - active) * q[n]]

    return constraints


@functools.cache
def _normal_constraint(geometry: PairGeometry, a: Parametrisation, b: Parametrisation, n: int) -> ModelFunction:
    return switchable_constraint(lambda q, k: geometry.gap_at(a, b, q, k), n)


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
