"""What there is to say about a run besides its trajectory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from livens.expressions.variables import VARIABLES


class _WhenAsked:
    """An attribute that may be given as a function: it is called when somebody asks, as most runs are never asked."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        value = owner.__dict__[self._name]
        if callable(value):
            value = owner.__dict__[self._name] = value()
        return value

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__[self._name] = value


@dataclass
class Facts:
    """How a run was made: all that is needed to make it again."""

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
    model: str = ""  # a fingerprint of the step's equations
    tier: str = "fused"
    dropped: tuple[int, ...] = ()
    stored: tuple[str, ...] = tuple(VARIABLES)
    compress: bool = False
    bodies: dict[str, list[str]] = field(default_factory=dict)  # named bodies and their coordinates
    algebraic: tuple[str, ...] = ()  # names of algebraic variables
    control: dict[str, Any] = field(default_factory=dict)  # of the step size; nothing if steps are equal
    events: tuple[str, ...] = ()  # names of the events that are looked for
    made: dict[str, Any] = field(default_factory=dict)  # when, with which versions, and how to make it again; see below
    scene: dict[str, Any] = field(default_factory=dict)  # what the model looks like, as plain data; see below


@dataclass
class Summary:
    """What was conserved, over every step and not only the stored ones. Energies and momenta are relative."""

    energy: str  # which energy is meant
    max_energy_drift: float = 0.0
    max_energy_increment: float = 0.0
    max_constraint: float = 0.0
    max_velocity_constraint: float = 0.0
    momentum_drift: dict[str, float] = field(default_factory=dict)


@dataclass
class Statistics:
    """What a run cost."""

    steps: int = 0
    newton_iterations: int = 0
    wall_s: float = 0.0
    compile_s: float = 0.0
    repivots: int = 0
    reference_steps: int = 0
    rejected: int = 0  # steps tried that were too long
    unsolved: int = 0  # of these, steps whose equations could not be solved; the others had too large an error
    force_evaluations: int = 0  # of the expensive forces (of all, where a scheme does not tell them apart)
    force_jacobians: int = 0  # of the same forces

    def count_forces(self, scheme: Any) -> None:
        """From steps and Newton's corrections, by what the scheme says of them."""
        self.force_evaluations, self.force_jacobians = scheme.counted(self.steps, self.newton_iterations)


@dataclass
class Record:
    """All there is to say about a run besides its trajectory."""

    facts: Facts
    summary: Summary
    statistics: Statistics
    status: str  # "complete", "failed", "interrupted" or "running" (a file whose run was killed)
    message: str = ""
    #: From where, and with what, the run can go on: the states of everything that goes on from step to step, by name.
    checkpoint: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)  # that happened, in the order of time


@dataclass(frozen=True)
class Occurrence:
    """An event that happened: which one, when, and the state there."""

    name: str
    t: float
    state: dict[str, list[float]]
    #: What its action made different there: parts of the state, and parameters.
    changes: dict[str, Any] = field(default_factory=dict)


Facts.parameters = _WhenAsked("parameters")  # type: ignore[assignment]
Facts.made = _WhenAsked("made")  # type: ignore[assignment]
Facts.scene = _WhenAsked("scene")  # type: ignore[assignment]
Record.facts = _WhenAsked("facts")  # type: ignore[assignment]
Record.summary = _WhenAsked("summary")  # type: ignore[assignment]
Record.checkpoint = _WhenAsked("checkpoint")  # type: ignore[assignment]
