"""Memory layout of the workspace of a fused Newton iteration."""

from __future__ import annotations

from typing import NamedTuple


class NewtonOffsets(NamedTuple):
    """Offsets in the Newton workspace of a step with n unknowns, in rows of one number per lane."""

    inv_roundoff: int  # reciprocal round-off bounds of the residuals
    active: int  # mask of the lanes that are iterated
    norm_before: int  # scaled residual norm before an iteration
    norm_after: int  # scaled residual norm after it
    pivot_growth: int  # pivot growth: largest elimination factor
    update: int  # last Newton update
    predictor_ok: int  # flag: the prediction is accepted
    scratch: int
    norm_prev: int
    norm_prev2: int
    n_stalls: int
    x_guess: int  # unknowns before the first iteration
    r_guess: int  # their residual
    n_rows: int  # size of the workspace


def newton_offsets(n: int) -> NewtonOffsets:
    """Return the workspace layout of a step with n unknowns."""
    update, predictor_ok = n + 4, 2 * n + 4
    scratch = predictor_ok + 1
    norm_prev = scratch + n
    x_guess = norm_prev + 3
    return NewtonOffsets(
        0,
        n,
        n + 1,
        n + 2,
        n + 3,
        update,
        predictor_ok,
        scratch,
        norm_prev,
        norm_prev + 1,
        norm_prev + 2,
        x_guess,
        x_guess + n,
        x_guess + 2 * n,
    )
