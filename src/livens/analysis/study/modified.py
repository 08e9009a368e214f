"""Backward error at work: whether the energy of a run drifts, and the energy that the scheme conserves instead.

A symplectic scheme of order p follows, up to terms that no power of h shows, the exact motion of a modified energy
``E + h^p E_p + h^(p+1) E_(p+1) + ...``. Along a run the energy E itself then differs from its start by
``-h^p (E_p(z) - E_p(z_0)) + ...``: it oscillates with an amplitude of order p, and it does not drift. Both can be
measured. A drift, if there is one, shows that there is no such energy.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens import schemes
from livens.analysis.energy_balance import balance, recorded, scale
from livens.analysis.round_off import round_off
from livens.analysis.trend import Trend, line
from livens.analysis.verdicts import plain
from livens.errors import InputError
from livens.models import html
from livens.models.problem import Problem
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.schemes.base import Scheme

#: The run is averaged over this many parts of equal length, and a line is laid through the averages.
_PARTS = 12
#: An average over fewer rows than this smooths nothing.
_ROWS = 8
#: Runs with h and h/2 are compared as long as they are together: up to this part of what the motion moves.
_TOGETHER = 0.01
#: This many roundings of the energy count as round-off in every step; over many steps they add up at random.
_ROUNDINGS = 100

#: There is no drift if what may still be one moves the energy by less than this part of its amplitude in the run.
_WORTH_MENTIONING = 0.1

ROUND_OFF, OSCILLATES, DRIFTS = "conserved to round-off", "oscillates, no drift", "drifts"
UNDECIDED = "undecided: the run is too short, or the energy moves along no line"


@dataclass(frozen=True)
class ModifiedEnergy:
    """What became of the energy of a run, relative to its size.

    `drift` is the slope of the energy with its 95 % confidence interval; `amplitude` is how far the energy is from
    that line at most, and `fine_amplitude` the same of a run with half the step. Until `window`, where both runs part,
    `modified` is how far the modified energy is from its start, to be compared with `energy`, how far the energy is.
    """

    scheme: str
    h: float
    order: int  # of the scheme
    span: float  # of time
    drift: Trend
    amplitude: float
    fine_amplitude: float
    round_off: float  # amplitudes up to this are nothing else
    window: float
    energy: float
    modified: float

    @property
    def verdict(self) -> str:
        """In words. A drift is one if it is significant and moves the energy by more than round-off.

        That there is none takes a proof as well: the largest that the measurement allows would move the energy, over
        the whole run, by less than a tenth of its amplitude.
        """
        if self.drift.significant and abs(self.drift.slope) * self.span > self.round_off:
            return DRIFTS
        if self.amplitude <= self.round_off:
            return ROUND_OFF
        return OSCILLATES if self.largest_drift * self.span <= _WORTH_MENTIONING * self.amplitude else UNDECIDED

    @property
    def measured_order(self) -> float:
        """With which power of h the amplitude falls; NaN where it is round-off."""
        if min(self.amplitude, self.fine_amplitude) <= self.round_off:
            return math.nan
        return math.log2(self.amplitude / self.fine_amplitude)

    @property
    def largest_drift(self) -> float:
        """What the drift per unit time may be at most, in absolute value, with 95 % confidence."""
        return abs(self.drift.slope) + self.drift.uncertainty

    def as_object(self) -> dict[str, Any]:
        """Plain data for JSON; what is not finite is None."""
        found = dataclasses.asdict(self) | {
            "drift": self.drift.slope,
            "drift_uncertainty": self.drift.uncertainty,
            "verdict": self.verdict,
            "measured_order": self.measured_order,
        }
        return {name: plain(value) for name, value in found.items()}

    def _repr_html_(self) -> str:
        return html.listing(self.as_object())

    def __str__(self) -> str:
        order = f", as h^{self.measured_order:.2f}" if math.isfinite(self.measured_order) else ""
        return (
            f"{self.scheme}, h = {self.h:g}: {self.verdict}; drift {self.drift.slope:+.1e} ± "
            f"{self.drift.uncertainty:.0e} per unit time, amplitude {self.amplitude:.1e}{order}; until t = "
            f"{self.window:.3g} the modified energy moves by {self.modified:.1e}, the energy by {self.energy:.1e}"
        )


def modified_energy(
    run: Problem | Result,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t_end: float | None = None,
    *,
    every: int = 1,
    scaling: Any = None,
) -> ModifiedEnergy:
    """Measure whether the energy of a run drifts, with confidence, and how well the modified energy is conserved.

    `run` is a problem, which is then run with `scheme`, `h` and `t_end`, or a run with equal steps (of time, or of a
    fictive time: `scaling` as it was given). It is run once more with h/2.

    The drift is the slope of a line through averages of the energy over 12 parts of the run (fewer, if rows are few).
    They are weighted so that they begin and end smoothly, ``sin^4``: what oscillates more than three times within a
    part leaves hardly a trace in its average. The longer the run, the less the drift is uncertain. The energy is
    taken without what forces brought in and with what was dissipated.

    The modified energy is known through its leading terms: with ``E_h(t)`` for the energy of the run,
    ``(2^p E_(h/2) - E_h)/(2^p - 1)`` is the one without ``h^p E_p``, as long as both runs are at the same place, that
    is within a hundredth of what the motion moves. Where the energy oscillates, it moves much less than the energy:
    by ``h^(p+2)`` of a symmetric scheme. (Where the energy drifts it does so too, at first: that alone proves nothing.)

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
            raise InputError("a run has its scheme, step and end already; give a problem to choose them")
        coarse, problem, every = run, _problem_of(run), run.facts.every
    else:
        problem = run
        coarse = simulate(
            problem, scheme=scheme, h=h, t_end=t_end, every=every, redundant="remove", scaling=scaling, progress=False
        )
        scheme = scheme if scheme is not None else problem.scheme
    _check(coarse)
    facts = coarse.facts
    fine = simulate(
        problem,
        scheme=facts.scheme if scheme is None else scheme,
        h=facts.h / 2,
        t0=facts.t0,
        t_end=facts.t_end,
        parameters=facts.parameters,
        every=2 * every,
        redundant="remove",
        scaling=scaling,
        progress=False,
    )
    size, order = scale(coarse)[0], schemes.get(facts.scheme if scheme is None else scheme).order
    E, E_fine = balance(coarse) / size, balance(fine) / size
    drift, amplitude = _line(coarse.t, E)
    fine_amplitude = _line(fine.t, E_fine)[1]
    together = _together(coarse, fine)
    factor = 2.0**order
    modified = (factor * E_fine[:together] - E[:together]) / (factor - 1)
    steps = max(coarse.statistics.steps, 1)
    return ModifiedEnergy(
        facts.scheme,
        facts.h,
        order,
        float(coarse.t[-1] - coarse.t[0]),
        drift,
        amplitude,
        fine_amplitude,
        _ROUNDINGS * round_off(coarse, coarse.summary.energy) / size * math.sqrt(steps),
        float(coarse.t[together - 1]),
        _moved(E[:together]),
        _moved(modified),
    )


def _check(run: Result) -> None:
    if not run.summary.energy:
        raise InputError("the model has no energy")
    if not recorded(run):
        raise InputError("the run did not store supplied_energy and dissipated_energy, without which nothing is known")
    if run.facts.control:
        raise InputError("steps of controlled size have no modified energy: leave the control out")
    if len(run.t) < _ROWS**2:
        raise InputError(f"a run with {len(run.t)} rows is too short for a drift: at least {_ROWS**2} are needed")


def _line(t: np.ndarray, E: np.ndarray) -> tuple[Trend, float]:
    """The line through averages of parts of the run, and how far the energy is from it at most."""
    count = min(_PARTS, len(t) // _ROWS)
    edges = np.linspace(t[0], t[-1], count + 1)
    weights = np.gradient(t)  # rows may be close here and far apart there
    times, means = [], []
    for a, b in itertools.pairwise(edges):
        inside = (t >= a) & (t <= b)
        weight = weights[inside] * np.sin(np.pi * (t[inside] - a) / (b - a)) ** 4
        if weight.sum() > 0:
            times.append(weight @ t[inside] / weight.sum())
            means.append(weight @ (E[inside] - E[0]) / weight.sum())
    x, y = np.array(times), np.array(means)
    found = line(x, y)
    if found is None:
        raise InputError("the energy is not finite")
    return found, float(np.abs(E - E[0] - y.mean() - found.slope * (t - x.mean())).max())


def _moved(values: np.ndarray) -> float:
    return float(np.abs(values - values[0]).max())


def _together(coarse: Result, fine: Result) -> int:
    """How many rows of both runs belong together: not the last, which may end a shortened step."""
    rows = min(len(coarse.t), len(fine.t)) - 1
    apart = np.zeros(rows)
    for name in _state(coarse):
        a, b = getattr(coarse, name)[:rows], getattr(fine, name)[:rows]
        reach = np.ptp(a, axis=0)
        apart = np.maximum(apart, (np.abs(a - b) / np.where(reach > 0, reach, 1.0)).max(axis=1))
    gone = np.flatnonzero(~(apart <= _TOGETHER))
    return max(int(gone[0]) if gone.size else rows, 2)


def _state(run: Result) -> list[str]:
    return [name for name in run.system.view.symbols if name in run.stored]


def _problem_of(run: Result) -> Problem:
    """A problem that starts where the run started."""
    facts, model = run.facts, run.system
    start = model.start_from({name: getattr(run, name)[0] for name in _state(run)})
    known = run.problem
    if known is not None:
        return dataclasses.replace(known, system=model, start=start)
    return Problem("run", model, None, None, facts.scheme, facts.h, facts.t_end, facts.t0, start=start)
