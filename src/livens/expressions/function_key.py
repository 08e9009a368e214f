"""Cache keys of user functions: equal keys mean equal functions, so that a function is traced once.

`function_key` accepts pure functions only. `value_key` also contains the values on which a function depends: closures,
defaults, global names, attributes and helper functions.
"""

from __future__ import annotations

import dis
import enum
import functools
import sys
from collections.abc import Hashable, Iterator, Mapping
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

#: Modules that count as immutable.
_IMMUTABLE_MODULES = frozenset({"math", "numpy", "livens", "livens.math"})
#: Packages whose functions and classes count as immutable.
LIBRARIES = frozenset(
    "builtins math cmath numpy scipy casadi livens numba functools itertools operator collections types".split()
)
#: Immutable types whose `repr` is their value.
_PLAIN_TYPES = frozenset((int, float, complex, str, bytes, bool, type(None), range, slice, type(Ellipsis)))
#: Flag of classes that are created at run time; other bases than `object` have content outside of `__dict__`.
_HEAP_TYPE = 1 << 9
#: Attributes of classes without influence on values.
_CLASS_METADATA = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __annotations__ __firstlineno__ __static_attributes__"
    " __annotate__ __annotate_func__ __annotations_cache__ __dataclass_fields__ __dataclass_params__ __match_args__"
    " __abstractmethods__ _abc_impl __parameters__ __orig_bases__".split()
)
#: Class attributes with which the value of an attribute is not known in advance.
_DYNAMIC_ATTRIBUTES = frozenset(("__getattr__", "__getattribute__", "__slots__"))
#: Largest array in a key, in bytes.
_MAX_ARRAY_BYTES = 1_000_000


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


def _is_pure(function: object) -> bool:
    if type(function) is not FunctionType or function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    if function.__dict__:
        return False
    globals_ = function.__globals__
    references = (globals_[name] for name in referenced_names(function.__code__) if name in globals_)
    return all(isinstance(value, ModuleType) and value.__name__ in _IMMUTABLE_MODULES for value in references)


def referenced_names(code: CodeType) -> Iterator[str]:
    """Yield all global and attribute names used by a code object and its nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from referenced_names(constant)


# -- keys with values --------------------------------------------------------------------------------------------------
def package_of(value: Any) -> str:
    """Return the name of the top-level package in which a function, class or module is defined."""
    return str(getattr(value, "__module__", "") or "").partition(".")[0]


def is_library_function(function: FunctionType) -> bool:
    """Return True for functions of installed libraries.

    The module name alone is not sufficient: functions made by ``exec`` have the module `builtins`, and functions made
    inside another function have values of their own.
    """
    name = str(function.__module__ or "")
    module = sys.modules.get(name)
    return (
        package_of(function) in LIBRARIES
        and ".tests." not in name
        and "<locals>" not in function.__qualname__
        and module is not None
        and function.__globals__ is vars(module)
    )


class _NoKeyError(Exception):
    """Value whose state is not accessible, such as an object of an extension module."""


def value_key(*values: object) -> Hashable | None:
    """Return a cache key of functions and the values on which they depend; None if a value is not accessible.

    >>> def scaled(factor):
    ...     return lambda x: factor * x
    >>> value_key(scaled(1.0)) == value_key(scaled(1.0)), value_key(scaled(1.0)) == value_key(scaled(2.0))
    (True, False)
    """
    visited: dict[int, int] = {}
    try:
        return tuple(_key(value, visited) for value in values)
    except (_NoKeyError, RecursionError):
        return None


def _key(value: Any, visited: dict[int, int]) -> Hashable:
    if type(value) in _PLAIN_TYPES or (isinstance(value, np.generic) and type(value).__module__ == "numpy"):
        return type(value), repr(value)
    if type(value) is np.ndarray:
        if value.dtype == object or value.nbytes > _MAX_ARRAY_BYTES:
            raise _NoKeyError
        return value.dtype.str, value.shape, value.tobytes()
    if id(value) in visited:
        return "visited", visited[id(value)]
    visited[id(value)] = len(visited)
    if type(value) in (tuple, list):
        return type(value), tuple(_key(item, visited) for item in value)
    if type(value) is dict:
        return "dict", tuple((_key(name, visited), _key(item, visited)) for name, item in value.items())
    if isinstance(value, enum.Enum):
        return "enum", _class_key(type(value), visited), value.name
    if isinstance(value, ModuleType):
        if value.__name__.partition(".")[0] in LIBRARIES:
            return "module", value.__name__
        raise _NoKeyError
    if isinstance(value, MethodType):
        return "method", _key(value.__func__, visited), _key(value.__self__, visited)
    if isinstance(value, functools.partial):
        return "partial", *(_key(part, visited) for part in (value.func, value.args, value.keywords))
    if hasattr(value, "py_func"):  # compiled by Numba
        return "numba", _key(value.py_func, visited)
    if isinstance(value, FunctionType):
        return _function_value_key(value, visited)
    if isinstance(value, type):
        return _class_key(value, visited)
    name = str(getattr(value, "__name__", ""))
    if callable(value) and getattr(np, name, None) is value:
        return "numpy", name
    is_library = package_of(value) in LIBRARIES
    if isinstance(value, (BuiltinFunctionType, np.ufunc)) or (is_library and callable(value) and not _has_state(value)):
        if getattr(value, "__self__", None) is not None and not isinstance(value.__self__, ModuleType):
            raise _NoKeyError  # a bound method of an object of an extension module, such as a list
        return "builtin", package_of(value), getattr(value, "__qualname__", getattr(value, "__name__", repr(value)))
    if _has_state(value) and not _has_hidden_content(type(value)):
        return "object", _class_key(type(value), visited), _key(dict(vars(value)), visited)
    raise _NoKeyError


def _has_state(value: Any) -> bool:
    return hasattr(value, "__dict__")


def _has_hidden_content(cls: type) -> bool:
    """Return True for subclasses of containers and numbers, whose content is not in `__dict__`."""
    bases = (base for base in cls.__mro__ if base is not object and not base.__flags__ & _HEAP_TYPE)
    return any(base is not functools._lru_cache_wrapper for base in bases)


@functools.lru_cache(maxsize=1024)
def _sorted_names(code: CodeType) -> tuple[str, ...]:
    """Return the global and attribute names of a code object in alphabetical order."""
    return tuple(sorted(set(referenced_names(code))))


@functools.lru_cache(maxsize=1024)
def _imports_user_modules(code: CodeType) -> bool:
    """Return True if a code object imports modules other than those of libraries."""
    imported = (str(item.argval) for item in dis.get_instructions(code) if item.opname == "IMPORT_NAME")
    nested = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return any(name.partition(".")[0] not in LIBRARIES for name in imported) or any(map(_imports_user_modules, nested))


def _function_value_key(function: FunctionType, visited: dict[int, int]) -> Hashable:
    if is_library_function(function):
        return "library function", function.__module__, function.__qualname__
    code, globals_ = function.__code__, function.__globals__
    if _imports_user_modules(code):
        raise _NoKeyError
    names = [name for name in _sorted_names(code) if name in globals_]
    return (
        "function",
        code,
        _key(function.__dict__, visited) if function.__dict__ else None,
        _key(function.__defaults__, visited),
        _key(function.__kwdefaults__, visited),
        tuple(_cell_key(cell, visited) for cell in function.__closure__ or ()),
        tuple((name, _key(globals_[name], visited)) for name in names),
        tuple(_module_key(globals_[name], code, visited) for name in names if isinstance(globals_[name], ModuleType)),
    )


def _module_key(module: ModuleType, code: CodeType, visited: dict[int, int]) -> Hashable:
    """Return a key of the data and user functions among the attributes of a library that a code object names."""
    contents = vars(module)
    names = (name for name in _sorted_names(code) if name in contents)
    return tuple((name, _key(contents[name], visited)) for name in names if _is_data(contents[name]))


def _is_data(value: object) -> bool:
    """Return True for numbers, containers and functions that are not those of a library."""
    if isinstance(value, FunctionType):
        return not is_library_function(value)
    return type(value) in _PLAIN_TYPES or type(value) in (np.ndarray, tuple, list, dict)


def _cell_key(cell: CellType, visited: dict[int, int]) -> Hashable:
    try:
        content = cell.cell_contents
    except ValueError:  # the variable has no value yet
        return "empty cell"
    return _key(content, visited)


def _class_key(cls: type, visited: dict[int, int]) -> Hashable:
    """Return a key of the methods, properties and attributes of a class and its bases."""
    parts: list[Hashable] = []
    for base in cls.__mro__[:-1]:
        if package_of(base) in LIBRARIES and base.__module__ in sys.modules and "<locals>" not in base.__qualname__:
            parts.append((base.__module__, base.__qualname__))
            continue
        if _DYNAMIC_ATTRIBUTES & vars(base).keys():
            raise _NoKeyError
        for name, attribute in sorted(vars(base).items()):
            if name in _CLASS_METADATA:
                continue
            if isinstance(attribute, (staticmethod, classmethod)):
                parts.append((name, _key(attribute.__func__, visited)))
            elif isinstance(attribute, property):
                parts.append((name, _key((attribute.fget, attribute.fset), visited)))
            else:
                parts.append((name, _key(attribute, visited)))
    if package_of(type(cls)) not in (*LIBRARIES, "abc", "enum"):
        parts.append(("metaclass", _class_key(type(cls), visited)))
    return "class", tuple(parts)
