"""Loads on bodies: gravity, applied forces and torques."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import array
from livens.expressions.parameters import same_as
from livens.expressions.read import ModelFunction
from livens.models.element import Element
from livens.multibody.bodies import Body, Point
from livens.multibody.placement import Placement

TimeFunction = Callable[[Any], Any]


@functools.cache
def weight(placement: Placement) -> ModelFunction:
    """At most quadratic in q, so its discrete gradient keeps the symmetry about the vertical (S004 eq. 115)."""
    return lambda q, k: -k.mass * m.dot(k.gravity, placement.point(q, k.X))


def gravity(body: Body, g: Any = None) -> Element:
    """The weight of a body; by default 9.81 against the last axis.

    >>> from livens.bodies import particle
    >>> gravity(particle("a", 2.0)).name
    'weight of a'
    """
    d = body.placement.dimension
    downwards = array(f"gravity on '{body.name}'", [0.0] * (d - 1) + [-9.81] if g is None else g, (d,))
    centre = Point((body, body.centre))
    return Element(
        centre.coordinates,
        potential=weight(centre.placement),
        name=f"weight of {body.name}",
        parameters=dict(mass=_mass(body), gravity=downwards, X=centre.lever),
    )


def _mass(body: Body) -> Any:
    """The body's parameter; the energy of a body that only turns has none, so there the weight has one of its own."""
    return same_as(body, "mass") if "mass" in body.parameters.values else body.mass


@functools.cache
def _force(placement: Placement, f: TimeFunction, turns: bool) -> ModelFunction:
    def forces(q: Any, t: Any, k: Any) -> Any:
        given = m.array(f(t))
        return placement.force(q, k.X, placement.frame(q) @ given if turns else given)

    return forces


def force(body: Body, f: TimeFunction, at: Any = None, frame: str = "space") -> Element:
    """A force f(t) at a point of the body (by default its centre of mass), with components in "space" or "body".

    >>> from livens.bodies import particle
    >>> push = force(particle("a", 2.0), lambda t: [m.sin(t), 0, 0])
    """
    if frame not in ("space", "body"):
        raise InputError(f"frame must be 'space' or 'body', got {frame!r}")
    turns = frame == "body"
    if turns and not body.placement.turns:
        raise InputError(f"'{body.name}' is a particle: it has no frame of its own")
    point = Point((body, body.centre if at is None else at), whole=turns)
    return Element(
        point.coordinates,
        forces=_force(point.placement, f, turns),
        name=f"force on {body.name}",
        parameters=dict(X=point.lever),
    )


@functools.cache
def _torque(placement: Placement, tau: TimeFunction) -> ModelFunction:
    return lambda q, t: placement.torque(q, m.array(tau(t)))


def torque(body: Body, tau: TimeFunction) -> Element:
    """A torque tau(t) on the body, with components in space (one number, in the plane).

    >>> from livens.bodies import Inertia, rotation_body
    >>> motor = torque(rotation_body("top", Inertia(1.0, [1, 1, 1])), lambda t: [0, 0, 2 * t])
    """
    if not body.placement.turns:
        raise InputError(f"'{body.name}' is a particle: no torque acts on it")
    return Element(body.coordinates, forces=_torque(body.placement, tau), name=f"torque on {body.name}")
