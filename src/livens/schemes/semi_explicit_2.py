"""Semi-explicit scheme with extrapolated velocities, of order 2 also with friction."""

from __future__ import annotations

from typing import Any, ClassVar

from livens.schemes.base import Scheme
from livens.schemes.recipes.maps import digits
from livens.schemes.recipes.split_forces import Ahead
from livens.schemes.semi_explicit import SemiExplicit


class SemiExplicit2(SemiExplicit):
    """`semi-explicit:0.5,<beta>` with expensive forces at the extrapolated midpoint velocity::

        A* = A(q0 + h/2 v0, v0 + h/2 a_last, t0 + h/2)         a_last = (v0 - v_last)/h

    The acceleration of the previous step is available, so that A is evaluated once per step. The scheme is of order 2
    for ``b = 1/2`` even if A depends on velocities, as friction does. In the first step the acceleration is zero. With
    friction the stability limit of the step size is halved.
    """

    family = "semi-explicit-2:<beta>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((0.5,),)
    summary, source = "semi-explicit with extrapolated velocities: order 2 with friction", "docs/bearing.md"

    def __init__(self, beta: float) -> None:
        super().__init__(0.5, beta)
        self.name = f"semi-explicit-2:{digits(beta)}"
        self.order, self.symmetric = 2 if beta == 0.5 else 1, False

    def scaled(self, scaling: Any) -> Scheme:
        return Scheme.scaled(self, scaling)

    def composed(self) -> Scheme:
        return self

    @property
    def ahead(self) -> Ahead:
        return Ahead(0.5, extrapolated=True)
