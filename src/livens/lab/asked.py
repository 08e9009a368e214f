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
from livens.expressions.numbers import number, positive
from livens.models.problem import Problem
from livens.run.plan import Plan
from livens.schemes.catalogue import grouped

#: Largest number of steps of a run, and largest value of an integer option.
MOST_STEPS, MOST_COUNT = 5_000_000, 100
#: Largest number of stored rows of a run.
ROWS = 20_000
_FIELDS = ("problem", "file", "options", "scheme", "other", "h", "t_end")
SCENARIOS, RESULTS = (".yaml", ".yml"), (".h5",)


@dataclass(frozen=True)
class Asked:
    """Run request: a problem or a file, one or two schemes, and numbers (None: default)."""

    problem: str = ""
    file: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    schemes: tuple[str, ...] = ()
    h: float | None = None
    t_end: float | None = None

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, given: Any, folder: Path) -> Asked:
        """Parse the JSON payload of the page; raise an InputError with a message for the page."""
        if not isinstance(given, Mapping):
            raise InputError("a run request must be an object with a problem, a scheme and numbers")
        for name in given:
            if name not in _FIELDS:
                raise InputError(f"unknown field '{str(name)[:40]}' of a run{suggestion(str(name)[:40], _FIELDS)}")
        words: dict[str, Any] = {}
        for name in ("problem", "file", "scheme", "other"):
            words[name] = "" if given.get(name) is None else given[name]
        for name, word in words.items():
            if not isinstance(word, str) or len(word) > 200:
                raise InputError(f"{name} must be a name, got {str(word)[:60]!r}")
        if bool(words["problem"]) == bool(words["file"]):
            raise InputError("a run needs a problem, or a file of this folder")
        options = {} if given.get("options") is None else given["options"]
        if not isinstance(options, Mapping):
            raise InputError("options must map names to numbers")
        if words["file"]:
            inside(folder, words["file"])
        h = None if given.get("h") is None else positive("h", given["h"])
        t_end = None if given.get("t_end") is None else number("t_end", given["t_end"])
        chosen = tuple(dict.fromkeys(name for name in (words["scheme"], words["other"]) if name))
        asked = cls(words["problem"], words["file"], _counted(words["problem"], options), chosen, h, t_end)
        if not words["file"].endswith(RESULTS):
            asked.plans(folder)
        return asked

    def loaded(self, folder: Path) -> Problem:
        """Return the problem to simulate."""
        if self.problem:
            return problems.load(self.problem, **self.options)
        return scenario.load(inside(folder, self.file)).problem()

    def plans(self, folder: Path) -> list[Plan]:
        """Return one plan per scheme."""
        problem = self.loaded(folder)
        found = []
        for scheme in self.schemes or (problem.scheme,):
            usual = Plan.of(problem, scheme=scheme, h=self.h, t_end=self.t_end)
            steps = (usual.t_end - usual.t0) / usual.h
            if steps > MOST_STEPS:
                raise InputError(
                    f"{steps:.3g} steps exceed the limit of {MOST_STEPS} in the lab: "
                    "choose a larger h or a smaller t_end, or use livens run"
                )
            every = max(1, math.ceil(steps / ROWS))
            found.append(Plan.of(problem, scheme=scheme, h=self.h, t_end=self.t_end, every=every))
        return found

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
            given = ", ".join(["problem", *([f"scheme={scheme!r}"] if scheme else []), *numbers])
            lines += [f"{runs[-1]} = lv.simulate({given})", f"print({runs[-1]}.report())"]
        lines.append(f"run.view({', '.join(runs[1:])})")
        return "\n".join(lines) + "\n"

    def as_scenario(self, folder: Path) -> str:
        """Return a scenario file for ``livens run``; of two schemes the first is used."""
        if self.file:
            return "" if self.file.endswith(RESULTS) else inside(folder, self.file).read_text(encoding="utf-8")
        content: dict[str, Any] = {"problem": self.problem}
        if self.options:
            content["options"] = {n: list(v) if isinstance(v, tuple) else v for n, v in self.options.items()}
        content |= {"scheme": self.schemes[0]} if self.schemes else {}
        content |= {name: value for name, value in (("h", self.h), ("t_end", self.t_end)) if value is not None}
        return "# run it with: livens run FILE.yaml\n" + yaml.safe_dump(content, sort_keys=False)


def _counted(problem: str, options: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the checked options; integer options are limited, because the model is built before the run."""
    found = {}
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (int, float, list, tuple)) or isinstance(value, bool):
            raise InputError(
                f"option '{str(name)[:40]}' must be a number or a list of numbers, got {str(value)[:40]!r}"
            )
        if isinstance(value, int) and abs(value) > 10**15:
            raise InputError(f"option '{name[:40]}' is too large: it has {len(str(value))} digits")
        known = problems.entry(problem).options if problem else {}
        if isinstance(known.get(name), int) and isinstance(value, (int, float)) and value > MOST_COUNT:
            raise InputError(f"{name} is limited to {MOST_COUNT} in the lab, got {value:g}; use livens run")
        found[name] = tuple(value) if isinstance(value, list) else value
    return found


def inside(folder: Path, name: str) -> Path:
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


def files(folder: Path, most: int = 200) -> list[str]:
    """List the scenario and result files in a folder and its subfolders."""
    found: list[str] = []
    for pattern in ("*", "*/*"):
        for path in sorted(folder.glob(pattern)):
            if path.suffix in (*SCENARIOS, *RESULTS) and not path.name.startswith(".") and len(found) < most:
                found.append(path.relative_to(folder).as_posix())
    return found


def described(name: str) -> dict[str, Any]:
    """Describe a problem for the page: options with their ranges, and applicable schemes."""
    entry = problems.entry(name)
    problem = problems.load(name)
    fitting = [
        scheme.name
        for scheme in schemes.all()
        if not scheme.missing(problem.system) and not (scheme.fictive and problem.scaling is None)
    ]
    return {
        "name": name,
        "summary": entry.summary,
        "source": entry.source,
        "scheme": problem.scheme,
        "schemes": grouped(fitting),
        "h": problem.h,
        "t0": problem.t0,
        "t_end": problem.t_end,
        "options": [slider(option, value) for option, value in entry.options.items() if not isinstance(value, str)],
    }


def slider(name: str, default: Any) -> dict[str, Any]:
    """Return the slider ranges of an option; a list of numbers has one slider per entry.

    >>> slider("m", 2.0)["ranges"], slider("N", 4)["ranges"]
    ([[0.2, 20.0]], [[1, 40]])
    """
    values = list(default) if isinstance(default, tuple) else [default]
    whole = isinstance(default, int)
    ranges = []
    for value in values:
        if whole:
            ranges.append([min(1, value), min(MOST_COUNT, max(10 * value, 1))])
        elif value > 0:
            ranges.append([value / 10, value * 10])
        else:
            ranges.append([0.0, 1.0] if value == 0 else [2 * value, -2 * value])
    return {
        "name": name,
        "default": values,
        "ranges": ranges,
        "whole": whole,
        "list": isinstance(default, tuple),
        # logarithmic scale: a tenth to ten times the default
        "log": [not whole and value > 0 for value in values],
    }


__all__ = ["Asked", "described", "files", "inside", "slider"]
