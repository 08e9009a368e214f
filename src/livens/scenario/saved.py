"""Restoring the models of saved runs from their files."""

from __future__ import annotations

from typing import Any

from livens import problems
from livens.errors import InputError
from livens.models.problem import Problem
from livens.models.scene import Scene, particles, scene_of
from livens.results.record import Facts
from livens.results.result import Result

#: Problem name of systems defined in a scenario; result files contain the description that rebuilds them.
NAME = "scenario"


def problem_of(facts: Facts) -> Problem | None:
    """Restore the problem of a run: a built-in one, or that of a scenario; None for a user-defined model."""
    if facts.problem is None:
        return None
    if facts.problem == NAME:
        from livens.scenario.scenario import described  # slow import, not needed for built-in problems

        return described(facts.problem_options["description"]).problem()
    return problems.load(facts.problem, **facts.problem_options)


def _problem(result: Result) -> Problem | None:
    """Return the problem of the run, rebuilt; None for a user-defined model."""
    return problem_of(result.facts)


def _system(result: Result) -> Any:
    """Return the model of the run, rebuilt if the run of a built-in problem was loaded from a file."""
    if result._system is None:
        found = result.problem
        if found is None:
            raise InputError(
                "the file does not hold the model, only its trajectory: "
                "pass the system it was made with, lv.load(file, system=...)"
            )
        result._system = found.system
    return result._system


def _scene(result: Result) -> Scene:
    """Return the visual scene of the run; older files do not contain it, then that of the model if available."""
    if not result.facts.scene and (result._system is not None or result.facts.problem is not None):
        return result.system.scene_with(result.parameter_vector)
    known = result.facts.coordinates
    if not result.facts.scene and "q" in result.stored:
        return scene_of(len(known), particles(known))
    return Scene.read(result.facts.scene, len(known))


Result.attach("problem", property(_problem))
Result.attach("scene", property(_scene))
Result.attach("system", property(_system))
