"""Emitter of LLVM IR for a loop over instances of one kernel, eight instances at a time in SIMD lanes.

A function ``void f(x, z, c, table, out)`` loops over the blocks of eight instances given by its table, an array of
64-bit integers. It contains the first block, the end of blocks, and four addresses: of the index table, of the
parameters of the instances, of shared parameters, and of the context. The context are arrays that differ from step to
step. The offsets of the parts of x and z follow. Instance l of a block occupies lane l; the last block is padded by
repeating an instance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from livens.engine.codegen.ir_emitter import Emitter
from livens.engine.codegen.jit import has_fast_gather

WIDTH = 8
#: Entries of a table.
FIRST_BLOCK, STOP_BLOCK, INDEX, PRIVATE_PARAMS, SHARED_PARAMS, CONTEXT, OFFSETS = range(7)
#: Entries of the context: history at the start of the step, state and history at its end, uncertainties of the
#: unknowns, impulses of forces.
HISTORY, NEXT_STATE, NEXT_HISTORY, UNCERTAINTIES, IMPULSES = range(5)
_REGISTER, _NAME = re.compile(r"%\d+"), re.compile(r"%\w+")
#: Pattern of instructions without memory access.
_PURE_INSTRUCTION = re.compile(
    r"f(add|sub|mul|div|neg|cmp)|select|uitofp|call \S+ (x double> )?@(llvm\.(?!masked)|_ZGV|[a-z0-9]+\()"
)
_ALL_LANES = "<" + ", ".join(["i1 true"] * WIDTH) + ">"
#: Shuffles of the even and odd lanes of two vectors.
_EVEN, _ODD = (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)


class IndexedEmitter(Emitter):
    """Emitter with vectors of eight instances, and loads and stores by index.

    Loop-invariant values are computed before the loop.
    """

    def __init__(self, name: str, contiguous_slots: Sequence[int] = ()) -> None:
        """Create an emitter; in `contiguous_slots` of the table indices of a block are consecutive up to padding."""
        super().__init__(name, 5, WIDTH)
        self._contiguous_slots = frozenset(contiguous_slots)
        self.index_type = f"<{WIDTH} x i32>"
        self._preheader: list[str] = []
        self._invariant: set[str] = set()  # loop-invariant registers

    # -- preheader ----------------------------------------------------------------------------------------------------
    def emit(self, text: str) -> str:
        """Emit an instruction and return its register; loop-invariant instructions are hoisted."""
        named = _NAME.findall(text)
        if _PURE_INSTRUCTION.match(text) and all(name in self._invariant for name in named):
            return self._emit_invariant(text)
        return super().emit(text)

    def _emit_invariant(self, text: str) -> str:
        register = self._emitted.get(text)
        if register is None:
            self._count += 1
            register = self._emitted[text] = f"%{self._count}"
            self._preheader.append(f"{register} = {text}")
            self._invariant.add(register)
        return register

    def load_integer(self, pointer: str, slot: int) -> str:
        """Load a 64-bit integer of an array before the loop."""
        pointer_to = self._emit_invariant(f"getelementptr inbounds i64, ptr {pointer}, i64 {slot}")
        return self._emit_invariant(f"load i64, ptr {pointer_to}, align 8")

    def load_pointer(self, pointer: str, slot: int) -> str:
        """Load an address of an array before the loop."""
        pointer_to = self._emit_invariant(f"getelementptr inbounds i64, ptr {pointer}, i64 {slot}")
        return self._emit_invariant(f"load ptr, ptr {pointer_to}, align 8")

    def part_address(self, base: str, index: int) -> str:
        """Return the address of a part of an array, with the offset from the table."""
        offset = self.load_integer("%a3", OFFSETS + index)
        return self._emit_invariant(f"getelementptr inbounds double, ptr {base}, i64 {offset}")

    def broadcast(self, pointer: str, slot: int) -> str:
        """Broadcast a scalar to all lanes before the loop; divisions by it become multiplications."""
        pointer_to = self._emit_invariant(f"getelementptr inbounds double, ptr {pointer}, i64 {slot}")
        scalar = self._emit_invariant(f"load double, ptr {pointer_to}, align 8")
        inserted = self._emit_invariant(f"insertelement {self.type} poison, double {scalar}, i32 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        vector = self._emit_invariant(f"shufflevector {self.type} {inserted}, {self.type} poison, {zeros}")
        self.invariant.add(vector)
        return vector

    # -- loop body ----------------------------------------------------------------------------------------------------
    def _load_indices(self, slot: int) -> str:
        """Load eight indices of the current block."""
        pointer_to = self.emit(f"getelementptr inbounds i32, ptr %row, i64 {slot * WIDTH}")
        return self.emit(f"load {self.index_type}, ptr {pointer_to}, align 4")

    def _lane_address(self, base: str, slot: int, lane: int, offset: int) -> str:
        """Return the address of ``base[index + offset]`` of one lane."""
        pointer_to = self.emit(f"getelementptr inbounds i32, ptr %row, i64 {slot * WIDTH + lane}")
        index = self.emit(f"load i32, ptr {pointer_to}, align 4")
        wide = self.emit(f"sext i32 {index} to i64")
        base_address = self.emit(f"getelementptr inbounds double, ptr {base}, i64 {wide}")
        return self.emit(f"getelementptr inbounds double, ptr {base_address}, i64 {offset}") if offset else base_address

    def gather(self, base: str, slot: int, offset: int = 0) -> str:
        """Gather ``base[index + offset]`` for the indices in a slot of the table."""
        if slot in self._contiguous_slots:
            pointer_to = self._lane_address(base, slot, 0, offset)
            name = self._declare_masked("load", f"{self.type} @", f"ptr, i32, {self.mask_type}, {self.type}")
            lanes, padding = self._unpadded_lanes(slot), self._padding_value(base, slot, offset)
            return self.emit(
                f"call {self.type} @{name}(ptr {pointer_to}, i32 8, {self.mask_type} {lanes}, {self.type} {padding})"
            )
        if not has_fast_gather():
            vector = "poison"
            for lane in range(WIDTH):
                scalar = self.emit(f"load double, ptr {self._lane_address(base, slot, lane, offset)}, align 8")
                vector = self.emit(f"insertelement {self.type} {vector}, double {scalar}, i32 {lane}")
            return vector
        shifted = self.emit(f"getelementptr inbounds double, ptr {base}, i64 {offset}") if offset else base
        pointers = self.emit(
            f"getelementptr inbounds double, ptr {shifted}, {self.index_type} {self._load_indices(slot)}"
        )
        name = f"llvm.masked.gather.v{WIDTH}f64.v{WIDTH}p0"
        argument_types = [f"<{WIDTH} x ptr>", "i32", f"<{WIDTH} x i1>", self.type]
        self._declared[name] = f"declare {self.type} @{name}({', '.join(argument_types)})"
        return self.emit(
            f"call {self.type} @{name}(<{WIDTH} x ptr> {pointers}, i32 8, "
            f"<{WIDTH} x i1> {_ALL_LANES}, {self.type} poison)"
        )

    def _padding_value(self, base: str, slot: int, offset: int) -> str:
        """Broadcast the value of the last lane: padding lanes must equal the repeated instance, because both are
        written to the same address."""
        scalar = self.emit(f"load double, ptr {self._lane_address(base, slot, WIDTH - 1, offset)}, align 8")
        inserted = self.emit(f"insertelement {self.type} poison, double {scalar}, i32 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        return self.emit(f"shufflevector {self.type} {inserted}, {self.type} poison, {zeros}")

    def _declare_masked(self, operation: str, result_type: str, arguments: str) -> str:
        name = f"llvm.masked.{operation}.v{WIDTH}f64.p0"
        self._declared[name] = f"declare {result_type}{name}({arguments})"
        return name

    def _unpadded_lanes(self, slot: int) -> str:
        """Return the mask of lanes with consecutive indices, that is, all lanes except padding."""
        pointer_to = self.emit(f"getelementptr inbounds i32, ptr %row, i64 {slot * WIDTH}")
        first_index = self.emit(f"load i32, ptr {pointer_to}, align 4")
        inserted = self.emit(f"insertelement {self.index_type} poison, i32 {first_index}, i32 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        filled = self.emit(f"shufflevector {self.index_type} {inserted}, {self.index_type} poison, {zeros}")
        lane_numbers = "<" + ", ".join(f"i32 {lane}" for lane in range(WIDTH)) + ">"
        consecutive = self.emit(f"add {self.index_type} {filled}, {lane_numbers}")
        return self.emit(f"icmp eq {self.index_type} {self._load_indices(slot)}, {consecutive}")

    def load_runs(self, base: str, slot: int, offset: int, has_two_runs: bool) -> str:
        """Load ``base[index + offset]`` where the indices of a block are one or two runs of consecutive numbers.
        The slot contains the starts of the runs and the mask of the lanes of the second run.
        """
        first_run = self._load_run(base, slot, 0, offset)
        if not has_two_runs:
            return first_run
        pointer_to = self.emit(f"getelementptr inbounds i32, ptr %row, i64 {slot * WIDTH + 2}")
        mask_bits = self.emit(f"load i32, ptr {pointer_to}, align 4")
        mask = self.emit(f"bitcast i{WIDTH} {self.emit(f'trunc i32 {mask_bits} to i{WIDTH}')} to {self.mask_type}")
        return self.select(mask, self._load_run(base, slot, 1, offset), first_run)

    def _load_run(self, base: str, slot: int, run_index: int, offset: int) -> str:
        return self.emit(f"load {self.type}, ptr {self._lane_address(base, slot, run_index, offset)}, align 8")

    def scatter(self, stores: Iterable[tuple[str, str, int, int]]) -> None:
        """Scatter ``base[index + offset] = value`` for each (value, base, slot, offset).

        Contiguous entries are stored as vectors: the transposition of eight vectors takes a fifth of the time of
        single stores.
        """
        groups: dict[tuple[str, int], dict[int, str]] = {}
        for value, base, slot, offset in stores:
            groups.setdefault((base, slot), {})[offset] = self.operand(value)
        for (base, slot), values in groups.items():
            if slot in self._contiguous_slots:
                name = self._declare_masked("store", "void @", f"{self.type}, ptr, i32, {self.mask_type}")
                for offset, value in values.items():
                    pointer_to, lanes = self._lane_address(base, slot, 0, offset), self._unpadded_lanes(slot)
                    self.lines.append(
                        f"call void @{name}({self.type} {value}, ptr {pointer_to}, i32 8, {self.mask_type} {lanes})"
                    )
                continue
            for offset, size in _contiguous_runs(sorted(values)):
                rows = self._transpose([values[offset + i] for i in range(size)])
                store_type = f"<{size} x double>" if size > 1 else "double"
                for lane, row in enumerate(rows):
                    self.lines.append(
                        f"store {store_type} {row}, ptr {self._lane_address(base, slot, lane, offset)}, align 8"
                    )

    def _transpose(self, values: list[str]) -> list[str]:
        """Transpose one, two, four or eight vectors to the contiguous entries of each lane."""
        if len(values) == 1:
            return [self.emit(f"extractelement {self.type} {values[0]}, i32 {lane}") for lane in range(WIDTH)]
        pairs = zip(values[::2], values[1::2], strict=True)
        lanes = [(self._shuffle(a, b, _EVEN), self._shuffle(a, b, _ODD)) for a, b in pairs]
        rows = [""] * WIDTH
        for odd, parts in enumerate(zip(*lanes, strict=True)):  # pairs of lanes odd, odd + 2, ...
            if len(parts) == 1:
                for i in range(4):
                    rows[2 * i + odd] = self._shuffle(parts[0], "poison", (2 * i, 2 * i + 1))
            elif len(parts) == 2:
                for i in range(2):
                    interleaved = self._shuffle(*parts, _pair_lanes((2 * i, 2 * i + 4, 2 * i + 1, 2 * i + 5)))
                    rows[4 * i + odd] = self._shuffle(interleaved, "poison", range(4))
                    rows[4 * i + 2 + odd] = self._shuffle(interleaved, "poison", range(4, 8))
            else:
                for i in range(2):
                    low_half, high_half = (self._shuffle(a, b, _pair_lanes((2 * i, 2 * i + 1, 2 * i + 4, 2 * i + 5)))
                                   for a, b in (parts[:2], parts[2:]))  # fmt: skip
                    rows[4 * i + odd] = self._shuffle(low_half, high_half, _pair_lanes((0, 2, 4, 6)))
                    rows[4 * i + 2 + odd] = self._shuffle(low_half, high_half, _pair_lanes((1, 3, 5, 7)))
        return rows

    def _shuffle(self, a: str, b: str, lanes: Sequence[int]) -> str:
        """Shuffle two vectors; lanes of the second are counted from eight."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.emit(f"shufflevector {self.type} {a}, {self.type} {b}, <{len(lanes)} x i32> <{mask}>")

    def update_max(self, value: str, pointer: str) -> None:
        """Update the lane-wise maximum in memory; bit patterns of non-negative doubles order like int64, NaN last."""
        integer_type, name = f"<{WIDTH} x i64>", f"llvm.smax.v{WIDTH}i64"
        bits = self.emit(f"bitcast {self.type} {value} to {integer_type}")
        maximum = self.emit(f"load {integer_type}, ptr {pointer}, align 8")
        self.lines.append(
            f"store {integer_type} {self.call(name, integer_type, bits, maximum)}, ptr {pointer}, align 8"
        )

    def two_sum(self, high: str, low: str, step: str) -> tuple[str, str]:
        """Return ``high + (step + low)`` and its rounding error (compensated sum); no reassociation is allowed."""

        def exact(operation: str, a: str, b: str) -> str:
            return self.emit(f"{operation} {self.type} {self.operand(a)}, {self.operand(b)}")

        increment = exact("fadd", step, low)
        total = exact("fadd", high, increment)
        added = exact("fsub", total, high)
        high_error = exact("fsub", high, exact("fsub", total, added))
        return total, exact("fadd", high_error, exact("fsub", increment, added))

    def store_lanes(self, value: str, base: str, slot: int) -> None:
        """Store the lanes contiguously."""
        pointer_to = self.emit(f"getelementptr inbounds double, ptr {base}, i64 {slot * WIDTH}")
        self.lines.append(f"store {self.type} {self.operand(value)}, ptr {pointer_to}, align 8")

    def load_lanes(self, base: str, slot: int) -> str:
        """Load contiguous lanes."""
        pointer_to = self.emit(f"getelementptr inbounds double, ptr {base}, i64 {slot * WIDTH}")
        return self.emit(f"load {self.type}, ptr {pointer_to}, align 8")

    def to_ir_loop(self, n_slots: int, n_outputs: int, n_private: int) -> str:
        """Return the function as IR, with the numbers of indices, outputs and private entries per instance."""
        declared = "\n".join(self._declared[f] for f in sorted(self._declared))
        names = [line if isinstance(line, str) else "" for line in self.lines]
        renamed = [_name_registers(line) for line in names if line]
        preheader = "\n".join(_name_registers(line) for line in self._preheader)
        body = "\n".join(renamed)
        return f"""{declared}
define void @{self.name}(ptr noalias %a0, ptr noalias %a1, ptr noalias %a2, ptr noalias %a3, ptr noalias %a4) #1 {{
entry:
%start = load i64, ptr %a3, align 8
%pstop = getelementptr inbounds i64, ptr %a3, i64 {STOP_BLOCK}
%stop = load i64, ptr %pstop, align 8
%pindex = getelementptr inbounds i64, ptr %a3, i64 {INDEX}
%indextable = load ptr, ptr %pindex, align 8
%pown = getelementptr inbounds i64, ptr %a3, i64 {PRIVATE_PARAMS}
%owntable = load ptr, ptr %pown, align 8
{preheader}
%any = icmp slt i64 %start, %stop
br i1 %any, label %blocks, label %done
blocks:
%b = phi i64 [%start, %entry], [%next, %blocks]
%o1 = mul i64 %b, {n_slots * WIDTH}
%row = getelementptr inbounds i32, ptr %indextable, i64 %o1
%o2 = mul i64 %b, {n_outputs * WIDTH}
%out = getelementptr inbounds double, ptr %a4, i64 %o2
%o3 = mul i64 %b, {n_private * WIDTH}
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


def _pair_lanes(pairs: Sequence[int]) -> list[int]:
    """Return the lanes of pairs of entries."""
    return [lane for pair in pairs for lane in (2 * pair, 2 * pair + 1)]


def _contiguous_runs(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Split sorted offsets into contiguous runs of length eight, four, two or one: (start, size)."""
    runs, i = [], 0
    while i < len(offsets):
        size = next(n for n in (8, 4, 2, 1) if offsets[i : i + n] == list(range(offsets[i], offsets[i] + n)))
        runs.append((offsets[i], size))
        i += size
    return runs


def _name_registers(line: str) -> str:
    """Give numbered registers names: LLVM requires numbered registers to be in order."""
    return _REGISTER.sub(lambda match: f"%v{match.group()[1:]}", line)


class LazyInput(Sequence[str]):
    """Lazy input of a graph: entries are loaded on first access."""

    def __init__(self, size: int, read: Callable[[int], str]) -> None:
        self._size, self._read = size, read

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        return self._read(i)


def pack_lanes(table: np.ndarray) -> np.ndarray:
    """Pack rows of instances into blocks of eight lanes; the last block is padded by repeating the last instance."""
    count, slots = table.shape
    blocks = -(-count // WIDTH)
    padded = np.concatenate([table, np.repeat(table[-1:], blocks * WIDTH - count, axis=0)])
    return np.ascontiguousarray(padded.reshape(blocks, WIDTH, slots).transpose(0, 2, 1))


def pool_index(instances: np.ndarray, outputs: int) -> np.ndarray:
    """Return the pool index of the first output of instances, in blocks of `outputs` outputs each."""
    return instances // WIDTH * (outputs * WIDTH) + instances % WIDTH
