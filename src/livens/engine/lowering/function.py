"""Native functions: source lookup, compilation in units, and calls with arrays."""

from __future__ import annotations

import ast
import ctypes
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, TypeVar, cast

from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.jit import NativeCode, load_or_compile_module
from livens.engine.lowering.types import BOOL, FLOAT, INT, VOID, NativeType, signature_of, to_slot
from livens.types import ModelFunction

F = TypeVar("F", bound=ModelFunction)
_CTYPES: dict[NativeType, Any] = {INT: ctypes.c_int64, FLOAT: ctypes.c_double, BOOL: ctypes.c_bool, VOID: None}


class NativeFunction:
    """Native function, callable by name from native code and from Python. Calls release the interpreter lock."""

    def __init__(self, function: ModelFunction, fastmath: bool, width: int = 1) -> None:
        self.function, self.fastmath, self.width = function, fastmath, width
        self.name = f"{function.__module__}.{function.__name__}" + (f".{width}" if width > 1 else "")
        functools.update_wrapper(self, function)
        self._unit: tuple[NativeFunction, ...] = (self,)
        self._in_lanes: dict[int, NativeFunction] = {1: self}

    def in_lanes(self, width: int) -> NativeFunction:
        """Return the function with one number per lane in place of each float, in arrays as well.

        Integers are the same in all lanes. A conditional expression with one comparison of floats selects lane by lane.
        The condition of a statement is true if it is true in any lane.
        """
        if width not in self._in_lanes:
            self._in_lanes[width] = NativeFunction(self.function, self.fastmath, width)
        return self._in_lanes[width]

    @functools.cached_property
    def types(self) -> dict[str, NativeType]:
        """Types of the arguments, and of the return value."""
        return dict(signature_of(self.function))

    @functools.cached_property
    def tree(self) -> ast.FunctionDef:
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        return tree

    @functools.cached_property
    def _code(self) -> NativeCode:
        owner = self._unit[0]
        return owner._module if self is owner else owner._code

    @functools.cached_property
    def _module(self) -> NativeCode:
        def text() -> str:
            from livens.engine.lowering.translate import module_ir

            return module_ir(self._unit)

        return load_or_compile_module(source_fingerprint(self._unit), text)

    @functools.cached_property
    def _entry(self) -> tuple[Any, list[tuple[int, NativeType]]]:
        """The ctypes function, and the arguments passed by address."""
        native_types = [native_type for name, native_type in self.types.items() if name != "return"]
        result = _CTYPES[self.types.get("return", VOID)]
        prototype = ctypes.CFUNCTYPE(
            result, *[_CTYPES.get(native_type, ctypes.c_void_p) for native_type in native_types]
        )
        return prototype(self.address), [
            (i, native_type) for i, native_type in enumerate(native_types) if native_type.llvm == "ptr"
        ]

    @property
    def address(self) -> int:
        """Address of the machine code, for calls by native code."""
        return self._code.address_of(self.name)

    def compile(self) -> None:
        """Compile the function."""
        _ = self._entry

    def with_leading(self, *arguments: object) -> Callable[..., Any]:
        """Return the function with its first arguments fixed; further arrays are given by their addresses.

        The conversion of an array takes longer than a short native call. The caller keeps the arrays alive.
        """
        entry, by_address = self._entry
        leading = list(arguments)
        for i, native_type in by_address:
            if i < len(leading):
                leading[i] = to_slot(leading[i], native_type)
        return functools.partial(entry, *leading)

    def __call__(self, *arguments: object) -> bool | int | None:
        entry, by_address = self._entry
        args = list(arguments)
        for i, native_type in by_address:
            args[i] = to_slot(args[i], native_type)
        return entry(*args)


def lowered(function: F) -> F:
    """Compile a function to native code at its first call, or load it from the code cache."""
    return cast(F, NativeFunction(function, fastmath=False))


def fast_lowered(function: F) -> F:
    """Compile as `lowered`, with sums that may be reordered and vectorised."""
    return cast(F, NativeFunction(function, fastmath=True))


def compile_unit(*functions: Any) -> None:
    """Compile functions, and the functions they call, as one unit."""
    for function in functions:
        function._unit = functions


def source_fingerprint(functions: Iterable[NativeFunction]) -> str:
    """Return the fingerprint of functions and their callees: bytecode, constants, struct fields, and the translator.

    Sources are read only if the code cache contains no match.
    """
    queue, parts = list(functions), dict[str, str]()
    while queue:
        function = queue.pop()
        if function.name in parts:
            continue
        code, global_names = function.function.__code__, function.function.__globals__
        constants = []
        for name in code.co_names:
            value = global_names.get(name)
            if isinstance(value, NativeFunction):
                queue.append(value)
            elif isinstance(value, ModuleType):
                attributes = ((attribute, getattr(value, attribute, None)) for attribute in code.co_names)
                constants += [
                    (name, attribute, constant)
                    for attribute, constant in attributes
                    if isinstance(constant, (int, float))
                ]
            elif isinstance(value, (bool, int, float)):
                constants.append((name, "", value))
        signature = [
            (name, native_type.llvm, native_type.element, _struct_fields(native_type))
            for name, native_type in function.types.items()
        ]
        names = code.co_names, code.co_varnames, code.co_consts
        parts[function.name] = (
            f"{function.fastmath} {function.width} {code.co_code.hex()} {names} {constants} {signature}"
        )
    return f"{codegen_fingerprint()} {sys.version} {sorted(parts.items())}"


def _struct_fields(native_type: NativeType) -> list[Any]:
    """Return the fields of a struct, and of structs in it."""
    if native_type.struct is None:
        return []
    return [
        (name, field.llvm, field.element, _struct_fields(field))
        for name, field in signature_of(native_type.struct).items()
    ]


def is_compiled(function: NativeFunction) -> bool:
    """Return True if the code of a function is in memory."""
    return "_entry" in function.__dict__
