"""Constraints between points of bodies: spherical joint and rigid link."""

from __future__ import annotations

import functools
from typing import Any

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import positive
from livens.expressions.read import ModelFunction
from livens.models.element import Element
from livens.multibody import looks
from livens.multibody.bodies import between, pair
from livens.multibody.placement import Placement


@functools.cache
def _coincide(a: Placement, b: Placement) -> ModelFunction:
    return lambda q, k: between(a, b, q, k)


def spherical_joint(first: Any, second: Any) -> Element:
    """Return a spherical joint: two points coincide (S004 eq. 125); a pin in the plane.

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
    a, b, levers, name = pair(first, second, "joint")
    return Element(
        [*a.coordinates, *b.coordinates],
        constraints=_coincide(a.placement, b.placement),
        parameters=levers,
        name=name,
        constraint_names=tuple("xyz"[: a.placement.dimension]),
        look=looks.joint(a.placement, b.placement),
    )


@functools.cache
def _keep_distance(a: Placement, b: Placement) -> ModelFunction:
    def constraints(q: Any, k: Any) -> Any:
        x = between(a, b, q, k)
        return [0.5 * (m.dot(x, x) - k.length**2)]

    return constraints


def rigid_link(first: Any, second: Any, length: float) -> Element:
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
    a, b, levers, name = pair(first, second, "link")
    if not (a.placement.linear and b.placement.linear):
        raise InputError(f"{name}: the points of a rigid link must depend linearly on the coordinates")
    return Element(
        [*a.coordinates, *b.coordinates],
        constraints=_keep_distance(a.placement, b.placement),
        name=name,
        parameters=levers | dict(length=positive(f"{name}: the length", length)),
        constraint_names=["length"],
        look=looks.between(a.placement, b.placement, "rod"),
    )
