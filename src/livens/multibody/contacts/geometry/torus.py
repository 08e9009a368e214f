"""A ring with a round section: the groove that balls run in, or the ring itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from livens import math as m
from livens.multibody.contacts.geometry.base import TINY
from livens.multibody.contacts.geometry.surface import Axial


@dataclass(frozen=True)
class TorusSurface(Axial):
    """A circle of radius `ring` about the axis, and around it a tube of radius `tube`.

    With the height z along the axis and the distance rho from it, the distance from the circle is
    ``s = |(z, rho - ring)|``. A groove is the inside of the tube, ``tube - s``: both races of a ball bearing are one,
    as the ball lies within the section of either.
    """

    hollow: bool = False

    def distance(self, w: Any, k: Any) -> Any:
        rho = m.sqrt(m.maximum(w[1] - w[0] ** 2, 0.0) + TINY)
        s = m.sqrt(w[0] ** 2 + (rho - k.ring) ** 2 + TINY)
        return k.tube - s if self.hollow else s - k.tube
