"""Quantities of a model that results show by name, such as the angle of a joint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Acting(NamedTuple):
    """On which body a force acts, from which one it comes, and at which point of space (an expression of the state)."""

    on: str
    by: str
    at: Callable[[Any, Any, Any, Any, Any], Any]


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
    #: It is a force in space, which acts on a body at a point, where films draw it.
    acts: Acting | None = None
    #: It is what a sampled controller says: its place among the controls.
    command: int | None = None
    #: What is done with the rows of all times, such as to follow angles over turns and to add them up.
    after: Callable[[Any], Any] | None = None
