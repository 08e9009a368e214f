"""What came out of the benchmark, as plain data."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_RELATIONS: dict[str, Callable[[float, float], bool]] = {"<": operator.lt, "<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Goal:
    """What a number is wanted to be: ``Goal(">=", 30)``."""

    relation: str
    limit: float

    def met(self, value: float) -> bool:
        return _RELATIONS[self.relation](value, self.limit)

    def __str__(self) -> str:
        return f"{self.relation} {self.limit:g}"


@dataclass(frozen=True)
class Line:
    """One comparison. The goal is one for the ratio where another code is named, else one for our own number."""

    case: str
    ours: float
    unit: str = "us"  # us: microseconds per step
    goal: Goal | None = None
    peer: str | None = None
    theirs: float | None = None  # None: the peer was skipped

    @property
    def ratio(self) -> float | None:
        """How many times faster than the peer."""
        return None if self.theirs is None else self.theirs / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if there is none, or nothing to compare with."""
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
class Motion:
    """Where a code ends up and how well it keeps the energy: whether it simulates the same thing at all."""

    code: str
    setting: str
    x4_end: float
    x4_error: float
    energy_error: float  # relative, the largest of all steps


@dataclass(frozen=True)
class Point:
    """One size of a growing model."""

    N: int
    steps: int
    us_per_step: float
    cold_s: float  # to compile, with nothing on disk
    warm_s: float  # to get ready, with the kernels on disk


@dataclass(frozen=True)
class Work:
    """What accuracy costs: one run of one code."""

    code: str
    setting: str
    error: float
    seconds: float


@dataclass
class Report:
    """All that one run of the benchmark found out."""

    rounds: int
    machine: dict[str, str]
    lines: list[Line] = field(default_factory=list)
    motions: list[Motion] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # peer -> why

    def facts(self) -> dict[str, Any]:
        """The same as one JSON object."""
        return {
            "rounds": self.rounds,
            "machine": self.machine,
            "lines": [line.facts() for line in self.lines],
            "motion": [dict(vars(motion)) for motion in self.motions],
            "scaling": [dict(vars(point)) for point in self.points],
            "work": [dict(vars(work)) for work in self.works],
            "skipped": self.skipped,
        }
