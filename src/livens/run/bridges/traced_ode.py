"""Traced right-hand side of an initial value problem: a first-order model with arguments as parameters.

A trace is cached by the functions and all values on which they depend. Functions with values that cannot be read are
traced in every call; models of equal expressions are shared. Every trace is compared with calls of the functions.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens import schemes
from livens.engine.lru_cache import LruCache
from livens.errors import ModelError
from livens.expressions.evaluate import BatchEvaluator, Evaluator
from livens.expressions.function_key import value_key
from livens.expressions.numpy_tracing import TracingError, trace_numpy
from livens.models.first_order import FirstOrder
from livens.run.bridges.ivp_problem import IvpProblem
from livens.run.prepare import Prepared, prepare
from livens.types import ModelFunction

#: Rules for the arguments that become parameters, in the order in which they are tried. An integer may be used as an
#: index or as the length of a loop, and an array in a function that needs numbers.
_PARAMETER_RULES = ("numbers", "floats", "none")
#: Largest array whose entries become parameters.
_MAX_PARAMETER_ARRAY = 64
#: Largest number of cached traces, and of models.
_MAX_CACHED_TRACES, _MAX_CACHED_MODELS = 256, 64

#: Largest difference of an expression and a value of its function, relative to the value and to the largest value.
_VALUE_TOLERANCE, _SCALE_TOLERANCE = 1e-7, 1e-9
#: Change of the time, relative to the interval, and of the state at which expressions are compared with functions.
_TIME_CHANGE, _STATE_CHANGE = 0.37, 0.013
#: Relative change of time and state within which values of expressions may differ by round-off or by a switch, and
#: largest error relative to the difference of the values.
_ROUNDOFF_CHANGE, _MAX_VARIATION = 1e-10, 4.0

#: Number of rows of a solution that are compared with the functions at once.
COMPARED_ROWS = 2

_traces: LruCache[Hashable, TracedOde] = LruCache(_MAX_CACHED_TRACES)
_models: LruCache[str, OdeModel] = LruCache(_MAX_CACHED_MODELS)


def traced_ode(problem: IvpProblem, renew: bool = False) -> tuple[TracedOde, bool]:
    """Return the traced right-hand side and events, and True if they are from the cache.

    A cached trace has equal functions and equal values on which they depend. A new trace agrees with the functions
    at the initial time and state. `renew` replaces a cached trace.
    """
    args = problem.args
    key = value_key(*problem.functions)
    if key is not None:
        key = key, problem.y0.size, problem.sign, problem.is_vectorized, tuple(map(_structure, args))
        if not renew:
            ode = _traces.get((key, None))  # arguments that are parameters are not part of the key
            if ode is None and (argument_key := value_key(*args)) is not None:
                ode = _traces.get((key, argument_key))
            if ode is not None:
                return ode, True
    ode = TracedOde(problem)
    ode.verify(problem)
    argument_key = None if ode.is_parametric else value_key(*args)
    if key is not None and (ode.is_parametric or argument_key is not None):
        _traces.put((key, argument_key), ode)
    return ode, False


def _structure(argument: Any) -> Hashable:
    """Return the type and shape of an argument."""
    if type(argument) in (tuple, list):
        return type(argument), tuple(map(_structure, argument))
    return type(argument), getattr(argument, "shape", ())


class TracedOde:
    """Traced right-hand side and event functions. Backward integration uses the time ``s = -t`` (`sign` is -1).

    Numbers among the further arguments are parameters of the model, so that other values need no compilation.
    """

    def __init__(self, problem: IvpProblem) -> None:
        self._sign, args = problem.sign, problem.args
        first_error: ModelError | None = None
        for rule in _PARAMETER_RULES if args else ("none",):
            self._rule = rule
            try:
                self.model = self._trace(problem)
                break
            except TracingError as error:
                first_error = first_error or error
        else:
            assert first_error is not None
            raise first_error
        #: True if all arguments are parameters.
        self.is_parametric = all(self._is_parameter(item) for item in _leaves(args))

    def _trace(self, problem: IvpProblem) -> OdeModel:
        n, n_values = problem.y0.size, len(self.parameter_values(problem.args))
        t, x, k = ca.SX.sym("t"), ca.SX.sym("x", n), ca.SX.sym("args", n_values)
        symbols = iter(m.from_casadi(k))
        arguments = [self._bind(argument, symbols) for argument in problem.args]
        time, state = m.Scalar(self._sign * t if self._sign < 0 else t), m.from_casadi(x)
        columns = []
        for i, function in enumerate(problem.functions):
            size = 1 if i else n
            argument = state[:, None] if problem.is_vectorized and not i else state
            column = trace_numpy(function, time, argument, *arguments).column
            if column.numel() not in (1, size):
                raise TracingError(f"it returns {column.numel()} numbers, not {size}")
            columns.append(column if column.numel() == size else ca.repmat(column, size, 1))
        columns[0] = self._sign * columns[0]
        expressions = ca.Function("ode", [t, x, k], [ca.densify(column) for column in columns])
        key = expressions.serialize()
        model = _models.get(key)
        return _models.put(key, OdeModel(expressions) if model is None else model)

    def _is_parameter(self, argument: object) -> bool:
        if self._rule == "none" or isinstance(argument, (bool, np.bool_)):
            return False
        if isinstance(argument, np.ndarray):
            is_small = 0 < argument.size <= _MAX_PARAMETER_ARRAY
            return self._rule == "numbers" and argument.dtype.kind in "fi" and is_small
        if isinstance(argument, (float, np.floating)):
            return True
        return self._rule == "numbers" and isinstance(argument, (int, np.integer))

    def _bind(self, argument: Any, symbols: Iterator[Any]) -> Any:
        """Return an argument with symbols in place of numbers."""
        if type(argument) in (tuple, list):
            return type(argument)(self._bind(item, symbols) for item in argument)
        if not self._is_parameter(argument):
            return argument
        if not isinstance(argument, np.ndarray):
            return next(symbols)
        bound = np.empty(argument.shape, dtype=object)
        for index in np.ndindex(argument.shape):
            bound[index] = next(symbols)
        return bound

    def parameter_values(self, args: Sequence[object]) -> list[float]:
        """Return the numbers of arguments that are parameters."""
        parameters = [argument for argument in _leaves(args) if self._is_parameter(argument)]
        return [float(value) for argument in parameters for value in np.ravel(argument)]

    # -- agreement with the functions --------------------------------------------------------------------------------
    def agrees(self, problem: IvpProblem, parameters: Sequence[float], times: np.ndarray, states: np.ndarray) -> bool:
        """Return True if the expressions have the values of the functions at these times and states, one per row."""
        traced = self.model.evaluate_rows(self._sign * times, states, parameters)
        with np.errstate(all="ignore"):
            values = _values(problem, times, states.copy())
            for i, (expressions, expected) in enumerate(zip(traced, values, strict=True)):
                if expected is None or expected.shape[1] not in (1, expressions.shape[1]):
                    return False
                if not i:
                    expected = self._sign * expected
                sizes = np.abs(expected)
                is_close = np.abs(expected - expressions) <= _VALUE_TOLERANCE * sizes + _SCALE_TOLERANCE * sizes.max()
                if is_close.all():
                    continue
                time_scales = np.maximum(np.abs(times), abs(problem.tf - problem.t0))
                points = [(self._sign * t, scale, y) for t, scale, y in zip(times, time_scales, states, strict=True)]
                if not self._is_explained(i, expected, expressions, points, parameters):
                    return False
        return True

    def _is_explained(
        self,
        i: int,
        expected: np.ndarray,
        expressions: np.ndarray,
        points: Sequence[tuple[float, float, np.ndarray]],
        parameters: Sequence[float],
    ) -> bool:
        """Return True if differences are within round-off, next to a switch, or between values that are not finite.

        `points` are times, their scales and states.
        """
        size = np.abs(expected).max(initial=0.0, where=np.isfinite(expected))
        largest = max(float(np.abs(y).max()) for _, _, y in points)
        for value, expression, (t, time_scale, y) in zip(expected, expressions, points, strict=True):
            error, tolerance = np.abs(value - expression), _VALUE_TOLERANCE * np.abs(value) + _SCALE_TOLERANCE * size
            if not np.isfinite(value).all():
                if np.isfinite(expression).all():
                    return False
            elif not (error <= tolerance).all():
                variation = self._variation(i, t, time_scale, y, np.maximum(np.abs(y), largest), parameters)
                if not (error <= tolerance + _MAX_VARIATION * variation).all():
                    return False
        return True

    def _variation(
        self, i: int, t: float, time_scale: float, y: np.ndarray, scale: np.ndarray, parameters: Sequence[float]
    ) -> np.ndarray:
        """Return the largest change of the values of a function within the round-off of the time and the state."""
        change, signs = _ROUNDOFF_CHANGE, np.where(np.arange(y.size) % 2, 1.0, -1.0)
        points = [
            (t + time_change * time_scale, y + state_change * scale)
            for time_change in (0.0, change, -change)
            for state_change in (0.0, change, -change, change * signs, -change * signs)
        ]
        values = np.array([self.model.evaluate(*point, parameters)[i][:, 0] for point in points])
        return np.nan_to_num(np.ptp(values, axis=0))

    def verify(self, problem: IvpProblem) -> None:
        """Raise `TracingError` unless the expressions agree with the functions at the initial and another state."""
        y = problem.y0
        start, other = problem.t0, problem.t0 + _TIME_CHANGE * (problem.tf - problem.t0)
        times = np.array([start, start, other])
        states = np.array([y, y, y * (1 + _STATE_CHANGE * np.cos(np.arange(y.size)))], dtype=float)
        with np.errstate(all="ignore"):
            values = _values(problem, times[2:], states[2:].copy())
        n_rows = 3 if all(value is not None and np.isfinite(value).all() for value in values) else 2  # or out of range
        if not self.agrees(problem, self.parameter_values(problem.args), times[:n_rows], states[:n_rows]):
            raise TracingError("its values change from call to call: it depends on more than its arguments")


class OdeModel:
    """First-order model of expressions ``[s * rhs, event, ...]`` of (t, x, k), with s = -1 for backward integration."""

    def __init__(self, expressions: ca.Function) -> None:
        t, x, k = expressions.sx_in()
        rhs, *events = expressions.call([t, x, k])
        self._jacobian = t, x, k, rhs
        self.n_operations = int(ca.Function("rhs", [t, x, k], [rhs]).n_instructions())
        self.evaluate = Evaluator([t, x, k], [rhs, *events])
        self._evaluate_rows = BatchEvaluator(expressions, COMPARED_ROWS)
        self.event_functions = [_model_function([t, x, k], event) for event in events]
        self._model = FirstOrder(
            x.numel(),
            rhs=_model_function([t, x, k], rhs, is_vector=True),
            parameters={"args": np.zeros(k.numel())} if k.numel() else None,
        )
        self._prepared: dict[str, Prepared] = {}

    def prepared(self, scheme: str) -> Prepared:
        """Return the model prepared with a scheme."""
        if scheme not in self._prepared:
            self._prepared[scheme] = prepare(self._model, scheme, compile=False)
        return self._prepared[scheme]

    def evaluate_rows(self, times: np.ndarray, states: np.ndarray, parameters: Sequence[float]) -> list[np.ndarray]:
        """Return one array of values for each function, with a row for each time and state."""
        if times.size == COMPARED_ROWS:
            return self._evaluate_rows(times[:, None], states, parameters)
        rows = [self.evaluate(t, y, parameters) for t, y in zip(times, states, strict=True)]
        return [np.array([value[:, 0] for value in column]) for column in zip(*rows, strict=True)]

    @functools.cached_property
    def is_smooth(self) -> bool:
        """True if the right-hand side has a Taylor series."""
        return not schemes.get("taylor").unmet_requirements(self._model)

    @functools.cached_property
    def _jacobian_evaluator(self) -> Evaluator:
        t, x, k, rhs = self._jacobian
        return Evaluator([t, x, k], [ca.jacobian(rhs, x)])

    def decay_rate(self, t: float, x: np.ndarray, values: Sequence[float]) -> float:
        """Return the largest decay rate ``-Re(lambda)`` of the eigenvalues of the Jacobian."""
        (jacobian,) = self._jacobian_evaluator(t, x, values)
        return float(np.max(-np.linalg.eigvals(jacobian).real)) if np.all(np.isfinite(jacobian)) else 0.0


def _leaves(args: Sequence[Any]) -> Iterator[Any]:
    for argument in args:
        if type(argument) in (tuple, list):
            yield from _leaves(argument)
        else:
            yield argument


def _values(problem: IvpProblem, times: np.ndarray, states: np.ndarray) -> list[np.ndarray | None]:
    """Return the values of every function, one row for each time and state; None if the number of values changes.

    Rows of calls that raise are NaN.
    """
    values: list[np.ndarray | None] = []
    for i, function in enumerate(problem.functions):
        arguments = states[:, :, None] if problem.is_vectorized and not i else states
        rows = [_value(function, t, y, problem.args) for t, y in zip(times.tolist(), arguments, strict=True)]
        sizes = {row.size for row in rows if row is not None}
        if len(sizes) < 2:
            nan = np.full(max(sizes, default=1), np.nan)
            values.append(np.array([nan if row is None else row for row in rows]))
        else:
            values.append(None)
    return values


def _value(function: ModelFunction, t: float, y: np.ndarray, args: Sequence[object]) -> np.ndarray | None:
    try:
        return np.array(function(t, y, *args), dtype=float).ravel()
    except Exception:  # the user's function may raise anything; integration of the expressions meets the same state
        return None


def _model_function(symbols: list[Any], expression: Any, is_vector: bool = False) -> ModelFunction:
    """Return a model function of ``t x k`` that evaluates an expression."""
    function = ca.Function("traced", symbols, [expression])

    def evaluate(t: Any, x: Any, k: Any) -> Any:
        arguments = m.to_casadi(k.args) if symbols[2].numel() else ca.SX(0, 1)
        value = m.from_casadi(ca.densify(function(t.sx, m.to_casadi(x), arguments)))
        return value if is_vector else value[0]

    return evaluate
