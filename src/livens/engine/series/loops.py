"""Taylor recurrences of large groups as loops over vectors, instead of unrolled code that is executed once per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from livens.engine.series.recurrences import CHAINS, Chunks, Recurrences
from livens.expressions.graph.elementary import Field

#: Number of vectors from which the coefficients of a group are spilled to memory and summed in loops.
MANY = 2


class Kept(Sequence[str]):
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
        return self._writer.text.load(w, "%S", self._writer.kept_at(self._g, self._k, c))


class LoopedRecurrences(Recurrences):
    """Recurrences whose large groups have their coefficients in memory at ``%S``.

    The coefficients of a power are followed by ``1/a_0`` and then ``k p_k``.
    """

    def __init__(self, field: Field, order: int, alone: bool = False) -> None:
        super().__init__(field, order, alone)
        self.block = "loop"  # label of the current basic block
        self._base: dict[int, int] = {}
        self.room = 0
        for g, (w, chunks) in enumerate(self.widths):
            if chunks >= MANY:
                self._base[g] = self.room
                self.room += 2 * (order + 1) * w * chunks

    def kept_at(self, g: int, k: int, c: int = 0, second: bool = False) -> int:
        """Return the offset of vector c of coefficient k."""
        w, chunks = self.widths[g]
        return self._base[g] + ((k + (self.order + 1) * second) * chunks + c) * w

    def remember(self, g: int, k: int, chunks: Chunks) -> None:
        """Append coefficient k of a group, and store it in memory if loops may need it."""
        self.series[g].append(chunks)
        if g not in self._base or isinstance(chunks, Kept):
            return
        w, many = self.widths[g]
        for c in range(many):
            self.text.store(w, chunks[c] if chunks is not None else self.text.zero(w), "%S", self.kept_at(g, k, c))
        if k == 0 and self.nodes[self.groups[g][0]].op == "pow":
            for c, v in enumerate(self.inverse(g, self.operand(g, 0))):
                self.text.store(w, v, "%S", self.kept_at(g, 0, c, second=True))

    def coefficient(self, g: int, k: int) -> Chunks:
        found = self._looped(g, k)
        return super().coefficient(g, k) if found is None else found

    def _sources(self, g: int) -> list[int] | None:
        """Return the groups of the operands, if all are in memory with matching lanes, else None."""
        members, found = self.groups[g], []
        for slot in range(len(self.nodes[members[0]].arguments)):
            names = [self.nodes[n].arguments[slot] for n in members]
            h = self.place[names[0]][0]
            if h not in self._base or names != self.groups[h]:
                return None
            found.append(h)
        return found

    def _looped(self, g: int, k: int) -> Chunks:
        """Emit sums of products as a loop over the vectors of a group; return None if that is not possible."""
        node = self.nodes[self.groups[g][0]]
        power = node.op == "pow" and node.data[0] not in (0.5, -1.0)
        sources = self._sources(g) if g in self._base and k and (power or node.op in ("mul", "dot")) else None
        if sources is None:
            return None
        t, (w, chunks), label = self.text, self.widths[g], f"group{g}_{k}"
        known, t.known = t.known, {}
        t.lines += [f"br label %{label}", f"{label}:"]
        t.lines.append(f"%{label}_c = phi i64 [0, %{self.block}], [%{label}_n, %{label}]")
        here = t.value(f"getelementptr double, ptr %S, i64 {t.value(f'mul i64 %{label}_c, {w}')}")

        def read(h: int, j: int, second: bool = False) -> str:
            return t.load(w, here, self.kept_at(h, j, second=second))

        out: str | None
        if power:
            out = self._power_in_loop(g, sources[0], float(node.data[0]), k, here, read)
        else:
            twice, once = list[tuple[str, str]](), list[tuple[str, str]]()
            for a, b in zip(sources[::2], sources[1::2], strict=True):
                if a == b:
                    twice += [(read(a, j), read(a, k - j)) for j in range((k + 1) // 2)]
                    once += [(read(a, k // 2), read(a, k // 2))] if k % 2 == 0 else []
                else:
                    once += [(read(a, j), read(b, k - j)) for j in range(k + 1)]
            single = self._total(w, once)
            double = self._total(w, twice)
            out = single if double is None else t.fma(w, double, t.filled(2.0, w), single)
        assert out is not None
        t.store(w, out, here, self.kept_at(g, k))
        t.lines += [
            f"%{label}_n = add i64 %{label}_c, 1",
            f"%{label}_m = icmp slt i64 %{label}_n, {chunks}",
            f"br i1 %{label}_m, label %{label}, label %{label}_end",
            f"{label}_end:",
        ]
        self.block, t.known = f"{label}_end", known
        return Kept(self, g, k)

    def _power_in_loop(self, g: int, a: int, e: float, k: int, here: str, read) -> str:  # type: ignore[no-untyped-def]
        """Return ``k p_k = (e k sum a_(k-j) p_j - (e + 1) sum a_(k-j) j p_j)/a_0`` divided by k."""
        t, w = self.text, self.widths[g][0]
        plain = self._total(w, [(read(a, k - j), read(g, j)) for j in range(k)])
        assert plain is not None
        out = t.op("fmul", w, plain, t.filled(e * k, w))
        slow = self._total(w, [(read(a, k - j), read(g, j, True)) for j in range(1, k)])
        if slow is not None:
            out = t.fma(w, slow, t.filled(-(e + 1.0), w), out)
        times = t.op("fmul", w, out, read(g, 0, True))
        t.store(w, times, here, self.kept_at(g, k, second=True))
        return self.over(w, times, float(k))

    def _total(self, w: int, pairs: Sequence[tuple[str, str]]) -> str | None:
        parts: list[str | None] = [None] * min(CHAINS, max(1, len(pairs)))
        for i, (a, b) in enumerate(pairs):
            parts[i % len(parts)] = self.text.fma(w, a, b, parts[i % len(parts)])
        return self.added(w, parts)
