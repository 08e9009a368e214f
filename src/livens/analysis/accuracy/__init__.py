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
from livens.analysis.accuracy.estimate import (
    ACCEPTABLE,
    LARGE_ERROR,
    NOT_RESOLVED,
    ORDER_NOT_OBSERVED,
    RESOLVED,
    RESOLVED_UNTIL,
    ROUND_OFF,
    UNKNOWN,
    VERDICT_ORDER,
    Estimate,
)
from livens.analysis.accuracy.indicators import (
    algebraic_defect,
    energy_error,
    is_at_rest,
    is_constant,
    steps_per_oscillation,
)
from livens.analysis.accuracy.refined_runs import RefinedRuns, RunDifference, RunSamples, difference
from livens.analysis.accuracy.richardson import (
    ROUND_OFF_MARGIN,
    RichardsonEstimate,
    error_growth,
    is_order_visible,
    richardson_estimate,
)
from livens.analysis.observables import iterate_blocks
from livens.errors import InputError, Interrupted
from livens.models.base import Model
from livens.models.state_switches import StateSwitches
from livens.models.switch_times import switch_times
from livens.results.result import Result
from livens.schemes.core.scheme import Scheme
from livens.types import FloatArray
from livens.validation import check_nonnegative

__all__ = ["Estimate", "accuracy", "estimate_within_budget"]

#: Time budget of the refined runs: in seconds, or as a fraction of the wall time of the run; the larger one applies.
SECONDS, FRACTION = 2.0, 0.75
#: Number of steps below which only finer runs are compared, because coarser ones would have too few steps.
_MIN_STEPS = 16
#: Minimum number of steps, and minimum fraction of the run, of an initial window of a long run.
_WINDOW_STEPS, _WINDOW_FRACTION = 1000, 0.02
#: Round-off bound of the state in machine epsilons per step, relative to the magnitude of the state.
_ROUND_OFF_FACTOR = 4.0
#: Round-off of an unstable motion in machine epsilons times the growth and the square root of the rounded steps.
_AMPLIFIED = 0.5
#: Ratio of an indicator to the estimate above which it overrules the estimate; relative energy error that is round-off.
_INDICATOR_FACTOR, _ENERGY_ROUND_OFF = 3.0, 1e-11
#: Maximum compile time, in seconds, for an estimate in a report.
_MAX_COMPILE_S = 5.0
#: Distance of a switch time from the nodes in steps, within which it counts as a node.
_ON_GRID = 1e-7
#: Largest number of switch times at which a refined run starts anew.
_MAX_PIECES = 64
#: Step-size multiples of the runs in which switches have other places within steps. The second one is irrational: a
#: switch just after a node is at the same distance from a node of all runs with h/n.
_OTHER_FRACTIONS = 1 / 3, 2 / (5 + math.sqrt(5))
#: Ratio of the error to the largest distance from these runs, whose own errors are smaller.
_FRACTION_FACTOR = 1.5
#: Relative error below which differences that do not decrease are compared with more runs.
_UNCONFIRMED_ERROR = 0.02
#: Step-size multiples of the three runs, finest first, by the level of the run among them.
_STEP_FACTORS = {0: (1.0, 2.0, 4.0), 1: (0.5, 1.0, 2.0), 2: (0.25, 0.5, 1.0)}


def accuracy(
    run: Result,
    *,
    seconds: float = SECONDS,
    fraction: float = FRACTION,
    scheme: str | Scheme | None = None,
    scaling: object = None,
) -> Estimate:
    """Estimate the error of a run, relative to the size of its motion, from runs with other step sizes.

    The budget selects the method:

    - Runs with h/2 and 2h take 2.5 times the steps of the run; in doubt a run with h/4 follows. This is the reliable
      method. Runs with few steps are compared with finer runs only.
    - Otherwise runs with 2h and 4h, three quarters of the steps: less reliable, and checked against the energy.
    - Otherwise the same for an initial window of the run, extrapolated to its end: "at most about".

    Events without actions are omitted: the refined runs end at the last row of the run. If event actions have changed
    the run, refined runs have the same events and are compared from one action to the next. Files do not contain
    events: no error is estimated for a loaded run with event actions.

    If equations switch within steps, as those of ``where(q[0] < 0, ...)``, differences of runs have no order. The run
    is then also compared with runs of h/3 and h/3.6.

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
    if run._events is None and any(event.get("changes") for event in run.record.events):
        note = "event actions changed the run, and files do not contain them; compare with a run of half the step size"
        return Estimate(UNKNOWN, notes=[note])
    started = time.perf_counter()
    seconds, fraction = check_nonnegative("seconds", seconds), check_nonnegative("share", fraction)
    try:
        chosen = _scheme(run, scheme, scaling)
        estimate = _Estimation(run, run.system, chosen, max(seconds, fraction * run.statistics.wall_s)).estimate()
    except InputError as error:
        estimate = Estimate(UNKNOWN, notes=[str(error)])
    estimate.seconds = time.perf_counter() - started
    return estimate


def estimate_within_budget(run: Result) -> Estimate:
    """Estimate the error for a report, in a few seconds at most, independently of the length of the run.

    A run from a file must be compiled again; the estimate is skipped if that takes too long.
    """
    if run._scheme is None and run.statistics.compile_s > _MAX_COMPILE_S:
        note = f"the model takes {run.statistics.compile_s:.0f} s to compile; call run.accuracy() to wait for it"
        return Estimate(UNKNOWN, notes=[note])
    try:
        return accuracy(run, fraction=0.0)
    except Interrupted:  # the report is printed without the estimate
        return Estimate(UNKNOWN, notes=["stopped by the user"])


def _scheme(run: Result, scheme: str | Scheme | None, scaling: Any) -> Scheme:
    """Return the scheme of a run with its scaling, as passed by the user or as recorded in the file."""
    if scheme is None and scaling is None and run._scheme is not None:
        return run._scheme
    chosen = schemes.get(run.info.scheme if scheme is None else scheme)
    if chosen.fictive and scaling is None and run.problem is not None:
        scaling = run.problem.scaling
    return chosen if scaling is None else chosen.with_scaling(scaling)


class _Estimation:
    """Computation of one error estimate."""

    def __init__(self, run: Result, model: Model, scheme: Scheme, budget: float) -> None:
        self.run, self.model, self.scheme, self.budget = run, model, scheme, budget
        self.names = tuple(name for name in model.error_norm_variables if name in run.stored)
        if not self.names:
            raise InputError(f"none of {', '.join(model.error_norm_variables)} was stored")
        self.steps = max(run.statistics.steps, 1)
        self.begin, self.end = run.info.t0, float(run.last("t"))
        if self.end <= self.begin:
            raise InputError("the run has no steps")
        wall = run.statistics.wall_s
        self.stop = self.end
        if 0.75 * wall > budget * (1 + 1e-9):
            fraction = max(budget / (2.5 * wall), _WINDOW_STEPS / self.steps)
            if fraction < _WINDOW_FRACTION:
                raise InputError(f"a run of {wall:.3g} s has no refined runs within {budget:.3g} s; increase seconds")
            self.stop = self.begin + (self.end - self.begin) * min(fraction, 1.0)
        self.window_fraction = (self.stop - self.begin) / (self.end - self.begin)
        self.cost = self.window_fraction * wall  # wall time of the run until `stop`
        self.refined_runs = RefinedRuns(
            run, model, scheme, self.names, _initial_values(run, model), self.stop, self.window_fraction
        )
        samples = self.refined_runs.original
        self.size = {name: samples.size(name) for name in self.names}
        early = min(4 / self.steps / self.window_fraction, 0.5)  # four steps of the run
        fractions = np.unique(np.concatenate([np.linspace(0.0125, 1.0, 80), np.geomspace(early, 1.0, 80)]))
        self.grid = self.begin + (self.stop - self.begin) * fractions
        self.nearest_difference: RunDifference | None = None

    def estimate(self) -> Estimate:
        """Return the estimate from refined runs, corrected by the indicators."""
        samples, order = self.refined_runs.original, self.scheme.order
        if not all(np.all(np.isfinite(samples.largest(name))) for name in self.names):
            verdicts = dict.fromkeys(self.names, NOT_RESOLVED)
            return Estimate(
                NOT_RESOLVED, verdicts, dict.fromkeys(self.names, math.inf), notes=["values are not finite"]
            )
        level = (
            2
            if self.steps * self.window_fraction < _MIN_STEPS
            else 1
            if 2.5 * self.cost <= self.budget * (1 + 1e-9)
            else 0
        )
        if self.run.info.every > 1:  # stored rows may miss the motion, for example rows at full periods
            refined = self.refined_runs[0.5 if level else 2.0]
            if refined is not None:
                self.size = {name: np.maximum(size, refined.size(name)) for name, size in self.size.items()}
        self.round_off = {
            name: _ROUND_OFF_FACTOR * float(np.finfo(float).eps) * self.steps * samples.relative(name, self.size[name])
            for name in self.names
        }
        estimates = self._compare_runs(level)
        if level == 1 and not self._all_resolved(estimates) and 4 * self.cost <= 2 * self.budget:
            level, estimates = 2, self._compare_runs(2)  # decided by h/4
        estimate = Estimate(
            UNKNOWN,
            verdicts={name: each.verdict for name, each in estimates.items()},
            error={name: each.error for name, each in estimates.items()},
            ratio={name: each.ratio for name, each in estimates.items()},
            size=self.size,
            order=order,
            level=level,
            steps_per_oscillation=steps_per_oscillation(samples, self.names[-1]),
            window=self.stop if self.stop < self.end else None,
            notes=self.refined_runs.notes,
        )
        self._set_error_over_time(estimate, estimates)
        self._apply_amplified_round_off(estimate)
        if (
            NOT_RESOLVED in estimate.verdicts.values()
        ):  # agreement of one block is accidental if another is not resolved
            estimate.verdicts = dict.fromkeys(self.names, NOT_RESOLVED)
        self._extrapolate_growth(estimate)
        self._apply_switch_times(estimate)
        self._apply_state_switches(estimate)
        if NOT_RESOLVED in estimate.verdicts.values() and estimate.worst < _UNCONFIRMED_ERROR:
            self._compare_with_other_fractions(estimate)  # differences that are small and do not decrease
        self._apply_indicators(estimate)
        if NOT_RESOLVED in estimate.verdicts.values() and is_at_rest(self.run, self.model):
            self._set_rest(estimate)
        estimate.verdict = max(estimate.verdicts.values(), key=VERDICT_ORDER.index)
        estimate.steps = self.refined_runs.steps
        return estimate

    def _compare_runs(self, level: int) -> dict[str, RichardsonEstimate]:
        a, b, c = (self.refined_runs[factor] for factor in _STEP_FACTORS[level])
        order = self.scheme.order
        pairs = difference(a, b, self.size, order), difference(b, c, self.size, order)
        self.nearest_difference = pairs[1] if level == 2 else pairs[0]
        estimates = {}
        for name in self.names:
            fine, coarse = (None if pair is None else pair.largest(name, self.grid) for pair in pairs)
            estimates[name] = richardson_estimate(fine, coarse, order, level, self.round_off[name])
        return estimates

    @staticmethod
    def _all_resolved(estimates: dict[str, RichardsonEstimate]) -> bool:
        return all(each.verdict in (RESOLVED, ROUND_OFF) for each in estimates.values())

    def _set_error_over_time(self, estimate: Estimate, estimates: dict[str, RichardsonEstimate]) -> None:
        """Set the error at all compared times, and the time at which it reaches a tenth of the motion."""
        if self.nearest_difference is None:
            return
        estimate.t = self.nearest_difference.t
        for name, each in estimates.items():
            if not math.isfinite(each.factor):
                continue
            curve = each.factor * self.nearest_difference.norms[name]
            estimate.over_time[name], estimate.at_end[name] = curve, float(curve[-1])
            late = self.grid[
                np.nan_to_num(each.factor * self.nearest_difference.largest(name, self.grid)) >= LARGE_ERROR
            ]
            if not len(late) or each.verdict != NOT_RESOLVED:
                continue
            estimate.until[name] = float(late[0])
            enough = (estimate.until[name] - self.begin) / (self.end - self.begin) * self.steps >= _MIN_STEPS
            if enough and is_order_visible(each.ratio, self.scheme.order):
                estimate.verdicts[name] = RESOLVED_UNTIL  # converges with the declared order, accurate up to this time

    def _apply_amplified_round_off(self, estimate: Estimate) -> None:
        """Raise estimates below the round-off that an unstable motion amplifies, such as that near a saddle.

        Differences of refined runs may agree with an order by accident if they are round-off.
        """
        ulp = float(np.finfo(float).eps)
        levels = {
            name: ulp * self.refined_runs.original.relative(name, self.size[name])
            for name, verdict in estimate.verdicts.items()
            if verdict in ACCEPTABLE
        }
        rate = error_growth(self.nearest_difference, levels).rate
        if rate is None:
            return
        exponent = rate * (self.stop - self.begin)
        n_rounded = self.steps * self.window_fraction / exponent  # steps whose rounding errors grow to the largest
        level = max(levels.values())  # rounding errors of positions grow in the velocities as well
        error = _AMPLIFIED * level * math.sqrt(max(n_rounded, 1.0)) * math.exp(min(exponent, 700.0))
        for name in levels:
            if estimate.error[name] < error < LARGE_ERROR:
                estimate.error[name], estimate.verdicts[name] = error, ROUND_OFF

    def _extrapolate_growth(self, estimate: Estimate) -> None:
        """Set the growth law of the error; extrapolate the error from a window to the end of the run."""
        trend = error_growth(self.nearest_difference, self.round_off)
        estimate.growth, estimate.rate = trend.law, trend.rate
        if estimate.window is None or not all(verdict in ACCEPTABLE for verdict in estimate.verdicts.values()):
            return
        # a steady loss or gain of energy causes a quadratic phase error, which a short window may not show
        min_power = 1.0 if self.scheme.symmetric or self.scheme.symplectic else 2.0
        growth_factor = (1 / self.window_fraction) ** max(trend.power, min_power)
        if trend.rate is not None:
            growth_factor = math.exp(min(trend.rate * (self.end - self.stop), 700.0))
        estimate.error = {name: min(value * growth_factor, 2.0) for name, value in estimate.error.items()}
        estimate.at_end = dict(estimate.error)
        for name, error in estimate.error.items():
            if error >= LARGE_ERROR:
                estimate.verdicts[name] = RESOLVED_UNTIL

    def _apply_switch_times(self, estimate: Estimate) -> None:
        """Replace the estimate where equations switch within steps: errors then have no order.

        Refined runs may contain the switch at the same place of a step, so that their differences do not show it. Runs
        with h/2 that end at the switch times and start anew there do.
        """
        if self.scheme.fictive or self.run.info.control:
            return
        times = switch_times(self.model, self.run.parameter_vector, self.begin, self.stop)
        step_numbers = (times - self.begin) / self.run.info.h
        within = times[np.abs(step_numbers - np.round(step_numbers)) > _ON_GRID]
        if not len(within):
            return
        estimate.notes.append(
            f"not smooth: the equations switch at t = {within[0]:.6g}, within a step; errors have no order there"
        )
        if self.refined_runs.has_actions:
            self._compare_with_other_fractions(estimate)
            return
        errors = dict.fromkeys(self.names, math.inf)
        if len(times) <= _MAX_PIECES:
            errors = self.refined_runs.distance_from_pieces(times, self.size)
        for name, distance in errors.items():
            error = distance / (1 - 0.5**self.scheme.order)
            if not math.isfinite(error):
                estimate.verdicts[name] = max(estimate.verdicts[name], UNKNOWN, key=VERDICT_ORDER.index)
                continue
            estimate.error[name] = estimate.at_end[name] = error
            estimate.verdicts[name] = NOT_RESOLVED if error >= LARGE_ERROR else ORDER_NOT_OBSERVED
        estimate.over_time.clear()

    def _apply_state_switches(self, estimate: Estimate) -> None:
        """Check the estimate against other step sizes where equations have switched with the state."""
        switches, samples = StateSwitches(self.model), self.refined_runs.original
        if self.scheme.fictive or not len(switches) or not set(switches.names) <= set(samples.stored):
            return
        state = {name: getattr(samples, name) for name in switches.names}
        is_negative = switches.values(samples.t, state, self.run.parameter_vector) < 0
        crossings = np.flatnonzero(np.any(is_negative[:, 1:] != is_negative[:, :-1], axis=0))
        if not len(crossings):
            return
        self._compare_with_other_fractions(estimate)
        if not all(verdict in (RESOLVED, ROUND_OFF) for verdict in estimate.verdicts.values()):
            estimate.notes.append(
                f"not smooth: the equations switch with the state, first at about t = {samples.t[crossings[0]]:.6g}; "
                "errors have no order there"
            )

    def _compare_with_other_fractions(self, estimate: Estimate) -> None:
        """Compare with runs of h/3 and h/3.6, in which switches have other places within steps."""
        pairs: list[RunDifference | None] = [None, None]
        if 8 * self.cost <= 4 * self.budget:
            order, original = self.scheme.order, self.refined_runs.original
            pairs = [difference(self.refined_runs[n], original, self.size, order) for n in _OTHER_FRACTIONS]
        for name in self.names:
            if any(pair is None for pair in pairs):
                estimate.verdicts[name] = max(estimate.verdicts[name], ORDER_NOT_OBSERVED, key=VERDICT_ORDER.index)
                estimate.error[name] *= _INDICATOR_FACTOR
                continue
            distance = max(float(pair.largest(name, self.grid)[-1]) for pair in pairs if pair is not None)
            error = max(_FRACTION_FACTOR * distance, self.round_off[name])
            if not math.isfinite(error):
                estimate.verdicts[name] = max(estimate.verdicts[name], UNKNOWN, key=VERDICT_ORDER.index)
                continue
            confirmed = error <= _INDICATOR_FACTOR * estimate.error[name]
            if confirmed and estimate.verdicts[name] in (RESOLVED, ROUND_OFF, RESOLVED_UNTIL):
                continue
            estimate.error[name] = estimate.at_end[name] = error
            estimate.over_time.pop(name, None)
            if error <= ROUND_OFF_MARGIN * self.round_off[name]:
                estimate.verdicts[name] = ROUND_OFF
                continue
            estimate.verdicts[name] = NOT_RESOLVED if error >= LARGE_ERROR else ORDER_NOT_OBSERVED

    def _set_rest(self, estimate: Estimate) -> None:
        """Set the estimate of a mechanism at rest, whose velocities are round-off: the run with h/2 rests as well.

        Velocities are relative to the size of the positions divided by the duration of the run.
        """
        refined, samples = self.refined_runs[0.5], self.refined_runs.original
        if refined is None or not is_constant(refined.low["q"], refined.high["q"]):
            return
        position = float(np.linalg.norm(samples.largest("q")))
        sizes = {"q": position, "v": position / (self.end - self.begin)}
        change = difference(refined, samples, sizes, self.scheme.order)
        if change is None:
            return
        for name, size in sizes.items():
            round_off = _ROUND_OFF_FACTOR * float(np.finfo(float).eps) * self.steps
            estimate.error[name] = estimate.at_end[name] = max(float(change.norms[name].max()), round_off)
            estimate.size[name], estimate.verdicts[name] = size, ROUND_OFF
        estimate.over_time.clear()
        estimate.until.clear()
        estimate.notes.append("at rest: all velocities are round-off")

    def _apply_indicators(self, estimate: Estimate) -> None:
        """Correct the estimate by indicators: energy and algebraic variables may reveal errors common to all runs."""
        # actions of events change the energy
        energy = None if self.refined_runs.has_actions else energy_error(self.run, self.model, _ENERGY_ROUND_OFF)
        finite_errors = [value for value in estimate.error.values() if math.isfinite(value)]
        if energy is not None and energy > max(_INDICATOR_FACTOR * max(finite_errors, default=0.0), _ENERGY_ROUND_OFF):
            estimate.notes.append(f"the error of the energy alone is {energy:.1e}")
            estimate.error = {name: max(value, energy) for name, value in estimate.error.items()}
            for name, verdict in estimate.verdicts.items():
                estimate.verdicts[name] = ORDER_NOT_OBSERVED if verdict in ACCEPTABLE else verdict
            if energy >= LARGE_ERROR:
                estimate.verdicts = dict.fromkeys(self.names, NOT_RESOLVED)
        if self.names != ("x",):
            return
        sizes = dict(self.size)
        if self.model.algebraic_names and "y" in self.run.stored:
            sizes["y"] = RunSamples(self.run, ("y",), equal_steps=False).size("y")
        for name, (defect, uncertainty) in algebraic_defect(self.run, self.model, sizes).items():
            if name == "y":
                _add_algebraic_error(estimate, defect, uncertainty, sizes["y"])
            elif defect > _INDICATOR_FACTOR * (estimate.error[name] + uncertainty):
                estimate.notes.append(
                    f"states without a derivative (multipliers) violate the equations: {defect:.0e} of their motion"
                )
                estimate.error[name] = defect
                estimate.verdicts[name] = NOT_RESOLVED if defect >= LARGE_ERROR else ORDER_NOT_OBSERVED


def _add_algebraic_error(estimate: Estimate, defect: float, uncertainty: float, size: object) -> None:
    """Add the error of algebraic variables, which have their own order: their defect, if it is known well enough."""
    if uncertainty >= LARGE_ERROR and defect <= _INDICATOR_FACTOR * uncertainty:
        return  # the rows are too far apart for difference quotients
    error = defect + uncertainty
    estimate.error["y"], estimate.size["y"] = error, size
    estimate.verdicts["y"] = (
        NOT_RESOLVED
        if error >= LARGE_ERROR
        else RESOLVED
        if defect > _INDICATOR_FACTOR * uncertainty
        else ORDER_NOT_OBSERVED
    )


def _initial_values(run: Result, model: Model) -> dict[str, FloatArray]:
    """Return the initial values of the refined runs: the first row of the run."""
    names = [name for name in model.view.symbols if name in run.stored]
    _, first_row = next(iterate_blocks(run, names, rows=1))
    values = {name: value[0] for name, value in zip(names, first_row, strict=True)}
    missing = [name for name in model.error_norm_variables if name not in values]
    if missing:
        raise InputError(f"the initial value of {' and '.join(missing)} was not stored")
    return model.initial_values_from({name: value for name, value in values.items() if value.size})


Result.attach("accuracy", accuracy)
