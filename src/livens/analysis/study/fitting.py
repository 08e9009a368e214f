"""Parameter estimation: nonlinear least squares with exact derivatives of the discrete flow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy.optimize

from livens.analysis.study.design_variables import DesignVariables, as_prepared
from livens.errors import InputError, IntegrationError, explain_call_errors
from livens.models import observable
from livens.models.base import Model
from livens.models.problem import Problem
from livens.run.derivatives.gradient import record_run
from livens.run.derivatives.hessian import unit_tangents
from livens.run.derivatives.tape import Tape
from livens.run.prepare import Prepared
from livens.run.progress import Progress
from livens.schemes.core.scheme import Scheme
from livens.types import ArrayLike, FloatArray, ModelFunction
from livens.validation import check_array, check_integer, check_number

if TYPE_CHECKING:
    from livens.run.derivatives.initial_state import InitialStateDerivatives


#: Tolerance, as a fraction of a step, within which data times coincide with step times.
_STEP_TOLERANCE = 1e-7
#: Weight of the distance from the guess, relative to the root mean square of the misfit at the guess.
_REGULARIZATION = 1e-4
#: Relative change along an undetermined direction above which a variable takes part, as a fraction of the largest.
_PARTICIPATION = 1e-3
#: Correlation above which a fit reports it.
_STRONG = 0.99
#: Rank tolerance: singular values of the Jacobian below this fraction of the largest leave a combination undetermined.
_RANK_TOLERANCE = 1e-9
#: Relative sensitivity of the data below which the derivative by a variable is round-off and set to zero.
_SENSITIVITY_TOLERANCE = 1e-11


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
        """Degrees of freedom of the residuals: number of data minus number of estimated values."""
        return self.data.size - len(self.values)

    @property
    def correlation(self) -> np.ndarray:
        """Correlation matrix of the estimated values."""
        errors = np.array(list(self.errors.values()))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.covariance / np.outer(errors, errors))

    def _strong_correlations(self) -> list[tuple[str, str, float]]:
        names, correlation = list(self.values), self.correlation
        pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
        return [(names[i], names[j], float(correlation[i, j])) for i, j in pairs if abs(correlation[i, j]) > _STRONG]

    def __str__(self) -> str:
        width = max(len(name) for name in self.values)
        lines = [f"{name:<{width}} = {value:.6g} ± {self.errors[name]:.2g}" for name, value in self.values.items()]
        free = self.degrees_of_freedom
        lines.append(f"chi^2 = {self.chi_squared:.4g} for {free} degrees of freedom, {self.evaluations} runs")
        if not self.converged:
            lines.append("NOT converged: more evaluations may help")
        if self.undetermined:
            lines.append(f"the data do not determine: {', '.join(self.undetermined)}")
        lines += [f"correlation of {a} and {b}: {value:.4f}" for a, b, value in self._strong_correlations()]
        return "\n".join(lines)


@explain_call_errors
def fit(
    model: Model | Problem | Prepared,
    observe: str | ModelFunction,
    data: FloatArray,
    by: str | Sequence[str] | Mapping[str, object],
    *,
    t: FloatArray,
    sigma: float | None = None,
    bounds: Mapping[str, object] | None = None,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    p0: ArrayLike | None = None,
    x0: ArrayLike | None = None,
    parameters: Mapping[str, object] | None = None,
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
    step = as_prepared(model, scheme=scheme, h=h)
    initial = dict(q0=q0, v0=v0, p0=p0, x0=x0)
    variables = DesignVariables(step, by, initial, parameters)
    measurement = _Measurement(step, observe, data, t, sigma, h, t0)
    low, high = variables.bounds(bounds)
    limit = check_integer("most", most, minimum=1)
    with Progress("fit", limit, progress, unit="runs") as bar:
        task = _Residual(step, variables, measurement, h, t0, bar)
        solution = scipy.optimize.least_squares(
            task.regularized_misfit,
            variables.initial_guess,
            task.regularized_jacobian,
            bounds=(low, high),
            x_scale="jac",
            max_nfev=limit,
            xtol=1e-12,
        )
    return _fit_result(variables, measurement, task, solution)


class _Measurement:
    """Measured data, and their interpolation from the states at the step times."""

    def __init__(
        self,
        step: Prepared,
        observe: str | ModelFunction,
        data: FloatArray,
        t: FloatArray,
        sigma: float | None,
        h: float | None,
        t0: float | None,
    ) -> None:
        plan = step._make_plan({}, h=h, t0=t0, t_end=_provisional_end(step, t0))
        times = _finite_or_nan("t", t).ravel()
        values = _finite_or_nan("data", data)
        if values.ndim == 0 or len(values) != times.size:
            raise InputError(f"data must have one row for each of the {times.size} times in t")
        values = values.reshape(times.size, -1)
        if not np.isfinite(times).all() or (times.size and times.min() < plan.t0):
            raise InputError(f"the times of data must be finite and not before t0 = {plan.t0:g}")
        finite = np.isfinite(values).all(axis=1)
        self.t, self.values = times[finite], values[finite]
        if not self.t.size:
            raise InputError("there are no data to fit")
        positions = (self.t - plan.t0) / plan.h
        self.steps = max(1, int(np.ceil(positions.max() - _STEP_TOLERANCE)))
        self.t_end = plan.t0 + self.steps * plan.h
        self.indices, self.weights = _interpolation(positions, self.steps)
        view = step.model.view
        column, self.shape = _expression(step.model, observe)
        if column.numel() != self.values.shape[1]:
            raise InputError(f"data have {self.values.shape[1]} columns, but the observable has {column.numel()}")
        self.has_sigma = sigma is not None
        self.sigma = np.ones_like(self.values)
        if sigma is not None:
            deviation = check_array("sigma", sigma)
            try:
                spread = deviation if deviation.ndim < 2 else deviation.reshape(times.size, -1)
                self.sigma = np.broadcast_to(spread, values.shape)[finite].copy()
            except ValueError:
                raise InputError("sigma must be one number, or an array like the data") from None
            if not (self.sigma > 0).all():
                raise InputError("sigma must be greater than 0")
        arguments = ca.vertcat(view.state, view.k)
        outputs = [ca.densify(column), ca.densify(ca.jacobian(column, arguments))]
        self._size = int(view.state.numel())
        self._function = ca.Function("observe", [view.state, view.t, view.k], outputs).map(len(self.indices))

    def evaluate(self, tape: Tape) -> tuple[np.ndarray, np.ndarray]:
        """Return the modelled data, and the Jacobians by state and parameters at the observed states."""
        k = np.repeat(tape.k[:, None], len(self.indices), axis=1)
        value, jacobian = self._function(tape.states[:, : self._size].T, tape.t[None, :], k)
        values = np.array(value).T
        jacobians = np.array(jacobian).reshape(values.shape[1], len(self.indices), -1).transpose(1, 0, 2)
        return self.weights @ values, jacobians

    def directional(self, jacobians: np.ndarray, states: np.ndarray, dk: np.ndarray) -> np.ndarray:
        """Return directional derivatives of the modelled data, shape (n_times, n_outputs, n_directions)."""
        by_state, by_k = jacobians[:, :, : self._size], jacobians[:, :, self._size :]
        change = np.einsum("imz,idz->imd", by_state, states[:, :, : self._size]) + by_k @ dk.T
        return np.einsum("ji,imd->jmd", self.weights, change)


def _provisional_end(step: Prepared, t0: float | None) -> float:
    begin = check_number("t0", t0 if t0 is not None else step._defaults.get("t0") or getattr(step._model, "t0", 0.0))
    return begin + 1.0


def _finite_or_nan(name: str, value: FloatArray) -> np.ndarray:
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers, got {value!r}") from None


def _expression(model: Model, observe: object) -> tuple[Any, tuple[int, ...]]:
    if isinstance(observe, str):
        if observe not in model.view.observable_names:
            raise InputError(f"unknown observable '{observe}'; known: {', '.join(model.view.observable_names)}")
        column = ca.densify(ca.SX(model.view.observable(observe)))
        return column, (int(column.numel()),)
    if not callable(observe):
        raise InputError(f"observe must be a function of the state or the name of an observable, got {observe!r}")
    return observable.trace_observable(model, observe)


def _interpolation(positions: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the required states, and the weights of cubic interpolation at each position."""
    rows: list[dict[int, float]] = []
    for s in positions:
        nearest = round(float(s))
        if abs(s - nearest) <= _STEP_TOLERANCE or steps < 1:
            rows.append({min(max(nearest, 0), steps): 1.0})
            continue
        first_node = min(max(int(np.floor(s)) - 1, 0), max(steps - 3, 0))
        nodes = np.arange(first_node, min(first_node + 4, steps + 1))
        rows.append({int(i): float(np.prod([(s - j) / (i - j) for j in nodes if j != i], dtype=float)) for i in nodes})
    indices = np.array(sorted({steps, *(i for row in rows for i in row)}), dtype=np.int64)
    weights = np.zeros((len(rows), len(indices)))
    for i, row in enumerate(rows):
        weights[i, np.searchsorted(indices, list(row))] = list(row.values())
    return indices, weights


class _Residual:
    """Residual and Jacobian of the least-squares problem, for SciPy."""

    def __init__(
        self,
        step: Prepared,
        variables: DesignVariables,
        measurement: _Measurement,
        h: float | None,
        t0: float | None,
        bar: Progress,
    ) -> None:
        self._step, self._variables, self._measurement, self._h, self._t0 = step, variables, measurement, h, t0
        self._cached: tuple[np.ndarray, Any] | None = None
        self._bar, self.evaluations = bar, 0
        self.values = np.zeros_like(measurement.values)
        self._guess = np.zeros(0)
        self._weight: float | None = None

    def _run(self, x: np.ndarray) -> tuple[Tape, InitialStateDerivatives, FloatArray, FloatArray]:
        if self._cached is not None and np.array_equal(self._cached[0], x):
            return self._cached[1]
        initial, parameters = self._variables.to_inputs(x)
        measurement = self._measurement
        plan = self._step._make_plan(
            initial, parameters=parameters, h=self._h, t0=self._t0, t_end=measurement.t_end, project=True
        )
        _, tape, initial_sensitivity = record_run(plan, measurement.indices, guards_checked=True)
        values, jacobians = measurement.evaluate(tape)
        self.evaluations += 1
        self._bar.update(self.evaluations)
        self._cached = x.copy(), (tape, initial_sensitivity, values, jacobians)
        return self._cached[1]

    def misfit(self, x: np.ndarray) -> np.ndarray:
        try:
            self.values = self._run(x)[2]
        except IntegrationError:
            if not self.evaluations:
                raise
            return np.full(self._measurement.values.size, np.inf)  # the optimiser shortens the step
        return np.asarray(((self.values - self._measurement.values) / self._measurement.sigma).ravel())

    def regularized_misfit(self, x: np.ndarray) -> np.ndarray:
        """Return the misfit and the weighted distance from the guess.

        The distance determines combinations that the data do not determine: they stay where the guess has them.
        """
        misfit = self.misfit(x)
        if self._weight is None:
            self._guess, self._weight = x.copy(), _REGULARIZATION * float(np.linalg.norm(misfit))
            self._weight /= math.sqrt(max(misfit.size, 1))
        return np.concatenate([misfit, self._weight * (x - self._guess) / self._scale])

    def regularized_jacobian(self, x: np.ndarray) -> np.ndarray:
        assert self._weight is not None
        return np.vstack([self.jacobian(x), np.diag(self._weight / self._scale)])

    @property
    def _scale(self) -> np.ndarray:
        """Sizes of the variables at the guess; 1 for a guess of zero."""
        return np.where(self._guess != 0, np.abs(self._guess), 1.0)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        tape, initial_sensitivity, _, state_jacobians = self._run(x)
        shifts = list(unit_tangents(self._step.model, initial_sensitivity, self._variables.labels).values())
        dz = np.array([initial_sensitivity.jvp(shift) for shift in shifts])
        dk = np.array([shift.k for shift in shifts])
        states = tape.tangents(dz, np.hstack([np.zeros((len(shifts), 2)), dk]))
        change = self._measurement.directional(state_jacobians, states, dk) / self._measurement.sigma[:, :, None]
        jacobian = np.asarray(change.reshape(-1, len(shifts)))
        sensitivity = np.linalg.norm(jacobian, axis=0) * np.maximum(np.abs(x), 1.0)
        jacobian[:, sensitivity <= _SENSITIVITY_TOLERANCE * sensitivity.max(initial=0.0)] = (
            0.0  # round-off would lead to large steps
        )
        return jacobian


def _fit_result(variables: DesignVariables, measurement: _Measurement, task: _Residual, solution: Any) -> ParameterFit:
    misfit = task.misfit(solution.x)
    values, J = task.values, task.jacobian(solution.x)
    squares = float(misfit @ misfit)
    free = max(measurement.values.size - len(variables.labels), 1)
    spread = 1.0 if measurement.has_sigma else squares / free
    # normalised columns, so that the rank does not depend on units
    sizes = np.linalg.norm(J, axis=0)
    sizes[sizes == 0] = 1.0
    _, singular, right_vectors = np.linalg.svd(J / sizes, full_matrices=False)
    undetermined = singular <= _RANK_TOLERANCE * singular.max(initial=0.0)
    inverse = np.where(undetermined, np.inf, 1.0 / np.where(undetermined, 1.0, singular) ** 2)
    determined = np.where(undetermined, 0.0, inverse)
    covariance = spread * ((right_vectors.T * determined) @ right_vectors) / np.outer(sizes, sizes)
    errors = np.sqrt(np.diag(covariance))
    # relative changes of the variables along directions that the data do not determine
    relative_sizes = sizes * np.where(solution.x != 0, np.abs(solution.x), 1.0)
    changes = np.abs(right_vectors[undetermined]) / relative_sizes
    changes /= changes.max(axis=1, initial=0.0, keepdims=True) if changes.size else 1.0
    takes_part = changes.max(axis=0, initial=0.0) > _PARTICIPATION
    undetermined_names = tuple(name for i, name in enumerate(variables.labels) if takes_part[i])
    errors[[name in undetermined_names for name in variables.labels]] = np.inf
    sigma = measurement.sigma if measurement.has_sigma else np.full_like(measurement.values, np.sqrt(spread))
    return ParameterFit(
        values=dict(zip(variables.labels, map(float, solution.x), strict=True)),
        errors=dict(zip(variables.labels, map(float, errors), strict=True)),
        covariance=covariance,
        t=measurement.t,
        data=measurement.values,
        model=values,
        sigma=sigma,
        chi_squared=squares if measurement.has_sigma else float(free),
        evaluations=task.evaluations,
        converged=solution.status > 0,
        undetermined=undetermined_names,
    )
