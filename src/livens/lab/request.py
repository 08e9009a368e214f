"""Validated run requests of the page, and their export as Python and as a scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from livens import problems, scenario, schemes
from livens.errors import InputError, suggestion
from livens.models.problem import Problem
from livens.problems.option_descriptions import option_description
from livens.run.plan import Plan
from livens.schemes.core.catalogue import group_names
from livens.validation import check_number, check_positive, readable_files_within

#: Largest number of steps of a run, and largest value of an integer option.
MAX_STEPS, MAX_COUNT = 5_000_000, 100
#: Largest number of stored rows of a run.
MAX_ROWS = 20_000
_FIELDS = ("problem", "file", "options", "scheme", "other", "h", "t_end")
SCENARIOS, RESULTS = (".yaml", ".yml"), (".h5",)


@dataclass(frozen=True)
class RunRequest:
    """Run request: a problem or a file, one or two schemes, and numbers (None: default)."""

    problem: str = ""
    file: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    schemes: tuple[str, ...] = ()
    h: float | None = None
    t_end: float | None = None

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def parse(cls, payload: object, folder: Path) -> RunRequest:
        """Parse the JSON payload of the page; raise an InputError with a message for the page."""
        if not isinstance(payload, Mapping):
            raise InputError("a run request must be an object with a problem, a scheme and numbers")
        for name in payload:
            if name not in _FIELDS:
                raise InputError(f"unknown field '{str(name)[:40]}' of a run{suggestion(str(name)[:40], _FIELDS)}")
        names: dict[str, Any] = {}
        for name in ("problem", "file", "scheme", "other"):
            names[name] = "" if payload.get(name) is None else payload[name]
        for name, value in names.items():
            if not isinstance(value, str) or len(value) > 200:
                raise InputError(f"{name} must be a name, got {str(value)[:60]!r}")
        if bool(names["problem"]) == bool(names["file"]):
            raise InputError("a run needs a problem, or a file of this folder")
        options = {} if payload.get("options") is None else payload["options"]
        if not isinstance(options, Mapping):
            raise InputError("options must map names to numbers")
        if names["file"]:
            resolve_in_folder(folder, names["file"])
        h = None if payload.get("h") is None else check_positive("h", payload["h"])
        t_end = None if payload.get("t_end") is None else check_number("t_end", payload["t_end"])
        chosen = tuple(dict.fromkeys(name for name in (names["scheme"], names["other"]) if name))
        request = cls(names["problem"], names["file"], _check_options(names["problem"], options), chosen, h, t_end)
        if not names["file"]:  # models of scenario files are built in the worker process, which can be killed
            request.plans(folder)
        return request

    def load_problem(self, folder: Path) -> Problem:
        """Return the problem to simulate."""
        if self.problem:
            return problems.load(self.problem, **self.options)
        with readable_files_within(folder):
            return scenario.load(resolve_in_folder(folder, self.file)).problem()

    def plans(self, folder: Path) -> list[Plan]:
        """Return one plan per scheme."""
        problem = self.load_problem(folder)
        plans = []
        for scheme in self.schemes or (problem.scheme,):
            plan = Plan.from_arguments(problem, scheme=scheme, h=self.h, t_end=self.t_end)
            steps = (plan.t_end - plan.t0) / plan.h
            if steps > MAX_STEPS:
                raise InputError(
                    f"{steps:.3g} steps exceed the limit of {MAX_STEPS} in the lab: "
                    "choose a larger h or a smaller t_end, or use livens run"
                )
            every = max(1, math.ceil(steps / MAX_ROWS))
            plans.append(Plan.from_arguments(problem, scheme=scheme, h=self.h, t_end=self.t_end, every=every))
        return plans

    # -- export -------------------------------------------------------------------------------------------------------
    def as_python(self) -> str:
        """Return a Python script that makes the same runs."""
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        if self.file.endswith(RESULTS):
            return f"import livens as lv\n\nrun = lv.load({self.file!r})\nprint(run.report())\nrun.view()\n"
        problem = (
            f"lv.problems.load({self.problem!r}{options})"
            if self.problem
            else f"lv.scenario.load({self.file!r}).problem()"
        )
        lines = ["import livens as lv", "", f"problem = {problem}"]
        numbers = [f"{name}={value!r}" for name, value in (("h", self.h), ("t_end", self.t_end)) if value is not None]
        runs = []
        for i, scheme in enumerate(self.schemes or ("",)):
            runs.append("run" if i == 0 else "other")
            arguments = ", ".join(["problem", *([f"scheme={scheme!r}"] if scheme else []), *numbers])
            lines += [f"{runs[-1]} = lv.simulate({arguments})", f"print({runs[-1]}.report())"]
        lines.append(f"run.view({', '.join(runs[1:])})")
        return "\n".join(lines) + "\n"

    def as_scenario(self, folder: Path) -> str:
        """Return a scenario file for ``livens run``; of two schemes the first is used."""
        if self.file:
            return (
                "" if self.file.endswith(RESULTS) else resolve_in_folder(folder, self.file).read_text(encoding="utf-8")
            )
        content: dict[str, object] = {"problem": self.problem}
        if self.options:
            content["options"] = {n: list(v) if isinstance(v, tuple) else v for n, v in self.options.items()}
        content |= {"scheme": self.schemes[0]} if self.schemes else {}
        content |= {name: value for name, value in (("h", self.h), ("t_end", self.t_end)) if value is not None}
        return "# run it with: livens run FILE.yaml\n" + yaml.safe_dump(content, sort_keys=False)


def _check_options(problem: str, options: Mapping[object, object]) -> dict[str, Any]:
    """Return the checked options; integer options are limited, because the model is built before the run."""
    checked = {}
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (int, float, list, tuple)) or isinstance(value, bool):
            raise InputError(
                f"option '{str(name)[:40]}' must be a number or a list of numbers, got {str(value)[:40]!r}"
            )
        if isinstance(value, int) and abs(value) > 10**15:
            raise InputError(f"option '{name[:40]}' is too large: it has {len(str(value))} digits")
        defaults = problems.entry(problem).options if problem else {}
        if isinstance(defaults.get(name), int) and isinstance(value, (int, float)) and value > MAX_COUNT:
            raise InputError(f"{name} is limited to {MAX_COUNT} in the lab, got {value:g}; use livens run")
        checked[name] = tuple(value) if isinstance(value, list) else value
    return checked


def resolve_in_folder(folder: Path, name: str) -> Path:
    """Return the path of a scenario or result file in the folder of the lab, after resolving links."""
    root = folder.resolve()
    try:
        path = (root / name).resolve()
        allowed = path.is_relative_to(root) and path.suffix in (*SCENARIOS, *RESULTS) and path.is_file()
    except (OSError, RuntimeError, ValueError):
        allowed = False
    if not allowed:
        raise InputError(f"scenario or result '{name[:100]}' not found in the folder of the lab")
    return path


def list_files(folder: Path, max_files: int = 200) -> list[str]:
    """List the scenario and result files in a folder and its subfolders."""
    names: list[str] = []
    for pattern in ("*", "*/*"):
        for path in sorted(folder.glob(pattern)):
            if path.suffix in (*SCENARIOS, *RESULTS) and not path.name.startswith(".") and len(names) < max_files:
                names.append(path.relative_to(folder).as_posix())
    return names


def describe_problem(name: str) -> dict[str, object]:
    """Describe a problem for the page: options with their ranges, and applicable schemes."""
    entry = problems.entry(name)
    problem = problems.load(name)
    fitting = [
        scheme.name
        for scheme in schemes.all()
        if not scheme.unmet_requirements(problem.model) and not (scheme.fictive and problem.scaling is None)
    ]
    return {
        "name": name,
        "summary": entry.summary,
        "source": entry.source,
        "scheme": problem.scheme,
        "schemes": group_names(fitting),
        "h": problem.h,
        "t0": problem.t0,
        "t_end": problem.t_end,
        "options": [
            slider(option, value) | {"description": option_description(name, option)}
            for option, value in entry.options.items()
            if not isinstance(value, str)
        ],
    }


def slider(name: str, default: Any) -> dict[str, object]:
    """Return the slider ranges of an option; a list of numbers has one slider per entry.

    >>> slider("m", 2.0)["ranges"], slider("N", 4)["ranges"]
    ([[0.2, 20.0]], [[1, 40]])
    """
    values = list(default) if isinstance(default, tuple) else [default]
    is_integer = isinstance(default, int)
    ranges = []
    for value in values:
        if is_integer:
            ranges.append([min(1, value), min(MAX_COUNT, max(10 * value, 1))])
        elif value > 0:
            ranges.append([value / 10, value * 10])
        else:
            ranges.append([0.0, 1.0] if value == 0 else [2 * value, -2 * value])
    return {
        "name": name,
        "default": values,
        "ranges": ranges,
        "whole": is_integer,
        "list": isinstance(default, tuple),
        # logarithmic scale: a tenth to ten times the default
        "log": [not is_integer and value > 0 for value in values],
    }


__all__ = ["RunRequest", "describe_problem", "list_files", "resolve_in_folder", "slider"]
