"""Final states of the runs of a study, of a single run or of an ensemble."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.analysis.study.steps import ONLY_THE_END
from livens.errors import InputError, IntegrationError, suggestion
from livens.models.problem import Problem
from livens.results.ensemble import Ensemble
from livens.run.ensemble import ensemble
from livens.run.simulate import simulate
from livens.schemes.base import Scheme

#: Arguments of `livens.ensemble` in which members may differ.
_GIVEN = ("q0", "v0", "p0", "x0", "y0", "parameters", "project", "threads")


@dataclass(frozen=True)
class End:
    """Final state by variable (for members: one row each), wall time in seconds, steps and Newton corrections."""

    values: dict[str, np.ndarray]
    wall_s: float
    steps: int
    corrections: int


def checked_members(members: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Check initial values and parameters of members, in the form of `livens.ensemble`."""
    if members is None:
        return None
    if not isinstance(members, Mapping) or not members:
        raise InputError(f"members must map q0, v0, ... or parameters to rows of numbers, got {members!r}")
    for name in members:
        if name not in _GIVEN:
            raise InputError(f"members cannot differ in '{name}'{suggestion(str(name), _GIVEN)}")
    return dict(members)


def end_of(problem: Problem, scheme: Scheme, h: float, t_end: float, members: Mapping[str, Any] | None = None) -> End:
    """Run a problem, or all members of a study, and return the final state."""
    names = problem.system.error_variables
    if members is None:
        run = simulate(problem, scheme=scheme, h=h, t_end=t_end, every=ONLY_THE_END, redundant="remove", progress=False)
        told = run.statistics
        return End({name: run.last(name) for name in names}, told.wall_s, told.steps, told.newton_iterations)
    begun = time.perf_counter()
    many = ensemble_to(problem, scheme, h, t_end, members)
    took = time.perf_counter() - begun
    for member, why in many.failures.items():
        raise IntegrationError(f"member {member}: {why}")
    total, corrections = int(many.steps.sum()), int(many.newton_iterations.sum())
    return End({name: many.last(name) for name in names}, took, total, corrections)


def ensemble_to(problem: Problem, scheme: Scheme, h: float, t_end: float, members: Mapping[str, Any]) -> Ensemble:
    """Run all members of a study and store the final states only."""
    return ensemble(
        problem, scheme=scheme, h=h, t_end=t_end, every=ONLY_THE_END, redundant="remove", progress=False, **members
    )
