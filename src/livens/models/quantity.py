"""Named outputs of a model, such as the angle of a joint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class AppliedForce(NamedTuple):
    """Point of application of a force: the loaded body, the body that exerts it, and the point (an expression)."""

    on: str
    by: str
    at: Callable[[Any, Any, Any, Any, Any], Any]


@dataclass(frozen=True)
class Quantity:
    """Named output of a model: an expression of the state and its treatment in results.

    `expression` is a function of ``(q, v, lam, t, k)``, all CasADi expressions of the complete system, that returns
    one.
    """

    description: str
    unit: str
    expression: Callable[[Any, Any, Any, Any, Any], Any]
    #: An angle, unwrapped over full revolutions.
    is_angle: bool = False
    #: Computed from multipliers, which belong to the midpoint of a step: nodes show the mean of adjacent steps.
    from_multipliers: bool = False
    shape: tuple[int, ...] = ()
    #: Point of application of a force in space, where animations draw it.
    applied: AppliedForce | None = None
    #: Index of the command of a sampled controller among the controls.
    control_index: int | None = None
    #: Postprocessing of the values at all times, such as unwrapping angles and summing them.
    postprocess: Callable[[Any], Any] | None = None
