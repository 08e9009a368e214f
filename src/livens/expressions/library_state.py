"""State of library functions written in Python: the values that they read in their modules, so that changes are found.

Functions implemented in C are immutable, except those that read other values than their arguments. A Python function
of a library has a version: a number that changes with its code, its defaults, its attributes, and the global names and
attributes of modules that it and the functions it calls refer to.
"""

from __future__ import annotations

import builtins
import inspect
import itertools
import operator
import sys
from collections.abc import Iterable
from itertools import chain
from types import BuiltinFunctionType, CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from livens.expressions.library_objects import (
    LIBRARIES,
    has_hidden_content,
    imported_modules,
    is_library_object,
    is_python_class,
    package_of,
    referenced_names,
)

#: Packages whose Python functions and classes are represented by their own code only.
_TRUSTED_PACKAGES = frozenset(("livens", "casadi"))
#: Modules whose classes are replaced by their coefficients when a function is traced.
_INTERPOLANT_MODULE = "scipy.interpolate"
#: Packages of functions implemented in C that depend on their arguments only, and the exceptions.
_PURE_PACKAGES = frozenset(("builtins", "math", "cmath", "_operator", "_functools", "numpy"))
_STATEFUL_FUNCTIONS = frozenset(
    "open input eval exec compile globals locals vars dir __import__ breakpoint id setattr delattr fromfile"
    " _get_extobj_dict _make_extobj _load_from_filelike".split()
)
#: Functions that read attributes by name: pure in libraries, which apply them to their arguments.
_ATTRIBUTE_READERS = frozenset(("getattr", "hasattr"))
#: Modules other than libraries whose attributes library functions use for messages and checks of types.
_AUXILIARY_MODULES = frozenset(("warnings", "numbers"))
#: Attributes of universal functions without influence on values.
_DOCUMENTATION = frozenset(("__doc__", "__name__", "__qualname__", "__module__", "__signature__"))
#: Largest number of values in a state.
_MAX_VALUES = 2000

#: Immutable types, and signatures, which are part of the documentation.
_ATOMS = (
    *(int, float, complex, str, bytes, type(None), type(Ellipsis)),
    *(np.ufunc, np.dtype, np.number, np.bool_, inspect.Signature),
)


class _UnreadableError(Exception):
    """Value whose state cannot be read."""


class _LibraryState:
    """Values that a library function or class reads besides its arguments."""

    def __init__(self, root: object, version: int) -> None:
        self.version = version
        self._root, self._visited = root, dict[int, object]()
        self._was_read: set[tuple[int, object]] = set()
        self._scopes: list[dict[Any, object]] = []  # dictionaries with keys and their values
        self._keys: list[object] = []
        self._values: list[object] = []
        self._functions: list[FunctionType] = []  # with their parts, three for each
        self._parts: list[object] = []
        self._plain_functions: list[FunctionType] = []  # without attributes
        self._cells: list[CellType] = []
        self._cell_contents: list[object] = []
        self._containers: list[Iterable[object]] = []  # with their items
        self._items: list[tuple[object, ...]] = []
        try:
            self._visit(root)
            self.is_readable = True
        except (_UnreadableError, RecursionError, ValueError):  # a cell may have no content
            self.is_readable = False

    def is_unchanged(self) -> bool:
        """Return True if all values are the same objects, and containers have the same items."""
        if any(map(_attributes, self._plain_functions)):
            return False
        try:
            return (
                all(map(operator.is_, map(dict.get, self._scopes, self._keys), self._values))
                and all(map(operator.is_, chain.from_iterable(map(_function_parts, self._functions)), self._parts))
                and all(map(operator.is_, map(_cell_content, self._cells), self._cell_contents))
                and all(map(_is_same, map(_items, self._containers), self._items))
            )
        except ValueError:  # a cell has lost its content
            return False

    def _read(self, scope: dict[Any, Any], key: object) -> object:
        value = scope.get(key)
        if (id(scope), key) not in self._was_read:
            self._was_read.add((id(scope), key))
            self._scopes.append(scope)
            self._keys.append(key)
            self._values.append(value)
        if len(self._values) > _MAX_VALUES:
            raise _UnreadableError
        return value

    def _visit(self, value: object) -> None:
        if isinstance(value, _ATOMS) or id(value) in self._visited:
            return
        self._visited[id(value)] = value
        if isinstance(value, FunctionType):
            self._visit_function(value)
        elif isinstance(value, type):
            self._visit_class(value)
        elif isinstance(value, BuiltinFunctionType):
            if not is_pure_builtin(value) and not self._may_call(value):
                raise _UnreadableError
        elif isinstance(value, (tuple, list, dict, set, frozenset)):
            self._visit_items(value)
        elif isinstance(value, (staticmethod, classmethod, MethodType)):
            self._visit(value.__func__)
        elif isinstance(value, property):
            self._visit_items((value.fget, value.fset))
        elif isinstance(value, ModuleType):
            pass  # its attributes are read by name
        elif hasattr(value, "_implementation") and package_of(type(value)) == "numpy":  # dispatches on types of arrays
            if value is self._root:
                self._visit_items(vars(value))
            self._visit(getattr(value, "_implementation"))  # noqa: B009  # not declared by NumPy
        elif is_library_object(type(value)) and not has_hidden_content(type(value)):
            self._visit(type(value))
            self._visit_items(getattr(value, "__dict__", {}))
        else:
            raise _UnreadableError

    def _may_call(self, function: BuiltinFunctionType) -> bool:
        """Return True for functions that are not pure in general, but as libraries use them."""
        if function.__name__ == "_getframe":  # `np.r_` reads frames for names in a text, which is not traced
            return isinstance(self._root, type) and issubclass(self._root, type(np.r_).__mro__[1])
        return function.__name__ in _ATTRIBUTE_READERS or function.__module__ == "_warnings"

    def _visit_items(self, container: Iterable[object]) -> None:
        items = _items(container)
        if not isinstance(container, (tuple, frozenset)):
            self._containers.append(container)
            self._items.append(items)
        for item in items:
            self._visit(item)

    def _visit_class(self, cls: type) -> None:
        """Read the attributes of a class written in Python; their values only if the class is the root."""
        if not is_python_class(cls):
            return
        is_root = cls is self._root and not issubclass(cls, BaseException)
        if not is_root and issubclass(cls, (np.ndarray, BaseException)):
            return
        for base in filter(is_python_class, cls.__mro__):
            attributes = vars(base)
            self._containers.append(attributes)
            self._items.append(_items(attributes))
            for value in attributes.values() if is_root else ():
                if not type(value).__name__.endswith("_descriptor"):
                    self._visit(value)

    def _visit_function(self, function: FunctionType) -> None:
        parts = _function_parts(function)
        self._functions.append(function)
        self._parts.extend(parts)
        if package_of(function) in _TRUSTED_PACKAGES:
            return
        for part in parts[1:]:
            self._visit(part)
        if function.__dict__:
            self._visit_items(function.__dict__)
        else:
            self._plain_functions.append(function)
        for cell in function.__closure__ or ():
            self._cells.append(cell)
            self._cell_contents.append(cell.cell_contents)
            self._visit(cell.cell_contents)
        names, globals_ = tuple(dict.fromkeys(referenced_names(function.__code__))), function.__globals__
        modules: list[ModuleType] = []
        for name in imported_modules(function.__code__):
            if name.partition(".")[0] not in LIBRARIES:  # also of relative imports
                raise _UnreadableError
            self._visit_named(sys.modules, name, modules)
        for name in names:
            if name in globals_ or name in vars(builtins):
                self._visit_named(globals_, name, modules)
                self._visit_named(vars(builtins), name, modules)
        for module in modules:  # grows
            package = module.__name__.partition(".")[0]
            if package not in _AUXILIARY_MODULES:
                for name in names:
                    if name in vars(module):
                        self._visit_named(vars(module), name, modules)

    def _visit_named(self, scope: dict[str, Any], name: str, modules: list[ModuleType]) -> None:
        value = self._read(scope, name)
        if isinstance(value, ModuleType):
            if value not in modules:
                modules.append(value)
        else:
            self._visit(value)


#: States of the library functions and classes to which users' functions refer, by `id`.
_states: dict[int, _LibraryState] = {}
_versions = itertools.count()


def library_version(value: object) -> int | None:
    """Return a number that changes with the state of a library object; None if its state cannot be read.

    >>> library_version(np.sin), library_version(np.sum) == library_version(np.sum)
    (0, True)
    >>> library_version(getattr) is None
    True
    """
    state = _states.get(id(value))
    if state is not None and state.is_unchanged():
        return state.version if state.is_readable else None
    if isinstance(value, BuiltinFunctionType):
        return 0 if is_pure_builtin(value) else None
    if isinstance(value, np.ufunc):
        return None if set(getattr(value, "__dict__", ())) - _DOCUMENTATION else 0
    if isinstance(value, type) and (not is_python_class(value) or value.__module__.startswith(_INTERPOLANT_MODULE)):
        return 0
    state = _states[id(value)] = _LibraryState(value, next(_versions) + 1)
    return state.version if state.is_readable else None


def is_pure_builtin(function: BuiltinFunctionType) -> bool:
    """Return True for functions implemented in C whose values depend on their arguments only."""
    if isinstance(function.__self__, np.ufunc):
        return True
    return package_of(function) in _PURE_PACKAGES and function.__name__ not in _STATEFUL_FUNCTIONS | _ATTRIBUTE_READERS


#: Values on which a function depends besides those in its modules.
_function_parts = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")
_attributes, _cell_content = operator.attrgetter("__dict__"), operator.attrgetter("cell_contents")


def _items(container: Iterable[object]) -> tuple[object, ...]:
    """Return the items of a container; the keys and values of a dictionary."""
    if isinstance(container, (dict, MappingProxyType)):
        return *container, *container.values()
    return tuple(container)


def _is_same(current: tuple[object, ...], expected: tuple[object, ...]) -> bool:
    return len(current) == len(expected) and all(map(operator.is_, current, expected))
