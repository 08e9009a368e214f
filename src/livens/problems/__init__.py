"""Built-in problems: models with parameters, initial values, step size, end time and scheme.

>>> from livens import problems
>>> problem = problems.load("simple-pendulum")
>>> problem.model.n, problem.model.m
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

from livens.errors import InputError, explain_call_errors, suggestion
from livens.models.problem import Problem
from livens.progress import report_progress

__all__ = ["Problem", "ProblemEntry", "all", "entry", "load", "problem"]


@dataclass(frozen=True)
class ProblemEntry:
    """Registered built-in problem before its options are chosen.

    Parameters
    ----------
    name : str
        Name of the problem, as in ``problems.load(name)``.
    summary : str
        Description in one line.
    source : str
        Reference in the literature, or an empty string.
    factory : callable
        Function that returns the `Problem`; its keyword arguments are the options.
    default_scheme : str, default ""
        Name of the default scheme. If empty, the problem is built to find its scheme.
    source_run : str, default ""
        Scheme, step size and end time of the source, where they differ from the default run.
    """

    name: str
    summary: str
    source: str
    factory: Callable[..., Problem]
    default_scheme: str = ""
    source_run: str = ""

    @functools.cached_property
    def scheme(self) -> str:
        """Default scheme of the problem.

        Returns
        -------
        str
            Name of the scheme: `default_scheme`, or the scheme of the built problem if `default_scheme` is empty.
        """
        return self.default_scheme or self.factory().scheme

    @functools.cached_property
    def options(self) -> Mapping[str, Any]:
        """Options of the problem with their default values.

        Returns
        -------
        Mapping of str to object
            Read-only mapping from the name of the option to its default value.
        """
        defaults = {name: p.default for name, p in inspect.signature(self.factory).parameters.items()}
        return MappingProxyType(defaults)


_entries: dict[str, ProblemEntry] = {}


def problem(
    name: str, *, summary: str, source: str, scheme: str = "", source_run: str = ""
) -> Callable[[Callable[..., Problem]], Callable[..., Problem]]:
    """Return a decorator that registers a function as a built-in problem.

    The function returns a `Problem`; its keyword arguments are the options of the problem.

    Parameters
    ----------
    name : str
        Name of the problem, as in ``problems.load(name)``.
    summary : str
        Description in one line, shown by ``livens list``.
    source : str
        Reference in the literature, or an empty string.
    scheme : str, default ""
        Name of the default scheme. If given, lists of problems do not have to build the problem.
    source_run : str, default ""
        Scheme, step size and end time of the source, where they differ from the default run; shown by ``livens show``.

    Returns
    -------
    callable
        Decorator that returns the function unchanged.
    """

    def register(factory: Callable[..., Problem]) -> Callable[..., Problem]:
        _entries[name] = ProblemEntry(name, summary, source, factory, scheme, source_run)
        return factory

    return register


@functools.cache
def _discover() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def _import_module_of(name: str) -> bool:
    """Import the module that defines the problem; return whether the problem is registered.

    The module is the file of the same name, or else the first file that contains the quoted name of the problem.
    """
    files = _module_files()
    for path in files:
        if name not in _entries and path.stem == name.replace("-", "_"):
            importlib.import_module(f"{__name__}.{path.stem}")
    for path in files:
        if name not in _entries and f'"{name}"' in path.read_text(encoding="utf-8"):
            importlib.import_module(f"{__name__}.{path.stem}")
    return name in _entries


def _module_files() -> list[Path]:
    return sorted(path for folder in __path__ for path in Path(folder).glob("[a-z]*.py"))


def _registry() -> dict[str, ProblemEntry]:
    """Return all registered problems, sorted by name; user-defined problems may be registered at any time."""
    _discover()
    return dict(sorted(_entries.items()))


def all() -> list[ProblemEntry]:
    """Return all registered problems, sorted by name.

    Returns
    -------
    list of ProblemEntry
        Built-in problems and problems registered with `problem`.
    """
    return list(_registry().values())


def entry(name: str) -> ProblemEntry:
    """Return the registered problem of a given name.

    Parameters
    ----------
    name : str
        Name of the problem, such as ``"simple-pendulum"``.

    Returns
    -------
    ProblemEntry
        Name, summary, source, options and default scheme.

    Raises
    ------
    InputError
        If no problem has this name.
    """
    known = isinstance(name, str) and (name in _entries or _import_module_of(name))
    if not known:
        _discover()
    if not isinstance(name, str) or name not in _entries:
        raise InputError(f"unknown problem '{name}'{suggestion(str(name), _registry())}")
    return _entries[name]


@explain_call_errors
def load(name: str, *, h: float | None = None, t_end: float | None = None, **options: object) -> Problem:
    """Build a problem by its name, optionally with another step size, end time or other options.

    Parameters
    ----------
    name : str
        Name of the problem, such as ``"simple-pendulum"``.
    h : float, optional
        Step size in the time unit of the problem. Default: the step size of the problem.
    t_end : float, optional
        End time. Default: the end time of the problem.
    **options
        Options of the problem, see `ProblemEntry.options`.

    Returns
    -------
    Problem
        Model with initial values, scheme, step size and end time.

    Raises
    ------
    InputError
        If the problem or an option does not exist, or if the value of an option is invalid.
    """
    changes: dict[str, Any] = {key: value for key, value in dict(h=h, t_end=t_end).items() if value is not None}
    registered = entry(name)
    for option, value in options.items():
        if option not in registered.options:
            raise InputError(f"problem '{name}' has no option '{option}'{suggestion(option, registered.options)}")
        options[option] = _validate_option(option, value, registered.options[option])
    report_progress(f"building {name}")
    loaded = registered.factory(**options)
    return dataclasses.replace(loaded, name=name, factory_options=options, **changes)


def split_options(name: str, changes: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split changes into options of the problem and parameters of its model, such as ``door.mass``.

    >>> split_options("simple-pendulum", {"l": 2.0, "door.mass": 5.0})
    ({'l': 2.0}, {'door.mass': 5.0})
    """
    known = entry(name).options
    options = {option: value for option, value in changes.items() if option in known}
    return options, {option: value for option, value in changes.items() if option not in known}


def with_parameters(name: str, changes: Mapping[str, object]) -> Problem:
    """Build a problem with changed options and changed parameters of its model."""
    options, parameters = split_options(name, changes)
    base = load(name, **options)
    model_parameters = base.model.parameters if parameters else {}
    for parameter in parameters:
        if parameter not in model_parameters:
            known = dict.fromkeys([*entry(name).options, *model_parameters])
            raise InputError(
                f"problem '{name}' has no option '{parameter}', and its model no such parameter"
                f"{suggestion(parameter, known)}"
            )
    return base.with_parameters(parameters)


def _validate_option(option: str, value: Any, default: Any) -> Any:
    """Return the value as the type of the default: string, integer, float or tuple of floats of the same length."""
    if isinstance(default, str):
        if not isinstance(value, str):
            raise InputError(f"option '{option}' must be a string such as '{default}', got {value!r}")
        return value
    is_integer = isinstance(default, int)
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.shape != np.shape(default) or not np.all(np.isfinite(array)):
        size = np.size(default)
        expected = "a whole number" if is_integer else "a finite number" if size == 1 else f"{size} finite numbers"
        raise InputError(f"option '{option}' must be {expected}, got {value!r}")
    if is_integer:
        if array != np.floor(array):
            raise InputError(f"option '{option}' must be a whole number, got {value!r}")
        return int(array)
    return float(array) if array.ndim == 0 else tuple(map(float, array))
