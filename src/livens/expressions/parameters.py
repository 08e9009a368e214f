"""Parameters: named numbers and arrays that stay open until the run."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError, ModelError, suggestion


class Parameters:
    """Named numbers and arrays, laid out one after the other in a vector."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self.values: dict[str, np.ndarray] = {}
        for name, value in (values or {}).items():
            if not str(name).isidentifier():
                raise InputError(f"parameter name {name!r} must be a Python identifier")
            self.values[name] = _numbers(name, value)

    @property
    def shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple((name, value.shape) for name, value in self.values.items())

    @property
    def size(self) -> int:
        return sum(value.size for value in self.values.values())

    def vector(self) -> np.ndarray:
        parts = [value.ravel() for value in self.values.values()]
        return np.concatenate(parts) if parts else np.zeros(0)

    def changed(self, changes: Mapping[str, Any]) -> Parameters:
        """The same parameters with other values: names and shapes must exist."""
        values: dict[str, Any] = dict(self.values)
        for name, value in changes.items():
            if name not in values:
                raise InputError(f"unknown parameter '{name}'{suggestion(name, values)}")
            new = _numbers(name, value)
            if new.shape != values[name].shape:
                raise InputError(f"parameter '{name}' must have shape {values[name].shape}, got {new.shape}")
            values[name] = new
        return Parameters(values)

    def symbols(self, vector: Any) -> dict[str, Any]:
        """Name -> Scalar or array of Scalars, taken from a CasADi vector laid out as `vector()`."""
        items, first, named = m.symbols(vector), 0, {}
        for name, shape in self.shapes:
            size = int(np.prod(shape))
            block = items[first : first + size]
            named[name] = block[0] if shape == () else block.reshape(shape)
            first += size
        return named

    def plain(self) -> dict[str, Any]:
        """The values as plain Python numbers and lists, for files and reports."""
        return {name: value.tolist() for name, value in self.values.items()}


class Namespace:
    """What a model function sees as `k`."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.__dict__.update(named)

    def __getattr__(self, name: str) -> Any:
        known = [n for n in self.__dict__ if not n.startswith("_")]
        if not known:
            raise ModelError(f"unknown parameter 'k.{name}': the system has no parameters")
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean 'k.{close[0]}'?" if close else f"known: {', '.join(known)}"
        raise ModelError(f"unknown parameter 'k.{name}'; {hint}")


def _numbers(name: str, value: Any) -> np.ndarray:
    try:
        numbers = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"parameter '{name}' must be a number or an array of numbers, got {value!r}") from None
    if not np.all(np.isfinite(numbers)):
        raise InputError(f"parameter '{name}' must be finite, got {value!r}")
    return numbers
