"""Signed distance of a capsule: a segment with a radius."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.multibody.contacts.geometry.pair_geometry import SQRT_EPS
from livens.multibody.contacts.geometry.signed_distance import AxisymmetricDistance
from livens.types import Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@dataclass(frozen=True)
class CapsuleDistance(AxisymmetricDistance):
    """Signed distance of a capsule: segment of half length `half` along the last axis, and `radius`."""

    def distance(self, w: Vector, k: ParameterNamespace) -> Any:
        nearest = m.clip(w[0], -k.half, k.half)
        # |x - s e|^2 = |x|^2 - 2 s (e.x) + s^2
        return m.sqrt(m.maximum(w[1] - 2 * nearest * w[0] + nearest**2, 0.0) + SQRT_EPS) - k.radius
