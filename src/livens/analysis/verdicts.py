"""Conservation report: drift of energy, constraints and momenta, compared with the guarantees of the scheme."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens import schemes
from livens.analysis.accuracy import affordable
from livens.analysis.observables import MAGNITUDE, expression, reduce, walk
from livens.analysis.round_off import Rounding
from livens.analysis.step_sizes import step_sizes
from livens.analysis.trend import Series, Trend
from livens.errors import InputError
from livens.models.columns import SPEED
from livens.models.model import Model
from livens.results.result import MissingVariableError, Result
from livens.run.extremes import energy_scale
from livens.schemes.base import Scheme

#: Constraint residuals on position and velocity level; their exact value is zero.
CONSTRAINTS = ("constraint", "velocity_constraint")
AS_PROMISED, NOT_AS_PROMISED = "conserved to round-off as guaranteed", "NOT AS GUARANTEED"
ROUND_OFF, BOUNDED, DRIFTS = "conserved to round-off", "bounded, no trend", "drifts"
STEPWISE, TOO_SHORT, NO_STEPS, NOT_FINITE = (
    "not conserved",
    "not conserved, too short for a trend",
    "no steps",
    "not finite",
)

#: Multiple of the round-off bound of a quantity that counts as round-off; over n steps it grows like sqrt(n).
_ROUNDINGS = 100
#: Relative deviation that counts as round-off if the model, and with it the round-off bound, is not available.
_TAKEN_FOR_ROUND_OFF = 1e-11
#: Smallest fraction of the deviation that a trend must explain to be reported as a drift.
_WORTH_MENTIONING = 0.1


@dataclass(frozen=True)
class Row:
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
        Verdict in words.
    """

    quantity: str
    name: str
    start: float | None
    deviation: float
    relative: bool
    drift: float | None
    drift_uncertainty: float | None
    promised: bool
    verdict: str

    @property
    def holds(self) -> bool:
        """True unless a guaranteed quantity was not conserved."""
        return self.verdict != NOT_AS_PROMISED


def rows(result: Result) -> list[Row]:
    """Return the conservation report of a run: energy, constraints and momenta, with deviation, drift and verdict."""
    try:
        system = result.system
    except InputError:  # file of a user-defined system: only the summary of the run is available
        return _noted(result)
    try:
        return _measured(result, system)
    except MissingVariableError:
        return _noted(result)


def _measured(result: Result, system: Model) -> list[Row]:
    """Compute the rows from the stored states in one pass."""
    names = [result.summary.energy] if result.summary.energy else []
    names += [name for name in CONSTRAINTS if name in system.view.names and _columns(system, name)]
    names += list(result.summary.momentum_drift)
    if not names:
        return []
    watched = {name: _Watched() for name in names}
    rounding = Rounding(system, names, result.parameter_vector)
    scales = _Scales()
    parts = list(system.view.symbols)
    work = ["supplied_energy", "dissipated_energy"] if _balanced(result) else []
    for t, values in walk(result, [*names, *parts, MAGNITUDE, SPEED, *work]):
        state, (magnitude, speed) = values[len(names) : len(names) + len(parts)], values[len(names) + len(parts) :][:2]
        supplied, dissipated = values[-2:] if work else (0.0, 0.0)
        scales.speed = _larger(scales.speed, speed)
        for name, value in zip(names, values, strict=False):
            if name == result.summary.energy:
                value = value - supplied + dissipated  # exchanged energy is not drift
                scales.look(value, np.abs(magnitude))
            elif name in CONSTRAINTS:
                value = np.abs(value).max(axis=1)
            watched[name].look(t, value.reshape(len(t), -1))
        rounding.look(t, state)
    table = []
    for name in names:
        if name == result.summary.energy:
            table += _energy_rows(result, watched[name], scales, rounding[name])
        elif name in CONSTRAINTS:
            table.append(_constraint_row(result, name, watched[name], rounding[name], scales.speed))
        else:
            table.append(_momentum_row(result, name, watched[name], rounding[name]))
    return table


def _columns(model: Model, name: str) -> int:
    """Return the number of components of an observable, without building the expression of a large system."""
    sums = model.observable_sums(name)
    return int(expression(model, name).numel() if sums is None else sums.width)


class _Scales:
    """Reference scales of deviations: magnitude of the energy and largest velocity."""

    def __init__(self) -> None:
        self.speed = self._trusted = self._largest = 0.0
        self._first: float | None = None

    def look(self, energy: np.ndarray, magnitude: np.ndarray) -> None:
        self._first = float(energy[0]) if self._first is None else self._first
        with np.errstate(invalid="ignore"):
            right = magnitude[np.abs(energy - self._first) <= 0.5 * magnitude]
        self._trusted = max(self._trusted, float(right.max(initial=0.0)))
        self._largest = _larger(self._largest, magnitude)

    @property
    def energy(self) -> float:
        return energy_scale(self._first or 0.0, self._trusted, self._largest)


def _balanced(result: Result) -> bool:
    """Return True if supplied and dissipated energy are stored."""
    return {"supplied_energy", "dissipated_energy"} <= set(result.stored)


class _Watched:
    """Initial value, largest deviation, magnitude and increment, and trend of a quantity, computed in one pass."""

    def __init__(self) -> None:
        self._series = Series()
        self.first: np.ndarray = np.zeros(0)
        self.count = 0
        self._last: np.ndarray = np.zeros(0)
        self.deviation = self.increment = self.size = 0.0

    def look(self, t: np.ndarray, y: np.ndarray) -> None:
        if not self.count:
            self.first = self._last = y[0].copy()
        moved = y - self.first
        with np.errstate(invalid="ignore", over="ignore"):
            self.deviation = _larger(self.deviation, np.linalg.norm(moved, axis=1))
            self.size = _larger(self.size, np.linalg.norm(y, axis=1))
            self.increment = _larger(self.increment, np.abs(np.diff(y, axis=0, prepend=self._last[None])))
            self._series.add(t, moved)
        self._last = y[-1].copy()
        self.count += len(t)

    def trend(self) -> Trend | None:
        """Return the trend of the component with the largest drift."""
        found = [trend for trend in self._series.trends() if trend is not None]
        return max(found, key=lambda trend: abs(trend.slope), default=None)


def _larger(old: float, values: np.ndarray) -> float:
    new = float(values.max(initial=0.0))
    return new if not new <= old else old  # NaN is propagated


def _energy_rows(result: Result, seen: _Watched, scales: _Scales, rounding: float) -> list[Row]:
    """Return the energy rows, relative to the initial energy, or to the largest kinetic energy if that is zero."""
    name, summary = result.summary.energy, result.summary
    start, scale = float(seen.first[0]), scales.energy
    relative, scale = scale > 0, scale or 1.0
    held = promised(result, name)
    words = name.replace("_", " ") + (" (balance)" if _balanced(result) and not result.system.conservative else "")
    worst = _worst(seen.deviation / scale, summary.max_energy_drift)
    step = _worst(seen.increment / scale if result.facts.every == 1 else 0.0, summary.max_energy_increment)
    one = _ROUNDINGS * rounding / scale
    trend = _scaled(seen.trend(), scale)
    steps = _steps(result, seen)
    verdict = _verdict(worst, one * math.sqrt(max(steps, 1)), held, trend, result, steps)
    stepwise = _verdict(step, one, held, None, result, steps)
    stepwise = STEPWISE if stepwise == TOO_SHORT else stepwise
    return [
        Row(words, name, start, worst, relative, *_numbers(trend), held, verdict),
        Row("  its increment per step", name, None, step, relative, None, None, held, stepwise),
    ]


def _constraint_row(result: Result, name: str, seen: _Watched, rounding: float, speed: float) -> Row:
    """Return the row of a constraint, relative to the largest velocity on velocity level, otherwise absolute."""
    words, hidden = _constraint_words(name, bool(result.facts.algebraic)), name == "velocity_constraint"
    relative = hidden and 0 < speed < math.inf
    scale = speed if relative else 1.0
    noted = result.summary.max_velocity_constraint if hidden else result.summary.max_constraint
    worst, held, trend = _worst(seen.size, noted) / scale, promised(result, name), _scaled(seen.trend(), scale)
    steps = _steps(result, seen)
    # errors of constraints do not accumulate, but are amplified near singular configurations
    verdict = _verdict(worst, 10 * _ROUNDINGS * rounding / scale, held, trend, result, steps)
    return Row(words, name, float(seen.first[0]), worst, relative, *_numbers(trend), held, verdict)


def _momentum_row(result: Result, name: str, seen: _Watched, rounding: float) -> Row:
    """Return the row of a momentum, relative to its largest norm, or to that of its terms where the terms cancel."""
    terms = rounding / float(np.finfo(float).eps)
    scale = seen.size if seen.size > 1e-3 * terms else terms
    relative, scale = scale > 0, scale or 1.0
    held, trend, steps = promised(result, name), _scaled(seen.trend(), scale), _steps(result, seen)
    worst = _worst(seen.deviation / scale, result.summary.momentum_drift.get(name, 0.0) * seen.size / scale)
    allowed = _ROUNDINGS * rounding / scale * math.sqrt(max(steps, 1))
    start = float(seen.first[0]) if seen.first.size == 1 else float(np.linalg.norm(seen.first))
    verdict = _verdict(worst, allowed, held, trend, result, steps)
    return Row(name.replace("_", " "), name, start, worst, relative, *_numbers(trend), held, verdict)


def _noted(result: Result) -> list[Row]:
    """Return the rows from the summary of the run, without initial values and drift."""
    summary, steps = result.summary, result.statistics.steps
    words = summary.energy.replace("_", " ")
    found = []
    if summary.energy:
        found.append((words, summary.energy, summary.max_energy_drift, True))
        found.append(("  its increment per step", summary.energy, summary.max_energy_increment, True))
    algebraic = bool(result.facts.algebraic)
    if result.facts.constraint_names or algebraic:
        found.append((_constraint_words("constraint", algebraic), "constraint", summary.max_constraint, False))
    if result.facts.constraint_names or summary.max_velocity_constraint:
        hidden, speed = _constraint_words("velocity_constraint", algebraic), _speed(result)
        worst = summary.max_velocity_constraint / (speed or 1.0)
        found.append((hidden, "velocity_constraint", worst, speed > 0))
    found += [(name.replace("_", " "), name, drift, True) for name, drift in summary.momentum_drift.items()]
    table = []
    for quantity, name, worst, relative in found:
        # without the model it is not known which constraints the equations impose
        held = name in promises(result) and not (algebraic and name in CONSTRAINTS)
        verdict = _verdict(worst, _TAKEN_FOR_ROUND_OFF, held, None, result, steps)
        verdict = STEPWISE if verdict == TOO_SHORT else verdict
        table.append(Row(quantity, name, None, worst, relative, None, None, held, verdict))
    return table


def _speed(result: Result) -> float:
    """Return the largest velocity of a run whose model is not available; 0 if no velocities are stored."""
    speed = float(reduce(result, "v", "largest").max(initial=0.0)) if "v" in result.stored else 0.0
    return speed if math.isfinite(speed) else 0.0


def _verdict(worst: float, allowed: float, promised: bool, trend: Trend | None, result: Result, steps: int) -> str:
    if not math.isfinite(worst):
        return NOT_AS_PROMISED if promised else NOT_FINITE
    if not steps:
        return NO_STEPS
    if worst <= allowed:
        return AS_PROMISED if promised else ROUND_OFF
    if promised:
        return NOT_AS_PROMISED
    if trend is None:
        return TOO_SHORT
    span = result.facts.t_end - result.facts.t0
    return DRIFTS if trend.significant and abs(trend.slope) * span > _WORTH_MENTIONING * worst else BOUNDED


def promises(result: Result) -> tuple[str, ...]:
    """Return the names of the invariants that the scheme of a run conserves."""
    scheme = _scheme(result)
    return () if scheme is None else scheme.conserves


def _scheme(result: Result) -> Scheme | None:
    """Return the scheme of a run; None for a user-defined scheme without a registered name."""
    try:
        return schemes.get(result.facts.scheme)
    except InputError:
        return None


def promised(result: Result, name: str) -> bool:
    """Return True if the scheme of a run guarantees to conserve an observable of its model."""
    model: Model = result.system
    return model.promised(_scheme(result), name, result.parameter_vector)


def _constraint_words(name: str, algebraic: bool) -> str:
    if name == "velocity_constraint":
        return "hidden constraints G(q) v"
    return "constraints g" if algebraic else "constraints g(q)"


def _steps(result: Result, seen: _Watched) -> int:
    return max(result.statistics.steps, seen.count - 1)


def _worst(stored: float, noted: float) -> float:
    """Return the largest value over all steps, stored or not; NaN is propagated."""
    return stored if not stored <= noted else noted


def _scaled(trend: Trend | None, scale: float) -> Trend | None:
    return trend and Trend(trend.slope / scale, trend.uncertainty / scale)


def _numbers(trend: Trend | None) -> tuple[float | None, float | None]:
    return (None, None) if trend is None else (trend.slope, trend.uncertainty)


def as_object(result: Result, *, accuracy: bool = True) -> dict[str, Any]:
    """Return the report as a dict for JSON; values that are not finite become None."""
    table = rows(result)
    facts = result.facts
    return {
        "file": str(result.path) if result.path is not None else None,
        "problem": facts.problem,
        "scheme": facts.scheme,
        "h": facts.h,
        "t0": facts.t0,
        "t_end": facts.t_end,
        "status": result.status,
        "steps": result.statistics.steps,
        "step_sizes": step_sizes(result),
        **(affordable(result).as_object() if accuracy else {}),
        "as_promised": all(row.holds for row in table),
        "rows": [{**{key: plain(value) for key, value in vars(row).items()}, "holds": row.holds} for row in table],
    }


def plain(value: Any) -> Any:
    """Convert a value to a JSON value."""
    if isinstance(value, str):
        return value.strip()
    return None if isinstance(value, float) and not math.isfinite(value) else value
