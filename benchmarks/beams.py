"""Beams: time per step of the flying spaghetti, and its growth with the number of elements."""

from __future__ import annotations

import tempfile

from benchmarks.case import Log
from benchmarks.fresh import fresh_run
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from benchmarks.scaling import growth_exponent

#: Number of timed steps for each number of elements.
_STEPS = {100: 500, 1000: 100, 5000: 30}
_FIRST_GOAL = 400.0  # microseconds for 100 elements


class Beams:
    name = "beams"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._us_per_step = {N: Minimum() for N in _STEPS}
        self._corrections = dict.fromkeys(_STEPS, 0.0)

    def run_round(self, first: bool, log: Log) -> None:
        for N, steps in _STEPS.items():
            log(f"{N} elements")
            folder = self._folder.name
            result = fresh_run("flying-spaghetti-3d", steps=steps, repeats=2, every=steps, cache=folder, N=N)
            if result["unsolved"]:
                self._folder.cleanup()
                raise RuntimeError(f"the timed run of {N} elements is wrong: {result}")
            self._us_per_step[N].add(result["us_per_step"])
            self._corrections[N] = result["corrections"]

    def add_to_report(self, report: BenchReport) -> None:
        self._folder.cleanup()
        for N, best in self._us_per_step.items():
            goal = Goal("<=", _FIRST_GOAL) if min(_STEPS) == N else None
            report.lines.append(ComparisonRow(f"flying spaghetti, {N} elements: a step", best.value, goal=goal))
            report.lines.append(
                ComparisonRow(f"flying spaghetti, {N} elements: corrections of a step", self._corrections[N], "")
            )
        exponent = growth_exponent(list(_STEPS), [best.value for best in self._us_per_step.values()])
        case = "flying spaghetti, 100 to 5000 elements: exponent of time per step"
        report.lines.append(ComparisonRow(case, exponent, "", Goal("<=", 1.1)))
