"""Gap function of two capsules: distance of two segments."""

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


#: Squared sine of the angle of two segments below which they count as parallel.
_PARALLEL = 1e-12


@dataclass(frozen=True)
class CapsulePair(PairGeometry):
    """Gap of two capsules: segments about X of a along E and about Y of b along F, half lengths `half` and `other`.

    The distance depends on ``r.r``, ``r.e``, ``r.f`` and ``e.f`` with the vector r between the centres, all of them
    products. Parallel capsules have one contact point at the beginning of the overlap, not a contact line.
    """

    def invariants(self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> Sequence[Any]:
        qa, qb = split_pair(a, q)
        r, e, f = a.point(qa, k.X) - b.point(qb, k.Y), a.vector(qa, k.E), b.vector(qb, k.F)
        return [m.dot(r, r), m.dot(r, e), m.dot(r, f), m.dot(e, f)]

    def closest_parameters(self, w: Vector, k: ParameterNamespace) -> tuple[ScalarLike, ScalarLike]:
        """Return the parameters of the closest points on both segments, from their centres."""
        re, rf, ef = w[1], w[2], w[3]
        # minimum of |r + s e - t f|^2 over s, clipped to its range, then over t, then over s again
        s = m.clip((ef * rf - re) / m.maximum(1 - ef**2, _PARALLEL), -k.half, k.half)
        t = m.clip(rf + s * ef, -k.other, k.other)
        s = m.clip(t * ef - re, -k.half, k.half)
        return s, t

    def gap(self, w: Vector, k: ParameterNamespace) -> ScalarLike:
        s, t = self.closest_parameters(w, k)
        square = w[0] + s**2 + t**2 + 2 * s * w[1] - 2 * t * w[2] - 2 * s * t * w[3]
        return m.sqrt(m.maximum(square, 0.0) + SQRT_EPS) - k.reach - k.radius

    def witness_point(
        self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace, normal: Vector
    ) -> Vector:
        qa, _ = split_pair(a, q)
        s, _ = self.closest_parameters(m.array(list(self.invariants(a, b, q, k))), k)
        return a.point(qa, k.X) + s * a.vector(qa, k.E) - k.reach * normal
