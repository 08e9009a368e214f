"""Optimisation of parameters and initial values with exact gradients, by SciPy or IPOPT."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy.optimize

from livens.analysis.study.design_variables import DesignVariables, as_prepared
from livens.errors import InputError, IntegrationError, explain_call_errors
from livens.models.base import Model
from livens.models.problem import Problem
from livens.run.derivatives.gradient import LossTask
from livens.run.derivatives.hessian import unit_tangents
from livens.run.derivatives.member_map import make_plan
from livens.run.prepare import Prepared
from livens.run.progress import Progress
from livens.schemes.core.scheme import Scheme
from livens.types import ArrayLike, FloatArray, ModelFunction
from livens.validation import check_integer

#: SciPy methods with bounds and gradients; the last two support constraints.
METHODS = ("L-BFGS-B", "TNC", "SLSQP", "trust-constr")


@dataclass(frozen=True)
class Optimum:
    """Result of an optimisation.

    Parameters
    ----------
    values : dict of str to float
        Optimal parameters and initial values by name.
    loss : float
        Loss at the optimum.
    gradient : dict of str to float
        Gradient of the loss by name.
    constraints : dict of str to float
        Values of the constraint functions.
    history : ndarray
        Loss of every run, in the order of evaluation.
    evaluations : int
        Number of runs.
    converged : bool
        True if the optimiser converged.
    message : str
        Termination message of the optimiser.
    """

    values: dict[str, float]
    loss: float
    gradient: dict[str, float]
    constraints: dict[str, float]
    history: np.ndarray
    evaluations: int
    converged: bool
    message: str

    def __str__(self) -> str:
        lines = [f"{name} = {value:.8g}" for name, value in self.values.items()]
        lines += [f"with {name} = {value:.6g}" for name, value in self.constraints.items()]
        lines.append(f"loss = {self.loss:.6g} after {self.evaluations} runs: {self.message}")
        return "\n".join(lines)


@explain_call_errors
def optimise(
    model: Model | Problem | Prepared,
    loss: ModelFunction,
    by: str | Sequence[str] | Mapping[str, object],
    *,
    constraints: Mapping[str, object] | None = None,
    bounds: Mapping[str, object] | None = None,
    every: int | None = None,
    data: Any = None,
    method: str | None = None,
    q0: ArrayLike | None = None,
    v0: Any = None,
    p0: Any = None,
    x0: Any = None,
    parameters: Mapping[str, object] | None = None,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
    keep: str = "all",
    most: int = 200,
    progress: bool | None = None,
) -> Optimum:
    """Minimise a loss over parameters and initial values.

    Parameters
    ----------
    model : Model, Problem or Prepared
        Model to simulate.
    loss : callable
        Loss function, as in `livens.value_and_gradient`.
    by : str, sequence of str, or dict of str to float
        Names of the parameters and initial values to optimise, optionally with initial guesses: ``{"g": 9.0}``.
    constraints : dict of str to tuple, optional
        ``(function, low, high)`` by name: a function of the final state bounded by `low` and `high`; equal bounds
        define an equality constraint.
    bounds : dict of str to tuple, optional
        Lower and upper bounds by name.
    every : int, optional
        Steps between the states passed to the loss, as in `livens.value_and_gradient`.
    data : optional
        Data passed to the loss, as in `livens.value_and_gradient`.
    method : str, optional
        "L-BFGS-B" (default without constraints), "SLSQP" (default with constraints), "TNC" or "trust-constr" of SciPy,
        or "ipopt" of CasADi.
    q0, v0, p0, x0 : array_like of shape (n,), optional
        Initial values that are not optimised.
    parameters : dict of str to float, optional
        Parameter values that are not optimised.
    scheme : str or Scheme, optional
        Integration scheme.
    h : float, optional
        Step size.
    t_end : float, optional
        Final time.
    t0 : float, optional
        Initial time.
    keep : str, default "all"
        States kept for the backward sweep, as in `livens.value_and_gradient`.
    most : int, default 200
        Maximum number of runs (approximate).
    progress : bool, optional
        Show a progress bar.

    Returns
    -------
    Optimum
        Optimal values, loss and history.

    Raises
    ------
    InputError
        If the method is unknown or does not support constraints, or if a constraint is invalid.

    Examples
    --------

    >>> import livens as lv
    >>> ball = lv.System("x z", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1])
    >>> optimum = lv.study.optimise(  # a throw over 20 m within 1.5 s, with the least speed at the end
    ...     ball, lambda v: v @ v, {"v0": [5.0, 5.0]}, q0=[0, 0], h=0.1, t_end=1.5,
    ...     constraints={"x": (lambda q: q[0], 20, 20), "z": (lambda q: q[1], 0, 0)},
    ... )
    >>> round(optimum.values["v0[0]"], 2), round(optimum.values["v0[1]"], 2)
    (13.33, 7.36)
    """
    step = as_prepared(model, scheme=scheme, h=h)
    variables = DesignVariables(step, by, dict(q0=q0, v0=v0, p0=p0, x0=x0), parameters)
    low, high = variables.bounds(bounds)
    constraint_functions = _check_constraints(constraints)
    chosen_method = ("SLSQP" if constraint_functions else "L-BFGS-B") if method is None else method
    if not isinstance(chosen_method, str) or chosen_method not in (*METHODS, "ipopt"):
        raise InputError(f"method must be one of {', '.join((*METHODS, 'ipopt'))}, got {method!r}")
    if constraint_functions and chosen_method in METHODS[:2]:
        raise InputError(f"method '{chosen_method}' does not support constraints: choose SLSQP, trust-constr or ipopt")
    limit = check_integer("most", most, minimum=1)
    tasks = [LossTask(loss, every, data, keep)]
    tasks += [LossTask(function, None, None, keep) for function, _, _ in constraint_functions.values()]
    with Progress("optimise", limit, progress, unit="runs") as bar:
        run = dict(h=h, t_end=t_end, t0=t0, project=True)
        task = _Objective(step, variables, tasks, run, bar)
        if chosen_method == "ipopt":
            solution, converged, message = _ipopt(task, variables.initial_guess, low, high, constraint_functions, limit)
        else:
            solution, converged, message = _scipy(
                task, variables.initial_guess, low, high, constraint_functions, chosen_method, limit
            )
    values, gradients = task(solution)
    return Optimum(
        values=dict(zip(variables.labels, map(float, solution), strict=True)),
        loss=float(values[0]),
        gradient=dict(zip(variables.labels, map(float, gradients[0]), strict=True)),
        constraints=dict(zip(constraint_functions, map(float, values[1:]), strict=True)),
        history=np.array(task.history),
        evaluations=len(task.history),
        converged=converged,
        message=message,
    )


def _check_constraints(constraints: Mapping[str, Any] | None) -> dict[str, tuple[Any, float, float]]:
    if constraints is None:
        return {}
    if not isinstance(constraints, Mapping):
        raise InputError(f"constraints must map names to (function, low, high), got {constraints!r}")
    checked = {}
    for name, specification in constraints.items():
        try:
            function, least, greatest = specification
            low, high = float(least), float(greatest)
        except (TypeError, ValueError):
            raise InputError(f"constraint '{name}' must be (function, low, high), got {specification!r}") from None
        if not callable(function) or not low <= high:
            raise InputError(
                f"constraint '{name}' must be (function, low, high) with low <= high, got {specification!r}"
            )
        checked[str(name)] = function, low, high
    return checked


class _Objective:
    """Loss and constraint functions with their gradients, cached for the last point."""

    def __init__(
        self,
        step: Prepared,
        variables: DesignVariables,
        tasks: Sequence[LossTask],
        run: Mapping[str, bool | float | None],
        bar: Progress,
    ) -> None:
        self._step, self._variables, self._tasks, self._run, self._bar = step, variables, tasks, dict(run), bar
        self._cached: tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None = None
        self.history: list[float] = []

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._cached is not None and np.array_equal(self._cached[0], x):
            return self._cached[1]
        initial, parameters = self._variables.to_inputs(x)
        plan = make_plan(self._step, initial, parameters=parameters, **self._run)
        values, gradients = [], []
        for task in self._tasks:
            tape, initial_sensitivity, cost = task.run(plan)
            value, derivative = cost(tape)
            a, g = tape.adjoint(derivative.cotangents)
            adjoint = initial_sensitivity.vjp(a, g[2:] + derivative.k, g[0] + derivative.h)
            shifts = unit_tangents(self._step.model, initial_sensitivity, self._variables.labels).values()
            gradients.append(
                [
                    sum(float(adjoint.initial[n] @ d) for n, d in s.initial.items()) + float(adjoint.k @ s.k)
                    for s in shifts
                ]
            )
            values.append(value)
        self.history.append(float(values[0]))
        self._bar.update(len(self.history))
        self._cached = x.copy(), (np.array(values), np.array(gradients))
        return self._cached[1]


def _scipy(
    task: _Objective,
    initial_guess: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    constraint_functions: Mapping[str, Any],
    method: str,
    limit: int,
) -> tuple[np.ndarray, bool, str]:
    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        values, gradients = task(x)
        return float(values[0]), gradients[0]

    options: dict[str, object] = {"maxfun": limit} if method in METHODS[:2] else {"maxiter": limit}
    limits: Any = ()
    if constraint_functions:
        lower, upper = (
            np.array([c[1] for c in constraint_functions.values()]),
            np.array([c[2] for c in constraint_functions.values()]),
        )
        limits = scipy.optimize.NonlinearConstraint(
            lambda x: task(x)[0][1:], lower, upper, jac=lambda x: task(x)[1][1:]
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="delta_grad == 0.0")  # occurs for linear functions
        solution = scipy.optimize.minimize(
            value,
            initial_guess,
            jac=True,
            method=method,
            bounds=scipy.optimize.Bounds(low, high),
            constraints=limits,
            options=options,
        )
    return np.asarray(solution.x), bool(solution.success), str(solution.message)


class _GradientCallback(ca.Callback):
    """CasADi callback that returns the gradients of an objective."""

    def __init__(self, task: _Objective, size: int, rows: int) -> None:
        ca.Callback.__init__(self)
        self._task, self._size, self._rows = task, size, rows
        self.construct("gradients", {})

    def get_n_in(self) -> int:
        return 2

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> Any:
        return ca.Sparsity.dense(self._size if i == 0 else self._rows, 1)

    def get_sparsity_out(self, i: int) -> Any:
        return ca.Sparsity.dense(self._rows, self._size)

    def eval(self, arguments: Sequence[ca.DM]) -> list[FloatArray]:
        return [self._task(np.array(arguments[0]).ravel())[1]]


class _ValueCallback(ca.Callback):
    """CasADi callback that returns the values of an objective; NaN for a failed run makes IPOPT shorten the step."""

    def __init__(self, task: _Objective, size: int, rows: int) -> None:
        ca.Callback.__init__(self)
        self._task, self._size, self._rows = task, size, rows
        self._gradients = _GradientCallback(task, size, rows)
        self.construct("values", {})

    def get_n_in(self) -> int:
        return 1

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> Any:
        return ca.Sparsity.dense(self._size, 1)

    def get_sparsity_out(self, i: int) -> Any:
        return ca.Sparsity.dense(self._rows, 1)

    def eval(self, arguments: Sequence[ca.DM]) -> list[FloatArray]:
        try:
            return [self._task(np.array(arguments[0]).ravel())[0]]
        except IntegrationError:
            return [np.full(self._rows, np.nan)]

    def has_jacobian(self) -> bool:
        return True

    def get_jacobian(self, name: str, inames: object, onames: object, opts: object) -> Any:
        return self._gradients


def _ipopt(
    task: _Objective,
    initial_guess: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    constraint_functions: Mapping[str, Any],
    limit: int,
) -> tuple[np.ndarray, bool, str]:
    rows = 1 + len(constraint_functions)
    values = _ValueCallback(task, initial_guess.size, rows)
    x = ca.MX.sym("x", initial_guess.size)
    outputs = values(x)
    options: Any = {
        "print_time": False,
        "ipopt": {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "max_iter": limit},
    }
    problem: Any = {"x": x, "f": outputs[0], "g": outputs[1:]}
    solver = ca.nlpsol("livens", "ipopt", problem, options)
    lower, upper = [c[1] for c in constraint_functions.values()], [c[2] for c in constraint_functions.values()]
    solution = solver(x0=initial_guess, lbx=low, ubx=high, lbg=lower, ubg=upper)
    statistics = solver.stats()
    return np.array(solution["x"]).ravel(), bool(statistics["success"]), str(statistics["return_status"])
