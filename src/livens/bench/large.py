"""Large systems: from the model to the first step, time per step, and memory, up to ten thousand bodies."""

from __future__ import annotations

import tempfile
from typing import Any

from livens.bench.case import Say
from livens.bench.fresh import fresh_run
from livens.bench.ours import Best
from livens.bench.report import Goal, Line, Report
from livens.bench.scaling import growth_exponent

#: Name of a line, problem, options, bodies, steps that are timed, and what a step should take, in microseconds.
_CASES: tuple[tuple[str, str, dict[str, Any], int, int, float], ...] = (
    ("n-four-bar, 101 bodies", "n-four-bar", dict(N=50, frames=1), 101, 2000, 50.0),
    ("n-four-bar, 1001 bodies", "n-four-bar", dict(N=500, frames=1), 1001, 400, 400.0),
    ("n-four-bar, 5001 bodies", "n-four-bar", dict(N=2500, frames=1), 5001, 100, 1500.0),
    ("n-four-bar, 10,001 bodies", "n-four-bar", dict(N=5000, frames=1), 10_001, 60, 3500.0),
    ("chain, 1000 bodies", "chain", dict(N=1000), 1000, 200, 450.0),
    ("chain, 10,000 bodies", "chain", dict(N=10_000), 10_000, 40, 6500.0),
)
_LARGEST = "n-four-bar, 10,001 bodies"


class Large:
    name = "large systems"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._us_per_step = {line: Best() for line, *_ in _CASES}
        self._first_step = {line: Best() for line, *_ in _CASES}
        self._memory = 0.0
        self._cold = 0.0

    def play(self, first: bool, say: Say) -> None:
        if first:
            say("compiling 81 bodies")
            self._cold = fresh_run("n-four-bar", cache=self._folder.name, N=40)["first_step_s"]
        for line, problem, options, _, steps, _ in _CASES:
            say(line)
            found = fresh_run(problem, steps=steps, repeats=2, every=steps, cache=self._folder.name, **options)
            self._us_per_step[line].add(found["us_per_step"])
            self._first_step[line].add(found["first_step_s"])
            if line == _LARGEST:
                self._memory = found["peak_mb"]

    def tell(self, report: Report) -> None:
        self._folder.cleanup()
        lines = [Line("n-four-bar, 81 bodies: to the first step, cold", self._cold, "s", Goal("<", 1.0))]
        lines += [
            Line(f"{line}: a step", self._us_per_step[line].value, goal=Goal("<=", goal)) for line, *_, goal in _CASES
        ]
        lines.append(Line(f"{_LARGEST}: to the first step", self._first_step[_LARGEST].value, "s", Goal("<", 10.0)))
        lines.append(Line(f"{_LARGEST}: memory", self._memory, "MB", Goal("<", 1000.0)))
        loops = [(bodies, self._us_per_step[line].value) for line, name, _, bodies, *_ in _CASES if name != "chain"]
        exponent = growth_exponent(*zip(*loops, strict=True))
        lines.append(Line("n-four-bar, 101 to 10,001 bodies: exponent of time per step", exponent, "", Goal("<=", 1.1)))
        report.lines += lines
