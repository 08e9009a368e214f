"""IR builder of one lowered function: values, stack slots, basic blocks, loads and stores."""

from __future__ import annotations

import ast

from livens.engine.codegen.ir_emitter import literal
from livens.engine.lowering.function import NativeFunction
from livens.engine.lowering.types import (
    BOOL,
    FLOAT,
    INT,
    QUAD,
    NativeType,
    lanes_type,
    lanes_vector_type,
    mask_type,
)

#: Name of an SSA value, or a literal, and its type.
Value = tuple[str, NativeType]
_SIZES = {"double": 8, "i64": 8, "i32": 4}


class FunctionBuilder:
    """IR text of one function under construction."""

    def __init__(self, function: NativeFunction) -> None:
        self.function = function
        self.called: list[NativeFunction] = []
        self._globals = function.function.__globals__
        self._flags = " reassoc contract" if function.fastmath else ""
        # types of a float, of a vector of space and of a condition on floats
        self._width = width = function.width
        self._float, self._vector, self._mask = FLOAT, QUAD, BOOL
        self._plain_attributes, self._align = "#0", 8
        if width > 1:
            self._plain_attributes, self._align = "#2", 8 * width
            self._float, self._vector, self._mask = lanes_type(width), lanes_vector_type(width), mask_type(width)
        self._stack: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._locals: dict[str, Value] = {}
        self._loop_targets: list[tuple[str, str]] = []  # labels of `continue` and `break`
        self._block_open = True  # the current block has no terminator yet

    def _error(self, node: ast.AST, message: str) -> TypeError:
        return TypeError(f"{self.function.name}, line {getattr(node, 'lineno', 0)}: {message}")

    # -- text ---------------------------------------------------------------------------------------------------------
    def _emit(self, text: str) -> str:
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"{name} = {text}")
        return name

    def _alloca(self, native_type: NativeType, name: str = "room") -> str:
        self._count += 1
        address = f"%{name}.{self._count}"
        self._stack.append(f"{address} = alloca {native_type.llvm}")
        return address

    def _new_labels(self, *names: str) -> list[str]:
        self._count += 1
        return [f"{name}{self._count}" for name in names]

    def _jump(self, label: str) -> None:
        if self._block_open:
            self._lines.append(f"br label %{label}")
        self._block_open = False

    def _start_block(self, label: str) -> None:
        self._jump(label)
        self._lines.append(f"{label}:")
        self._block_open = True

    def _cond_branch(self, condition: str, yes: str, no: str) -> None:
        self._lines.append(f"br i1 {condition}, label %{yes}, label %{no}")
        self._block_open = False

    # -- memory -------------------------------------------------------------------------------------------------------
    def _store_local(self, name: str, value: Value) -> None:
        if value[1] is FLOAT:  # a uniform number may become one per lane
            value = self._convert(value, self._float), self._float
        if name not in self._locals:
            self._locals[name] = self._alloca(value[1], name), value[1]
        address, native_type = self._locals[name]
        self._lines.append(f"store {native_type.llvm} {self._convert(value, native_type)}, ptr {address}")

    def _stored(self, element: str) -> str:
        """Return the type of one entry of an array in memory."""
        return self._float.llvm if element == "double" else element

    def _load(self, address: str, element: str) -> Value:
        if element == "double":
            return self._emit(f"load {self._float.llvm}, ptr {address}, align {self._align}"), self._float
        loaded = self._emit(f"load {element}, ptr {address}, align {_SIZES[element]}")
        if element == "i32":
            return self._emit(f"zext i32 {loaded} to i64"), INT
        return loaded, INT

    def _store_entry(self, address: str, element: str, value: Value) -> None:
        operand = self._convert(value, self._float if element == "double" else INT)
        if element == "i32":
            operand = self._emit(f"trunc i64 {operand} to i32")
        align = self._align if element == "double" else _SIZES[element]
        self._lines.append(f"store {self._stored(element)} {operand}, ptr {address}, align {align}")

    # -- types --------------------------------------------------------------------------------------------------------
    def _convert(self, value: Value, native_type: NativeType) -> str:
        """Convert a value to a type; integers convert to floats."""
        operand, source_type = value
        if source_type == native_type or (
            source_type.llvm == native_type.llvm == "ptr" and source_type.struct is native_type.struct
        ):
            return operand
        if native_type == QUAD:
            return self._broadcast(self._convert(value, FLOAT), 4)
        if self._width > 1 and native_type == self._vector:
            lanes = self._convert(value, self._float)
            return self._pack([lanes, lanes, lanes])
        if self._width > 1 and native_type == self._float:
            return self._broadcast(self._convert(value, FLOAT), self._width)
        if source_type is INT and native_type is FLOAT:
            if operand.lstrip("-").isdigit():
                return literal(float(operand))
            return self._emit(f"sitofp i64 {operand} to double")
        if source_type is BOOL and native_type is INT:
            return self._emit(f"zext i1 {operand} to i64")
        if source_type is BOOL and native_type is FLOAT:
            return self._emit(f"uitofp i1 {operand} to double")
        raise TypeError(f"{self.function.name}: got a value of type {source_type}, expected {native_type}")

    def _broadcast(self, scalar: str, n: int) -> str:
        """Return a vector of n equal numbers."""
        first = self._emit(f"insertelement <{n} x double> undef, double {scalar}, i64 0")
        return self._emit(f"shufflevector <{n} x double> {first}, <{n} x double> undef, <{n} x i32> zeroinitializer")

    def _pack(self, components: list[str]) -> str:
        """Return a vector of space per lane from its components."""
        vector = "undef"
        for i, component in enumerate(components):
            vector = self._emit(f"insertvalue {self._vector.llvm} {vector}, {self._float.llvm} {component}, {i}")
        return vector

    def _unpack(self, vector: str) -> list[str]:
        """Return the components of a vector of space per lane."""
        return [self._emit(f"extractvalue {self._vector.llvm} {vector}, {i}") for i in range(3)]

    def _to_truth(self, value: Value) -> Value:
        """Return a value as a condition: one per lane for floats and conditions in lanes, else a single one."""
        operand, native_type = value
        if self._width > 1 and native_type == self._mask:
            return value
        if self._width > 1 and native_type == self._float:
            zero = self._convert(("0", INT), native_type)
            return self._emit(f"fcmp une {native_type.llvm} {operand}, {zero}"), self._mask
        if native_type is BOOL:
            return value
        if native_type is FLOAT:
            return self._emit(f"fcmp une double {operand}, {literal(0.0)}"), BOOL
        return self._emit(f"icmp ne i64 {self._convert(value, INT)}, 0"), BOOL

    def _to_bool(self, value: Value) -> str:
        """Return a value as a single condition: true in any lane."""
        truth, native_type = self._to_truth(value)
        if native_type is BOOL:
            return truth
        bits = self._emit(f"bitcast {native_type.llvm} {truth} to i{self._width}")
        return self._emit(f"icmp ne i{self._width} {bits}, 0")

    def _all_true(self, native_type: NativeType) -> str:
        """Return a condition that is true, in every lane if there is one per lane."""
        return "true" if native_type is BOOL else f"<{', '.join(['i1 true'] * self._width)}>"

    def _not(self, truth: Value) -> Value:
        """Return the negation of a condition."""
        operand, native_type = truth
        return self._emit(f"xor {native_type.llvm} {operand}, {self._all_true(native_type)}"), native_type

    def _pointer(self, value: Value) -> str:
        return self._emit(f"inttoptr i64 {value[0]} to ptr") if value[1] is INT else value[0]
