"""Conservation report: drift of energy, constraints and momenta, compared with the guarantees of the scheme."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens import schemes
from livens.analysis.accuracy import estimate_within_budget
from livens.analysis.observables import MAGNITUDE, expression, iterate_blocks, reduce
from livens.analysis.passivity import passivity
from livens.analysis.round_off import ROUND_OFF_FACTOR, RoundOffBound, mean_step
from livens.analysis.step_sizes import step_sizes
from livens.analysis.trend import BinnedSeries, Trend
from livens.errors import InputError
from livens.models.base import Model
from livens.models.element_sums import MAX_VELOCITY
from livens.results.result import MissingVariableError, Result
from livens.run.drift_monitor import energy_scale
from livens.schemes.core.scheme import Scheme

#: Constraint residuals on position and velocity level; their exact value is zero.
CONSTRAINTS = ("constraint", "velocity_constraint")
AS_GUARANTEED, NOT_AS_GUARANTEED = "conserved to round-off as guaranteed", "NOT AS GUARANTEED"
ROUND_OFF, BOUNDED, DRIFTS = "conserved to round-off", "bounded, no trend", "drifts"
NOT_CONSERVED, TOO_SHORT, NO_STEPS, NOT_FINITE = (
    "not conserved",
    "not conserved, too short for a trend",
    "no steps",
    "not finite",
)

#: Relative deviation that counts as round-off if the model, and with it the round-off bound, is not available.
_ASSUMED_ROUND_OFF = 1e-11
#: Energy relative to the magnitude of its terms below which the terms cancel: the energy itself is no scale.
_CANCELLED = 1e-9
#: Smallest fraction of the deviation that a trend must explain to be reported as a drift.
_MIN_DRIFT_FRACTION = 0.1


@dataclass(frozen=True)
class ConservationRow:
    """Row of the conservation report.

    Parameters
    ----------
    quantity : str
        Label of the quantity.
    name : str
        Name of the observable.
    initial : float or None
        Initial value; for a vector, its norm.
    deviation : float
        Largest deviation from the initial value (for constraints, from zero) over all steps.
    relative : bool
        True if deviation and drift are relative.
    drift : float or None
        Drift per unit time, from the stored rows.
    drift_uncertainty : float or None
        Half-width of the 95 % confidence interval of the drift.
    guaranteed : bool
        True if the scheme guarantees conservation.
    verdict : str
        Verdict as text.
    """

    quantity: str
    name: str
    initial: float | None
    deviation: float
    relative: bool
    drift: float | None
    drift_uncertainty: float | None
    guaranteed: bool
    verdict: str

    @property
    def holds(self) -> bool:
        """True unless a guaranteed quantity was not conserved."""
        return self.verdict != NOT_AS_GUARANTEED

    def as_object(self) -> dict[str, Any]:
        """Return the row as a dict for JSON; values that are not finite become None."""
        keys = {"initial": "start", "guaranteed": "promised"}
        return {keys.get(name, name): json_value(value) for name, value in vars(self).items()}


def conservation_rows(result: Result) -> list[ConservationRow]:
    """Return the conservation report of a run: energy, constraints and momenta, with deviation, drift and verdict."""
    try:
        system = result.system
    except InputError:  # file of a user-defined system: only the summary of the run is available
        return _rows_from_summary(result)
    try:
        return _rows_from_states(result, system)
    except MissingVariableError:
        return _rows_from_summary(result)


def _rows_from_states(result: Result, system: Model) -> list[ConservationRow]:
    """Compute the rows from the stored states in one pass."""
    names = [result.summary.energy] if result.summary.energy else []
    names += [name for name in CONSTRAINTS if name in system.view.observable_names and _width(system, name)]
    names += list(result.summary.momentum_drift)
    if not names:
        return []
    monitored = {name: _MonitoredQuantity() for name in names}
    rounding = RoundOffBound(system, names, result.parameter_vector, mean_step(result))
    scales = _Scales()
    state_variables = list(system.view.symbols)
    work = ["supplied_energy", "dissipated_energy"] if _has_energy_balance(result) else []
    for t, values in iterate_blocks(result, [*names, *state_variables, MAGNITUDE, MAX_VELOCITY, *work]):
        state, (magnitude, speed) = (
            values[len(names) : len(names) + len(state_variables)],
            values[len(names) + len(state_variables) :][:2],
        )
        supplied, dissipated = values[-2:] if work else (0.0, 0.0)
        scales.speed = _max_with_nan(scales.speed, speed)
        for name, value in zip(names, values, strict=False):
            if name == result.summary.energy:
                value = value - supplied + dissipated  # exchanged energy is not drift
                scales.update(value, np.abs(magnitude))
            elif name in CONSTRAINTS:
                value = np.abs(value).max(axis=1)
            monitored[name].update(t, value.reshape(len(t), -1))
        rounding.update(t, state)
    table = []
    for name in names:
        if name == result.summary.energy:
            table += _energy_rows(result, monitored[name], scales, rounding[name])
            continue
        at_rest = scales.is_round_off(rounding.energy * max(_steps(result, monitored[name]), 1))
        if name in CONSTRAINTS:
            row_scales = (0.0 if at_rest else scales.speed), at_rest
            table.append(_constraint_row(result, name, monitored[name], rounding[name], *row_scales))
        else:
            table.append(_momentum_row(result, name, monitored[name], rounding[name], at_rest))
    return table


def _width(model: Model, name: str) -> int:
    """Return the number of components of an observable, without building the expression of a large system."""
    sums = model.observable_element_sums(name)
    return int(expression(model, name).numel() if sums is None else sums.n_outputs)


class _Scales:
    """Reference scales of deviations: magnitude of the energy and largest velocity."""

    def __init__(self) -> None:
        self.speed = self._regular_magnitude = self.largest_magnitude = 0.0
        self._initial_energy: float | None = None

    def update(self, energy: np.ndarray, magnitude: np.ndarray) -> None:
        self._initial_energy = float(energy[0]) if self._initial_energy is None else self._initial_energy
        with np.errstate(invalid="ignore"):
            regular = magnitude[np.abs(energy - self._initial_energy) <= 0.5 * magnitude]
        self._regular_magnitude = max(self._regular_magnitude, float(regular.max(initial=0.0)))
        self.largest_magnitude = _max_with_nan(self.largest_magnitude, magnitude)

    def is_round_off(self, bound: float) -> bool:
        """Return True if the terms of the energy, where the model has one, are below a bound: the model is at rest."""
        return self._initial_energy is not None and self.largest_magnitude <= bound

    @property
    def energy(self) -> float:
        return energy_scale(self._initial_energy or 0.0, self._regular_magnitude, self.largest_magnitude)


def _has_energy_balance(result: Result) -> bool:
    """Return True if supplied and dissipated energy are stored."""
    return {"supplied_energy", "dissipated_energy"} <= set(result.stored)


class _MonitoredQuantity:
    """Initial value, largest deviation, magnitude and increment, and trend of a quantity, computed in one pass."""

    def __init__(self) -> None:
        self._series = BinnedSeries()
        self.initial: np.ndarray = np.zeros(0)
        self.count = 0
        self._previous: np.ndarray = np.zeros(0)
        self.deviation = self.increment = self.size = 0.0

    def update(self, t: np.ndarray, y: np.ndarray) -> None:
        if not self.count:
            self.initial = self._previous = y[0].copy()
        deviation = y - self.initial
        with np.errstate(invalid="ignore", over="ignore"):
            self.deviation = _max_with_nan(self.deviation, np.linalg.norm(deviation, axis=1))
            self.size = _max_with_nan(self.size, np.linalg.norm(y, axis=1))
            self.increment = _max_with_nan(self.increment, np.abs(np.diff(y, axis=0, prepend=self._previous[None])))
            self._series.add(t, deviation)
        self._previous = y[-1].copy()
        self.count += len(t)

    def trend(self) -> Trend | None:
        """Return the trend of the component with the largest drift."""
        trends = [trend for trend in self._series.trends() if trend is not None]
        return max(trends, key=lambda trend: abs(trend.rate), default=None)


def _max_with_nan(old: float, values: np.ndarray) -> float:
    new = float(values.max(initial=0.0))
    return new if not new <= old else old  # NaN is propagated


def _energy_rows(
    result: Result, monitored: _MonitoredQuantity, scales: _Scales, rounding: float
) -> list[ConservationRow]:
    """Return the energy rows, relative to the initial energy, or to the largest kinetic energy if that is zero.

    Terms of an indefinite kinetic energy cancel; deviations are then relative to the magnitude of the terms.
    """
    name, summary = result.summary.energy, result.summary
    initial, scale = float(monitored.initial[0]), scales.energy
    monitored_scale = scale or 1.0  # of the summary
    if scale < _CANCELLED * _term_magnitude(rounding):
        scale = _term_magnitude(rounding)
    relative, scale = scale > 0, scale or 1.0
    guaranteed = is_guaranteed(result, name)
    label = name.replace("_", " ") + (
        " (balance)" if _has_energy_balance(result) and not result.system.conservative else ""
    )
    worst = _worst_over_steps(monitored.deviation / scale, summary.max_energy_drift * monitored_scale / scale)
    step = _worst_over_steps(
        monitored.increment / scale if result.info.every == 1 else 0.0,
        summary.max_energy_increment * monitored_scale / scale,
    )
    single_round_off = ROUND_OFF_FACTOR * rounding / scale
    trend = _scaled(monitored.trend(), scale)
    steps = _steps(result, monitored)
    # roundings add up like a random walk; increments above round-off are not roundings
    allowed = single_round_off * (math.sqrt(max(steps, 1)) if step <= single_round_off else 1.0)
    verdict = _verdict(worst, allowed, guaranteed, trend, result, steps)
    stepwise = _verdict(step, single_round_off, guaranteed, None, result, steps)
    stepwise = NOT_CONSERVED if stepwise == TOO_SHORT else stepwise
    return [
        ConservationRow(label, name, initial, worst, relative, *_drift_and_uncertainty(trend), guaranteed, verdict),
        ConservationRow("  its increment per step", name, None, step, relative, None, None, guaranteed, stepwise),
    ]


def _constraint_row(
    result: Result, name: str, monitored: _MonitoredQuantity, rounding: float, speed: float, at_rest: bool
) -> ConservationRow:
    """Return the row of a constraint, relative to the largest velocity on velocity level, otherwise absolute.

    All velocities of a mechanism at rest are round-off.
    """
    label, hidden = _constraint_label(name, bool(result.info.algebraic)), name == "velocity_constraint"
    relative = hidden and 0 < speed < math.inf
    scale = speed if relative else 1.0
    noted = result.summary.max_velocity_constraint if hidden else result.summary.max_constraint
    worst, guaranteed, trend = (
        _worst_over_steps(monitored.size, noted) / scale,
        is_guaranteed(result, name),
        _scaled(monitored.trend(), scale),
    )
    steps = _steps(result, monitored)
    # errors of constraints do not accumulate, but are amplified near singular configurations
    allowed = math.inf if hidden and at_rest else 10 * ROUND_OFF_FACTOR * rounding / scale
    verdict = _verdict(worst, allowed, guaranteed, trend, result, steps)
    return ConservationRow(
        label, name, float(monitored.initial[0]), worst, relative, *_drift_and_uncertainty(trend), guaranteed, verdict
    )


def _momentum_row(
    result: Result, name: str, monitored: _MonitoredQuantity, rounding: float, at_rest: bool
) -> ConservationRow:
    """Return the row of a momentum, relative to its largest norm, or to that of its terms where the terms cancel."""
    terms = _term_magnitude(rounding)
    scale = monitored.size if monitored.size > 1e-3 * terms else terms
    relative, scale = scale > 0, scale or 1.0
    guaranteed, trend, steps = is_guaranteed(result, name), _scaled(monitored.trend(), scale), _steps(result, monitored)
    worst = _worst_over_steps(
        monitored.deviation / scale, result.summary.momentum_drift.get(name, 0.0) * monitored.size / scale
    )
    allowed = math.inf if at_rest else ROUND_OFF_FACTOR * rounding / scale * math.sqrt(max(steps, 1))
    initial = float(monitored.initial[0]) if monitored.initial.size == 1 else float(np.linalg.norm(monitored.initial))
    verdict = _verdict(worst, allowed, guaranteed, trend, result, steps)
    return ConservationRow(
        name.replace("_", " "), name, initial, worst, relative, *_drift_and_uncertainty(trend), guaranteed, verdict
    )


def _term_magnitude(rounding: float) -> float:
    """Return the magnitude of the terms of a quantity with this round-off bound."""
    return rounding / float(np.finfo(float).eps)


def _rows_from_summary(result: Result) -> list[ConservationRow]:
    """Return the rows from the summary of the run, without initial values and drift."""
    summary, steps = result.summary, result.statistics.steps
    label = summary.energy.replace("_", " ")
    entries = []
    if summary.energy:
        entries.append((label, summary.energy, summary.max_energy_drift, True))
        entries.append(("  its increment per step", summary.energy, summary.max_energy_increment, True))
    algebraic = bool(result.info.algebraic)
    if result.info.constraint_names or algebraic:
        entries.append((_constraint_label("constraint", algebraic), "constraint", summary.max_constraint, False))
    if result.info.constraint_names or summary.max_velocity_constraint:
        hidden, speed = _constraint_label("velocity_constraint", algebraic), _speed(result)
        worst = summary.max_velocity_constraint / (speed or 1.0)
        entries.append((hidden, "velocity_constraint", worst, speed > 0))
    entries += [(name.replace("_", " "), name, drift, True) for name, drift in summary.momentum_drift.items()]
    table = []
    for quantity, name, worst, relative in entries:
        # without the model it is not known which constraints the equations impose
        guaranteed = name in conserved_by_scheme(result) and not (algebraic and name in CONSTRAINTS)
        verdict = _verdict(worst, _ASSUMED_ROUND_OFF, guaranteed, None, result, steps)
        verdict = NOT_CONSERVED if verdict == TOO_SHORT else verdict
        table.append(ConservationRow(quantity, name, None, worst, relative, None, None, guaranteed, verdict))
    return table


def _speed(result: Result) -> float:
    """Return the largest velocity of a run whose model is not available; 0 if no velocities are stored."""
    speed = float(reduce(result, "v", "largest").max(initial=0.0)) if "v" in result.stored else 0.0
    return speed if math.isfinite(speed) else 0.0


def _verdict(worst: float, allowed: float, guaranteed: bool, trend: Trend | None, result: Result, steps: int) -> str:
    if not math.isfinite(worst):
        return NOT_AS_GUARANTEED if guaranteed else NOT_FINITE
    if not steps:
        return NO_STEPS
    if worst <= allowed:
        return AS_GUARANTEED if guaranteed else ROUND_OFF
    if guaranteed:
        return NOT_AS_GUARANTEED
    if trend is None:
        return TOO_SHORT
    span = result.info.t_end - result.info.t0
    return DRIFTS if trend.significant and abs(trend.rate) * span > _MIN_DRIFT_FRACTION * worst else BOUNDED


def conserved_by_scheme(result: Result) -> tuple[str, ...]:
    """Return the names of the invariants that the scheme of a run conserves."""
    scheme = _scheme(result)
    return () if scheme is None else scheme.conserves


def _scheme(result: Result) -> Scheme | None:
    """Return the scheme of a run, with its scaling if known; None for a user-defined scheme without a known name."""
    if result._scheme is not None:
        return result._scheme
    try:
        return schemes.get(result.info.scheme)
    except InputError:
        return None


def is_guaranteed(result: Result, name: str) -> bool:
    """Return True if the scheme of a run guarantees to conserve an observable of its model."""
    model: Model = result.system
    return model.is_guaranteed_by(_scheme(result), name, result.parameter_vector)


def _constraint_label(name: str, algebraic: bool) -> str:
    if name == "velocity_constraint":
        return "hidden constraints G(q) v"
    return "constraints g" if algebraic else "constraints g(q)"


def _steps(result: Result, monitored: _MonitoredQuantity) -> int:
    return max(result.statistics.steps, monitored.count - 1)


def _worst_over_steps(stored: float, noted: float) -> float:
    """Return the largest value over all steps, stored or not; NaN is propagated."""
    return stored if not stored <= noted else noted


def _scaled(trend: Trend | None, scale: float) -> Trend | None:
    return trend and Trend(trend.rate / scale, trend.uncertainty / scale)


def _drift_and_uncertainty(trend: Trend | None) -> tuple[float | None, float | None]:
    return (None, None) if trend is None else (trend.rate, trend.uncertainty)


def as_object(result: Result, *, accuracy: bool = True) -> dict[str, float | str | None] | dict[str, float | str]:
    """Return the report as a dict for JSON; values that are not finite become None."""
    table = conservation_rows(result)
    info, verdict = result.info, passivity(result)
    return {
        "file": str(result.path) if result.path is not None else None,
        "problem": info.problem,
        "scheme": info.scheme,
        "h": info.h,
        "t0": info.t0,
        "t_end": info.t_end,
        "status": result.status,
        "steps": result.statistics.steps,
        "step_sizes": step_sizes(result),
        **(estimate_within_budget(result).as_object() if accuracy else {}),
        **({} if verdict is None else {"passive": verdict.passive}),
        "as_promised": all(row.holds for row in table),
        "rows": [row.as_object() | {"holds": row.holds} for row in table],
    }


def json_value(value: object) -> Any:
    """Convert a value to a JSON value."""
    if isinstance(value, str):
        return value.strip()
    return None if isinstance(value, float) and not math.isfinite(value) else value
