"""Gap function of a capsule on a convex surface: the deepest point of its segment, and the end that is less deep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.multibody.contacts.geometry.pair_geometry import PairGeometry
from livens.multibody.contacts.geometry.signed_distance import LocalDistance
from livens.multibody.joint_types import split_pair
from livens.multibody.parametrisation import Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Golden-section steps; the deepest point is known to ``0.618^steps`` of the length, the gap to the square of this.
_STEPS = 38
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class SegmentOnSurface(PairGeometry):
    """Gap of a segment about X of a along E, of half length `half` and radius `reach`, and a convex surface of b.

    The signed distance of a convex body is convex along the segment. A capsule has two contact points: the deepest one,
    and the end that is less deep. Together they are both ends if the deepest point is an end, not counted twice.
    The segment has to stay outside of the surface, where the distance is smooth.
    """

    surface: LocalDistance
    deepest: bool

    def invariants(self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> Sequence[Any]:
        qa, qb = split_pair(a, q)
        axes = [b.vector(qb, k.B[:, i]) for i in range(b.dimension)]
        arm, e = a.point(qa, k.X) - b.point(qb, k.Y), a.vector(qa, k.E)
        return [*(m.dot(axis, arm) for axis in axes), *(m.dot(axis, e) for axis in axes)]

    def _distance(self, w: Vector, s: ScalarLike, k: ParameterNamespace) -> Any:
        d = len(w) // 2
        return self.surface.distance(m.array([w[i] + s * w[d + i] for i in range(d)]), k)

    def _position(self, w: Vector, k: ParameterNamespace) -> ScalarLike:
        """Return the position on the segment, from its centre."""
        if not self.deepest:
            return m.where(self._distance(w, -k.length, k) > self._distance(w, k.length, k), -k.length, k.length)
        low, high = -k.length, k.length
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        f_left, f_right = self._distance(w, left, k), self._distance(w, right, k)
        for _ in range(_STEPS):
            is_left = f_left < f_right
            low, high = m.where(is_left, low, left), m.where(is_left, right, high)
            probe = m.where(is_left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
            value = self._distance(w, probe, k)
            left, right = m.where(is_left, probe, right), m.where(is_left, left, probe)
            f_left, f_right = m.where(is_left, value, f_right), m.where(is_left, f_left, value)
        best = (low + high) / 2
        # an end, if it is the deepest point, exactly
        f_best = self._distance(w, best, k)
        for end in (-k.length, k.length):
            f_end = self._distance(w, end, k)
            best, f_best = m.where(f_end <= f_best, end, best), m.minimum(f_end, f_best)
        return best

    def gap(self, w: Vector, k: ParameterNamespace) -> ScalarLike:
        return self._distance(w, self._position(w, k), k) - k.reach

    def witness_point(
        self, a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace, normal: Vector
    ) -> Vector:
        qa, _ = split_pair(a, q)
        s = self._position(m.array(list(self.invariants(a, b, q, k))), k)
        return a.point(qa, k.X) + s * a.vector(qa, k.E) - k.reach * normal
