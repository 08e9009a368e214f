"""Observables of a model, evaluated at every row of a run by native code."""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.engine.newton import time_loop
from livens.engine.observables.drift_monitor import accumulate_states
from livens.engine.stepper import step_inputs
from livens.models.base import Model
from livens.types import Expr


def observable_function(model: Model, columns: Expr, multipliers: Any = None) -> ca.Function:
    """Return a column of observables of a model's view as a function with the inputs of kernels."""
    view = model.view
    x = ca.SX.sym("x", 0) if multipliers is None else multipliers
    inputs = [x, view.state, ca.vertcat(ca.SX.sym("h"), view.t, view.k)]
    return ca.Function("observe", inputs, [ca.densify(columns)])


class ObservableKernel:
    """Column of observables of a model, compiled to native code over engine states.

    Parameters
    ----------
    model : Model
        Model whose view the expressions are written in.
    columns : casadi.SX
        Column of expressions, one per observable.
    multipliers : casadi.SX, optional
        Symbols of the Lagrange multipliers, if the expressions depend on them.
    """

    def __init__(self, model: Model, columns: Expr, multipliers: Any = None) -> None:
        function = observable_function(model, columns, multipliers)
        self.width = int(function.numel_out(0))
        self._code = compile_function_kernel(function, "observe", opt_level=1)
        self._single: _SingleRow | None = None

    def row(self, t: float, z: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the observables of one state, (width,); quicker than a table of one row.

        Parameters
        ----------
        t : float
            Time.
        z : ndarray
            State, (n_state,).
        k : ndarray
            Parameter vector.

        Returns
        -------
        ndarray
            Observables, (width,).
        """
        single = self._single
        if single is None or single.z.size != z.size:
            single = self._single = _SingleRow(self, z.size, k)
        return single(t, z, k)

    @property
    def address(self) -> int:
        """Address of the native code, valid during the lifetime of this object."""
        return self._code.address

    def __call__(self, t: np.ndarray, Z: np.ndarray, k: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """Return one row for each state.

        Parameters
        ----------
        t : ndarray
            Times, (n_rows,).
        Z : ndarray
            States, (n_rows, n_state).
        k : ndarray
            Parameter vector.
        X : ndarray, optional
            Lagrange multipliers, (n_rows, n_multipliers), if the expressions depend on them.

        Returns
        -------
        ndarray
            Observables, (n_rows, width).
        """
        out = np.empty((len(t), self.width))
        Z = np.ascontiguousarray(Z)
        t = np.ascontiguousarray(t, dtype=float)
        time_loop.tabulate(self._code.address, Z if X is None else X, Z, step_inputs(0.0, 0.0, k), t, out)
        return out

    def accumulate(self, t: np.ndarray, Z: np.ndarray, k: np.ndarray, *monitor: Any) -> None:
        """Update the drift monitor with these states, without a table of observables.

        Parameters
        ----------
        t : ndarray
            Times, (n_rows,).
        Z : ndarray
            States, (n_rows, n_state).
        k : ndarray
            Parameter vector.
        *monitor : object
            Further arguments of `livens.engine.observables.drift_monitor.accumulate_states`.
        """
        rows = Z if Z.flags.c_contiguous else np.ascontiguousarray(Z)
        accumulate_states(self._code.address, t, rows, step_inputs(0.0, 0.0, k), *monitor)


class _SingleRow:
    """Evaluation of an `ObservableKernel` at one state at a time, with its arrays and their addresses."""

    def __init__(self, kernel: ObservableKernel, n_state: int, k: np.ndarray) -> None:
        self.k, self.z, self._c, self._t = k, np.empty(n_state), step_inputs(0.0, 0.0, k), np.empty(1)
        self._k_values, self._out = self._c[2:], np.empty(kernel.width)
        entry, _ = time_loop._tabulate._entry  # type: ignore[attr-defined]
        z, c, t, out = (array.__array_interface__["data"][0] for array in (self.z, self._c, self._t, self._out))
        self._call = functools.partial(entry, kernel.address, z, z, c, t, out, 1, n_state, n_state, kernel.width)

    def __call__(self, t: float, z: np.ndarray, k: np.ndarray) -> np.ndarray:
        if k is not self.k:
            self._k_values[:], self.k = k, k
        self.z[:], self._t[0] = z, t
        self._call()
        return self._out.copy()
