"""Gap function of an ellipsoid and a plane, and signed distance of an ellipsoid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.multibody.contacts.geometry.pair_geometry import SQRT_EPS, PairGeometry
from livens.multibody.contacts.geometry.signed_distance import LocalDistance
from livens.multibody.joint_types import split_pair
from livens.multibody.parametrisation import Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Number of Newton iterations for the closest point of an ellipsoid.
_NEWTON_ITERATIONS = 12


@dataclass(frozen=True)
class EllipsoidOnPlane(PairGeometry):
    """Gap of an ellipsoid about X of a, with axes A and semi-axes `half`, and a plane of b.

    Its support function is ``sqrt(sum (half_i n.e_i)^2)`` for a plane with the normal n. The surface is at the distance
    `reach` from the ellipsoid: zero, or the radius of a tube whose centre line is the rim of a flat ellipsoid.
    """

    def invariants(self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> Sequence[Any]:
        qa, qb = split_pair(a, q)
        n = b.vector(qb, k.B[:, a.dimension - 1])
        direction_cosines = [m.dot(n, a.vector(qa, k.A[:, i])) for i in range(a.dimension)]
        return [m.dot(n, a.point(qa, k.X) - b.point(qb, k.Y)), *direction_cosines]

    def gap(self, w: Vector, k: ParameterNamespace) -> ScalarLike:
        return w[0] - _support(w, k) - k.reach

    def witness_point(
        self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace, normal: Vector
    ) -> Vector:
        qa, _ = split_pair(a, q)
        w = self.invariants(a, b, q, k)
        arms = [k.half[i] ** 2 * w[1 + i] * a.vector(qa, k.A[:, i]) for i in range(a.dimension)]
        return a.point(qa, k.X) - sum(arms[1:], arms[0]) / _support(w, k) - k.reach * normal


@dataclass(frozen=True)
class EllipsoidDistance(LocalDistance):
    """Signed distance of an ellipsoid with the semi-axes `half`.

    The closest point is ``half_i^2 x_i/(t + half_i^2)``, with the root t of ``sum (half_i x_i/(t + half_i^2))^2 = 1``.
    This function is convex, and Newton's method approaches the root from the left for every point outside. Inside, the
    distance is exact for points closer to the surface than its radius of curvature.
    """

    def distance(self, w: Vector, k: ParameterNamespace) -> Any:
        squares = [half**2 for half in k.half]
        t = k.half[0] * m.abs(w[0]) - squares[0]
        for x, half, square in zip(w[1:], k.half[1:], squares[1:], strict=True):
            t = m.maximum(t, half * m.abs(x) - square)
        for _ in range(_NEWTON_ITERATIONS):
            terms = [(half * x) ** 2 / (t + square) ** 2 for x, half, square in zip(w, k.half, squares, strict=True)]
            derivatives = [2 * term / (t + square) for term, square in zip(terms, squares, strict=True)]
            t = t + (sum(terms) - 1) / (sum(derivatives) + SQRT_EPS)
        return t * m.sqrt(sum((x / (t + square)) ** 2 for x, square in zip(w, squares, strict=True)) + SQRT_EPS)


def _support(w: Sequence[ScalarLike] | Vector, k: ParameterNamespace) -> ScalarLike:
    return m.sqrt(sum((half * cosine) ** 2 for half, cosine in zip(k.half, w[1:], strict=True)) + SQRT_EPS)
