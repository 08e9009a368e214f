"""Joints and rigid links: constraints between points of bodies."""

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
    """Two points coincide (S004 eq. 125); in the plane this is a pin.

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
    """A massless rod between two points that depend linearly on the coordinates.

    Those of a quaternion body do so only in its centre of mass; elsewhere, give it a particle's coordinates by a
    `spherical_joint` first.

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
