"""What a user gives for a vector or matrix of a model, read as an expression."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError, ModelError


class Reader:
    """Calls model functions with the symbols they name, and takes numbers as they are."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = dict(given)

    def __call__(self, role: str, value: Any, shape: tuple[int | None, ...], allowed: str = "xtk") -> Any:
        """The expression of `value`: numbers, or a function of some of `allowed`. None in `shape` stands for any."""
        return shaped(role, self.value(role, value, allowed), shape)

    def value(self, role: str, value: Any, allowed: str = "xtk") -> Any:
        """What a function says, or the numbers themselves."""
        if callable(value):
            names = argument_names(role, value, "", allowed)
            try:
                value = value(*(self._given[name] for name in names))
            except ModelError as error:
                raise ModelError(f"{role}: {error}") from None
            except Exception as error:  # whatever a model function raises is the model's fault: say which function
                raise ModelError(f"{role}: {type(error).__name__}: {error}") from error
        return value


def argument_names(role: str, function: Callable[..., Any], where: str, allowed: str) -> list[str]:
    listed = ", ".join(allowed)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ModelError(f"{role}{where} must be a Python function of {listed}") from None
    names = []
    for parameter in parameters:
        if parameter.default is not parameter.empty and parameter.name not in allowed:
            continue  # a default argument of the user's own, such as a loop variable kept
        if parameter.name not in allowed or len(parameter.name) != 1:
            raise ModelError(f"{role}{where} asks for '{parameter.name}'; a {role} function may ask for {listed}")
        names.append(parameter.name)
    return names


def shaped(role: str, value: Any, shape: tuple[int | None, ...]) -> Any:
    """`value` as an expression, if it has this shape."""
    try:
        items = m.array(value)
        fits = len(items.shape) == len(shape) and all(w in (None, s) for s, w in zip(items.shape, shape, strict=True))
        if fits and value is not None:
            return m.expression(items if shape else items.item()) if items.size else ca.SX(*items.shape)
        got = f"an array of shape {items.shape}"
    except (TypeError, ValueError):
        got = f"{type(value).__name__} {value!r}"
    sizes = ", ".join("any" if s is None else str(s) for s in shape)
    wanted = f"an array of shape ({sizes}{',' if len(shape) == 1 else ''})" if shape else "one number"
    raise ModelError(f"{role} must be {wanted}, got {got}")


def names_of(what: str, given: str | int | Sequence[str], prefix: str) -> tuple[str, ...]:
    """Names, from "a b c", a list of them, or their number."""
    if isinstance(given, bool) or not isinstance(given, (str, int, list, tuple)):
        raise InputError(f"{what} must be names or a number, got {given!r}")
    if isinstance(given, int):
        names = tuple(f"{prefix}{i}" for i in range(given))
    else:
        names = tuple(given.replace(",", " ").split()) if isinstance(given, str) else tuple(str(name) for name in given)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{what}: '{name}' is named twice")
    return names


def vector_of(what: str, given: Any, names: Sequence[str]) -> np.ndarray:
    """One finite number per name, or a sentence that says why not."""
    try:
        numbers = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be {len(names)} numbers, got {given!r}") from None
    if numbers.shape != (len(names),):
        got = f"{numbers.size} numbers" if numbers.ndim == 1 else f"an array of shape {numbers.shape}"
        raise InputError(f"{what} must be {len(names)} numbers ({', '.join(names)}), got {got}")
    for name, number in zip(names, numbers, strict=True):
        if not np.isfinite(number):
            raise InputError(f"{what} must be finite, but {what}[{name}] is {number}")
    return numbers
