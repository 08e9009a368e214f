"""Simple pendulum: overhead per step for a model of negligible cost."""

from __future__ import annotations

from livens.bench.case import Say
from livens.bench.ours import OurRuns
from livens.bench.report import Goal, Line, Report
from livens.problems import load


class Pendulum:
    name = "simple-pendulum"

    def __init__(self) -> None:
        self._ours = OurRuns(load("simple-pendulum"), 10_000, repeats=10)

    def play(self, first: bool, say: Say) -> None:
        self._ours.play()

    def tell(self, report: Report) -> None:
        report.lines.append(Line(self.name, self._ours.us_per_step.value, goal=Goal("<", 1)))
