"""A ball, or the inside of a hollow one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from livens import math as m
from livens.multibody.contacts.geometry.base import TINY
from livens.multibody.contacts.geometry.surface import Surface


@dataclass(frozen=True)
class SphereSurface(Surface):
    """``|x| - radius``, or the other way round within a pocket."""

    hollow: bool = False
    turned = False

    def invariants(self, arm: Any, axes: Sequence[Any], k: Any) -> Sequence[Any]:
        return [m.dot(arm, arm)]

    def distance(self, w: Any, k: Any) -> Any:
        away = m.sqrt(w[0] + TINY)
        return k.radius - away if self.hollow else away - k.radius
