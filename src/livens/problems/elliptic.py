"""Jacobi elliptic functions by the arithmetic-geometric mean, for exact motions of pendulums and tops.

This module avoids the import of SciPy, which takes longer than many runs of these problems.
"""

from __future__ import annotations

import math

#: Relative tolerance of the arithmetic-geometric mean iteration.
_AGM_TOLERANCE = 1e-16


def quarter_period(m: float) -> float:
    """Return the complete elliptic integral of the first kind ``K(m)``, a quarter of the period of sn and cn.

    The parameter m is the squared modulus, ``0 <= m < 1``; NaN is returned otherwise.

    >>> quarter_period(0.0) == math.pi / 2
    True
    """
    if not 0 <= m < 1:
        return math.nan
    return math.pi / 2 / _agm_sequence(m)[-1][0]


def jacobi(u: float, m: float) -> tuple[float, float, float]:
    """Return ``sn(u|m)``, ``cn(u|m)`` and ``dn(u|m)`` by Landen's descending transformation.

    The parameter m is the squared modulus, ``0 <= m < 1``; NaN is returned otherwise.

    >>> sn, cn, dn = jacobi(quarter_period(0.5), 0.5)
    >>> [round(x, 12) + 0.0 for x in (sn, cn, dn**2)]
    [1.0, 0.0, 0.5]
    """
    if not (0 <= m < 1 and math.isfinite(u)):
        return math.nan, math.nan, math.nan
    means = _agm_sequence(m)
    angle = 2.0 ** (len(means) - 1) * means[-1][0] * u
    for a, c in reversed(means[1:]):
        angle = (angle + math.asin(c * math.sin(angle) / a)) / 2
    sn = math.sin(angle)
    return sn, math.cos(angle), math.sqrt((1 - m) + m * math.cos(angle) ** 2)


def _agm_sequence(m: float) -> list[tuple[float, float]]:
    """Return the arithmetic-geometric mean sequence: arithmetic means, each with half the previous difference."""
    a, b, c = 1.0, math.sqrt(1 - m), math.sqrt(m)
    sequence = [(a, c)]
    while c > _AGM_TOLERANCE * a:
        a, b, c = (a + b) / 2, math.sqrt(a * b), (a - b) / 2
        sequence.append((a, c))
    return sequence
