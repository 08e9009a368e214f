"""Velocity after constraint impulses: projection onto G v = 0 in the mass metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens.models.equations_of_motion import equations_of_motion
from livens.models.initialization.dense import NEGLIGIBLE_MASS, AssembledTerms, DenseAssembly
from livens.models.numeric_assembly import NumericAssembly
from livens.models.system import System
from livens.types import FloatArray


def project_velocity_in_mass_metric(
    system: System, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray
) -> np.ndarray:
    """Return the velocity after the impulses of all constraints, ``M dv = -G^T P`` with ``G (v + dv) = 0``.

    The result is the consistent velocity nearest to v in the mass metric.
    """
    if system.uses_sparse_path:
        return np.asarray(v + _sparse_increment(NumericAssembly(system, t, k), q, v))
    terms = AssembledTerms(*DenseAssembly(equations_of_motion(system), t, k).assemble(q, v))
    n, m = system.n, system.m
    M, G = terms.kkt_matrix[:n, :n], terms.G
    scale = _kkt_equilibration(M.diagonal(), G)
    matrix = np.block([[M, G.T], [G, np.zeros((m, m))]])
    rhs = np.concatenate([np.zeros(n), -terms.g_dot.ravel()])
    solution = np.linalg.lstsq(scale[:, None] * matrix * scale, scale * rhs, rcond=1e-12)[0]
    return np.asarray(v + (scale * solution)[:n])


def _sparse_increment(assembly: NumericAssembly, q: np.ndarray, v: np.ndarray) -> FloatArray:
    import scipy.sparse as sp  # slow import

    from livens.models.initialization.sparse_linalg import solve_if_regular, solve_regularized

    terms, n = assembly.assemble(q, v), q.size
    scale = _kkt_equilibration(terms.M.diagonal(), terms.G)
    matrix = sp.block_array([[terms.M, terms.G.T], [terms.G, None]], format="csc")
    matrix = sp.csc_matrix(sp.diags_array(scale) @ matrix @ sp.diags_array(scale))
    rhs = scale * np.concatenate([np.zeros(n), -terms.g_dot])
    solution = solve_if_regular(matrix, rhs)
    return (scale * (solve_regularized(matrix, rhs, n) if solution is None else solution))[:n]


def _kkt_equilibration(masses: np.ndarray, G: Any) -> np.ndarray:
    """Return symmetric scaling factors of the KKT matrix: unit masses and rows of G."""
    largest = float(masses.max()) or 1.0
    scale = 1 / np.sqrt(np.where(masses > NEGLIGIBLE_MASS * largest, masses, largest))
    sizes = np.asarray(abs(G) @ scale)
    return np.concatenate([scale, 1 / np.where(sizes > 0, sizes, 1.0)])
