"""Time from the model to its first step, and from the shell to the help text."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

from benchmarks.case import Log
from benchmarks.fresh import fresh_run
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal


class FirstStep:
    """Time to the first step in a new process, with modules imported and the time loop loaded."""

    name = "model to first step"

    def __init__(self) -> None:
        self._cold, self._warm = Minimum(), Minimum()

    def run_round(self, first: bool, log: Log) -> None:
        with tempfile.TemporaryDirectory() as cache:
            for best in (self._cold, self._warm):
                best.add(fresh_run("double-four-bar", cache=cache)["first_step_s"])

    def add_to_report(self, report: BenchReport) -> None:
        case = "double-four-bar: model to first step"
        report.lines.append(ComparisonRow(f"{case}, nothing on disk", self._cold.value, "s", Goal("<", 1)))
        report.lines.append(ComparisonRow(f"{case}, kernels on disk", self._warm.value, "s", Goal("<", 0.2)))


class Help:
    name = "livens --help"

    def __init__(self) -> None:
        self._wall = Minimum()

    def run_round(self, first: bool, log: Log) -> None:
        command = [sys.executable, "-c", "from livens.cli import main; main()", "--help"]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self._wall.add(time.perf_counter() - start)

    def add_to_report(self, report: BenchReport) -> None:
        report.lines.append(ComparisonRow(self.name, self._wall.value, "s", Goal("<", 0.5)))
