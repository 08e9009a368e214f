"""Signed distance of a half-space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from livens import math as m
from livens.multibody.contacts.geometry.signed_distance import SignedDistance


@dataclass(frozen=True)
class HalfSpaceDistance(SignedDistance):
    """Signed distance of a half-space; its last axis is the outward normal."""

    def invariants(self, arm: Any, axes: Sequence[Any], k: Any) -> Sequence[Any]:
        return [m.dot(axes[-1], arm)]

    def distance(self, w: Any, k: Any) -> Any:
        return w[0]
