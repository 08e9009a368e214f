"""When Newton's method is done: residuals that are round-off and nothing else."""

from __future__ import annotations

from livens.engine.lowering.function import lowered

#: Below this part of its bound, a residual is round-off beyond doubt.
SMALL = 1.0 / 16.0


@lowered
def at_the_floor(worst: float, last: float, before: float, iteration: int) -> bool:
    """Whether a scaled residual is round-off and nothing else; `last` and `before` are those of the corrections before.

    The bound is on the safe side: where Newton's method came from afar, a residual just below it may still be what is
    left of the error, and one more correction shows. That is not needed where quadratic convergence, ``r_i = C
    r_{i-1}^2`` with the C of the correction before, leaves far less than the bound. An extrapolated guess that needs
    but one correction was close enough.
    """
    if not worst <= 1.0:
        return False
    quadratic = last < before and last * (last / before) ** 2 <= SMALL
    return iteration == 1 or worst <= SMALL or worst > 0.25 * last or quadratic
