"""Point-to-point force elements: springs, dampers and Newtonian gravitation between bodies."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens import rotations as rot
from livens.errors import InputError, explain_call_errors
from livens.expressions.parameters import shared
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element, InvariantForm, of_invariants
from livens.multibody import visuals
from livens.multibody.body_elements import BodyElement, attachment_pair, check_body, relative_position
from livens.multibody.parametrisation import Parametrisation, QuaternionParametrisation
from livens.types import ScalarLike, Vector
from livens.validation import check_nonnegative

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@functools.cache
def _squared_distance(a: Parametrisation, b: Parametrisation) -> ModelFunction:
    """Return the squared distance of two points as an invariant."""

    def invariants(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        x = relative_position(a, b, q, k)
        return [m.dot(x, x)]

    return invariants


# -- springs ----------------------------------------------------------------------------------------------------------
@functools.cache
def _spring_energy(a: Parametrisation, b: Parametrisation, has_free_length: bool) -> InvariantForm:
    """Return the spring energy as a function of the squared distance, if points are linear in q.

    Otherwise the squared distance would be of fourth degree, and the connecting vector is used. The vector is at most
    quadratic and invariant under translations, so that linear momentum is still conserved.
    """
    linear = a.is_linear and b.is_linear

    def invariants(q: Vector, k: ParameterNamespace) -> Vector | list[ScalarLike]:
        x = relative_position(a, b, q, k)
        return [m.dot(x, x)] if linear else x

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        square = w[0] if linear else m.dot(w, w)
        # without a free length there is no square root, whose derivative at zero distance is infinite
        return 0.5 * k.stiffness * ((m.sqrt(square) - k.length) ** 2 if has_free_length else square)

    return of_invariants(invariants, energy)


@explain_call_errors
def spring(point_a: object, point_b: object, stiffness: float, free_length: float = 0.0) -> Element:
    """Return a linear spring between two points, with energy ``stiffness/2 (distance - free_length)^2``.

    Parameters
    ----------
    point_a, point_b : BodyElement, (BodyElement, X) or array_like
        Points: a body (its centre of mass), a body with a point X in its frame in m, or a point fixed in space.
    stiffness : float
        Stiffness in N/m.
    free_length : float, default 0
        Free length in m.

    Returns
    -------
    Element
        Force element.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> spring((particle("a", 1.0), [0, 0, 0]), [0, 0, 0], stiffness=10.0, free_length=1.0).name
    'spring a-ground'
    """
    a, b, local_positions, name = attachment_pair(point_a, point_b, "spring")
    free_length = check_nonnegative(f"{name}: the length", free_length)
    return Element(
        [*a.coordinates, *b.coordinates],
        potential=_spring_energy(a.parametrisation, b.parametrisation, free_length > 0),
        visual=visuals.link_visual(a.parametrisation, b.parametrisation, "spring"),
        name=name,
        parameters=local_positions | dict(stiffness=stiffness) | (dict(length=free_length) if free_length > 0 else {}),
    )


def _relative_rotation(q: Vector) -> Vector:
    """Return the vector part of conj(q_a) o q_b: bilinear, and invariant under a common rotation."""
    return rot.product(rot.conjugate(q[:4]), q[4:])[1:]


_torsion = of_invariants(_relative_rotation, lambda w, k: 2 * k.stiffness * m.dot(w, w))


@explain_call_errors
def torsion_spring(body_a: BodyElement, body_b: BodyElement, stiffness: float) -> Element:
    """Return a torsion spring that aligns two quaternion bodies, with energy ``stiffness (1 - cos(angle))``.

    Parameters
    ----------
    body_a, body_b : BodyElement
        Bodies parametrised by quaternions.
    stiffness : float
        Stiffness in N m/rad.

    Returns
    -------
    Element
        Force element.

    Raises
    ------
    InputError
        If a body is not parametrised by a quaternion.

    Examples
    --------
    >>> from livens.bodies import Inertia, quaternion_body
    >>> a, b = (quaternion_body(name, Inertia(1.0, [1, 1, 1])) for name in "ab")
    >>> torsion_spring(a, b, 2.0).name
    'torsion spring a-b'
    """
    for body in (body_a, body_b):
        check_body("a torsion spring", body)
    if not (
        isinstance(body_a.parametrisation, QuaternionParametrisation)
        and isinstance(body_b.parametrisation, QuaternionParametrisation)
    ):
        raise InputError("a torsion spring needs two bodies with quaternions")
    coordinates = [*body_a.coordinates[-4:], *body_b.coordinates[-4:]]
    name = f"torsion spring {body_a.name}-{body_b.name}"
    return Element(coordinates, potential=_torsion, parameters=dict(stiffness=stiffness), name=name)


# -- gravity between bodies ------------------------------------------------------------------------------------------
#: Newtonian constant of gravitation in m^3/(kg s^2) (CODATA 2022).
GRAVITATION = 6.67430e-11


@functools.cache
def _newtonian_potential(a: Parametrisation, b: Parametrisation) -> InvariantForm:
    """Return the gravitational potential as a function of the squared distance of the centres, linear in q."""

    def energy(w: Vector, k: ParameterNamespace) -> Any:
        return -k.constant * k.mass * k.other / m.sqrt(w[0])

    return of_invariants(_squared_distance(a, b), energy)


@explain_call_errors
def gravitation(body_a: BodyElement, body_b: BodyElement, constant: float = GRAVITATION) -> Element:
    """Return Newtonian gravitation between two bodies, with energy ``-constant m1 m2/distance`` of their centres.

    The masses are the parameters of the bodies: they follow changes of these for a run.

    Parameters
    ----------
    body_a, body_b : BodyElement
        Bodies with a mass parameter.
    constant : float, default 6.6743e-11
        Gravitational constant in m^3/(kg s^2).

    Returns
    -------
    Element
        Force element.

    Raises
    ------
    InputError
        If a body only rotates about a fixed point, and so has no mass parameter.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> gravitation(particle("sun", 1.0), particle("earth", 3e-6), constant=39.5).name
    'gravitation sun-earth'
    """
    for body in (body_a, body_b):
        if "mass" not in check_body("gravitation", body).parameters.values:
            raise InputError(f"gravitation: '{body.name}' rotates about a fixed point and has no mass parameter")
    a, b, local_positions, name = attachment_pair((body_a, body_a.centre), (body_b, body_b.centre), "gravitation")
    masses = dict(mass=shared(body_a, "mass"), other=shared(body_b, "mass"))
    return Element(
        [*a.coordinates, *b.coordinates],
        potential=_newtonian_potential(a.parametrisation, b.parametrisation),
        name=name,
        parameters=local_positions | masses | dict(constant=check_nonnegative(f"{name}: the constant", constant)),
    )


# -- dampers ----------------------------------------------------------------------------------------------------------
@functools.cache
def _damper_dissipation(a: Parametrisation, b: Parametrisation, axial: bool) -> ModelFunction | InvariantForm:
    if axial and a.is_linear and b.is_linear:
        # the rate of the distance is the rate of its square divided by twice the distance
        invariants = _squared_distance(a, b)
        return of_invariants(invariants, lambda w, u, k: 0.5 * k.viscosity * u[0] ** 2 / (4 * w[0]))

    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
        n = len(a.names)
        rate = a.velocity(q[:n], v[:n], k.X) - b.velocity(q[n:], v[n:], k.Y)
        if not axial:
            return 0.5 * k.viscosity * m.dot(rate, rate)
        x = relative_position(a, b, q, k)
        return 0.5 * k.viscosity * m.dot(x, rate) ** 2 / m.dot(x, x)

    return dissipation


@explain_call_errors
def damper(point_a: object, point_b: object, damping: float, axial: bool = True) -> Element:
    """Return a linear damper between two points, with Rayleigh function ``damping/2 (distance rate)^2``.

    Parameters
    ----------
    point_a, point_b : BodyElement, (BodyElement, X) or array_like
        Points: a body (its centre of mass), a body with a point X in its frame in m, or a point fixed in space.
    damping : float
        Damping coefficient in N s/m.
    axial : bool, default True
        Whether the force acts along the line through both points. Otherwise it opposes the relative velocity in all
        directions, and angular momentum is dissipated too.

    Returns
    -------
    Element
        Force element.

    Examples
    --------
    >>> from livens.bodies import particle
    >>> damper((particle("a", 1.0), [0, 0, 0]), [1, 0, 0], damping=0.5).name
    'damper a-ground'
    """
    a, b, local_positions, name = attachment_pair(point_a, point_b, "damper")
    return Element(
        [*a.coordinates, *b.coordinates],
        dissipation=_damper_dissipation(a.parametrisation, b.parametrisation, axial),
        visual=visuals.link_visual(a.parametrisation, b.parametrisation, "damper"),
        name=name,
        parameters=local_positions | dict(viscosity=check_nonnegative(f"{name}: the damping", damping)),
    )
