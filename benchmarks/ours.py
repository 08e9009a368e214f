"""In-process timing of livens: complete runs with all steps stored and monitored."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from livens.models.problem import Problem
from livens.results.result import Result


@dataclass
class Minimum:
    """Running minimum."""

    value: float = math.inf

    def add(self, value: float) -> None:
        self.value = min(self.value, value)


@dataclass
class LivensTiming:
    """Problem with its default scheme and step, run `repeats` times per round; `us_per_step` is the minimum."""

    problem: Problem
    steps: int
    repeats: int
    us_per_step: Minimum = field(default_factory=Minimum)
    last: Result | None = None

    def run_round(self) -> None:
        """Run briefly to warm the caches, then run and time."""
        from livens.run.simulate import simulate

        h = self.problem.h
        simulate(self.problem, t_end=min(self.steps, 100) * h, progress=False)
        for _ in range(self.repeats):
            self.last = simulate(self.problem, t_end=self.steps * h, progress=False)
            self.us_per_step.add(self.last.statistics.wall_s / self.last.statistics.steps * 1e6)
