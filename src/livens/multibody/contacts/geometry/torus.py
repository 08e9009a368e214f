"""Signed distance of a torus, or of the inside of its tube (groove of a raceway)."""

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
class TorusDistance(AxisymmetricDistance):
    """Signed distance of a torus: a circle of radius `ring` about the axis with a tube of radius `tube`.

    With the height z along the axis and the distance rho from it, the distance from the circle is
    ``s = |(z, rho - ring)|``. A groove is the inside of the tube, ``tube - s``. Both raceways of a ball bearing are
    grooves, since the ball lies within the cross-section of either.
    """

    is_hollow: bool = False

    def distance(self, w: Vector, k: ParameterNamespace) -> Any:
        rho = m.sqrt(m.maximum(w[1] - w[0] ** 2, 0.0) + SQRT_EPS)
        s = m.sqrt(w[0] ** 2 + (rho - k.ring) ** 2 + SQRT_EPS)
        return k.tube - s if self.is_hollow else s - k.tube
