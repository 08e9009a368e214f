"""Native functions: source lookup, compilation in units, and calls with arrays."""

from __future__ import annotations

import ast
import ctypes
import functools
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from livens.engine.lowering.kinds import BOOL, FLOAT, INT, NOTHING, Kind, kinds_of, slot
from livens.engine.native import Code, find_or_compile_library

F = TypeVar("F", bound=Callable[..., Any])
_C: dict[Kind, Any] = {INT: ctypes.c_int64, FLOAT: ctypes.c_double, BOOL: ctypes.c_bool, NOTHING: None}


class Lowered:
    """Native function, callable by name from native code and from Python. Calls release the interpreter lock."""

    def __init__(self, function: Callable[..., Any], fast: bool) -> None:
        self.function, self.fast = function, fast
        self.name = f"{function.__module__}.{function.__name__}"
        functools.update_wrapper(self, function)
        self._together: tuple[Lowered, ...] = (self,)

    @functools.cached_property
    def kinds(self) -> dict[str, Kind]:
        """Types of the arguments, and of the return value."""
        return dict(kinds_of(self.function))

    @functools.cached_property
    def tree(self) -> ast.FunctionDef:
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        return tree

    @functools.cached_property
    def _code(self) -> Code:
        first = self._together[0]
        return first._library if self is first else first._code

    @functools.cached_property
    def _library(self) -> Code:
        def text() -> str:
            from livens.engine.lowering.translate import library

            return library(self._together)

        return find_or_compile_library(fingerprint(self._together), text)

    @functools.cached_property
    def _entry(self) -> tuple[Any, list[tuple[int, Kind]]]:
        """The ctypes function, and the arguments passed by address."""
        kinds = [kind for name, kind in self.kinds.items() if name != "return"]
        result = _C[self.kinds.get("return", NOTHING)]
        prototype = ctypes.CFUNCTYPE(result, *[_C.get(kind, ctypes.c_void_p) for kind in kinds])
        return prototype(self.address), [(i, kind) for i, kind in enumerate(kinds) if kind.llvm == "ptr"]

    @property
    def address(self) -> int:
        """Address of the machine code, for calls by native code."""
        return self._code.address_of(self.name)

    def compile(self) -> None:
        """Compile the function."""
        _ = self._entry

    def __call__(self, *arguments: Any) -> Any:
        entry, by_address = self._entry
        given = list(arguments)
        for i, kind in by_address:
            given[i] = slot(given[i], kind)
        return entry(*given)


def lowered(function: F) -> F:
    """Compile a function to native code at its first call, or load it from the code cache."""
    return cast(F, Lowered(function, fast=False))


def fast_lowered(function: F) -> F:
    """Compile as `lowered`, with sums that may be reordered and vectorised."""
    return cast(F, Lowered(function, fast=True))


def together(*functions: Any) -> None:
    """Compile functions, and the functions they call, as one unit."""
    for function in functions:
        function._together = functions


def fingerprint(functions: Iterable[Lowered]) -> str:
    """Return the fingerprint of functions and their callees: bytecode, constants, struct fields, and the translator.

    Sources are read only if the code cache contains no match.
    """
    waiting, told = list(functions), dict[str, str]()
    while waiting:
        one = waiting.pop()
        if one.name in told:
            continue
        code, known = one.function.__code__, one.function.__globals__
        constants = []
        for name in code.co_names:
            value = known.get(name)
            if isinstance(value, Lowered):
                waiting.append(value)
            elif isinstance(value, ModuleType):
                inside = ((word, getattr(value, word, None)) for word in code.co_names)
                constants += [(name, word, number) for word, number in inside if isinstance(number, (int, float))]
            elif isinstance(value, (bool, int, float)):
                constants.append((name, "", value))
        kinds = [(name, kind.llvm, kind.element, _fields(kind)) for name, kind in one.kinds.items()]
        words = code.co_names, code.co_varnames, code.co_consts
        told[one.name] = f"{one.fast} {code.co_code.hex()} {words} {constants} {kinds}"
    return f"{translators()} {sys.version} {sorted(told.items())}"


def _fields(kind: Kind) -> list[Any]:
    """Return the fields of a struct, and of structs in it."""
    if kind.record is None:
        return []
    return [(name, field.llvm, field.element, _fields(field)) for name, field in kinds_of(kind.record).items()]


@functools.cache
def translators() -> str:
    """Return the fingerprint of the translator modules: a new version may generate other code."""
    here = Path(__file__).parent
    files = [*sorted(here.glob("*.py")), here.parent / "emit.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def ready(function: Any) -> bool:
    """Return True if the code of a function is in memory."""
    return "_entry" in function.__dict__
