"""Laws that are a power of the depth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from livens.multibody.contacts.laws.base import Law


class Power(Law):
    """``stiffness depth^exponent``: how long a blow takes is known for every exponent."""

    exponent: float

    def energy(self, depth: Any, k: Any) -> Any:
        return k.stiffness / (self.exponent + 1) * depth ** (self.exponent + 1)

    def force(self, depth: Any, k: Any) -> Any:
        return k.stiffness * depth**self.exponent

    def frequency(self, values: Mapping[str, Any], mass: float, speed: float) -> float:
        return math.pi / self.duration(float(values["stiffness"]), mass, speed)

    def duration(self, stiffness: float, mass: float, speed: float) -> float:
        """How long a mass that comes with a speed touches: ``2 int d(depth)/sqrt(v^2 - 2 V/m)``.

        With n = exponent + 1 and the greatest depth D this is ``2 D/v int_0^1 dx/sqrt(1 - x^n)``.
        """
        n = self.exponent + 1
        deepest = (n * mass * speed**2 / (2 * stiffness)) ** (1 / n)
        return 2 * deepest / speed * math.sqrt(math.pi) * math.gamma(1 + 1 / n) / math.gamma(0.5 + 1 / n)
