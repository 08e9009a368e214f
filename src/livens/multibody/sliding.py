"""Springs and dampers along the axis of a joint that slides."""

from __future__ import annotations

import functools

from livens.models.element import Through, through
from livens.multibody.actuators import invariants
from livens.multibody.placement import Placement


@functools.cache
def spring(a: Placement, b: Placement) -> Through:
    """``stiffness/2 (position - rest)^2`` through the position, which is quadratic in directors."""
    return through(invariants(a, b, False), lambda w, k: 0.5 * k.stiffness * (w[0] - k.rest) ** 2)


@functools.cache
def damper(a: Placement, b: Placement) -> Through:
    """Rayleigh's function ``viscosity/2 speed^2``."""
    return through(invariants(a, b, False), lambda u, k: 0.5 * k.viscosity * u[0] ** 2)
