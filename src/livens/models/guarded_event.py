"""Guarded events of a model, such as impacts at a joint stop, and the rule that closes a contact persistently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from livens.types import ModelFunction

#: Shortest flight between two impacts, relative to the step size h. A contact with a closing acceleration a rises to
#: a tau^2 / 8 in a flight of duration tau. Without such flights the gap changes by at most 1.25e-7 a h^2, a small part
#: of the local error of a step, which is of order a h^2. Impacts accumulate (Zeno behaviour): one flight is the last.
_MIN_FLIGHT_FRACTION = 1e-3


def min_rebound_velocity(closing_acceleration: float, h: float) -> float:
    """Return the rebound velocity below which a contact closes persistently, in m/s or rad/s.

    A contact that leaves with velocity v and has the closing acceleration a is open for the time ``2 v / a``. It closes
    if this time is shorter than a small fraction of the step size h.
    """
    return _MIN_FLIGHT_FRACTION * h / 2 * closing_acceleration


@dataclass(frozen=True, eq=False)
class GuardedEvent:
    """Event of a model: zero crossing of ``guard(q, k)`` with a reset map.

    `guard` is a function of CasADi expressions. `direction` is that of `livens.Event`. `action` is a function of some
    of ``q v t k h`` (numbers, with k as one vector and the step size h) that returns the values after the reset.
    Impacts accumulate within a step (Zeno behaviour) before the contact closes if `may_accumulate` is True. The guard
    of an event with a contact `resolver` is ``guard(q, v, t, k)``; `label` names the type of event in messages.
    """

    name: str
    guard: ModelFunction
    direction: int
    action: Callable[..., Mapping[str, Any]]
    may_accumulate: bool = False
    resolver: Any = None
    label: str = "joint stops with restitution"
