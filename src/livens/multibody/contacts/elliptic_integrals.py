"""Complete elliptic integrals by the arithmetic-geometric mean, without cancellation for small parameters."""

from __future__ import annotations

import math


def elliptic_integrals(m: float) -> tuple[float, float, float]:
    """Return ``K``, ``B = (E - (1 - m) K)/m`` and ``D = (K - E)/m`` of the parameter m.

    ``K = B + D`` and ``E = B + (1 - m) D``. B and D avoid cancellation for small m (nearly circular contacts).

    >>> K, B, D = elliptic_integrals(0.0)
    >>> (K, B, D) == (math.pi / 2, math.pi / 4, math.pi / 4)
    True
    """
    a, b = 1.0, math.sqrt(1.0 - m)
    # c_n^2/m, of which sum 2^(n-1) c_n^2 = 1 - E/K
    square, weight, total = 1.0, 0.5, 0.5
    while abs(a - b) > 1e-16 * a:
        mean = (a + b) / 2
        square = square * (m * square) / (16 * mean**2)  # c_(n+1) = c_n^2/(4 a_(n+1))
        weight, total = 2 * weight, total + 2 * weight * square
        a, b = mean, math.sqrt(a * b)
        if square < 1e-40:
            break
    K = math.pi / (a + b)
    D = K * total
    return K, K - D, D
