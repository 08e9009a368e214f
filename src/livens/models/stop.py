"""Stops: where a motion hits something and goes on with another velocity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Stop:
    """A function of coordinates and parameters, ``function(q, k)`` of expressions, that crosses zero where it is hit.

    `direction` is that of an event. `action` is a function of some of ``q v t k h``, numbers with k as one vector and
    the step h, that returns what is different after it.
    """

    name: str
    function: Callable[..., Any]
    direction: int
    action: Callable[..., Mapping[str, Any]]
