"""Elimination variants of one scheme: cost with different numbers of unknowns (Kinon and Betsch 2024, Fig. 9)."""

from __future__ import annotations

import dataclasses

from benchmarks.case import Log
from benchmarks.ours import LivensTiming
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens.problems import load

_SCHEMES = ("livens-em-full", "livens-em", "livens-em-reduced", "livens-em-nullspace")
#: Ten seconds of motion, as in the figure. At the step of the paper, 0.05, the body rotates by 1.5 rad per
#: step, and Newton's method fails within ten seconds (docs/theory/known-limits.md).
_STEP, _STEPS = 0.01, 1000


class Variants:
    name = "free-rigid-body"

    def __init__(self) -> None:
        problem = load(self.name, h=_STEP)
        self._timings = {
            scheme: LivensTiming(dataclasses.replace(problem, scheme=scheme), _STEPS, repeats=10) for scheme in _SCHEMES
        }

    def run_round(self, first: bool, log: Log) -> None:
        for scheme, runs in self._timings.items():
            log(scheme)
            runs.run_round()

    def add_to_report(self, report: BenchReport) -> None:
        for scheme, runs in self._timings.items():
            report.lines.append(ComparisonRow(f"{self.name}, {scheme}", runs.us_per_step.value, goal=Goal("<", 3)))
