"""Final states of the runs of a study, of a single run or of an ensemble."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.analysis.study.step_lists import FINAL_STATE_ONLY
from livens.errors import InputError, IntegrationError, suggestion
from livens.models.problem import Problem
from livens.results.ensemble import Ensemble
from livens.run.ensemble.api import ensemble
from livens.run.simulate import simulate
from livens.schemes.core.scheme import Scheme

#: Arguments of `livens.ensemble` in which members may differ.
_MEMBER_OPTIONS = ("q0", "v0", "p0", "x0", "y0", "parameters", "project", "threads")


@dataclass(frozen=True)
class FinalState:
    """Final state by variable (for members: one row each), wall time in seconds, steps and Newton corrections."""

    values: dict[str, np.ndarray]
    wall_s: float
    steps: int
    corrections: int


def check_members(members: Mapping[str, object] | None) -> dict[str, object] | None:
    """Check initial values and parameters of members, in the form of `livens.ensemble`."""
    if members is None:
        return None
    if not isinstance(members, Mapping) or not members:
        raise InputError(f"members must map q0, v0, ... or parameters to rows of numbers, got {members!r}")
    for name in members:
        if name not in _MEMBER_OPTIONS:
            raise InputError(f"members cannot differ in '{name}'{suggestion(str(name), _MEMBER_OPTIONS)}")
    return dict(members)


def final_state(
    problem: Problem, scheme: Scheme, h: float, t_end: float, members: Mapping[str, object] | None = None
) -> FinalState:
    """Run a problem, or all members of a study, and return the final state."""
    names = problem.model.error_norm_variables
    if members is None:
        run = simulate(
            problem, scheme=scheme, h=h, t_end=t_end, every=FINAL_STATE_ONLY, redundant="remove", progress=False
        )
        statistics = run.statistics
        return FinalState(
            {name: run.last(name) for name in names}, statistics.wall_s, statistics.steps, statistics.newton_iterations
        )
    started = time.perf_counter()
    members_result = final_ensemble(problem, scheme, h, t_end, members)
    elapsed = time.perf_counter() - started
    for member, reason in members_result.failures.items():
        raise IntegrationError(f"member {member}: {reason}")
    total, corrections = int(members_result.steps.sum()), int(members_result.newton_iterations.sum())
    return FinalState({name: members_result.last(name) for name in names}, elapsed, total, corrections)


def final_ensemble(problem: Problem, scheme: Scheme, h: float, t_end: float, members: Mapping[str, Any]) -> Ensemble:
    """Run all members of a study and store the final states only."""
    return ensemble(
        problem, scheme=scheme, h=h, t_end=t_end, every=FINAL_STATE_ONLY, redundant="remove", progress=False, **members
    )
