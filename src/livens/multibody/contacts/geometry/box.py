"""Signed distance of a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.multibody.contacts.geometry.pair_geometry import SQRT_EPS
from livens.multibody.contacts.geometry.signed_distance import LocalDistance
from livens.types import Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@dataclass(frozen=True)
class BoxDistance(LocalDistance):
    """Signed distance of a box with half edge lengths `half` along its axes; a rectangle in the plane."""

    def distance(self, w: Vector, k: ParameterNamespace) -> Any:
        excess = [m.abs(x) - half for x, half in zip(w, k.half, strict=True)]
        outside = m.sqrt(sum(m.maximum(x, 0.0) ** 2 for x in excess) + SQRT_EPS)
        deepest = excess[0]
        for x in excess[1:]:
            deepest = m.maximum(deepest, x)
        return outside + m.minimum(deepest, 0.0)
