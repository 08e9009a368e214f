"""Hertz' contact of two elastic bodies at a point: ``Q = K delta^(3/2)`` from curvatures and material."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import ellipe, ellipk


def hertz_stiffness(along: float, across: float, modulus: float, poisson: float) -> float:
    """K of two bodies of one material, from the sums of their curvatures in both principal planes (1/m).

    The ellipse of contact is as much longer than wide, kappa, as ``((kappa^2 + 1) E - 2 K)/((kappa^2 - 1) E)`` is the
    difference of the curvatures over their sum, with complete elliptic integrals of ``1 - 1/kappa^2``.

    >>> K = hertz_stiffness(100.0, 100.0, 206e9, 0.3)  # two spheres: 2/3 E* sqrt(2 R) with 1/R = 100 + 100
    >>> bool(abs(K / (2 / 3 * 206e9 / (1 - 0.3**2) * 100**-0.5) - 1) < 1e-12)
    True
    """
    total, compliance = along + across, 2 * (1 - poisson**2) / modulus
    difference = abs(along - across) / total
    kappa = 1.0 if difference < 1e-14 else ellipticity(difference)
    E, K = ellipe(1 - kappa**-2), ellipk(1 - kappa**-2)
    depth = 2 * K / np.pi * (np.pi / (2 * kappa**2 * E)) ** (1 / 3)
    return float((2 / (depth * total)) ** 1.5 * 2 * total / (3 * compliance))


def ellipticity(difference: float) -> float:
    """How much longer than wide the contact is.

    >>> round(ellipticity(0.5), 3)
    2.012
    """

    def gap(kappa: float) -> float:
        E, K = ellipe(1 - kappa**-2), ellipk(1 - kappa**-2)
        return float(((kappa**2 + 1) * E - 2 * K) / ((kappa**2 - 1) * E) - difference)

    return float(brentq(gap, 1 + 1e-6, 1e4, xtol=1e-14, rtol=1e-14))
