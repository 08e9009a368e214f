"""LLVM IR emitter for straight-line code on vectors of different widths; width 1 is a scalar double."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import llvmlite.binding as llvm

from livens.engine.emit import literal

ZERO = literal(0.0)


@functools.cache
def widest() -> int:
    """Return the number of doubles in a SIMD register of this machine."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx2") else 2


def width_for(lanes: int) -> int:
    """Return the vector width for a number of lanes."""
    return int(min(widest(), 1 << (lanes - 1).bit_length()))


class Vectors:
    """IR emitter with common subexpression elimination. A value is the name of a register or a constant."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, str] = {}
        self.declared: set[str] = set()
        self._count = 0

    def raw(self, text: str) -> str:
        """Emit an instruction that is never shared."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"{name} = {text}")
        return name

    def value(self, text: str) -> str:
        if text not in self.known:
            self.known[text] = self.raw(text)
        return self.known[text]

    @staticmethod
    def type(w: int) -> str:
        return "double" if w == 1 else f"<{w} x double>"

    @staticmethod
    def zero(w: int) -> str:
        return ZERO if w == 1 else "zeroinitializer"

    def constant(self, numbers: Sequence[float]) -> str:
        if len(numbers) == 1:
            return literal(numbers[0])
        return "<" + ", ".join(f"double {literal(x)}" for x in numbers) + ">"

    def filled(self, number: float, w: int) -> str:
        return self.constant([number] * w)

    # -- arithmetic ---------------------------------------------------------------------------------------------------
    def op(self, name: str, w: int, a: str, b: str) -> str:
        return self.value(f"{name} {self.type(w)} {a}, {b}")

    def call(self, name: str, w: int, *operands: str) -> str:
        kind = self.type(w)
        function = f"llvm.{name}.{'f64' if w == 1 else f'v{w}f64'}"
        self.declared.add(f"declare {kind} @{function}({', '.join([kind] * len(operands))})")
        return self.value(f"call {kind} @{function}({', '.join(f'{kind} {a}' for a in operands)})")

    def fma(self, w: int, a: str, b: str, c: str | None) -> str:
        """Return ``a b + c`` in one rounding; without c, the product."""
        return self.op("fmul", w, a, b) if c is None else self.call("fma", w, a, b, c)

    def negative(self, w: int, a: str) -> str:
        return self.value(f"fneg {self.type(w)} {a}")

    def larger(self, w: int, a: str, b: str) -> str:
        bit = self.value(f"fcmp ogt {self.type(w)} {a}, {b}")
        return self.value(f"select {'i1' if w == 1 else f'<{w} x i1>'} {bit}, {self.type(w)} {a}, {self.type(w)} {b}")

    def library(self, function: str, w: int, *operands: str) -> str:
        """Call a function of the C library lane by lane."""
        self.declared.add(f"declare double @{function}({', '.join(['double'] * len(operands))})")
        parts = []
        for i in range(w):
            lanes = ", ".join(f"double {self.lane(w, a, i)}" for a in operands)
            parts.append(self.value(f"call double @{function}({lanes})"))
        return self.assembled(parts)

    # -- lanes --------------------------------------------------------------------------------------------------------
    def lane(self, w: int, a: str, i: int) -> str:
        return a if w == 1 else self.value(f"extractelement {self.type(w)} {a}, i64 {i}")

    def assembled(self, parts: Sequence[str]) -> str:
        """Build a vector from scalars."""
        if len(parts) == 1:
            return parts[0]
        out = "poison"
        for i, part in enumerate(parts):
            out = self.value(f"insertelement {self.type(len(parts))} {out}, double {part}, i64 {i}")
        return out

    def shuffle(self, w: int, a: str, b: str, mask: Sequence[int]) -> str:
        lanes = ", ".join("i32 poison" if i < 0 else f"i32 {i}" for i in mask)
        return self.value(f"shufflevector {self.type(w)} {a}, {self.type(w)} {b}, <{len(mask)} x i32> <{lanes}>")

    def spread(self, a: str, w: int, lanes: Sequence[bool] | None = None) -> str:
        """Broadcast a scalar to all lanes, or to the selected ones."""
        if w == 1:
            return a
        first = self.value(f"insertelement {self.type(w)} poison, double {a}, i64 0")
        return self.shuffle(w, first, "poison", [0 if lanes is None or lanes[i] else -1 for i in range(w)])

    def picked(self, lanes: Sequence[tuple[str, int, int]]) -> str:
        """Gather lanes of other vectors, each given by (vector, its width, lane)."""
        w = len(lanes)
        sources = list(dict.fromkeys((v, sw) for v, sw, _ in lanes))
        (v, sw), places = sources[0], [i for _, _, i in lanes]
        if w == 1:
            return self.lane(sw, v, places[0])
        if len(sources) == 1:
            if sw == 1:
                return self.spread(v, w)
            return v if sw == w and places == list(range(w)) else self.shuffle(sw, v, "poison", places)
        if len(sources) == 2 and sw == sources[1][1] > 1:
            mask = [i + (0 if name == v else sw) for name, _, i in lanes]
            return self.shuffle(sw, v, sources[1][0], mask)
        out = None
        for v, sw in sources:
            mine = [i if (name, width) == (v, sw) else -1 for name, width, i in lanes]
            here = self.spread(v, w, [i >= 0 for i in mine]) if sw == 1 else self.shuffle(sw, v, "poison", mine)
            merged = [w + i if mine[i] >= 0 else i for i in range(w)]
            out = here if out is None else self.shuffle(w, out, here, merged)
        assert out is not None
        return out

    # -- memory -------------------------------------------------------------------------------------------------------
    def address(self, pointer: str, offset: int) -> str:
        return self.value(f"getelementptr double, ptr {pointer}, i64 {offset}")

    def load(self, w: int, pointer: str, offset: int) -> str:
        return self.value(f"load {self.type(w)}, ptr {self.address(pointer, offset)}, align 8")

    def store(self, w: int, a: str, pointer: str, offset: int) -> None:
        self.lines.append(f"store {self.type(w)} {a}, ptr {self.address(pointer, offset)}, align 8")
