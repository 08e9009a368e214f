"""Initial value problems with the signature of `scipy.integrate.solve_ivp`, compiled."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from livens import schemes
from livens.errors import (
    CallError,
    InputError,
    IntegrationError,
    LivensError,
    LivensWarning,
    explain_call_errors,
    suggestion,
)
from livens.expressions.numpy_tracing import TracingError
from livens.results.result import Result
from livens.run.bridges.ode_result import OdeResult, make_result
from livens.run.bridges.traced_ode import TracedOde, traced_ode
from livens.run.events.event import Event
from livens.run.step_control import StepControl
from livens.types import ModelFunction

#: Methods of SciPy: explicit ones, implicit ones, and those that switch.
_EXPLICIT, _IMPLICIT, _SWITCHING = ("RK23", "RK45", "DOP853"), ("Radau", "BDF"), ("auto", "LSODA")
_SCIPY_METHODS = (*_EXPLICIT, *_IMPLICIT, "LSODA")
#: Options of the methods of SciPy besides the arguments of `solve_ivp`.
_SCIPY_OPTIONS = ("jac_sparsity", "lband", "uband", "min_step")
#: Default relative and absolute tolerance of the methods of SciPy, and of "auto" and the schemes of livens.
_SCIPY_TOLERANCES, _TOLERANCES = (1e-3, 1e-6), (1e-9, 1e-12)
#: Smallest relative tolerance, as in SciPy; smallest and largest tolerance of Taylor series.
_MIN_RTOL, _TAYLOR_TOLERANCES = 100 * float(np.finfo(float).eps), (1e-17, 0.5)
#: Relative tolerance below which "radau-iia-5" is used instead of "radau-iia-3".
_HIGH_ORDER_RTOL = 1e-7
#: Taylor steps before the first check for stiffness, and between further checks.
_STIFFNESS_CHECK_STEPS = 400, 1600
#: A problem is stiff if the fastest decay within a step, and within the remaining time, exceeds these exponents.
_STIFF_STEP_DECAY, _STIFF_TOTAL_DECAY = 2.0, 2000.0
#: Largest number of operations of a right-hand side, and largest number of states, that are compiled.
MAX_OPERATIONS, MAX_STATES = 4000, 200


@explain_call_errors
def solve_ivp(
    fun: ModelFunction,
    t_span: Sequence[float],
    y0: ArrayLike,
    method: str | type = "auto",
    t_eval: ArrayLike | None = None,
    dense_output: bool = False,
    events: ModelFunction | Sequence[ModelFunction] | None = None,
    vectorized: bool = False,
    args: Iterable[object] | None = None,
    *,
    rtol: ArrayLike | None = None,
    atol: ArrayLike | None = None,
    first_step: float | None = None,
    max_step: float = np.inf,
    jac: object = None,
    fallback: str = "scipy",
    **options: object,
) -> OdeResult:
    """Solve an initial value problem ``y' = fun(t, y)``, with the signature of `scipy.integrate.solve_ivp`.

    The function is traced and compiled. Functions that cannot be traced are integrated by SciPy, with a warning.

    Parameters
    ----------
    fun : callable
        Right-hand side ``fun(t, y, *args)``, written with NumPy, SciPy and `math`. It may branch on its arguments, call
        helper functions and fill arrays. It must not change variables outside of it.
    t_span : sequence of float
        Initial and final time. The final time may be the smaller one.
    y0 : array_like of shape (n,)
        Initial state.
    method : str, default "auto"
        "auto": Taylor series for smooth functions, with a change to Radau IIA for stiff ones; Radau IIA for functions
        that are not smooth. "RK23", "RK45", "DOP853": Taylor series. "Radau", "BDF": Radau IIA. "LSODA": as "auto".
        Any name of a scheme of livens with error control, such as "gauss-3".
    t_eval : array_like, optional
        Times of the output. Default: the steps.
    dense_output : bool, default False
        Return a continuous solution as `sol`.
    events : callable or sequence of callable, optional
        Functions ``event(t, y, *args)`` whose zeros are detected, with the attributes `terminal` and `direction` of
        SciPy.
    vectorized : bool, default False
        Accepted for compatibility; not used.
    args : tuple, optional
        Further arguments of `fun` and of the events. Numbers are parameters: other values need no compilation.
    rtol, atol : float or array_like, optional
        Relative and absolute tolerance. Default: 1e-9 and 1e-12 for "auto" and schemes of livens; 1e-3 and 1e-6 for the
        methods of SciPy.
    first_step : float, optional
        First step size. Default: estimated.
    max_step : float, default inf
        Largest step size.
    jac : optional
        Accepted for compatibility; not used, because derivatives are exact.
    fallback : {"scipy", "error"}, default "scipy"
        Integrate by SciPy if the function cannot be traced, or raise the error.
    **options
        Further options of SciPy (`jac_sparsity`, `lband`, `uband`, `min_step`), used by SciPy only.

    Returns
    -------
    OdeResult
        Fields ``t y sol t_events y_events nfev njev nlu status message success`` as in SciPy, and `compiled`, `scheme`,
        `runs`. `nfev`, `njev` and `nlu` count steps and Newton iterations, not calls of `fun`.

    Raises
    ------
    InputError
        If an argument is invalid. It is a `ValueError`, as in SciPy, and also a `TypeError` if the type is wrong or the
        argument is unknown.
    TracingError
        If the function cannot be traced and `fallback` is "error". The message contains the reason and the line.

    Warns
    -----
    LivensWarning
        If SciPy integrates. The message contains the reason and the line.

    Examples
    --------
    >>> import numpy as np
    >>> import livens as lv
    >>> def pendulum(t, y, length):
    ...     dydt = np.zeros(2)
    ...     dydt[0] = y[1]
    ...     dydt[1] = -9.81 / length * np.sin(y[0])
    ...     return dydt
    >>> solution = lv.solve_ivp(pendulum, (0, 10), [1.0, 0.0], args=(2.0,))
    >>> solution.compiled, solution.y.shape[0]
    (True, 2)
    >>> energy = 0.5 * solution.y[1] ** 2 - 9.81 / 2.0 * np.cos(solution.y[0])
    >>> bool(np.ptp(energy) < 1e-8)
    True
    """
    for name in options:
        if name not in _SCIPY_OPTIONS:
            arguments = (*inspect.signature(solve_ivp).parameters, *_SCIPY_OPTIONS)
            raise CallError(f"solve_ivp has no argument '{name}'{suggestion(name, arguments)}")
    problem = _checked_problem(fun, t_span, y0, method, t_eval, args, rtol, atol, first_step, max_step, events)
    if fallback not in ("scipy", "error"):
        raise InputError(f"`fallback` must be 'scipy' or 'error', got {fallback!r}.")
    try:
        return problem.solve(bool(dense_output))
    except TracingError as error:
        if fallback == "error":
            raise
        problem.check_initial_rate()
        warnings.warn(f"not compiled, SciPy integrates: {error}", LivensWarning, stacklevel=3)
    scipy_options = dict(
        t_eval=t_eval, dense_output=dense_output, events=events, vectorized=vectorized, args=args, **options
    )
    return problem.solve_by_scipy({**scipy_options, **({} if jac is None else {"jac": jac})})


@dataclass(frozen=True)
class _Problem:
    """Checked arguments of `solve_ivp`."""

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

    @property
    def sign(self) -> float:
        return 1.0 if self.tf >= self.t0 else -1.0

    # -- integration -------------------------------------------------------------------------------------------------
    def solve(self, dense_output: bool) -> OdeResult:
        """Return the solution by livens; raise `TracingError` if SciPy has to integrate."""
        if np.iscomplexobj(self.y0):
            raise TracingError("the state is complex")
        if not self.y0.size or self.tf == self.t0:
            raise TracingError("there is nothing to integrate")
        if not np.isfinite(self.tf):
            raise TracingError("the end of the interval is infinite")
        if self.y0.size > MAX_STATES:
            raise TracingError(f"{self.y0.size} states would take long to compile (at most {MAX_STATES} are compiled)")
        ode = traced_ode(self.fun, (self.t0, self.tf), self.y0, self.args, self.events or ())
        if ode.n_operations > MAX_OPERATIONS:
            raise TracingError(
                f"{ode.n_operations} operations would take long to compile (at most {MAX_OPERATIONS} are compiled)"
            )
        integration = _Integration(self, ode)
        message, status = "", 0
        try:
            integration.run()
            status = int(integration.is_stopped)
        except IntegrationError as error:
            if error.result is None or error.result.t.size < 2 or not ode.is_smooth:
                raise TracingError(str(error)) from error
            integration.runs.append(error.result)
            message, status = str(error), -1
        except LivensError as error:
            raise TracingError(str(error)) from error
        return make_result(
            integration.runs,
            self.sign,
            status=status,
            message=message,
            t_eval=self.t_eval,
            dense_output=dense_output,
            n_events=None if self.events is None else len(self.events),
        )

    def check_initial_rate(self) -> None:
        """Raise `InputError` if ``fun(t0, y0)`` has a wrong size or is not finite: SciPy would not end."""
        if not self.y0.size:
            return
        dtype = complex if np.iscomplexobj(self.y0) else float
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                rate = np.asarray(self.fun(self.t0, self.y0.copy(), *self.args))
            except TypeError as error:
                raise InputError(f"`fun(t, y, *args)` fails at the initial time and state: {error}") from error
            rate = rate if np.iscomplexobj(rate) else rate.astype(dtype)
        if rate.size not in (1, self.y0.size):
            raise InputError(f"`fun` must return {self.y0.size} numbers, got {rate.size}.")
        if not np.isfinite(rate).all():
            raise InputError(f"`fun` is not finite at the initial time and state: {rate.tolist()!r}.")

    def solve_by_scipy(self, options: dict[str, object]) -> OdeResult:
        """Return the solution by SciPy."""
        from scipy import integrate

        method = self.method if self.method in _SCIPY_METHODS else "LSODA" if np.isfinite(self.tf) else "RK45"
        if np.iscomplexobj(self.y0) and method == "LSODA":
            method = "RK45"
        step = {} if self.first_step is None else {"first_step": self.first_step}
        tolerances = dict(rtol=self.rtol[()], atol=self.atol[()], max_step=self.max_step)
        result = integrate.solve_ivp(
            self.fun, (self.t0, self.tf), self.y0, method=method, **{**options, **step, **tolerances}
        )
        return OdeResult(**result, compiled=False, scheme=f"SciPy {method}", runs=[])

    def scheme(self, ode: TracedOde, method: str) -> str:
        """Return the scheme of a method."""
        if method in _EXPLICIT and ode.is_smooth:
            return "taylor"
        if method in (*_EXPLICIT, *_IMPLICIT):
            return "radau-iia-3" if float(np.min(self.rtol)) > _HIGH_ORDER_RTOL else "radau-iia-5"
        return method

    def control(self, scheme: str, y: np.ndarray, max_steps: int) -> StepControl:
        """Return the step-size control of a scheme from a state."""
        if scheme.startswith("taylor"):
            # one tolerance relative to the largest entry: no entry has a larger error than by SciPy's rule
            sizes = np.abs(y)
            scale, smallest = max(float(sizes.max()), 1e-300), float(sizes.min())
            if self.rtol.ndim or self.atol.ndim:
                allowed, rtol = float(np.min(self.rtol * sizes + self.atol)), float(self.rtol.min())
            else:
                rtol = float(self.rtol)
                allowed = rtol * smallest + float(self.atol)
            low, high = _TAYLOR_TOLERANCES
            tolerance = min(max(min(rtol, allowed / scale), low), high)
            return _step_control(_rounded_down(tolerance), None, self.max_step, max_steps)
        relative, absolute = (tuple(np.broadcast_to(value, y.shape).tolist()) for value in (self.rtol, self.atol))
        return _step_control(relative, tuple(max(value, 1e-300) for value in absolute), self.max_step, max_steps)


@functools.lru_cache(maxsize=256)
def _step_control(
    tolerance: float | tuple[float, ...], absolute: tuple[float, ...] | None, largest: float, max_steps: int
) -> StepControl:
    """Return a step-size control; equal controls share their validated run."""
    return StepControl(tolerance=tolerance, absolute=absolute, largest=largest, most_steps=max_steps)


def _rounded_down(tolerance: float) -> float:
    """Return the largest quarter power of two below a tolerance, so that similar initial states share their control."""
    return float(2.0 ** (math.floor(4 * math.log2(tolerance)) / 4))


class _Integration:
    """Sequence of runs from the initial to the final time."""

    def __init__(self, problem: _Problem, ode: TracedOde) -> None:
        self._problem, self._ode = problem, ode
        self._t, self._end, self._y = problem.sign * problem.t0, problem.sign * problem.tf, problem.y0.astype(float)
        values = ode.parameter_values(problem.args)
        self._values, self._parameters = values, {"args": np.array(values)} if values else None
        self.runs: list[Result] = []
        self._counts = [0] * len(problem.event_rules)

    @property
    def is_stopped(self) -> bool:
        """True if a terminal event has ended the last run."""
        return bool(self.runs) and self.runs[-1].message.startswith("stopped by the event")

    @property
    def _is_finished(self) -> bool:
        return self.is_stopped or self._t >= self._end

    def run(self) -> None:
        """Integrate to the end, or to a terminal event."""
        problem, ode = self._problem, self._ode
        if problem.method not in _SWITCHING:
            self._advance(problem.scheme(ode, problem.method))
            if not self._is_finished:  # the first step of a given size
                self._advance(problem.scheme(ode, problem.method))
            return
        implicit = problem.scheme(ode, "Radau")
        if not ode.is_smooth:
            self._advance(implicit)
            return
        first, further = _STIFFNESS_CHECK_STEPS
        self._advance("taylor", first)
        while not self._is_finished:
            if self._is_stiff():
                self._advance(implicit)
                return
            self._advance("taylor", further)

    def _is_stiff(self) -> bool:
        """Return True if stability limits the steps: a series of order N is stable for about N/e decay times."""
        last = self.runs[-1]
        decay = self._ode.decay_rate(self._t, self._y, self._values)
        step = float(last.t[-1] - last.t[-2])
        return decay * step > _STIFF_STEP_DECAY and decay * (self._end - self._t) > _STIFF_TOTAL_DECAY

    def _advance(self, scheme: str, max_steps: int = 0) -> None:
        problem = self._problem
        control: StepControl | None = problem.control(scheme, self._y, max_steps)
        h = problem.first_step if not self.runs else None
        end = self._end
        if scheme.startswith("taylor") and h is not None:  # a series chooses its steps: the first one is a run
            control, end = None, min(self._t + h, self._end)
        run = self._ode.prepared(scheme).run(
            x0=self._y,
            t0=self._t,
            t_end=end,
            h=h,
            control=control,
            events=self._events(),
            parameters=self._parameters,
            progress=False,
        )
        self.runs.append(run)
        self._t, self._y = float(run.t[-1]), run.x[-1].copy()
        for event in run.events:
            self._counts[int(event.name)] += 1

    def _events(self) -> list[Event] | None:
        """Return the events; occurrences of earlier runs count for terminal events."""
        rules = zip(self._ode.event_functions, self._problem.event_rules, self._counts, strict=True)
        return [
            Event(function, name=str(i), direction=direction, terminal=max(terminal - count, 1) if terminal else False)
            for i, (function, (terminal, direction), count) in enumerate(rules)
        ] or None


# -- checks of arguments, with the messages of SciPy -------------------------------------------------------------------
def _checked_problem(
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
) -> _Problem:
    name = method.__name__ if inspect.isclass(method) else method
    if not isinstance(name, str):
        raise InputError(f"`method` must be one of {_SCIPY_METHODS}, 'auto' or the name of a scheme, got {name!r}.")
    if name not in (*_SCIPY_METHODS, *_SWITCHING):
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
    max_step = _as_number("max_step", max_step)
    first_step = None if first_step is None else _as_number("first_step", first_step)
    if not max_step > 0:
        raise InputError("`max_step` must be positive.")
    if first_step is not None and not first_step > 0:
        raise InputError("`first_step` must be positive.")
    if first_step is not None and first_step > abs(tf - t0):
        raise InputError("`first_step` exceeds bounds.")
    default_rtol, default_atol = _SCIPY_TOLERANCES if name in _SCIPY_METHODS else _TOLERANCES
    relative = _as_real_array("rtol", default_rtol if rtol is None else rtol)
    absolute = _as_real_array("atol", default_atol if atol is None else atol)
    for tolerance_name, tolerances in (("rtol", relative), ("atol", absolute)):
        if np.isnan(tolerances).any():
            raise InputError(f"`{tolerance_name}` must not be NaN, got {tolerances[()]!r}.")
    if relative.ndim and relative.shape != state.shape:
        raise InputError("`rtol` has wrong shape.")
    if (relative < _MIN_RTOL).any():
        warnings.warn(
            f"At least one element of `rtol` is too small. Setting `rtol = np.maximum(rtol, {_MIN_RTOL})`.",
            stacklevel=4,
        )
        relative = np.maximum(relative, _MIN_RTOL)
    if absolute.ndim and absolute.shape != state.shape:
        raise InputError("`atol` has wrong shape.")
    if (absolute < 0).any():
        raise InputError("`atol` must be positive.")
    event_functions = _checked_events(events)
    return _Problem(
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
