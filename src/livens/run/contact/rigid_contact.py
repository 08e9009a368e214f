"""Impulsive contact between rigid bodies: events with Newton restitution and Coulomb friction.

Pairs with a single contact point may close persistently, see `livens.run.contact.contact_dynamics`. Pairs with
several contact points, such as boxes, only collide.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.models.guarded_event import GuardedEvent
from livens.models.system import System
from livens.multibody.body import Body
from livens.multibody.contacts.narrow_phase import contact_points
from livens.multibody.contacts.rigid_contact import RigidContact, UnilateralContact
from livens.multibody.contacts.shapes import CollisionShape
from livens.multibody.multibody import Multibody
from livens.run.contact.contact_dynamics import ContactDynamics
from livens.run.events.event import GAP_TOLERANCE, StateAndParameters
from livens.types import Expr
from livens.validation import check_bool, check_nonnegative, check_number


def _rigid_contact(
    mechanism: Multibody,
    first: Body | CollisionShape,
    second: Body | CollisionShape,
    *,
    restitution: float = 1.0,
    friction: float = 0.0,
    persistent: bool = True,
    unique: bool = False,
    name: str = "",
) -> list[RigidContact]:
    """Add rigid contact between two bodies; its impacts are events of every run of the mechanism.

    An impact reverses the normal relative velocity times `restitution`. The tangential impulse is that of sticking if
    it lies inside the friction cone, otherwise that of sliding against the slip after the impact. Joints respond with
    reaction impulses. The energy lost in an impact is dissipated energy.

    Parameters
    ----------
    mechanism : Multibody
        Mechanism, the object of the method.
    first, second : Part or Shape
        Bodies, or collision shapes of bodies, in contact.
    restitution : float, default 1.0
        Newton's coefficient of restitution, between 0 and 1.
    friction : float, default 0.0
        Coulomb's coefficient of friction, at least 0.
    persistent : bool, default True
        Close the contact when the next flight would last less than a thousandth of a step. Closed contacts slide,
        roll or stick without penetration until they lift off; the normal force is then ``name.normal_force``.
        Contacts with several contact points and mechanisms with a contact group are never persistent. With False, no
        constraints are added to the mechanism; some schemes require a mechanism without constraints.
    unique : bool, default False
        Raise an error if the forces of closed contacts are statically indeterminate. Otherwise a `LivensWarning` is
        issued: the motion is unique, and constraints that follow from others carry no force.
    name : str, optional
        Name of the contact and its events. Default: the names of the two bodies.

    Returns
    -------
    list of RigidContact
        One rigid contact for each contact point.

    Raises
    ------
    InputError
        If both shapes belong to one body, or an argument is out of range.

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
    points = contact_points(name, a, b)
    persistent = check_bool("persistent", persistent) and len(points) == 1 and not mechanism._contact_groups
    labels = [name] if len(points) == 1 else [f"{name} {i + 1}" for i in range(len(points))]
    return [
        _registered(mechanism, RigidContact(label, point, e, mu, persistent, check_bool("unique", unique)))
        for label, point in zip(labels, points, strict=True)
    ]


def _registered(mechanism: Multibody, contact: RigidContact) -> RigidContact:
    """Return the contact of a mechanism; repeating an identical definition returns the same contact."""
    existing = mechanism._rigid_contacts.get(contact.name)
    if existing is None or _definition(existing) != _definition(contact):
        mechanism._rigid_contacts.pop(contact.name, None)
        mechanism._claim_name(contact.name)
        mechanism._rigid_contacts[contact.name] = existing = contact
    return existing


def _definition(contact: RigidContact) -> Any:
    contact_point = contact.contact_point
    parameters = {
        name: np.asarray(value).tolist()
        for name, value in {**contact_point.parameters, **contact_point.constants}.items()
    }
    bodies = contact_point.body_a, contact_point.body_b
    law = contact.restitution, contact.friction, contact.persistent, contact.unique
    return contact_point.geometry, *bodies, parameters, *law


def _contact_events(mechanism: Multibody, system: System) -> tuple[GuardedEvent, ...]:
    """Return the events of all unilateral contacts: impact, lift-off and, with friction, slip and slip reversal."""
    resolver, events = SystemContacts(system, mechanism._unilateral_contacts), list[GuardedEvent]()
    for i, contact in enumerate(resolver.contacts):
        handler = _RigidContactEvents(resolver, i)
        suffixes = ("", " left", " slips", " slip turns")[: 4 if contact.friction else 2]
        guards = (handler.gap_guard, handler.force_guard, handler.stick_guard, handler.slip_guard)
        actions = (handler.on_impact, handler.on_separation, handler.on_slip, handler.on_slip_reversal)
        for number, (suffix, guard, action) in enumerate(zip(suffixes, guards, actions, strict=False)):
            if number and not contact.persistent:
                break
            accumulates = not number and contact.persistent and contact.restitution < 1
            events.append(GuardedEvent(contact.name + suffix, guard, -1, action, accumulates, resolver, contact.label))
    return tuple(events)


class SystemContacts:
    """Contact resolver of a system: contact modes at the start of a run and after actions of other events."""

    def __init__(self, system: System, contacts: list[UnilateralContact]) -> None:
        self.contacts, self._system = contacts, system

    @functools.cached_property
    def dynamics(self) -> ContactDynamics:
        """Contact dynamics, derived on first use."""
        return ContactDynamics(self._system, self.contacts)

    def _closed(self, state: StateAndParameters, t: float) -> list[int]:
        """Return the contacts with a closed gap; raise an error for penetration and for impacts without events."""
        s, closed = self.dynamics.state(*state[:2], t, state[2]), list[int]()
        for i, gap in enumerate(s.gaps.tolist()):
            contact = self.contacts[i]
            if gap < -GAP_TOLERANCE:
                raise InputError(contact.overlap_message(-gap))
            if gap > GAP_TOLERANCE:
                continue
            if not contact.persistent and s.relative_velocities[self.dynamics.normal_rows[i]] <= 0:
                raise InputError(
                    f"{contact.name}: the bodies touch already and would interpenetrate; use a contact (mb.contact)"
                )
            closed.append(i)
        return closed

    def initialise(self, initial: StateAndParameters, t: float, h: float) -> Mapping[str, Any]:
        """Return the changes at the start of a run: modes of the contacts that are closed."""
        closed = self._closed(initial, t)
        q, v, k = initial
        return self.dynamics.resolve(q, v, t, k, h, impacting=closed) if closed else {}

    def all_open(self, k: np.ndarray) -> np.ndarray:
        """Return the parameters with all contacts open."""
        return self.dynamics.all_open(k)

    def resolve(self, before: StateAndParameters, after: StateAndParameters, t: float, h: float) -> Mapping[str, Any]:
        """Return the changes after an action of another event."""
        self._closed(after, t)
        q, v, k = after
        return self.dynamics.resolve(q, v, t, k, h, before=before)


class _RigidContactEvents:
    """Guards and reset maps of one contact."""

    def __init__(self, resolver: SystemContacts, index: int) -> None:
        self._resolver, self._index = resolver, index

    @property
    def _dynamics(self) -> ContactDynamics:
        return self._resolver.dynamics

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
        if self._index not in self._dynamics.persistent:
            return False
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


Multibody.attach("_contact_events", _contact_events)
Multibody.attach("rigid_contact", _rigid_contact)
