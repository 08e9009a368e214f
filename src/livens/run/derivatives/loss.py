"""Loss function of the observed states of a run, with first and second derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.evaluate import Evaluator
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import FunctionTracer
from livens.models.base import Model
from livens.run.derivatives.tape import Tape
from livens.types import FloatArray, ModelFunction
from livens.validation import check_array


@dataclass(frozen=True)
class LossGradient:
    """Derivatives of a loss by every observed state, by its parameters, and by h through the times of the states."""

    cotangents: np.ndarray
    k_rows: np.ndarray  # (observed state, parameter)
    h: float

    @property
    def k(self) -> np.ndarray:
        return np.asarray(self.k_rows.sum(axis=0))


class Loss:
    """Sum over the observed states of a function that is written like an observable, with data as d."""

    def __init__(self, model: Model, loss: ModelFunction, data: FloatArray | None, rows: int) -> None:
        view, shared = model.view, model.model_parameters
        self._data = np.zeros((rows, 0))
        if data is not None:
            values = check_array("data", data)
            if values.ndim == 0 or len(values) != rows:
                n_given = len(values) if values.ndim else "one number"
                raise InputError(f"data must have one row for each of the {rows} observed states, got {n_given}")
            self._data = values.reshape(rows, -1)
        if not callable(loss):
            raise InputError(f"the loss must be a function of the state, got {loss!r}")
        d = ca.SX.sym("d", self._data.shape[1])
        symbols = {
            **view.symbols,
            "t": view.t,
            "k": ParameterNamespace(shared.unpack_symbols(view.k[: shared.size])),
            "d": d,
        }
        expression = ca.densify(FunctionTracer(symbols)("the loss", loss, ()))
        self._inputs, self._size, self._rows = [view.state, view.t, view.k, d], int(view.state.numel()), rows
        self._variables = ca.vertcat(view.state, view.k, view.t)
        self._gradient = ca.densify(ca.gradient(expression, self._variables))
        self._single = Evaluator(self._inputs, [expression, self._gradient]) if rows == 1 else None
        self._function = ca.Function("loss", self._inputs, [expression, self._gradient]).map(rows)
        self._gradient_jvp: Any = None

    def _arguments(self, tape: Tape) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        k = tape.observed_parameters.T
        return tape.states[:, : self._size].T, tape.t[None, :], k, self._data.T

    def __call__(self, tape: Tape) -> tuple[float, LossGradient]:
        """Return the value and its derivatives."""
        if self._single is not None:
            single_value, single_gradient = self._single(
                tape.states[0, : self._size], tape.t[0], tape.observed_parameters[0], self._data[0]
            )
            return float(single_value[0, 0]), self._split_gradient(tape, single_gradient)
        value, gradient = self._function(*self._arguments(tape))
        return float(np.sum(np.array(value))), self._split_gradient(tape, np.array(gradient))

    def gradient_jvp(self, tape: Tape, dz: np.ndarray, dk: np.ndarray, dh: float) -> LossGradient:
        """Return the directional derivative of the gradient along the rows dz, dk and dh."""
        if self._gradient_jvp is None:
            direction = ca.SX.sym("along", self._variables.numel())
            derivative = ca.densify(ca.jtimes(self._gradient, self._variables, direction))
            self._gradient_jvp = ca.Function("change", [*self._inputs, direction], [derivative]).map(self._rows)
        k = np.repeat(dk[:, None], self._rows, axis=1)
        tangent = np.vstack([dz[:, : self._size].T, k, (tape.dt_dh * dh)[None, :]])
        return self._split_gradient(tape, np.array(self._gradient_jvp(*self._arguments(tape), tangent)))

    def _split_gradient(self, tape: Tape, gradient: np.ndarray) -> LossGradient:
        cotangents = np.zeros_like(tape.states)
        cotangents[:, : self._size] = gradient[: self._size].T
        return LossGradient(cotangents, gradient[self._size : -1].T.copy(), float(gradient[-1] @ tape.dt_dh))
