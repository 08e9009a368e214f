"""Quantities of a model that results show by name, such as the angle of a joint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Quantity:
    """A named quantity: an expression of the state, and how its values over time are to be shown.

    `expression` is a function of ``(q, v, lam, t, k)``, all CasADi expressions of the whole system, that returns one.
    """

    words: str
    unit: str
    expression: Callable[[Any, Any, Any, Any, Any], Any]
    #: It is an angle, to be followed over full turns.
    angle: bool = False
    #: It is made of multipliers, which belong to the middle of a step: nodes show the mean of the steps around them.
    force: bool = False
    shape: tuple[int, ...] = ()
    #: What is done with the rows of all times, such as to follow angles over turns and to add them up.
    #: It is what a sampled controller says: its place among the controls.
    command: int | None = None
    after: Callable[[Any], Any] | None = None
