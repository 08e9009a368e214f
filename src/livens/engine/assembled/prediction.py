"""Extrapolation predictors of the unknowns, selected by measured error.

The unknowns of the next step are extrapolated from previous steps. The best stencil depends on the motion, on round-off
and on multipliers that alternate from step to step. The error of each stencil is therefore measured at intervals, in
the step just completed.
"""

from __future__ import annotations

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Integers
from livens.engine.lowering.words import bits, number

#: Number of previous steps available for extrapolation.
RING = 8
#: Stencils (a, b), exact for polynomials of degree < a and alternating ones of degree < b: ``(E - 1)^a (E + 1)^b``.
CANDIDATES = ((1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 1), (5, 2), (6, 1), (6, 2))
_CANDIDATES = len(CANDIDATES)
#: Number of unknowns per block, to stay in the cache.
_PIECE = 512


def _weights() -> np.ndarray:
    weights = np.zeros((len(CANDIDATES), RING))
    for i, (a, b) in enumerate(CANDIDATES):
        polynomial = np.array([1.0])
        for factor in [[1.0, -1.0]] * a + [[1.0, 1.0]] * b:
            polynomial = np.convolve(polynomial, factor)
        weights[i, : a + b] = -polynomial[1:]
    return weights


#: Stencil weights, one row per stencil: weights of the last step, the step before, and so on.
WEIGHTS = _weights()
REACH = np.array([a + b for a, b in CANDIDATES], dtype=np.int64)


@lowered
def predict(X: Doubles, n: int, w: Doubles, x: Doubles, first: int, stop: int) -> None:
    """Extrapolate ``x[start:stop]`` from the rows of n entries before X, most recent first."""
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
    """Return the stencil with the smallest maximum error at X; `n_known` previous steps are available.

    The last entries of `work` are the errors. All stencils are evaluated in one pass over the steps.
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
