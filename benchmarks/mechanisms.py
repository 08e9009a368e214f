"""Multibody models: time per step, and time from the model definition to the first step."""

from __future__ import annotations

import tempfile
from typing import Any

from benchmarks.case import Log
from benchmarks.fresh import fresh_run
from benchmarks.ours import LivensTiming, Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens.problems import load


class MechanismSteps:
    """Complete runs, with all steps stored and monitored."""

    name = "mechanisms"
    _CASES: tuple[tuple[str, str, dict[str, Any], int, float], ...] = (
        ("double four-bar, Multibody", "double-four-bar-multibody", {}, 10_000, 0.8),
        ("closed loop of bars, Multibody", "closed-loop-bars-multibody", {}, 1000, 5.0),
        ("chain of 20 in space", "link-chain", {"N": 20}, 1000, 24.0),
    )

    def __init__(self) -> None:
        self._runs = [
            (label, LivensTiming(load(problem, **options), steps, repeats=4), limit)
            for label, problem, options, steps, limit in self._CASES
        ]

    def run_round(self, first: bool, log: Log) -> None:
        for label, runs, _ in self._runs:
            log(label)
            runs.run_round()

    def add_to_report(self, report: BenchReport) -> None:
        for label, runs, limit in self._runs:
            report.lines.append(ComparisonRow(label, runs.us_per_step.value, goal=Goal("<=", limit)))


class ModelToFirstStep:
    """Time to the first step in a new process, with shared modules imported and time loops loaded.

    Imports of the multibody modules are part of the measured time, and so is their compilation to bytecode if Python
    may not store it (PYTHONDONTWRITEBYTECODE).
    """

    name = "drawn to first step"
    _CASES: tuple[tuple[str, str, dict[str, Any], float, float], ...] = (
        ("chain of 30 links", "link-chain", {"N": 30}, 2.0, 0.3),
        ("six-axis arm", "six-axis-arm", {}, 2.0, 0.3),
    )

    def __init__(self) -> None:
        self._bests = [(Minimum(), Minimum()) for _ in self._CASES]

    def run_round(self, first: bool, log: Log) -> None:
        for (label, problem, options, *_), bests in zip(self._CASES, self._bests, strict=True):
            log(label)
            with tempfile.TemporaryDirectory() as cache:
                for best in bests:
                    best.add(fresh_run(problem, cache=cache, **options)["first_step_s"])

    def add_to_report(self, report: BenchReport) -> None:
        for (label, _, _, cold, warm), bests in zip(self._CASES, self._bests, strict=True):
            for best, limit, cache_state in zip(
                bests, (cold, warm), ("nothing on disk", "kernels on disk"), strict=True
            ):
                report.lines.append(
                    ComparisonRow(f"{label}: model to first step, {cache_state}", best.value, "s", Goal("<", limit))
                )
