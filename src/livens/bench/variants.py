"""Elimination variants of one scheme: cost with different numbers of unknowns (S004 Fig. 9)."""

from __future__ import annotations

import dataclasses

from livens.bench.case import Say
from livens.bench.ours import OurRuns
from livens.bench.report import Goal, Line, Report
from livens.problems import load

_SCHEMES = ("livens-em-full", "livens-em", "livens-em-reduced", "livens-em-nullspace")
#: Ten seconds of motion, as in the figure. At the step of the paper, 0.05, the body rotates by 1.5 rad per
#: step, and Newton's method fails within ten seconds (docs/notes.md).
_STEP, _STEPS = 0.01, 1000


class Variants:
    name = "free-rigid-body"

    def __init__(self) -> None:
        problem = load(self.name, h=_STEP)
        self._ours = {
            scheme: OurRuns(dataclasses.replace(problem, scheme=scheme), _STEPS, repeats=10) for scheme in _SCHEMES
        }

    def play(self, first: bool, say: Say) -> None:
        for scheme, runs in self._ours.items():
            say(scheme)
            runs.play()

    def tell(self, report: Report) -> None:
        for scheme, runs in self._ours.items():
            report.lines.append(Line(f"{self.name}, {scheme}", runs.us_per_step.value, goal=Goal("<", 3)))
