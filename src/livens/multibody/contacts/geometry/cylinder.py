"""Signed distance of a cylinder, or of the inside of a hollow cylinder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from livens import math as m
from livens.multibody.contacts.geometry.base import TINY
from livens.multibody.contacts.geometry.surface import Axial


@dataclass(frozen=True)
class CylinderSurface(Axial):
    """Signed distance of a cylinder of `radius` and half length `half` about the last axis; hollow: without ends."""

    hollow: bool = False

    def distance(self, w: Any, k: Any) -> Any:
        rho = m.sqrt(m.maximum(w[1] - w[0] ** 2, 0.0) + TINY)
        if self.hollow:
            return k.radius - rho
        aside, above = rho - k.radius, m.abs(w[0]) - k.half
        outside = m.sqrt(m.maximum(aside, 0.0) ** 2 + m.maximum(above, 0.0) ** 2 + TINY)
        return outside + m.minimum(m.maximum(aside, above), 0.0)
