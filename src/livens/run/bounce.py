"""Blows of rigid bodies that take no time: events that change velocities by restitution and Coulomb's friction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import not_negative, number
from livens.expressions.parameters import Namespace
from livens.multibody.builder import Multibody
from livens.multibody.contacts.pairs import Spot, spots
from livens.multibody.contacts.shape import Shape
from livens.multibody.parts import Part
from livens.run.events import Event


def _bounce(
    mechanism: Multibody,
    first: Part | Shape,
    second: Part | Shape,
    *,
    restitution: float = 1.0,
    friction: float = 0.0,
    name: str = "",
) -> list[Event]:
    """Events for ``simulate(..., events=[...])`` in which two bodies without joints bounce off each other.

    They part with `restitution` times the speed they came with. Along the surfaces, the blow stops them from sliding if
    Coulomb's `friction` suffices for that. What a blow takes counts as supplied energy, with its sign. Bounces that
    get shorter and shorter are for `contact`: end the run before they are shorter than a step.
    """
    a, b = (mechanism._touching(one) for one in (first, second))
    name = name or f"{a.part.name}-{b.part.name} bounce"
    e = number(f"{name}: the restitution", restitution)
    if not 0 <= e <= 1:
        raise InputError(f"{name}: the restitution must be between 0 and 1, got {e:g}")
    mu = not_negative(f"{name}: friction", friction)
    for one in mechanism.connections.values():
        if {one.first.name, one.second.name} & {part.name for part in (a.part, b.part) if part.element is not None}:
            raise InputError(f"{name}: a body with a joint, as '{one.name}' is, needs a contact instead of a bounce")
    found = spots(name, a, b)
    labels = [name] if len(found) == 1 else [f"{name} {i + 1}" for i in range(len(found))]
    return [_Blow(mechanism, spot, e, mu).event(label) for spot, label in zip(found, labels, strict=True)]


class _Blow:
    """One place where two bodies may meet."""

    def __init__(self, mechanism: Multibody, spot: Spot, restitution: float, friction: float) -> None:
        self._mechanism, self._spot, self._e, self._mu = mechanism, spot, restitution, friction
        self._k = Namespace({**spot.sizes, **spot.constants})
        self._bodies = [part for part in (spot.first, spot.second) if part.element is not None]

    def event(self, name: str) -> Event:
        return Event(self._gap, name=name, direction=-1, action=self._struck)

    def _places(self, part: Part) -> list[int]:
        place = {name: i for i, name in enumerate(self._mechanism.system.coordinates)}
        return [place[str(c)] for c in part.coordinates]

    def _gap(self, q: Any) -> Any:
        spot = self._spot
        own = q[[*self._places(spot.first), *self._places(spot.second)]]
        return spot.geometry.gap_at(spot.first.placement, spot.second.placement, own, self._k)

    def _touch(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        spot = self._spot
        own = ca.SX.sym("q", len(spot.first.coordinates) + len(spot.second.coordinates))
        _, normal, point = spot.geometry.touch(spot.first.placement, spot.second.placement, m.symbols(own), self._k)
        f = ca.Function("touch", [own], [m.expression(normal), m.expression(point)])
        found = f(q[[*self._places(spot.first), *self._places(spot.second)]])
        return np.array(found[0]).ravel(), np.array(found[1]).ravel()

    def _struck(self, q: np.ndarray, v: np.ndarray) -> Mapping[str, Any]:
        """The velocities after the blow: an impulse P on the first body, -P on the second."""
        normal, point = self._touch(q)
        d, relative, W, turning = len(normal), np.zeros(len(normal)), np.zeros((len(normal),) * 2), {}
        for part in self._bodies:
            i, sign = self._places(part), 1 if part is self._spot.first else -1
            arm, omega, inverse = _motion(part, q[i], v[i], point)
            turning[part.name] = arm, omega, inverse
            relative += sign * (v[i[:d]] + arm.T @ omega)
            W += np.eye(d) / _mass(part) + arm.T @ inverse @ arm
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
    """The matrix that makes a torque of a force at a point, the angular velocity, and the inverse of the inertia."""
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
