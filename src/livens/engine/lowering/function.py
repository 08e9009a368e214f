"""Functions that are lowered: found by their source, compiled together, called with arrays."""

from __future__ import annotations

import ast
import ctypes
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar, cast

from livens.engine.lowering.kinds import BOOL, FLOAT, INT, NOTHING, Kind, kinds_of, slot
from livens.engine.native import Code, compile_library

F = TypeVar("F", bound=Callable[..., Any])
_C: dict[Kind, Any] = {INT: ctypes.c_int64, FLOAT: ctypes.c_double, BOOL: ctypes.c_bool, NOTHING: None}


class Lowered:
    """A function that native code calls by its name, and Python as any other. It lets other threads work."""

    def __init__(self, function: Callable[..., Any], fast: bool) -> None:
        self.function, self.fast = function, fast
        self.name = f"{function.__module__}.{function.__name__}"
        functools.update_wrapper(self, function)
        self._together: tuple[Lowered, ...] = (self,)

    @functools.cached_property
    def kinds(self) -> dict[str, Kind]:
        """Kinds of the arguments, and of what is returned."""
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
        from livens.engine.lowering.translate import library

        return compile_library(library(self._together))

    @functools.cached_property
    def _entry(self) -> tuple[Any, list[tuple[int, Kind]]]:
        """The function, and which of its arguments are given by their addresses."""
        kinds = [kind for name, kind in self.kinds.items() if name != "return"]
        result = _C[self.kinds.get("return", NOTHING)]
        prototype = ctypes.CFUNCTYPE(result, *[_C.get(kind, ctypes.c_void_p) for kind in kinds])
        return prototype(self.address), [(i, kind) for i, kind in enumerate(kinds) if kind.llvm == "ptr"]

    @property
    def address(self) -> int:
        """Where its code is, for native code that calls it."""
        return self._code.address_of(self.name)

    def compile(self) -> None:
        """See to it that there is code."""
        _ = self._entry

    def __call__(self, *arguments: Any) -> Any:
        entry, by_address = self._entry
        given = list(arguments)
        for i, kind in by_address:
            given[i] = slot(given[i], kind)
        return entry(*given)


def lowered(function: F) -> F:
    """Compile a function when it is first called, or take it from where code is kept."""
    return cast(F, Lowered(function, fast=False))


def fast_lowered(function: F) -> F:
    """As `lowered`, for sums whose terms may be taken in another order, several at a time."""
    return cast(F, Lowered(function, fast=True))


def together(*functions: Any) -> None:
    """Compile these functions, and what they call, at one time."""
    for function in functions:
        function._together = functions


def ready(function: Any) -> bool:
    """Whether there is code of a function in memory."""
    return "_entry" in function.__dict__
