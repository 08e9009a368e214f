"""Penalty contacts of spheres at element level: with each other, with planes, with the walls of a box."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import array, not_negative
from livens.expressions.read import ModelFunction
from livens.models.penalty import Contact
from livens.multibody import looks
from livens.multibody.bodies import Point, between, pair
from livens.multibody.placement import Placement


# Each contact consists of two functions: invariants of the coordinates, and gaps as functions of these. Both are cached
# by parametrisation, so that contacts share their derivatives and compiled code.
@functools.cache
def _distance(a: Placement, b: Placement) -> ModelFunction:
    """Return the squared distance, or the connecting vector where the square is not quadratic."""
    linear = a.linear and b.linear

    def invariants(q: Any, k: Any) -> Any:
        x = between(a, b, q, k)
        return [m.dot(x, x)] if linear else x

    return invariants


def _gap_of_square(w: Any, k: Any) -> Any:
    return [m.sqrt(w[0]) - k.reach]


def _gap_of_vector(w: Any, k: Any) -> Any:
    return [m.norm(w) - k.reach]


def sphere_sphere(
    first: Any,
    radius: float,
    second: Any,
    other_radius: float,
    *,
    stiffness: float,
    law: str = "linear",
    damping: float = 0.0,
) -> Contact:
    """Return a penalty contact of two spheres about points of bodies or of space.

    Parameters
    ----------
    point_a : BodyElement, (BodyElement, X) or array_like
        Centre of the first sphere.
    radius : float
        Radius of the first sphere in m.
    point_b : BodyElement, (BodyElement, X) or array_like
        Centre of the second sphere.
    other_radius : float
        Radius of the second sphere in m.
    stiffness : float
        Stiffness in N/m ("linear") or N/m^1.5 ("hertz").
    law : {"linear", "hertz"}, default "linear"
        Normal force law.
    dissipation : float, default 0
        Hunt-Crossley dissipation in s/m.

    Returns
    -------
    Contact
        Contact element.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> a, b = particle("a", 1.0), particle("b", 1.0)
    >>> sphere_sphere((a, [0, 0, 0]), 0.1, (b, [0, 0, 0]), 0.1, stiffness=1e4, law="hertz").name
    'contact a-b'
    """
    a, b, levers, name = pair(first, second, "contact")
    reach = _radius(name, radius) + _radius(name, other_radius)
    linear = a.placement.linear and b.placement.linear
    return Contact(
        [*a.coordinates, *b.coordinates],
        _distance(a.placement, b.placement),
        _gap_of_square if linear else _gap_of_vector,
        stiffness=stiffness,
        law=law,
        damping=damping,
        name=name,
        parameters=levers | dict(reach=reach),
        look=looks.balls(a.placement, b.placement, float(radius), float(other_radius)),
    )


@functools.cache
def _height(a: Placement) -> ModelFunction:
    return lambda q, k: [m.dot(k.normal, a.point(q, k.X) - k.origin)]


def _gap_of_height(w: Any, k: Any) -> Any:
    return [w[0] - k.reach]


def sphere_plane(
    point: Any, radius: float, origin: Any, normal: Any, *, stiffness: float, law: str = "linear", damping: float = 0.0
) -> Contact:
    """Return a penalty contact of a sphere with a plane.

    Parameters
    ----------
    point : BodyElement or (BodyElement, X)
        Centre of the sphere.
    radius : float
        Radius in m.
    origin : array_like
        Point of the plane, in m.
    normal : array_like
        Normal of the plane; it points to the side of the sphere.
    stiffness : float
        Stiffness in N/m ("linear") or N/m^1.5 ("hertz").
    law : {"linear", "hertz"}, default "linear"
        Normal force law.
    dissipation : float, default 0
        Hunt-Crossley dissipation in s/m.

    Returns
    -------
    Contact
        Contact element.

    Raises
    ------
    InputError
        If the normal is zero, or the sphere does not belong to a body.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> ground = sphere_plane((particle("a", 1.0), [0, 0, 0]), 0.1, [0, 0, 0], [0, 0, 1], stiffness=1e4)
    """
    a = Point(point)
    name = f"contact {a.name}-plane"
    where, along = (_vector(name, word, x, a) for word, x in (("origin", origin), ("normal", normal)))
    length = np.linalg.norm(along)
    if length == 0:
        raise InputError(f"{name}: the normal must not be zero")
    return Contact(
        _moving(name, a),
        _height(a.placement),
        _gap_of_height,
        stiffness=stiffness,
        law=law,
        damping=damping,
        name=name,
        parameters=dict(X=a.lever, origin=where, normal=along / length, reach=_radius(name, radius)),
        look=looks.ball_on_plane(a.placement),
    )


@functools.cache
def _place(a: Placement) -> ModelFunction:
    return lambda q, k: a.point(q, k.X)


def _gaps_of_walls(w: Any, k: Any) -> Any:
    return [*(w - k.lower - k.reach), *(k.upper - k.reach - w)]


def sphere_in_box(
    point: Any, radius: float, lower: Any, upper: Any, *, stiffness: float, law: str = "linear", damping: float = 0.0
) -> Contact:
    """Return a penalty contact of a sphere with the walls of a box around it.

    Parameters
    ----------
    point : BodyElement or (BodyElement, X)
        Centre of the sphere.
    radius : float
        Radius in m.
    lower, upper : array_like
        Corners of the box, in m.
    stiffness : float
        Stiffness in N/m ("linear") or N/m^1.5 ("hertz").
    law : {"linear", "hertz"}, default "linear"
        Normal force law.
    dissipation : float, default 0
        Hunt-Crossley dissipation in s/m.

    Returns
    -------
    Contact
        Contact element.

    Raises
    ------
    InputError
        If the sphere does not fit into the box, or does not belong to a body.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> ball = particle("ball", 1.0, dimension=2)
    >>> walls = sphere_in_box((ball, [0, 0]), 0.1, [0, 0], [1, 1], stiffness=1e4)
    """
    a = Point(point)
    name = f"contact {a.name}-box"
    low, high = (_vector(name, word, x, a) for word, x in (("lower", lower), ("upper", upper)))
    reach = _radius(name, radius)
    if not np.all(high - low > 2 * reach):
        raise InputError(
            f"{name}: a sphere of radius {reach:g} does not fit between {low.tolist()} and {high.tolist()}"
        )
    return Contact(
        _moving(name, a),
        _place(a.placement),
        _gaps_of_walls,
        stiffness=stiffness,
        law=law,
        damping=damping,
        name=name,
        parameters=dict(X=a.lever, lower=low, upper=high, reach=reach),
        look=looks.ball_in_box(a.placement),
    )


def _moving(name: str, point: Point) -> Any:
    if not point.coordinates:
        raise InputError(f"{name}: the sphere must belong to a body")
    return point.coordinates


def _radius(name: str, radius: float) -> float:
    """Return a checked radius; a point is a sphere of radius zero."""
    return not_negative(f"{name}: the radius", radius)


def _vector(name: str, word: str, given: Any, point: Point) -> np.ndarray:
    return array(f"{name}: {word}", given, (point.placement.dimension,))
