"""Functions, classes and ufuncs of libraries, which count as immutable; names in code; attributes of objects."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

#: Packages whose functions and classes count as immutable.
LIBRARIES = frozenset(
    "builtins math cmath numpy scipy casadi livens numba functools itertools operator collections types abc enum"
    " _functools _operator _collections _abc".split()
)
#: Library objects by `id`, with the attributes of a class when it was first found.
_library_objects: dict[int, tuple[object, tuple[object, ...]]] = {}


def package_of(value: object) -> str:
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
        and module.__spec__ is not None
        and function.__globals__ is vars(module)
    )


def referenced_names(code: CodeType) -> Iterator[str]:
    """Yield all global and attribute names used by a code object and its nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from referenced_names(constant)


def imported_modules(code: CodeType) -> Iterator[str]:
    """Yield the modules imported in a code object and its nested functions; relative names begin with a dot."""
    instructions = list(dis.get_instructions(code))
    for i, instruction in enumerate(instructions):
        if instruction.opname == "IMPORT_NAME":
            is_relative = instructions[i - 2].argval != 0
            name = str(instruction.argval)
            yield from (f".{name}",) if is_relative else {name, name.partition(".")[0]}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from imported_modules(constant)


def is_numba_function(value: object) -> bool:
    """Return True for functions compiled by Numba, which have the original function as `py_func`."""
    return package_of(type(value)) == "numba" and hasattr(value, "py_func")


def original_function(compiled: Any) -> FunctionType:
    """Return the Python function that Numba has compiled."""
    function: FunctionType = compiled.py_func
    return function


def is_library_object(value: object) -> bool:
    """Return True for functions, ufuncs and unchanged classes of libraries, which count as immutable."""
    known = _library_objects.get(id(value))
    if known is None:
        if not _is_defined_by_library(value):
            return False
        attributes = tuple(vars(value).values()) if isinstance(value, type) else ()
        known = _library_objects[id(value)] = value, attributes
    if not isinstance(value, type):
        return True
    attributes = tuple(vars(value).values())
    return len(attributes) == len(known[1]) and all(a is b for a, b in zip(attributes, known[1], strict=True))


def _is_defined_by_library(value: object) -> bool:
    if isinstance(value, FunctionType):
        return is_library_function(value)
    if isinstance(value, BuiltinFunctionType):
        return package_of(value) in LIBRARIES and (value.__self__ is None or isinstance(value.__self__, ModuleType))
    if isinstance(value, np.ufunc):
        if value.__name__.endswith(" (vectorized)"):  # made of a Python function
            return False
        special = sys.modules.get("scipy.special")
        return getattr(np, value.__name__, None) is value or getattr(special, value.__name__, None) is value
    if isinstance(value, type):
        functions = [attribute for attribute in vars(value).values() if isinstance(attribute, FunctionType)]
        return (
            value.__module__ in sys.modules
            and "<locals>" not in value.__qualname__
            and all(package_of(defined) in LIBRARIES for defined in (value, *functions))
        )
    if package_of(type(value)) != "numpy":
        return False
    module = sys.modules.get(str(getattr(value, "__module__", "")))  # functions that dispatch on the type of arrays
    return module is not None and getattr(module, getattr(value, "__name__", ""), None) is value


#: Flag of classes that are created at run time.
_HEAP_TYPE = 1 << 9
#: Size of an attribute in `__slots__`, in bytes.
_POINTER_SIZE = np.dtype(np.intp).itemsize


def is_python_class(cls: type) -> bool:
    """Return True for classes that are created at run time, such as those written in Python."""
    return bool(cls.__flags__ & _HEAP_TYPE)


def slot_names(cls: type) -> Iterator[str]:
    """Yield the names of attributes in `__slots__` of a class and its bases."""
    for base in cls.__mro__[:-1]:
        for name, attribute in vars(base).items():
            if type(attribute) is MemberDescriptorType and is_python_class(base):
                yield name


def attributes_of(value: object) -> dict[str, Any]:
    """Return the attributes of an object by name: those in `__dict__` and in `__slots__`."""
    slots = {name: getattr(value, name) for name in slot_names(type(value)) if hasattr(value, name)}
    return {**getattr(value, "__dict__", {}), **slots}


def has_hidden_content(cls: type) -> bool:
    """Return True if objects have content other than in `__dict__` and `__slots__`, as those of extension modules."""
    n_pointers = sum(1 for _ in slot_names(cls)) + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
    return bool(cls.__basicsize__ - _POINTER_SIZE * n_pointers > object.__basicsize__ or cls.__itemsize__)
