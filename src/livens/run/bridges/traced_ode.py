"""Traced right-hand side of an initial value problem: a first-order model with arguments as parameters."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens import schemes
from livens.engine.lru_cache import LruCache
from livens.errors import ModelError
from livens.expressions.evaluate import Evaluator
from livens.expressions.function_key import value_key
from livens.expressions.numpy_tracing import TracingError, trace_numpy
from livens.models.first_order import FirstOrder
from livens.run.prepare import Prepared, prepare
from livens.types import ModelFunction

#: Rules for the arguments that become parameters, in the order in which they are tried. An integer may be used as an
#: index or as the length of a loop, and an array in a function that needs numbers.
_PARAMETER_RULES = ("numbers", "floats", "none")
#: Largest array whose entries become parameters.
_MAX_PARAMETER_ARRAY = 64
#: Largest number of cached models.
_MAX_CACHED_MODELS = 64

#: Largest difference of an expression and a value of its function, relative to the value and to the largest value.
_VALUE_TOLERANCE, _SCALE_TOLERANCE = 1e-7, 1e-9
#: Change of the time, relative to the interval, and of the state at which expressions are compared with functions.
_TIME_CHANGE, _STATE_CHANGE = 0.37, 0.013

_models: LruCache[Hashable, TracedOde] = LruCache(_MAX_CACHED_MODELS)


def traced_ode(
    fun: ModelFunction,
    t_span: tuple[float, float],
    y0: np.ndarray,
    args: Sequence[object],
    events: Sequence[ModelFunction],
) -> TracedOde:
    """Return the traced right-hand side, from a cache if the function and all values it depends on are equal.

    A cached right-hand side is used only if it also agrees with the function at the initial time and state.
    """
    sign = 1.0 if t_span[1] >= t_span[0] else -1.0
    functions = fun, *events
    key = value_key(*functions)
    if key is not None:
        key = key, y0.size, sign, tuple(map(_structure, args))
        for argument_key in (None, value_key(*args)):  # arguments that are parameters are not part of the key
            ode = _models.get((key, argument_key))
            is_equal = ode is not None and (argument_key is not None or ode.is_parametric)
            if ode is not None and is_equal and ode.agrees(functions, t_span[0], y0, args):
                return _models.put((key, argument_key), ode)
    ode = TracedOde(fun, y0.size, args, events, sign)
    ode.verify(functions, t_span, y0, args)
    argument_key = None if ode.is_parametric else value_key(*args)
    if key is not None and (ode.is_parametric or argument_key is not None):
        _models.put((key, argument_key), ode)
    return ode


def _structure(argument: Any) -> Hashable:
    """Return the type and shape of an argument."""
    if type(argument) in (tuple, list):
        return type(argument), tuple(map(_structure, argument))
    return type(argument), getattr(argument, "shape", ())


class TracedOde:
    """Traced right-hand side and event functions. Backward integration uses the time ``s = -t`` (`sign` is -1).

    Numbers among the further arguments are parameters of the model, so that other values need no compilation.
    """

    def __init__(
        self,
        fun: ModelFunction,
        n: int,
        args: Sequence[object],
        events: Sequence[ModelFunction],
        sign: float,
    ) -> None:
        self.n, self._sign = n, sign
        first_error: ModelError | None = None
        for rule in _PARAMETER_RULES if args else ("none",):
            self._rule = rule
            try:
                self._trace(fun, args, events)
                return
            except TracingError as error:
                first_error = first_error or error
        assert first_error is not None
        raise first_error

    def _trace(self, fun: ModelFunction, args: Sequence[object], events: Sequence[ModelFunction]) -> None:
        values = self.parameter_values(args)
        t, x, k = ca.SX.sym("t"), ca.SX.sym("x", self.n), ca.SX.sym("args", len(values))
        symbols = iter(m.from_casadi(k))
        arguments = [self._bind(argument, symbols) for argument in args]
        time, state = m.Scalar(self._sign * t if self._sign < 0 else t), m.from_casadi(x)

        def column(function: ModelFunction, size: int) -> Any:
            traced = trace_numpy(function, time, state, *arguments).column
            if traced.numel() == 1 and size > 1:
                return ca.repmat(traced, size, 1)
            if traced.numel() != size:
                raise TracingError(f"it returns {traced.numel()} numbers, not {size}")
            return traced

        rhs = self._sign * column(fun, self.n)
        self.n_operations = int(ca.Function("rhs", [t, x, k], [rhs]).n_instructions())
        self._jacobian = t, x, k, rhs
        event_columns = [column(event, 1) for event in events]
        self._evaluate = Evaluator([t, x, k], [self._sign * rhs, *event_columns])
        self.event_functions = [_model_function([t, x, k], expression) for expression in event_columns]
        self.model = FirstOrder(
            self.n,
            rhs=_model_function([t, x, k], rhs, is_vector=True),
            parameters={"args": np.array(values)} if values else None,
        )
        #: True if all arguments are parameters.
        self.is_parametric = all(self._is_parameter(item) for item in _leaves(args))
        self._prepared: dict[str, Prepared] = {}

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
    def agrees(self, functions: Sequence[ModelFunction], t: float, y: np.ndarray, args: Sequence[object]) -> bool:
        """Return True if the expressions have the values of the functions at a time and state.

        Values that are not finite, and calls that raise, are not compared.
        """
        expected = _values(functions, t, y, args)
        traced = self._evaluate(self._sign * t, y, self.parameter_values(args))
        for values, expression, size in zip(expected, traced, self._scales, strict=True):
            if values is None:
                continue
            error = np.abs(values - expression[:, 0])
            if not (error <= _VALUE_TOLERANCE * np.abs(values) + _SCALE_TOLERANCE * size).all():
                return False
        return True

    def verify(
        self, functions: Sequence[ModelFunction], t_span: tuple[float, float], y: np.ndarray, args: Sequence[object]
    ) -> None:
        """Raise `TracingError` unless the expressions agree with the functions at the initial and another state."""
        times = t_span[0], t_span[0] + _TIME_CHANGE * (t_span[1] - t_span[0])
        states = y, y * (1 + _STATE_CHANGE * np.cos(np.arange(y.size)))
        sampled = [_values(functions, time, state, args) for time, state in zip(times, states, strict=True)]
        self._scales = [
            max((float(np.abs(values).max()) for values in column if values is not None), default=0.0)
            for column in zip(*sampled, strict=True)
        ]
        if not all(self.agrees(functions, times[i], states[i], args) for i in (0, 1, 0)):
            raise TracingError("its values change from call to call: it depends on more than its arguments")

    def prepared(self, scheme: str) -> Prepared:
        """Return the model prepared with a scheme."""
        if scheme not in self._prepared:
            self._prepared[scheme] = prepare(self.model, scheme, compile=False)
        return self._prepared[scheme]

    @functools.cached_property
    def is_smooth(self) -> bool:
        """True if the right-hand side has a Taylor series."""
        return not schemes.get("taylor").unmet_requirements(self.model)

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


def _values(
    functions: Sequence[ModelFunction], t: float, y: np.ndarray, args: Sequence[object]
) -> list[np.ndarray | None]:
    """Return the values of functions as vectors; None if a call raises, or for values that are not finite."""
    values: list[np.ndarray | None] = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function in functions:
            try:
                value = np.asarray(function(t, y.copy(), *args), dtype=float).ravel()
            except Exception:  # integration of the expressions meets the same state
                values.append(None)
                continue
            values.append(value if np.isfinite(value).all() else None)
    return values


def _model_function(symbols: list[Any], expression: Any, is_vector: bool = False) -> ModelFunction:
    """Return a model function of ``t x k`` that evaluates an expression."""
    function = ca.Function("traced", symbols, [expression])

    def evaluate(t: Any, x: Any, k: Any) -> Any:
        arguments = m.to_casadi(k.args) if symbols[2].numel() else ca.SX(0, 1)
        value = m.from_casadi(ca.densify(function(t.sx, m.to_casadi(x), arguments)))
        return value if is_vector else value[0]

    return evaluate
