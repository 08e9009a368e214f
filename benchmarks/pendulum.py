"""Simple pendulum: overhead per step for a model of negligible cost."""

from __future__ import annotations

from benchmarks.case import Log
from benchmarks.ours import LivensTiming
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens.problems import load


class Pendulum:
    name = "simple-pendulum"

    def __init__(self) -> None:
        self._timing = LivensTiming(load("simple-pendulum"), 10_000, repeats=10)

    def run_round(self, first: bool, log: Log) -> None:
        self._timing.run_round()

    def add_to_report(self, report: BenchReport) -> None:
        report.lines.append(ComparisonRow(self.name, self._timing.us_per_step.value, goal=Goal("<", 1)))
