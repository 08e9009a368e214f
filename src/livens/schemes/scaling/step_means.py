"""Scaling functions of results and of the acceleration: functions of the mean values of a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.errors import InputError
from livens.models.observable import output_expression
from livens.schemes.scaling.base import Scaling, StepMeans
from livens.types import Expr
from livens.validation import check_positive

#: Message of schemes that evaluate the scaling at the ends of steps.
_END_OF_STEP = "the scaling {} is a function of the whole step; use it with step-density:<scheme>"


@dataclass(frozen=True)
class OutputScaling(Scaling):
    output: str
    reference: float
    exponent: float

    def for_system(self, system: Any, means: StepMeans) -> Expr:
        if means.multipliers is None:
            raise InputError(_END_OF_STEP.format(self))
        view = system.view
        multipliers = ca.SX.sym("multipliers", means.multipliers.numel())
        value = ca.densify(ca.SX(output_expression(system, self.output, multipliers)))
        symbols = [view.symbols["q"], view.symbols["v"], multipliers, view.t, view.k]
        y = ca.Function("output", symbols, [value])(means.q, means.v, means.multipliers, means.t, means.k)
        return (1 + ca.sumsqr(y) / self.reference**2) ** (-self.exponent / 2)

    def __str__(self) -> str:
        return f"of({self.output!r}, {self.reference:g}, exponent={self.exponent:g})"


def of(output: str, reference: float, exponent: float = 0.5) -> Scaling:
    """Return the scaling function ``(1 + |y|^2/reference^2)^(-exponent/2)`` of a result y of a mechanical system.

    Steps are short where the result is large, such as the force of a joint at a dead centre. With the exponent 1/2 of a
    force, steps are proportional to the period of an oscillation that causes the force.

    Parameters
    ----------
    output : str
        Name of a result, such as ``"pin.force"``, of a coordinate or of an observable.
    reference : float
        Magnitude of the result, in its unit, above which steps become shorter.
    exponent : float, default 0.5
        Exponent of the result.

    Returns
    -------
    Scaling
        Scaling function.

    Examples
    --------
    >>> str(of("pin.force", reference=100.0))
    "of('pin.force', 100, exponent=0.5)"
    """
    return OutputScaling(
        output,
        check_positive("reference", reference, allow_strings=False),
        check_positive("exponent", exponent, allow_strings=False),
    )


@dataclass(frozen=True)
class AccelerationScaling(Scaling):
    length: float
    min_rate: float

    def for_system(self, system: Any, means: StepMeans) -> Expr:
        if means.acceleration is None:
            raise InputError(_END_OF_STEP.format(self))
        magnitude = ca.sqrt(ca.sumsqr(means.acceleration) + (1e-12 * self.length * self.min_rate**2) ** 2)
        return (magnitude / self.length + self.min_rate**2) ** -0.5

    def __str__(self) -> str:
        return f"acceleration({self.length:g}, {self.min_rate:g})"


def acceleration(length: float, min_rate: float) -> Scaling:
    """Return the scaling function ``(|v'|/length + min_rate^2)^(-1/2)`` of the acceleration of a mechanical system.

    Steps follow the curvature of the motion: they are short where velocities change fast.

    Parameters
    ----------
    length : float
        Size of the system in metres, such as the length of a link. For systems of rigid bodies, directors of length 1
        are among the coordinates.
    min_rate : float
        Angular rate in rad/s that limits the steps where the acceleration is small.

    Returns
    -------
    Scaling
        Scaling function.

    Examples
    --------
    >>> str(acceleration(0.5, 1.0))
    'acceleration(0.5, 1)'
    """
    return AccelerationScaling(
        check_positive("length", length, allow_strings=False), check_positive("min_rate", min_rate, allow_strings=False)
    )
