"""Results of the benchmark as plain data."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_RELATIONS: dict[str, Callable[[float, float], bool]] = {"<": operator.lt, "<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Goal:
    """Goal of a number, such as ``Goal(">=", 30)``."""

    relation: str
    limit: float

    def met(self, value: float) -> bool:
        return _RELATIONS[self.relation](value, self.limit)

    def __str__(self) -> str:
        return f"{self.relation} {self.limit:g}"


@dataclass(frozen=True)
class ComparisonRow:
    """Comparison row; the goal refers to the ratio if another code is named, else to the number of livens."""

    case: str
    ours: float
    unit: str = "us"  # us: microseconds per step
    goal: Goal | None = None
    peer: str | None = None
    theirs: float | None = None  # None if the other code was skipped

    @property
    def ratio(self) -> float | None:
        """Time of the other code over that of livens."""
        return None if self.theirs is None else self.theirs / self.ours

    @property
    def met(self) -> bool | None:
        """True if the goal is met; None without goal or without comparison."""
        value = self.ours if self.peer is None else self.ratio
        return None if self.goal is None or value is None else self.goal.met(value)

    def facts(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "ours": self.ours,
            "unit": self.unit,
            "peer": self.peer,
            "theirs": self.theirs,
            "ratio": self.ratio,
            "wanted": str(self.goal) if self.goal else None,
            "met": self.met,
        }


@dataclass(frozen=True)
class MotionCheck:
    """Final position and energy error of a code, as a check that all codes simulate the same motion."""

    code: str
    setting: str
    x4_end: float
    x4_error: float
    energy_error: float  # relative, maximum over all steps


@dataclass(frozen=True)
class ScalingPoint:
    """Measurements for one size of a growing model."""

    N: int
    steps: int
    us_per_step: float
    cold_s: float  # compilation without kernels on disk
    warm_s: float  # preparation with kernels on disk


@dataclass(frozen=True)
class WorkPrecisionPoint:
    """Error and time of one run of one code."""

    code: str
    setting: str
    error: float
    seconds: float


@dataclass
class BenchReport:
    """Results of one run of the benchmark."""

    rounds: int
    machine: dict[str, str]
    lines: list[ComparisonRow] = field(default_factory=list)
    motions: list[MotionCheck] = field(default_factory=list)
    points: list[ScalingPoint] = field(default_factory=list)
    works: list[WorkPrecisionPoint] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # name of the code -> reason

    def facts(self) -> dict[str, Any]:
        """Return the report as one JSON object."""
        return {
            "rounds": self.rounds,
            "machine": self.machine,
            "lines": [line.facts() for line in self.lines],
            "motion": [dict(vars(motion)) for motion in self.motions],
            "scaling": [dict(vars(point)) for point in self.points],
            "work": [dict(vars(work)) for work in self.works],
            "skipped": self.skipped,
        }
