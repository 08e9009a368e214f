"""Record of a run: metadata, conservation summary, statistics and checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens.expressions.result_variables import RESULT_VARIABLES


class LazyAttribute:
    """Descriptor of an attribute that may be set to a function, which is evaluated on first access."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: object, owner_type: type) -> Any:
        if owner is None:
            return self
        value = owner.__dict__[self._name]
        if callable(value):
            value = owner.__dict__[self._name] = value()
        return value

    def __set__(self, owner: object, value: object) -> None:
        owner.__dict__[self._name] = value


@dataclass
class RunInfo:
    """Metadata of a run: everything needed to reproduce it."""

    scheme: str
    h: float
    t0: float
    t_end: float
    every: int
    coordinates: tuple[str, ...]
    constraint_names: tuple[str, ...]
    parameters: dict[str, Any]
    problem: str | None = None
    problem_options: dict[str, Any] = field(default_factory=dict)
    model: str = ""  # fingerprint of the step equations (lazy, see below)
    tier: str = "fused"
    tier_reason: str = ""  # reason for the tier, where the tree tier could have been chosen
    dropped: tuple[int, ...] = ()
    stored: tuple[str, ...] = tuple(RESULT_VARIABLES)
    compress: bool = False
    bodies: dict[str, list[str]] = field(default_factory=dict)  # named bodies and their coordinates
    algebraic: tuple[str, ...] = ()  # names of algebraic variables
    control: dict[str, Any] = field(default_factory=dict)  # step-size control; empty for fixed steps
    events: tuple[str, ...] = ()  # names of the events of the run
    made: dict[str, Any] = field(default_factory=dict)  # provenance: date, versions, commands (lazy, see below)
    scene: dict[str, Any] = field(default_factory=dict)  # geometry of the model as plain data (lazy, see below)
    name: str = ""  # name of a user-defined model
    scaling: str = ""  # call of the scaling function of the scheme; empty without one, or if it is user-defined

    @property
    def title(self) -> str:
        """Name of the problem or of the model, for titles."""
        return self.problem or self.name or "user-defined system"


@dataclass
class Summary:
    """Conservation summary: maxima over all steps, not only stored ones. Energies and momenta are relative."""

    energy: str  # name of the monitored energy
    max_energy_drift: float = 0.0
    max_energy_increment: float = 0.0
    max_constraint: float = 0.0
    max_velocity_constraint: float = 0.0
    momentum_drift: dict[str, float] = field(default_factory=dict)


@dataclass
class Statistics:
    """Computational cost of a run."""

    steps: int = 0
    newton_iterations: int = 0
    wall_s: float = 0.0
    compile_s: float = 0.0
    repivots: int = 0
    reference_steps: int = 0
    rejected: int = 0  # rejected steps
    unsolved: int = 0  # rejected steps without Newton convergence; the others exceeded the error tolerance
    force_evaluations: int = 0  # of expensive forces (of all forces, if the scheme does not distinguish them)
    force_jacobians: int = 0  # of the same forces

    def count_forces(self, scheme: Any, counted: np.ndarray | None = None) -> None:
        """Set the force evaluations: those counted, or those of all steps and Newton iterations of the scheme."""
        numbers = scheme.evaluation_counts(self.steps, self.newton_iterations) if counted is None else counted
        self.force_evaluations, self.force_jacobians = int(numbers[0]), int(numbers[1])


@dataclass
class RunRecord:
    """Record of a run: everything except its trajectory."""

    info: RunInfo
    summary: Summary
    statistics: Statistics
    status: str  # "complete", "failed", "interrupted" or "running" (a file whose run was killed)
    message: str = ""
    #: Checkpoint: states of all components of the run, by name.
    checkpoint: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)  # detected events in order of time


@dataclass(frozen=True)
class EventRecord:
    """Detected event: name, time and state."""

    name: str
    t: float
    state: dict[str, list[float]]
    #: Changes made by the action of the event: parts of the state, and parameters.
    changes: dict[str, Any] = field(default_factory=dict)


RunInfo.model = LazyAttribute("model")  # type: ignore[assignment]
RunInfo.parameters = LazyAttribute("parameters")  # type: ignore[assignment]
RunInfo.made = LazyAttribute("made")  # type: ignore[assignment]
RunInfo.scene = LazyAttribute("scene")  # type: ignore[assignment]
RunRecord.info = LazyAttribute("info")  # type: ignore[assignment]
RunRecord.summary = LazyAttribute("summary")  # type: ignore[assignment]
RunRecord.checkpoint = LazyAttribute("checkpoint")  # type: ignore[assignment]
