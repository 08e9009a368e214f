"""Ready problems: models with their data, initial values and usual step.

>>> from livens import problems
>>> problem = problems.load("simple-pendulum")
>>> problem.system.n, problem.system.m
(2, 1)
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from livens.errors import InputError, answer_with_words, suggestion
from livens.expressions.stages import stage
from livens.models.problem import Problem

__all__ = ["Entry", "Problem", "all", "entry", "load", "problem"]


@dataclass(frozen=True)
class Entry:
    """A ready problem before its options are chosen."""

    name: str
    summary: str
    source: str
    build: Callable[..., Problem]
    declared: str = ""

    @functools.cached_property
    def scheme(self) -> str:
        """Its usual scheme; where that is not declared, the problem is built to know it."""
        return self.declared or self.build().scheme

    @functools.cached_property
    def options(self) -> Mapping[str, Any]:
        """What can be changed, with the values it has otherwise."""
        found = {name: p.default for name, p in inspect.signature(self.build).parameters.items()}
        return MappingProxyType(found)


_entries: dict[str, Entry] = {}


def problem(
    name: str, *, summary: str, source: str, scheme: str = ""
) -> Callable[[Callable[..., Problem]], Callable[..., Problem]]:
    """Decorator that makes a ready problem of a function; its keyword arguments are the problem's options.

    Lists of problems are made faster if its usual `scheme` is said here.
    """

    def register(build: Callable[..., Problem]) -> Callable[..., Problem]:
        _entries[name] = Entry(name, summary, source, build, scheme)
        return build

    return register


@functools.cache
def _discover() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def _found_alone(name: str) -> bool:
    """Whether the problem is in a file that has its name, or else mentions it: then no other has to be imported."""
    files = _files()
    for path in files:
        if name not in _entries and path.stem == name.replace("-", "_"):
            importlib.import_module(f"{__name__}.{path.stem}")
    for path in files:
        if name not in _entries and f'"{name}"' in path.read_text(encoding="utf-8"):
            importlib.import_module(f"{__name__}.{path.stem}")
    return name in _entries


def _files() -> list[Path]:
    return sorted(path for folder in __path__ for path in Path(folder).glob("[a-z]*.py"))


def _registry() -> dict[str, Entry]:
    """All problems there are now: a user's own may be defined at any time."""
    _discover()
    return dict(sorted(_entries.items()))


def all() -> list[Entry]:
    """Every ready problem."""
    return list(_registry().values())


def entry(name: str) -> Entry:
    """A ready problem by its name."""
    known = isinstance(name, str) and (name in _entries or _found_alone(name))
    if not known:
        _discover()
    if not isinstance(name, str) or name not in _entries:
        raise InputError(f"unknown problem '{name}'{suggestion(str(name), _registry())}")
    return _entries[name]


def load(name: str, *, h: float | None = None, t_end: float | None = None, **options: Any) -> Problem:
    """A ready problem, with another step, another end or other options if given."""
    changes: dict[str, Any] = {key: value for key, value in dict(h=h, t_end=t_end).items() if value is not None}
    found = entry(name)
    for option, value in options.items():
        if option not in found.options:
            raise InputError(f"problem '{name}' has no option '{option}'{suggestion(option, found.options)}")
        options[option] = _checked(option, value, found.options[option])
    stage(f"building {name}")
    built = found.build(**options)
    return dataclasses.replace(built, name=name, options=options, **changes)


def split(name: str, changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is an option of the problem, and what must then be a parameter of its model, such as ``door.mass``.

    >>> split("simple-pendulum", {"l": 2.0, "door.mass": 5.0})
    ({'l': 2.0}, {'door.mass': 5.0})
    """
    known = entry(name).options
    options = {option: value for option, value in changes.items() if option in known}
    return options, {option: value for option, value in changes.items() if option not in known}


def with_parameters(name: str, changes: Mapping[str, Any]) -> Problem:
    """A ready problem with changed options, and with changed parameters of its model."""
    options, parameters = split(name, changes)
    found = load(name, **options)
    own = found.system.parameters if parameters else {}
    for parameter in parameters:
        if parameter not in own:
            known = dict.fromkeys([*entry(name).options, *own])
            raise InputError(
                f"problem '{name}' has no option '{parameter}', and its model no such parameter"
                f"{suggestion(parameter, known)}"
            )
    return found.with_parameters(parameters)


def _checked(option: str, value: Any, default: Any) -> Any:
    """A value of the default's kind: a word, a whole number, a number, or as many numbers."""
    if isinstance(default, str):
        if not isinstance(value, str):
            raise InputError(f"option '{option}' must be a word such as '{default}', got {value!r}")
        return value
    whole = isinstance(default, int)
    try:
        numbers = np.array(value, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if numbers.shape != np.shape(default) or not np.all(np.isfinite(numbers)):
        size = np.size(default)
        wanted = "a whole number" if whole else "a finite number" if size == 1 else f"{size} finite numbers"
        raise InputError(f"option '{option}' must be {wanted}, got {value!r}")
    if whole:
        if numbers != np.floor(numbers):
            raise InputError(f"option '{option}' must be a whole number, got {value!r}")
        return int(numbers)
    return float(numbers) if numbers.ndim == 0 else tuple(map(float, numbers))


answer_with_words(globals(), __all__)
