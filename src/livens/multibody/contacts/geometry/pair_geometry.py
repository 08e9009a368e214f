"""Pair geometry of two collision shapes: gap as a function of invariants, normal, contact point, slip velocity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens import math as m
from livens.multibody.joint_forces import angular_velocity
from livens.multibody.joint_types import split_pair
from livens.multibody.parametrisation import DirectorParametrisation, GroundParametrisation, Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Regularisation of square roots in m^2: keeps derivatives finite where the argument vanishes.
SQRT_EPS = 1e-60


class PairGeometry:
    """Gap function of two shapes on bodies a and b. Geometries are values: contacts with equal ones share their code.

    The gap is a function of invariants that are at most quadratic in the coordinates, such as the coordinates of a
    point of one body in the frame of the other. An energy of the gap then conserves all momenta in energy-momentum
    schemes.
    """

    def invariants(self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> Sequence[Any]:
        """Return the invariants, at most quadratic in q."""
        raise NotImplementedError

    def gap(self, w: Vector, k: ParameterNamespace) -> Any:
        """Return the gap between the surfaces, negative in penetration."""
        raise NotImplementedError

    def witness_point(
        self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace, normal: Vector
    ) -> Vector:
        """Return the witness point: the point on the surface of a deepest in b; `normal` points from b to a."""
        raise NotImplementedError

    # -- derived quantities -------------------------------------------------------------------------------------------
    def gap_at(self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> ScalarLike:
        return self.gap(m.array(list(self.invariants(a, b, q, k))), k)

    def gap_gradient(
        self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace
    ) -> tuple[ScalarLike, Vector]:
        """Return the gap and its gradient by the position of a; q must be symbols.

        The gradient is the unit normal where the gap is a distance.
        """
        d, gap = a.dimension, self.gap_at(a, b, q, k)
        n = len(a.names)
        moving_position, sign = (q[n : n + d], -1) if isinstance(a, GroundParametrisation) else (q[:d], 1)
        return gap, m.from_casadi(ca.densify(sign * ca.gradient(m.to_casadi(gap), m.to_casadi(moving_position))))

    def contact_frame(
        self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace
    ) -> tuple[ScalarLike, Vector, Vector]:
        """Return gap, unit normal (from b to a) and contact point, in the middle of the overlap.

        The normal is the normalised gradient of the gap by the position of a: q must be symbols.
        """
        gap, gradient = self.gap_gradient(a, b, q, k)
        normal = gradient / m.sqrt(m.dot(gradient, gradient) + SQRT_EPS)
        return gap, normal, self.witness_point(a, b, q, k, normal) - gap / 2 * normal

    def gap_rate(
        self, a: Parametrisation, b: Parametrisation, q: Vector, v: Vector, k: ParameterNamespace
    ) -> ScalarLike:
        """Return the gap rate; q must be symbols."""
        gap = m.to_casadi(self.gap_at(a, b, q, k))
        (rate,) = m.from_casadi(ca.jtimes(gap, m.to_casadi(q), m.to_casadi(v)))
        return rate


def velocity_at(parametrisation: Parametrisation, q: Vector, v: Vector, point: Vector) -> Vector:
    """Return the velocity of the material point of a body at a point of space."""
    d = parametrisation.dimension
    if isinstance(parametrisation, GroundParametrisation):
        return m.array([0.0] * d)
    if not parametrisation.has_orientation:
        return v[:d]
    assert isinstance(parametrisation, DirectorParametrisation)  # all bodies of a model
    return parametrisation.velocity(q, v, _material_coordinates(parametrisation.split(q)[1:], point - q[:d]))


def _material_coordinates(directors: Sequence[Vector], arm: Vector) -> Vector:
    """Return the material components of a vector along directors, which are not exactly orthonormal at midpoints.

    They are solved by cofactors, so that a force at the point has its moment about the centre for any rotation during a
    step.
    """
    if len(directors) == 2:
        e, f = directors
        return m.array([m.cross(arm, f), m.cross(e, arm)]) / m.cross(e, f)
    cofactors = [m.cross(directors[(i + 1) % 3], directors[(i + 2) % 3]) for i in range(3)]
    return m.array([m.dot(c, arm) for c in cofactors]) / m.dot(directors[0], cofactors[0])


def slip_velocity(a: Parametrisation, b: Parametrisation, q: Vector, v: Vector, normal: Vector, point: Vector) -> Any:
    """Return the slip velocity: tangential velocity of a relative to b at the contact point."""
    (qa, qb), (va, vb) = split_pair(a, q), split_pair(a, v)
    relative = velocity_at(a, qa, va, point) - velocity_at(b, qb, vb, point)
    return relative - m.dot(relative, normal) * normal


def relative_angular_velocity(a: Parametrisation, b: Parametrisation, q: Vector, v: Vector) -> Any:
    """Return the angular velocity of a relative to b; a scalar in the plane."""
    (qa, qb), (va, vb) = split_pair(a, q), split_pair(a, v)
    zero = 0.0 if a.dimension == 2 else m.array([0.0, 0.0, 0.0])
    omegas = [angular_velocity(p, x, y) if p.has_orientation else zero for p, x, y in ((a, qa, va), (b, qb, vb))]
    return omegas[0] - omegas[1]
