"""Termination test of the Newton iteration at the round-off level of the residual."""

from __future__ import annotations

from livens.engine.lowering.function import lowered

#: Fraction of its round-off bound below which a residual is converged without further tests.
SAFE_FRACTION = 1.0 / 16.0


@lowered
def converged_to_roundoff(norm: float, norm_prev: float, norm_prev2: float, iteration: int) -> bool:
    """Return True if the scaled residual norm is at round-off level.

    `norm_prev` and `norm_prev2` are the norms of the two previous iterates. The bound is conservative: after a large
    Newton update, a residual just below it may still be a remainder of the error, and one more iteration decides.
    That iteration is not needed if an extrapolated initial guess converges in one iteration. It is not needed either if
    quadratic convergence, ``r_i = C r_{i-1}^2`` with the C of the previous iteration, predicts a far smaller residual.
    """
    if not norm <= 1.0:
        return False
    quadratic = norm_prev < norm_prev2 and norm_prev * (norm_prev / norm_prev2) ** 2 <= SAFE_FRACTION
    return iteration == 1 or norm <= SAFE_FRACTION or norm > 0.25 * norm_prev or quadratic
