"""Parameter estimation: nonlinear least squares with exact derivatives of the discrete flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy.optimize

from livens.analysis.study.unknowns import Unknowns, prepared
from livens.errors import InputError, IntegrationError
from livens.expressions.numbers import array, number, whole_number
from livens.models import observable
from livens.models.model import Model
from livens.models.problem import Problem
from livens.run.gradient import tape_of
from livens.run.hessian import directions
from livens.run.prepare import Prepared
from livens.run.progress import Progress
from livens.run.tape import Tape
from livens.schemes.base import Scheme

#: Tolerance, as a fraction of a step, within which data times coincide with step times.
_AT_STEP = 1e-7
#: Rank tolerance: singular values of the Jacobian below this fraction of the largest leave a combination undetermined.
_OPEN = 1e-9
#: Relative sensitivity of the data below which the derivative by a variable is round-off and set to zero.
_FELT = 1e-11


@dataclass(frozen=True)
class ParameterFit:
    """Result of a parameter estimation.

    Parameters
    ----------
    values : dict of str to float
        Estimated parameters and initial values.
    errors : dict of str to float
        Standard errors.
    covariance : ndarray of shape (n, n)
        Covariance matrix in the order of `values`.
    t : ndarray of shape (n_times,)
        Times of the data.
    data : ndarray of shape (n_times, n_outputs)
        Measured values.
    model : ndarray of shape (n_times, n_outputs)
        Values of the fitted motion.
    sigma : ndarray of shape (n_times, n_outputs)
        Standard deviations of the data, as passed or estimated from the residual.
    chi_squared : float
        Sum of squared residuals in units of sigma.
    evaluations : int
        Number of runs.
    converged : bool
        True if the iteration converged.
    undetermined : tuple of str
        Variables that the data do not determine, individually or in combination.
    """

    values: dict[str, float]
    errors: dict[str, float]
    covariance: np.ndarray
    t: np.ndarray
    data: np.ndarray
    model: np.ndarray
    sigma: np.ndarray
    chi_squared: float
    evaluations: int
    converged: bool
    undetermined: tuple[str, ...] = ()

    @property
    def degrees_of_freedom(self) -> int:
        return self.data.size - len(self.values)

    @property
    def correlation(self) -> np.ndarray:
        """Correlation matrix of the estimated values."""
        errors = np.array(list(self.errors.values()))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.covariance / np.outer(errors, errors))

    def __str__(self) -> str:
        width = max(len(name) for name in self.values)
        lines = [f"{name:<{width}} = {value:.6g} ± {self.errors[name]:.2g}" for name, value in self.values.items()]
        free = self.degrees_of_freedom
        lines.append(f"chi^2 = {self.chi_squared:.4g} for {free} degrees of freedom, {self.evaluations} runs")
        if not self.converged:
            lines.append("NOT converged: more evaluations may help")
        if self.undetermined:
            lines.append(f"the data do not determine: {', '.join(self.undetermined)}")
        return "\n".join(lines)


def fit(
    model: Model | Problem | Prepared,
    observe: str | Callable[..., Any],
    data: Any,
    by: str | Sequence[str] | Mapping[str, Any],
    *,
    t: Any,
    sigma: Any = None,
    bounds: Mapping[str, Any] | None = None,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    x0: Any = None,
    parameters: Mapping[str, Any] | None = None,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t0: float | None = None,
    most: int = 100,
    progress: bool | None = None,
) -> ParameterFit:
    """Estimate parameters and initial values from measured data by least squares.

    The derivatives are exact for the discrete flow, and initial values satisfy the constraints. The sum of squares is
    minimised by SciPy's trust region method (Branch, Coleman, Li). The covariance is that of the problem linearised at
    the solution. All other arguments are as in `livens.prepare` and its `run`.

    Parameters
    ----------
    model : Model, Problem or Prepared
        Model to simulate.
    observe : str or callable
        Measured quantity: a function of the state, read like an observable, or the name of an observable.
    data : array_like of shape (n_times, ...)
        Measurements, one row for each time; rows with NaN are ignored.
    by : str, sequence of str, or dict of str to float
        Parameters and initial values (``v0``, or ``v0[1]``) to estimate, optionally with initial guesses
        ``{"g": 9.0, "eta": 0.3}``. Default guesses are the values of the model.
    t : array_like of shape (n_times,)
        Times of the data. Between steps the states are interpolated by a cubic through four states.
    sigma : array_like, optional
        Standard deviation of the data, a number or an array like the data. Default: estimated from the residual.
    bounds : dict of str to tuple, optional
        Lower and upper bounds by name.
    q0, v0, p0, x0 : array_like of shape (n,), optional
        Initial values that are not estimated.
    parameters : dict of str to float, optional
        Parameter values that are not estimated.
    scheme : str or Scheme, optional
        Integration scheme.
    h : float, optional
        Step size.
    t0 : float, optional
        Initial time.
    most : int, default 100
        Maximum number of runs.
    progress : bool, optional
        Show a progress bar.

    Returns
    -------
    ParameterFit
        Values, standard errors and covariance.

    Raises
    ------
    InputError
        If the data, names or bounds are invalid.

    Examples
    --------

    >>> import livens as lv
    >>> import numpy as np
    >>> pendulum = lv.problems.load("simple-pendulum")
    >>> truth = lv.simulate(pendulum, parameters={"g": 9.5}, h=0.01, t_end=1.0, every=10)
    >>> found = lv.study.fit(pendulum, lambda q: q, truth.q, {"g": 9.0}, t=truth.t, h=0.01)
    >>> round(found.values["g"], 6)
    9.5
    """
    step = prepared(model, scheme=scheme, h=h)
    start = dict(q0=q0, v0=v0, p0=p0, x0=x0)
    unknowns = Unknowns(step, by, start, parameters)
    measured = _Measured(step, observe, data, t, sigma, h, t0)
    low, high = unknowns.bounds(bounds)
    limit = whole_number("most", most, least=1)
    with Progress("fit", limit, progress, unit="runs") as bar:
        task = _Task(step, unknowns, measured, h, t0, bar)
        found = scipy.optimize.least_squares(
            task.misfit, unknowns.guess, task.slopes, bounds=(low, high), x_scale="jac", max_nfev=limit, xtol=1e-12
        )
    return _told(unknowns, measured, task, found)


class _Measured:
    """Measured data, and their interpolation from the states at the step times."""

    def __init__(
        self, step: Prepared, observe: Any, data: Any, t: Any, sigma: Any, h: float | None, t0: float | None
    ) -> None:
        plan = step._plan({}, h=h, t0=t0, t_end=_later(step, t0))
        times = _finite_or_nan("t", t).ravel()
        values = _finite_or_nan("data", data)
        if values.ndim == 0 or len(values) != times.size:
            raise InputError(f"data must have one row for each of the {times.size} times in t")
        values = values.reshape(times.size, -1)
        if not np.isfinite(times).all() or (times.size and times.min() < plan.t0):
            raise InputError(f"the times of data must be finite and not before t0 = {plan.t0:g}")
        good = np.isfinite(values).all(axis=1)
        self.t, self.values = times[good], values[good]
        if not self.t.size:
            raise InputError("there are no data to fit")
        place = (self.t - plan.t0) / plan.h
        self.steps = max(1, int(np.ceil(place.max() - _AT_STEP)))
        self.t_end = plan.t0 + self.steps * plan.h
        self.at, self.weights = _interpolation(place, self.steps)
        view = step.model.view
        column, self.shape = _expression(step.model, observe)
        if column.numel() != self.values.shape[1]:
            raise InputError(f"data have {self.values.shape[1]} columns, but the observable has {column.numel()}")
        self.known = sigma is not None
        self.sigma = np.ones_like(self.values)
        if sigma is not None:
            given = array("sigma", sigma)
            try:
                spread = given if given.ndim < 2 else given.reshape(times.size, -1)
                self.sigma = np.broadcast_to(spread, values.shape)[good].copy()
            except ValueError:
                raise InputError("sigma must be one number, or an array like the data") from None
            if not (self.sigma > 0).all():
                raise InputError("sigma must be greater than 0")
        at = ca.vertcat(view.state, view.k)
        outputs = [ca.densify(column), ca.densify(ca.jacobian(column, at))]
        self._size = int(view.state.numel())
        self._function = ca.Function("observe", [view.state, view.t, view.k], outputs).map(len(self.at))

    def evaluate(self, tape: Tape) -> tuple[np.ndarray, np.ndarray]:
        """Return the modelled data, and the Jacobians by state and parameters at the observed states."""
        k = np.repeat(tape.k[:, None], len(self.at), axis=1)
        value, slope = self._function(tape.states[:, : self._size].T, tape.t[None, :], k)
        values = np.array(value).T
        slopes = np.array(slope).reshape(values.shape[1], len(self.at), -1).transpose(1, 0, 2)
        return self.weights @ values, slopes

    def along(self, slopes: np.ndarray, states: np.ndarray, dk: np.ndarray) -> np.ndarray:
        """Return directional derivatives of the modelled data, shape (n_times, n_outputs, n_directions)."""
        by_state, by_k = slopes[:, :, : self._size], slopes[:, :, self._size :]
        moved = np.einsum("imz,idz->imd", by_state, states[:, :, : self._size]) + by_k @ dk.T
        return np.einsum("ji,imd->jmd", self.weights, moved)


def _later(step: Prepared, t0: float | None) -> float:
    begin = number("t0", t0 if t0 is not None else step._defaults.get("t0") or getattr(step._model, "t0", 0.0))
    return begin + 1.0


def _finite_or_nan(name: str, value: Any) -> np.ndarray:
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers, got {value!r}") from None


def _expression(model: Model, observe: Any) -> tuple[Any, tuple[int, ...]]:
    if isinstance(observe, str):
        if observe not in model.view.names:
            raise InputError(f"unknown observable '{observe}'; known: {', '.join(model.view.names)}")
        column = ca.densify(ca.SX(model.view.expression(observe)))
        return column, (int(column.numel()),)
    if not callable(observe):
        raise InputError(f"observe must be a function of the state or the name of an observable, got {observe!r}")
    return observable.read(model, observe)


def _interpolation(place: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the required states, and the weights of cubic interpolation at each position."""
    rows: list[dict[int, float]] = []
    for s in place:
        nearest = round(float(s))
        if abs(s - nearest) <= _AT_STEP or steps < 1:
            rows.append({min(max(nearest, 0), steps): 1.0})
            continue
        first = min(max(int(np.floor(s)) - 1, 0), max(steps - 3, 0))
        nodes = np.arange(first, min(first + 4, steps + 1))
        rows.append({int(i): float(np.prod([(s - j) / (i - j) for j in nodes if j != i], dtype=float)) for i in nodes})
    at = np.array(sorted({steps, *(i for row in rows for i in row)}), dtype=np.int64)
    weights = np.zeros((len(rows), len(at)))
    for i, row in enumerate(rows):
        weights[i, np.searchsorted(at, list(row))] = list(row.values())
    return at, weights


class _Task:
    """Residual and Jacobian of the least-squares problem, for SciPy."""

    def __init__(
        self, step: Prepared, unknowns: Unknowns, measured: _Measured, h: float | None, t0: float | None, bar: Progress
    ) -> None:
        self._step, self._unknowns, self._measured, self._h, self._t0 = step, unknowns, measured, h, t0
        self._known: tuple[np.ndarray, Any] | None = None
        self._bar, self.evaluations = bar, 0
        self.values = np.zeros_like(measured.values)

    def _run(self, numbers: np.ndarray) -> Any:
        if self._known is not None and np.array_equal(self._known[0], numbers):
            return self._known[1]
        start, parameters = self._unknowns.given(numbers)
        measured = self._measured
        plan = self._step._plan(
            start, parameters=parameters, h=self._h, t0=self._t0, t_end=measured.t_end, project=True
        )
        _, tape, departure = tape_of(plan, measured.at, watched=True)
        values, slopes = measured.evaluate(tape)
        self.evaluations += 1
        self._bar.update(self.evaluations)
        self._known = numbers.copy(), (tape, departure, values, slopes)
        return self._known[1]

    def misfit(self, numbers: np.ndarray) -> np.ndarray:
        try:
            self.values = self._run(numbers)[2]
        except IntegrationError:
            if not self.evaluations:
                raise
            return np.full(self._measured.values.size, np.inf)  # the optimiser shortens the step
        return np.asarray(((self.values - self._measured.values) / self._measured.sigma).ravel())

    def slopes(self, numbers: np.ndarray) -> np.ndarray:
        tape, departure, _, slopes = self._run(numbers)
        shifts = list(directions(self._step.model, departure, self._unknowns.labels).values())
        dz = np.array([departure.forth(shift) for shift in shifts])
        dk = np.array([shift.k for shift in shifts])
        states = tape.forth(dz, np.hstack([np.zeros((len(shifts), 2)), dk]))
        moved = self._measured.along(slopes, states, dk) / self._measured.sigma[:, :, None]
        found = np.asarray(moved.reshape(-1, len(shifts)))
        felt = np.linalg.norm(found, axis=0) * np.maximum(np.abs(numbers), 1.0)
        found[:, felt <= _FELT * felt.max(initial=0.0)] = 0.0  # round-off would lead to large steps
        return found


def _told(unknowns: Unknowns, measured: _Measured, task: _Task, found: Any) -> ParameterFit:
    task.misfit(found.x)
    values, J = task.values, np.asarray(found.jac)
    squares = float(2 * found.cost)
    free = max(measured.values.size - len(unknowns.labels), 1)
    spread = 1.0 if measured.known else squares / free
    # normalised columns, so that the rank does not depend on units
    sizes = np.linalg.norm(J, axis=0)
    sizes[sizes == 0] = 1.0
    _, singular, right = np.linalg.svd(J / sizes, full_matrices=False)
    open_ = singular <= _OPEN * singular.max(initial=0.0)
    inverse = np.where(open_, np.inf, 1.0 / np.where(open_, 1.0, singular) ** 2)
    determined = np.where(open_, 0.0, inverse)
    covariance = spread * ((right.T * determined) @ right) / np.outer(sizes, sizes)
    errors = np.sqrt(np.diag(covariance))
    weak = tuple(
        name for i, name in enumerate(unknowns.labels) if open_.any() and np.abs(right[open_][:, i]).max() > 0.1
    )
    errors[[name in weak for name in unknowns.labels]] = np.inf
    sigma = measured.sigma if measured.known else np.full_like(measured.values, np.sqrt(spread))
    return ParameterFit(
        values=dict(zip(unknowns.labels, map(float, found.x), strict=True)),
        errors=dict(zip(unknowns.labels, map(float, errors), strict=True)),
        covariance=covariance,
        t=measured.t,
        data=measured.values,
        model=values,
        sigma=sigma,
        chi_squared=squares if measured.known else float(free),
        evaluations=task.evaluations,
        converged=found.status > 0,
        undetermined=weak,
    )
