"""Signed distance of a sphere, or of the inside of a hollow sphere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from livens import math as m
from livens.multibody.contacts.geometry.base import TINY
from livens.multibody.contacts.geometry.surface import Surface


@dataclass(frozen=True)
class SphereSurface(Surface):
    """Signed distance ``|x| - radius`` of a sphere; with opposite sign inside a hollow sphere."""

    hollow: bool = False
    turned = False

    def invariants(self, arm: Any, axes: Sequence[Any], k: Any) -> Sequence[Any]:
        return [m.dot(arm, arm)]

    def distance(self, w: Any, k: Any) -> Any:
        away = m.sqrt(w[0] + TINY)
        return k.radius - away if self.hollow else away - k.radius
