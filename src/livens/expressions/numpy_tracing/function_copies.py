"""Copies of user functions whose global names refer to functions that accept symbols.

The code of a function is not changed. Names are followed through helper functions, closures, defaults, methods, objects
with ``__call__``, static methods, `functools.partial`, Numba functions and interpolants. Containers and objects are
copied, so that a traced function cannot change the data of the user; a copy that was changed is an error.
"""

from __future__ import annotations

import array
import builtins
import collections
import copy
import dis
import functools
import itertools
import math
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from livens.expressions.library_objects import (
    LIBRARIES,
    attributes_of,
    has_hidden_content,
    is_library_function,
    is_numba_function,
    original_function,
    package_of,
    referenced_names,
)
from livens.expressions.numpy_tracing import numpy_functions as counterparts
from livens.expressions.numpy_tracing.branches import TracingError
from livens.expressions.numpy_tracing.interpolants import piecewise_polynomial

#: Modules whose functions return other values at every call.
_IMPURE_MODULES = frozenset(("random", "time", "datetime", "secrets", "os"))
#: Mutable containers with items in an order, and further objects that are copied as a whole.
_ITERABLE_CONTAINERS = (list, set, collections.deque, bytearray, array.array)
_COPIED_TYPES = (*_ITERABLE_CONTAINERS, dict, types.SimpleNamespace)


#: Methods of `datetime` classes that return the present time.
_CLOCKS = ("now", "utcnow", "today")


def _refuse_clock(cls: type, *_: object) -> Any:
    raise TracingError(f"the present time of {cls.__name__} depends on more than the arguments")


class _RefusedValue:
    """Iterator, generator or random generator: its values differ from use to use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        raise TracingError(f"'{self.__dict__['_name']}' has other values at every use")

    def __call__(self, *_: object, **__: object) -> Any:
        return self.__getattr__("__call__")

    def __iter__(self) -> Any:
        return self.__getattr__("__iter__")

    def __next__(self) -> Any:
        return self.__getattr__("__next__")


def _is_impure(value: object) -> bool:
    """Return True for iterators, random generators and their methods."""
    is_method = isinstance(value, types.MethodType) or (
        isinstance(value, types.BuiltinFunctionType) and _is_bound(value)
    )
    owner = getattr(value, "__self__", value) if is_method else value
    if isinstance(owner, type):
        return False
    module = str(type(owner).__module__)
    return module == "random" or module.startswith("numpy.random") or isinstance(owner, Iterator)


def _is_bound(function: types.BuiltinFunctionType) -> bool:
    return function.__self__ is not None and not isinstance(function.__self__, types.ModuleType)


class FunctionCopier:
    """Copier of a function and of the objects that it refers to. Every object is copied once."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}
        self._originals: list[Any] = []  # keeps the ids of `_copies` valid
        self._containers: list[tuple[str, Any, Any]] = []  # name, copy, snapshot of the copy

    def copy(self, value: object, name: str = "") -> Any:
        """Return the copy of a value, or the value itself if it needs none."""
        if id(value) in self._copies:
            return self._copies[id(value)]
        try:
            copied = self._copy(value, name)
        except TracingError:
            raise
        except (TypeError, ValueError, AttributeError):  # such as objects that cannot be created without arguments
            copied = value
        self._copies[id(value)] = copied
        self._originals.append(value)
        return copied

    def check_unchanged(self) -> None:
        """Raise `TracingError` if the traced function has changed a container or an object outside itself."""
        for name, copied, snapshot in self._containers:
            if not _equals_snapshot(copied, snapshot):
                if isinstance(copied, (type, types.ModuleType)):
                    _restore(copied, snapshot)
                raise TracingError(f"it changes '{name}', which is defined outside of it")

    def _copy(self, value: object, name: str) -> Any:
        if isinstance(value, types.ModuleType):
            view = _module_view(value)
            return (
                self._watched(name, value)
                if view is value and value.__name__.partition(".")[0] not in LIBRARIES
                else view
            )
        for original, counterpart in counterparts.BUILTINS.values():
            if value is original:
                return counterpart
        if id(value) in counterparts.CONCATENATORS:
            return counterparts.CONCATENATORS[id(value)]
        if _is_impure(value):
            return _RefusedValue(name)
        if isinstance(value, (list, tuple, dict, set)) and type(value) in (list, tuple, dict, set):
            return self._copy_container(value, name)
        if isinstance(value, np.ndarray):
            return self._watched(name, value.copy())
        if isinstance(value, _COPIED_TYPES):
            return self._watched(name, copy.copy(value))
        if isinstance(value, types.BuiltinFunctionType) and _is_bound(value):
            return getattr(self.copy(value.__self__, name), value.__name__)
        if type(value) is functools.partial:
            arguments, named = self.copy(value.args, name), self.copy(value.keywords, name)
            return functools.partial(self.copy(value.func, name), *arguments, **named)
        if isinstance(value, types.MethodType):
            if not isinstance(value.__func__, types.FunctionType):  # a method of an extension module
                return value
            return types.MethodType(self.copy(value.__func__, name), self.copy(value.__self__, name))
        if is_numba_function(value):
            return self.copy(original_function(value), name)
        if isinstance(value, types.FunctionType) and not is_library_function(value):
            return self._copy_function(value)
        counterpart = _library_counterpart(value)
        if counterpart is not None:
            return counterpart
        if isinstance(value, type):
            if package_of(value) == "datetime":
                return type(value.__name__, (value,), dict.fromkeys(_CLOCKS, classmethod(_refuse_clock)))
            return value if package_of(value) in LIBRARIES else self._copy_class(value)
        return value if package_of(type(value)) in LIBRARIES else self._copy_object(value, name)

    # -- containers and objects --------------------------------------------------------------------------------------
    def _watched(self, name: str, copied: object) -> Any:
        self._containers.append((name, copied, _snapshot(copied)))
        return copied

    def _copy_container(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return self._watched(name, {key: self.copy(item, name) for key, item in value.items()})
        if isinstance(value, set):
            return self._watched(name, set(value))
        items = [self.copy(item, name) for item in value]
        return tuple(items) if isinstance(value, tuple) else self._watched(name, items)

    def _copy_class(self, cls: type) -> type:
        """Return a subclass whose static methods and class methods are copies; instances of `cls` are its instances."""
        self._watched(cls.__name__, cls)
        methods = dict(self._methods(cls, with_instance_methods=False))
        if not methods:
            return cls
        metaclass: Any = type(cls)
        if metaclass is type:  # abstract base classes have a check of their own
            check = {"__instancecheck__": lambda _, instance: isinstance(instance, cls)}
            metaclass = type("type", (type,), check)
        return cast(type, self._watched(cls.__name__, metaclass(cls.__name__, (cls,), methods)))

    def _copy_object(self, value: object, name: str) -> Any:
        """Return an object with the same attributes whose methods are copies."""
        cls = type(value)
        if has_hidden_content(cls):  # a copy without the content of an extension module crashes the interpreter
            raise TypeError(f"objects of class {cls.__name__} cannot be copied")
        copied = object.__new__(cls)
        self._copies[id(value)] = copied
        self._originals.append(value)
        name, attributes = name or cls.__name__, attributes_of(value)
        slots: dict[str, Any] = {} if hasattr(value, "__dict__") else {"__slots__": ()}
        copied_class = type(cls.__name__, (cls,), slots | dict(self._methods(cls, with_instance_methods=True)))
        copied.__class__ = copied_class
        self._watched(name, cls)
        self._watched(name, copied_class)
        for attribute, item in attributes.items():
            object.__setattr__(copied, attribute, self.copy(item, f"{name}.{attribute}"))
        return self._watched(name, copied)

    def _methods(self, cls: type, with_instance_methods: bool) -> Iterator[tuple[str, Any]]:
        for base in reversed(cls.__mro__[:-1]):
            for name, attribute in vars(base).items():
                if isinstance(attribute, (staticmethod, classmethod)):
                    yield name, type(attribute)(self.copy(attribute.__func__, name))
                elif not with_instance_methods or name == "__init__":
                    continue
                elif isinstance(attribute, types.FunctionType):
                    yield name, self.copy(attribute, name)
                elif type(attribute) is property and attribute.fget is not None:
                    yield name, property(self.copy(attribute.fget, name))

    # -- functions ---------------------------------------------------------------------------------------------------
    def _copy_function(self, function: types.FunctionType) -> types.FunctionType:
        _check_no_assignment_outside(function)
        if _catches_exceptions(function.__code__):
            return _refused_function(function)
        names: dict[str, object] = {"__builtins__": self._builtins(), "__name__": function.__module__}
        defaults = function.__defaults__ and tuple(self.copy(value) for value in function.__defaults__)
        cells = function.__closure__ and tuple(types.CellType() for _ in function.__closure__)
        copied = types.FunctionType(function.__code__, names, function.__name__, defaults, cells)
        copied.__kwdefaults__ = function.__kwdefaults__ and {
            name: self.copy(value, name) for name, value in function.__kwdefaults__.items()
        }
        self._copies[id(function)] = copied  # before its names: functions may call each other
        self._originals.append(function)
        if function.__dict__:
            copied.__dict__.update({name: self.copy(value, name) for name, value in function.__dict__.items()})
            self._watched(function.__name__, copied)
        for name in set(referenced_names(function.__code__)):
            if name in function.__globals__:
                names[name] = self.copy(function.__globals__[name], name)
        for name, cell, original in zip(
            function.__code__.co_freevars, copied.__closure__ or (), function.__closure__ or (), strict=True
        ):
            try:
                content = original.cell_contents
            except ValueError:  # the variable has no value yet
                continue
            cell.cell_contents = content if name == "__class__" else self.copy(content, name)
        return copied

    def _builtins(self) -> dict[str, object]:
        def import_view(name: str, globals_: Any = None, locals_: Any = None, names: Any = (), level: int = 0) -> Any:
            module = builtins.__import__(name, globals_, locals_, names, level)
            if not names:
                return self.copy(module)
            view = self.copy(module)
            return types.SimpleNamespace(
                **{
                    item: self.copy(getattr(module, item)) if view is module else getattr(view, item)
                    for item in names
                    if hasattr(module, item)
                }
            )

        return {
            **vars(builtins),
            **{
                name: counterpart
                for name, (original, counterpart) in counterparts.BUILTINS.items()
                if getattr(builtins, name) is original
            },
            "__import__": import_view,
        }


def _module_view(module: types.ModuleType) -> Any:
    name = module.__name__
    if name.partition(".")[0] in _IMPURE_MODULES or name.startswith("numpy.random"):
        return counterparts.ModuleView(module, {}, refused=dir(module))
    if module is np:
        return counterparts.NUMPY
    if module is math:
        return counterparts.MATH
    views: dict[str, Callable[[], Any]] = {
        "numpy.linalg": lambda: counterparts.LINALG,
        "scipy": counterparts.scipy_package,
        "scipy.linalg": counterparts.scipy_linalg,
        "scipy.special": counterparts.scipy_special,
    }
    return views[name]() if name in views else module


def _library_counterpart(value: object) -> Any | None:
    """Return the counterpart of a function that was imported by name from `math`, NumPy or SciPy; None if unknown."""
    module, name = str(getattr(value, "__module__", "") or ""), getattr(value, "__name__", "")
    if isinstance(value, types.BuiltinFunctionType) and module == "math":
        return getattr(counterparts.MATH, name)
    if package_of(value) in _IMPURE_MODULES and callable(value) and not isinstance(value, type):
        raise TracingError(f"{module}.{name} depends on more than its arguments")
    if callable(value) and not isinstance(value, type):
        if name and getattr(np, name, None) is value:
            return getattr(counterparts.NUMPY, name)
        if name and getattr(np.linalg, name, None) is value:
            return getattr(counterparts.LINALG, name)
        if module.startswith("scipy.linalg"):
            return getattr(counterparts.scipy_linalg(), name, value)
        if module.startswith("scipy.interpolate") or type(value).__module__.startswith("scipy.interpolate"):
            return piecewise_polynomial(value)
        if isinstance(value, np.ufunc):
            return getattr(counterparts.scipy_special(), name, value)
    return None


def _check_no_assignment_outside(function: types.FunctionType) -> None:
    """Raise `TracingError` if a function assigns to global variables or to variables of an enclosing function."""
    free = set(function.__code__.co_freevars)
    for instruction in dis.get_instructions(function.__code__):
        is_outside = instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (
            instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in free
        )
        if is_outside:
            line = instruction.positions.lineno if instruction.positions else None
            raise TracingError(f"it assigns to '{instruction.argval}', which is defined outside of it (line {line})")


def _catches_exceptions(code: types.CodeType) -> bool:
    """Return True if a code object continues after an exception; ``with`` and ``finally`` blocks raise it again."""
    names = [instruction.opname for instruction in dis.get_instructions(code)]
    continued = sum(name == "POP_EXCEPT" and after != "RERAISE" for name, after in itertools.pairwise(names))
    return continued > names.count("WITH_EXCEPT_START") or "suppress" in code.co_names + code.co_freevars


def _refused_function(function: types.FunctionType) -> types.FunctionType:
    """Return a function that cannot be called: symbols raise other exceptions than numbers."""

    def refused(*_: object, **__: object) -> object:
        line = function.__code__.co_firstlineno
        raise TracingError(
            f"'{function.__name__}' catches exceptions, and symbols raise other ones than numbers (line {line} of "
            f"{Path(function.__code__.co_filename).name})"
        )

    return cast(types.FunctionType, refused)


def _snapshot(value: object) -> Any:
    """Return the items of a container, the bytes of an array or the attributes of an object or class."""
    if isinstance(value, np.ndarray):
        return list(value.flat) if value.dtype == object else value.tobytes()
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, _ITERABLE_CONTAINERS):
        return list(value)
    if isinstance(value, types.ModuleType):  # submodules may be imported at any time
        return {name: item for name, item in vars(value).items() if not isinstance(item, types.ModuleType)}
    return attributes_of(value)


def _restore(owner: type | types.ModuleType, snapshot: dict[str, object]) -> None:
    """Restore the attributes of a class or module."""
    current = _snapshot(owner)
    for name in current.keys() | snapshot.keys():
        if name not in snapshot:
            delattr(owner, name)
        elif name not in current or current[name] is not snapshot[name]:
            setattr(owner, name, snapshot[name])


def _equals_snapshot(value: Any, snapshot: Any) -> bool:
    current = _snapshot(value)
    if isinstance(current, bytes):
        return bool(current == snapshot)
    if isinstance(current, dict):
        return current.keys() == snapshot.keys() and all(_is_same(current[key], snapshot[key]) for key in current)
    return len(current) == len(snapshot) and all(map(_is_same, current, snapshot))


def _is_same(a: object, b: object) -> bool:
    """Return True for one object, or equal numbers that a container of numbers creates at every access."""
    return a is b or (type(a) in (int, float) and type(a) is type(b) and repr(a) == repr(b))
