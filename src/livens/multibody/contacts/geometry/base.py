"""What a contact needs to know of two shapes: a gap through invariants, and where they touch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from livens import math as m
from livens.multibody.actuators import angular_velocity
from livens.multibody.joint_table import split
from livens.multibody.placement import Directors, Ground, Placement

#: Lengths are kept this far from zero where a root is taken of a square that may vanish.
TINY = 1e-60


class Geometry:
    """Two shapes on bodies a and b. Geometries are values: contacts with equal ones share their code.

    The gap is a function of invariants that are at most quadratic in the coordinates, such as the coordinates of a
    point of one body in the frame of the other: an energy of the gap then keeps all momenta in energy-momentum schemes.
    """

    def invariants(self, a: Placement, b: Placement, q: Any, k: Any) -> Sequence[Any]:
        """At most quadratic in q."""
        raise NotImplementedError

    def gap(self, w: Any, k: Any) -> Any:
        """The distance of the surfaces, negative where they overlap."""
        raise NotImplementedError

    def foot(self, a: Placement, b: Placement, q: Any, k: Any, normal: Any) -> Any:
        """The point of the surface of a that is deepest in b, given the normal there, from b to a."""
        raise NotImplementedError

    # -- what follows from these --------------------------------------------------------------------------------------
    def gap_at(self, a: Placement, b: Placement, q: Any, k: Any) -> Any:
        return self.gap(m.array(list(self.invariants(a, b, q, k))), k)

    def touch(self, a: Placement, b: Placement, q: Any, k: Any) -> tuple[Any, Any, Any]:
        """Gap, normal (from b to a, of unit length) and the point in the middle of the overlap.

        Moving a along the normal opens the gap, so the normal is the slope of the gap by the position of a: q must be
        symbols.
        """
        d, gap = a.dimension, self.gap_at(a, b, q, k)
        n = len(a.names)
        moved, sign = (q[n : n + d], -1) if isinstance(a, Ground) else (q[:d], 1)
        slope = m.symbols(ca.densify(sign * ca.gradient(m.expression(gap), m.expression(moved))))
        normal = slope / m.sqrt(m.dot(slope, slope) + TINY)
        return gap, normal, self.foot(a, b, q, k, normal) - gap / 2 * normal

    def rate(self, a: Placement, b: Placement, q: Any, v: Any, k: Any) -> Any:
        """How fast the gap opens; q must be symbols."""
        gap = m.expression(self.gap_at(a, b, q, k))
        (found,) = m.symbols(ca.jtimes(gap, m.expression(q), m.expression(v)))
        return found


def velocity_at(placement: Placement, q: Any, v: Any, point: Any) -> Any:
    """How fast the body moves at a point of space: as the point of the body that is there."""
    d = placement.dimension
    if isinstance(placement, Ground):
        return m.array([0.0] * d)
    if not placement.turns:
        return v[:d]
    assert isinstance(placement, Directors)  # as all bodies of a drawing are
    return placement.velocity(q, v, _material(placement.parts(q)[1:], point - q[:d]))


def _material(directors: Any, arm: Any) -> Any:
    """The components of a vector along directors, which in the middle of a step are not quite orthonormal.

    By cofactors: a force at the point then has its moment about the centre, however far a step turns the body.
    """
    if len(directors) == 2:
        e, f = directors
        return m.array([m.cross(arm, f), m.cross(e, arm)]) / m.cross(e, f)
    cofactors = [m.cross(directors[(i + 1) % 3], directors[(i + 2) % 3]) for i in range(3)]
    return m.array([m.dot(c, arm) for c in cofactors]) / m.dot(directors[0], cofactors[0])


def slip(a: Placement, b: Placement, q: Any, v: Any, normal: Any, point: Any) -> Any:
    """The velocity of a against b where they touch, along the surfaces."""
    (qa, qb), (va, vb) = split(a, q), split(a, v)
    relative = velocity_at(a, qa, va, point) - velocity_at(b, qb, vb, point)
    return relative - m.dot(relative, normal) * normal


def turning(a: Placement, b: Placement, q: Any, v: Any) -> Any:
    """The angular velocity of a against b; in the plane, one number."""
    (qa, qb), (va, vb) = split(a, q), split(a, v)
    still = 0.0 if a.dimension == 2 else m.array([0.0, 0.0, 0.0])
    found = [angular_velocity(p, x, y) if p.turns else still for p, x, y in ((a, qa, va), (b, qb, vb))]
    return found[0] - found[1]
