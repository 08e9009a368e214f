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
    """Return the gravitational potential: at most quadratic in q, so its discrete gradient keeps the symmetry about
    the vertical (S004 eq. 115)."""
    return lambda q, k: -k.mass * m.dot(k.gravity, placement.point(q, k.X))


def gravity(body: Body, g: Any = None) -> Element:
    """Return the weight of a body.

    Parameters
    ----------
    body : BodyElement
        Body.
    g : array_like of shape (d,), optional
        Gravitational acceleration in m/s^2; by default 9.81 against the last axis.

    Returns
    -------
    Element
        Force element.

    Examples
    --------
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
    """Return the mass parameter of the body, or its value for a body that only rotates, which has no such parameter."""
    return same_as(body, "mass") if "mass" in body.parameters.values else body.mass


@functools.cache
def _force(placement: Placement, f: TimeFunction, turns: bool) -> ModelFunction:
    def forces(q: Any, t: Any, k: Any) -> Any:
        given = m.array(f(t))
        return placement.force(q, k.X, placement.frame(q) @ given if turns else given)

    return forces


def force(body: Body, f: TimeFunction, at: Any = None, frame: str = "space") -> Element:
    """Return an applied force at a point of a body.

    Parameters
    ----------
    body : BodyElement
        Loaded body.
    f : callable or array_like
        Force in N: a function of time, or constant.
    at : array_like, optional
        Point in the body frame, in m; by default the centre of mass.
    frame : {"space", "body"}, default "space"
        Axes of the components of the force.

    Returns
    -------
    Element
        Force element.

    Raises
    ------
    InputError
        If `frame` is "body" and the body is a particle.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> push = force(particle("a", 2.0), lambda t: [m.sin(t), 0, 0])
    """
    one_of("frame", frame, ("space", "body"))
    a_body("a force", body)
    f = _of_time("a force", f)
    turns = frame == "body"
    if turns and not body.placement.turns:
        raise InputError(f"'{body.name}' is a particle: it has no body frame")
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
    """Return an applied torque on a body.

    Parameters
    ----------
    body : BodyElement
        Loaded body.
    tau : callable or array_like
        Torque in N m with components in space (one number in the plane): a function of time, or constant.

    Returns
    -------
    Element
        Force element.

    Raises
    ------
    InputError
        If the body is a particle.

    Examples
    --------
    >>> from livens.bodies import Inertia, rotation_body
    >>> motor = torque(rotation_body("top", Inertia(1.0, [1, 1, 1])), lambda t: [0, 0, 2 * t])
    """
    if not a_body("a torque", body).placement.turns:
        raise InputError(f"'{body.name}' is a particle: no torque acts on it")
    tau = _of_time("a torque", tau)
    return Element(body.coordinates, forces=_torque(body.placement, tau), name=f"torque on {body.name}")


def _of_time(what: str, given: Any) -> TimeFunction:
    """Return a function of time; numbers become constant functions."""
    if callable(given):
        return given
    values = tuple(np.atleast_1d(array(what, given)).ravel().tolist())
    return _constant(values)


@functools.cache
def _constant(values: tuple[float, ...]) -> TimeFunction:
    """Return one constant function for equal values, so that elements share it."""
    return lambda t: list(values)
