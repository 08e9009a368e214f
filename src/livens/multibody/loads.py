"""Loads on bodies: gravity, applied forces and torques."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import array, one_of
from livens.expressions.parameters import same_as
from livens.expressions.read import ModelFunction
from livens.models.element import Element
from livens.multibody.bodies import Body, Point, a_body
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
    d = a_body("gravity", body).placement.dimension
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
    one_of("frame", frame, ("space", "body"))
    a_body("a force", body)
    f = _of_time("a force", f)
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
    if not a_body("a torque", body).placement.turns:
        raise InputError(f"'{body.name}' is a particle: no torque acts on it")
    tau = _of_time("a torque", tau)
    return Element(body.coordinates, forces=_torque(body.placement, tau), name=f"torque on {body.name}")


def _of_time(what: str, given: Any) -> TimeFunction:
    """A function of time; numbers are constant."""
    if callable(given):
        return given
    values = tuple(np.atleast_1d(array(what, given)).ravel().tolist())
    return _constant(values)


@functools.cache
def _constant(values: tuple[float, ...]) -> TimeFunction:
    """One function for equal numbers: elements with the same functions are read once."""
    return lambda t: list(values)
