"""Predictors of the unknowns, chosen by measurement.

Unknowns of the next step are extrapolated from those of the last ones. Which extrapolation is best depends on the
motion, on round-off, and on multipliers that alternate from step to step: so it is measured, now and then, how far each
candidate would have been off in the step just taken.
"""

from __future__ import annotations

import numpy as np

from livens.engine.jit import jit

#: How many past steps there are to predict from.
RING = 8
#: Exact for polynomials of degree below a, and for alternating ones of degree below b: ``(E - 1)^a (E + 1)^b``.
CANDIDATES = ((1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 1), (5, 2), (6, 1), (6, 2))
#: Unknowns that are predicted at a time: they stay in the cache.
_PIECE = 512


def _weights() -> np.ndarray:
    weights = np.zeros((len(CANDIDATES), RING))
    for i, (a, b) in enumerate(CANDIDATES):
        polynomial = np.array([1.0])
        for factor in [[1.0, -1.0]] * a + [[1.0, 1.0]] * b:
            polynomial = np.convolve(polynomial, factor)
        weights[i, : a + b] = -polynomial[1:]
    return weights


#: One row for each candidate: what the last step, the one before, ... count.
WEIGHTS = _weights()
REACH = np.array([a + b for a, b in CANDIDATES], dtype=np.int64)


@jit
def predict(X: np.ndarray, at: int, w: np.ndarray, x: np.ndarray, first: int, stop: int) -> None:
    """``x[first:stop]`` for the step whose predecessors are ``X[at - 1], X[at - 2], ...``."""
    a, b, c, d = X[at - 1], X[at - 2], X[at - 3], X[at - 4]
    e, f, g, o = X[at - 5], X[at - 6], X[at - 7], X[at - 8]
    if w[4] == 0.0 and w[5] == 0.0 and w[6] == 0.0 and w[7] == 0.0:
        for i in range(first, stop):
            x[i] = (w[0] * a[i] + w[1] * b[i]) + (w[2] * c[i] + w[3] * d[i])
        return
    for i in range(first, stop):
        x[i] = ((w[0] * a[i] + w[1] * b[i]) + (w[2] * c[i] + w[3] * d[i])) + (
            (w[4] * e[i] + w[5] * f[i]) + (w[6] * g[i] + w[7] * o[i])
        )


@jit
def best_candidate(
    X: np.ndarray, at: int, weights: np.ndarray, reach: np.ndarray, known: int, first: int, stop: int, work: np.ndarray
) -> int:
    """The candidate that would have come closest to ``X[at]``, in its largest error; `known` steps lie before."""
    found, least = 0, np.inf
    for candidate in range(weights.shape[0]):
        if reach[candidate] > known:
            continue
        worst = 0.0
        for begin in range(first, stop, _PIECE):
            end = min(begin + _PIECE, stop)
            predict(X, at, weights[candidate], work, begin, end)
            for i in range(begin, end):
                worst = max(worst, abs(work[i] - X[at, i]))
            if worst > least:
                break
        if worst < least:
            found, least = candidate, worst
    return found
