"""The models of saved runs, built again from what their files say."""

from __future__ import annotations

from typing import Any

from livens import problems
from livens.errors import InputError
from livens.models.problem import Problem
from livens.models.scene import Scene, particles, scene_of
from livens.results.record import Facts
from livens.results.result import Result

#: The problem name of systems that are written in a scenario; their description is what rebuilds them from a file.
NAME = "scenario"


def problem_of(facts: Facts) -> Problem | None:
    """The problem that a run was made of: a ready one, or the one a scenario describes; None for a user's own model."""
    if facts.problem is None:
        return None
    if facts.problem == NAME:
        from livens.scenario.scenario import described  # it takes long to import, and most runs are of ready problems

        return described(facts.problem_options["description"]).problem()
    return problems.load(facts.problem, **facts.problem_options)


def _problem(result: Result) -> Problem | None:
    """The problem the run was made of, built anew; None for a model of the user's own."""
    return problem_of(result.facts)


def _system(result: Result) -> Any:
    """The model the run belongs to; a ready problem's is built anew if the run comes from a file."""
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
    """What the model looks like; older files do not say, then the model does if it is there."""
    if not result.facts.scene and (result._system is not None or result.facts.problem is not None):
        return result.system.scene_with(result.parameter_vector)
    known = result.facts.coordinates
    if not result.facts.scene and "q" in result.stored:
        return scene_of(len(known), particles(known))
    return Scene.read(result.facts.scene, len(known))


Result.attach("problem", property(_problem))
Result.attach("scene", property(_scene))
Result.attach("system", property(_system))
