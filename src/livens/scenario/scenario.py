"""A scenario: what a file asks for, ready to be run."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from livens import problems, schemes
from livens.errors import InputError, suggestion
from livens.expressions.numbers import path_of
from livens.models.problem import Problem
from livens.multibody.builder import Multibody
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.scenario.mechanism import ROBOTS, Mechanism, robot_file
from livens.scenario.model import Model
from livens.scenario.reader import Document, document, read
from livens.scenario.saved import NAME
from livens.scenario.schema import MechanismScenario, ProblemScenario, RobotScenario, SystemScenario, validated
from livens.scenario.show import shown

#: Fields that belong to a run and not to the problem.
_RUN_FIELDS = ("every", "out", "project", "redundant", "tier", "threads")


def load(path: str | Path) -> Scenario:
    """Read a scenario file, or the file of a robot (URDF, MJCF).

    Whatever is wrong with it is an InputError that says where, and what is allowed.
    """
    file = path_of("the path of a scenario", path)
    if file.suffix.lower() in ROBOTS:
        return Scenario(Document({"robot": file.name}, str(file)))
    return Scenario(read(file))


def parse(text: str, source: str = "scenario") -> Scenario:
    """Read a scenario from a text; `source` stands for it in messages."""
    if not isinstance(text, str):
        raise InputError(f"a scenario is parsed from a text, got {text!r}")
    return Scenario(document(text, str(source)))


def described(description: Any) -> Scenario:
    """A scenario from nested dicts and lists, such as the description that result files keep."""
    return Scenario(Document(description, NAME))


class Scenario:
    """A checked scenario. `run()` runs it, `problem()` gives what is run."""

    def __init__(self, source: Document) -> None:
        self._document = source
        self.fields = validated(source)
        self._check_times()
        if isinstance(self.fields, ProblemScenario):
            self._check_problem(self.fields)
        elif isinstance(self.fields, MechanismScenario):
            _ = self.mechanism
        else:
            _ = self._model
        self._check_scheme()

    @cached_property
    def _model(self) -> Model:
        assert isinstance(self.fields, SystemScenario)
        return Model(self.fields.system, self.fields.start, self._document)

    @cached_property
    def mechanism(self) -> Multibody:
        """The drawing, of a scenario with bodies."""
        if not isinstance(self.fields, MechanismScenario):
            raise self._document.error((), "this scenario has no bodies")
        return Mechanism(self.fields, self._document).drawn

    # -- checks that need more than one field, or the registries -------------------------------------------------------
    def _check_times(self) -> None:
        t0, t_end = self.fields.t0 or 0.0, self.fields.t_end
        if t_end is not None and t_end <= t0:
            raise self._document.error(("t_end",), f"must lie after t0 = {t0:g}, got {t_end:g}")

    def _check_scheme(self) -> None:
        if self.fields.scheme is not None:
            try:
                schemes.get(self.fields.scheme)
            except InputError as error:
                raise self._document.error(("scheme",), error) from None

    def _check_problem(self, fields: ProblemScenario) -> None:
        try:
            known = problems.entry(fields.problem).options
        except InputError as error:
            raise self._document.error(("problem",), error) from None
        for name in fields.options:
            if name not in known:
                reason = f"problem '{fields.problem}' has no option '{name}'{suggestion(name[:60], known)}"
                raise self._document.error(("options", name), reason)

    # -- what it asks for ----------------------------------------------------------------------------------------------
    def problem(self) -> Problem:
        """The problem with its initial values, scheme, step and end."""
        fields = self.fields
        if isinstance(fields, SystemScenario):
            model = self._model
            return Problem(
                NAME,
                model.system(),
                model.q0,
                model.v0,
                fields.scheme or "livens-em",
                fields.h,
                fields.t_end,
                t0=fields.t0 or 0.0,
                options={"description": self._description},
            )
        if isinstance(fields, MechanismScenario):
            usual = "lie-ggl" if fields.velocity_level else "lie-em"
            drawn = self.mechanism.problem(NAME, h=fields.h, t_end=fields.t_end, scheme=fields.scheme or usual)
            return dataclasses.replace(drawn, t0=fields.t0 or 0.0, options={"description": self._description})
        try:
            ready = problems.load(fields.problem, h=fields.h, t_end=fields.t_end, **fields.options)
        except InputError as error:
            blamed = [name for name in fields.options if f"option '{name}'" in str(error)]
            raise self._document.error(("options", *blamed[:1]), error) from None
        known = ready.system.parameters
        for name in fields.parameters:
            if name not in known:
                reason = f"the model of '{fields.problem}' has no parameter '{name}'{suggestion(name[:60], known)}"
                raise self._document.error(("parameters", name), reason)
        ready = ready.with_parameters(fields.parameters)
        changes: dict[str, Any] = {"scheme": fields.scheme, "t0": fields.t0}
        return dataclasses.replace(ready, **{name: value for name, value in changes.items() if value is not None})

    @property
    def _description(self) -> dict[str, Any]:
        """What is needed to build the problem again, as plain texts."""
        found = {name: value for name, value in self._document.tree.items() if name not in _RUN_FIELDS}
        if isinstance(self.fields, RobotScenario):  # wherever the description is read again
            found["robot"] = str(robot_file(self.fields.robot, self._document.source))
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments for `livens.simulate` besides the problem."""
        return self.settings_besides(())

    def settings_besides(self, given: Collection[str]) -> dict[str, Any]:
        """The same without those that are given in another way, and so need not be allowed in a file."""
        values = {name: None if name in given else getattr(self.fields, name) for name in _RUN_FIELDS}
        if isinstance(self.fields, ProblemScenario) and self.fields.parameters:
            values["parameters"] = self.fields.parameters
        if values["out"] is not None and not _inside(values["out"]):
            words = "must stay in the folder the run is started in; ask for another place on the command line (--out)"
            raise self._document.error(("out",), f"{words}, got '{shown(values['out'])}'")
        return {name: value for name, value in values.items() if value is not None}

    def run(self, **options: Any) -> Result:
        """Run it. Options are those of `livens.simulate`; what is given here and not None replaces the file's."""
        chosen = {name: value for name, value in options.items() if value is not None}
        return simulate(self.problem(), **{**self.settings_besides(chosen), **chosen})

    def changed(self, values: Mapping[str, Any]) -> Scenario:
        """The same scenario with other options of the problem, or other parameters of the system."""
        if not values:
            return self
        tree = dict(self._document.tree)
        if isinstance(self.fields, ProblemScenario):
            options, parameters = problems.split(self.fields.problem, values)
            tree["options"] = {**self.fields.options, **options}
            tree["parameters"] = {**self.fields.parameters, **parameters}
        else:
            fields = self.fields
            parameters = fields.parameters if isinstance(fields, MechanismScenario) else fields.system.parameters
            for name, value in values.items():
                if name not in parameters:
                    raise InputError(f"the system has no parameter '{name}'{suggestion(name[:60], parameters)}")
                if isinstance(value, (list, tuple)):
                    raise InputError(f"the parameter '{name}' must be one number, got {len(value)}")
            if isinstance(fields, MechanismScenario):
                tree["parameters"] = {**parameters, **values}
            else:
                tree["system"] = {**tree["system"], "parameters": {**parameters, **values}}
        return Scenario(dataclasses.replace(self._document, tree=tree))


def _inside(name: str) -> bool:
    """Whether a file of this name lies in the folder it is looked for in, also if links lead elsewhere."""
    here = Path.cwd().resolve()
    try:
        return not Path(name).is_absolute() and (here / name).parent.resolve().is_relative_to(here)
    except (OSError, RuntimeError):
        return False
