"""Pair geometry of two collision shapes: gap as a function of invariants, normal, contact point, slip velocity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from livens import math as m
from livens.multibody.actuators import angular_velocity
from livens.multibody.joint_table import split
from livens.multibody.placement import Directors, Ground, Placement

#: Regularisation of square roots in m^2: keeps derivatives finite where the argument vanishes.
TINY = 1e-60


class Geometry:
    """Gap function of two shapes on bodies a and b. Geometries are values: contacts with equal ones share their code.

    The gap is a function of invariants that are at most quadratic in the coordinates, such as the coordinates of a
    point of one body in the frame of the other. An energy of the gap then conserves all momenta in energy-momentum
    schemes.
    """

    def invariants(self, a: Placement, b: Placement, q: Any, k: Any) -> Sequence[Any]:
        """Return the invariants, at most quadratic in q."""
        raise NotImplementedError

    def gap(self, w: Any, k: Any) -> Any:
        """Return the gap between the surfaces, negative in penetration."""
        raise NotImplementedError

    def foot(self, a: Placement, b: Placement, q: Any, k: Any, normal: Any) -> Any:
        """Return the witness point: the point on the surface of a deepest in b; `normal` points from b to a."""
        raise NotImplementedError

    # -- derived quantities -------------------------------------------------------------------------------------------
    def gap_at(self, a: Placement, b: Placement, q: Any, k: Any) -> Any:
        return self.gap(m.array(list(self.invariants(a, b, q, k))), k)

    def touch(self, a: Placement, b: Placement, q: Any, k: Any) -> tuple[Any, Any, Any]:
        """Return gap, unit normal (from b to a) and contact point, in the middle of the overlap.

        The normal is the normalised gradient of the gap by the position of a: q must be symbols.
        """
        d, gap = a.dimension, self.gap_at(a, b, q, k)
        n = len(a.names)
        moved, sign = (q[n : n + d], -1) if isinstance(a, Ground) else (q[:d], 1)
        slope = m.symbols(ca.densify(sign * ca.gradient(m.expression(gap), m.expression(moved))))
        normal = slope / m.sqrt(m.dot(slope, slope) + TINY)
        return gap, normal, self.foot(a, b, q, k, normal) - gap / 2 * normal

    def rate(self, a: Placement, b: Placement, q: Any, v: Any, k: Any) -> Any:
        """Return the gap rate; q must be symbols."""
        gap = m.expression(self.gap_at(a, b, q, k))
        (found,) = m.symbols(ca.jtimes(gap, m.expression(q), m.expression(v)))
        return found


def velocity_at(placement: Placement, q: Any, v: Any, point: Any) -> Any:
    """Return the velocity of the material point of a body at a point of space."""
    d = placement.dimension
    if isinstance(placement, Ground):
        return m.array([0.0] * d)
    if not placement.turns:
        return v[:d]
    assert isinstance(placement, Directors)  # all bodies of a model
    return placement.velocity(q, v, _material(placement.parts(q)[1:], point - q[:d]))


def _material(directors: Any, arm: Any) -> Any:
    """Return the material components of a vector along directors, which are not exactly orthonormal at midpoints.

    They are solved by cofactors, so that a force at the point has its moment about the centre for any rotation during a
    step.
    """
    if len(directors) == 2:
        e, f = directors
        return m.array([m.cross(arm, f), m.cross(e, arm)]) / m.cross(e, f)
    cofactors = [m.cross(directors[(i + 1) % 3], directors[(i + 2) % 3]) for i in range(3)]
    return m.array([m.dot(c, arm) for c in cofactors]) / m.dot(directors[0], cofactors[0])


def slip(a: Placement, b: Placement, q: Any, v: Any, normal: Any, point: Any) -> Any:
    """Return the slip velocity: tangential velocity of a relative to b at the contact point."""
    (qa, qb), (va, vb) = split(a, q), split(a, v)
    relative = velocity_at(a, qa, va, point) - velocity_at(b, qb, vb, point)
    return relative - m.dot(relative, normal) * normal


def turning(a: Placement, b: Placement, q: Any, v: Any) -> Any:
    """Return the angular velocity of a relative to b; a scalar in the plane."""
    (qa, qb), (va, vb) = split(a, q), split(a, v)
    still = 0.0 if a.dimension == 2 else m.array([0.0, 0.0, 0.0])
    found = [angular_velocity(p, x, y) if p.turns else still for p, x, y in ((a, qa, va), (b, qb, vb))]
    return found[0] - found[1]
