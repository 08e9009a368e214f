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
from livens.expressions.numbers import flag, not_negative, number
from livens.expressions.parameters import Namespace
from livens.multibody.builder import Multibody
from livens.multibody.contacts.landing import Landing
from livens.multibody.contacts.pairs import Spot, spots
from livens.multibody.contacts.shape import Shape
from livens.multibody.parts import Part
from livens.run.events import CLOSED, Blow, Event, Situation, Touch
from livens.run.resting import Resting


def _bounce(
    mechanism: Multibody,
    first: Part | Shape,
    second: Part | Shape,
    *,
    restitution: float = 1.0,
    friction: float = 0.0,
    lands: bool = True,
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
    a, b = (mechanism._touching(one) for one in (first, second))
    name = name or f"{a.part.name}-{b.part.name} bounce"
    if a.part is b.part:
        raise InputError(f"{name}: both shapes belong to one body; rigid contact needs two bodies")
    e = number(f"{name}: the restitution", restitution)
    if not 0 <= e <= 1:
        raise InputError(f"{name}: the restitution must be between 0 and 1, got {e:g}")
    mu = not_negative(f"{name}: friction", friction)
    _check_joints(mechanism, name, (a.part, b.part))
    found = spots(name, a, b)
    if name not in mechanism._bounces:
        mechanism._bounces.append(name)
    if flag("lands", lands) and len(found) == 1 and not mechanism._crowds:
        return _landing(mechanism, Landing(name, found[0], e, mu))
    labels = [name] if len(found) == 1 else [f"{name} {i + 1}" for i in range(len(found))]
    return [_Blow(mechanism, spot, e, mu).event(label) for spot, label in zip(found, labels, strict=True)]


def _check_joints(mechanism: Multibody, name: str, parts: Sequence[Part]) -> None:
    for one in mechanism.connections.values():
        if {one.first.name, one.second.name} & {part.name for part in parts if part.element is not None}:
            raise InputError(
                f"{name}: rigid contact needs bodies without joints, but '{one.name}' is a joint of one of them; "
                "use a compliant contact (mb.contact)"
            )


def _landing(mechanism: Multibody, made: Landing) -> list[Event]:
    """Return the events of a persistent contact; repeating an identical definition returns the same contact."""
    known = mechanism._landings.get(made.name)
    if known is None or _said(known) != _said(made):
        mechanism._landings.pop(made.name, None)
        mechanism._new(made.name)
        mechanism._landings[made.name] = made
    place, names = _Place(mechanism, made.name), _events(made)
    happens = (place.hit, place.left, place.slips, place.stops)
    actions = (place.struck, place.leaves, place.slides, place.stands)
    settles, afresh = (made.restitution < 1, False, False, False), _Afresh(mechanism)
    return [
        Touch(function, name, -1, False, action, settles=ends, afresh=afresh)
        for name, function, action, ends in zip(names, happens, actions, settles, strict=False)
    ]


def _events(landing: Landing) -> list[str]:
    """Return the event names of a contact: impact, lift-off and, with friction, slip and slip reversal."""
    return [landing.name + word for word in ("", " left", " slips", " slip turns")[: 4 if landing.friction else 2]]


def _said(landing: Landing) -> Any:
    spot = landing.spot
    numbers = {name: np.asarray(value).tolist() for name, value in {**spot.sizes, **spot.constants}.items()}
    return spot.geometry, spot.first, spot.second, numbers, landing.restitution, landing.friction


_found: weakref.WeakKeyDictionary[Multibody, Resting] = weakref.WeakKeyDictionary()


def resting(mechanism: Multibody) -> Resting:
    """Return the contact dynamics of a mechanism, derived once per system."""
    system, known = mechanism.system, _found.get(mechanism)
    if known is None or known.system is not system:
        for landing in mechanism._landings.values():
            _check_joints(mechanism, landing.name, (landing.spot.first, landing.spot.second))
        known = _found[mechanism] = Resting(system, list(mechanism._landings.values()))
    return known


class _Afresh:
    """Contact resolver of a mechanism: contact modes at the start of a run and after actions of other events."""

    def __init__(self, mechanism: Multibody) -> None:
        self._mechanism = mechanism

    def begun(self, start: Situation, t: float, h: float, given: Collection[str]) -> Mapping[str, Any]:
        (q, v, k), places = start, resting(self._mechanism)
        for landing in places.landings:  # a contact without its lift-off event would stay closed indefinitely
            if not set(_events(landing)) <= set(given):
                raise InputError(
                    f"{landing.name}: its events are missing; pass events=[*..., *mb.rigid_contact(...)]"
                )
        met = []
        for i, gap in enumerate(places.state(q, v, t, k).gaps.tolist()):
            if gap < -CLOSED:
                name = places.landings[i].name
                raise InputError(f"{name}: the bodies overlap by {-gap:.3g} m at the start; move them apart")
            met += [i] if gap <= CLOSED else []
        return places.settled(q, v, t, k, h, struck=met) if met else {}

    def apart(self, k: np.ndarray) -> np.ndarray:
        return resting(self._mechanism).apart(k)

    def settled(self, before: Situation, after: Situation, t: float, h: float) -> Mapping[str, Any]:
        places, (q, v, k) = resting(self._mechanism), after
        for landing, gap in zip(places.landings, places.state(q, v, t, k).gaps.tolist(), strict=True):
            if gap < -CLOSED:
                raise InputError(f"the bodies of '{landing.name}' overlap by {-gap:.3g} m after the action")
        return places.settled(q, v, t, k, h, before=before)


class _Place:
    """Guards and reset maps of one persistent contact, identified by its name."""

    def __init__(self, mechanism: Multibody, name: str) -> None:
        self._mechanism, self._name = mechanism, name

    @property
    def _all(self) -> Resting:
        return resting(self._mechanism)

    @property
    def _number(self) -> int:
        return list(self._mechanism._landings).index(self._name)

    def hit(self, q: Any, v: Any, t: Any, k: Any) -> Any:
        return self._all.hit(self._number, q, v, t, k)

    def left(self, q: Any, v: Any, t: Any, k: Any) -> Any:
        return self._all.left(self._number, q, v, t, k)

    def slips(self, q: Any, v: Any, t: Any, k: Any) -> Any:
        return self._all.slips(self._number, q, v, t, k)

    def stops(self, q: Any, v: Any, t: Any, k: Any) -> Any:
        return self._all.stops(self._number, q, v, t, k)

    def _is(self, word: str, k: np.ndarray) -> bool:
        """Return a mode flag; another event at the same time may have changed it."""
        return bool(k[self._all.where[self._number][word][0]] > 0)

    def struck(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, Any]:
        places, i = self._all, self._number
        if self._is("touching", k) or places.state(q, v, t, k).rates[places.normals[i]] >= 0:
            return {}
        return places.settled(q, v, t, k, h, struck=[i])

    def leaves(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, Any]:
        return self._all.settled(q, v, t, k, h, leaving=self._number) if self._is("touching", k) else {}

    def slides(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, Any]:
        return self._all.settled(q, v, t, k, h, sliding=self._number) if self._is("sticking", k) else {}

    def stands(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, Any]:
        if not self._is("touching", k) or self._is("sticking", k):
            return {}
        return self._all.settled(q, v, t, k, h, ending=self._number)


class _Blow:
    """Impact at one contact point without persistent contact."""

    def __init__(self, mechanism: Multibody, spot: Spot, restitution: float, friction: float) -> None:
        self._mechanism, self._spot, self._e, self._mu = mechanism, spot, restitution, friction
        self._k = Namespace({**spot.sizes, **spot.constants})
        self._bodies = [part for part in (spot.first, spot.second) if part.element is not None]

    def event(self, name: str) -> Event:
        return Blow(self._gap, name, -1, False, self._struck, functools.partial(self._begins, name))

    def _begins(self, name: str, q: np.ndarray, v: np.ndarray) -> None:
        """Raise an error if the bodies overlap, or touch and approach each other."""
        gap, normal, point = self._touch(q)
        if gap < -CLOSED:
            raise InputError(f"{name}: the bodies overlap by {-gap:.3g} m; move them apart")
        if gap <= CLOSED and normal @ self._relative(q, v, normal, point)[0] <= 0:
            raise InputError(f"{name}: the bodies touch already and would interpenetrate; use a contact (mb.contact)")

    def _places(self, part: Part) -> list[int]:
        place = {name: i for i, name in enumerate(self._mechanism.system.coordinates)}
        return [place[str(c)] for c in part.coordinates]

    def _gap(self, q: Any) -> Any:
        spot = self._spot
        own = q[[*self._places(spot.first), *self._places(spot.second)]]
        return spot.geometry.gap_at(spot.first.placement, spot.second.placement, own, self._k)

    def _touch(self, q: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return gap, unit normal and contact point."""
        spot = self._spot
        own = ca.SX.sym("q", len(spot.first.coordinates) + len(spot.second.coordinates))
        found = spot.geometry.touch(spot.first.placement, spot.second.placement, m.symbols(own), self._k)
        f = ca.Function("touch", [own], [m.expression(one) for one in found])
        gap, normal, point = f(q[[*self._places(spot.first), *self._places(spot.second)]])
        return float(gap), np.array(normal).ravel(), np.array(point).ravel()

    def _struck(self, q: np.ndarray, v: np.ndarray) -> Mapping[str, Any]:
        """Return the velocities after the impact: impulse P on the first body, -P on the second."""
        _, normal, point = self._touch(q)
        d, (relative, W, turning) = len(normal), self._relative(q, v, normal, point)
        closing = float(normal @ relative)
        if closing >= 0:
            return {}
        P = self._impulse(W, normal, relative, closing)
        new = v.copy()
        for part in self._bodies:
            i, sign = self._places(part), 1 if part is self._spot.first else -1
            arm, omega, inverse = turning[part.name]
            rates = omega + sign * inverse @ arm @ P
            new[i] = part.placement.rates(q[i], v[i[:d]] + sign * P / _mass(part), rates)
        return {"v": new}

    def _relative(
        self, q: np.ndarray, v: np.ndarray, normal: np.ndarray, point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Return relative velocity of the first body, Delassus matrix, and lever arm, spin and inertia by body."""
        d, relative, W, turning = len(normal), np.zeros(len(normal)), np.zeros((len(normal),) * 2), {}
        for part in self._bodies:
            i, sign = self._places(part), 1 if part is self._spot.first else -1
            arm, omega, inverse = _motion(part, q[i], v[i], point)
            turning[part.name] = arm, omega, inverse
            relative += sign * (v[i[:d]] + arm.T @ omega)
            W += np.eye(d) / _mass(part) + arm.T @ inverse @ arm
        return relative, W, turning

    def _impulse(self, W: np.ndarray, normal: np.ndarray, relative: np.ndarray, closing: float) -> np.ndarray:
        sticking = np.linalg.solve(W, -relative - self._e * closing * normal)
        pressed = normal @ sticking
        if np.linalg.norm(sticking - pressed * normal) <= self._mu * pressed:
            return sticking
        sliding = relative - closing * normal
        size = float(np.linalg.norm(sliding))
        along = normal if not size else normal - self._mu * sliding / size
        return -(1 + self._e) * closing / (normal @ W @ along) * along


def _mass(part: Part) -> float:
    assert part.element is not None
    return part.element.mass


def _motion(part: Part, q: np.ndarray, v: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cross-product matrix of the lever arm, the angular velocity and the inverse inertia of a body."""
    d = part.dimension
    turns = 3 if d == 3 else 1
    if not part.placement.turns:
        return np.zeros((turns, d)), np.zeros(turns), np.zeros((turns, turns))
    assert part.element is not None
    x, y, z = [*(point - q[:d]), 0.0][:3]
    given = part.element.parameters.values
    directors, rates = q[d:].reshape(-1, d), v[d:].reshape(-1, d)
    if d == 2:
        omega = (directors[:, 0] @ rates[:, 1] - directors[:, 1] @ rates[:, 0]) / 2
        return np.array([[-y, x]]), np.array([omega]), np.array([[1 / float(given["moment"])]])
    euler = given["euler"]
    R = directors.T
    inertia = R @ (np.trace(euler) * np.eye(3) - euler) @ R.T
    arm = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return arm, np.cross(directors, rates).sum(axis=0) / 2, np.linalg.inv(inertia)


Multibody.attach("bounce", _bounce)
