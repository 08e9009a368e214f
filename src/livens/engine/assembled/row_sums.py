"""SIMD gather-sums of the residual, eight equations at a time.

Equations with equally many terms whose first terms are contiguous in the pool are summed in SIMD lanes and are
contiguous in the residual: the residual has the order of the pool, not that of the unknowns. Terms of forces come
first, because impulses are sums of force terms only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.indexed import OFFSETS, WIDTH, IndexedEmitter
from livens.engine.assembled.lane_order import in_whole_vectors, runs
from livens.engine.assembled.piece_kernels import indexed_writer
from livens.engine.emit import ZERO
from livens.engine.native import Code, find_or_compile


@dataclass(frozen=True, eq=False)
class _Batch:
    """Blocks of eight equations with equally many terms: first row of the residual, and positions of the terms."""

    first: int
    pushes: int  # number of force terms
    table: np.ndarray  # (blocks, terms, lanes)
    two_runs: tuple[bool, ...] | None  # None if terms are not contiguous
    positions: np.ndarray  # of all terms

    def code(self) -> Code:
        content = f"{indexed_writer()} sums {self.table.shape[1]} {self.pushes} {self.two_runs}"
        return find_or_compile(content, self._text, "sums", 1)

    def _text(self) -> str:
        """Return the IR of ``sums(pool, scale, largest, table, residual)``; impulses are the private entries."""
        e, two_runs, total = IndexedEmitter("sums"), self.two_runs, ZERO
        for i in range(self.table.shape[1]):
            value = e.gather("%a0", i) if two_runs is None else e.runs("%a0", i, 0, two_runs[i])
            total = e.add(total, value) if i else value
            if i + 1 == self.pushes:
                e.put(total, "%own", 0)
        e.put(total, "%out", 0)
        scale = e.value("getelementptr inbounds double, ptr %a1, i64 %o2")
        e.note_largest(e.fabs(e.mul(total, e.value(f"load {e.type}, ptr {scale}, align 8"))), "%a2")
        return e.loop(self.table.shape[1], 1, 1)


class RowSums:
    """Gather-sums of the residual from the pool."""

    def __init__(
        self, targets: list[np.ndarray], positions: list[np.ndarray], forces: list[bool], cut: int, size: int
    ) -> None:
        """Build the batches; `is_force` marks terms of impulses, for equations before `first_multiplier`."""
        none = np.zeros(0, dtype=np.int64)
        target, position = np.concatenate([*targets, none]), np.concatenate([*positions, none])
        other = ~np.repeat(np.array(forces, dtype=bool), [len(t) for t in targets]) | (target >= cut)
        chosen = target >= 0
        target, position, other = target[chosen], position[chosen], other[chosen]
        order = np.lexsort((np.arange(target.size), other, target))
        target, position, other = target[order], position[order], other[order]
        terms = np.bincount(target, minlength=size)
        pushes = terms - np.bincount(target, other, minlength=size).astype(np.int64)
        begins = np.concatenate([[0], np.cumsum(terms)])[:-1]
        #: Equation of each row of the residual (repeated for padding), and row of each equation.
        self.rows, self.places = none, np.zeros(size, dtype=np.int64)
        self.batches: list[_Batch] = []
        for count, pushed in np.unique(np.stack([terms, pushes], axis=1), axis=0).tolist():
            members = np.flatnonzero((terms == count) & (pushes == pushed))
            members = members[np.argsort(position[begins[members]] if count else members, kind="stable")]
            self._add(members, position[begins[members][:, None] + np.arange(count)], pushed)

    def _add(self, members: np.ndarray, terms: np.ndarray, pushes: int) -> None:
        """Add equations with these terms; fully contiguous blocks come first."""
        keys = terms[:, 0] if terms.shape[1] else np.arange(len(members))
        slots, at = (np.array(found) for found in in_whole_vectors(keys.tolist()))
        blocks = slots.size // WIDTH
        table = terms[slots].astype(np.int32).reshape(blocks, WIDTH, terms.shape[1]).transpose(0, 2, 1)
        able, single, told = runs(table)
        able = np.asarray(able.all(axis=1))
        order = np.concatenate([np.flatnonzero(able), np.flatnonzero(~able)])
        block = np.empty(order.size, dtype=np.int64)
        block[order] = np.arange(order.size)
        first, middle = self.rows.size, self.rows.size + int(able.sum()) * WIDTH
        self.rows = np.concatenate([self.rows, members[slots.reshape(-1, WIDTH)[order].ravel()]])
        self.places[members] = first + block[at // WIDTH] * WIDTH + at % WIDTH
        if able.any():
            two = tuple(not one for one in np.asarray(single[able].all(axis=0)).tolist())
            self.batches.append(_Batch(first, pushes, np.ascontiguousarray(told[able]), two, table[able]))
        if not able.all():
            self.batches.append(_Batch(middle, pushes, np.ascontiguousarray(table[~able]), None, table[~able]))

    def compile(self) -> list[Code]:
        """Compile the kernel of each batch."""
        return [batch.code() for batch in self.batches]

    def tables(self, impulses: np.ndarray) -> np.ndarray:
        """Return a table for each batch, with `impulses` as the target of the impulses."""
        found = np.zeros((len(self.batches), OFFSETS), dtype=np.int64)
        for i, batch in enumerate(self.batches):
            own = impulses.ctypes.data + 8 * batch.first
            found[i, :4] = 0, len(batch.table), batch.table.ctypes.data, own
        return found
