"""Penalty contacts of spheres at element level: with each other, with planes, with the walls of a box."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.errors import InputError, explain_call_errors
from livens.expressions.tracing import ModelFunction
from livens.multibody import visuals
from livens.multibody.body_elements import AttachmentPoint, attachment_pair, relative_position
from livens.multibody.contacts.pair_contact import NormalForceElement, gap_contact
from livens.multibody.parametrisation import Parametrisation
from livens.types import ArrayLike, ScalarLike, Vector, VectorLike
from livens.validation import check_array, check_nonnegative

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


# Each contact consists of two functions: invariants of the coordinates, and gaps as functions of these. Both are cached
# by parametrisation, so that contacts share their derivatives and compiled code.
@functools.cache
def _distance(a: Parametrisation, b: Parametrisation) -> ModelFunction:
    """Return the squared distance, or the connecting vector where the square is not quadratic."""
    linear = a.is_linear and b.is_linear

    def invariants(q: Vector, k: ParameterNamespace) -> Any:
        x = relative_position(a, b, q, k)
        return [m.dot(x, x)] if linear else x

    return invariants


def _gap_of_square(w: Sequence[ScalarLike] | Vector, k: ParameterNamespace) -> Any:
    return [m.sqrt(w[0]) - k.reach]


def _gap_of_vector(w: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    return [m.norm(w) - k.reach]


@explain_call_errors
def sphere_sphere(
    point_a: VectorLike,
    radius: float,
    point_b: VectorLike,
    other_radius: float,
    *,
    stiffness: float,
    law: str = "linear",
    dissipation: float = 0.0,
) -> NormalForceElement:
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
    a, b, local_positions, name = attachment_pair(point_a, point_b, "contact")
    radius_sum = _radius(name, radius) + _radius(name, other_radius)
    linear = a.parametrisation.is_linear and b.parametrisation.is_linear
    return gap_contact(
        [*a.coordinates, *b.coordinates],
        _distance(a.parametrisation, b.parametrisation),
        _gap_of_square if linear else _gap_of_vector,
        stiffness=stiffness,
        law=law,
        dissipation=dissipation,
        name=name,
        parameters=local_positions | {"reach": radius_sum},
        visual=visuals.sphere_pair_visual(a.parametrisation, b.parametrisation, float(radius), float(other_radius)),
    )


@functools.cache
def _height(a: Parametrisation) -> ModelFunction:
    return lambda q, k: [m.dot(k.normal, a.point(q, k.X) - k.origin)]


def _gap_of_height(w: Sequence[ScalarLike] | Vector, k: ParameterNamespace) -> list[ScalarLike]:
    return [w[0] - k.reach]


@explain_call_errors
def sphere_plane(
    point: VectorLike,
    radius: float,
    origin: ArrayLike,
    normal: ArrayLike,
    *,
    stiffness: float,
    law: str = "linear",
    dissipation: float = 0.0,
) -> NormalForceElement:
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
    a = AttachmentPoint(point)
    name = f"contact {a.name}-plane"
    plane_origin, plane_normal = (
        _vector(name, argument, x, a) for argument, x in (("origin", origin), ("normal", normal))
    )
    length = np.linalg.norm(plane_normal)
    if length == 0:
        raise InputError(f"{name}: the normal must not be zero")
    return gap_contact(
        _body_coordinates(name, a),
        _height(a.parametrisation),
        _gap_of_height,
        stiffness=stiffness,
        law=law,
        dissipation=dissipation,
        name=name,
        parameters=dict(
            X=a.local_position, origin=plane_origin, normal=plane_normal / length, reach=_radius(name, radius)
        ),
        visual=visuals.sphere_on_plane_visual(a.parametrisation),
    )


@functools.cache
def _position(a: Parametrisation) -> ModelFunction:
    return lambda q, k: a.point(q, k.X)


def _gaps_of_walls(w: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    return [*(w - k.lower - k.reach), *(k.upper - k.reach - w)]


@explain_call_errors
def sphere_in_box(
    point: VectorLike,
    radius: float,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    stiffness: float,
    law: str = "linear",
    dissipation: float = 0.0,
) -> NormalForceElement:
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
    a = AttachmentPoint(point)
    name = f"contact {a.name}-box"
    low, high = (_vector(name, argument, x, a) for argument, x in (("lower", lower), ("upper", upper)))
    checked_radius = _radius(name, radius)
    if not np.all(high - low > 2 * checked_radius):
        raise InputError(
            f"{name}: a sphere of radius {checked_radius:g} does not fit between {low.tolist()} and {high.tolist()}"
        )
    return gap_contact(
        _body_coordinates(name, a),
        _position(a.parametrisation),
        _gaps_of_walls,
        stiffness=stiffness,
        law=law,
        dissipation=dissipation,
        name=name,
        parameters=dict(X=a.local_position, lower=low, upper=high, reach=checked_radius),
        visual=visuals.sphere_in_box_visual(a.parametrisation),
    )


def _body_coordinates(name: str, point: AttachmentPoint) -> Any:
    if not point.coordinates:
        raise InputError(f"{name}: the sphere must belong to a body")
    return point.coordinates


def _radius(name: str, radius: float) -> float:
    """Return a checked radius; a point is a sphere of radius zero."""
    return check_nonnegative(f"{name}: the radius", radius)


def _vector(name: str, argument: str, value: object, point: AttachmentPoint) -> np.ndarray:
    return check_array(f"{name}: {argument}", value, (point.parametrisation.dimension,))
