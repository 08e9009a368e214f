"""What holds bodies together: joints and rigid links, springs and dampers between points."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from livens import math as m
from livens import rotations as rot
from livens.errors import InputError
from livens.models.element import Element, ModelFunction, Through, through
from livens.multibody.bodies import Body, Point
from livens.multibody.placement import Placement, Quaternion


def _pair(first: Any, second: Any, what: str) -> tuple[Point, Point, dict[str, Any], str]:
    """Two points, their levers as parameters, and a name for what is between them."""
    a, b = Point(first), Point(second)
    if a.placement.dimension != b.placement.dimension:
        raise InputError(f"{what} {a.name}-{b.name}: one point is in space, the other in the plane")
    if not (a.coordinates or b.coordinates):
        raise InputError(f"{what}: one of the two points must belong to a body")
    return a, b, dict(X=a.lever, Y=b.lever), f"{what} {a.name}-{b.name}"


def _between(a: Placement, b: Placement, q: Any, k: Any) -> Any:
    """The vector from the second point to the first."""
    n = len(a.names)
    return a.point(q[:n], k.X) - b.point(q[n:], k.Y)


# -- constraints ------------------------------------------------------------------------------------------------------
@functools.cache
def _coincide(a: Placement, b: Placement) -> ModelFunction:
    return lambda q, k: _between(a, b, q, k)


def spherical_joint(first: Any, second: Any) -> Element:
    """Two points coincide (S004 eq. 125); in the plane this is a pin.

    >>> from livens.bodies import particle
    >>> spherical_joint((particle("a", 1.0), [0, 0, 0]), [1, 2, 3]).name
    'joint a-ground'
    """
    a, b, levers, name = _pair(first, second, "joint")
    return Element(
        [*a.coordinates, *b.coordinates], constraints=_coincide(a.placement, b.placement), parameters=levers,
        name=name, constraint_names=tuple("xyz"[: a.placement.dimension]),
    )  # fmt: skip


@functools.cache
def _keep_distance(a: Placement, b: Placement) -> ModelFunction:
    def constraints(q: Any, k: Any) -> Any:
        x = _between(a, b, q, k)
        return [0.5 * (m.dot(x, x) - k.length**2)]

    return constraints


def rigid_link(first: Any, second: Any, length: float) -> Element:
    """A massless rod between two points that depend linearly on the coordinates.

    Those of a quaternion body do so only in its centre of mass; elsewhere, give it a particle's coordinates by a
    `spherical_joint` first.

    >>> from livens.bodies import particle
    >>> rod = rigid_link((particle("a", 1.0), [0, 0, 0]), [0, 0, 0], 2.0)
    """
    a, b, levers, name = _pair(first, second, "link")
    if not (a.placement.linear and b.placement.linear):
        raise InputError(f"{name}: the points of a rigid link must depend linearly on the coordinates")
    if not length > 0:
        raise InputError(f"{name}: the length must be greater than 0, got {length!r}")
    return Element(
        [*a.coordinates, *b.coordinates], constraints=_keep_distance(a.placement, b.placement), name=name,
        parameters=levers | dict(length=length), constraint_names=["length"],
    )  # fmt: skip


# -- springs ----------------------------------------------------------------------------------------------------------
@functools.cache
def _elastic(a: Placement, b: Placement, slack: bool) -> Through:
    """Through the square of the distance where points are linear in q.

    Else that would be of fourth degree, and the connecting vector is taken: it is at most quadratic and does not
    change when everything is shifted, so linear momentum is conserved still.
    """
    linear = a.linear and b.linear

    def invariants(q: Any, k: Any) -> Any:
        x = _between(a, b, q, k)
        return [m.dot(x, x)] if linear else x

    def energy(w: Any, k: Any) -> Any:
        square = w[0] if linear else m.dot(w, w)
        # without a natural length there is no root, whose slope at zero distance would be infinite
        return 0.5 * k.stiffness * ((m.sqrt(square) - k.length) ** 2 if slack else square)

    return through(invariants, energy)


def spring(first: Any, second: Any, stiffness: float, length: float = 0.0) -> Element:
    """A spring between two points, with energy ``stiffness/2 (distance - length)^2``.

    >>> from livens.bodies import particle
    >>> spring((particle("a", 1.0), [0, 0, 0]), [0, 0, 0], stiffness=10.0, length=1.0).name
    'spring a-ground'
    """
    a, b, levers, name = _pair(first, second, "spring")
    if length < 0:
        raise InputError(f"{name}: the length must not be negative, got {length!r}")
    return Element(
        [*a.coordinates, *b.coordinates], potential=_elastic(a.placement, b.placement, length > 0), name=name,
        parameters=levers | dict(stiffness=stiffness) | (dict(length=length) if length > 0 else {}),
    )  # fmt: skip


def _relative_rotation(q: Any) -> Any:
    """The vector part of conj(q_a) o q_b: bilinear, and the same whatever rotation is applied to both."""
    return rot.product(rot.conjugate(q[:4]), q[4:])[1:]


_torsion = through(_relative_rotation, lambda w, k: 2 * k.stiffness * m.dot(w, w))


def torsion_spring(first: Body, second: Body, stiffness: float) -> Element:
    """A spring that turns two quaternion bodies to the same orientation: energy ``stiffness (1 - cos(angle))``.

    >>> from livens.bodies import Inertia, quaternion_body
    >>> a, b = (quaternion_body(name, Inertia(1.0, [1, 1, 1])) for name in "ab")
    >>> torsion_spring(a, b, 2.0).name
    'torsion spring a-b'
    """
    if not (isinstance(first.placement, Quaternion) and isinstance(second.placement, Quaternion)):
        raise InputError("a torsion spring is between two bodies with quaternions")
    both = [*first.coordinates[-4:], *second.coordinates[-4:]]
    name = f"torsion spring {first.name}-{second.name}"
    return Element(both, potential=_torsion, parameters=dict(stiffness=stiffness), name=name)


# -- dampers ----------------------------------------------------------------------------------------------------------
@functools.cache
def _viscous(a: Placement, b: Placement, axial: bool) -> ModelFunction:
    def dissipation(q: Any, v: Any, k: Any) -> Any:
        n = len(a.names)
        rate = a.velocity(q[:n], v[:n], k.X) - b.velocity(q[n:], v[n:], k.Y)
        if not axial:
            return 0.5 * k.viscosity * m.dot(rate, rate)
        x = _between(a, b, q, k)
        return 0.5 * k.viscosity * m.dot(x, rate) ** 2 / m.dot(x, x)

    return dissipation


def damper(first: Any, second: Any, viscosity: float, axial: bool = True) -> Element:
    """A damper between two points: Rayleigh's function is ``viscosity/2 (rate of distance)^2``.

    Its force is along the line through both points. If it is not `axial`, it works against the relative velocity in
    every direction; angular momentum is then lost as well.

    >>> from livens.bodies import particle
    >>> damper((particle("a", 1.0), [0, 0, 0]), [1, 0, 0], viscosity=0.5).name
    'damper a-ground'
    """
    a, b, levers, name = _pair(first, second, "damper")
    if not (np.isfinite(viscosity) and viscosity >= 0):
        raise InputError(f"{name}: the viscosity must not be negative, got {viscosity!r}")
    return Element(
        [*a.coordinates, *b.coordinates], dissipation=_viscous(a.placement, b.placement, axial), name=name,
        parameters=levers | dict(viscosity=viscosity),
    )  # fmt: skip
