"""Tracing of user functions: a call with symbolic arguments returns a CasADi expression."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import ModelError
from livens.types import Expr, ScalarLike, Vector
from livens.types import ModelFunction as ModelFunction

if TYPE_CHECKING:
    pass


#: User-defined function of a model, such as an energy or a force.


class FunctionTracer:
    """Tracer of user functions: calls them with symbols selected by argument names, and accepts numbers.

    `available` maps argument names to values: CasADi symbols become arrays (``t`` a scalar), other objects are passed
    unchanged. `context` follows the role in messages, as " of element 'door'"; `verb` is "be" or "return".

    >>> from types import SimpleNamespace
    >>> x = ca.SX.sym("x", 2)
    >>> read = FunctionTracer({"x": x, "k": SimpleNamespace(c=3.0)})
    >>> read("energy", lambda x, k: k.c * x[0], ())
    SX((3*x_0))
    >>> read("energy", lambda x: x, ())
    Traceback (most recent call last):
    livens.errors.ModelError: energy must be one number, got an array of shape (2,)
    """

    def __init__(
        self,
        available: Mapping[str, object],
        context: str = "",
        verb: str = "be",
    ) -> None:
        self._available = {name: _user_view(name, value) for name, value in available.items()}
        self._context, self._verb = context, verb

    def __call__(self, role: str, value: Any, shape: tuple[int | None, ...], allowed: str | None = None) -> Expr:
        """Return numbers, or a function of some of `allowed`, as an expression. None in `shape` is any size."""
        return self.check_shape(role, self.trace(role, value, allowed), shape)

    def trace(self, role: str, value: object, allowed: Collection[str] | None = None, **extra_symbols: object) -> Any:
        """Return the value of a traced function, or numbers unchanged. Keyword arguments are additional symbols."""
        if not callable(value):
            return value
        available = (
            self._available | {name: _user_view(name, symbol) for name, symbol in extra_symbols.items()}
            if extra_symbols
            else self._available
        )
        names = argument_names(role, value, self._context, list(available) if allowed is None else allowed)
        accepts_keywords = _accepts_keywords(value)
        positional = [] if accepts_keywords else [available[name] for name in names]
        named = {name: available[name] for name in names} if accepts_keywords else {}
        try:
            return call_with_symbols(value, *positional, **named)
        except ModelError as error:
            raise ModelError(f"{role}{self._context}: {error}") from None
        except Exception as error:  # a user function may raise anything: name the function
            raise ModelError(f"{role}{self._context}: {type(error).__name__}: {error}") from error

    def check_shape(self, role: str, value: object, shape: tuple[int | None, ...]) -> Expr:
        """Return a value as an expression, or raise `ModelError` if its shape differs."""
        try:
            items = m.array(value)
            fits = items.ndim == len(shape) and all(w in (None, s) for s, w in zip(items.shape, shape, strict=True))
            if fits and value is not None:
                if not items.size:
                    return ca.SX(*items.shape) if items.ndim == 2 else ca.SX(0, 1)
                return m.to_casadi(items if shape else items.item())
            got = f"an array of shape {items.shape}"
        except (TypeError, ValueError):
            got = f"{type(value).__name__} {value!r}"
        raise ModelError(f"{role}{self._context} must {self._verb} {_shape_text(shape)}, got {got}")

    def as_column(self, role: str, value: Sequence[ScalarLike] | Vector) -> Expr:
        """Return a number, or nested lists of numbers, as one column."""
        flat = _flatten(value)
        if flat is None:
            raise ModelError(
                f"{role}{self._context} must {self._verb} a list of numbers (or of vectors of them), got {value!r}"
            )
        column = ca.SX.zeros(len(flat), 1)
        for i, item in enumerate(flat):
            column[i] = item.sx if isinstance(item, m.Scalar) else float(item)
        return column


def argument_names(role: str, function: ModelFunction, context: str, allowed: Collection[str]) -> list[str]:
    """Return the argument names of a user function, and raise `ModelError` for names not in `allowed`.

    >>> argument_names("potential", lambda q, k, i=3: q[i], "", "qtk")
    ['q', 'k']
    """
    names = []
    for name, optional in _arguments(role, function, context, allowed):
        if name in allowed and (len(name) == 1 or not isinstance(allowed, str)):
            names.append(name)
        elif not optional:  # arguments with defaults are bound by the user, such as a loop variable
            subject = "it may" if " " in role else f"a {role} function may"
            raise ModelError(
                f"{role}{context} has an argument '{name}'; {subject} have the arguments {', '.join(allowed)}"
            )
    return names


def call_with_symbols(function: ModelFunction, *positional: object, **named: object) -> Any:
    """Return the value of a user function for symbols; functions that need numbers are traced by `trace_numpy`."""
    try:
        return function(*positional, **named)
    except ModelError:
        raise
    except (TypeError, ValueError):  # possibly a function for numbers, or a branch on a symbol
        from livens.expressions.numpy_tracing import trace_numpy

        value = trace_numpy(function, *positional, **named).value
        return value.item() if value.ndim == 0 else value


def _arguments(role: str, function: ModelFunction, context: str, allowed: Collection[str]) -> list[tuple[str, bool]]:
    """Return (name, has_default) of each argument."""
    if _has_simple_signature(function):  # ten times faster than `inspect.signature`
        code, defaults = function.__code__, len(function.__defaults__ or ())
        return [(name, i >= code.co_argcount - defaults) for i, name in enumerate(code.co_varnames[: code.co_argcount])]
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ModelError(f"{role}{context} must be a Python function of {', '.join(allowed)}") from None
    return [(p.name, p.default is not p.empty) for p in parameters]


def _has_simple_signature(function: ModelFunction) -> bool:
    """Return True for functions defined with ``def`` or ``lambda`` without ``*`` or ``/`` among their arguments."""
    if type(function) is not FunctionType or hasattr(function, "__wrapped__"):
        return False
    code = function.__code__
    has_variadic = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return not (has_variadic or code.co_posonlyargcount or code.co_kwonlyargcount)


def _accepts_keywords(function: ModelFunction) -> bool:
    """Return True if all arguments can be passed as keywords."""
    positional_only = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    return _has_simple_signature(function) or all(
        p.kind not in positional_only for p in inspect.signature(function).parameters.values()
    )


def _user_view(name: str, value: object) -> object:
    """Return a symbol as the argument of a user function: an array, or a Scalar for time."""
    if not isinstance(value, ca.SX):
        return value
    return m.Scalar(value) if name == "t" else m.from_casadi(value)


def _shape_text(shape: tuple[int | None, ...]) -> str:
    if not shape:
        return "one number"
    sizes = ", ".join("any" if s is None else str(s) for s in shape)
    return f"an array of shape ({sizes}{',' if len(shape) == 1 else ''})"


def _flatten(value: object) -> list[Any] | None:
    if isinstance(value, (m.Scalar, int, float, np.integer, np.floating)):
        return [value]
    if not isinstance(value, (list, tuple, np.ndarray)):
        return None
    parts = [_flatten(item) for item in value]
    return None if any(part is None for part in parts) else [item for part in parts if part for item in part]
