"""Large systems: time to the first step, time per step and memory, up to ten thousand bodies."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any

from benchmarks.case import Log
from benchmarks.fresh import fresh_run
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from benchmarks.scaling import growth_exponent


@dataclass(frozen=True)
class _Case:
    """Problem, number of timed steps, and goal for a step in microseconds."""

    name: str
    problem: str
    options: dict[str, Any]
    bodies: int
    steps: int
    goal: float


_CASES = (
    _Case("n-four-bar, 101 bodies", "n-four-bar", dict(N=50, frames=1), 101, 2000, 50.0),
    _Case("n-four-bar, 1001 bodies", "n-four-bar", dict(N=500, frames=1), 1001, 400, 400.0),
    _Case("n-four-bar, 5001 bodies", "n-four-bar", dict(N=2500, frames=1), 5001, 100, 1500.0),
    _Case("n-four-bar, 10,001 bodies", "n-four-bar", dict(N=5000, frames=1), 10_001, 60, 3500.0),
    _Case("chain, 1000 bodies", "chain", dict(N=1000), 1000, 200, 450.0),
    _Case("chain, 10,000 bodies", "chain", dict(N=10_000), 10_000, 40, 6500.0),
    _Case("random tree, 10,000 bodies", "chain", dict(N=10_000, tree=1), 10_000, 40, 10_000.0),
    _Case("net of 50 x 50 knots", "net", dict(N=50), 2500, 20, 60_000.0),
)
_LARGEST, _THREADED = _CASES[3], _CASES[5]
#: Number of steps for energy and constraint errors, in the first round only.
_LONG = 1000
#: Largest allowed relative energy error and constraint violation of timed runs.
_ENERGY, _GAP = 1e-13, 1e-11


class Large:
    name = "large systems"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._us_per_step = {case: Minimum() for case in (c.name for c in _CASES)}
        self._corrections = {case.name: 0.0 for case in _CASES}
        self._first_step, self._two_threads = Minimum(), Minimum()
        self._memory = self._cold = 0.0
        self._long: dict[str, float] = {}

    def run_round(self, first: bool, log: Log) -> None:
        cache = self._folder.name
        if first:
            log("compiling 81 bodies")
            self._cold = fresh_run("n-four-bar", cache=cache, N=40)["first_step_s"]
        for case in _CASES:
            log(case.name)
            result = self._run(case, case.steps)
            self._us_per_step[case.name].add(result["us_per_step"])
            self._corrections[case.name] = result["corrections"]
            if case is _LARGEST:
                self._memory = result["peak_mb"]
                self._first_step.add(result["first_step_s"])
        if (os.cpu_count() or 1) > 1:
            log(f"{_THREADED.name}, two threads")
            self._two_threads.add(self._run(_THREADED, _THREADED.steps, threads=2)["us_per_step"])
        if first:
            log(f"{_LARGEST.name}, {_LONG} steps")
            self._long = self._run(_LARGEST, _LONG, repeats=1)

    def _run(self, case: _Case, steps: int, repeats: int = 2, threads: int = 1) -> dict[str, float]:
        """Return a checked run, or raise an error."""
        result = fresh_run(
            case.problem,
            steps=steps,
            repeats=repeats,
            every=steps,
            cache=self._folder.name,
            threads=threads,
            **case.options,
        )
        if not (result["energy"] <= _ENERGY and result["constraint"] <= _GAP) or result["unsolved"]:
            self._folder.cleanup()
            raise RuntimeError(f"the timed run of {case.name} is wrong: {result}")
        return result

    def add_to_report(self, report: BenchReport) -> None:
        self._folder.cleanup()
        lines = [ComparisonRow("n-four-bar, 81 bodies: to the first step, cold", self._cold, "s", Goal("<", 1.0))]
        for case in _CASES:
            lines.append(
                ComparisonRow(f"{case.name}: a step", self._us_per_step[case.name].value, goal=Goal("<=", case.goal))
            )
            lines.append(ComparisonRow(f"{case.name}: corrections of a step", self._corrections[case.name], ""))
        lines.append(ComparisonRow(f"{_LARGEST.name}: to the first step", self._first_step.value, "s", Goal("<", 10.0)))
        lines.append(ComparisonRow(f"{_LARGEST.name}: memory", self._memory, "MB", Goal("<", 1000.0)))
        loops = [(c.bodies, self._us_per_step[c.name].value) for c in _CASES if c.problem == "n-four-bar"]
        exponent = growth_exponent(*zip(*loops, strict=True))
        lines.append(
            ComparisonRow("n-four-bar, 101 to 10,001 bodies: exponent of time per step", exponent, "", Goal("<=", 1.1))
        )
        if self._long:
            name = f"{_LARGEST.name}, {_LONG} steps"
            lines.append(ComparisonRow(f"{name}: energy, relative", self._long["energy"], "", Goal("<=", 1e-14)))
            lines.append(ComparisonRow(f"{name}: constraints", self._long["constraint"], "", Goal("<=", 1e-12)))
        if self._two_threads.value < float("inf"):
            gain = self._us_per_step[_THREADED.name].value / self._two_threads.value
            lines.append(ComparisonRow(f"{_THREADED.name}: times faster with two threads", gain, "", Goal(">=", 1.6)))
        report.lines += lines
