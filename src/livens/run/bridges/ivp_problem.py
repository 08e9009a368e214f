"""Checked arguments of `livens.solve_ivp`, with the messages of SciPy."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from livens import schemes
from livens.errors import CallError, InputError
from livens.types import ModelFunction

#: Methods of SciPy: explicit ones, implicit ones, and those that switch.
EXPLICIT, IMPLICIT, SWITCHING = ("RK23", "RK45", "DOP853"), ("Radau", "BDF"), ("auto", "LSODA")
SCIPY_METHODS = (*EXPLICIT, *IMPLICIT, "LSODA")
#: Default relative and absolute tolerance of the methods of SciPy, and of "auto" and the schemes of livens.
_SCIPY_TOLERANCES, _TOLERANCES = (1e-3, 1e-6), (1e-9, 1e-12)
#: Smallest relative tolerance, as in SciPy.
_MIN_RTOL = 100 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class IvpProblem:
    """Checked arguments of `solve_ivp`, see `checked_problem`."""

    fun: ModelFunction
    t0: float
    tf: float
    y0: np.ndarray
    method: str
    t_eval: np.ndarray | None
    args: tuple[object, ...]
    rtol: np.ndarray
    atol: np.ndarray
    first_step: float | None
    max_step: float
    #: Event functions, and (terminal count, direction) of each; None without events.
    events: tuple[ModelFunction, ...] | None
    event_rules: tuple[tuple[int, int], ...]
    #: The right-hand side receives the state as a matrix of one column.
    is_vectorized: bool

    @property
    def sign(self) -> float:
        return 1.0 if self.tf >= self.t0 else -1.0

    @property
    def functions(self) -> tuple[ModelFunction, ...]:
        """Right-hand side and events."""
        return self.fun, *(self.events or ())

    def check_initial_rate(self) -> None:
        """Raise `InputError` if ``fun(t0, y0)`` has a wrong size or is not finite: SciPy would not end."""
        if not self.y0.size:
            return
        dtype = complex if np.iscomplexobj(self.y0) else float
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                state = self.y0[:, None] if self.is_vectorized else self.y0
                rate = np.asarray(self.fun(self.t0, state.copy(), *self.args))
            except TypeError as error:
                raise InputError(f"`fun(t, y, *args)` fails at the initial time and state: {error}") from error
            rate = rate if np.iscomplexobj(rate) else rate.astype(dtype)
        if rate.size not in (1, self.y0.size):
            raise InputError(f"`fun` must return {self.y0.size} numbers, got {rate.size}.")
        if not np.isfinite(rate).all():
            raise InputError(f"`fun` is not finite at the initial time and state: {rate.tolist()!r}.")


def checked_problem(
    fun: ModelFunction,
    t_span: Sequence[float],
    y0: ArrayLike,
    method: str | type,
    t_eval: ArrayLike | None,
    args: Iterable[object] | None,
    rtol: ArrayLike | None,
    atol: ArrayLike | None,
    first_step: float | None,
    max_step: float,
    events: ModelFunction | Sequence[ModelFunction] | None,
    vectorized: bool = False,
) -> IvpProblem:
    """Return the checked arguments of `solve_ivp`."""
    name = method.__name__ if inspect.isclass(method) else method
    if not isinstance(name, str):
        raise InputError(f"`method` must be one of {SCIPY_METHODS}, 'auto' or the name of a scheme, got {name!r}.")
    if name not in (*SCIPY_METHODS, *SWITCHING):
        schemes.get(name)
    try:
        t0, tf = map(float, t_span)
    except (TypeError, ValueError, OverflowError):
        raise CallError(f"`t_span` must be two numbers, the initial and the final time, got {t_span!r}.") from None
    if math.isnan(tf) or not math.isfinite(t0):
        raise InputError(f"`t_span` must start at a finite time and must not contain NaN, got {(t0, tf)!r}.")
    if args is not None:
        try:
            args = tuple(args)
        except TypeError as error:
            raise CallError(
                "Supplied 'args' cannot be unpacked. Please supply `args` as a tuple (e.g. `args=(1,)`)"
            ) from error
    state = _as_array("y0", y0)
    if state.ndim != 1:
        raise InputError("`y0` must be 1-dimensional.")
    if not np.isfinite(state).all():
        raise InputError("All components of the initial state `y0` must be finite.")
    max_step = max_step if type(max_step) is float else _as_number("max_step", max_step)
    first_step = None if first_step is None else _as_number("first_step", first_step)
    if not max_step > 0:
        raise InputError("`max_step` must be positive.")
    if first_step is not None and not first_step > 0:
        raise InputError("`first_step` must be positive.")
    if first_step is not None and first_step > abs(tf - t0):
        raise InputError("`first_step` exceeds bounds.")
    default_rtol, default_atol = _SCIPY_TOLERANCES if name in SCIPY_METHODS else _TOLERANCES
    relative = _as_real_array("rtol", default_rtol if rtol is None else rtol)
    absolute = _as_real_array("atol", default_atol if atol is None else atol)
    for tolerance_name, tolerances in (("rtol", relative), ("atol", absolute)):
        if math.isnan(tolerances.sum()):
            raise InputError(f"`{tolerance_name}` must not be NaN, got {tolerances[()]!r}.")
    if relative.ndim and relative.shape != state.shape:
        raise InputError("`rtol` has wrong shape.")
    if relative.min(initial=np.inf) < _MIN_RTOL:
        warnings.warn(
            f"At least one element of `rtol` is too small. Setting `rtol = np.maximum(rtol, {_MIN_RTOL})`.",
            stacklevel=4,
        )
        relative = np.maximum(relative, _MIN_RTOL)
    if absolute.ndim and absolute.shape != state.shape:
        raise InputError("`atol` has wrong shape.")
    if absolute.min(initial=np.inf) < 0:
        raise InputError("`atol` must be positive.")
    event_functions = _checked_events(events)
    return IvpProblem(
        fun,
        t0,
        tf,
        state,
        name,
        _checked_output_times(t_eval, t0, tf),
        args or (),
        relative,
        absolute,
        first_step,
        max_step,
        event_functions,
        tuple(_event_rule(event) for event in event_functions or ()),
        vectorized,
    )


def _as_array(name: str, value: Any) -> np.ndarray:
    """Return an array of real or complex numbers."""
    try:
        numbers = np.asarray(value)
        return numbers if numbers.dtype.kind in "biufc" else numbers.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise CallError(f"`{name}` must be an array of numbers, got {value!r}.") from None


def _as_real_array(name: str, value: Any) -> np.ndarray:
    numbers = _as_array(name, value)
    if np.iscomplexobj(numbers):
        raise CallError(f"`{name}` must be real, got {value!r}.")
    return numbers.astype(float)


def _as_number(name: str, value: Any) -> float:
    number = _as_real_array(name, value)
    if number.size != 1:
        raise CallError(f"`{name}` must be a number, got {value!r}.")
    return float(number.item())


def _checked_events(events: Any) -> tuple[ModelFunction, ...] | None:
    if events is None:
        return None
    functions = (events,) if callable(events) else tuple(events) if isinstance(events, Iterable) else (None,)
    if not all(map(callable, functions)):
        raise CallError(f"`events` must be a function or a sequence of functions, got {events!r}.")
    return functions


def _checked_output_times(t_eval: Any, t0: float, tf: float) -> np.ndarray | None:
    if t_eval is None:
        return None
    times = _as_real_array("t_eval", t_eval)
    if times.ndim != 1:
        raise InputError("`t_eval` must be 1-dimensional.")
    if not np.all(times >= min(t0, tf)) or not np.all(times <= max(t0, tf)):
        raise InputError("Values in `t_eval` are not within `t_span`.")
    if np.any(np.diff(times) * (1 if tf > t0 else -1) <= 0):
        raise InputError("Values in `t_eval` are not properly sorted.")
    return times


def _event_rule(event: ModelFunction) -> tuple[int, int]:
    """Return the number of occurrences after which an event is terminal (0: never), and its direction."""
    terminal = _as_number("terminal", getattr(event, "terminal", None) or 0)
    if not terminal.is_integer() or terminal < 0:
        raise InputError("The `terminal` attribute of each event must be a boolean or positive integer.")
    return int(terminal), int(np.sign(_as_number("direction", getattr(event, "direction", 0) or 0)))
