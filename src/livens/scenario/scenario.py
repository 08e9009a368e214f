"""Validated scenarios: parsing, the problem they define, and their runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from livens import problems, schemes
from livens.errors import InputError, suggestion
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.scenario.expression_system import ExpressionSystem
from livens.scenario.mechanism import ROBOT_SUFFIXES, Mechanism, robot_file
from livens.scenario.quoting import quoted
from livens.scenario.reader import Document, document, read
from livens.scenario.restore import SCENARIO_NAME
from livens.scenario.schema import MechanismScenario, ProblemScenario, RobotScenario, SystemScenario, constant, validate
from livens.schemes.scaling.named import named_scaling
from livens.validation import check_path

#: Fields of the run, which are not part of the problem.
_RUN_FIELDS = ("every", "out", "project", "redundant", "tier", "threads", "tolerance", "adaptive", "scaling")


def load(path: str | Path) -> Scenario:
    """Load a scenario file, or a robot file (URDF, MJCF).

    Parameters
    ----------
    path : str or Path
        Path of the YAML file, or of a file ending in ``.urdf``, ``.sdf``, ``.xml`` or ``.mjcf``.

    Returns
    -------
    Scenario
        Validated scenario.

    Raises
    ------
    InputError
        If the file is invalid. The message states file, line, field and allowed values.
    """
    file = check_path("the path of a scenario", path)
    if file.suffix.lower() in ROBOT_SUFFIXES:
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


def described(description: object) -> Scenario:
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
    return Scenario(Document(description, SCENARIO_NAME))


class Scenario:
    """Validated scenario. `run` simulates it, `problem` returns the problem it defines.

    Parameters
    ----------
    source : Document
        Parsed document; use `load`, `parse` or `described` to create a scenario.
    """

    def __init__(self, source: Document) -> None:
        self._document = source
        self.fields = validate(source)
        self._check_times()
        if isinstance(self.fields, ProblemScenario):
            self._check_problem(self.fields)
        elif isinstance(self.fields, MechanismScenario):
            _ = self.mechanism
        else:
            _ = self._expression_system
        self._check_scheme()

    @cached_property
    def _expression_system(self) -> ExpressionSystem:
        assert isinstance(self.fields, SystemScenario)
        return ExpressionSystem(self.fields.system, self.fields.initial, self._document)

    @cached_property
    def mechanism(self) -> Multibody:
        """Multibody model of a scenario with bodies."""
        if not isinstance(self.fields, MechanismScenario):
            raise self._document.error((), "this scenario has no bodies")
        return Mechanism(self.fields, self._document).multibody

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

        if self.fields.scaling is not None:
            try:
                named_scaling(self.fields.scaling)
            except InputError as error:
                raise self._document.error(("scaling",), error) from None

    def _check_problem(self, fields: ProblemScenario) -> None:
        try:
            allowed = problems.entry(fields.problem).options
        except InputError as error:
            raise self._document.error(("problem",), error) from None
        for name in fields.options:
            if name not in allowed:
                reason = f"problem '{fields.problem}' has no option '{name}'{suggestion(name[:60], allowed)}"
                raise self._document.error(("options", name), reason)
            if isinstance(fields.options[name], str) and not isinstance(allowed[name], str):
                try:
                    constant(fields.options[name])
                except InputError as error:
                    raise self._document.error(("options", name), error) from None

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
            model = self._expression_system
            return Problem(
                SCENARIO_NAME,
                model.system(),
                model.q0,
                model.v0,
                fields.scheme or "livens-em",
                fields.h,
                fields.t_end,
                t0=fields.t0 or 0.0,
                factory_options={"description": self._description},
            )
        if isinstance(fields, MechanismScenario):
            default_scheme = "lie-ggl" if fields.velocity_level else self.mechanism.default_scheme
            mechanism_problem = self.mechanism.problem(
                SCENARIO_NAME, h=fields.h, t_end=fields.t_end, scheme=fields.scheme or default_scheme
            )
            return dataclasses.replace(
                mechanism_problem, t0=fields.t0 or 0.0, factory_options={"description": self._description}
            )
        try:
            built_in = problems.load(fields.problem, h=fields.h, t_end=fields.t_end, **fields.options)
        except InputError as error:
            offending = [name for name in fields.options if f"option '{name}'" in str(error)]
            raise self._document.error(("options", *offending[:1]), error) from None
        allowed = built_in.model.parameters
        for name in fields.parameters:
            if name not in allowed:
                reason = f"the model of '{fields.problem}' has no parameter '{name}'{suggestion(name[:60], allowed)}"
                raise self._document.error(("parameters", name), reason)
        built_in = built_in.with_parameters(fields.parameters)
        changes: dict[str, Any] = {"scheme": fields.scheme, "t0": fields.t0}
        return dataclasses.replace(built_in, **{name: value for name, value in changes.items() if value is not None})

    @property
    def _description(self) -> dict[str, object]:
        """Fields that are needed to rebuild the problem, as plain data."""
        description = {name: value for name, value in self._document.tree.items() if name not in _RUN_FIELDS}
        if isinstance(self.fields, RobotScenario):  # absolute path, independent of the working folder
            description["robot"] = str(robot_file(self.fields.robot, self._document.source))
        return description

    @property
    def settings(self) -> dict[str, object]:
        """Arguments of `livens.simulate` other than the problem."""
        return self.settings_except(())

    def settings_except(self, excluded: Collection[str]) -> dict[str, Any]:
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
        values = {name: None if name in excluded else getattr(self.fields, name) for name in _RUN_FIELDS}
        if isinstance(self.fields, ProblemScenario) and self.fields.parameters:
            values["parameters"] = self.fields.parameters
        if values["out"] is not None and not _is_in_working_folder(values["out"]):
            message = "must stay in the folder the run is started in; use --out on the command line for other folders"
            raise self._document.error(("out",), f"{message}, got '{quoted(values['out'])}'")
        return {name: value for name, value in values.items() if value is not None}

    def run(self, **options: object) -> Result:
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
        specified = {name: value for name, value in options.items() if value is not None}
        return simulate(self.problem(), **{**self.settings_except(specified), **specified})

    def changed(self, values: Mapping[str, object]) -> Scenario:
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
            options, parameters = problems.split_options(self.fields.problem, values)
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


def _is_in_working_folder(name: str) -> bool:
    """Return True if a file name lies in the working folder, after resolving links."""
    folder = Path.cwd().resolve()
    try:
        return not Path(name).is_absolute() and (folder / name).parent.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):
        return False
