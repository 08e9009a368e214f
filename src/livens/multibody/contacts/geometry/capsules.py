"""Two capsules: the distance of two segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from livens import math as m
from livens.multibody.contacts.geometry.base import TINY, Geometry
from livens.multibody.joint_table import split
from livens.multibody.placement import Placement

#: Segments are parallel where the square of the sine of their angle is below this.
_PARALLEL = 1e-12


@dataclass(frozen=True)
class CapsulePair(Geometry):
    """Segments about X of a along E, and about Y of b along F, of half lengths `half` and `other`.

    The distance depends on ``r.r``, ``r.e``, ``r.f`` and ``e.f`` with the vector r between the centres: all of them are
    products. Parallel capsules touch where the overlap begins, not along a line.
    """

    def invariants(self, a: Placement, b: Placement, q: Any, k: Any) -> Sequence[Any]:
        qa, qb = split(a, q)
        r, e, f = a.point(qa, k.X) - b.point(qb, k.Y), a.vector(qa, k.E), b.vector(qb, k.F)
        return [m.dot(r, r), m.dot(r, e), m.dot(r, f), m.dot(e, f)]

    def nearest(self, w: Any, k: Any) -> tuple[Any, Any]:
        """How far along both segments the nearest points are, from their centres."""
        re, rf, ef = w[1], w[2], w[3]
        # the minimum of |r + s e - t f|^2 over s, cut to its range, then t, then s again
        s = m.clip((ef * rf - re) / m.maximum(1 - ef**2, _PARALLEL), -k.half, k.half)
        t = m.clip(rf + s * ef, -k.other, k.other)
        s = m.clip(t * ef - re, -k.half, k.half)
        return s, t

    def gap(self, w: Any, k: Any) -> Any:
        s, t = self.nearest(w, k)
        square = w[0] + s**2 + t**2 + 2 * s * w[1] - 2 * t * w[2] - 2 * s * t * w[3]
        return m.sqrt(m.maximum(square, 0.0) + TINY) - k.reach - k.radius

    def foot(self, a: Placement, b: Placement, q: Any, k: Any, normal: Any) -> Any:
        qa, _ = split(a, q)
        s, _ = self.nearest(m.array(list(self.invariants(a, b, q, k))), k)
        return a.point(qa, k.X) + s * a.vector(qa, k.E) - k.reach * normal
