"""Predictors of the unknowns, chosen by measurement.

Unknowns of the next step are extrapolated from those of the last ones. Which extrapolation is best depends on the
motion, on round-off, and on multipliers that alternate from step to step: so it is measured, now and then, how far each
candidate would have been off in the step just taken.
"""

from __future__ import annotations

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Integers
from livens.engine.lowering.words import bits, number

#: How many past steps there are to predict from.
RING = 8
#: Exact for polynomials of degree below a, and for alternating ones of degree below b: ``(E - 1)^a (E + 1)^b``.
CANDIDATES = ((1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 1), (5, 2), (6, 1), (6, 2))
_CANDIDATES = len(CANDIDATES)
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


@lowered
def predict(X: Doubles, n: int, w: Doubles, x: Doubles, first: int, stop: int) -> None:
    """``x[first:stop]`` for a step whose predecessors are the rows of n numbers before X, the last one first."""
    a, b, c, d = X + (-n), X + (-2 * n), X + (-3 * n), X + (-4 * n)
    e, f, g, o = X + (-5 * n), X + (-6 * n), X + (-7 * n), X + (-8 * n)
    wa, wb, wc, wd, we, wf, wg, wo = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    if we == 0.0 and wf == 0.0 and wg == 0.0 and wo == 0.0:
        for i in range(first, stop):
            x[i] = (wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i])
    else:
        for i in range(first, stop):
            x[i] = ((wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i])) + (
                (we * e[i] + wf * f[i]) + (wg * g[i] + wo * o[i])
            )


@lowered
def best_candidate(
    X: Doubles, n: int, weights: Doubles, reach: Integers, known: int, first: int, stop: int, work: Doubles
) -> int:
    """The candidate that would have come closest to X, in its largest error; `known` steps lie before.

    The last numbers of `work` are the errors. Steps are read once, however many candidates there are.
    """
    errors = work + n
    for candidate in range(_CANDIDATES):
        errors[candidate] = 0.0
    for begin in range(first, stop, _PIECE):
        end = min(begin + _PIECE, stop)
        for candidate in range(_CANDIDATES):
            if reach[candidate] <= known:
                worst = bits(errors[candidate])
                predict(X, n, weights + candidate * RING, work, begin, end)
                for i in range(begin, end):
                    worst = max(worst, bits(abs(work[i] - X[i])))
                errors[candidate] = number(worst)
    found, least = 0, np.inf
    for candidate in range(_CANDIDATES):
        if reach[candidate] <= known and errors[candidate] < least:
            found, least = candidate, errors[candidate]
    return found
