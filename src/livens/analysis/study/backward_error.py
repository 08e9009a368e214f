"""Backward error analysis: energy drift of a run, and conservation of the modified energy.

A symplectic scheme of order p follows, up to terms smaller than any power of h, the exact motion of a modified energy
``E + h^p E_p + h^(p+1) E_(p+1) + ...``. Along a run the energy E then differs from its initial value by
``-h^p (E_p(z) - E_p(z_0)) + ...``: it oscillates with an amplitude of order p and does not drift. Both are measured. A
drift shows that no modified energy exists.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass

import numpy as np

from livens import schemes
from livens.analysis.conservation import json_value
from livens.analysis.energy_balance import balance, has_energy_record, reference_scale
from livens.analysis.round_off import round_off
from livens.analysis.trend import Trend, fit_line
from livens.errors import InputError, explain_call_errors
from livens.models.problem import Problem
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.scene import html
from livens.schemes.core.scheme import Scheme

#: Number of segments of equal length over which the energy is averaged for the linear fit.
_N_SEGMENTS = 12
#: Minimum number of rows per segment.
_MIN_ROWS = 8
#: Maximum separation of the runs with h and h/2, as a fraction of the range of the motion, for a comparison.
_MAX_SEPARATION = 0.01
#: Multiple of the round-off bound of the energy that counts as round-off per step; over n steps it grows like sqrt(n).
_ROUND_OFF_FACTOR = 100

#: Upper bound of the drift over the run, as a fraction of the amplitude, for the verdict "no drift".
_MAX_DRIFT_FRACTION = 0.1

ROUND_OFF, OSCILLATES, DRIFTS = "conserved to round-off", "oscillates, no drift", "drifts"
UNDECIDED = "undecided: the run is too short, or the energy moves along no line"


@dataclass(frozen=True)
class ModifiedEnergy:
    """Energy drift and modified energy of a run, relative to the size of the energy.

    Parameters
    ----------
    scheme : str
        Name of the scheme.
    h : float
        Step size.
    order : int
        Order of the scheme.
    span : float
        Duration of the run.
    drift : Trend
        Drift of the energy per unit time with its 95 % confidence interval.
    amplitude : float
        Largest deviation of the energy from the fitted line.
    fine_amplitude : float
        Amplitude of a run with half the step size.
    round_off : float
        Amplitude that counts as round-off.
    window : float
        Time up to which the two runs are compared.
    energy : float
        Largest deviation of the energy from its initial value up to `window`.
    modified : float
        Largest deviation of the modified energy from its initial value up to `window`.
    """

    scheme: str
    h: float
    order: int
    span: float
    drift: Trend
    amplitude: float
    fine_amplitude: float
    round_off: float
    window: float
    energy: float
    modified: float

    @property
    def verdict(self) -> str:
        """Verdict on the energy drift.

        "drifts": the drift is significant and exceeds round-off. "oscillates, no drift": the upper bound of the drift
        changes the energy over the run by less than a tenth of its amplitude.
        """
        if self.drift.significant and abs(self.drift.rate) * self.span > self.round_off:
            return DRIFTS
        if self.amplitude <= self.round_off:
            return ROUND_OFF
        return OSCILLATES if self.largest_drift * self.span <= _MAX_DRIFT_FRACTION * self.amplitude else UNDECIDED

    @property
    def measured_order(self) -> float:
        """Exponent of h of the amplitude; NaN where the amplitude is round-off."""
        if min(self.amplitude, self.fine_amplitude) <= self.round_off:
            return math.nan
        return math.log2(self.amplitude / self.fine_amplitude)

    @property
    def largest_drift(self) -> float:
        """Upper bound of the absolute drift per unit time, with 95 % confidence."""
        return abs(self.drift.rate) + self.drift.uncertainty

    def as_object(self) -> dict[str, float | str]:
        """Return the result as a dict for JSON; values that are not finite become None.

        Returns
        -------
        dict
            Fields of the result, `drift`, `verdict` and `measured_order` by name.
        """
        data = dataclasses.asdict(self) | {
            "drift": self.drift.rate,
            "drift_uncertainty": self.drift.uncertainty,
            "verdict": self.verdict,
            "measured_order": self.measured_order,
        }
        return {name: json_value(value) for name, value in data.items()}

    def _repr_html_(self) -> str:
        return html.definition_table(self.as_object())

    def __str__(self) -> str:
        order = f", as h^{self.measured_order:.2f}" if math.isfinite(self.measured_order) else ""
        return (
            f"{self.scheme}, h = {self.h:g}: {self.verdict}; drift {self.drift.rate:+.1e} ± "
            f"{self.drift.uncertainty:.0e} per unit time, amplitude {self.amplitude:.1e}{order}; until t = "
            f"{self.window:.3g} the modified energy moves by {self.modified:.1e}, the energy by {self.energy:.1e}"
        )


@explain_call_errors
def modified_energy(
    run: Problem | Result,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t_end: float | None = None,
    *,
    every: int = 1,
    scaling: object = None,
) -> ModifiedEnergy:
    """Measure the energy drift of a run with confidence interval, and the conservation of the modified energy.

    The run is repeated with h/2. The drift is the rate of a line through averages of the energy over 12 segments of the
    run (fewer with few rows). The smooth weights ``sin^4`` of the averages suppress oscillations of more than three
    periods per segment. The uncertainty of the drift decreases with the length of the run. Supplied and dissipated
    energy are accounted for.

    The modified energy is known through its leading terms. With ``E_h(t)`` for the energy of the run,
    ``(2^p E_(h/2) - E_h)/(2^p - 1)`` does not contain ``h^p E_p``, as long as both runs agree within a hundredth of the
    range of the motion. If the energy oscillates, the modified energy varies much less: by ``h^(p+2)`` for a symmetric
    scheme. (If the energy drifts, this holds initially as well and proves nothing.)

    Parameters
    ----------
    run : Problem or Result
        Problem to simulate, or a run with equal steps of time or of a fictive time.
    scheme : str or Scheme, optional
        Integration scheme of a problem.
    h : float, optional
        Step size of a problem.
    t_end : float, optional
        Final time of a problem.
    every : int, default 1
        Store every `every`-th step.
    scaling : optional
        Time scaling, as in `livens.simulate`.

    Returns
    -------
    ModifiedEnergy
        Drift, amplitudes and deviation of the modified energy.

    Raises
    ------
    InputError
        If the model has no energy, or if the run is too short or has step-size control.

    Examples
    --------

    >>> import livens as lv
    >>> kepler = lv.problems.load("kepler", e=0.5)
    >>> verlet = modified_energy(kepler, "stormer-verlet", h=0.01, t_end=600.0)
    >>> verlet.verdict, verlet.largest_drift < 1e-8 < 1e-4 < verlet.amplitude
    ('oscillates, no drift', True)
    >>> print(f"{verlet.measured_order:.1f}", verlet.modified < 1e-2 * verlet.energy)
    2.0 True
    >>> modified_energy(kepler, "heun", h=0.01, t_end=600.0).verdict
    'drifts'
    """
    if isinstance(run, Result):
        if scheme is not None or h is not None or t_end is not None:
            raise InputError("scheme, h and t_end are those of the run; pass a problem to choose them")
        coarse, problem, every = run, _problem_of(run), run.info.every
    else:
        problem = run
        coarse = simulate(
            problem, scheme=scheme, h=h, t_end=t_end, every=every, redundant="remove", scaling=scaling, progress=False
        )
        scheme = scheme if scheme is not None else problem.scheme
    _check(coarse)
    info = coarse.info
    fine = simulate(
        problem,
        scheme=info.scheme if scheme is None else scheme,
        h=info.h / 2,
        t0=info.t0,
        t_end=info.t_end,
        parameters=info.parameters,
        every=2 * every,
        redundant="remove",
        scaling=scaling,
        progress=False,
    )
    size, order = reference_scale(coarse)[0], schemes.get(info.scheme if scheme is None else scheme).order
    E, E_fine = balance(coarse) / size, balance(fine) / size
    drift, amplitude = _fit_drift(coarse.t, E)
    fine_amplitude = _fit_drift(fine.t, E_fine)[1]
    n_common = _common_rows(coarse, fine)
    factor = 2.0**order
    modified = (factor * E_fine[:n_common] - E[:n_common]) / (factor - 1)
    steps = max(coarse.statistics.steps, 1)
    return ModifiedEnergy(
        info.scheme,
        info.h,
        order,
        float(coarse.t[-1] - coarse.t[0]),
        drift,
        amplitude,
        fine_amplitude,
        _ROUND_OFF_FACTOR * round_off(coarse, coarse.summary.energy) / size * math.sqrt(steps),
        float(coarse.t[n_common - 1]),
        _max_change(E[:n_common]),
        _max_change(modified),
    )


def _check(run: Result) -> None:
    if not run.summary.energy:
        raise InputError("the model has no energy")
    if not has_energy_record(run):
        raise InputError("the energy balance is unknown: the run did not store supplied_energy and dissipated_energy")
    if run.info.control:
        raise InputError("a run with step-size control has no modified energy: omit control")
    if len(run.t) < _MIN_ROWS**2:
        raise InputError(f"a run with {len(run.t)} rows is too short for a drift: at least {_MIN_ROWS**2} are needed")


def _fit_drift(t: np.ndarray, E: np.ndarray) -> tuple[Trend, float]:
    """Fit a line to segment averages of the energy; return its trend and the largest deviation from it."""
    count = min(_N_SEGMENTS, len(t) // _MIN_ROWS)
    edges = np.linspace(t[0], t[-1], count + 1)
    weights = np.gradient(t)  # rows may be unevenly spaced
    times, means = [], []
    for a, b in itertools.pairwise(edges):
        in_segment = (t >= a) & (t <= b)
        weight = weights[in_segment] * np.sin(np.pi * (t[in_segment] - a) / (b - a)) ** 4
        if weight.sum() > 0:
            times.append(weight @ t[in_segment] / weight.sum())
            means.append(weight @ (E[in_segment] - E[0]) / weight.sum())
    x, y = np.array(times), np.array(means)
    trend = fit_line(x, y)
    if trend is None:
        raise InputError("the energy is not finite")
    return trend, float(np.abs(E - E[0] - y.mean() - trend.rate * (t - x.mean())).max())


def _max_change(values: np.ndarray) -> float:
    return float(np.abs(values - values[0]).max())


def _common_rows(coarse: Result, fine: Result) -> int:
    """Return the number of rows up to which both runs agree; the last row may end a shortened step and is excluded."""
    rows = min(len(coarse.t), len(fine.t)) - 1
    separation = np.zeros(rows)
    for name in _state_variables(coarse):
        a, b = getattr(coarse, name)[:rows], getattr(fine, name)[:rows]
        motion_range = np.ptp(a, axis=0)
        separation = np.maximum(separation, (np.abs(a - b) / np.where(motion_range > 0, motion_range, 1.0)).max(axis=1))
    separated = np.flatnonzero(~(separation <= _MAX_SEPARATION))
    return max(int(separated[0]) if separated.size else rows, 2)


def _state_variables(run: Result) -> list[str]:
    return [name for name in run.system.view.symbols if name in run.stored]


def _problem_of(run: Result) -> Problem:
    """Return a problem with the initial values of a run."""
    info, model = run.info, run.system
    initial = model.initial_values_from({name: getattr(run, name)[0] for name in _state_variables(run)})
    problem = run.problem
    if problem is not None:
        return dataclasses.replace(problem, model=model, initial_values=initial)
    return Problem("run", model, None, None, info.scheme, info.h, info.t_end, info.t0, initial_values=initial)
