"""Power laws of the penetration depth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from livens.multibody.contacts.normal_laws.base import NormalLaw
from livens.types import FloatArray, ScalarLike

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def power_energy(stiffness: ScalarLike, depth: ScalarLike, exponent: float) -> Any:
    """Return the energy ``stiffness depth^(exponent + 1)/(exponent + 1)`` of a power law."""
    return stiffness / (exponent + 1) * depth ** (exponent + 1)


def power_force(stiffness: ScalarLike, depth: ScalarLike, exponent: float) -> Any:
    """Return the normal force ``stiffness depth^exponent`` of a power law."""
    return stiffness * depth**exponent


class PowerLaw(NormalLaw):
    """Power law: the normal force is ``stiffness depth^exponent``."""

    exponent: float

    def energy(self, depth: ScalarLike, k: ParameterNamespace) -> Any:
        """Return the energy ``stiffness depth^(exponent + 1)/(exponent + 1)``."""
        return power_energy(k.stiffness, depth, self.exponent)

    def force(self, depth: Any, k: ParameterNamespace) -> Any:
        """Return the normal force ``stiffness depth^exponent``."""
        return power_force(k.stiffness, depth, self.exponent)

    def tangent_stiffness(self, depth: Any, k: ParameterNamespace) -> Any:
        """Return the tangent stiffness ``exponent stiffness depth^(exponent - 1)``."""
        return k.stiffness if self.exponent == 1 else self.exponent * k.stiffness * depth ** (self.exponent - 1)

    def collision_frequency(
        self, values: Mapping[str, FloatArray] | Mapping[str, float], mass: float, speed: float
    ) -> float:
        """Return the angular frequency omega such that a collision lasts ``pi/omega``."""
        return math.pi / self.collision_duration(float(values["stiffness"]), mass, speed)

    def collision_duration(self, stiffness: float, mass: float, speed: float) -> float:
        """Return the duration of an elastic collision: ``2 int d(depth)/sqrt(v^2 - 2 V/m)``.

        With n = exponent + 1 and the largest depth D this is ``2 D/v int_0^1 dx/sqrt(1 - x^n)``.

        Parameters
        ----------
        stiffness : float
            Stiffness of the law.
        mass : float
            Reduced mass in kg.
        speed : float
            Approach velocity in m/s.

        Returns
        -------
        float
            Duration in s.
        """
        n = self.exponent + 1
        max_depth = (n * mass * speed**2 / (2 * stiffness)) ** (1 / n)
        return 2 * max_depth / speed * math.sqrt(math.pi) * math.gamma(1 + 1 / n) / math.gamma(0.5 + 1 / n)
