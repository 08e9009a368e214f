"""Predictors of the unknowns: extrapolation from previous steps.

- `predict_unknowns`: one formula with an acceptance test, for the fused, reference and ensemble tiers.
  `livens.engine.codegen.predictor_kernel` generates straight-line and SIMD code of it.
- `extrapolate`, `best_stencil`: a table of stencils, for the assembled tier. The best stencil depends on the motion, on
  round-off and on multipliers that alternate from step to step. Its error is therefore measured at intervals, in the
  step just completed.
- `extrapolate_polynomial`: a polynomial through at most four steps, for the tree tier, which has no multipliers.
"""

from __future__ import annotations

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import bits_to_float, float_to_bits
from livens.engine.lowering.types import F64Array, I64Array

#: Acceptance thresholds of the predictor: largest second difference relative to the last increment, or (near turning
#: points) largest change of the second difference relative to the second difference.
MAX_CURVATURE, MAX_CURVATURE_CHANGE = 0.7, 0.1
#: Number of previous steps available to the stencils.
N_HISTORY = 8
#: Stencils (a, b), exact for polynomials of degree < a and alternating ones of degree < b: ``(E - 1)^a (E + 1)^b``.
STENCILS = ((1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 1), (5, 2), (6, 1), (6, 2))
_N_STENCILS = len(STENCILS)
#: Number of unknowns per block, to stay in the cache.
_BLOCK = 512


def _stencil_weights() -> np.ndarray:
    weights = np.zeros((len(STENCILS), N_HISTORY))
    for i, (a, b) in enumerate(STENCILS):
        polynomial = np.array([1.0])
        for factor in [[1.0, -1.0]] * a + [[1.0, 1.0]] * b:
            polynomial = np.convolve(polynomial, factor)
        weights[i, : a + b] = -polynomial[1:]
    return weights


#: Stencil weights, one row per stencil: weights of the last step, the step before, and so on.
STENCIL_WEIGHTS = _stencil_weights()
STENCIL_LENGTH = np.array([a + b for a, b in STENCILS], dtype=np.int64)


@lowered
def predict_unknowns(X: F64Array, x: F64Array, n: int, group_sizes: I64Array, n_groups: int) -> bool:
    """Extrapolate the unknowns of the last five steps; exact for cubics and for alternating signs.

    Multipliers of energy-momentum schemes contain round-off that changes its sign in every step; the root -1 in
    ``(E - 1)^4 (E + 1)`` keeps the extrapolation from amplifying it. Returns True if the prediction is accepted. It is
    rejected if steps are too long: if its distance to the linear extrapolation, ``x4 + x3 - x2``, is large against the
    last increment, and so is that to the parabola, ``2 (x4 - x2) + x1``. Every group of unknowns is tested separately:
    multipliers may be larger by orders of magnitude.
    """
    accepted, start = True, 0
    for j in range(n_groups):
        curvature, increment, curvature_change = 0.0, 0.0, 0.0
        for i in range(start, start + group_sizes[j]):
            x0, x1, x2, x3, x4 = X[i], X[n + i], X[2 * n + i], X[3 * n + i], X[4 * n + i]
            x[i] = 3.0 * (x4 + x1) - 2.0 * (x3 + x2) - x0
            curvature = max(curvature, abs(x[i] - (x4 + x3 - x2)))
            increment = max(increment, abs(x4 - x3))
            curvature_change = max(curvature_change, abs(x[i] - (2.0 * (x4 - x2) + x1)))
        accepted, start = (
            accepted
            and (curvature <= MAX_CURVATURE * increment or curvature_change <= MAX_CURVATURE_CHANGE * curvature),
            start + group_sizes[j],
        )
    return accepted


#: Number of previous steps used by `extrapolate_polynomial`.
POLYNOMIAL_POINTS = 4


@lowered
def extrapolate_polynomial(X: F64Array, x: F64Array, n: int, n_known: int) -> None:
    """Extrapolate n unknowns from the rows of X, most recent last; `n_known` of these four rows are valid."""
    c0, c1, c2, c3 = 1.0, 0.0, 0.0, 0.0
    if n_known == 2:
        c0, c1 = 2.0, -1.0
    elif n_known == 3:
        c0, c1, c2 = 3.0, -3.0, 1.0
    elif n_known >= 4:
        c0, c1, c2, c3 = 4.0, -6.0, 4.0, -1.0
    for i in range(n):
        x[i] = c0 * X[3 * n + i] + c1 * X[2 * n + i] + c2 * X[n + i] + c3 * X[i]


@lowered
def extrapolate(X: F64Array, n: int, w: F64Array, x: F64Array, start: int, stop: int) -> None:
    """Extrapolate ``x[start:stop]`` from the rows of n entries before X, most recent first."""
    a, b, c, d = X + (-n), X + (-2 * n), X + (-3 * n), X + (-4 * n)
    e, f, g, o = X + (-5 * n), X + (-6 * n), X + (-7 * n), X + (-8 * n)
    wa, wb, wc, wd, we, wf, wg, wo = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    if we == 0.0 and wf == 0.0 and wg == 0.0 and wo == 0.0:
        for i in range(start, stop):
            x[i] = (wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i])
    else:
        for i in range(start, stop):
            x[i] = ((wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i])) + (
                (we * e[i] + wf * f[i]) + (wg * g[i] + wo * o[i])
            )


@lowered
def best_stencil(
    X: F64Array, n: int, weights: F64Array, lengths: I64Array, n_known: int, start: int, stop: int, work: F64Array
) -> int:
    """Return the stencil with the smallest maximum error at X; `n_known` previous steps are available.

    The last entries of `work` are the errors. All stencils are evaluated in one pass over the steps.
    """
    errors = work + n
    for stencil in range(_N_STENCILS):
        errors[stencil] = 0.0
    for block_start in range(start, stop, _BLOCK):
        block_stop = min(block_start + _BLOCK, stop)
        for stencil in range(_N_STENCILS):
            if lengths[stencil] <= n_known:
                largest = float_to_bits(errors[stencil])
                extrapolate(X, n, weights + stencil * N_HISTORY, work, block_start, block_stop)
                for i in range(block_start, block_stop):
                    largest = max(largest, float_to_bits(abs(work[i] - X[i])))
                errors[stencil] = bits_to_float(largest)
    best, smallest = 0, np.inf
    for stencil in range(_N_STENCILS):
        if lengths[stencil] <= n_known and errors[stencil] < smallest:
            best, smallest = stencil, errors[stencil]
    return best
