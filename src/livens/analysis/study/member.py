"""One run of a sweep, done in a process of its own and told in one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from livens.analysis.study.comparison import errors_at_end
from livens.analysis.study.steps import ONLY_THE_END
from livens.analysis.verdicts import plain
from livens.errors import Interrupted, LivensError
from livens.models.problem import Problem
from livens.problems import with_parameters
from livens.run.simulate import simulate

#: Not options of the problem but of the run.
RUN_OPTIONS = ("scheme", "h", "t_end")


def from_scenario(path: str, **changes: Any) -> Problem:
    """The problem of a scenario file, with other options or parameters."""
    from livens.scenario import load

    return load(path).changed(changes).problem()


def run_member(
    build: str | Callable[..., Problem], options: Mapping[str, Any], chosen: Mapping[str, Any], final: bool
) -> dict[str, Any]:
    """Run a problem with some options; whatever goes wrong is a row as well."""
    run_options = {name: value for name, value in {**options, **chosen}.items() if name in RUN_OPTIONS}
    changes = {name: value for name, value in {**options, **chosen}.items() if name not in RUN_OPTIONS}
    row: dict[str, Any] = dict(chosen)
    try:
        if isinstance(build, str):
            problem, run_options["parameters"] = with_parameters(build, changes)
        else:
            problem = build(**changes)
        result = simulate(problem, every=ONLY_THE_END, redundant="remove", progress=False, **run_options)
    except Interrupted as stop:
        return row | {"status": "interrupted", "reason": str(stop)}
    except LivensError as error:
        return row | {"status": "failed", "reason": str(error)}
    except Exception as error:  # a problem of the user's own may raise anything; the others shall finish
        return row | {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    statistics, summary = result.statistics, result.summary
    steps = max(statistics.steps, 1)
    row |= {
        "status": "complete",
        "reason": "",
        "steps": statistics.steps,
        "wall_s": statistics.wall_s,
        "us_per_step": statistics.wall_s / steps * 1e6,
        "newton_iterations_mean": statistics.newton_iterations / steps,
        "max_energy_drift": summary.max_energy_drift if summary.energy else None,
        "max_constraint": summary.max_constraint,
        "max_velocity_constraint": summary.max_velocity_constraint,
        "momentum_drift": max(summary.momentum_drift.values(), default=None),
    }
    if problem.reference is not None:
        with np.errstate(all="ignore"):  # the exact solution may not exist for these options
            exact = problem.reference(result.facts.t_end)
        row |= {f"error_{name}": plain(error) for name, error in errors_at_end(result, exact).items()}
    if final:
        for name in result.system.error_variables:
            row |= {f"{name}.{c}": float(x) for c, x in zip(result.facts.coordinates, result.last(name), strict=True)}
    return row
