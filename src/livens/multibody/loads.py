"""Loads on bodies: gravity, applied forces and torques."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.errors import InputError, explain_call_errors
from livens.expressions.parameters import TiedParameter, shared
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element
from livens.multibody.body_elements import AttachmentPoint, BodyElement, check_body
from livens.multibody.inputs import Law, TimeLaw, check_law, named_law, symbols_of, time_law
from livens.multibody.joint_forces import angular_velocity
from livens.multibody.parametrisation import Parametrisation
from livens.types import ArrayLike
from livens.validation import check_array, check_choice

if TYPE_CHECKING:
    from livens.expressions.parameters import TiedParameter


@functools.cache
def gravity_potential(parametrisation: Parametrisation) -> ModelFunction:
    """Return the gravitational potential: at most quadratic in q, so its discrete gradient keeps the symmetry about
    the vertical (Kinon and Betsch 2024, eq. 115)."""
    return lambda q, k: -k.mass * m.dot(k.gravity, parametrisation.point(q, k.X))


@explain_call_errors
def gravity(body: BodyElement, g: ArrayLike | None = None) -> Element:
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
    d = check_body("gravity", body).parametrisation.dimension
    acceleration = check_array(f"gravity on '{body.name}'", [0.0] * (d - 1) + [-9.81] if g is None else g, (d,))
    centre = AttachmentPoint((body, body.centre))
    return Element(
        centre.coordinates,
        potential=gravity_potential(centre.parametrisation),
        name=f"weight of {body.name}",
        parameters=dict(mass=_mass(body), gravity=acceleration, X=centre.local_position),
    )


def _mass(body: BodyElement) -> TiedParameter | float:
    """Return the mass parameter of the body, or its value for a body that only rotates, which has no such parameter."""
    return shared(body, "mass") if "mass" in body.parameters.values else body.mass


@functools.cache
def _force(parametrisation: Parametrisation, f: Law, body_axes: bool) -> ModelFunction:
    def forces(q: Any, t: Any, k: Any) -> Any:
        components = m.array(f(t, k))
        return parametrisation.generalised_force(
            q, k.X, parametrisation.rotation_matrix(q) @ components if body_axes else components
        )

    return forces


@explain_call_errors
def force(body: BodyElement, f: object, at: ArrayLike | None = None, frame: str = "space") -> Element:
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
    check_choice("frame", frame, ("space", "body"))
    check_body("a force", body)
    law = as_time_law("a force", f, body.parametrisation.dimension)
    body_axes = frame == "body"
    if body_axes and not body.parametrisation.has_orientation:
        raise InputError(f"'{body.name}' is a particle: it has no body frame")
    point = AttachmentPoint((body, body.centre if at is None else at), with_orientation=body_axes)
    return Element(
        point.coordinates,
        forces=_force(point.parametrisation, law.function, body_axes),
        name=f"force on {body.name}",
        parameters=dict(X=point.local_position) | law.parameters,
    )


@functools.cache
def _torque(parametrisation: Parametrisation, tau: Law) -> ModelFunction:
    return lambda q, t, k: parametrisation.generalised_torque(q, m.array(tau(t, k)))


@explain_call_errors
def torque(body: BodyElement, tau: object) -> Element:
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
    >>> from livens.bodies import Inertia, fixed_point_body
    >>> motor = torque(fixed_point_body("top", Inertia(1.0, [1, 1, 1])), lambda t: [0, 0, 2 * t])
    """
    if not check_body("a torque", body).parametrisation.has_orientation:
        raise InputError(f"'{body.name}' is a particle: no torque acts on it")
    law = as_time_law("a torque", tau, 1 if body.parametrisation.dimension == 2 else 3)
    forces = _torque(body.parametrisation, law.function)
    return Element(body.coordinates, forces=forces, name=f"torque on {body.name}", parameters=law.parameters)


#: Arguments of a load that depends on the state of its body.
STATE_ARGUMENTS = (("t",), ("position",), ("velocity",), ("rotation",), ("omega",))


def depends_on_state(law: Any) -> bool:
    """Return True if a load is a function with the name of a state among its arguments."""
    try:
        names = set(inspect.signature(law).parameters)
    except (TypeError, ValueError):
        return False
    return bool(names & {name for (name,) in STATE_ARGUMENTS[1:]})


def check_state_law(context: str, law: Law, dimension: int, size: int) -> Law:
    """Return a load as a law of time and of the state of its body, after a call with symbols."""
    turn = 1 if dimension == 2 else 3
    shapes = ((), (dimension,), (dimension,), (dimension, dimension), (turn,) if turn == 3 else ())
    check_law(context, law, STATE_ARGUMENTS, (size,), symbols_of({}), shapes)
    return named_law(law, STATE_ARGUMENTS)


@functools.cache
def _state_load(parametrisation: Parametrisation, law: Law, is_force: bool, body_axes: bool) -> ModelFunction:
    def forces(q: Any, v: Any, t: Any, k: Any) -> Any:
        has_orientation = parametrisation.has_orientation
        R = parametrisation.rotation_matrix(q) if has_orientation else np.eye(parametrisation.dimension)
        omega = angular_velocity(parametrisation, q, v) if has_orientation else m.zeros(parametrisation.dimension)
        state = m.array(parametrisation.point(q, k.X)), m.array(parametrisation.velocity(q, v, k.X)), R, omega
        components = m.array(law(t, *state))
        if not is_force:
            return parametrisation.generalised_torque(q, components)
        return parametrisation.generalised_force(q, k.X, R @ components if body_axes else components)

    return forces


def state_load(
    body: BodyElement, law: Law, is_force: bool, at: ArrayLike | None = None, frame: str = "space"
) -> Element:
    """Return a force at a point, or a torque, that is a law of time and of the state of its body."""
    check_choice("frame", frame, ("space", "body"))
    quantity, parametrisation = "force" if is_force else "torque", body.parametrisation
    if not parametrisation.has_orientation and (frame == "body" or not is_force):
        raise InputError(f"'{body.name}' is a particle: it has no body frame, and no torque acts on it")
    point = AttachmentPoint((body, body.centre if at is None else at), with_orientation=parametrisation.has_orientation)
    size = 1 if parametrisation.dimension == 2 and not is_force else parametrisation.dimension
    checked = check_state_law(f"a {quantity} on '{body.name}'", law, parametrisation.dimension, size)
    return Element(
        point.coordinates,
        forces=_state_load(point.parametrisation, checked, is_force, frame == "body"),
        name=f"{quantity} on {body.name}",
        parameters=dict(X=point.local_position),
    )


def as_time_law(context: str, value: object, size: int) -> TimeLaw:
    """Return a load of `size` components, a function of time or constant, as a law."""
    return value if isinstance(value, TimeLaw) else time_law(context, value, "command", (size,))
