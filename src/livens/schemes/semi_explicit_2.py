"""The semi-explicit scheme with extrapolated velocities: of order 2 with friction as well."""

from __future__ import annotations

from typing import Any, ClassVar

from livens.schemes.base import Scheme
from livens.schemes.recipes.maps import digits
from livens.schemes.recipes.split_forces import Ahead
from livens.schemes.semi_explicit import SemiExplicit


class SemiExplicit2(SemiExplicit):
    """`semi-explicit:0.5,<beta>` whose expensive forces see the velocity in the middle of the step, extrapolated::

        A* = A(q0 + h/2 v0, v0 + h/2 a_last, t0 + h/2)         a_last = (v0 - v_last)/h

    The acceleration of the step before costs nothing, so there is still one evaluation of A in every step; the scheme
    is of order 2 for ``b = 1/2`` even if A depends on velocities, as friction does. In the first step the acceleration
    is taken as zero. With friction the longest stable step is half as long.
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
