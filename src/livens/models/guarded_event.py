"""Guarded events of a model: a guard function and a reset map of the velocities, as at a joint stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class GuardedEvent:
    """Event of a model: zero crossing of ``guard(q, k)`` with a reset map.

    `guard` is a function of CasADi expressions. `direction` is that of `livens.Event`. `action` is a function of some
    of ``q v t k h`` (numbers, with k as one vector and the step size h) that returns the values after the reset.
    """

    name: str
    guard: Callable[..., Any]
    direction: int
    action: Callable[..., Mapping[str, Any]]
