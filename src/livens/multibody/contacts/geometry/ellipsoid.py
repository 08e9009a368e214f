"""Gap function of an ellipsoid and a plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.multibody.contacts.geometry.pair_geometry import SQRT_EPS, PairGeometry
from livens.multibody.joint_types import split_pair
from livens.multibody.parametrisation import Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@dataclass(frozen=True)
class EllipsoidOnPlane(PairGeometry):
    """Gap of an ellipsoid about X of a, with axes A and semi-axes `half`, and a plane of b.

    Its support function is ``sqrt(sum (half_i n.e_i)^2)`` for a plane with the normal n.
    """

    def invariants(self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> Sequence[Any]:
        qa, qb = split_pair(a, q)
        n = b.vector(qb, k.B[:, a.dimension - 1])
        direction_cosines = [m.dot(n, a.vector(qa, k.A[:, i])) for i in range(a.dimension)]
        return [m.dot(n, a.point(qa, k.X) - b.point(qb, k.Y)), *direction_cosines]

    def gap(self, w: Vector, k: ParameterNamespace) -> ScalarLike:
        return w[0] - _support(w, k)

    def witness_point(
        self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace, normal: Vector
    ) -> Vector:
        qa, _ = split_pair(a, q)
        w = self.invariants(a, b, q, k)
        arms = [k.half[i] ** 2 * w[1 + i] * a.vector(qa, k.A[:, i]) for i in range(a.dimension)]
        return a.point(qa, k.X) - sum(arms[1:], arms[0]) / _support(w, k)


def _support(w: Sequence[ScalarLike] | Vector, k: ParameterNamespace) -> ScalarLike:
    return m.sqrt(sum((half * cosine) ** 2 for half, cosine in zip(k.half, w[1:], strict=True)) + SQRT_EPS)
