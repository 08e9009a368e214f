"""SIMD gather-sums of the residual, eight equations at a time.

Equations with equally many terms whose first terms are contiguous in the pool are summed in SIMD lanes and are
contiguous in the residual: the residual has the order of the pool, not that of the unknowns. Terms of forces come
first, because impulses are sums of force terms only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.arrays import offsets
from livens.engine.assembled.indexed_emitter import OFFSETS, WIDTH, IndexedEmitter
from livens.engine.assembled.lane_assignment import contiguous_runs, fill_vectors
from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.ir_emitter import ZERO
from livens.engine.codegen.jit import NativeCode, load_or_compile


@dataclass(frozen=True, eq=False)
class GatherBatch:
    """Blocks of eight equations with equally many terms: first row of the residual, and positions of the terms."""

    first_row: int
    n_force_terms: int  # number of force terms
    table: np.ndarray  # (blocks, terms, lanes)
    split_runs: tuple[bool, ...] | None  # None if terms are not contiguous
    positions: np.ndarray  # of all terms

    def compile(self) -> NativeCode:
        key_text = f"{codegen_fingerprint()} sums {self.table.shape[1]} {self.n_force_terms} {self.split_runs}"
        return load_or_compile(key_text, self._ir, "sums", 1)

    def _ir(self) -> str:
        """Return the IR of ``sums(pool, scale, largest, table, residual)``; impulses are the private entries."""
        e, split_runs, total = IndexedEmitter("sums"), self.split_runs, ZERO
        for i in range(self.table.shape[1]):
            value = e.gather("%a0", i) if split_runs is None else e.load_runs("%a0", i, 0, split_runs[i])
            total = e.add(total, value) if i else value
            if i + 1 == self.n_force_terms:
                e.store_lanes(total, "%own", 0)
        e.store_lanes(total, "%out", 0)
        scale = e.emit("getelementptr inbounds double, ptr %a1, i64 %o2")
        e.update_max(e.fabs(e.mul(total, e.emit(f"load {e.type}, ptr {scale}, align 8"))), "%a2")
        return e.to_ir_loop(self.table.shape[1], 1, 1)


class ResidualGather:
    """Gather-sums of the residual from the pool."""

    def __init__(
        self,
        targets: list[np.ndarray],
        positions: list[np.ndarray],
        is_force: list[bool],
        first_multiplier: int,
        size: int,
    ) -> None:
        """Build the batches; `is_force` marks terms of impulses, for equations before `first_multiplier`."""
        empty = np.zeros(0, dtype=np.int64)
        target, position = np.concatenate([*targets, empty]), np.concatenate([*positions, empty])
        is_not_force = ~np.repeat(np.array(is_force, dtype=bool), [len(t) for t in targets]) | (
            target >= first_multiplier
        )
        selected = target >= 0
        target, position, is_not_force = target[selected], position[selected], is_not_force[selected]
        order = np.lexsort((np.arange(target.size), is_not_force, target))
        target, position, is_not_force = target[order], position[order], is_not_force[order]
        n_terms = np.bincount(target, minlength=size)
        n_force_terms = n_terms - np.bincount(target, is_not_force, minlength=size).astype(np.int64)
        term_starts = offsets(n_terms)[:-1]
        #: Equation of each row of the residual (repeated for padding), and row of each equation.
        self.equations, self.row_of = empty, np.zeros(size, dtype=np.int64)
        self.batches: list[GatherBatch] = []
        for count, n_forces in np.unique(np.stack([n_terms, n_force_terms], axis=1), axis=0).tolist():
            members = np.flatnonzero((n_terms == count) & (n_force_terms == n_forces))
            members = members[np.argsort(position[term_starts[members]] if count else members, kind="stable")]
            self._add_batches(members, position[term_starts[members][:, None] + np.arange(count)], n_forces)

    def _add_batches(self, members: np.ndarray, terms: np.ndarray, n_force_terms: int) -> None:
        """Add equations with these terms; fully contiguous blocks come first."""
        keys = terms[:, 0] if terms.shape[1] else np.arange(len(members))
        slots, lane_of = (np.array(lanes) for lanes in fill_vectors(keys.tolist()))
        blocks = slots.size // WIDTH
        table = terms[slots].astype(np.int32).reshape(blocks, WIDTH, terms.shape[1]).transpose(0, 2, 1)
        is_contiguous, is_single_run, encoding = contiguous_runs(table)
        is_contiguous = np.asarray(is_contiguous.all(axis=1))
        order = np.concatenate([np.flatnonzero(is_contiguous), np.flatnonzero(~is_contiguous)])
        block = np.empty(order.size, dtype=np.int64)
        block[order] = np.arange(order.size)
        first_row, first_gathered_row = self.equations.size, self.equations.size + int(is_contiguous.sum()) * WIDTH
        self.equations = np.concatenate([self.equations, members[slots.reshape(-1, WIDTH)[order].ravel()]])
        self.row_of[members] = first_row + block[lane_of // WIDTH] * WIDTH + lane_of % WIDTH
        if is_contiguous.any():
            split_runs = tuple(
                not is_one_run for is_one_run in np.asarray(is_single_run[is_contiguous].all(axis=0)).tolist()
            )
            self.batches.append(
                GatherBatch(
                    first_row,
                    n_force_terms,
                    np.ascontiguousarray(encoding[is_contiguous]),
                    split_runs,
                    table[is_contiguous],
                )
            )
        if not is_contiguous.all():
            self.batches.append(
                GatherBatch(
                    first_gathered_row,
                    n_force_terms,
                    np.ascontiguousarray(table[~is_contiguous]),
                    None,
                    table[~is_contiguous],
                )
            )

    def compile(self) -> list[NativeCode]:
        """Compile the kernel of each batch."""
        return [batch.compile() for batch in self.batches]

    def tables(self, impulses: np.ndarray) -> np.ndarray:
        """Return a table for each batch, with `impulses` as the target of the impulses."""
        tables = np.zeros((len(self.batches), OFFSETS), dtype=np.int64)
        for i, batch in enumerate(self.batches):
            impulse_address = impulses.ctypes.data + 8 * batch.first_row
            tables[i, :4] = 0, len(batch.table), batch.table.ctypes.data, impulse_address
        return tables
