"""Emitter of LLVM IR for a loop over instances of one kernel, eight instances at a time in SIMD lanes.

A function ``void f(x, z, c, table, out)`` loops over the blocks of eight instances given by its table, an array of
64-bit integers. It contains the first block, the end of blocks, and the addresses of the index table, of the parameters
of the instances, of shared parameters, and of the context (arrays that differ from step to step). The offsets of the
parts of x and z follow. Instance l of a block occupies lane l; the last block is padded by repeating an instance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from livens.engine.emit import Emitter
from livens.engine.native import quick_gathers

WIDTH = 8
#: Entries of a table.
FIRST, LAST, INDEX, OWN, SHARED, CONTEXT, OFFSETS = range(7)
#: Entries of the context: history at the start of the step, state and history at its end, uncertainties of the
#: unknowns, impulses of forces.
MEMORY, NEXT_STATE, NEXT_MEMORY, ERRORS, IMPULSES = range(5)
_REGISTER, _NAME = re.compile(r"%\d+"), re.compile(r"%\w+")
#: Pattern of instructions without memory access.
_PURE = re.compile(
    r"f(add|sub|mul|div|neg|cmp)|select|uitofp|call \S+ (x double> )?@(llvm\.(?!masked)|_ZGV|[a-z0-9]+\()"
)
_TRUE = "<" + ", ".join(["i1 true"] * WIDTH) + ">"
#: Shuffles of the even and odd lanes of two vectors.
_EVEN, _ODD = (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)


class IndexedEmitter(Emitter):
    """Emitter with vectors of eight instances, and loads and stores by index.

    Loop-invariant values are computed before the loop.
    """

    def __init__(self, name: str, side_by_side: Sequence[int] = ()) -> None:
        """Create an emitter; in `contiguous_slots` of the table indices of a block are consecutive up to padding."""
        super().__init__(name, 5, WIDTH)
        self._side_by_side = frozenset(side_by_side)
        self.indices = f"<{WIDTH} x i32>"
        self._before: list[str] = []
        self._fixed: set[str] = set()  # loop-invariant registers

    # -- preheader ----------------------------------------------------------------------------------------------------
    def value(self, text: str) -> str:
        """Emit an instruction and return its register; loop-invariant instructions are hoisted."""
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
        """Load a 64-bit integer of an array before the loop."""
        place = self._steady_value(f"getelementptr inbounds i64, ptr {pointer}, i64 {slot}")
        return self._steady_value(f"load i64, ptr {place}, align 8")

    def pointer_at(self, pointer: str, slot: int) -> str:
        """Load an address of an array before the loop."""
        place = self._steady_value(f"getelementptr inbounds i64, ptr {pointer}, i64 {slot}")
        return self._steady_value(f"load ptr, ptr {place}, align 8")

    def part(self, base: str, number: int) -> str:
        """Return the address of a part of an array, with the offset from the table."""
        offset = self.number_at("%a3", OFFSETS + number)
        return self._steady_value(f"getelementptr inbounds double, ptr {base}, i64 {offset}")

    def broadcast(self, pointer: str, slot: int) -> str:
        """Broadcast a scalar to all lanes before the loop; divisions by it become multiplications."""
        place = self._steady_value(f"getelementptr inbounds double, ptr {pointer}, i64 {slot}")
        one = self._steady_value(f"load double, ptr {place}, align 8")
        first = self._steady_value(f"insertelement {self.type} poison, double {one}, i32 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        found = self._steady_value(f"shufflevector {self.type} {first}, {self.type} poison, {zeros}")
        self.steady.add(found)
        return found

    # -- loop body ----------------------------------------------------------------------------------------------------
    def _index(self, slot: int) -> str:
        """Load eight indices of the current block."""
        place = self.value(f"getelementptr inbounds i32, ptr %row, i64 {slot * WIDTH}")
        return self.value(f"load {self.indices}, ptr {place}, align 4")

    def _lane(self, base: str, slot: int, lane: int, offset: int) -> str:
        """Return the address of ``base[index + offset]`` of one lane."""
        place = self.value(f"getelementptr inbounds i32, ptr %row, i64 {slot * WIDTH + lane}")
        index = self.value(f"load i32, ptr {place}, align 4")
        wide = self.value(f"sext i32 {index} to i64")
        first = self.value(f"getelementptr inbounds double, ptr {base}, i64 {wide}")
        return self.value(f"getelementptr inbounds double, ptr {first}, i64 {offset}") if offset else first

    def gather(self, base: str, slot: int, offset: int = 0) -> str:
        """Gather ``base[index + offset]`` for the indices in a slot of the table."""
        if slot in self._side_by_side:
            place = self._lane(base, slot, 0, offset)
            name = self._masked("load", f"{self.type} @", f"ptr, i32, {self.bits}, {self.type}")
            lanes, last = self._first_lanes(slot), self._last(base, slot, offset)
            return self.value(f"call {self.type} @{name}(ptr {place}, i32 8, {self.bits} {lanes}, {self.type} {last})")
        if not quick_gathers():
            whole = "poison"
            for lane in range(WIDTH):
                one = self.value(f"load double, ptr {self._lane(base, slot, lane, offset)}, align 8")
                whole = self.value(f"insertelement {self.type} {whole}, double {one}, i32 {lane}")
            return whole
        moved = self.value(f"getelementptr inbounds double, ptr {base}, i64 {offset}") if offset else base
        pointers = self.value(f"getelementptr inbounds double, ptr {moved}, {self.indices} {self._index(slot)}")
        name = f"llvm.masked.gather.v{WIDTH}f64.v{WIDTH}p0"
        kinds = [f"<{WIDTH} x ptr>", "i32", f"<{WIDTH} x i1>", self.type]
        self._declared[name] = f"declare {self.type} @{name}({', '.join(kinds)})"
        return self.value(
            f"call {self.type} @{name}(<{WIDTH} x ptr> {pointers}, i32 8, <{WIDTH} x i1> {_TRUE}, {self.type} poison)"
        )

    def _last(self, base: str, slot: int, offset: int) -> str:
        """Broadcast the value of the last lane: padding lanes must equal the repeated instance, because both are
        written to the same address."""
        one = self.value(f"load double, ptr {self._lane(base, slot, WIDTH - 1, offset)}, align 8")
        alone = self.value(f"insertelement {self.type} poison, double {one}, i32 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        return self.value(f"shufflevector {self.type} {alone}, {self.type} poison, {zeros}")

    def _masked(self, what: str, kind: str, arguments: str) -> str:
        name = f"llvm.masked.{what}.v{WIDTH}f64.p0"
        self._declared[name] = f"declare {kind}{name}({arguments})"
        return name

    def _first_lanes(self, slot: int) -> str:
        """Return the mask of lanes with consecutive indices, that is, all lanes except padding."""
        place = self.value(f"getelementptr inbounds i32, ptr %row, i64 {slot * WIDTH}")
        first = self.value(f"load i32, ptr {place}, align 4")
        alone = self.value(f"insertelement {self.indices} poison, i32 {first}, i32 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        filled = self.value(f"shufflevector {self.indices} {alone}, {self.indices} poison, {zeros}")
        counted = "<" + ", ".join(f"i32 {lane}" for lane in range(WIDTH)) + ">"
        wanted = self.value(f"add {self.indices} {filled}, {counted}")
        return self.value(f"icmp eq {self.indices} {self._index(slot)}, {wanted}")

    def runs(self, base: str, slot: int, offset: int, two: bool) -> str:
        """Load ``base[index + offset]`` where the indices of a block are one or two runs of consecutive numbers.
        The slot contains the starts of the runs and the mask of the lanes of the second run.
        """
        first = self._run(base, slot, 0, offset)
        if not two:
            return first
        place = self.value(f"getelementptr inbounds i32, ptr %row, i64 {slot * WIDTH + 2}")
        number = self.value(f"load i32, ptr {place}, align 4")
        mask = self.value(f"bitcast i{WIDTH} {self.value(f'trunc i32 {number} to i{WIDTH}')} to {self.bits}")
        return self.select(mask, self._run(base, slot, 1, offset), first)

    def _run(self, base: str, slot: int, which: int, offset: int) -> str:
        return self.value(f"load {self.type}, ptr {self._lane(base, slot, which, offset)}, align 8")

    def scatter(self, written: Iterable[tuple[str, str, int, int]]) -> None:
        """Scatter ``base[index + offset] = value`` for each (value, base, slot, offset).

        Contiguous entries are stored as vectors: the transposition of eight vectors takes a fifth of the time of
        single stores.
        """
        groups: dict[tuple[str, int], dict[int, str]] = {}
        for value, base, slot, offset in written:
            groups.setdefault((base, slot), {})[offset] = self.operand(value)
        for (base, slot), values in groups.items():
            if slot in self._side_by_side:
                name = self._masked("store", "void @", f"{self.type}, ptr, i32, {self.bits}")
                for offset, value in values.items():
                    place, lanes = self._lane(base, slot, 0, offset), self._first_lanes(slot)
                    self.lines.append(
                        f"call void @{name}({self.type} {value}, ptr {place}, i32 8, {self.bits} {lanes})"
                    )
                continue
            for offset, size in _runs(sorted(values)):
                rows = self._transposed([values[offset + i] for i in range(size)])
                kind = f"<{size} x double>" if size > 1 else "double"
                for lane, row in enumerate(rows):
                    self.lines.append(f"store {kind} {row}, ptr {self._lane(base, slot, lane, offset)}, align 8")

    def _transposed(self, values: list[str]) -> list[str]:
        """Transpose one, two, four or eight vectors to the contiguous entries of each lane."""
        if len(values) == 1:
            return [self.value(f"extractelement {self.type} {values[0]}, i32 {lane}") for lane in range(WIDTH)]
        pairs = zip(values[::2], values[1::2], strict=True)
        lanes = [(self._shuffled(a, b, _EVEN), self._shuffled(a, b, _ODD)) for a, b in pairs]
        rows = [""] * WIDTH
        for odd, parts in enumerate(zip(*lanes, strict=True)):  # pairs of lanes odd, odd + 2, ...
            if len(parts) == 1:
                for i in range(4):
                    rows[2 * i + odd] = self._shuffled(parts[0], "poison", (2 * i, 2 * i + 1))
            elif len(parts) == 2:
                for i in range(2):
                    both = self._shuffled(*parts, _taken((2 * i, 2 * i + 4, 2 * i + 1, 2 * i + 5)))
                    rows[4 * i + odd] = self._shuffled(both, "poison", range(4))
                    rows[4 * i + 2 + odd] = self._shuffled(both, "poison", range(4, 8))
            else:
                for i in range(2):
                    left, right = (self._shuffled(a, b, _taken((2 * i, 2 * i + 1, 2 * i + 4, 2 * i + 5)))
                                   for a, b in (parts[:2], parts[2:]))  # fmt: skip
                    rows[4 * i + odd] = self._shuffled(left, right, _taken((0, 2, 4, 6)))
                    rows[4 * i + 2 + odd] = self._shuffled(left, right, _taken((1, 3, 5, 7)))
        return rows

    def _shuffled(self, a: str, b: str, lanes: Sequence[int]) -> str:
        """Shuffle two vectors; lanes of the second are counted from eight."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.value(f"shufflevector {self.type} {a}, {self.type} {b}, <{len(lanes)} x i32> <{mask}>")

    def note_largest(self, value: str, pointer: str) -> None:
        """Update the lane-wise maximum in memory; bit patterns of non-negative doubles order like int64, NaN last."""
        kind, name = f"<{WIDTH} x i64>", f"llvm.smax.v{WIDTH}i64"
        bits = self.value(f"bitcast {self.type} {value} to {kind}")
        known = self.value(f"load {kind}, ptr {pointer}, align 8")
        self.lines.append(f"store {kind} {self.called(name, kind, bits, known)}, ptr {pointer}, align 8")

    def compensated(self, high: str, low: str, step: str) -> tuple[str, str]:
        """Return ``high + (step + low)`` and its rounding error (compensated sum); no reassociation is allowed."""

        def exact(operation: str, a: str, b: str) -> str:
            return self.value(f"{operation} {self.type} {self.operand(a)}, {self.operand(b)}")

        small = exact("fadd", step, low)
        total = exact("fadd", high, small)
        added = exact("fsub", total, high)
        lost = exact("fsub", high, exact("fsub", total, added))
        return total, exact("fadd", lost, exact("fsub", small, added))

    def put(self, value: str, base: str, slot: int) -> None:
        """Store the lanes contiguously."""
        place = self.value(f"getelementptr inbounds double, ptr {base}, i64 {slot * WIDTH}")
        self.lines.append(f"store {self.type} {self.operand(value)}, ptr {place}, align 8")

    def get(self, base: str, slot: int) -> str:
        """Load contiguous lanes."""
        place = self.value(f"getelementptr inbounds double, ptr {base}, i64 {slot * WIDTH}")
        return self.value(f"load {self.type}, ptr {place}, align 8")

    def loop(self, slots: int, outputs: int, own: int) -> str:
        """Return the function as IR, with the numbers of indices, outputs and private entries per instance."""
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


def _taken(pairs: Sequence[int]) -> list[int]:
    """Return the lanes of pairs of entries."""
    return [lane for pair in pairs for lane in (2 * pair, 2 * pair + 1)]


def _runs(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Split sorted offsets into contiguous runs of length eight, four, two or one: (start, size)."""
    found, i = [], 0
    while i < len(offsets):
        size = next(n for n in (8, 4, 2, 1) if offsets[i : i + n] == list(range(offsets[i], offsets[i] + n)))
        found.append((offsets[i], size))
        i += size
    return found


def _renamed(line: str) -> str:
    """Give numbered registers names: LLVM requires numbered registers to be in order."""
    return _REGISTER.sub(lambda found: f"%v{found.group()[1:]}", line)


class Columns(Sequence[str]):
    """Lazy input of a graph: entries are loaded on first access."""

    def __init__(self, size: int, read: Callable[[int], str]) -> None:
        self._size, self._read = size, read

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        return self._read(i)


def in_blocks(table: np.ndarray) -> np.ndarray:
    """Pack rows of instances into blocks of eight lanes; the last block is padded by repeating the last instance."""
    count, slots = table.shape
    blocks = -(-count // WIDTH)
    filled = np.concatenate([table, np.repeat(table[-1:], blocks * WIDTH - count, axis=0)])
    return np.ascontiguousarray(filled.reshape(blocks, WIDTH, slots).transpose(0, 2, 1))


def in_pool(instances: np.ndarray, outputs: int) -> np.ndarray:
    """Return the pool index of the first output of instances, in blocks of `outputs` outputs each."""
    return instances // WIDTH * (outputs * WIDTH) + instances % WIDTH
