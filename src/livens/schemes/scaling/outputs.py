"""Scaling functions of the results of a mechanical system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca

from livens.errors import InputError
from livens.models.observable import output_expression
from livens.schemes.scaling.base import Scaling, StepMeans
from livens.types import Expr
from livens.validation import check_positive


@dataclass(frozen=True)
class OutputScaling(Scaling):
    factory: ClassVar[str] = "of"
    output: str
    reference: float
    exponent: float

    def expression(self, model: object) -> Expr:
        raise InputError(
            f"the scaling {self} needs a mechanical system with constraints or forces; write a function of the state, "
            "such as scaling=lambda q: ..."
        )

    def for_system(self, system: Any, means: StepMeans) -> Expr:
        if means.multipliers is None:
            raise InputError(f"the scaling {self} is a function of the whole step; use it with step-density:<scheme>")
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
