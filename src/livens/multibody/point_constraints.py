"""Constraints between points of bodies: spherical joint and rigid link."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.errors import InputError, explain_call_errors
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element
from livens.multibody import visuals
from livens.multibody.body_elements import attachment_pair, relative_position
from livens.multibody.parametrisation import Parametrisation
from livens.types import Vector
from livens.validation import check_positive

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@functools.cache
def _coincidence_constraint(a: Parametrisation, b: Parametrisation) -> ModelFunction:
    return lambda q, k: relative_position(a, b, q, k)


@explain_call_errors
def spherical_joint(point_a: object, point_b: object) -> Element:
    """Return a spherical joint: two points coincide (Kinon and Betsch 2024, eq. 125); a pin in the plane.

    Parameters
    ----------
    point_a, point_b : BodyElement, (BodyElement, X) or array_like
        Points: a body (its centre of mass), a body with a point X in its frame in m, or a point fixed in space.

    Returns
    -------
    Element
        Constraint element.

    Raises
    ------
    InputError
        If no point belongs to a body, or if one is in space and the other in the plane.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> spherical_joint((particle("a", 1.0), [0, 0, 0]), [1, 2, 3]).name
    'joint a-ground'
    """
    a, b, local_positions, name = attachment_pair(point_a, point_b, "joint")
    return Element(
        [*a.coordinates, *b.coordinates],
        constraints=_coincidence_constraint(a.parametrisation, b.parametrisation),
        parameters=local_positions,
        name=name,
        constraint_names=tuple("xyz"[: a.parametrisation.dimension]),
        visual=visuals.point_joint_visual(a.parametrisation, b.parametrisation),
    )


@functools.cache
def _distance_constraint(a: Parametrisation, b: Parametrisation) -> ModelFunction:
    def constraints(q: Vector, k: ParameterNamespace) -> Any:
        x = relative_position(a, b, q, k)
        return [0.5 * (m.dot(x, x) - k.length**2)]

    return constraints


@explain_call_errors
def rigid_link(point_a: object, point_b: object, length: float) -> Element:
    """Return a massless rigid link: a constant distance of two points that are linear in the coordinates.

    The only such point of a quaternion body is its centre of mass; attach a particle to other points with a
    `spherical_joint`.

    Parameters
    ----------
    point_a, point_b : BodyElement, (BodyElement, X) or array_like
        Points: a body (its centre of mass), a body with a point X in its frame in m, or a point fixed in space.
    length : float
        Distance in m.

    Returns
    -------
    Element
        Constraint element.

    Raises
    ------
    InputError
        If a point is not linear in the coordinates.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> rod = rigid_link((particle("a", 1.0), [0, 0, 0]), [0, 0, 0], 2.0)
    """
    a, b, local_positions, name = attachment_pair(point_a, point_b, "link")
    if not (a.parametrisation.is_linear and b.parametrisation.is_linear):
        raise InputError(f"{name}: the points of a rigid link must depend linearly on the coordinates")
    return Element(
        [*a.coordinates, *b.coordinates],
        constraints=_distance_constraint(a.parametrisation, b.parametrisation),
        name=name,
        parameters=local_positions | dict(length=check_positive(f"{name}: the length", length)),
        constraint_names=["length"],
        visual=visuals.link_visual(a.parametrisation, b.parametrisation, "rod"),
    )
