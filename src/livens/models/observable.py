"""Observables written by the user: a function of the state, read like a model function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from livens import math as m
from livens.errors import InputError, ModelError
from livens.expressions.parameters import Namespace
from livens.models.model import Model


def read(model: Model, function: Callable[..., Any]) -> tuple[Any, tuple[int, ...]]:
    """What a function says, as an expression of the model's view, and the shape of what it returns."""
    view = model.view
    given = {
        **{name: m.symbols(symbol) for name, symbol in view.symbols.items()},
        "t": m.Scalar(view.t),
        "k": Namespace(model.shared.symbols(view.k[: model.shared.size])),
    }
    names = argument_names(function, list(given))
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


def argument_names(function: Callable[..., Any], allowed: list[str]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InputError(f"an observable must be a Python function of {', '.join(allowed)}") from None
    names = []
    for parameter in parameters:
        if parameter.name in allowed:
            names.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise InputError(
                f"the observable asks for '{parameter.name}'; it may ask for {', '.join(allowed)} by these names"
            )
    return names
