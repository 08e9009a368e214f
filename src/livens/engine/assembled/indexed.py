"""LLVM text for a loop over many instances of one kernel, eight of them at a time in vector lanes.

A function ``void f(x, z, c, table, out)`` runs over the blocks of eight instances that its table says. The table is an
array of 64-bit numbers: first block, end of blocks, then the addresses of the index table, of the parameters of the
instances, of those they share, and of the context (arrays that differ from step to step), then the offsets of the parts
of x and z. Instance l of a block has its numbers in lane l; the last block is filled up by repeating an instance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from livens.engine.emit import Emitter

WIDTH = 8
#: Where things stand in a table.
FIRST, LAST, INDEX, OWN, SHARED, CONTEXT, OFFSETS = range(7)
#: Where things stand in the context: memory at the start of the step, state and memory at its end, errors of unknowns,
#: impulses of forces.
MEMORY, NEXT_STATE, NEXT_MEMORY, ERRORS, IMPULSES = range(5)
_REGISTER, _NAME = re.compile(r"%\d+"), re.compile(r"%\w+")
#: Instructions that read no memory.
_PURE = re.compile(
    r"f(add|sub|mul|div|neg|cmp)|select|uitofp|call \S+ (x double> )?@(llvm\.(?!masked)|_ZGV|[a-z0-9]+\()"
)
_TRUE = "<" + ", ".join(["i1 true"] * WIDTH) + ">"


class IndexedEmitter(Emitter):
    """An emitter whose values are vectors of eight instances, and which reads and writes by index.

    What is the same for all instances is computed before the loop.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, 5, WIDTH)
        self.indices = f"<{WIDTH} x i32>"
        self._before: list[str] = []
        self._fixed: set[str] = set()  # what is known before the loop

    # -- before the loop ----------------------------------------------------------------------------------------------
    def value(self, text: str) -> str:
        """The value of an instruction; where all operands are known before the loop, it is computed there."""
        named = _NAME.findall(text)
        if _PURE.match(text) and all(name in self._fixed for name in named):
            return self._steady_value(text)
        return super().value(text)

    def _steady_value(self, text: str) -> str:
        known = self._known.get(text)
        if known is None:
            self._count += 1
            known = self._known[text] = f"%{self._count}"
            self._before.append(f"{known} = {text}")
            self._fixed.add(known)
        return known

    def number_at(self, pointer: str, slot: int) -> str:
        """A 64-bit number of an array, before the loop."""
        place = self._steady_value(f"getelementptr inbounds i64, ptr {pointer}, i64 {slot}")
        return self._steady_value(f"load i64, ptr {place}, align 8")

    def pointer_at(self, pointer: str, slot: int) -> str:
        """An address in an array, before the loop."""
        place = self._steady_value(f"getelementptr inbounds i64, ptr {pointer}, i64 {slot}")
        return self._steady_value(f"load ptr, ptr {place}, align 8")

    def part(self, base: str, number: int) -> str:
        """The address of a part of an array, whose offset is in the table."""
        offset = self.number_at("%a3", OFFSETS + number)
        return self._steady_value(f"getelementptr inbounds double, ptr {base}, i64 {offset}")

    def broadcast(self, pointer: str, slot: int) -> str:
        """One number for all lanes, before the loop; to divide by it is to multiply by its reciprocal."""
        place = self._steady_value(f"getelementptr inbounds double, ptr {pointer}, i64 {slot}")
        one = self._steady_value(f"load double, ptr {place}, align 8")
        first = self._steady_value(f"insertelement {self.type} poison, double {one}, i32 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        found = self._steady_value(f"shufflevector {self.type} {first}, {self.type} poison, {zeros}")
        self.steady.add(found)
        return found

    # -- in the loop --------------------------------------------------------------------------------------------------
    def index(self, slot: int) -> str:
        """Eight indices of the block at work."""
        place = self.value(f"getelementptr inbounds i32, ptr %row, i64 {slot * WIDTH}")
        return self.value(f"load {self.indices}, ptr {place}, align 4")

    def _addresses(self, base: str, index: str, offset: int) -> str:
        moved = self.value(f"getelementptr inbounds double, ptr {base}, i64 {offset}") if offset else base
        return self.value(f"getelementptr inbounds double, ptr {moved}, {self.indices} {index}")

    def gather(self, base: str, index: str, offset: int = 0) -> str:
        """``base[index + offset]``, lane by lane."""
        pointers = self._addresses(base, index, offset)
        name = f"llvm.masked.gather.v{WIDTH}f64.v{WIDTH}p0"
        kinds = [f"<{WIDTH} x ptr>", "i32", f"<{WIDTH} x i1>", self.type]
        self._declared[name] = f"declare {self.type} @{name}({', '.join(kinds)})"
        return self.value(
            f"call {self.type} @{name}(<{WIDTH} x ptr> {pointers}, i32 8, <{WIDTH} x i1> {_TRUE}, {self.type} poison)"
        )

    def scatter(self, value: str, base: str, index: str, offset: int = 0) -> None:
        """``base[index + offset] = value``, lane by lane."""
        pointers = self._addresses(base, index, offset)
        name = f"llvm.masked.scatter.v{WIDTH}f64.v{WIDTH}p0"
        kinds = [self.type, f"<{WIDTH} x ptr>", "i32", f"<{WIDTH} x i1>"]
        self._declared[name] = f"declare void @{name}({', '.join(kinds)})"
        self.lines.append(
            f"call void @{name}({self.type} {self.operand(value)}, <{WIDTH} x ptr> {pointers}, i32 8, "
            f"<{WIDTH} x i1> {_TRUE})"
        )

    def compensated(self, high: str, low: str, step: str) -> tuple[str, str]:
        """``high + (step + low)`` and its rounding error; nothing here may be rearranged."""

        def exact(operation: str, a: str, b: str) -> str:
            return self.value(f"{operation} {self.type} {self.operand(a)}, {self.operand(b)}")

        small = exact("fadd", step, low)
        total = exact("fadd", high, small)
        added = exact("fsub", total, high)
        lost = exact("fsub", high, exact("fsub", total, added))
        return total, exact("fadd", lost, exact("fsub", small, added))

    def put(self, value: str, base: str, slot: int) -> None:
        """Write the lanes side by side."""
        place = self.value(f"getelementptr inbounds double, ptr {base}, i64 {slot * WIDTH}")
        self.lines.append(f"store {self.type} {self.operand(value)}, ptr {place}, align 8")

    def get(self, base: str, slot: int) -> str:
        """Read lanes that stand side by side."""
        place = self.value(f"getelementptr inbounds double, ptr {base}, i64 {slot * WIDTH}")
        return self.value(f"load {self.type}, ptr {place}, align 8")

    def loop(self, slots: int, outputs: int, own: int) -> str:
        """The whole function: so many indices, outputs and own numbers for each instance."""
        declared = "\n".join(self._declared[f] for f in sorted(self._declared))
        names = [line if isinstance(line, str) else "" for line in self.lines]
        renamed = [_renamed(line) for line in names if line]
        before = "\n".join(_renamed(line) for line in self._before)
        body = "\n".join(renamed)
        return f"""{declared}
define void @{self.name}(ptr noalias %a0, ptr noalias %a1, ptr noalias %a2, ptr noalias %a3, ptr noalias %a4) #1 {{
entry:
%start = load i64, ptr %a3, align 8
%pstop = getelementptr inbounds i64, ptr %a3, i64 {LAST}
%stop = load i64, ptr %pstop, align 8
%pindex = getelementptr inbounds i64, ptr %a3, i64 {INDEX}
%indextable = load ptr, ptr %pindex, align 8
%pown = getelementptr inbounds i64, ptr %a3, i64 {OWN}
%owntable = load ptr, ptr %pown, align 8
{before}
%any = icmp slt i64 %start, %stop
br i1 %any, label %blocks, label %done
blocks:
%b = phi i64 [%start, %entry], [%next, %blocks]
%o1 = mul i64 %b, {slots * WIDTH}
%row = getelementptr inbounds i32, ptr %indextable, i64 %o1
%o2 = mul i64 %b, {outputs * WIDTH}
%out = getelementptr inbounds double, ptr %a4, i64 %o2
%o3 = mul i64 %b, {own * WIDTH}
%own = getelementptr inbounds double, ptr %owntable, i64 %o3
{body}
%next = add i64 %b, 1
%more = icmp slt i64 %next, %stop
br i1 %more, label %blocks, label %done
done:
ret void
}}
attributes #0 = {{ nounwind memory(none) willreturn }}
attributes #1 = {{ nounwind "stackrealign" "prefer-vector-width"="512" }}
"""


def _renamed(line: str) -> str:
    """Registers that are only numbers must be in order; names need not."""
    return _REGISTER.sub(lambda found: f"%v{found.group()[1:]}", line)


class Columns(Sequence[str]):
    """The entries of an input of a graph, read when first asked for."""

    def __init__(self, size: int, read: Callable[[int], str]) -> None:
        self._size, self._read = size, read

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        return self._read(i)


def in_blocks(table: np.ndarray) -> np.ndarray:
    """One row for each instance -> blocks of eight lanes; the last is filled up by repeating the last instance."""
    count, slots = table.shape
    blocks = -(-count // WIDTH)
    filled = np.concatenate([table, np.repeat(table[-1:], blocks * WIDTH - count, axis=0)])
    return np.ascontiguousarray(filled.reshape(blocks, WIDTH, slots).transpose(0, 2, 1))


def in_pool(instances: np.ndarray, outputs: int) -> np.ndarray:
    """Where the first output of instances stands, in a pool of blocks of `outputs` outputs each."""
    return instances // WIDTH * (outputs * WIDTH) + instances % WIDTH
