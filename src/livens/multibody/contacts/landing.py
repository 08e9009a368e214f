"""Unilateral contact as a switchable element: closed gap, sliding with Coulomb friction or sticking.

The gap is an exact constraint while `touching` is one. In sliding, its force N causes the friction force against the
slip; in sticking, velocity constraints keep the slip at zero. While a constraint is inactive, it acts on a slack
coordinate instead, which it keeps at zero. The number of equations is therefore constant, and a contact opens and
closes by a change of parameters::

    0 = touching gap(q) + (1 - touching) z_0        0 = sticking slip_i(q, v) + (1 - sticking) z_i'
"""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.models.element import Element
from livens.models.rates import Rubbing
from livens.multibody.bodies import Body
from livens.multibody.contacts.geometry.base import TINY, Geometry, slip
from livens.multibody.contacts.pairs import Spot
from livens.multibody.placement import Directors, Placement

#: Regularisation velocity of the slip direction in m/s.
SLOW = 1e-9


class Landing:
    """Rigid (unilateral) contact of two bodies at one contact point, as an element; initially open.

    Its parameters are those of the contact point, then ``friction``, ``touching``, ``sticking`` and the ``direction``
    of the slip, a unit vector in space.
    """

    def __init__(self, name: str, spot: Spot, restitution: float, friction: float) -> None:
        self.name, self.spot, self.restitution, self.friction = name, spot, restitution, friction
        d, a, b = spot.first.dimension, spot.first.placement, spot.second.placement
        masses = [part.element.mass for part in (spot.first, spot.second) if part.element is not None]
        #: Names of the constraints: gap and, with friction, slip.
        words = ["gap", "slip 1", "slip 2"][: d if friction else 1]
        self.idle = [_idle(f"{name} {word}", min(masses)) for word in words]
        first = tuple(str(c) for part in (spot.first, spot.second) for c in part.coordinates)
        self.coordinates = first
        functions: dict[str, Any] = dict(constraints=_gap(spot.geometry, a, b, len(first)))
        parameters = dict(spot.sizes) | dict(friction=friction, touching=0.0, sticking=0.0, direction=np.eye(d)[0])
        if friction:
            functions["velocity_constraints"] = Rubbing(
                _no_slip(spot.geometry, a, b, len(first)), _drag(spot.geometry, a, b, len(first))
            )
        self.element = Element(
            [*first, *(str(one.coordinates[0]) for one in self.idle)],
            parameters=parameters,
            constants=spot.constants,
            name=name,
            constraint_names=words,
            **functions,
        )


def _idle(name: str, mass: float) -> Body:
    """Return a slack coordinate, constrained to zero while the contact is open; its mass is that of a body."""
    return Body(
        name, Directors(1, 0), mass, np.zeros(1), np.zeros(1),
        kinetic=_energy, parameters=dict(mass=mass), frames=[[range(1)]],
    )  # fmt: skip


def _energy(v: Any, k: Any) -> Any:
    return 0.5 * k.mass * v[0] ** 2


@functools.cache
def _gap(geometry: Geometry, a: Placement, b: Placement, n: int) -> ModelFunction:
    def constraints(q: Any, k: Any) -> Any:
        return [k.touching * geometry.gap_at(a, b, q[:n], k) + (1 - k.touching) * q[n]]

    return constraints


@functools.cache
def _no_slip(geometry: Geometry, a: Placement, b: Placement, n: int) -> ModelFunction:
    def rates(q: Any, v: Any, k: Any) -> Any:
        along = slips(geometry, a, b, q[:n], v[:n], k)
        return [k.sticking * x + (1 - k.sticking) * rate for x, rate in zip(along, v[n + 1 :], strict=True)]

    return rates


@functools.cache
def _drag(geometry: Geometry, a: Placement, b: Placement, n: int) -> ModelFunction:
    def drag(q: Any, v: Any, k: Any) -> Any:
        _, normal, point = geometry.touch(a, b, q[:n], k)
        along = slip(a, b, q[:n], v[:n], normal, point)
        way = m.expression(m.array(slipping(along, normal, k.direction)))
        slope = ca.jtimes(m.expression(m.array(along)), m.expression(v), way, True)
        size = -k.touching * (1 - k.sticking) * k.friction
        return [size * x for x in m.symbols(ca.densify(slope))]

    return drag


def slips(geometry: Geometry, a: Placement, b: Placement, q: Any, v: Any, k: Any) -> list[Any]:
    """Return the tangential slip components: two in space, one in the plane; q must be symbols."""
    _, normal, point = geometry.touch(a, b, q, k)
    along = slip(a, b, q, v, normal, point)
    return [m.dot(axis, along) for axis in tangents(normal)]


def tangents(normal: Any) -> list[Any]:
    """Return orthonormal tangent vectors of a surface from its unit normal (Duff et al. 2017)."""
    if len(normal) == 2:
        return [m.array([-normal[1], normal[0]])]
    x, y, z = normal
    sign = m.where(z < 0, -1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return [m.array([1.0 + sign * x**2 * a, sign * b, -sign * x]), m.array([b, sign + y**2 * a, -y])]


def slipping(along: Any, normal: Any, direction: Any) -> Any:
    """Return the regularised slip direction; at zero or reversing slip it is the previous direction.

    A reversal of friction within a step would make the step unsolvable; an event stops the slip before.
    """
    ahead = direction - m.dot(direction, normal) * normal
    square = m.dot(ahead, ahead) + TINY
    forwards = m.dot(along, ahead) / square
    beside = along - forwards * ahead
    way = m.sqrt(forwards**2 + SLOW**2) * ahead + beside
    return way / m.sqrt(m.dot(way, way) + TINY)
