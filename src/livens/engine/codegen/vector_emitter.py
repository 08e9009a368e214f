"""LLVM IR emitter for straight-line code on vectors of different widths; width 1 is a scalar double."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import llvmlite.binding as llvm

from livens.engine.codegen.ir_emitter import literal

ZERO = literal(0.0)


@functools.cache
def native_width() -> int:
    """Return the number of doubles in a SIMD register of this machine."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx2") else 2


def vector_width(lanes: int) -> int:
    """Return the vector width for a number of lanes."""
    return int(min(native_width(), 1 << (lanes - 1).bit_length()))


class VectorEmitter:
    """IR emitter with common subexpression elimination. A value is the name of a register or a constant."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.emitted: dict[str, str] = {}
        self.declared: set[str] = set()
        self._count = 0

    def emit_new(self, text: str) -> str:
        """Emit an instruction that is never shared."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"{name} = {text}")
        return name

    def emit(self, text: str) -> str:
        if text not in self.emitted:
            self.emitted[text] = self.emit_new(text)
        return self.emitted[text]

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

    def splat_constant(self, number: float, w: int) -> str:
        return self.constant([number] * w)

    # -- arithmetic ---------------------------------------------------------------------------------------------------
    def op(self, name: str, w: int, a: str, b: str) -> str:
        return self.emit(f"{name} {self.type(w)} {a}, {b}")

    def call(self, name: str, w: int, *operands: str) -> str:
        llvm_type = self.type(w)
        function = f"llvm.{name}.{'f64' if w == 1 else f'v{w}f64'}"
        self.declared.add(f"declare {llvm_type} @{function}({', '.join([llvm_type] * len(operands))})")
        return self.emit(f"call {llvm_type} @{function}({', '.join(f'{llvm_type} {a}' for a in operands)})")

    def fma(self, w: int, a: str, b: str, c: str | None) -> str:
        """Return ``a b + c`` in one rounding; without c, the product."""
        return self.op("fmul", w, a, b) if c is None else self.call("fma", w, a, b, c)

    def fneg(self, w: int, a: str) -> str:
        return self.emit(f"fneg {self.type(w)} {a}")

    def fmax(self, w: int, a: str, b: str) -> str:
        bit = self.emit(f"fcmp ogt {self.type(w)} {a}, {b}")
        return self.emit(f"select {'i1' if w == 1 else f'<{w} x i1>'} {bit}, {self.type(w)} {a}, {self.type(w)} {b}")

    def library(self, function: str, w: int, *operands: str) -> str:
        """Call a function of the C library lane by lane."""
        self.declared.add(f"declare double @{function}({', '.join(['double'] * len(operands))})")
        parts = []
        for i in range(w):
            lanes = ", ".join(f"double {self.lane(w, a, i)}" for a in operands)
            parts.append(self.emit(f"call double @{function}({lanes})"))
        return self.build_vector(parts)

    # -- lanes --------------------------------------------------------------------------------------------------------
    def lane(self, w: int, a: str, i: int) -> str:
        return a if w == 1 else self.emit(f"extractelement {self.type(w)} {a}, i64 {i}")

    def build_vector(self, parts: Sequence[str]) -> str:
        """Build a vector from scalars."""
        if len(parts) == 1:
            return parts[0]
        out = "poison"
        for i, part in enumerate(parts):
            out = self.emit(f"insertelement {self.type(len(parts))} {out}, double {part}, i64 {i}")
        return out

    def shuffle(self, w: int, a: str, b: str, mask: Sequence[int]) -> str:
        lanes = ", ".join("i32 poison" if i < 0 else f"i32 {i}" for i in mask)
        return self.emit(f"shufflevector {self.type(w)} {a}, {self.type(w)} {b}, <{len(mask)} x i32> <{lanes}>")

    def broadcast(self, a: str, w: int, lanes: Sequence[bool] | None = None) -> str:
        """Broadcast a scalar to all lanes, or to the selected ones."""
        if w == 1:
            return a
        inserted = self.emit(f"insertelement {self.type(w)} poison, double {a}, i64 0")
        return self.shuffle(w, inserted, "poison", [0 if lanes is None or lanes[i] else -1 for i in range(w)])

    def gather_lanes(self, lanes: Sequence[tuple[str, int, int]]) -> str:
        """Gather lanes of other vectors, each given by (vector, its width, lane)."""
        w = len(lanes)
        sources = list(dict.fromkeys((v, sw) for v, sw, _ in lanes))
        (v, sw), indices = sources[0], [i for _, _, i in lanes]
        if w == 1:
            return self.lane(sw, v, indices[0])
        if len(sources) == 1:
            if sw == 1:
                return self.broadcast(v, w)
            return v if sw == w and indices == list(range(w)) else self.shuffle(sw, v, "poison", indices)
        if len(sources) == 2 and sw == sources[1][1] > 1:
            mask = [i + (0 if name == v else sw) for name, _, i in lanes]
            return self.shuffle(sw, v, sources[1][0], mask)
        out = None
        for v, sw in sources:
            mask_of_source = [i if (name, width) == (v, sw) else -1 for name, width, i in lanes]
            selected = (
                self.broadcast(v, w, [i >= 0 for i in mask_of_source])
                if sw == 1
                else self.shuffle(sw, v, "poison", mask_of_source)
            )
            merged = [w + i if mask_of_source[i] >= 0 else i for i in range(w)]
            out = selected if out is None else self.shuffle(w, out, selected, merged)
        assert out is not None
        return out

    # -- memory -------------------------------------------------------------------------------------------------------
    def address(self, pointer: str, offset: int) -> str:
        return self.emit(f"getelementptr double, ptr {pointer}, i64 {offset}")

    def load(self, w: int, pointer: str, offset: int) -> str:
        return self.emit(f"load {self.type(w)}, ptr {self.address(pointer, offset)}, align 8")

    def store(self, w: int, a: str, pointer: str, offset: int) -> None:
        self.lines.append(f"store {self.type(w)} {a}, ptr {self.address(pointer, offset)}, align 8")
