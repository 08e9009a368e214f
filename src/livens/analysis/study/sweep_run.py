"""Single run of a sweep, in a worker process, reduced to one row of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from livens.analysis.conservation import json_value
from livens.analysis.study.step_lists import FINAL_STATE_ONLY
from livens.errors import Interrupted, LivensError
from livens.models.problem import Problem
from livens.problems import with_parameters
from livens.results.record import Summary
from livens.run.plan import Plan
from livens.run.simulate import execute

#: Options of the run; all other options are those of the problem.
RUN_OPTIONS = ("scheme", "h", "t_end")


def from_scenario(path: str, **changes: object) -> Problem:
    """Load the problem of a scenario file with changed options or parameters."""
    from livens.scenario import load

    return load(path).changed(changes).problem()


def plan_member(
    build: str | Callable[..., Problem], options: Mapping[str, Any], chosen: Mapping[str, Any]
) -> tuple[Plan, Problem]:
    """Return the plan of a run that stores its final state only, and the problem."""
    run_options = {name: value for name, value in {**options, **chosen}.items() if name in RUN_OPTIONS}
    changes = {name: value for name, value in {**options, **chosen}.items() if name not in RUN_OPTIONS}
    problem = with_parameters(build, changes) if isinstance(build, str) else build(**changes)
    return Plan.from_arguments(problem, every=FINAL_STATE_ONLY, redundant="remove", **run_options), problem


def run_member(
    build: str | Callable[..., Problem], options: Mapping[str, object], chosen: Mapping[str, float], final: bool
) -> dict[str, float | str | None] | dict[str, float | str]:
    """Run a problem with the given options; a failure is returned as a row too."""
    row: dict[str, Any] = dict(chosen)
    try:
        plan, problem = plan_member(build, options, chosen)
        result = execute(plan, progress=False)
    except Interrupted as interruption:
        return row | {"status": "interrupted", "reason": str(interruption)}
    except LivensError as error:
        return row | {"status": "failed", "reason": str(error)}
    except Exception as error:  # a user-defined problem may raise anything; other runs continue
        return row | {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    return row | result_row(
        problem,
        result.info.t_end,
        result.info.coordinates,
        {name: result.last(name) for name in plan.model.error_norm_variables},
        result.summary,
        steps=result.statistics.steps,
        wall_s=result.statistics.wall_s,
        corrections=result.statistics.newton_iterations,
        final=final,
    )


def result_row(
    problem: Problem,
    t_end: float,
    coordinates: Sequence[str],
    final_state: Mapping[str, np.ndarray],
    summary: Summary,
    *,
    steps: int,
    wall_s: float,
    corrections: int,
    final: bool,
) -> dict[str, Any]:
    """Return the row of a completed run; `final_state` is given by variable."""
    n_steps = max(steps, 1)
    row: dict[str, object] = {
        "status": "complete",
        "reason": "",
        "steps": steps,
        "wall_s": wall_s,
        "us_per_step": wall_s / n_steps * 1e6,
        "newton_iterations_mean": corrections / n_steps,
        "max_energy_drift": summary.max_energy_drift if summary.energy else None,
        "max_constraint": summary.max_constraint,
        "max_velocity_constraint": summary.max_velocity_constraint,
        "momentum_drift": max(summary.momentum_drift.values(), default=None),
    }
    if problem.reference is not None:
        with np.errstate(all="ignore"):  # the exact solution may not exist for these options
            exact = problem.reference(t_end)
        errors = {
            name: float(np.linalg.norm(final_state[name] - value))
            for name, value in exact.items()
            if name in final_state
        }
        row |= {f"error_{name}": json_value(error) for name, error in errors.items()}
    if final:
        for name, state in final_state.items():
            row |= {f"{name}.{c}": float(x) for c, x in zip(coordinates, state, strict=True)}
    return row
