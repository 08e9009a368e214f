"""IR builder of one lowered function: values, stack slots, basic blocks, loads and stores."""

from __future__ import annotations

import ast

from livens.engine.emit import literal
from livens.engine.lowering.function import Lowered
from livens.engine.lowering.kinds import BOOL, FLOAT, INT, Kind

#: Name of an SSA value, or a literal, and its type.
Value = tuple[str, Kind]
_SIZES = {"double": 8, "i64": 8, "i32": 4}


class Lines:
    """IR text of one function under construction."""

    def __init__(self, function: Lowered) -> None:
        self.function = function
        self.called: list[Lowered] = []
        self._globals = function.function.__globals__
        self._flags = " reassoc contract" if function.fast else ""
        self._stack: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._locals: dict[str, Value] = {}
        self._loops: list[tuple[str, str]] = []  # labels of `continue` and `break`
        self._open = True  # the current block has no terminator yet

    def _error(self, node: ast.AST, what: str) -> TypeError:
        return TypeError(f"{self.function.name}, line {getattr(node, 'lineno', 0)}: {what}")

    # -- text ---------------------------------------------------------------------------------------------------------
    def _value(self, text: str) -> str:
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"{name} = {text}")
        return name

    def _room(self, kind: Kind, name: str = "room") -> str:
        self._count += 1
        place = f"%{name}.{self._count}"
        self._stack.append(f"{place} = alloca {kind.llvm}")
        return place

    def _labels(self, *names: str) -> list[str]:
        self._count += 1
        return [f"{name}{self._count}" for name in names]

    def _go(self, label: str) -> None:
        if self._open:
            self._lines.append(f"br label %{label}")
        self._open = False

    def _begin(self, label: str) -> None:
        self._go(label)
        self._lines.append(f"{label}:")
        self._open = True

    def _branch(self, condition: str, yes: str, no: str) -> None:
        self._lines.append(f"br i1 {condition}, label %{yes}, label %{no}")
        self._open = False

    # -- memory -------------------------------------------------------------------------------------------------------
    def _set(self, name: str, value: Value) -> None:
        if name not in self._locals:
            self._locals[name] = self._room(value[1], name), value[1]
        place, kind = self._locals[name]
        self._lines.append(f"store {kind.llvm} {self._as(value, kind)}, ptr {place}")

    def _load(self, place: str, element: str) -> Value:
        found = self._value(f"load {element}, ptr {place}, align {_SIZES[element]}")
        if element == "i32":
            return self._value(f"zext i32 {found} to i64"), INT
        return found, FLOAT if element == "double" else INT

    def _put(self, place: str, element: str, value: Value) -> None:
        given = self._as(value, FLOAT if element == "double" else INT)
        if element == "i32":
            given = self._value(f"trunc i64 {given} to i32")
        self._lines.append(f"store {element} {given}, ptr {place}, align {_SIZES[element]}")

    # -- types --------------------------------------------------------------------------------------------------------
    def _as(self, value: Value, kind: Kind) -> str:
        """Convert a value to a type; integers convert to floats."""
        given, own = value
        if own == kind or (own.llvm == kind.llvm == "ptr" and own.record is kind.record):
            return given
        if own is INT and kind is FLOAT:
            if given.lstrip("-").isdigit():
                return literal(float(given))
            return self._value(f"sitofp i64 {given} to double")
        if own is BOOL and kind is INT:
            return self._value(f"zext i1 {given} to i64")
        if own is BOOL and kind is FLOAT:
            return self._value(f"uitofp i1 {given} to double")
        raise TypeError(f"{self.function.name}: got a value of type {own}, expected {kind}")

    def _truth(self, value: Value) -> str:
        given, kind = value
        if kind is BOOL:
            return given
        if kind is FLOAT:
            return self._value(f"fcmp une double {given}, {literal(0.0)}")
        return self._value(f"icmp ne i64 {self._as(value, INT)}, 0")

    def _pointer(self, value: Value) -> str:
        return self._value(f"inttoptr i64 {value[0]} to ptr") if value[1] is INT else value[0]
