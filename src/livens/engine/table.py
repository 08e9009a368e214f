"""Expressions of a model, evaluated at every row of a run by native code."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.engine import loop
from livens.engine.fold import fold_states
from livens.engine.kernels import simple_kernel
from livens.engine.steps import step_constants
from livens.models.model import Model


def observing(model: Model, columns: Any, multipliers: Any = None) -> ca.Function:
    """A column of expressions of a model's view as a function of what kernels are given."""
    view = model.view
    x = ca.SX.sym("x", 0) if multipliers is None else multipliers
    inputs = [x, view.state, ca.vertcat(ca.SX.sym("h"), view.t, view.k)]
    return ca.Function("observe", inputs, [ca.densify(columns)])


class Table:
    """A column of expressions of a model's view, as native code over states as the engine lays them out.

    With `multipliers`, symbols of them, the expressions may depend on these too.
    """

    def __init__(self, model: Model, columns: Any, multipliers: Any = None) -> None:
        function = observing(model, columns, multipliers)
        self.width = int(function.numel_out(0))
        self._code = simple_kernel(function, "observe", effort=1)

    @property
    def address(self) -> int:
        """Where its code is, as long as this object lives."""
        return self._code.address

    def __call__(self, t: np.ndarray, Z: np.ndarray, k: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """One row for each state; X are the multipliers, if the expressions depend on them."""
        out = np.empty((len(t), self.width))
        Z = np.ascontiguousarray(Z)
        t = np.ascontiguousarray(t, dtype=float)
        loop.tabulate(self._code.address, Z if X is None else X, Z, step_constants(0.0, 0.0, k), t, out)
        return out

    def fold(self, t: np.ndarray, Z: np.ndarray, k: np.ndarray, *so_far: Any) -> None:
        """Take the rows of these states into account, without a table of them; see `livens.engine.fold.fold_states`."""
        rows = Z if Z.flags.c_contiguous else np.ascontiguousarray(Z)
        fold_states(self._code.address, t, rows, step_constants(0.0, 0.0, k), *so_far)
