"""A long run of which little is kept: memory must not grow with the number of steps."""

from __future__ import annotations

from livens.bench.case import Say
from livens.bench.fresh import fresh_run
from livens.bench.report import Goal, Line, Report

_STEPS, _EVERY = 10_000_000, 1000


class LongRun:
    name = "long run"

    def __init__(self) -> None:
        self._found: dict[str, float] = {}

    def play(self, first: bool, say: Say) -> None:
        if first:  # its length evens out the noise
            self._found = fresh_run("simple-pendulum", steps=_STEPS, every=_EVERY)

    def tell(self, report: Report) -> None:
        case = f"simple-pendulum, {_STEPS:.0e} steps, every {_EVERY}"
        report.lines.append(Line(case, self._found["us_per_step"]))
        report.lines.append(Line(f"{case}: memory", self._found["peak_mb"], "MB", Goal("<", 500)))
