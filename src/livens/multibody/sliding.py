"""Springs and dampers along the axis of a sliding joint."""

from __future__ import annotations

import functools

from livens.models.element import Through, through
from livens.multibody.actuators import invariants
from livens.multibody.placement import Placement


@functools.cache
def spring(a: Placement, b: Placement) -> Through:
    """Return the potential ``stiffness/2 (displacement - rest)^2``; the displacement is quadratic in directors."""
    return through(invariants(a, b, False), lambda w, k: 0.5 * k.stiffness * (w[0] - k.rest) ** 2)


@functools.cache
def damper(a: Placement, b: Placement) -> Through:
    """Return the Rayleigh function ``damping/2 velocity^2``."""
    return through(invariants(a, b, False), lambda u, k: 0.5 * k.viscosity * u[0] ** 2)
