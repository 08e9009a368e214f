"""Signed distance of a cylinder, or of the inside of a hollow cylinder."""

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
class CylinderDistance(AxisymmetricDistance):
    """Signed distance of a cylinder of `radius` and half length `half` about the last axis; hollow: without ends."""

    is_hollow: bool = False

    def distance(self, w: Vector, k: ParameterNamespace) -> Any:
        rho = m.sqrt(m.maximum(w[1] - w[0] ** 2, 0.0) + SQRT_EPS)
        if self.is_hollow:
            return k.radius - rho
        radial_excess, axial_excess = rho - k.radius, m.abs(w[0]) - k.half
        outside = m.sqrt(m.maximum(radial_excess, 0.0) ** 2 + m.maximum(axial_excess, 0.0) ** 2 + SQRT_EPS)
        return outside + m.minimum(m.maximum(radial_excess, axial_excess), 0.0)
