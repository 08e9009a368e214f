"""Optimisation of parameters and initial values with exact gradients, by SciPy or IPOPT."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy.optimize

from livens.analysis.study.unknowns import Unknowns, prepared
from livens.errors import InputError, IntegrationError
from livens.expressions.numbers import whole_number
from livens.models.model import Model
from livens.models.problem import Problem
from livens.run.gradient import Differentiated
from livens.run.hessian import directions
from livens.run.prepare import Prepared
from livens.run.progress import Progress
from livens.run.several import plan_of
from livens.schemes.base import Scheme

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


def optimise(
    model: Model | Problem | Prepared,
    loss: Callable[..., Any],
    by: str | Sequence[str] | Mapping[str, Any],
    *,
    constraints: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Any] | None = None,
    every: int | None = None,
    data: Any = None,
    method: str | None = None,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    x0: Any = None,
    parameters: Mapping[str, Any] | None = None,
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
    >>> found = lv.study.optimise(  # a throw over 20 m within 1.5 s, with the least speed at the end
    ...     ball, lambda v: v @ v, {"v0": [5.0, 5.0]}, q0=[0, 0], h=0.1, t_end=1.5,
    ...     constraints={"x": (lambda q: q[0], 20, 20), "z": (lambda q: q[1], 0, 0)},
    ... )
    >>> round(found.values["v0[0]"], 2), round(found.values["v0[1]"], 2)
    (13.33, 7.36)
    """
    step = prepared(model, scheme=scheme, h=h)
    unknowns = Unknowns(step, by, dict(q0=q0, v0=v0, p0=p0, x0=x0), parameters)
    low, high = unknowns.bounds(bounds)
    held = _held(constraints)
    chosen = ("SLSQP" if held else "L-BFGS-B") if method is None else method
    if not isinstance(chosen, str) or chosen not in (*METHODS, "ipopt"):
        raise InputError(f"method must be one of {', '.join((*METHODS, 'ipopt'))}, got {method!r}")
    if held and chosen in METHODS[:2]:
        raise InputError(f"method '{chosen}' does not support constraints: choose SLSQP, trust-constr or ipopt")
    limit = whole_number("most", most, least=1)
    tasks = [Differentiated(loss, every, data, keep)]
    tasks += [Differentiated(function, None, None, keep) for function, _, _ in held.values()]
    with Progress("optimise", limit, progress, unit="runs") as bar:
        run = dict(h=h, t_end=t_end, t0=t0, project=True)
        task = _Task(step, unknowns, tasks, run, bar)
        if chosen == "ipopt":
            found, good, message = _ipopt(task, unknowns.guess, low, high, held, limit)
        else:
            found, good, message = _scipy(task, unknowns.guess, low, high, held, chosen, limit)
    values, slopes = task(found)
    return Optimum(
        values=dict(zip(unknowns.labels, map(float, found), strict=True)),
        loss=float(values[0]),
        gradient=dict(zip(unknowns.labels, map(float, slopes[0]), strict=True)),
        constraints=dict(zip(held, map(float, values[1:]), strict=True)),
        history=np.array(task.history),
        evaluations=len(task.history),
        converged=good,
        message=message,
    )


def _held(constraints: Mapping[str, Any] | None) -> dict[str, tuple[Any, float, float]]:
    if constraints is None:
        return {}
    if not isinstance(constraints, Mapping):
        raise InputError(f"constraints must map names to (function, low, high), got {constraints!r}")
    found = {}
    for name, given in constraints.items():
        try:
            function, least, greatest = given
            low, high = float(least), float(greatest)
        except (TypeError, ValueError):
            raise InputError(f"constraint '{name}' must be (function, low, high), got {given!r}") from None
        if not callable(function) or not low <= high:
            raise InputError(f"constraint '{name}' must be (function, low, high) with low <= high, got {given!r}")
        found[str(name)] = function, low, high
    return found


class _Task:
    """Loss and constraint functions with their gradients, cached for the last point."""

    def __init__(
        self,
        step: Prepared,
        unknowns: Unknowns,
        tasks: Sequence[Differentiated],
        run: Mapping[str, Any],
        bar: Progress,
    ) -> None:
        self._step, self._unknowns, self._tasks, self._run, self._bar = step, unknowns, tasks, dict(run), bar
        self._known: tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None = None
        self.history: list[float] = []

    def __call__(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._known is not None and np.array_equal(self._known[0], numbers):
            return self._known[1]
        start, parameters = self._unknowns.given(numbers)
        plan = plan_of(self._step, start, parameters=parameters, **self._run)
        values, rows = [], []
        for task in self._tasks:
            tape, departure, cost = task.run(plan)
            value, slope = cost(tape)
            a, g = tape.back(slope.bars)
            by = departure.back(a, g[2:] + slope.k, g[0] + slope.h)
            shifts = directions(self._step.model, departure, self._unknowns.labels).values()
            rows.append([sum(float(by.start[n] @ d) for n, d in s.start.items()) + float(by.k @ s.k) for s in shifts])
            values.append(value)
        self.history.append(float(values[0]))
        self._bar.update(len(self.history))
        self._known = numbers.copy(), (np.array(values), np.array(rows))
        return self._known[1]


def _scipy(
    task: _Task, guess: np.ndarray, low: np.ndarray, high: np.ndarray, held: Mapping[str, Any], method: str, limit: int
) -> tuple[np.ndarray, bool, str]:
    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = task(x)
        return float(values[0]), slopes[0]

    options: dict[str, Any] = {"maxfun": limit} if method in METHODS[:2] else {"maxiter": limit}
    limits: Any = ()
    if held:
        lower, upper = np.array([c[1] for c in held.values()]), np.array([c[2] for c in held.values()])
        limits = scipy.optimize.NonlinearConstraint(
            lambda x: task(x)[0][1:], lower, upper, jac=lambda x: task(x)[1][1:]
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="delta_grad == 0.0")  # occurs for linear functions
        found = scipy.optimize.minimize(
            value,
            guess,
            jac=True,
            method=method,
            bounds=scipy.optimize.Bounds(low, high),
            constraints=limits,
            options=options,
        )
    return np.asarray(found.x), bool(found.success), str(found.message)


class _Slopes(ca.Callback):
    """CasADi callback that returns the gradients of an objective."""

    def __init__(self, task: _Task, size: int, rows: int) -> None:
        ca.Callback.__init__(self)
        self._task, self._size, self._rows = task, size, rows
        self.construct("slopes", {})

    def get_n_in(self) -> int:
        return 2

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> Any:
        return ca.Sparsity.dense(self._size if i == 0 else self._rows, 1)

    def get_sparsity_out(self, i: int) -> Any:
        return ca.Sparsity.dense(self._rows, self._size)

    def eval(self, arguments: Any) -> Any:
        return [self._task(np.array(arguments[0]).ravel())[1]]


class _Values(ca.Callback):
    """CasADi callback that returns the values of an objective; NaN for a failed run makes IPOPT shorten the step."""

    def __init__(self, task: _Task, size: int, rows: int) -> None:
        ca.Callback.__init__(self)
        self._task, self._size, self._rows = task, size, rows
        self._slopes = _Slopes(task, size, rows)
        self.construct("values", {})

    def get_n_in(self) -> int:
        return 1

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> Any:
        return ca.Sparsity.dense(self._size, 1)

    def get_sparsity_out(self, i: int) -> Any:
        return ca.Sparsity.dense(self._rows, 1)

    def eval(self, arguments: Any) -> Any:
        try:
            return [self._task(np.array(arguments[0]).ravel())[0]]
        except IntegrationError:
            return [np.full(self._rows, np.nan)]

    def has_jacobian(self) -> bool:
        return True

    def get_jacobian(self, name: str, inames: Any, onames: Any, opts: Any) -> Any:
        return self._slopes


def _ipopt(
    task: _Task, guess: np.ndarray, low: np.ndarray, high: np.ndarray, held: Mapping[str, Any], limit: int
) -> tuple[np.ndarray, bool, str]:
    rows = 1 + len(held)
    values = _Values(task, guess.size, rows)
    x = ca.MX.sym("x", guess.size)
    found = values(x)
    options: Any = {
        "print_time": False,
        "ipopt": {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "max_iter": limit},
    }
    problem: Any = {"x": x, "f": found[0], "g": found[1:]}
    solver = ca.nlpsol("livens", "ipopt", problem, options)
    lower, upper = [c[1] for c in held.values()], [c[2] for c in held.values()]
    answer = solver(x0=guess, lbx=low, ubx=high, lbg=lower, ubg=upper)
    told = solver.stats()
    return np.array(answer["x"]).ravel(), bool(told["success"]), str(told["return_status"])
