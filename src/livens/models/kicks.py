"""Velocity after constraint impulses: projection onto G v = 0 in the mass metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens.models.element_numbers import ElementNumbers
from livens.models.start import HARDLY, Here, Numbers
from livens.models.summed import dynamics
from livens.models.system import System


def kicked(system: System, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
    """Return the velocity after the impulses of all constraints, ``M dv = -G^T P`` with ``G (v + dv) = 0``.

    The result is the consistent velocity nearest to v in the mass metric.
    """
    if system.large:
        return np.asarray(v + _sparse(ElementNumbers(system, t, k), q, v))
    here = Here(*Numbers(dynamics(system), t, k).at_start(q, v))
    n, m = system.n, system.m
    M, G = here.matrix[:n, :n], here.G
    scale = _scale(M.diagonal(), G)
    matrix = np.block([[M, G.T], [G, np.zeros((m, m))]])
    right = np.concatenate([np.zeros(n), -here.g_rate.ravel()])
    found = np.linalg.lstsq(scale[:, None] * matrix * scale, scale * right, rcond=1e-12)[0]
    return np.asarray(v + (scale * found)[:n])


def _sparse(numbers: ElementNumbers, q: np.ndarray, v: np.ndarray) -> Any:
    import scipy.sparse as sp  # slow import

    from livens.models.sparse_rows import least_squares, regular_solution

    here, n = numbers.at_start(q, v), q.size
    scale = _scale(here.M.diagonal(), here.G)
    matrix = sp.block_array([[here.M, here.G.T], [here.G, None]], format="csc")
    matrix = sp.csc_matrix(sp.diags_array(scale) @ matrix @ sp.diags_array(scale))
    right = scale * np.concatenate([np.zeros(n), -here.g_rate])
    found = regular_solution(matrix, right)
    return (scale * (least_squares(matrix, right, n) if found is None else found))[:n]


def _scale(masses: np.ndarray, G: Any) -> np.ndarray:
    """Return symmetric scaling factors of the KKT matrix: unit masses and rows of G."""
    largest = float(masses.max()) or 1.0
    scale = 1 / np.sqrt(np.where(masses > HARDLY * largest, masses, largest))
    sizes = np.asarray(abs(G) @ scale)
    return np.concatenate([scale, 1 / np.where(sizes > 0, sizes, 1.0)])
