"""Enumeration of all paths through the branches of a traced function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import ModelError

#: Largest number of paths through a function, and of decisions on one path.
MAX_PATHS, MAX_DECISIONS = 128, 64
#: Depth to which two expressions are compared for equality: conditions, and values of two paths.
_CONDITION_DEPTH, _VALUE_DEPTH = 6, 4


class TracingError(ModelError):
    """Function that cannot be traced; the message contains the reason and the line."""


class PathEnumerator:
    """Enumerator of the paths through a function that branches on symbols.

    A path is a sequence of decisions. Conditions that occur for the first time are decided True; later calls follow a
    prefix of decisions whose last one is False.
    """

    def __init__(self) -> None:
        self._decisions: list[bool] = []
        self._path_conditions: list[Any] = []
        self._n_paths = 0
        self._has_text = False  # the function has converted a symbol to text on the current path
        #: Conditions of all paths.
        self.conditions: list[Any] = []

    def _decide(self, condition: Any) -> bool:
        for known, decision in zip(self._path_conditions, self._decisions, strict=False):
            if ca.is_equal(known, condition, _CONDITION_DEPTH):
                return decision
        index = len(self._path_conditions)
        if index >= MAX_DECISIONS:
            raise TracingError(
                f"a path takes more than {MAX_DECISIONS} decisions on symbols: loops until a condition holds "
                "cannot be traced"
            )
        if index == len(self._decisions):
            self._decisions.append(True)
        self._path_conditions.append(condition)
        if not any(ca.is_equal(known, condition, _CONDITION_DEPTH) for known in self.conditions):
            self.conditions.append(condition)
        return self._decisions[index]

    def _record_text(self) -> None:
        self._has_text = True

    def join_all(self, call: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the value of `call` as one array: values of all paths, joined by their conditions."""
        token, text_token = m.branch_decision.set(self._decide), m.conversion_to_text.set(self._record_text)
        self._n_paths = 0
        errors: list[Exception] = []
        try:
            value = self._explore(call, [], errors)
        finally:
            m.branch_decision.reset(token)
            m.conversion_to_text.reset(text_token)
        if value is None:
            raise errors[-1]
        return value

    def _explore(self, call: Callable[[], np.ndarray], prefix: list[bool], errors: list[Exception]) -> Any:
        self._n_paths += 1
        if self._n_paths > MAX_PATHS:
            raise TracingError(f"it has more than {MAX_PATHS} paths through its branches")
        self._decisions, self._path_conditions, self._has_text = list(prefix), [], False
        value: np.ndarray | None = None
        try:
            value = call()
            if self._has_text:  # messages of errors may contain symbols: a path that raises has no value
                raise TracingError("it converts a symbol to text")
        except (TracingError, RecursionError):
            raise
        except Exception as error:  # a path that raises has no value, unless no path has one
            if not self._path_conditions:
                raise
            errors.append(error)
        conditions, decisions = list(self._path_conditions), list(self._decisions)
        for index in range(len(conditions) - 1, len(prefix) - 1, -1):
            other = self._explore(call, [*decisions[:index], False], errors)
            value = _join(conditions[index], value, other)
        return value


def _join(condition: Any, value: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return `value` where the condition holds, else `other`; a path without a value is NaN."""
    if value is None and other is None:
        return None
    a = np.full(other.shape, np.nan, dtype=object) if value is None and other is not None else value
    b = np.full(a.shape, np.nan, dtype=object) if other is None and a is not None else other
    assert a is not None and b is not None
    if a.shape != b.shape:
        raise TracingError(f"it returns arrays of shapes {a.shape} and {b.shape} on different paths")
    joined = np.empty(a.shape, dtype=object)
    for index in np.ndindex(a.shape):
        x, y = m.to_casadi(a[index]), m.to_casadi(b[index])
        joined[index] = m.Scalar(x if ca.is_equal(x, y, _VALUE_DEPTH) else ca.if_else(condition, x, y))
    return joined
