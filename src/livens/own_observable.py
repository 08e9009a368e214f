"""Observables written by the user: a function of the state, read like a model function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from livens import math as m
from livens.dynamics import dynamics
from livens.errors import InputError, ModelError
from livens.parameters import Namespace
from livens.system import System

_ARGUMENTS = ("q", "v", "p", "t", "k")


def read(system: System, function: Callable[..., Any]) -> tuple[Any, tuple[int, ...]]:
    """What a function says, as an expression of the system's Dynamics, and the shape of what it returns."""
    names = _argument_names(function)
    d = dynamics(system)
    given = {
        "q": m.symbols(d.q),
        "v": m.symbols(d.v),
        "p": m.symbols(d.p),
        "t": m.Scalar(d.t),
        "k": Namespace(system.shared.symbols(d.k[: system.shared.size])),
    }
    try:
        value = function(**{name: given[name] for name in names})
    except ModelError as error:
        raise InputError(f"the observable: {error}") from None
    except Exception as error:  # whatever the user's function raises is its own fault: say so
        raise InputError(f"the observable: {type(error).__name__}: {error}") from error
    try:
        if value is None:
            raise TypeError
        items = m.array(value)
        return m.expression(items.ravel()), tuple(items.shape)
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        raise InputError(f"the observable must return a number or an array of numbers, got {value!r}") from None


def _argument_names(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InputError(f"an observable must be a Python function of {', '.join(_ARGUMENTS)}") from None
    names = []
    for parameter in parameters:
        if parameter.name in _ARGUMENTS:
            names.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise InputError(
                f"the observable asks for '{parameter.name}'; it may ask for {', '.join(_ARGUMENTS)} by these names"
            )
    return names
