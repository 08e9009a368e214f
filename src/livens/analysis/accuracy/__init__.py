"""Error estimation of a run: Richardson extrapolation from runs with other step sizes, and a-posteriori indicators.

>>> import livens as lv
>>> run = lv.simulate(lv.problems.load("nonlinear-pendulum"))
>>> estimate = run.accuracy()
>>> estimate.verdict, estimate.resolved
('resolved', True)
>>> exact = lv.problems.load("nonlinear-pendulum").reference(run.t[-1])["q"]
>>> true = abs(run.q[-1] - exact)[0] / estimate.size["q"]
>>> bool(1 / 3 < estimate.at_end["q"] / true < 3)
True
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from livens import schemes
from livens.analysis.accuracy.companions import Difference, Family, Rows, difference
from livens.analysis.accuracy.estimate import (
    GOOD,
    LARGE,
    NOT_RESOLVED,
    ORDER_NOT_SEEN,
    RANKS,
    RESOLVED,
    ROUND_OFF,
    UNKNOWN,
    UNTIL,
    Estimate,
)
from livens.analysis.accuracy.verdict import Judged, growth, judge, seen
from livens.analysis.accuracy.witnesses import algebraic_defect, energy_error, steps_per_turn
from livens.analysis.observables import walk
from livens.errors import InputError, Interrupted
from livens.expressions.numbers import not_negative
from livens.models.model import Model
from livens.results.result import Result
from livens.schemes.base import Scheme

__all__ = ["Estimate", "accuracy", "affordable"]

#: Time budget of the refined runs: in seconds, or as a fraction of the wall time of the run; the larger one applies.
SECONDS, SHARE = 2.0, 0.75
#: Number of steps below which only finer runs are compared, because coarser ones would have too few steps.
_FEW = 16
#: Minimum number of steps, and minimum fraction of the run, of an initial window of a long run.
_WINDOW_STEPS, _WINDOW_SHARE = 1000, 0.02
#: Round-off bound of the state in machine epsilons per step, relative to the magnitude of the state.
_ROUNDINGS = 4.0
#: Ratio of an indicator to the estimate above which it overrules the estimate; relative energy error that is round-off.
_OVERRULED, _ENERGY_FLOOR = 3.0, 1e-11
#: Maximum compile time, in seconds, for an estimate in a report.
_COMPILING = 5.0
#: Step-size multiples of the three runs, finest first, by the level of the run among them.
_FACTORS = {0: (1.0, 2.0, 4.0), 1: (0.5, 1.0, 2.0), 2: (0.25, 0.5, 1.0)}


def accuracy(
    run: Result,
    *,
    seconds: float = SECONDS,
    share: float = SHARE,
    scheme: str | Scheme | None = None,
    scaling: Any = None,
) -> Estimate:
    """Estimate the error of a run, relative to the size of its motion, from runs with other step sizes.

    The budget selects the method:

    - Runs with h/2 and 2h take 2.5 times the steps of the run; in doubt a run with h/4 follows. This is the reliable
      method. Runs with few steps are compared with finer runs only.
    - Otherwise runs with 2h and 4h, three quarters of the steps: less reliable, and checked against the energy.
    - Otherwise the same for an initial window of the run, extrapolated to its end: "at most about".

    Events are omitted: the refined runs end at the last row of the run. If event actions have changed the run, no error
    is estimated.

    Parameters
    ----------
    run : Result
        Run whose error is estimated.
    seconds : float, default 2.0
        Time budget in seconds.
    fraction : float, default 0.75
        Time budget as a fraction of the wall time of the run. The larger budget applies.
    scheme : str or Scheme, optional
        Scheme of the run; required for a user-defined scheme that is not registered.
    scaling : optional
        Time scaling of the run, as in `livens.simulate`; required for a user-defined scaling.

    Returns
    -------
    Estimate
        Verdict, errors by variable and their growth.
    """
    if any(event.get("changes") for event in run.record.events):
        words = "event actions changed the run, and refined runs omit them; compare with a run of half the step size"
        return Estimate(UNKNOWN, notes=[words])
    began = time.perf_counter()
    seconds, share = not_negative("seconds", seconds), not_negative("share", share)
    try:
        chosen = _scheme(run, scheme, scaling)
        found = _Estimation(run, run.system, chosen, max(seconds, share * run.statistics.wall_s)).estimate()
    except InputError as error:
        found = Estimate(UNKNOWN, notes=[str(error)])
    found.seconds = time.perf_counter() - began
    return found


def affordable(run: Result) -> Estimate:
    """Estimate the error for a report, in a few seconds at most, independently of the length of the run.

    A run from a file must be compiled again; the estimate is skipped if that takes too long.
    """
    if run._scheme is None and run.statistics.compile_s > _COMPILING:
        words = f"the model takes {run.statistics.compile_s:.0f} s to compile; call run.accuracy() to wait for it"
        return Estimate(UNKNOWN, notes=[words])
    try:
        return accuracy(run, share=0.0)
    except Interrupted:  # the report is printed without the estimate
        return Estimate(UNKNOWN, notes=["stopped by the user"])


def _scheme(run: Result, given: str | Scheme | None, scaling: Any) -> Scheme:
    """Return the scheme of a run with its scaling, as passed by the user or as recorded in the file."""
    if given is None and scaling is None and run._scheme is not None:
        return run._scheme
    chosen = schemes.get(run.facts.scheme if given is None else given)
    if chosen.fictive and scaling is None and run.problem is not None:
        scaling = run.problem.scaling
    return chosen if scaling is None else chosen.scaled(scaling)


class _Estimation:
    """Computation of one error estimate."""

    def __init__(self, run: Result, model: Model, scheme: Scheme, budget: float) -> None:
        self.run, self.model, self.scheme, self.budget = run, model, scheme, budget
        self.names = tuple(name for name in model.error_variables if name in run.stored)
        if not self.names:
            raise InputError(f"none of {', '.join(model.error_variables)} was stored")
        self.steps = max(run.statistics.steps, 1)
        self.begin, self.end = run.facts.t0, float(run.last("t"))
        if self.end <= self.begin:
            raise InputError("the run has no steps")
        wall = run.statistics.wall_s
        self.stop = self.end
        if 0.75 * wall > budget * (1 + 1e-9):
            part = max(budget / (2.5 * wall), _WINDOW_STEPS / self.steps)
            if part < _WINDOW_SHARE:
                raise InputError(f"a run of {wall:.3g} s has no refined runs within {budget:.3g} s; increase seconds")
            self.stop = self.begin + (self.end - self.begin) * min(part, 1.0)
        self.part = (self.stop - self.begin) / (self.end - self.begin)
        self.cost = self.part * wall  # wall time of the run until `stop`
        self.family = Family(run, model, scheme, self.names, _start(run, model), self.stop, self.part)
        rows = self.family.own
        self.size = {name: rows.size(name) for name in self.names}
        early = min(4 / self.steps / self.part, 0.5)  # four steps of the run
        shares = np.unique(np.concatenate([np.linspace(0.0125, 1.0, 80), np.geomspace(early, 1.0, 80)]))
        self.grid = self.begin + (self.stop - self.begin) * shares
        self.nearest: Difference | None = None

    def estimate(self) -> Estimate:
        """Return the estimate from refined runs, corrected by the indicators."""
        rows, order = self.family.own, self.scheme.order
        if not all(np.all(np.isfinite(rows.largest(name))) for name in self.names):
            wrong = dict.fromkeys(self.names, NOT_RESOLVED)
            return Estimate(NOT_RESOLVED, wrong, dict.fromkeys(self.names, math.inf), notes=["values are not finite"])
        place = 2 if self.steps * self.part < _FEW else 1 if 2.5 * self.cost <= self.budget * (1 + 1e-9) else 0
        if self.run.facts.every > 1:  # stored rows may miss the motion, for example rows at full periods
            whole = self.family[0.5 if place else 2.0]
            if whole is not None:
                self.size = {name: np.maximum(size, whole.size(name)) for name, size in self.size.items()}
        self.floor = {
            name: _ROUNDINGS * float(np.finfo(float).eps) * self.steps * rows.relative(name, self.size[name])
            for name in self.names
        }
        judged = self._look(place)
        if place == 1 and not self._sure(judged) and 4 * self.cost <= 2 * self.budget:
            place, judged = 2, self._look(2)  # decided by h/4
        found = Estimate(
            UNKNOWN,
            verdicts={name: each.verdict for name, each in judged.items()},
            error={name: each.error for name, each in judged.items()},
            ratio={name: each.ratio for name, each in judged.items()},
            size=self.size,
            order=order,
            place=place,
            steps_per_turn=steps_per_turn(rows, self.names[-1]),
            window=self.stop if self.stop < self.end else None,
            notes=self.family.notes,
        )
        self._over_time(found, judged)
        if NOT_RESOLVED in found.verdicts.values():  # agreement of one block is accidental if another is not resolved
            found.verdicts = dict.fromkeys(self.names, NOT_RESOLVED)
        self._grown(found)
        self._witnessed(found)
        found.verdict = max(found.verdicts.values(), key=RANKS.index)
        found.steps = self.family.steps
        return found

    def _look(self, place: int) -> dict[str, Judged]:
        a, b, c = (self.family[factor] for factor in _FACTORS[place])
        order = self.scheme.order
        pairs = difference(a, b, self.size, order), difference(b, c, self.size, order)
        self.nearest = pairs[1] if place == 2 else pairs[0]
        found = {}
        for name in self.names:
            fine, coarse = (None if pair is None else pair.largest(name, self.grid) for pair in pairs)
            found[name] = judge(fine, coarse, order, place, self.floor[name])
        return found

    @staticmethod
    def _sure(judged: dict[str, Judged]) -> bool:
        return all(each.verdict in (RESOLVED, ROUND_OFF) for each in judged.values())

    def _over_time(self, found: Estimate, judged: dict[str, Judged]) -> None:
        """Set the error at all compared times, and the time at which it reaches a tenth of the motion."""
        if self.nearest is None:
            return
        found.t = self.nearest.t
        for name, each in judged.items():
            if not math.isfinite(each.factor):
                continue
            curve = each.factor * self.nearest.now[name]
            found.over_time[name], found.at_end[name] = curve, float(curve[-1])
            late = self.grid[np.nan_to_num(each.factor * self.nearest.largest(name, self.grid)) >= LARGE]
            if not len(late) or each.verdict != NOT_RESOLVED:
                continue
            found.until[name] = float(late[0])
            enough = (found.until[name] - self.begin) / (self.end - self.begin) * self.steps >= _FEW
            if enough and seen(each.ratio, self.scheme.order):
                found.verdicts[name] = UNTIL  # converges with the declared order, accurate up to this time

    def _grown(self, found: Estimate) -> None:
        """Set the growth law of the error; extrapolate the error from a window to the end of the run."""
        trend = growth(self.nearest, self.floor)
        found.growth, found.rate = trend.word, trend.rate
        if found.window is None or not all(verdict in GOOD for verdict in found.verdicts.values()):
            return
        # a steady loss or gain of energy causes a quadratic phase error, which a short window may not show
        least = 1.0 if self.scheme.symmetric or self.scheme.symplectic else 2.0
        times = (1 / self.part) ** max(trend.power, least)
        if trend.rate is not None:
            times = math.exp(min(trend.rate * (self.end - self.stop), 700.0))
        found.error = {name: min(value * times, 2.0) for name, value in found.error.items()}
        found.at_end = dict(found.error)
        for name, error in found.error.items():
            if error >= LARGE:
                found.verdicts[name] = UNTIL

    def _witnessed(self, found: Estimate) -> None:
        """Correct the estimate by indicators: energy and algebraic variables may reveal errors common to all runs."""
        energy = energy_error(self.run, self.model)
        known = [value for value in found.error.values() if math.isfinite(value)]
        if energy is not None and energy > max(_OVERRULED * max(known, default=0.0), _ENERGY_FLOOR):
            found.notes.append(f"the error of the energy alone is {energy:.1e}")
            found.error = {name: max(value, energy) for name, value in found.error.items()}
            for name, verdict in found.verdicts.items():
                found.verdicts[name] = ORDER_NOT_SEEN if verdict in GOOD else verdict
            if energy >= LARGE:
                found.verdicts = dict.fromkeys(self.names, NOT_RESOLVED)
        if self.names != ("x",):
            return
        sizes = dict(self.size)
        if self.model.algebraic and "y" in self.run.stored:
            sizes["y"] = Rows(self.run, ("y",), equal=False).size("y")
        for name, (defect, own) in algebraic_defect(self.run, self.model, sizes).items():
            if name == "y":
                _algebraic(found, defect, own, sizes["y"])
            elif defect > _OVERRULED * (found.error[name] + own):
                found.notes.append(
                    f"states without a derivative (multipliers) violate the equations: {defect:.0e} of their motion"
                )
                found.error[name] = defect
                found.verdicts[name] = NOT_RESOLVED if defect >= LARGE else ORDER_NOT_SEEN


def _algebraic(found: Estimate, defect: float, own: float, size: Any) -> None:
    """Add the error of algebraic variables, which have their own order: their defect, if it is known well enough."""
    if own >= LARGE and defect <= _OVERRULED * own:
        return  # the rows are too far apart for difference quotients
    error = defect + own
    found.error["y"], found.size["y"] = error, size
    found.verdicts["y"] = NOT_RESOLVED if error >= LARGE else RESOLVED if defect > _OVERRULED * own else ORDER_NOT_SEEN


def _start(run: Result, model: Model) -> dict[str, Any]:
    """Return the initial values of the refined runs: the first row of the run."""
    names = [name for name in model.view.symbols if name in run.stored]
    _, first = next(walk(run, names, rows=1))
    values = {name: value[0] for name, value in zip(names, first, strict=True)}
    missing = [name for name in model.error_variables if name not in values]
    if missing:
        raise InputError(f"the initial value of {' and '.join(missing)} was not stored")
    return model.start_from({name: value for name, value in values.items() if value.size})


Result.attach("accuracy", accuracy)
