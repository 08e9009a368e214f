"""Cache keys of user functions: equal keys mean equal functions, so that a function is traced once.

`value_key` contains the values on which a function depends: closures, defaults, global names, attributes and helper
functions. A value whose state is not accessible has no key: a function that refers to it is traced at every use.
`function_key` accepts pure functions only.
"""

from __future__ import annotations

import abc
import builtins
import enum
import functools
import sys
from collections.abc import Hashable, Mapping
from types import CellType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from livens.expressions.library_objects import (
    LIBRARIES,
    attributes_of,
    has_hidden_content,
    imported_modules,
    is_library_object,
    is_numba_function,
    original_function,
    referenced_names,
)
from livens.expressions.library_state import library_version

#: Modules to which pure functions may refer.
_IMMUTABLE_MODULES = frozenset({"math", "numpy", "livens", "livens.math"})
#: Immutable types whose `repr` is their value.
_PLAIN_TYPES = frozenset((int, float, complex, str, bytes, bool, type(None), range, type(Ellipsis)))
#: Names with which code reads values that it does not name, or files.
_REFLECTIVE_NAMES = frozenset(
    "globals locals vars dir eval exec compile getattr hasattr open input breakpoint __import__ import_module __dict__"
    " format format_map load loadtxt genfromtxt fromfile memmap".split()
)
#: Attributes of classes without influence on values.
_CLASS_METADATA = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __annotations__ __firstlineno__ __static_attributes__"
    " __annotate__ __annotate_func__ __annotations_cache__ __dataclass_fields__ __dataclass_params__ __match_args__"
    " __slots__ __abstractmethods__ _abc_impl __parameters__ __orig_bases__".split()
)
#: Class attributes with which the value of an attribute is not known in advance.
_DYNAMIC_ATTRIBUTES = frozenset(("__getattr__", "__getattribute__"))
#: Special attributes that are part of the key of a class or object.
_READABLE_METADATA = frozenset("__class__ __init__ __call__ __getitem__ __len__".split())
#: The built-in function that executes import statements.
_IMPORT = builtins.__import__
#: Largest array in a key, in bytes.
_MAX_ARRAY_BYTES = 1_000_000


class _NoKeyError(Exception):
    """Value whose state is not accessible, such as an object of an extension module."""


def value_key(*values: object) -> Hashable | None:
    """Return a cache key of functions and the values on which they depend; None if a value is not accessible.

    >>> def scaled(factor):
    ...     return lambda x: factor * x
    >>> value_key(scaled(1.0)) == value_key(scaled(1.0)), value_key(scaled(1.0)) == value_key(scaled(2.0))
    (True, False)
    """
    try:
        return _KeyBuilder().build(values)
    except (_NoKeyError, RecursionError):
        return None


def function_key(functions: Mapping[str, object]) -> Hashable | None:
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
    return value_key(dict(functions))


def _is_pure(function: object) -> bool:
    if type(function) is not FunctionType or function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    if function.__dict__:
        return False
    globals_ = function.__globals__
    references = (globals_[name] for name in referenced_names(function.__code__) if name in globals_)
    return all(isinstance(value, ModuleType) and value.__name__ in _IMMUTABLE_MODULES for value in references)


class _KeyBuilder:
    """Builder of a key. Libraries are represented by those of their attributes that any of the functions names."""

    def __init__(self) -> None:
        self._visited: dict[int, tuple[int, object]] = {}  # the objects keep their ids valid
        self._modules: dict[int, ModuleType] = {}
        self._names: dict[str, None] = {}  # names in code objects, in the order of their occurrence

    def build(self, values: tuple[object, ...]) -> Hashable:
        """Return the key of values."""
        parts = [abc.get_cache_token(), *map(self._key, values)]  # the token counts virtual subclasses
        if self._names:
            self._modules[id(builtins)] = builtins
            if builtins.__import__ is not _IMPORT:
                raise _NoKeyError
        represented, represented_modules = set[tuple[int, str]](), set[int]()
        n_names = n_modules = 0
        while (n_names, n_modules) != (len(self._names), len(self._modules)):
            n_names, n_modules = len(self._names), len(self._modules)
            for index, module in list(self._modules.items()):
                contents = vars(module)
                if (
                    index not in represented_modules and "__getattr__" in contents
                ):  # returns names that are not in `contents`
                    parts.append(_module_attribute_key(contents["__getattr__"]))
                represented_modules.add(index)
                for name in [name for name in self._names if name in contents and (index, name) not in represented]:
                    represented.add((index, name))
                    parts.append((module.__name__, name, self._key(contents[name])))
        return tuple(parts)

    def _key(self, value: Any) -> Hashable:
        cls = type(value)
        if cls in _PLAIN_TYPES:
            return cls, repr(value)
        if is_library_object(value):
            return _library_key(value)
        if cls is np.ndarray or (isinstance(value, np.generic) and cls.__module__ == "numpy"):
            return _array_key(value)
        if id(value) in self._visited:
            return "visited", self._visited[id(value)][0]
        self._visited[id(value)] = len(self._visited), value
        if cls in (tuple, list):
            return cls, tuple(map(self._key, value))
        if cls is dict:
            return "dict", tuple((self._key(name), self._key(item)) for name, item in value.items())
        if cls is slice:
            return "slice", *map(self._key, (value.start, value.stop, value.step))
        if isinstance(value, enum.Enum):
            return "enum", self._class_key(cls), value.name, self._key(vars(value))
        if isinstance(value, ModuleType):
            return self._module_key(value)
        if cls is MethodType:
            return "method", self._key(value.__func__), self._key(value.__self__)
        if cls is functools.partial:
            return "partial", *map(self._key, (value.func, value.args, value.keywords, vars(value)))
        if is_numba_function(value):
            return "numba", self._key(original_function(value))
        if cls is FunctionType:
            return self._function_key(value)
        if isinstance(value, type):
            return self._class_key(value)
        if has_hidden_content(cls):
            raise _NoKeyError
        return (
            "object",
            self._class_key(cls),
            *((name, self._key(item)) for name, item in attributes_of(value).items()),
        )

    def _module_key(self, module: ModuleType) -> Hashable:
        if type(module) is not ModuleType or module.__name__.partition(".")[0] not in LIBRARIES:
            raise _NoKeyError
        self._modules[id(module)] = module
        return "module", module.__name__

    def _function_key(self, function: FunctionType) -> Hashable:
        code, globals_ = function.__code__, function.__globals__
        names, imported = _names_and_imports(code)
        attributes: Any = function
        if names is None or attributes.__builtins__ is not vars(builtins):
            raise _NoKeyError
        for name in imported:
            if name not in sys.modules:
                raise _NoKeyError
            self._key(sys.modules[name])
        self._names.update(dict.fromkeys(names))
        return (
            "function",
            code,
            self._key(function.__dict__) if function.__dict__ else None,
            self._key(function.__defaults__),
            self._key(function.__kwdefaults__),
            tuple(map(self._cell_key, function.__closure__ or ())),
            tuple((name, self._key(globals_[name])) for name in names if name in globals_),
        )

    def _cell_key(self, cell: CellType) -> Hashable:
        try:
            content = cell.cell_contents
        except ValueError:  # the variable has no value yet
            return "empty cell"
        return self._key(content)

    def _class_key(self, cls: type) -> Hashable:
        """Return a key of the methods, properties and attributes of a class and its bases."""
        parts: list[Hashable] = []
        for base in cls.__mro__[:-1]:
            if is_library_object(base):
                parts.append(_library_key(base))
                continue
            if _DYNAMIC_ATTRIBUTES & vars(base).keys():
                raise _NoKeyError
            parts.append(base.__qualname__)
            for name, attribute in sorted(vars(base).items()):
                if name in _CLASS_METADATA or type(attribute) is MemberDescriptorType:
                    continue
                if type(attribute) in (staticmethod, classmethod):
                    parts.append((name, type(attribute), self._key(attribute.__func__)))
                elif type(attribute) is property:
                    parts.append((name, self._key(attribute.fget), self._key(attribute.fset)))
                else:
                    parts.append((name, self._key(attribute)))
        if type(cls) is not type and not is_library_object(type(cls)):
            parts.append(("metaclass", self._class_key(type(cls))))
        return "class", tuple(parts)


def _library_key(value: object) -> Hashable:
    version = library_version(value)
    if version is None:
        raise _NoKeyError
    return "library", id(value), version


def _array_key(array: Any) -> Hashable:
    dtype = array.dtype
    if dtype.hasobject or array.nbytes > _MAX_ARRAY_BYTES or dtype.metadata or dtype.names:
        raise _NoKeyError
    return type(array), dtype, array.shape, array.strides, array.flags.writeable, array.tobytes()


def _module_attribute_key(function: Any) -> Hashable:
    """Return the key of a function ``__getattr__`` of a module, by its code only."""
    if not is_library_object(function):
        raise _NoKeyError
    return id(function), function.__code__


def _is_metadata_name(name: str) -> bool:
    """Return True for attributes of functions, classes and modules that are not part of a key."""
    return name.startswith("__") and name.endswith("__") and name not in _READABLE_METADATA


@functools.lru_cache(maxsize=1024)
def _names_and_imports(code: CodeType) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the sorted names in a code object and the libraries that it imports; None if it may read other values."""
    names, imported = set(referenced_names(code)), set(imported_modules(code))
    if (
        names & _REFLECTIVE_NAMES
        or any(map(_is_metadata_name, names))
        or any(name.partition(".")[0] not in LIBRARIES for name in imported)
    ):
        return None, ()
    return tuple(sorted(names)), tuple(sorted(imported))
