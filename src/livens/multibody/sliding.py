"""Springs and dampers along the axis of a joint that slides."""

from __future__ import annotations

import functools
from typing import Any

from livens import math as m
from livens.expressions.read import ModelFunction
from livens.models.element import Through, through
from livens.multibody.couplings import slide_rate
from livens.multibody.joint_table import split
from livens.multibody.placement import Placement


def _axis(a: Placement, k: Any) -> Any:
    return k.A[:, a.dimension - 1 if a.dimension == 3 else 0]


@functools.cache
def spring(a: Placement, b: Placement) -> Through:
    """``stiffness/2 (position - rest)^2`` through the position, which is quadratic in directors."""

    def invariants(q: Any, k: Any) -> Any:
        qa, qb = split(a, q)
        return [m.dot(a.vector(qa, _axis(a, k)), b.point(qb, k.Y) - a.point(qa, k.X))]

    return through(invariants, lambda w, k: 0.5 * k.stiffness * (w[0] - k.rest) ** 2)


@functools.cache
def damper(a: Placement, b: Placement) -> ModelFunction:
    """Rayleigh's function ``viscosity/2 speed^2``."""
    return lambda q, v, k: 0.5 * k.viscosity * slide_rate(a, b, q, v, k.X, k.Y, _axis(a, k)) ** 2
