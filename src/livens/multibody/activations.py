"""Activation states of actuators: first-order dynamics between control and force, as additional coordinates.

The activation z is the coordinate of a body of negligible mass with the velocity constraint ``z' = control``
(integrator) or ``z' = (control - z)/time_constant`` (filter), as the integrator state of a PID controller. Limits of
the activation are regularised: it approaches a limit within about `LIMIT_TIME`, and leaves it immediately.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.multibody.inputs import Law
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace

ActivationType = Literal["integrator", "filter"]
#: Time in s in which an activation approaches its limits.
LIMIT_TIME = 1e-4


@functools.cache
def activation_constraint(activation_type: ActivationType, control: Law, has_limits: bool) -> ModelFunction:
    """Return the velocity constraint of an activation, the last coordinate; `control` is a law of time and k."""

    def rates(q: Vector, v: Vector, t: ScalarLike, k: ParameterNamespace) -> list[ScalarLike]:
        z, rate = q[-1], control(t, k)
        if activation_type == "filter":
            rate = (rate - z) / k.time_constant
        if has_limits:
            rate = limited_rate(z, rate, k.activation_range)
        return [v[-1] - rate]

    return rates


def limited_rate(z: Any, rate: Any, limits: Any) -> Any:
    """Return the rate of an activation between limits: at most that which reaches a limit in `LIMIT_TIME`."""
    return m.maximum(m.minimum(rate, (limits[1] - z) / LIMIT_TIME), (limits[0] - z) / LIMIT_TIME)
