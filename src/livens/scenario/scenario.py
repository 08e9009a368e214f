"""Validated scenarios: parsing, the problem they define, and their runs."""

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

#: Fields of the run, which are not part of the problem.
_RUN_FIELDS = ("every", "out", "project", "redundant", "tier", "threads")


def load(path: str | Path) -> Scenario:
    """Load a scenario file, or a robot file (URDF, MJCF).

    Parameters
    ----------
    path : str or Path
        Path of the YAML file, or of a file ending in ``.urdf``, ``.xml`` or ``.mjcf``.

    Returns
    -------
    Scenario
        Validated scenario.

    Raises
    ------
    InputError
        If the file is invalid. The message states file, line, field and allowed values.
    """
    file = path_of("the path of a scenario", path)
    if file.suffix.lower() in ROBOTS:
        return Scenario(Document({"robot": file.name}, str(file)))
    return Scenario(read(file))


def parse(text: str, source: str = "scenario") -> Scenario:
    """Parse a scenario from a string.

    Parameters
    ----------
    text : str
        YAML text of the scenario.
    source : str, default "scenario"
        Name of the text in messages.

    Returns
    -------
    Scenario
        Validated scenario.

    Raises
    ------
    InputError
        If the text is invalid.
    """
    if not isinstance(text, str):
        raise InputError(f"parse needs the text of a scenario as a string, got {text!r}")
    return Scenario(document(text, str(source)))


def described(description: Any) -> Scenario:
    """Build a scenario from nested dicts and lists, such as the description in result files.

    Parameters
    ----------
    description : dict
        Fields of the scenario.

    Returns
    -------
    Scenario
        Validated scenario.
    """
    return Scenario(Document(description, NAME))


class Scenario:
    """Validated scenario. `run` simulates it, `problem` returns the problem it defines.

    Parameters
    ----------
    source : Document
        Parsed document; use `load`, `parse` or `described` to create a scenario.
    """

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
        """Multibody model of a scenario with bodies."""
        if not isinstance(self.fields, MechanismScenario):
            raise self._document.error((), "this scenario has no bodies")
        return Mechanism(self.fields, self._document).drawn

    # -- checks of several fields, and against the registries ----------------------------------------------------------
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

    # -- problem and run -----------------------------------------------------------------------------------------------
    def problem(self) -> Problem:
        """Return the problem with its initial values, scheme, step size and end time.

        Returns
        -------
        Problem
            Problem that `livens.simulate` accepts.

        Raises
        ------
        InputError
            If an option or a parameter of a built-in problem is unknown or invalid.
        """
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
        """Fields that are needed to rebuild the problem, as plain data."""
        found = {name: value for name, value in self._document.tree.items() if name not in _RUN_FIELDS}
        if isinstance(self.fields, RobotScenario):  # absolute path, independent of the working folder
            found["robot"] = str(robot_file(self.fields.robot, self._document.source))
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of `livens.simulate` other than the problem."""
        return self.settings_besides(())

    def settings_besides(self, given: Collection[str]) -> dict[str, Any]:
        """Return the settings without those specified elsewhere, which are then not validated.

        Parameters
        ----------
        excluded : collection of str
            Names of the settings to leave out.

        Returns
        -------
        dict
            Arguments of `livens.simulate` other than the problem.

        Raises
        ------
        InputError
            If `out` lies outside the working folder.
        """
        values = {name: None if name in given else getattr(self.fields, name) for name in _RUN_FIELDS}
        if isinstance(self.fields, ProblemScenario) and self.fields.parameters:
            values["parameters"] = self.fields.parameters
        if values["out"] is not None and not _inside(values["out"]):
            words = "must stay in the folder the run is started in; use --out on the command line for other folders"
            raise self._document.error(("out",), f"{words}, got '{shown(values['out'])}'")
        return {name: value for name, value in values.items() if value is not None}

    def run(self, **options: Any) -> Result:
        """Simulate the scenario.

        Parameters
        ----------
        **options
            Arguments of `livens.simulate`. Values other than None replace those of the file.

        Returns
        -------
        Result
            Trajectory, report and statistics.
        """
        chosen = {name: value for name, value in options.items() if value is not None}
        return simulate(self.problem(), **{**self.settings_besides(chosen), **chosen})

    def changed(self, values: Mapping[str, Any]) -> Scenario:
        """Return a copy with other options of the problem, or other parameters of the system.

        Parameters
        ----------
        values : dict
            New values by name.

        Returns
        -------
        Scenario
            Validated scenario with the new values.

        Raises
        ------
        InputError
            If a name is unknown.
        """
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
    """Return True if a file name lies in the working folder, after resolving links."""
    here = Path.cwd().resolve()
    try:
        return not Path(name).is_absolute() and (here / name).parent.resolve().is_relative_to(here)
    except (OSError, RuntimeError):
        return False
