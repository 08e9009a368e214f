"""Row of four-bar linkages: growth of time per step and compile time with the size of the model."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.case import Log
from benchmarks.fresh import fresh_run
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal, ScalingPoint

#: Number of steps for each number of loops.
_STEPS = {2: 10_000, 5: 10_000, 10: 5_000, 20: 4_000, 40: 2_000}


class Scaling:
    name = "n-four-bar"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._cold: dict[int, float] = {}
        self._warm = {N: Minimum() for N in _STEPS}
        self._us_per_step = {N: Minimum() for N in _STEPS}

    def run_round(self, first: bool, log: Log) -> None:
        for N, steps in _STEPS.items():
            cache = str(Path(self._folder.name) / str(N))  # separate, because small models share kernels
            if first:
                log(f"compiling N = {N}")
                # once: compilation of the largest model is slow
                self._cold[N] = fresh_run(self.name, cache=cache, N=N)["compile_s"]
            log(f"N = {N}")
            measured = fresh_run(self.name, steps=steps, repeats=2, cache=cache, N=N)
            self._warm[N].add(measured["compile_s"])
            self._us_per_step[N].add(measured["us_per_step"])

    def add_to_report(self, report: BenchReport) -> None:
        self._folder.cleanup()
        report.points += [
            ScalingPoint(N, steps, self._us_per_step[N].value, self._cold[N], self._warm[N].value)
            for N, steps in _STEPS.items()
        ]
        exponent = growth_exponent([p.N for p in report.points], [p.us_per_step for p in report.points])
        case = f"{self.name}: exponent of time per step in N"
        report.lines.append(ComparisonRow(case, exponent, "", Goal("<=", 1.2)))


def growth_exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return the exponent a of ``time = constant * size^a``, by least squares in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
