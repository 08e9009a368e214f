"""Initial value problems with the signature of `scipy.integrate.solve_ivp`, compiled."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from livens.errors import (
    CallError,
    InputError,
    LivensError,
    LivensWarning,
    explain_call_errors,
    suggestion,
)
from livens.expressions.numpy_tracing import TracingError
from livens.run.bridges.ivp_integration import IvpIntegration
from livens.run.bridges.ivp_problem import SCIPY_METHODS, IvpProblem, checked_problem
from livens.run.bridges.ode_result import OdeResult, make_result
from livens.run.bridges.traced_ode import traced_ode
from livens.types import ModelFunction

#: Options of the methods of SciPy besides the arguments of `solve_ivp`.
_SCIPY_OPTIONS = ("jac_sparsity", "lband", "uband", "min_step")
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
        Call `fun` with states of shape (n, 1), as SciPy calls functions that accept several states.
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
    problem = checked_problem(
        fun, t_span, y0, method, t_eval, args, rtol, atol, first_step, max_step, events, bool(vectorized)
    )
    if fallback not in ("scipy", "error"):
        raise InputError(f"`fallback` must be 'scipy' or 'error', got {fallback!r}.")
    try:
        return _solve_compiled(problem, bool(dense_output))
    except TracingError as error:
        if fallback == "error":
            raise
        problem.check_initial_rate()
        warnings.warn(f"not compiled, SciPy integrates: {error}", LivensWarning, stacklevel=3)
    scipy_options = dict(
        t_eval=t_eval, dense_output=dense_output, events=events, vectorized=vectorized, args=args, **options
    )
    return _solve_by_scipy(problem, {**scipy_options, **({} if jac is None else {"jac": jac})})


def _solve_compiled(problem: IvpProblem, dense_output: bool) -> OdeResult:
    """Return the solution by livens; raise `TracingError` if SciPy has to integrate."""
    if np.iscomplexobj(problem.y0):
        raise TracingError("the state is complex")
    if not problem.y0.size or problem.tf == problem.t0:
        raise TracingError("there is nothing to integrate")
    if not np.isfinite(problem.tf):
        raise TracingError("the end of the interval is infinite")
    if problem.y0.size > MAX_STATES:
        raise TracingError(f"{problem.y0.size} states would take long to compile (at most {MAX_STATES} are compiled)")
    integration = _compiled_integration(problem)
    return make_result(
        integration.runs,
        problem.sign,
        status=-1 if integration.failure else int(integration.is_stopped),
        message=integration.failure,
        t_eval=problem.t_eval,
        dense_output=dense_output,
        n_events=None if problem.events is None else len(problem.events),
    )


def _compiled_integration(problem: IvpProblem) -> IvpIntegration:
    """Return a completed integration whose expressions agree with the functions along the solution."""
    renew = False
    while True:
        ode, is_cached = traced_ode(problem, renew)
        if ode.model.n_operations > MAX_OPERATIONS:
            raise TracingError(
                f"{ode.model.n_operations} operations would take long to compile"
                f" (at most {MAX_OPERATIONS} are compiled)"
            )
        integration = IvpIntegration(problem, ode)
        error: Exception | None = None
        try:
            integration.run()
            if integration.agrees():
                return integration
            reason = (
                "its values along the solution are not those of its expressions: it depends on more than its arguments"
            )
        except LivensError as caught:
            reason, error = str(caught), caught
        if not is_cached:
            raise TracingError(reason) from error
        renew = True


def _solve_by_scipy(problem: IvpProblem, options: dict[str, object]) -> OdeResult:
    """Return the solution by SciPy."""
    from scipy import integrate

    method = problem.method if problem.method in SCIPY_METHODS else "LSODA" if np.isfinite(problem.tf) else "RK45"
    if np.iscomplexobj(problem.y0) and method == "LSODA":
        method = "RK45"
    step = {} if problem.first_step is None else {"first_step": problem.first_step}
    tolerances = dict(rtol=problem.rtol[()], atol=problem.atol[()], max_step=problem.max_step)
    result = integrate.solve_ivp(
        problem.fun, (problem.t0, problem.tf), problem.y0, method=method, **{**options, **step, **tolerances}
    )
    return OdeResult(**result, compiled=False, scheme=f"SciPy {method}", runs=[])
