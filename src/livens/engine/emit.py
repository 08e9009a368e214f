"""LLVM text for a straight-line function: the algebra that turns an expression graph into native code."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import casadi as ca

from livens.expressions.graph.walk import walk

_ARITHMETIC = {"ADD": "fadd", "SUB": "fsub", "MUL": "fmul", "DIV": "fdiv"}
_INTRINSIC = {
    "SQRT": "llvm.sqrt.f64", "FABS": "llvm.fabs.f64", "FLOOR": "llvm.floor.f64", "CEIL": "llvm.ceil.f64",
    "FMIN": "llvm.minnum.f64", "FMAX": "llvm.maxnum.f64", "COPYSIGN": "llvm.copysign.f64",
}  # fmt: skip
_LIBM = {
    name: name.lower()
    for name in (
        "EXP LOG SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH ATANH ATAN2 POW ERF LOG1P EXPM1 HYPOT FMOD "
        "REMAINDER"
    ).split()
}
_COMPARE = {"LT": "olt", "LE": "ole", "EQ": "oeq", "NE": "une"}
#: Integer powers up to this exponent become products; beyond, the library's pow is as fast and more accurate.
_LARGEST_PRODUCT = 16


def literal(value: float) -> str:
    """A double as LLVM writes it, bit for bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


ZERO, ONE, MINUS_ONE = literal(0.0), literal(1.0), literal(-1.0)


class Emitter:
    """Writes one function ``void name(double*, ...)`` as text. A value is the name of an SSA register or a literal.

    Equal instructions are written once, so the graph need not be free of repetitions.
    """

    def __init__(self, name: str, pointers: int) -> None:
        self.name = name
        self.pointers = pointers
        self.lines: list[str] = []
        self._known: dict[str, str] = {}
        self._declared: dict[str, str] = {}
        self._count = 0

    # -- memory ---------------------------------------------------------------------------------------------------
    def _slot(self, pointer: int, index: int) -> str:
        return self._value(f"getelementptr inbounds double, ptr %a{pointer}, i64 {index}")

    def load(self, pointer: int, index: int) -> str:
        return self._value(f"load double, ptr {self._slot(pointer, index)}, align 8")

    def store(self, value: str, pointer: int, index: int) -> None:
        self.lines.append(f"store double {value}, ptr {self._slot(pointer, index)}, align 8")

    # -- values ---------------------------------------------------------------------------------------------------
    def _value(self, text: str) -> str:
        known = self._known.get(text)
        if known is None:
            self._count += 1
            known = self._known[text] = f"%{self._count}"
            self.lines.append(f"{known} = {text}")
        return known

    def _call(self, function: str, *operands: str) -> str:
        self._declared[function] = ", ".join(["double"] * len(operands))
        return self._value(f"call double @{function}({', '.join('double ' + a for a in operands)})")

    def _truth(self, a: str) -> str:
        return self._value(f"fcmp une double {a}, {ZERO}")

    def _number(self, bit: str) -> str:
        return self._value(f"uitofp i1 {bit} to double")

    def fneg(self, a: str) -> str:
        return self._value(f"fneg double {a}")

    def mul(self, a: str, b: str) -> str:
        return self._value(f"fmul contract double {a}, {b}")

    def reciprocal(self, a: str) -> str:
        return self._value(f"fdiv double {ONE}, {a}")

    def minus_product(self, c: str, a: str, b: str) -> str:
        """``c - a*b``, in one rounding where the machine can."""
        return self._call("llvm.fmuladd.f64", self.fneg(a), b, c)

    def larger(self, a: str, b: str) -> str:
        """The larger of two numbers in one machine instruction (`b` if either is NaN)."""
        return self._value(f"select i1 {self._value(f'fcmp ogt double {a}, {b}')}, double {a}, double {b}")

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

    def apply(self, name: str, a: str, b: str = "") -> str:
        """One instruction of an expression graph."""
        if name in _ARITHMETIC:
            return self._value(f"{_ARITHMETIC[name]} contract double {a}, {b}")
        if name in _INTRINSIC:
            return self._call(_INTRINSIC[name], *((a, b) if b else (a,)))
        if name == "ASSIGN":
            return a
        if name == "NEG":
            return self.fneg(a)
        if name == "SQ":
            return self.mul(a, a)
        if name == "TWICE":
            return self._value(f"fadd double {a}, {a}")
        if name == "INV":
            return self.reciprocal(a)
        if name in ("POW", "CONSTPOW"):
            exponent = _as_number(b)
            if exponent is not None and exponent == int(exponent) and abs(exponent) <= _LARGEST_PRODUCT:
                return self._power(a, int(exponent))
            return self._call("pow", a, b)
        if name in _LIBM:
            return self._call(_LIBM[name], *((a, b) if b else (a,)))
        if name in _COMPARE:
            return self._number(self._value(f"fcmp {_COMPARE[name]} double {a}, {b}"))
        if name == "NOT":
            return self._number(self._value(f"fcmp oeq double {a}, {ZERO}"))
        if name in ("AND", "OR"):
            return self._number(self._value(f"{name.lower()} i1 {self._truth(a)}, {self._truth(b)}"))
        if name == "IF_ELSE_ZERO":
            return self._value(f"select i1 {self._truth(a)}, double {b}, double {ZERO}")
        if name == "SIGN":
            negative = self._value(f"fcmp olt double {a}, {ZERO}")
            positive = self._value(f"fcmp ogt double {a}, {ZERO}")
            below = self._value(f"select i1 {negative}, double {MINUS_ONE}, double {a}")
            return self._value(f"select i1 {positive}, double {ONE}, double {below}")
        raise ValueError(f"the operation '{name.lower()}' cannot be compiled to native code")

    def graph(self, function: ca.Function, pointers: Sequence[tuple[int, int]]) -> list[list[str]]:
        """Write a whole expression graph; input i is read from ``pointers[i] = (argument, first index)``."""
        inputs = [_Lazy(self, pointer, first, function.nnz_in(i)) for i, (pointer, first) in enumerate(pointers)]
        return walk(function, inputs, literal, self.apply)

    def text(self) -> str:
        arguments = ", ".join(f"ptr noalias %a{i}" for i in range(self.pointers))
        declared = "\n".join(f"declare double @{f}({a}) #0" for f, a in sorted(self._declared.items()))
        body = "\n".join(self.lines)
        return (
            f"{declared}\ndefine void @{self.name}({arguments}) #1 {{\n{body}\nret void\n}}\n"
            "attributes #0 = { nounwind memory(none) willreturn }\nattributes #1 = { nounwind }\n"
        )


class _Lazy(Sequence[str]):
    """The nonzeros of an input, loaded when first asked for."""

    def __init__(self, emitter: Emitter, pointer: int, first: int, size: int) -> None:
        self._emitter, self._pointer, self._first, self._size = emitter, pointer, first, size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._emitter.load(self._pointer, self._first + index)


def _as_number(operand: str) -> float | None:
    if not operand.startswith("0x"):
        return None
    return float(struct.unpack("<d", struct.pack("<Q", int(operand, 16)))[0])
