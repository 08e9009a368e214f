"""Expressions of a model, evaluated at every row of a run by native code."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.engine import loop
from livens.engine.kernels import simple_kernel
from livens.models.model import Model


def kernel_of(model: Model, columns: Any, multipliers: Any = None) -> int:
    """Native code for a column of expressions of the model's view, over states as the engine lays them out."""
    view = model.view
    x = ca.SX.sym("x", 0) if multipliers is None else multipliers
    inputs = [x, view.state, ca.vertcat(ca.SX.sym("h"), view.t, view.k)]
    return simple_kernel(ca.Function("observe", inputs, [columns]), "observe", effort=1)


def tabulate(
    kernel: int, width: int, t: np.ndarray, Z: np.ndarray, k: np.ndarray, X: np.ndarray | None = None
) -> np.ndarray:
    """Evaluate native code of `kernel_of` at every state."""
    out = np.empty((len(t), width))
    c = np.concatenate([[0.0, 0.0], k])
    Z = np.ascontiguousarray(Z)
    loop.tabulate(kernel, Z if X is None else X, Z, c, np.ascontiguousarray(t, dtype=float), out)
    return out
