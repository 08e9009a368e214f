"""LLVM IR emitter for straight-line functions: translation of expression graphs to native code.

The same graph is emitted for any number of SIMD lanes. With a width of 8, every value is a vector of eight doubles, one
for each of eight trajectories, and entry i of an array is eight contiguous doubles.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import casadi as ca

from livens.engine.codegen.instruction_schedule import schedule
from livens.engine.codegen.jit import vector_library_width
from livens.expressions.graph.interpreter import interpret
from livens.expressions.graph.roundoff import LIBM_OPS
from livens.lookup_tables import LOOKUP_OPERATION, registered_tables, symbol_name

_ARITHMETIC = {"ADD": "fadd", "SUB": "fsub", "MUL": "fmul", "DIV": "fdiv"}
_INTRINSIC = {
    "SQRT": "sqrt",
    "FABS": "fabs",
    "FLOOR": "floor",
    "CEIL": "ceil",
    "FMIN": "minnum",
    "FMAX": "maxnum",
    "COPYSIGN": "copysign",
}
_COMPARE = {"LT": "olt", "LE": "ole", "EQ": "oeq", "NE": "une"}
#: Largest exponent of integer powers that are expanded to products; above, `pow` is as fast and more accurate.
_MAX_EXPANDED_POWER = 16
#: Functions of glibc's vector library, and its letters for vectors of two, four and eight doubles.
_VECTORISED = frozenset(
    "sin cos tan exp log pow asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf log1p expm1 hypot".split()
)
_VECTOR_LETTER = {2: "b", 4: "d", 8: "e"}
#: Lines per basic block of code that is compiled without optimisation.
_BLOCK_LINES = 300
#: Compiler barrier: forces reloads from memory instead of register spills. Emits no instruction.
_BARRIER = 'call void asm sideeffect "", "~{memory}"()'


def literal(value: float) -> str:
    """Return a double as an LLVM literal, bit for bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


ZERO, ONE, MINUS_ONE = literal(0.0), literal(1.0), literal(-1.0)


class Emitter:
    """IR emitter of one function ``void name(double*, ...)``. A value is the name of an SSA register or a literal.

    Equal instructions are emitted once (common subexpression elimination). With `anchor`, instructions are scheduled
    at their first use instead of the order of emission.
    """

    def __init__(self, name: str, n_pointers: int, width: int = 1) -> None:
        self.name, self.n_pointers, self.width = name, n_pointers, width
        self.type = "double" if width == 1 else f"<{width} x double>"
        self.mask_type = "i1" if width == 1 else f"<{width} x i1>"
        self.lines: list[str | tuple[str, str]] = []
        #: Run-invariant values: divisions by them become multiplications by their reciprocals.
        self.invariant: set[str] = set()
        self._suffix = "f64" if width == 1 else f"v{width}f64"
        self._align = 8 * min(8, width)
        self._emitted: dict[str, str] = {}
        self._declared: dict[str, str] = {}
        self._count = 0

    # -- memory and order ---------------------------------------------------------------------------------------------
    def address(self, pointer: int, index: int) -> str:
        """Return the address of an entry."""
        return self.emit(f"getelementptr inbounds double, ptr %a{pointer}, i64 {index * self.width}")

    def load(self, pointer: int, index: int, reload: bool = False) -> str:
        """Load an entry of an array; `reload` an entry that this function has stored."""
        mark = " ; again" if reload else ""
        return self.emit(f"load {self.type}, ptr {self.address(pointer, index)}, align {self._align}{mark}")

    def store(self, value: str, pointer: int, index: int) -> None:
        address = self.address(pointer, index)
        self.lines.append(f"store {self.type} {self.operand(value)}, ptr {address}, align {self._align}")

    def inputs(self, pointer: int, size: int, offset: int = 0) -> Sequence[str]:
        """Return the entries of an array as lazy loads."""
        return _LazyLoads(self, pointer, offset, size)

    def anchor(self, *values: str) -> None:
        """Schedule these values here; all other values are emitted at their first use."""
        self.lines += [("anchor", value) for value in values if value.startswith("%")]

    def barrier(self, drop_values: bool = False) -> None:
        """Force reloads after this point; with `drop_values`, computed values are not reused across it either."""
        self._emitted = {} if drop_values else {k: v for k, v in self._emitted.items() if not k.startswith("load")}
        self.lines.append(_BARRIER)

    # -- values -------------------------------------------------------------------------------------------------------
    def operand(self, a: str) -> str:
        """Return a value as an operand: a literal is broadcast to all lanes."""
        if self.width == 1 or not a.startswith("0x"):
            return a
        return "<" + ", ".join([f"double {a}"] * self.width) + ">"

    def emit(self, text: str) -> str:
        """Return the value of an instruction; equal instructions are emitted once."""
        name = self._emitted.get(text)
        if name is None:
            self._count += 1
            name = self._emitted[text] = f"%{self._count}"
            self.lines.append(f"{name} = {text}")
        return name

    def call(self, function: str, llvm_type: str, *operands: str) -> str:
        """Call a function whose operands and return value have the same type."""
        self._declared[function] = f"declare {llvm_type} @{function}({', '.join([llvm_type] * len(operands))}) #0"
        return self.emit(f"call {llvm_type} @{function}({', '.join(f'{llvm_type} {a}' for a in operands)})")

    def reduce(self, function: str, llvm_type: str, vector: str, operand: str) -> str:
        """Call a horizontal reduction of a vector to a scalar."""
        self._declared[function] = f"declare {llvm_type} @{function}({vector}) #0"
        return self.emit(f"call {llvm_type} @{function}({vector} {operand})")

    def intrinsic(self, name: str, *operands: str) -> str:
        return self.call(f"llvm.{name}.{self._suffix}", self.type, *(self.operand(a) for a in operands))

    def binary(self, operation: str, a: str, b: str) -> str:
        return self.emit(f"{operation} contract {self.type} {self.operand(a)}, {self.operand(b)}")

    def add(self, a: str, b: str) -> str:
        return self.binary("fadd", a, b)

    def sub(self, a: str, b: str) -> str:
        return self.binary("fsub", a, b)

    def mul(self, a: str, b: str) -> str:
        return self.binary("fmul", a, b)

    def fneg(self, a: str) -> str:
        return self.emit(f"fneg {self.type} {self.operand(a)}")

    def fabs(self, a: str) -> str:
        return self.intrinsic("fabs", a)

    def reciprocal(self, a: str) -> str:
        return self.emit(f"fdiv {self.type} {self.operand(ONE)}, {self.operand(a)}")

    def fnmadd(self, c: str, a: str, b: str) -> str:
        """Return ``c - a*b``, fused where the machine has FMA."""
        return self.intrinsic("fmuladd", self.fneg(a), b, c)

    def compare(self, relation: str, a: str, b: str) -> str:
        return self.emit(f"fcmp {relation} {self.type} {self.operand(a)}, {self.operand(b)}")

    def logical_and(self, a: str, b: str) -> str:
        """Return the conjunction of two masks; an empty mask is true."""
        return self.emit(f"and {self.mask_type} {a}, {b}") if a and b else a or b

    def select(self, mask: str, a: str, b: str) -> str:
        return self.emit(
            f"select {self.mask_type} {mask}, {self.type} {self.operand(a)}, {self.type} {self.operand(b)}"
        )

    def fmax(self, a: str, b: str) -> str:
        """Return the larger of two numbers by one machine instruction (`b` if either is NaN)."""
        return self.select(self.compare("ogt", a, b), a, b)

    def to_bool(self, a: str) -> str:
        return self.compare("une", a, ZERO)

    def to_double(self, mask: str) -> str:
        return self.emit(f"uitofp {self.mask_type} {mask} to {self.type}")

    def table_entry(self, index: str, number: str) -> str:
        """Load an entry of a look-up table, lane by lane."""
        value = literal_value(number)
        assert value is not None
        table = symbol_name(value)
        self._declared[table] = f"@{table} = external global double"
        vector = "poison"
        for lane in range(self.width):
            entry = (
                index if self.width == 1 else self.emit(f"extractelement {self.type} {self.operand(index)}, i32 {lane}")
            )
            at = self.emit(f"fptosi double {entry} to i64")
            address = self.emit(f"getelementptr inbounds double, ptr @{table}, i64 {at}")
            scalar = self.emit(f"load double, ptr {address}, align 8")
            if self.width == 1:
                return scalar
            vector = self.emit(f"insertelement {self.type} {vector}, double {scalar}, i32 {lane}")
        return vector

    # -- library functions --------------------------------------------------------------------------------------------
    def library(self, function: str, *operands: str) -> str:
        """Call a function of the mathematical library: vectorised if available, else lane by lane."""
        if self.width == 1:
            return self.call(function, "double", *operands)
        subwidth = min(self.width, vector_library_width())
        if subwidth > 1 and function in _VECTORISED:
            name = f"_ZGV{_VECTOR_LETTER[subwidth]}N{subwidth}{'v' * len(operands)}_{function}"
            return self._by_subvectors(
                subwidth, lambda *parts: self.call(name, f"<{subwidth} x double>", *parts), operands
            )
        vector = "poison"
        for lane in range(self.width):
            parts = [self.emit(f"extractelement {self.type} {self.operand(a)}, i32 {lane}") for a in operands]
            scalar = self.call(function, "double", *parts)
            vector = self.emit(f"insertelement {self.type} {vector}, double {scalar}, i32 {lane}")
        return vector

    def _by_subvectors(self, subwidth: int, function: Callable[..., str], operands: Sequence[str]) -> str:
        """Apply a function of narrower vectors to wider ones."""
        wide = [self.operand(a) for a in operands]
        if subwidth == self.width:
            return function(*wide)
        parts = []
        for start in range(0, self.width, subwidth):
            lanes = _mask(range(start, start + subwidth))
            subvectors = [self.emit(f"shufflevector {self.type} {a}, {self.type} poison, {lanes}") for a in wide]
            parts.append(function(*subvectors))
        while len(parts) > 1:
            llvm_type, lanes = f"<{subwidth} x double>", _mask(range(2 * subwidth))
            parts = [
                self.emit(f"shufflevector {llvm_type} {a}, {llvm_type} {b}, {lanes}")
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            subwidth *= 2
        return parts[0]

    # -- graphs -------------------------------------------------------------------------------------------------------
    def _power(self, a: str, n: int) -> str:
        if n < 0:
            return self.reciprocal(self._power(a, -n))
        if n == 0:
            return ONE
        if n == 1:
            return a
        half = self._power(a, n // 2)
        square = self.mul(half, half)
        return self.mul(square, a) if n % 2 else square

    def _divide(self, a: str, b: str) -> str:
        if b in self.invariant:
            return self.mul(a, self._mark_invariant(self.reciprocal(b), b))
        return self.binary("fdiv", a, b)

    def _mark_invariant(self, result: str, *operands: str) -> str:
        """Mark a value as run-invariant if all its operands are."""
        if all(a in self.invariant or a.startswith("0x") for a in operands):
            self.invariant.add(result)
        return result

    def lower_op(self, name: str, a: str, b: str = "") -> str:
        """Lower one operation of an expression graph."""
        if name == "DIV":
            return self._mark_invariant(self._divide(a, b), a, b)
        if name in _ARITHMETIC:
            return self._mark_invariant(self.binary(_ARITHMETIC[name], a, b), a, b)
        if name in _INTRINSIC:
            return self.intrinsic(_INTRINSIC[name], *((a, b) if b else (a,)))
        if name == "ASSIGN":
            return a
        if name == "NEG":
            return self.fneg(a)
        if name == "SQ":
            return self._mark_invariant(self.mul(a, a), a)
        if name == "TWICE":
            return self._mark_invariant(self.add(a, a), a)
        if name == "INV":
            return self._mark_invariant(self.reciprocal(a), a)
        if name in ("POW", "CONSTPOW"):
            exponent = literal_value(b)
            if exponent is not None and exponent == int(exponent) and abs(exponent) <= _MAX_EXPANDED_POWER:
                return self._power(a, int(exponent))
            return self.library("pow", a, b)
        if name in LIBM_OPS:
            return self.library(name.lower(), *((a, b) if b else (a,)))
        if name in _COMPARE:
            return self.to_double(self.compare(_COMPARE[name], a, b))
        if name == "NOT":
            return self.to_double(self.compare("oeq", a, ZERO))
        if name in ("AND", "OR"):
            return self.to_double(self.emit(f"{name.lower()} {self.mask_type} {self.to_bool(a)}, {self.to_bool(b)}"))
        if name == "IF_ELSE_ZERO":
            return self.select(self.to_bool(a), b, ZERO)
        if name == LOOKUP_OPERATION:
            return self.table_entry(a, b)
        if name == "SIGN":
            below = self.select(self.compare("olt", a, ZERO), MINUS_ONE, a)
            return self.select(self.compare("ogt", a, ZERO), ONE, below)
        raise ValueError(f"the operation '{name.lower()}' cannot be compiled to native code")

    def graph(self, function: ca.Function, inputs: Sequence[Sequence[str]]) -> list[list[str]]:
        """Lower an expression graph; ``inputs[i]`` are the values of its input i."""
        return interpret(function, inputs, literal, self.lower_op)

    def to_ir(self, split_blocks: bool = False) -> str:
        """Return the IR of the function; `split_blocks` shortens compilation without optimisation."""
        arguments = ", ".join(f"ptr noalias %a{i}" for i in range(self.n_pointers))
        declared = "\n".join(self._declared[f] for f in sorted(self._declared))
        body = "\n".join(_in_blocks(schedule(self.lines)) if split_blocks else schedule(self.lines))
        # without stackrealign, vectors are spilled across cache lines, which costs a quarter of the time
        attributes = "nounwind" if self.width == 1 else 'nounwind "stackrealign" "prefer-vector-width"="512"'
        return (
            f"{declared}\ndefine void @{self.name}({arguments}) #1 {{\n{body}\nret void\n}}\n"
            f"attributes #0 = {{ nounwind memory(none) willreturn }}\nattributes #1 = {{ {attributes} }}\n"
        )


def inline_tables(text: str) -> str:
    """Return the IR with the values of its look-up tables instead of references to the memory of this process."""
    for table in registered_tables():
        if table.symbol in text:
            values = ", ".join(f"double {literal(x)}" for x in table.values)
            constant = f"private constant [{table.values.size} x double] [{values}]"
            text = text.replace(f"@{table.symbol} = external global double", f"@{table.symbol} = {constant}")
    return text


def _in_blocks(lines: Sequence[str]) -> list[str]:
    """Split lines into basic blocks connected by unconditional branches."""
    result: list[str] = []
    for start in range(0, len(lines), _BLOCK_LINES):
        result += [f"br label %block{start}", f"block{start}:"] if start else []
        result += lines[start : start + _BLOCK_LINES]
    return result


class _LazyLoads(Sequence[str]):
    """Nonzeros of an input, loaded at first access."""

    def __init__(self, emitter: Emitter, pointer: int, offset: int, size: int) -> None:
        self._emitter, self._pointer, self._offset, self._size = emitter, pointer, offset, size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._emitter.load(self._pointer, self._offset + index)


def _mask(lanes: range) -> str:
    return f"<{len(lanes)} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"


def literal_value(operand: str) -> float | None:
    """Return the number of a literal, or None for a register."""
    if not operand.startswith("0x"):
        return None
    return float(struct.unpack("<d", struct.pack("<Q", int(operand, 16)))[0])
