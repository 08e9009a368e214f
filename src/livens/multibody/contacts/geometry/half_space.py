"""Signed distance of a half-space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.multibody.contacts.geometry.signed_distance import SignedDistance
from livens.types import Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@dataclass(frozen=True)
class HalfSpaceDistance(SignedDistance):
    """Signed distance of a half-space; its last axis is the outward normal."""

    def invariants(self, arm: Vector, axes: Sequence[Any], k: ParameterNamespace) -> Sequence[Any]:
        return [m.dot(axes[-1], arm)]

    def distance(self, w: Vector, k: ParameterNamespace) -> Any:
        return w[0]
