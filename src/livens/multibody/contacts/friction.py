"""What resists in a contact: damping of the approach, sliding, pivoting and rolling, each with its loss.

All of it are slopes of functions of the velocities that grow with them, so no contact ever gives energy. Friction goes
with the elastic part of the normal force: that of damping has no impulse over a whole blow, as the depth ends where it
began.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import not_negative, positive
from livens.expressions.read import ModelFunction
from livens.multibody.contacts.geometry.base import Geometry, slip, turning
from livens.multibody.contacts.laws.base import Law
from livens.multibody.placement import Placement


@dataclass(frozen=True)
class Friction:
    """Coulomb's friction, smooth below the speed `smooth`: ``coefficient N v/sqrt(v^2 + smooth^2)`` against sliding.

    `pivoting` is the radius at which friction resists turning about the normal: a torque of ``coefficient N pivoting``.
    `rolling` is the arm of the torque ``N rolling`` against rolling. Both are smooth below the rate `smooth_rate`.
    """

    coefficient: float
    smooth: float = 1e-3
    pivoting: float = 0.0
    rolling: float = 0.0
    smooth_rate: float = 1e-2

    def __post_init__(self) -> None:
        for word in ("coefficient", "pivoting", "rolling"):
            not_negative(f"the {word} of a friction", getattr(self, word), text=False)
        for word in ("smooth", "smooth_rate"):
            positive(f"{word} of a friction", getattr(self, word), text=False)
        if self.pivoting and not self.coefficient:
            raise InputError("friction against pivoting needs a coefficient")

    @classmethod
    def of(cls, given: Any) -> Friction | None:
        """A friction, or one with this coefficient; nothing, if there is none."""
        if isinstance(given, cls):
            return given if given.coefficient or given.rolling else None
        coefficient = not_negative("friction", given)
        return cls(coefficient) if coefficient else None


def depth_of(gap: Any) -> Any:
    return m.maximum(-gap, 0.0)


@functools.cache
def damping(geometry: Geometry, law: Law, a: Placement, b: Placement) -> ModelFunction:
    """Hunt and Crossley's: with it, the normal force is ``elastic max(0, 1 + damping rate of the depth)``."""

    def dissipation(q: Any, v: Any, k: Any) -> Any:
        load = law.force(depth_of(geometry.gap_at(a, b, q, k)), k)
        s = -geometry.rate(a, b, q, v, k)
        # the integral of max(-1, damping s): bodies never pull at each other
        free = -s - 0.5 / k.damping
        return load * m.where(k.damping * s > -1.0, 0.5 * k.damping * s**2, free)

    return dissipation


@functools.cache
def sliding(geometry: Geometry, law: Law, a: Placement, b: Placement) -> ModelFunction:
    def dissipation(q: Any, v: Any, k: Any) -> Any:
        gap, normal, point = geometry.touch(a, b, q, k)
        along = slip(a, b, q, v, normal, point)
        return k.friction * law.force(depth_of(gap), k) * m.sqrt(m.dot(along, along) + k.smooth**2)

    return dissipation


@functools.cache
def pivoting(geometry: Geometry, law: Law, a: Placement, b: Placement) -> ModelFunction:
    def dissipation(q: Any, v: Any, k: Any) -> Any:
        gap, normal, _ = geometry.touch(a, b, q, k)
        rate = m.dot(turning(a, b, q, v), normal)
        return k.friction * k.pivoting * law.force(depth_of(gap), k) * m.sqrt(rate**2 + k.smooth_rate**2)

    return dissipation


@functools.cache
def rolling(geometry: Geometry, law: Law, a: Placement, b: Placement) -> ModelFunction:
    def dissipation(q: Any, v: Any, k: Any) -> Any:
        gap, normal, _ = geometry.touch(a, b, q, k)
        rate = turning(a, b, q, v)
        square = m.dot(rate, rate) - m.dot(rate, normal) ** 2 if a.dimension == 3 else rate**2
        return k.rolling * law.force(depth_of(gap), k) * m.sqrt(m.maximum(square, 0.0) + k.smooth_rate**2)

    return dissipation
