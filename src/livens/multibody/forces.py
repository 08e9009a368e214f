"""Springs and dampers between points of bodies."""

from __future__ import annotations

import functools
from typing import Any

from livens import math as m
from livens import rotations as rot
from livens.errors import InputError
from livens.expressions.numbers import not_negative
from livens.expressions.read import ModelFunction
from livens.models.element import Element, Through, through
from livens.multibody import looks
from livens.multibody.bodies import Body, a_body, between, pair
from livens.multibody.placement import Placement, Quaternion


# -- springs ----------------------------------------------------------------------------------------------------------
@functools.cache
def _elastic(a: Placement, b: Placement, slack: bool) -> Through:
    """Through the square of the distance where points are linear in q.

    Else that would be of fourth degree, and the connecting vector is taken: it is at most quadratic and does not
    change when everything is shifted, so linear momentum is conserved still.
    """
    linear = a.linear and b.linear

    def invariants(q: Any, k: Any) -> Any:
        x = between(a, b, q, k)
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
    a, b, levers, name = pair(first, second, "spring")
    length = not_negative(f"{name}: the length", length)
    return Element(
        [*a.coordinates, *b.coordinates],
        potential=_elastic(a.placement, b.placement, length > 0),
        look=looks.between(a.placement, b.placement, "spring"),
        name=name,
        parameters=levers | dict(stiffness=stiffness) | (dict(length=length) if length > 0 else {}),
    )


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
    for body in (first, second):
        a_body("a torsion spring", body)
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
        x = between(a, b, q, k)
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
    a, b, levers, name = pair(first, second, "damper")
    return Element(
        [*a.coordinates, *b.coordinates],
        dissipation=_viscous(a.placement, b.placement, axial),
        look=looks.between(a.placement, b.placement, "damper"),
        name=name,
        parameters=levers | dict(viscosity=not_negative(f"{name}: the viscosity", viscosity)),
    )
