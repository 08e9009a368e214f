"""Restoring the models of saved runs from their files."""

from __future__ import annotations

from typing import Any

from livens import problems
from livens.errors import InputError
from livens.models.problem import Problem
from livens.results.record import RunInfo
from livens.results.result import Result
from livens.results.storage.former_names import present_description
from livens.scene.scene import Scene, build_scene, default_visuals

#: Problem name of systems defined in a scenario; result files contain the description that rebuilds them.
SCENARIO_NAME = "scenario"


def restore_problem(info: RunInfo) -> Problem | None:
    """Restore the problem of a run: a built-in one, or that of a scenario; None for a user-defined model."""
    if info.problem is None:
        return None
    if info.problem == SCENARIO_NAME:
        from livens.scenario.scenario import described  # slow import, not needed for built-in problems

        return described(present_description(info.problem_options["description"])).problem()
    return problems.load(info.problem, **info.problem_options)


def _problem(result: Result) -> Problem | None:
    """Return the problem of the run, rebuilt; None for a user-defined model."""
    return restore_problem(result.info)


def _system(result: Result) -> Any:
    """Return the model of the run, rebuilt if the run of a built-in problem was loaded from a file."""
    if result._system is None:
        problem = result.problem
        if problem is None:
            raise InputError(
                "the file does not hold the model, only its trajectory: pass the system or mechanism "
                "it was made with, lv.load(file, system=...) or lv.resume(file, system=...)"
            )
        result._system = problem.model
    return result._system


def _scene(result: Result) -> Scene:
    """Return the visual scene of the run; older files do not contain it, then that of the model if available."""
    if not result.info.scene and (result._system is not None or result.info.problem is not None):
        return result.system.scene_for(result.parameter_vector)
    coordinates = result.info.coordinates
    if not result.info.scene and "q" in result.stored:
        return build_scene(len(coordinates), default_visuals(coordinates))
    return Scene.from_json(result.info.scene, len(coordinates))


Result.attach("problem", property(_problem))
Result.attach("scene", property(_scene))
Result.attach("system", property(_system))
