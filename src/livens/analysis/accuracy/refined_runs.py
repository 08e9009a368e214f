"""Runs with multiples of the step size, and norms of their differences (for Richardson estimates)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from livens import schemes
from livens.analysis.observables import iterate_blocks
from livens.errors import InputError, IntegrationError
from livens.models.base import Model
from livens.results.dense_output import at, interpolate_rows, steps_over_switches
from livens.results.result import Result
from livens.run.plan import Plan
from livens.run.simulate import execute
from livens.run.step_control import PerVariable, StepControl
from livens.schemes.core.scheme import Scheme
from livens.types import FloatArray

#: Maximum number of rows per run with equal steps, and number of comparison times of runs without common times.
_MAX_ROWS, _SAMPLES = 20_000, 400
#: Tolerance of equal times, as a fraction of a step.
_SAME_TIME = 1e-7
#: Smallest fraction of times that are common to two runs with equal steps, other than those whose ratio is irrational.
_MIN_COMMON = 1 / 64
#: Range of a variable relative to its magnitude below which it is constant to round-off.
_NO_MOTION = 64 * float(np.finfo(float).eps)


class RunSamples:
    """Sampled rows of a run, evenly thinned if there are many; range and size refer to all rows."""

    def __init__(self, run: Result, names: tuple[str, ...], equal_steps: bool) -> None:
        expected = max(run.statistics.steps // run.info.every, 1)
        self.stride = 2 ** math.ceil(math.log2(expected / _MAX_ROWS)) if equal_steps and expected > 2 * _MAX_ROWS else 1
        self.equal_steps, self.stored = equal_steps, names
        self.run = run
        times: list[np.ndarray] = []
        blocks_by_name: dict[str, list[np.ndarray]] = {name: [] for name in names}
        self.low: dict[str, np.ndarray] = {}
        self.high: dict[str, np.ndarray] = {}
        count = 0
        for t, values in iterate_blocks(run, list(names)):
            chosen = np.arange(-count % self.stride, len(t), self.stride)
            times.append(t[chosen])
            for name, block in zip(names, values, strict=True):
                blocks_by_name[name].append(block[chosen])
                low, high = block.min(axis=0), block.max(axis=0)
                self.low[name] = np.minimum(self.low.get(name, low), low)
                self.high[name] = np.maximum(self.high.get(name, high), high)
            count += len(t)
        self.t = np.concatenate(times)
        self._values = {name: np.concatenate(blocks) for name, blocks in blocks_by_name.items()}
        self.spacing = run.info.every * self.stride  # in steps

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            values: dict[str, np.ndarray] = self.__dict__["_values"]
            return values[name]
        except KeyError:
            raise AttributeError(name) from None

    def largest(self, name: str) -> np.ndarray:
        """Return the largest absolute value of every component."""
        return np.maximum(np.abs(self.low[name]), np.abs(self.high[name]))

    def size(self, name: str) -> Any:
        """Return half the range of the motion: Euclidean norm for q, v, p; by component for states, whose units differ.

        For a constant variable the size is its absolute value.
        """
        half, largest = (self.high[name] - self.low[name]) / 2, self.largest(name)
        if name in ("x", "y"):
            scale = np.maximum(half, 1e-3 * largest)
            scale = np.maximum(scale, 1e-6 * scale.max(initial=0.0))
            return np.where(scale > 0, scale, 1.0)
        motion, size = float(np.linalg.norm(half)), float(np.linalg.norm(largest))
        return motion if motion > _NO_MOTION * size else (size or 1.0)

    def relative(self, name: str, size: FloatArray | float) -> float:
        """Return the ratio of magnitude to motion: round-off is relative to the magnitude."""
        largest = self.largest(name)
        return float(np.max(largest / size)) if np.ndim(size) else float(np.linalg.norm(largest)) / float(size)


@dataclass
class RefinedRuns:
    """A run and its refined runs, computed on demand.

    `stop` is the end time of the refined runs, and `fraction` the fraction of the steps of the run up to it.
    """

    run: Result
    model: Model
    scheme: Scheme
    names: tuple[str, ...]
    initial: dict[str, Any]
    stop: float
    fraction: float

    def __post_init__(self) -> None:
        #: Actions of events restart the time grid: runs have no common times.
        self.has_actions = bool(action_times(self.run).size)
        self.equal_steps = not self.scheme.fictive and not self.run.info.control and not self.has_actions
        self.samples: dict[float, RunSamples | None] = {1.0: RunSamples(self.run, self.names, self.equal_steps)}
        self.steps = 0
        self.notes: list[str] = []

    @property
    def original(self) -> RunSamples:
        samples = self.samples[1.0]
        assert samples is not None
        return samples

    def __getitem__(self, factor: float) -> RunSamples | None:
        """Return the samples of the run with `factor` times the step size; None if the run fails."""
        if factor not in self.samples:
            self.samples[factor] = self._compute(factor)
        return self.samples[factor]

    def _compute(self, factor: float) -> RunSamples | None:
        try:
            events = self.run._events if self.has_actions else None
            result = execute(self._plan(factor), events=events or (), progress=False)
        except IntegrationError:
            self.notes.append(f"with steps {factor:g} h the integration fails")
            return None
        if result.info.model != self.run.info.model:
            raise InputError(
                "the run was made with other equations than those of its model and of the scheme of that name: "
                "pass the scheme or the scaling of the run"
            )
        self.steps += result.statistics.steps
        return RunSamples(result, self.names, self.equal_steps)

    def distance_from_pieces(self, switch_times: np.ndarray, size: dict[str, Any]) -> dict[str, float]:
        """Return the largest distance of the run from one with h/2 that starts anew at every switch time.

        Parameters
        ----------
        switch_times : ndarray
            Switch times of the model within the run, in seconds.
        size : dict of str to float or ndarray
            Size of the motion by variable.

        Returns
        -------
        dict of str to float
            Distance relative to the size by variable; inf if a piece fails.
        """
        info, original = self.run.info, self.original
        width = 8 * np.spacing(np.abs(switch_times))
        begins, ends = [info.t0, *(switch_times + width)], [*(switch_times - width), self.stop]
        start, distance = self.initial, dict.fromkeys(size, 0.0)
        for begin, end in zip(begins, ends, strict=True):
            if end <= begin:
                continue
            plan = Plan.from_run_info(
                info,
                self.model,
                start=start,
                scheme=self.scheme,
                h=min(info.h, end - begin) / 2,
                t0=float(begin),
                t_end=float(end),
                every=1,
                project=True,
                redundant="remove",
            )
            try:
                piece = execute(plan, events=(), progress=False)
            except (IntegrationError, InputError):
                return dict.fromkeys(size, math.inf)
            self.steps += piece.statistics.steps
            rows = np.flatnonzero((original.t >= piece.t[0]) & (original.t <= piece.t[-1]))
            rows = (
                rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLES)).astype(int))]
                if len(rows)
                else rows
            )
            if len(rows):
                values = interpolate_rows(piece, list(size), original.t[rows], min(max(self.scheme.order, 4), 8))
                for name in size:
                    norms = _distance(values[name] - getattr(original, name)[rows], size[name])
                    distance[name] = max(distance[name], float(norms.max()))
            names = [name for name in self.model.view.symbols if name in piece.stored]
            start = self.model.initial_values_from(
                {name: np.asarray(getattr(piece, name)[-1]) for name in names if getattr(piece, name)[-1].size}
            )
        return distance

    def _plan(self, factor: float) -> Plan:
        info = self.run.info
        every = 1
        if self.equal_steps:
            # rows at the times of the run's rows, and not many more than are compared
            thinning = self.run.statistics.steps * self.fraction / factor / _MAX_ROWS
            common_stride = self.original.spacing * (round(1 / factor) if factor < 1 else 1)
            every = math.gcd(common_stride, 2 ** int(math.log2(thinning))) if thinning >= 2 else 1
        plan = Plan.from_run_info(
            info,
            self.model,
            start=self.initial,
            scheme=self.scheme,
            h=(min(info.h, self.stop - info.t0) if self.equal_steps else info.h) * factor,
            t_end=self.stop,
            every=every,
            store=None if self.scheme.selects_step_size or info.control else self.names,
            redundant="remove",
            control=_scaled_control(info.control, self.scheme, factor) if info.control else None,
        )
        # another tolerance would select another order
        return dataclasses.replace(plan, scheme=self.scheme) if self.scheme.selects_step_size else plan


def _scaled_control(control: dict[str, Any], scheme: Scheme, factor: float) -> StepControl:
    """Return a step control that leads to steps `factor` times as long.

    The error estimate grows as h^(k+1), and as h^k per unit of time.
    """
    power = scheme.error_order + 1 if scheme.error_order else scheme.order - 1
    change = factor ** (scheme.error_order if scheme.estimates_error_by_doubling else power)
    old = StepControl(**control)
    return dataclasses.replace(
        old,
        tolerance=_scaled_tolerance(old.tolerance, change),
        absolute=None if old.absolute is None else _scaled_tolerance(old.absolute, change),
        smallest=None if old.smallest is None else old.smallest * min(factor, 1.0),
        largest=old.largest * factor,
        most_steps=0,
    )


def _scaled_tolerance(tolerance: PerVariable, factor: float) -> PerVariable:
    """Return tolerances multiplied by a factor."""
    if isinstance(tolerance, Mapping):
        return {name: value * factor for name, value in tolerance.items()}
    return tuple(value * factor for value in tolerance) if isinstance(tolerance, Sequence) else tolerance * factor


@dataclass(frozen=True)
class RunDifference:
    """Norms of the difference of two runs over time by variable, relative to the size of the motion."""

    t: np.ndarray
    norms: dict[str, np.ndarray]

    def largest(self, name: str, times: np.ndarray) -> np.ndarray:
        """Return the largest norm up to each time; NaN where only the initial row precedes it."""
        curve = np.maximum.accumulate(self.norms[name])
        index = np.searchsorted(self.t, times * (1 + 1e-12), side="right") - 1
        return np.where(index >= 1, curve[np.maximum(index, 0)], np.nan)


def difference(
    fine: RunSamples | None, coarse: RunSamples | None, size: dict[str, Any], order: int
) -> RunDifference | None:
    """Return the difference of two runs at the times of the coarser run."""
    if fine is None or coarse is None or len(coarse.t) < 2:
        return None
    if not fine.equal_steps and (action_times(fine.run).size or action_times(coarse.run).size):
        return _difference_between_actions(fine, coarse, size, order)
    step = (coarse.t[-1] - coarse.t[0]) / (len(coarse.t) - 1)
    times = coarse.t[coarse.t <= fine.t[-1] + _SAME_TIME * step]
    near = np.clip(np.searchsorted(fine.t, times), 0, len(fine.t) - 1)
    before = np.maximum(near - 1, 0)
    near = np.where(np.abs(fine.t[near] - times) <= np.abs(fine.t[before] - times), near, before)
    rows = np.flatnonzero(np.abs(fine.t[near] - times) < _SAME_TIME * step)
    if fine.equal_steps and len(rows) >= max(2, _MIN_COMMON * len(times)):
        values = {name: getattr(fine, name)[near[rows]] for name in size}
    else:  # no common times: interpolate the finer run
        rows = np.unique(np.linspace(0, len(times) - 1, min(len(times), _SAMPLES)).astype(int))
        sample_times = np.minimum(times[rows], fine.t[-1])
        if fine.run.info.control and (
            steps_over_switches(fine.t).any() or schemes.get(fine.run.info.scheme).selects_step_size
        ):
            # dense output: long steps and steps over switch times are not interpolated by polynomials through rows
            values = at(fine.run, sample_times)
        else:
            values = interpolate_rows(fine, list(size), sample_times, min(max(order, 4), 8))
    norms = {name: _distance(values[name] - getattr(coarse, name)[rows], size[name]) for name in size}
    return RunDifference(times[rows], norms)


def action_times(run: Result) -> np.ndarray:
    """Return the times at which event actions have changed a run, in ascending order."""
    return np.unique([float(event["t"]) for event in run.record.events if event.get("changes")])


def _segments(samples: RunSamples) -> list[slice]:
    """Return the rows between event actions; the time of an action has a row before and a row after it."""
    times = action_times(samples.run)
    before, after = (np.searchsorted(samples.t, times, side=side) for side in ("left", "right"))
    return [slice(int(a), int(b)) for a, b in zip([0, *(after - 1)], [*(before + 1), len(samples.t)], strict=True)]


def _difference_between_actions(
    fine: RunSamples, coarse: RunSamples, size: dict[str, Any], order: int
) -> RunDifference | None:
    """Return the difference of two runs with event actions, from one action to the next.

    Times between the same action of both runs are left out. If the number of actions differs, the difference is
    infinite from the first unmatched action on, unless that is in the last step.
    """
    pairs = list(zip(_segments(fine), _segments(coarse), strict=False))
    fine_times, coarse_times = action_times(fine.run), action_times(coarse.run)
    unmatched = np.concatenate([fine_times[len(pairs) - 1 :], coarse_times[len(pairs) - 1 :]])
    last = float(unmatched.min()) if unmatched.size else math.inf
    times: list[np.ndarray] = []
    norms: dict[str, list[np.ndarray]] = {name: [] for name in size}
    for in_fine, in_coarse in pairs:
        t, rows = fine.t[in_fine], np.arange(in_coarse.start, in_coarse.stop)
        rows = rows[(coarse.t[rows] > t[0]) & (coarse.t[rows] < min(float(t[-1]), last))] if len(t) > 1 else rows[:0]
        if not len(rows):
            continue
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLES)).astype(int))]
        values: Mapping[str, np.ndarray]
        if fine.run.info.control:
            values = at(fine.run, coarse.t[rows])
        else:
            variables = {name: getattr(fine, name)[in_fine] for name in fine.stored}
            segment = SimpleNamespace(t=t, stored=fine.stored, **variables)
            values = interpolate_rows(segment, list(size), coarse.t[rows], min(max(order, 4), 8))
        times.append(coarse.t[rows])
        for name in size:
            norms[name].append(_distance(values[name] - getattr(coarse, name)[rows], size[name]))
    if not times:
        return None
    if coarse.t[-1] - last > np.diff(coarse.t).max():
        times.append(np.array([coarse.t[-1]]))
        for name in size:
            norms[name].append(np.array([math.inf]))
    return RunDifference(np.concatenate(times), {name: np.concatenate(parts) for name, parts in norms.items()})


def _distance(change: np.ndarray, size: FloatArray | float) -> np.ndarray:
    with np.errstate(all="ignore"):
        distance = np.abs(change / size).max(axis=1) if np.ndim(size) else np.linalg.norm(change, axis=1) / size
    return np.where(np.isfinite(distance), distance, np.inf)
