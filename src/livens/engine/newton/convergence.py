"""Termination of the Newton iteration: status codes, convergence to the round-off level, stagnation and divergence."""

from __future__ import annotations

import enum

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.types import F64Array


class Status(enum.IntEnum):
    """Status of a Newton iteration, of a step and of a chunk of steps."""

    CONVERGED = 0
    DIVERGED = 1
    NEEDS_REPIVOT = 2  # the pivots have grown
    END_REACHED = 3  # the next step would pass the end condition
    ERROR_TOO_LARGE = 4  # the error estimate exceeds the tolerance
    CONTINUE = 5  # another Newton iteration is needed
    NEEDS_CHORD_KERNELS = 8  # the step needs the kernels of chord iterations, which are not compiled yet


CONVERGED, DIVERGED, NEEDS_REPIVOT, END_REACHED, ERROR_TOO_LARGE, CONTINUE, NEEDS_CHORD_KERNELS = Status

#: Fraction of its round-off bound below which a residual is converged without further tests.
SAFE_FRACTION = 1.0 / 16.0
#: Maximum number of Newton iterations of a step.
MAX_NEWTON_ITERATIONS = 25
#: Pivot growth above which a new pivot order is requested: `MAX_GROWTH` (half the digits lost) if two iterations do not
#: converge, `MODERATE_GROWTH` after `REPIVOT_AFTER` iterations.
MAX_GROWTH, REPIVOT_AFTER, MODERATE_GROWTH = 1e8, 5, 1e3
#: Largest accepted residual, as a multiple of its round-off bound, near singular configurations. There the round-off of
#: the Newton update, through the curvature of the equations, lifts the residual above its bound. The residual is
#: accepted if the curvature explains it and the iteration stagnates.
MAX_CURVATURE_RESIDUAL = 1e6


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


@lowered
def chord_converged_to_roundoff(norm: float, norm_prev: float, norm_prev2: float) -> bool:
    """Return True if the residual of a chord iteration, which converges linearly, is at round-off level."""
    linear = norm_prev * (norm_prev / max(norm_prev2, 1e-300)) <= SAFE_FRACTION
    return norm <= 1.0 and (norm <= SAFE_FRACTION or norm > 0.25 * norm_prev or linear)


@lowered
def stagnates(norm: float, norm_prev: float) -> bool:
    """Return True if an iteration did not halve the residual norm.

    Either the round-off bounds are outdated, or the residual is at the round-off level.
    """
    return norm > 0.5 * norm_prev


@lowered
def newton_decision(
    norm: float,
    norm_prev: float,
    norm_prev2: float,
    iteration: int,
    is_chord: bool,
    n_stalls: int,
    max_stalls: int,
    pivot_growth: float,
    repivot_after: int,
) -> int:
    """Return the status after a Newton iteration: CONVERGED, DIVERGED, NEEDS_REPIVOT or CONTINUE.

    All tiers use this decision. Lanes of an ensemble also accept a residual within updated bounds, and test pivots
    separately. `norm`, `norm_prev` and `norm_prev2` are the scaled residual norms of the last three iterates.
    `n_stalls` counts the iterations that stagnated, at most `max_stalls`. Pivots are not tested if
    `repivot_after` exceeds the maximum number of iterations.
    """
    if is_chord:
        if chord_converged_to_roundoff(norm, norm_prev, norm_prev2):
            return CONVERGED
    elif converged_to_roundoff(norm, norm_prev, norm_prev2, iteration):
        return CONVERGED
    if not norm < np.inf or n_stalls > max_stalls:
        return DIVERGED
    if repivot_after <= MAX_NEWTON_ITERATIONS and (
        (pivot_growth > MAX_GROWTH and iteration >= 2)
        or (pivot_growth > MODERATE_GROWTH and iteration >= repivot_after)
    ):
        return NEEDS_REPIVOT
    return CONTINUE


@lowered
def explained_by_curvature(r: F64Array, r_plus: F64Array, r_minus: F64Array, inv_roundoff: F64Array, n: int) -> bool:
    """Return True if the second-order term of the last Newton update dx explains a stagnating residual r at x.

    `r_plus` and `r_minus` are the residuals at x + dx and x - dx. Such residuals occur near singular configurations.
    """
    for i in range(n):
        curvature = 0.5 * abs(r_plus[i] - 2.0 * r[i] + r_minus[i])
        if not abs(r[i]) <= 1.0 / inv_roundoff[i] + 10.0 * curvature:
            return False
    return True
