"""How accurate was this run? Companions with other steps answer, and what the run says of itself.

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

#: Companions may take this long, or this share of the time the run took, whichever is more.
SECONDS, SHARE = 2.0, 0.75
#: Runs of fewer steps have no coarser companions, only finer ones.
_FEW = 16
#: A window at the start of a long run has at least this many steps, and is at least this part of it.
_WINDOW_STEPS, _WINDOW_SHARE = 1000, 0.02
#: Round-off: this many units in the last place per step of the run, relative to the size of the numbers.
_ROUNDINGS = 4.0
#: A witness that sees more than this many estimates overrules them; an energy below the second number is round-off.
_OVERRULED, _ENERGY_FLOOR = 3.0, 1e-11
#: Reports do not wait for a model that takes longer than this to compile, in seconds.
_COMPILING = 5.0
#: The steps of the three runs, finest first, by the place of the run among them.
_FACTORS = {0: (1.0, 2.0, 4.0), 1: (0.5, 1.0, 2.0), 2: (0.25, 0.5, 1.0)}


def accuracy(
    run: Result,
    *,
    seconds: float = SECONDS,
    share: float = SHARE,
    scheme: str | Scheme | None = None,
    scaling: Any = None,
) -> Estimate:
    """The error of a run, relative to the size of its motion, from the same run with other steps.

    What is affordable decides: `seconds`, or `share` of the time that the run took if that is more.

    - Companions with h/2 and 2h take two and a half times the steps of the run; on doubt one with h/4 follows. This is
      the reliable way. Runs of few steps have the finer companions only.
    - Else those with 2h and 4h, three quarters of its steps: less often right, and checked against the energy.
    - Else the same for a part of the run at its start, extrapolated to its end: "at most about".

    A `scheme` or a `scaling` of your own that cannot be found by name is to be given as to `livens.simulate`. Events
    are left out: companions go to the last row of the run. Of a run that events have acted on, nothing is known.
    """
    if any(event.get("changes") for event in run.record.events):
        words = "events have acted on the run, which companions do not know of; compare with a run of half the step"
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
    """The estimate that reports show by themselves: it takes a few seconds at most, however long the run was.

    A run from a file has to be compiled again, which may take too long, too.
    """
    if run._scheme is None and run.statistics.compile_s > _COMPILING:
        words = f"the model takes {run.statistics.compile_s:.0f} s to get ready; run.accuracy() does not mind"
        return Estimate(UNKNOWN, notes=[words])
    try:
        return accuracy(run, share=0.0)
    except Interrupted:  # whoever does not want to wait has the report all the same
        return Estimate(UNKNOWN, notes=["stopped by the user"])


def _scheme(run: Result, given: str | Scheme | None, scaling: Any) -> Scheme:
    """The scheme of a run with its scaling: as it was given, or by what a file says."""
    if given is None and scaling is None and run._scheme is not None:
        return run._scheme
    chosen = schemes.get(run.facts.scheme if given is None else given)
    if chosen.fictive and scaling is None and run.problem is not None:
        scaling = run.problem.scaling
    return chosen if scaling is None else chosen.scaled(scaling)


class _Estimation:
    """One estimate under way."""

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
                raise InputError(f"a run of {wall:.3g} s has no companions within {budget:.3g} s; give more seconds")
            self.stop = self.begin + (self.end - self.begin) * min(part, 1.0)
        self.part = (self.stop - self.begin) / (self.end - self.begin)
        self.cost = self.part * wall  # of the run until there
        self.family = Family(run, model, scheme, self.names, _start(run, model), self.stop, self.part)
        rows = self.family.own
        self.size = {name: rows.size(name) for name in self.names}
        early = min(4 / self.steps / self.part, 0.5)  # four steps of the run
        shares = np.unique(np.concatenate([np.linspace(0.0125, 1.0, 80), np.geomspace(early, 1.0, 80)]))
        self.grid = self.begin + (self.stop - self.begin) * shares
        self.nearest: Difference | None = None

    def estimate(self) -> Estimate:
        """Companions first, then the witnesses."""
        rows, order = self.family.own, self.scheme.order
        if not all(np.all(np.isfinite(rows.largest(name))) for name in self.names):
            wrong = dict.fromkeys(self.names, NOT_RESOLVED)
            return Estimate(NOT_RESOLVED, wrong, dict.fromkeys(self.names, math.inf), notes=["values are not finite"])
        place = 2 if self.steps * self.part < _FEW else 1 if 2.5 * self.cost <= self.budget * (1 + 1e-9) else 0
        if self.run.facts.every > 1:  # the rows of the run may miss its motion, such as rows at full periods
            whole = self.family[0.5 if place else 2.0]
            if whole is not None:
                self.size = {name: np.maximum(size, whole.size(name)) for name, size in self.size.items()}
        self.floor = {
            name: _ROUNDINGS * float(np.finfo(float).eps) * self.steps * rows.relative(name, self.size[name])
            for name in self.names
        }
        judged = self._look(place)
        if place == 1 and not self._sure(judged) and 4 * self.cost <= 2 * self.budget:
            place, judged = 2, self._look(2)  # h/4 settles it
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
        if NOT_RESOLVED in found.verdicts.values():  # what is right beside something wrong is so by chance
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
        """The error at all times that were compared, and when it reaches a tenth of the motion."""
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
                found.verdicts[name] = UNTIL  # it converges as it should, and was accurate for a while

    def _grown(self, found: Estimate) -> None:
        """How the error grows; from a window it is extrapolated to the end of the run."""
        trend = growth(self.nearest, self.floor)
        found.growth, found.rate = trend.word, trend.rate
        if found.window is None or not all(verdict in GOOD for verdict in found.verdicts.values()):
            return
        # what loses or gains energy steadily is out of phase by the square of time, though a window may not show it
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
        """Energy and algebraic variables may see what companions agree on wrongly."""
        energy = energy_error(self.run, self.model)
        known = [value for value in found.error.values() if math.isfinite(value)]
        if energy is not None and energy > max(_OVERRULED * max(known, default=0.0), _ENERGY_FLOOR):
            found.notes.append(f"the energy alone is wrong by {energy:.1e}")
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
                    f"states without a derivative (multipliers) do not fit the equations: {defect:.0e} of their motion"
                )
                found.error[name] = defect
                found.verdicts[name] = NOT_RESOLVED if defect >= LARGE else ORDER_NOT_SEEN


def _algebraic(found: Estimate, defect: float, own: float, size: Any) -> None:
    """Algebraic variables have orders of their own: their defect is their error, where it is known well enough."""
    if own >= LARGE and defect <= _OVERRULED * own:
        return  # the rows are too far apart for derivatives: nothing can be said
    error = defect + own
    found.error["y"], found.size["y"] = error, size
    found.verdicts["y"] = NOT_RESOLVED if error >= LARGE else RESOLVED if defect > _OVERRULED * own else ORDER_NOT_SEEN


def _start(run: Result, model: Model) -> dict[str, Any]:
    """Where the companions start: in the first row of the run."""
    names = [name for name in model.view.symbols if name in run.stored]
    _, first = next(walk(run, names, rows=1))
    values = {name: value[0] for name, value in zip(names, first, strict=True)}
    missing = [name for name in model.error_variables if name not in values]
    if missing:
        raise InputError(f"{' and '.join(missing)} of the start was not stored")
    return model.start_from({name: value for name, value in values.items() if value.size})


Result.attach("accuracy", accuracy)
