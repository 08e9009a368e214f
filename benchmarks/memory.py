"""Long run with few stored steps: memory must not grow with the number of steps."""

from __future__ import annotations

from benchmarks.case import Log
from benchmarks.fresh import fresh_run
from benchmarks.report import BenchReport, ComparisonRow, Goal

_STEPS, _EVERY = 10_000_000, 1000


class LongRun:
    name = "long run"

    def __init__(self) -> None:
        self._result: dict[str, float] = {}
        self._written: dict[int, dict[str, float]] = {_EVERY: {}, 1: {}}

    def run_round(self, first: bool, log: Log) -> None:
        if first:  # once: its length averages fluctuations
            self._result = fresh_run("simple-pendulum", steps=_STEPS, every=_EVERY)
        for every, best in self._written.items():
            result = fresh_run("simple-pendulum", steps=_STEPS, every=every, to_file=True)
            if not best or result["us_per_step"] < best["us_per_step"]:
                self._written[every] = result

    def add_to_report(self, report: BenchReport) -> None:
        case = f"simple-pendulum, {_STEPS:.0e} steps, every {_EVERY}"
        report.lines.append(ComparisonRow(case, self._result["us_per_step"]))
        report.lines.append(ComparisonRow(f"{case}: memory", self._result["peak_mb"], "MB", Goal("<", 500)))
        case = f"simple-pendulum, {_STEPS:.0e} steps in a file"
        report.lines.append(ComparisonRow(f"{case}: memory", self._written[1]["peak_mb"], "MB", Goal("<", 500)))
        few, each = (self._written[every]["us_per_step"] for every in (_EVERY, 1))
        report.lines.append(
            ComparisonRow("simple-pendulum: writing, on top of computing", 100 * (each / few - 1), "%", Goal("<", 50))
        )
