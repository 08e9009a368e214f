"""Runs of livens in this process, timed as a user sees them: every step stored and watched."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from livens.models.problem import Problem
from livens.results.result import Result


@dataclass
class Best:
    """The smallest of the numbers it was given."""

    value: float = math.inf

    def add(self, value: float) -> None:
        self.value = min(self.value, value)


@dataclass
class OurRuns:
    """A problem with its usual scheme and step, run so often in every round; `us_per_step` is that of the fastest."""

    problem: Problem
    steps: int
    repeats: int
    us_per_step: Best = field(default_factory=Best)
    last: Result | None = None

    def play(self) -> None:
        """A short run that brings code and data back into the caches, then the timed ones."""
        from livens.run.simulate import simulate

        h = self.problem.h
        simulate(self.problem, t_end=min(self.steps, 100) * h, progress=False)
        for _ in range(self.repeats):
            self.last = simulate(self.problem, t_end=self.steps * h, progress=False)
            self.us_per_step.add(self.last.statistics.wall_s / self.last.statistics.steps * 1e6)
