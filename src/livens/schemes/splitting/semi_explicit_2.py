"""Semi-explicit scheme with extrapolated velocities, of order 2 also with friction."""

from __future__ import annotations

from typing import Any, ClassVar

from livens.schemes.core.scheme import Scheme
from livens.schemes.discretization.phase_space_map import format_number
from livens.schemes.discretization.semi_explicit_step import ExplicitPoint
from livens.schemes.splitting.semi_explicit import SemiExplicit


class SemiExplicit2(SemiExplicit):
    """`semi-explicit:0.5,<beta>` with expensive forces at the extrapolated midpoint velocity::

        A* = A(q0 + h/2 v0, v0 + h/2 a_last, t0 + h/2)         a_last = (v0 - v_last)/h

    The acceleration of the previous step is available, so that A is evaluated once per step. The scheme is of order 2
    for ``b = 1/2`` even if A depends on velocities, as friction does. In the first step the acceleration is zero. With
    friction the stability limit of the step size is halved.
    """

    family = "semi-explicit-2:<beta>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((0.5,),)
    summary, source = "semi-explicit with extrapolated velocities: order 2 with friction", "docs/howto/bearing.md"
    when_to_use = "Expensive forces with friction, contact groups, external forces, order 2."
    when_to_avoid = "Energy has to be exact: use `lie-em` with `mb.contact`."

    def __init__(self, beta: float) -> None:
        super().__init__(0.5, beta)
        self.name = f"semi-explicit-2:{format_number(beta)}"
        self.order, self.symmetric = 2 if beta == 0.5 else 1, False

    def with_scaling(self, scaling: Any) -> Scheme:
        return Scheme.with_scaling(self, scaling)

    def as_substep(self) -> Scheme:
        return self

    @property
    def explicit_point(self) -> ExplicitPoint:
        return ExplicitPoint(0.5, extrapolate_velocity=True)
