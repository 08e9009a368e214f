"""Loss function of the observed states of a run, with first and second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.evaluate import Evaluator
from livens.expressions.numbers import array
from livens.expressions.parameters import Namespace
from livens.expressions.read import Reader
from livens.models.model import Model
from livens.run.tape import Tape


@dataclass(frozen=True)
class Slope:
    """Derivatives of a loss by every observed state, by the parameters, and by h through the times of the states."""

    bars: np.ndarray
    k: np.ndarray
    h: float


class Loss:
    """Sum over the observed states of a function that is written like an observable, with data as d."""

    def __init__(self, model: Model, loss: Callable[..., Any], data: Any, rows: int) -> None:
        view, shared = model.view, model.shared
        self._data = np.zeros((rows, 0))
        if data is not None:
            given = array("data", data)
            if given.ndim == 0 or len(given) != rows:
                found = len(given) if given.ndim else "one number"
                raise InputError(f"data must have one row for each of the {rows} observed states, got {found}")
            self._data = given.reshape(rows, -1)
        if not callable(loss):
            raise InputError(f"the loss must be a function of the state, got {loss!r}")
        d = ca.SX.sym("d", self._data.shape[1])
        given_symbols = {**view.symbols, "t": view.t, "k": Namespace(shared.symbols(view.k[: shared.size])), "d": d}
        expression = ca.densify(Reader(given_symbols)("the loss", loss, ()))
        self._inputs, self._size, self._rows = [view.state, view.t, view.k, d], int(view.state.numel()), rows
        self._at = ca.vertcat(view.state, view.k, view.t)
        self._by = ca.densify(ca.gradient(expression, self._at))
        self._single = Evaluator(self._inputs, [expression, self._by]) if rows == 1 else None
        self._function = ca.Function("loss", self._inputs, [expression, self._by]).map(rows)
        self._second: Any = None

    def _arguments(self, tape: Tape) -> tuple[Any, ...]:
        k = np.repeat(tape.k[:, None], self._rows, axis=1)
        return tape.states[:, : self._size].T, tape.t[None, :], k, self._data.T

    def __call__(self, tape: Tape) -> tuple[float, Slope]:
        """Return the value and its derivatives."""
        if self._single is not None:
            found, slope = self._single(tape.states[0, : self._size], tape.t[0], tape.k, self._data[0])
            return float(found[0, 0]), self._slope(tape, slope)
        value, by = self._function(*self._arguments(tape))
        return float(np.sum(np.array(value))), self._slope(tape, np.array(by))

    def second(self, tape: Tape, dz: np.ndarray, dk: np.ndarray, dh: float) -> Slope:
        """Return the directional derivative of the gradient along the rows dz, dk and dh."""
        if self._second is None:
            along = ca.SX.sym("along", self._at.numel())
            change = ca.densify(ca.jtimes(self._by, self._at, along))
            self._second = ca.Function("change", [*self._inputs, along], [change]).map(self._rows)
        k = np.repeat(dk[:, None], self._rows, axis=1)
        moved = np.vstack([dz[:, : self._size].T, k, (tape.t_by_h * dh)[None, :]])
        return self._slope(tape, np.array(self._second(*self._arguments(tape), moved)))

    def _slope(self, tape: Tape, by: np.ndarray) -> Slope:
        bars = np.zeros_like(tape.states)
        bars[:, : self._size] = by[: self._size].T
        return Slope(bars, by[self._size : -1].sum(axis=1), float(by[-1] @ tape.t_by_h))
