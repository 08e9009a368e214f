"""Signed distance of a sphere, or of the inside of a hollow sphere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.multibody.contacts.geometry.pair_geometry import SQRT_EPS
from livens.multibody.contacts.geometry.signed_distance import SignedDistance
from livens.types import Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@dataclass(frozen=True)
class SphereDistance(SignedDistance):
    """Signed distance ``|x| - radius`` of a sphere; with opposite sign inside a hollow sphere."""

    is_hollow: bool = False
    uses_orientation = False

    def invariants(self, arm: Vector, axes: Sequence[Any], k: ParameterNamespace) -> Sequence[Any]:
        return [m.dot(arm, arm)]

    def distance(self, w: Vector, k: ParameterNamespace) -> Any:
        radial_distance = m.sqrt(w[0] + SQRT_EPS)
        return k.radius - radial_distance if self.is_hollow else radial_distance - k.radius
