"""Adaptive steps of eight mechanisms: numbers of steps at equal error, and the cost of control per step.

All schemes have order 2: the error at the end is ``C/n^2`` for n steps. The number of steps at equal error, relative to
equal steps, is the root of the ratio of the constants C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import livens as lv
from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens.models.problem import Problem
from livens.problems import load
from livens.results.result import Result

#: Tolerances of the compared runs, and fractions of the number of equal steps of reversible runs.
TOLERANCES, FRACTIONS = (1e-3, 1e-4), (1.0, 0.5)
#: Largest numbers of steps relative to equal steps: of any motion, and of motions with slow and fast phases.
LIMIT, LIMIT_OF_PHASES = 1.15, 0.5
#: Fractions of the equal step for the reference, which is extrapolated to steps of size zero.
_REFERENCE_FRACTIONS = (4, 8)


@dataclass(frozen=True)
class Motion:
    """Motion of a mechanism: end time and equal step in s, scaling of reversible steps."""

    name: str
    problem: Callable[[], Problem]
    t_end: float
    h: float
    scaling: Any
    has_phases: bool = False
    scheme: str | None = None

    def run(self, **options: Any) -> Result:
        return lv.simulate(self.problem(), scheme=self.scheme, t_end=self.t_end, progress=False, **options)


MOTIONS = (
    Motion(
        "double four-bar through singular positions",
        lambda: load("double-four-bar-multibody"),
        3.0,
        2e-3,
        lv.scaling.curvature(0.2, 1.0),
        has_phases=True,
    ),
    Motion(
        "slider-crank at 3000 rpm",
        lambda: load("slider-crank", rate=100 * np.pi, torque=0.0, friction=0.0),
        0.1,
        1e-4,
        lv.scaling.curvature(3.0, 30.0),
    ),
    Motion(
        "Andrews' squeezer",
        lambda: load("andrews-squeezer"),
        0.03,
        2e-5,
        lv.scaling.speed(500.0, exponent=1 / 3),
        has_phases=True,
    ),
    Motion("rattleback", lambda: load("rattleback"), 2.0, 5e-4, lv.scaling.speed(3.0, exponent=1 / 3)),
    Motion("whip, a chain of 30", lambda: load("link-chain", N=30), 1.6, 1e-3, lv.scaling.speed(3.0, exponent=1 / 3)),
    Motion("flyball governor", lambda: load("flyball-governor"), 2.0, 2e-3, lv.scaling.speed(1.0, exponent=1 / 3)),
    Motion(
        "bearing, axial step",
        lambda: load("ball-bearing", case="axial-step", balls=3),
        2e-4,
        1e-6,
        lv.scaling.speed(1e3, exponent=1 / 3),
        scheme="livens-em",
    ),
    Motion("double pendulum", lambda: load("double-pendulum"), 5.0, 5e-3, lv.scaling.speed(1.0, exponent=1 / 3)),
)


@dataclass(frozen=True)
class Comparison:
    """Number of steps at equal error, relative to equal steps; the largest of several tolerances and step sizes."""

    tolerance: float
    reversible: float
    equal_error: float  # error at the end with equal steps
    max_energy_drift: float


def compare(motion: Motion, log: Log = lambda text: None) -> Comparison:
    """Measure the number of steps at equal error, relative to equal steps."""
    log(f"{motion.name}, reference")
    coarse, fine = (motion.run(h=motion.h / n).q[-1] for n in _REFERENCE_FRACTIONS)
    ratio = (_REFERENCE_FRACTIONS[1] / _REFERENCE_FRACTIONS[0]) ** 2
    exact = fine + (fine - coarse) / (ratio - 1)

    def constant(run: Result) -> float:
        return float(run.statistics.steps**2 * np.abs(run.q[-1] - exact).max())

    equal = motion.run(h=motion.h)
    log(f"{motion.name}, tolerances")
    controlled = [motion.run(tolerance=tolerance) for tolerance in TOLERANCES]
    log(f"{motion.name}, reversible")
    options: dict[str, Any] = dict(adaptive="reversible", scaling=motion.scaling)
    pilot = motion.run(h=motion.h / _initial_scale(motion), **options)
    unit = pilot.info.h * pilot.statistics.steps / equal.statistics.steps
    reversible = [motion.run(h=unit / fraction, **options) for fraction in FRACTIONS]
    worst = [float(np.sqrt(max(map(constant, runs)) / constant(equal))) for runs in (controlled, reversible)]
    drift = max(run.summary.max_energy_drift for run in (*controlled, *reversible))
    return Comparison(worst[0], worst[1], float(np.abs(equal.q[-1] - exact).max()), float(drift))


def _initial_scale(motion: Motion) -> float:
    """Return the scaling in the initial state, from a first step of negligible size."""
    unit = 1e-3 * motion.h
    options: dict[str, Any] = dict(adaptive="reversible", scaling=motion.scaling, h=unit)
    run = lv.simulate(motion.problem(), scheme=motion.scheme, t_end=0.5 * motion.h, progress=False, **options)
    return float(run.step_size[1]) / unit


class AdaptiveSteps:
    """Steps with a tolerance and reversible steps at equal error, relative to equal steps."""

    name = "adaptive steps"

    def __init__(self) -> None:
        self._comparisons: dict[str, Comparison] = {}

    def run_round(self, first: bool, log: Log) -> None:
        if first:  # numbers of steps, not times: one round is enough
            self._comparisons = {motion.name: compare(motion, log) for motion in MOTIONS}

    def add_to_report(self, report: BenchReport) -> None:
        for motion in MOTIONS:
            found, goal = self._comparisons[motion.name], LIMIT_OF_PHASES if motion.has_phases else LIMIT
            for label, steps in (("tolerance", found.tolerance), ("reversible", found.reversible)):
                case = f"{motion.name}: steps at equal error, {label}"
                report.lines.append(ComparisonRow(case, steps, "of equal", Goal("<=", goal)))


class CostOfControl:
    """Time per step with a tolerance and of reversible steps, relative to equal steps; interleaved runs.

    All runs have about the same number of steps. Reversible steps follow a function of the coordinates, the cheapest
    scaling.
    """

    name = "cost of control"
    #: Index of a motion, and factor of its duration: starts of runs take milliseconds.
    _MOTIONS = tuple(
        replace(MOTIONS[i], t_end=factor * MOTIONS[i].t_end) for i, factor in ((0, 20), (1, 20), (4, 2), (7, 40))
    )
    _REPEATS = 3

    def __init__(self) -> None:
        self._options: dict[str, dict[str, dict[str, Any]]] = {}
        self._times: dict[tuple[str, str], Minimum] = {}

    def run_round(self, first: bool, log: Log) -> None:
        for motion in self._MOTIONS:
            log(motion.name)
            if first:
                self._prepare(motion)
            for _ in range(self._REPEATS):
                for label, options in self._options[motion.name].items():
                    statistics = motion.run(**options).statistics
                    self._times[motion.name, label].add(statistics.wall_s / statistics.steps)

    def _prepare(self, motion: Motion) -> None:
        """Find the tolerance for which the mean step is the equal step, and compile."""
        steps = motion.run(h=motion.h).statistics.steps
        tolerance = 1e-4
        for _ in range(3):  # the number of steps is proportional to tolerance^(-1/2)
            tolerance *= (motion.run(tolerance=tolerance).statistics.steps / steps) ** 2
        reversible: dict[str, Any] = dict(h=motion.h, adaptive="reversible", scaling=lambda q: 1.0 + 0 * q[0])
        motion.run(**reversible)
        self._options[motion.name] = {
            "equal": dict(h=motion.h),
            "tolerance": dict(tolerance=tolerance),
            "reversible": reversible,
        }
        self._times |= {(motion.name, label): Minimum() for label in self._options[motion.name]}

    def add_to_report(self, report: BenchReport) -> None:
        for motion in self._MOTIONS:
            equal = self._times[motion.name, "equal"].value
            for label in ("tolerance", "reversible"):
                case = f"{motion.name}: time per step, {label}"
                ratio = self._times[motion.name, label].value / equal
                report.lines.append(ComparisonRow(case, ratio, "of equal", Goal("<=", 1.05)))
