"""Taylor recurrences of large groups as loops over vectors, instead of unrolled code that is executed once per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from livens.engine.taylor.recurrences import CHAINS, Chunks, Recurrences
from livens.expressions.graph.taylor_graph import VectorFieldGraph

#: Number of vectors from which the coefficients of a group are spilled to memory and summed in loops.
LOOP_FROM = 2


class SpilledCoefficient(Sequence[str]):
    """Taylor coefficient in memory, loaded at access."""

    def __init__(self, writer: LoopedRecurrences, g: int, k: int) -> None:
        self._writer, self._g, self._k = writer, g, k

    def __len__(self) -> int:
        return self._writer.widths[self._g][1]

    @overload
    def __getitem__(self, c: int) -> str: ...
    @overload
    def __getitem__(self, c: slice) -> Sequence[str]: ...
    def __getitem__(self, c: int | slice) -> str | Sequence[str]:
        if isinstance(c, slice):
            return [self[i] for i in range(*c.indices(len(self)))]
        if not 0 <= c < len(self):
            raise IndexError(c)
        w = self._writer.widths[self._g][0]
        return self._writer.text.load(w, "%S", self._writer.spill_address(self._g, self._k, c))


class LoopedRecurrences(Recurrences):
    """Recurrences whose large groups have their coefficients in memory at ``%S``.

    The coefficients of a power are followed by ``1/a_0`` and then ``k p_k``.
    """

    def __init__(self, field: VectorFieldGraph, order: int, separate: bool = False) -> None:
        super().__init__(field, order, separate)
        self.block = "loop"  # label of the current basic block
        self._base: dict[int, int] = {}
        self.spill_size = 0
        for g, (w, chunks) in enumerate(self.widths):
            if chunks >= LOOP_FROM:
                self._base[g] = self.spill_size
                self.spill_size += 2 * (order + 1) * w * chunks

    def spill_address(self, g: int, k: int, c: int = 0, derivative_part: bool = False) -> int:
        """Return the offset of vector c of coefficient k."""
        w, chunks = self.widths[g]
        return self._base[g] + ((k + (self.order + 1) * derivative_part) * chunks + c) * w

    def store(self, g: int, k: int, chunks: Chunks) -> None:
        """Append coefficient k of a group, and store it in memory if loops may need it."""
        self.series[g].append(chunks)
        if g not in self._base or isinstance(chunks, SpilledCoefficient):
            return
        w, n_chunks = self.widths[g]
        for c in range(n_chunks):
            self.text.store(
                w, chunks[c] if chunks is not None else self.text.zero(w), "%S", self.spill_address(g, k, c)
            )
        if k == 0 and self.nodes[self.groups[g][0]].op == "pow":
            for c, v in enumerate(self.inverse(g, self.operand(g, 0))):
                self.text.store(w, v, "%S", self.spill_address(g, 0, c, derivative_part=True))

    def coefficient(self, g: int, k: int) -> Chunks:
        looped = self._emit_group_loop(g, k)
        return super().coefficient(g, k) if looped is None else looped

    def _sources(self, g: int) -> list[int] | None:
        """Return the groups of the operands, if all are in memory with matching lanes, else None."""
        members, source_groups = self.groups[g], []
        for slot in range(len(self.nodes[members[0]].arguments)):
            names = [self.nodes[n].arguments[slot] for n in members]
            h = self.position[names[0]][0]
            if h not in self._base or names != self.groups[h]:
                return None
            source_groups.append(h)
        return source_groups

    def _emit_group_loop(self, g: int, k: int) -> Chunks:
        """Emit sums of products as a loop over the vectors of a group; return None if that is not possible."""
        node = self.nodes[self.groups[g][0]]
        power = node.op == "pow" and node.data[0] not in (0.5, -1.0)
        sources = self._sources(g) if g in self._base and k and (power or node.op in ("mul", "dot")) else None
        if sources is None:
            return None
        t, (w, chunks), label = self.text, self.widths[g], f"group{g}_{k}"
        outer_values, t.emitted = t.emitted, {}
        t.lines += [f"br label %{label}", f"{label}:"]
        t.lines.append(f"%{label}_c = phi i64 [0, %{self.block}], [%{label}_n, %{label}]")
        base = t.emit(f"getelementptr double, ptr %S, i64 {t.emit(f'mul i64 %{label}_c, {w}')}")

        def read(h: int, j: int, second: bool = False) -> str:
            return t.load(w, base, self.spill_address(h, j, derivative_part=second))

        out: str | None
        if power:
            out = self._power_in_loop(g, sources[0], float(node.data[0]), k, base, read)
        else:
            doubled_terms, single_terms = list[tuple[str, str]](), list[tuple[str, str]]()
            for a, b in zip(sources[::2], sources[1::2], strict=True):
                if a == b:
                    doubled_terms += [(read(a, j), read(a, k - j)) for j in range((k + 1) // 2)]
                    single_terms += [(read(a, k // 2), read(a, k // 2))] if k % 2 == 0 else []
                else:
                    single_terms += [(read(a, j), read(b, k - j)) for j in range(k + 1)]
            single = self._sum(w, single_terms)
            double = self._sum(w, doubled_terms)
            out = single if double is None else t.fma(w, double, t.splat_constant(2.0, w), single)
        assert out is not None
        t.store(w, out, base, self.spill_address(g, k))
        t.lines += [
            f"%{label}_n = add i64 %{label}_c, 1",
            f"%{label}_m = icmp slt i64 %{label}_n, {chunks}",
            f"br i1 %{label}_m, label %{label}, label %{label}_end",
            f"{label}_end:",
        ]
        self.block, t.emitted = f"{label}_end", outer_values
        return SpilledCoefficient(self, g, k)

    def _power_in_loop(self, g: int, a: int, e: float, k: int, base: str, read) -> str:  # type: ignore[no-untyped-def]
        """Return ``k p_k = (e k sum a_(k-j) p_j - (e + 1) sum a_(k-j) j p_j)/a_0`` divided by k."""
        t, w = self.text, self.widths[g][0]
        plain_sum = self._sum(w, [(read(a, k - j), read(g, j)) for j in range(k)])
        assert plain_sum is not None
        out = t.op("fmul", w, plain_sum, t.splat_constant(e * k, w))
        weighted_sum = self._sum(w, [(read(a, k - j), read(g, j, True)) for j in range(1, k)])
        if weighted_sum is not None:
            out = t.fma(w, weighted_sum, t.splat_constant(-(e + 1.0), w), out)
        scaled_power = t.op("fmul", w, out, read(g, 0, True))
        t.store(w, scaled_power, base, self.spill_address(g, k, derivative_part=True))
        return self.divided_by(w, scaled_power, float(k))

    def _sum(self, w: int, pairs: Sequence[tuple[str, str]]) -> str | None:
        parts: list[str | None] = [None] * min(CHAINS, max(1, len(pairs)))
        for i, (a, b) in enumerate(pairs):
            parts[i % len(parts)] = self.text.fma(w, a, b, parts[i % len(parts)])
        return self.add_all(w, parts)
