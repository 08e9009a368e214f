"""LAPACK routines of SciPy (dense LU, Cholesky and QR factors) without `scipy.linalg`.

The import of `scipy.linalg` takes longer than the first step of a small model; that of the routines takes milliseconds.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import scipy


def _lapack_module() -> Any:
    """Return the extension module of the LAPACK wrappers, by its file; `scipy.linalg.lapack` if there is none."""
    folder = Path(scipy.__file__).parent / "linalg"
    spec = importlib.machinery.PathFinder.find_spec("_flapack", [str(folder)])
    if spec is None or spec.loader is None:
        return importlib.import_module("scipy.linalg.lapack")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_routines = _lapack_module()
dgecon, dgeqrf, dgesv = _routines.dgecon, _routines.dgeqrf, _routines.dgesv
dgetrf, dgetri, dpotrf = _routines.dgetrf, _routines.dgetri, _routines.dpotrf


def least_squares(A: np.ndarray, b: np.ndarray, rcond: float) -> np.ndarray:
    """Return the minimum-norm least-squares solution of ``A x = b`` by a complete orthogonal factorization (gelsy)."""
    m, n = A.shape
    rhs = np.zeros((max(m, n), 1 if b.ndim == 1 else b.shape[1]), order="F")
    rhs[:m] = b.reshape(m, -1)
    work, info = _routines.dgelsy_lwork(m, n, rhs.shape[1], rcond)
    _, x, _, _, info = _routines.dgelsy(A, rhs, np.zeros((n, 1), dtype=np.int32), rcond, int(work), False, True)
    if info < 0:
        raise ValueError(f"argument {-info} of dgelsy is illegal")
    solution = x[:n]
    return np.asarray(solution[:, 0] if b.ndim == 1 else solution)
