"""The workspace of a fused Newton correction: what stands where."""

from __future__ import annotations

from typing import NamedTuple


class Places(NamedTuple):
    """Where things stand in the workspace of a step with n unknowns, in rows of one number per lane."""

    scale: int  # reciprocal round-off bounds of the residuals
    active: int  # lanes that are corrected
    first: int  # the largest scaled residual before a correction
    worst: int  # and behind it
    growth: int  # the largest elimination factor
    dx: int  # the last correction
    smooth: int  # whether the predictor can be trusted
    scratch: int
    last: int
    before: int
    stalls: int
    guess: int  # the unknowns before the first correction
    left: int  # and their residuals
    rows: int  # how many there are


def places(n: int) -> Places:
    """The workspace of a step with n unknowns."""
    dx, smooth = n + 4, 2 * n + 4
    scratch = smooth + 1
    last = scratch + n
    guess = last + 3
    return Places(
        0, n, n + 1, n + 2, n + 3, dx, smooth, scratch, last, last + 1, last + 2, guess, guess + n, guess + 2 * n
    )
