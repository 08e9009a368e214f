"""Functions that say the same whenever they are called: a model that is built again need not read them again."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

#: Modules whose content does not change.
_MODULES = frozenset({"math", "numpy", "livens", "livens.math"})


def pure_key(functions: Mapping[str, Any]) -> Hashable | None:
    """What functions do, as a key: equal keys mean equal functions. None if that cannot be told.

    It can be told of functions that depend on their arguments alone: without defaults, without variables of the place
    where they were made, and without names of their module other than those of modules that do not change.

    >>> one, other = ({"potential": lambda q, k: k.c * q[0]} for _ in range(2))
    >>> pure_key(one) == pure_key(other)
    True
    >>> [pure_key({"potential": lambda q, c=c: c * q[0]}) for c in range(2)]
    [None, None]
    """
    if not all(_pure(function) for function in functions.values()):
        return None
    return tuple((role, function.__code__) for role, function in functions.items())


def _pure(function: Any) -> bool:
    if type(function) is not FunctionType or function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    if function.__dict__:
        return False
    around = function.__globals__
    found = (around[name] for name in _names(function.__code__) if name in around)
    return all(isinstance(value, ModuleType) and value.__name__ in _MODULES for value in found)


def _names(code: CodeType) -> Iterator[str]:
    """Every name that is looked up beyond a function's own variables, attributes among them."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
