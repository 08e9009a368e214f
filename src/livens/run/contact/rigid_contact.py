"""Impulsive contact between rigid bodies: events with Newton restitution and Coulomb friction.

Pairs with a single contact point may close persistently, see `livens.run.contact.contact_dynamics`. Pairs with
several contact points, such as boxes, only collide.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import ParameterNamespace
from livens.multibody.body import Body
from livens.multibody.contacts.narrow_phase import ContactPoint, contact_points
from livens.multibody.contacts.rigid_contact import RigidContact
from livens.multibody.contacts.shapes import CollisionShape
from livens.multibody.multibody import Multibody
from livens.run.contact.contact_dynamics import ContactDynamics
from livens.run.events.event import GAP_TOLERANCE, ContactEvent, Event, ImpactEvent, StateAndParameters
from livens.types import Expr, ScalarLike, Vector
from livens.validation import check_bool, check_nonnegative, check_number


def _rigid_contact(
    mechanism: Multibody,
    first: Body | CollisionShape,
    second: Body | CollisionShape,
    *,
    restitution: float = 1.0,
    friction: float = 0.0,
    persistent: bool = True,
    name: str = "",
) -> list[Event]:
    """Return the events of rigid contact between two bodies without joints.

    An impact reverses the normal relative velocity times `restitution`. The tangential impulse is that of sticking if
    it lies inside the friction cone, otherwise that of sliding. The energy lost in an impact is booked as (negative)
    supplied energy.

    Parameters
    ----------
    first, second : Part or Shape
        Bodies, or collision shapes of bodies, in contact. Neither body may have a joint.
    restitution : float, default 1.0
        Newton's coefficient of restitution, between 0 and 1.
    friction : float, default 0.0
        Coulomb's coefficient of friction, at least 0.
    persistent : bool, default True
        Close the contact when the next flight would last less than a thousandth of a step. Closed contacts slide,
        roll or stick without penetration until they lift off; the normal force is then ``name.normal_force``.
        Contacts with several contact points and mechanisms with a contact group are never persistent. With False, no
        constraints are added to the mechanism; some schemes require a mechanism without constraints.
    name : str, optional
        Name of the events. Default: the names of the two bodies.

    Returns
    -------
    list of Event
        Events to pass as ``simulate(..., events=[...])``.

    Raises
    ------
    InputError
        If both shapes belong to one body, a body has a joint, or an argument is out of range.

    Notes
    -----
    Without persistent contact, end the run before flights become shorter than a step, or use `contact`.
    """
    a, b = (mechanism._collision_shape(body) for body in (first, second))
    name = name or f"{a.body.name}-{b.body.name} bounce"
    if a.body is b.body:
        raise InputError(f"{name}: both shapes belong to one body; rigid contact needs two bodies")
    e = check_number(f"{name}: the restitution", restitution)
    if not 0 <= e <= 1:
        raise InputError(f"{name}: the restitution must be between 0 and 1, got {e:g}")
    mu = check_nonnegative(f"{name}: friction", friction)
    _require_free_bodies(mechanism, name, (a.body, b.body))
    points = contact_points(name, a, b)
    if name not in mechanism._impact_pairs:
        mechanism._impact_pairs.append(name)
    if check_bool("persistent", persistent) and len(points) == 1 and not mechanism._contact_groups:
        return _contact_events(mechanism, RigidContact(name, points[0], e, mu))
    labels = [name] if len(points) == 1 else [f"{name} {i + 1}" for i in range(len(points))]
    return [
        _PointImpact(mechanism, contact_point, e, mu).event(label)
        for contact_point, label in zip(points, labels, strict=True)
    ]


def _require_free_bodies(mechanism: Multibody, name: str, parts: Sequence[Body]) -> None:
    for joint in mechanism.connections.values():
        if {joint.body_a.name, joint.body_b.name} & {part.name for part in parts if part.element is not None}:
            raise InputError(
                f"{name}: rigid contact needs bodies without joints, but '{joint.name}' is a joint of one of them; "
                "use a compliant contact (mb.contact)"
            )


def _contact_events(mechanism: Multibody, contact: RigidContact) -> list[Event]:
    """Return the events of a persistent contact; repeating an identical definition returns the same contact."""
    existing = mechanism._rigid_contacts.get(contact.name)
    if existing is None or _definition(existing) != _definition(contact):
        mechanism._rigid_contacts.pop(contact.name, None)
        mechanism._claim_name(contact.name)
        mechanism._rigid_contacts[contact.name] = contact
    handler, names = _RigidContactEvents(mechanism, contact.name), _event_names(contact)
    guards = (handler.gap_guard, handler.force_guard, handler.stick_guard, handler.slip_guard)
    actions = (handler.on_impact, handler.on_separation, handler.on_slip, handler.on_slip_reversal)
    may_accumulate, resolver = (contact.restitution < 1, False, False, False), _MechanismContactResolver(mechanism)
    return [
        ContactEvent(function, name, -1, False, action, may_accumulate=accumulates, resolver=resolver)
        for name, function, action, accumulates in zip(names, guards, actions, may_accumulate, strict=False)
    ]


def _event_names(contact: RigidContact) -> list[str]:
    """Return the event names of a contact: impact, lift-off and, with friction, slip and slip reversal."""
    return [contact.name + suffix for suffix in ("", " left", " slips", " slip turns")[: 4 if contact.friction else 2]]


def _definition(contact: RigidContact) -> Any:
    contact_point = contact.contact_point
    parameters = {
        name: np.asarray(value).tolist()
        for name, value in {**contact_point.parameters, **contact_point.constants}.items()
    }
    return (
        contact_point.geometry,
        contact_point.body_a,
        contact_point.body_b,
        parameters,
        contact.restitution,
        contact.friction,
    )


_dynamics_cache: weakref.WeakKeyDictionary[Multibody, ContactDynamics] = weakref.WeakKeyDictionary()


def contact_dynamics(mechanism: Multibody) -> ContactDynamics:
    """Return the contact dynamics of a mechanism, derived once per system."""
    system, dynamics = mechanism.system, _dynamics_cache.get(mechanism)
    if dynamics is None or dynamics.system is not system:
        for contact in mechanism._rigid_contacts.values():
            _require_free_bodies(mechanism, contact.name, (contact.contact_point.body_a, contact.contact_point.body_b))
        dynamics = _dynamics_cache[mechanism] = ContactDynamics(system, list(mechanism._rigid_contacts.values()))
    return dynamics


class _MechanismContactResolver:
    """Contact resolver of a mechanism: contact modes at the start of a run and after actions of other events."""

    def __init__(self, mechanism: Multibody) -> None:
        self._mechanism = mechanism

    def initialise(self, initial: StateAndParameters, t: float, h: float, names: Collection[str]) -> Mapping[str, Any]:
        (q, v, k), dynamics = initial, contact_dynamics(self._mechanism)
        for contact in dynamics.contacts:  # a contact without its lift-off event would stay closed indefinitely
            if not set(_event_names(contact)) <= set(names):
                raise InputError(f"{contact.name}: its events are missing; pass events=[*..., *mb.rigid_contact(...)]")
        closed = []
        for i, gap in enumerate(dynamics.state(q, v, t, k).gaps.tolist()):
            if gap < -GAP_TOLERANCE:
                name = dynamics.contacts[i].name
                raise InputError(f"{name}: the bodies overlap by {-gap:.3g} m at the start; move them apart")
            closed += [i] if gap <= GAP_TOLERANCE else []
        return dynamics.resolve(q, v, t, k, h, impacting=closed) if closed else {}

    def all_open(self, k: np.ndarray) -> np.ndarray:
        return contact_dynamics(self._mechanism).all_open(k)

    def resolve(self, before: StateAndParameters, after: StateAndParameters, t: float, h: float) -> Mapping[str, Any]:
        dynamics, (q, v, k) = contact_dynamics(self._mechanism), after
        for contact, gap in zip(dynamics.contacts, dynamics.state(q, v, t, k).gaps.tolist(), strict=True):
            if gap < -GAP_TOLERANCE:
                raise InputError(f"the bodies of '{contact.name}' overlap by {-gap:.3g} m after the action")
        return dynamics.resolve(q, v, t, k, h, before=before)


class _RigidContactEvents:
    """Guards and reset maps of one persistent contact, identified by its name."""

    def __init__(self, mechanism: Multibody, name: str) -> None:
        self._mechanism, self._name = mechanism, name

    @property
    def _dynamics(self) -> ContactDynamics:
        return contact_dynamics(self._mechanism)

    @property
    def _index(self) -> int:
        return list(self._mechanism._rigid_contacts).index(self._name)

    def gap_guard(self, q: Expr, v: Expr, t: Expr, k: Expr) -> Expr:
        return self._dynamics.gap_guard(self._index, q, v, t, k)

    def force_guard(self, q: Expr, v: Expr, t: Expr, k: Expr) -> Expr:
        return self._dynamics.force_guard(self._index, q, v, t, k)

    def stick_guard(self, q: Expr, v: Expr, t: Expr, k: Expr) -> Expr:
        return self._dynamics.stick_guard(self._index, q, v, t, k)

    def slip_guard(self, q: Expr, v: Expr, t: Expr, k: Expr) -> Expr:
        return self._dynamics.slip_guard(self._index, q, v, t, k)

    def _flag(self, mode_flag: str, k: np.ndarray) -> bool:
        """Return a mode flag; another event at the same time may have changed it."""
        return bool(k[self._dynamics.parameter_indices[self._index][mode_flag][0]] > 0)

    def on_impact(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, Any]:
        dynamics, i = self._dynamics, self._index
        if self._flag("touching", k) or dynamics.state(q, v, t, k).relative_velocities[dynamics.normal_rows[i]] >= 0:
            return {}
        return dynamics.resolve(q, v, t, k, h, impacting=[i])

    def on_separation(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, Any]:
        return self._dynamics.resolve(q, v, t, k, h, separating=self._index) if self._flag("touching", k) else {}

    def on_slip(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, Any]:
        return self._dynamics.resolve(q, v, t, k, h, slipping=self._index) if self._flag("sticking", k) else {}

    def on_slip_reversal(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, Any]:
        if not self._flag("touching", k) or self._flag("sticking", k):
            return {}
        return self._dynamics.resolve(q, v, t, k, h, reversing=self._index)


class _PointImpact:
    """Impact at one contact point without persistent contact."""

    def __init__(self, mechanism: Multibody, contact_point: ContactPoint, restitution: float, friction: float) -> None:
        self._mechanism, self._contact_point, self._e, self._mu = mechanism, contact_point, restitution, friction
        self._k = ParameterNamespace({**contact_point.parameters, **contact_point.constants})
        self._bodies = [part for part in (contact_point.body_a, contact_point.body_b) if part.element is not None]

    def event(self, name: str) -> Event:
        return ImpactEvent(self._gap, name, -1, False, self._after_impact, functools.partial(self._check_start, name))

    def _check_start(self, name: str, q: np.ndarray, v: np.ndarray) -> None:
        """Raise an error if the bodies overlap, or touch and approach each other."""
        gap, normal, point = self._contact_geometry(q)
        if gap < -GAP_TOLERANCE:
            raise InputError(f"{name}: the bodies overlap by {-gap:.3g} m; move them apart")
        if gap <= GAP_TOLERANCE and normal @ self._relative_velocity(q, v, normal, point)[0] <= 0:
            raise InputError(f"{name}: the bodies touch already and would interpenetrate; use a contact (mb.contact)")

    def _coordinate_indices(self, part: Body) -> list[int]:
        index = {name: i for i, name in enumerate(self._mechanism.system.coordinates)}
        return [index[str(c)] for c in part.coordinates]

    def _gap(self, q: Vector) -> ScalarLike:
        contact_point = self._contact_point
        pair_coordinates = q[
            [*self._coordinate_indices(contact_point.body_a), *self._coordinate_indices(contact_point.body_b)]
        ]
        return contact_point.geometry.gap_at(
            contact_point.body_a.parametrisation, contact_point.body_b.parametrisation, pair_coordinates, self._k
        )

    def _contact_geometry(self, q: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return gap, unit normal and contact point."""
        contact_point = self._contact_point
        pair_coordinates = ca.SX.sym("q", len(contact_point.body_a.coordinates) + len(contact_point.body_b.coordinates))
        outputs = contact_point.geometry.contact_frame(
            contact_point.body_a.parametrisation,
            contact_point.body_b.parametrisation,
            m.from_casadi(pair_coordinates),
            self._k,
        )
        f = ca.Function("touch", [pair_coordinates], [m.to_casadi(output) for output in outputs])
        gap, normal, point = f(
            q[[*self._coordinate_indices(contact_point.body_a), *self._coordinate_indices(contact_point.body_b)]]
        )
        return float(gap), np.array(normal).ravel(), np.array(point).ravel()

    def _after_impact(self, q: np.ndarray, v: np.ndarray) -> Mapping[str, Any]:
        """Return the velocities after the impact: impulse P on the first body, -P on the second."""
        _, normal, point = self._contact_geometry(q)
        d, (relative, delassus, rotational_terms) = len(normal), self._relative_velocity(q, v, normal, point)
        approach_velocity = float(normal @ relative)
        if approach_velocity >= 0:
            return {}
        impulse = self._impact_impulse(delassus, normal, relative, approach_velocity)
        v_after = v.copy()
        for part in self._bodies:
            i, sign = self._coordinate_indices(part), 1 if part is self._contact_point.body_a else -1
            arm, omega, inverse = rotational_terms[part.name]
            omega_after = omega + sign * inverse @ arm @ impulse
            v_after[i] = part.parametrisation.from_twist(q[i], v[i[:d]] + sign * impulse / _mass(part), omega_after)
        return {"v": v_after}

    def _relative_velocity(
        self, q: np.ndarray, v: np.ndarray, normal: np.ndarray, point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Return relative velocity of the first body, Delassus matrix, and lever arm, spin and inertia by body."""
        d, relative, delassus, rotational_terms = len(normal), np.zeros(len(normal)), np.zeros((len(normal),) * 2), {}
        for part in self._bodies:
            i, sign = self._coordinate_indices(part), 1 if part is self._contact_point.body_a else -1
            arm, omega, inverse = _rigid_body_terms(part, q[i], v[i], point)
            rotational_terms[part.name] = arm, omega, inverse
            relative += sign * (v[i[:d]] + arm.T @ omega)
            delassus += np.eye(d) / _mass(part) + arm.T @ inverse @ arm
        return relative, delassus, rotational_terms

    def _impact_impulse(
        self, delassus: np.ndarray, normal: np.ndarray, relative: np.ndarray, approach_velocity: float
    ) -> np.ndarray:
        sticking_impulse = np.linalg.solve(delassus, -relative - self._e * approach_velocity * normal)
        normal_impulse = normal @ sticking_impulse
        if np.linalg.norm(sticking_impulse - normal_impulse * normal) <= self._mu * normal_impulse:
            return sticking_impulse
        tangential_velocity = relative - approach_velocity * normal
        slip_speed = float(np.linalg.norm(tangential_velocity))
        impulse_direction = normal if not slip_speed else normal - self._mu * tangential_velocity / slip_speed
        return -(1 + self._e) * approach_velocity / (normal @ delassus @ impulse_direction) * impulse_direction


def _mass(part: Body) -> float:
    assert part.element is not None
    return part.element.mass


def _rigid_body_terms(
    part: Body, q: np.ndarray, v: np.ndarray, point: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cross-product matrix of the lever arm, the angular velocity and the inverse inertia of a body."""
    d = part.dimension
    n_rotations = 3 if d == 3 else 1
    if not part.parametrisation.has_orientation:
        return np.zeros((n_rotations, d)), np.zeros(n_rotations), np.zeros((n_rotations, n_rotations))
    assert part.element is not None
    x, y, z = [*(point - q[:d]), 0.0][:3]
    parameters = part.element.parameters.values
    directors, rates = q[d:].reshape(-1, d), v[d:].reshape(-1, d)
    if d == 2:
        omega = (directors[:, 0] @ rates[:, 1] - directors[:, 1] @ rates[:, 0]) / 2
        return np.array([[-y, x]]), np.array([omega]), np.array([[1 / float(parameters["moment"])]])
    euler = parameters["euler"]
    R = directors.T
    inertia = R @ (np.trace(euler) * np.eye(3) - euler) @ R.T
    arm = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return arm, np.cross(directors, rates).sum(axis=0) / 2, np.linalg.inv(inertia)


Multibody.attach("rigid_contact", _rigid_contact)
