"""Cache keys for closure-free user functions, so that identical elements are traced once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

#: Modules that count as immutable.
_IMMUTABLE_MODULES = frozenset({"math", "numpy", "livens", "livens.math"})


def function_key(functions: Mapping[str, Any]) -> Hashable | None:
    """Return a cache key of functions: equal keys mean equal functions. None if a function is not pure.

    Pure functions depend on their arguments only: no defaults, no closure, and no global names except those of
    immutable modules.

    >>> one, other = ({"potential": lambda q, k: k.c * q[0]} for _ in range(2))
    >>> function_key(one) == function_key(other)
    True
    >>> [function_key({"potential": lambda q, c=c: c * q[0]}) for c in range(2)]
    [None, None]
    """
    if not all(_is_pure(function) for function in functions.values()):
        return None
    return tuple((role, function.__code__) for role, function in functions.items())


def _is_pure(function: Any) -> bool:
    if type(function) is not FunctionType or function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    if function.__dict__:
        return False
    globals_ = function.__globals__
    references = (globals_[name] for name in _referenced_names(function.__code__) if name in globals_)
    return all(isinstance(value, ModuleType) and value.__name__ in _IMMUTABLE_MODULES for value in references)


def _referenced_names(code: CodeType) -> Iterator[str]:
    """Yield all global and attribute names used by a code object and its nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _referenced_names(constant)
