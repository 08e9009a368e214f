"""Memory layout of the workspace of a fused Newton iteration."""

from __future__ import annotations

from typing import NamedTuple


class Places(NamedTuple):
    """Offsets in the Newton workspace of a step with n unknowns, in rows of one number per lane."""

    scale: int  # reciprocal round-off bounds of the residuals
    active: int  # mask of the lanes that are iterated
    first: int  # scaled residual norm before an iteration
    worst: int  # scaled residual norm after it
    growth: int  # pivot growth: largest elimination factor
    dx: int  # last Newton update
    smooth: int  # flag: the prediction is accepted
    scratch: int
    last: int
    before: int
    stalls: int
    guess: int  # unknowns before the first iteration
    left: int  # their residual
    rows: int  # size of the workspace


def places(n: int) -> Places:
    """Return the workspace layout of a step with n unknowns."""
    dx, smooth = n + 4, 2 * n + 4
    scratch = smooth + 1
    last = scratch + n
    guess = last + 3
    return Places(
        0, n, n + 1, n + 2, n + 3, dx, smooth, scratch, last, last + 1, last + 2, guess, guess + n, guess + 2 * n
    )
