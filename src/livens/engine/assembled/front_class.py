"""Front classes: one fully unrolled kernel eliminates all structurally equal fronts, eight at a time.

A front is a block of unknowns to be eliminated together with its boundary, the unknowns coupled to the block. Its
matrix is the sum of contributions from elements and from fronts eliminated before. Fronts with equal contributions and
couplings form a class.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from livens.engine.arrays import offsets
from livens.engine.assembled.indexed_emitter import WIDTH, IndexedEmitter
from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.ir_emitter import ZERO
from livens.engine.codegen.jit import NativeCode, load_or_compile

#: Pivot threshold relative to the largest entry of its column among equations of its type.
_PIVOT_THRESHOLD = 1e-3
#: Singularity threshold relative to the largest entry of the front.
_SINGULAR = 1e-11


class NoPivotError(ArithmeticError):
    """Error: a front has no usable pivot at its position in the elimination order."""


class ContributionPattern:
    """Sparsity pattern of a contribution: matrix entries (block, row, block, column, slot), rhs (block, row, slot).

    A block index counts the blocks of the contribution; rows and columns are positions of unknowns in their block; a
    slot is the index of the value among the outputs. Patterns are compared by identity: the analysis guarantees that
    equal patterns are one object.
    """

    def __init__(
        self,
        index: int,
        entries: tuple[tuple[int, int, int, int, int], ...],
        rhs: tuple[tuple[int, int, int], ...],
        n_blocks: int,
    ) -> None:
        self.index, self.entries, self.rhs, self.n_blocks = index, entries, rhs, n_blocks
        neighbours: list[set[int]] = [set() for _ in range(n_blocks)]
        for a, _, b, _, _ in entries:
            neighbours[a].add(b)
            neighbours[b].add(a)
        #: Adjacency of the blocks.
        self.adjacency = [sorted(adjacent) for adjacent in neighbours]
        self.blocks_with_rhs = {block for block, _, _ in rhs}


@dataclass(frozen=True)
class FrontStructure:
    """Common structure of the fronts of a class; the key of the class."""

    types: tuple[int, ...]  # of the unknowns to be eliminated: 0 for coordinates, 1 for multipliers
    #: (pattern, index of the eliminated block, boundary block of each block); the index -1 marks a contribution that is
    #: absorbed from the boundary and added to the update of the front.
    contributions: tuple[tuple[ContributionPattern, int, tuple[int, ...]], ...]
    boundary: tuple[int, ...]  # sizes of its blocks


class FrontClass:
    """Structurally equal fronts: sources of their entries, pivot order, and kernels."""

    def __init__(self, structure: FrontStructure) -> None:
        self.structure = structure
        self.n_pivots, self.n_boundary = len(structure.types), int(sum(structure.boundary))
        self.n_contributions = len(structure.contributions)
        boundary_offsets = offsets(structure.boundary).tolist()
        entry_sources: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        rhs_sources: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for s, (pattern, own_block, local) in enumerate(structure.contributions):

            def front_position(
                block: int, position: int, own_block: int = own_block, local: tuple[int, ...] = local
            ) -> int:
                if block == own_block:
                    return position
                return -1 if local[block] < 0 else self.n_pivots + boundary_offsets[local[block]] + position

            for row_block, row, column_block, column, slot in pattern.entries:
                if own_block >= 0 and own_block not in (row_block, column_block):
                    continue
                i, j = front_position(row_block, row), front_position(column_block, column)
                if i >= 0 and j >= 0:
                    entry_sources[i, j].append((s, slot))
            for block, row, slot in pattern.rhs:
                if block == own_block or (own_block < 0 and local[block] >= 0):
                    rhs_sources[front_position(block, row)].append((s, slot))
        #: Sources (contribution, slot) of the entries of the matrix and of its right-hand side.
        self.entry_sources, self.rhs_sources = dict(sorted(entry_sources.items())), dict(sorted(rhs_sources.items()))
        self.pivot_order: tuple[tuple[int, int], ...] = ()  # (row, column) of the pivots
        self._offsets = boundary_offsets
        self.pattern: ContributionPattern | None = None  # pattern of the update of the front
        self.index = -1  # index of the class
        self.n_index_slots = self.n_read_slots = 0  # of the index table: all, and those of contributions and equations
        self.split_runs: tuple[bool, ...] = ()  # whether contiguous contributions form one run or two
        #: Addresses of the eliminated equations and unknowns: slot of the table and offset.
        self.rhs_addresses: list[tuple[int, int]] = []
        self.unknown_addresses: list[tuple[int, int]] = []

    # -- pivot order --------------------------------------------------------------------------------------------------
    def assemble_sample(self, pool: np.ndarray, starts: np.ndarray, strides: Sequence[int]) -> np.ndarray:
        """Return sample matrices of fronts; contribution s of front i starts at ``starts[i, s]`` of the pool."""
        d = self.n_pivots + self.n_boundary
        A = np.zeros((len(starts), d, d))
        for (i, j), sources in self.entry_sources.items():
            for s, slot in sources:
                A[:, i, j] += pool[starts[:, s] + slot * strides[s]]
        return A

    def eliminate_sample(self, A: np.ndarray) -> np.ndarray:
        """Eliminate sample matrices in place and return which fronts have usable pivots; choose the order if unset.

        Coordinates are eliminated before multipliers. Diagonal pivots are preferred if they are usable in all fronts,
        then pivots with the fewest flops. The sample is taken at a generic position and is the same for all runs.
        """
        p, known_order = self.n_pivots, list(self.pivot_order)
        scale = np.abs(A[:, :p, :]).max(axis=(1, 2), initial=0.0) + 1e-300
        is_usable = np.ones(len(A), dtype=bool)
        rows = {i: {j for (a, j) in self.entry_sources if a == i} for i in range(p + self.n_boundary)}
        active_rows, active_columns = set(range(p)), set(range(p))
        order: list[tuple[int, int]] = []
        with np.errstate(all="ignore"):
            for step in range(p):
                if known_order:
                    row, column = known_order[step]
                else:
                    row, column = self._choose_pivot(A, rows, active_rows, active_columns, scale, is_usable)
                order.append((row, column))
                active_rows.discard(row)
                active_columns.discard(column)
                pivot = A[:, row, column]
                size = np.abs(A[:, :, column]).max(axis=1)
                is_usable &= (np.abs(pivot) > _SINGULAR * np.maximum(size, 1e-6 * scale)) & np.isfinite(pivot)
                factor = A[:, :, column] / pivot[:, None]
                factor[:, [i for i, _ in order]] = 0.0
                A -= factor[:, :, None] * A[:, row, :][:, None, :]
                pivot_row = rows.pop(row)
                for i in rows:
                    if column in rows[i]:
                        rows[i] = (rows[i] | pivot_row) - {column}
        if not self.pivot_order and is_usable.any():
            self._fix_pivot_order(tuple(order))
        return is_usable

    def _choose_pivot(
        self,
        A: np.ndarray,
        rows: dict[int, set[int]],
        active_rows: set[int],
        active_columns: set[int],
        scale: np.ndarray,
        is_usable: np.ndarray,
    ) -> tuple[int, int]:
        types = self.structure.types
        count: dict[int, int] = defaultdict(int)
        for columns in rows.values():
            for j in columns:
                count[j] += 1
        best: tuple[tuple[float, ...], tuple[int, int]] | None = None
        for column in active_columns:
            same_type_rows = [i for i in active_rows if types[i] == types[column]]
            for row in (column, *sorted(active_rows - {column})) if column in active_rows else sorted(active_rows):
                if column not in rows[row]:
                    continue
                values = np.abs(A[:, row, column])
                compared = same_type_rows if types[row] == types[column] else sorted(active_rows)
                largest = np.abs(A[:, compared, column]).max(axis=1)
                quality = np.min(np.where(is_usable, values / np.maximum(largest, _SINGULAR * scale), 1.0))
                if not quality > 1e-8:
                    continue
                usable = quality > _PIVOT_THRESHOLD
                cost = (len(rows[row]) - 1) * (count[column] - 1)
                rank = (
                    types[column], not usable, types[row] != types[column], row != column, cost, column, row,
                )  # fmt: skip
                if best is None or rank < best[0]:
                    best = rank, (row, column)
        if best is None:
            raise NoPivotError("a front has no pivot")
        return best[1]

    def _fix_pivot_order(self, order: tuple[tuple[int, int], ...]) -> None:
        """Fix the pivot order and the layout of factors and updates."""
        self.pivot_order, p = order, self.n_pivots
        rows: dict[int, set[int]] = defaultdict(set)
        for i, j in self.entry_sources:
            rows[i].add(j)
        self._upper: dict[int, list[int]] = {}  # for every pivot: the columns of its row
        self._lower: dict[int, list[int]] = {}  # and the rows below it
        self.flops = 0
        for k, (row, column) in enumerate(order):
            pivot_row = rows.pop(row)
            self._upper[k] = sorted(pivot_row - {column})
            self._lower[k] = sorted(i for i in rows if column in rows[i])
            self.flops += len(self._upper[k]) * len(self._lower[k])
            for i in self._lower[k]:
                rows[i] = (rows[i] | pivot_row) - {column}
        self.update_entries = sorted((i, j) for i, columns in rows.items() for j in columns if i >= p and j >= p)
        self.n_outputs = len(self.update_entries) + self.n_boundary
        blocks = np.repeat(np.arange(len(self.structure.boundary)), self.structure.boundary)

        def boundary_position(i: int) -> tuple[int, int]:
            block = int(blocks[i - p])
            return block, i - p - self._offsets[block]

        self.contribution_pattern = (
            tuple(
                (*boundary_position(i), *boundary_position(j), slot) for slot, (i, j) in enumerate(self.update_entries)
            ),
            tuple((*boundary_position(p + a), len(self.update_entries) + a) for a in range(self.n_boundary)),
            len(self.structure.boundary),
        )
        # factors: rows of U, reciprocal pivots, right-hand sides; then L, which is stored only for chord iterations
        self._upper_slot: dict[tuple[int, int], int] = {}
        for k in range(p):
            for j in self._upper[k]:
                self._upper_slot[k, j] = len(self._upper_slot)
        top = len(self._upper_slot)
        self._pivot_slot, self._rhs_slot = top, top + p
        self._lower_slot: dict[tuple[int, int], int] = {}
        for k in range(p):
            for i in self._lower[k]:
                self._lower_slot[i, k] = top + 2 * p + len(self._lower_slot)
        self.n_factor_entries = top + 2 * p + len(self._lower_slot)

    def index_table(self, contributions: np.ndarray, rows: np.ndarray, unknowns: np.ndarray) -> np.ndarray:
        """Return the index table, one row per front: contributions, positions of the eliminated equations in the
        residual, eliminated unknowns and boundary unknowns.
        """
        contributions = contributions.reshape(len(unknowns), -1)
        rhs_columns, self.rhs_addresses = _share_index_columns(rows, self.n_contributions)
        self.n_read_slots = self.n_contributions + rhs_columns.shape[1]
        columns, self.unknown_addresses = _share_index_columns(unknowns, self.n_read_slots)
        self.n_index_slots = self.n_read_slots + columns.shape[1]
        return np.concatenate([contributions, rhs_columns, columns], axis=1)

    # -- native code --------------------------------------------------------------------------------------------------
    def compile(self, name: str, in_runs: bool = False) -> NativeCode:
        """Compile the kernel "factor", "keep" (factor, and store L for `forward`), "forward" or "back".

        With `in_runs` the kernel is for blocks of fronts whose contributions are contiguous.
        """
        layout = self.n_index_slots, self.rhs_addresses, self.unknown_addresses, self.split_runs if in_runs else None
        key_text = (
            f"{codegen_fingerprint()} {self.structure.types} {self.entry_sources} {self.rhs_sources} "
            f"{self.pivot_order} {self.n_boundary} {layout}"
        )
        text = {
            "factor": lambda: self._factor_ir("factor", False, in_runs),
            "keep": lambda: self._factor_ir("keep", True, in_runs),
            "forward": lambda: self._forward_ir(in_runs),
            "back": self._backward_ir,
        }[name]
        # higher optimisation levels of LLVM double the compile time without effect
        return load_or_compile(key_text, text, name, 1)

    def _load_contribution(self, e: IndexedEmitter, s: int, slot: int, in_runs: bool) -> str:
        return self._load(e, "%a0", s, slot * WIDTH, in_runs)

    def _load(self, e: IndexedEmitter, base: str, slot: int, offset: int, in_runs: bool) -> str:
        return e.load_runs(base, slot, offset, self.split_runs[slot]) if in_runs else e.gather(base, slot, offset)

    def _load_rhs(self, e: IndexedEmitter, in_runs: bool) -> dict[int, str]:
        """Return the right-hand sides: residuals of eliminated rows plus updates of earlier fronts."""
        y = {i: self._load(e, "%a1", *self.rhs_addresses[i], in_runs) for i in range(self.n_pivots)}
        for i, sources in self.rhs_sources.items():
            for s, slot in sources:
                value = self._load_contribution(e, s, slot, in_runs)
                y[i] = e.add(y[i], value) if i in y else value
        return y

    def _factor_ir(self, name: str, store_lower: bool, in_runs: bool) -> str:
        e, _p = IndexedEmitter(name), self.n_pivots
        A: dict[int, dict[int, str]] = defaultdict(dict)
        for (i, j), sources in self.entry_sources.items():
            values = [self._load_contribution(e, s, slot, in_runs) for s, slot in sources]
            A[i][j] = values[0]
            for value in values[1:]:
                A[i][j] = e.add(A[i][j], value)
        y = self._load_rhs(e, in_runs)
        for k, (row, column) in enumerate(self.pivot_order):
            inverse = e.reciprocal(A[row][column])
            for j in self._upper[k]:
                e.store_lanes(A[row][j], "%own", self._upper_slot[k, j])
            e.store_lanes(inverse, "%own", self._pivot_slot + k)
            e.store_lanes(y[row], "%own", self._rhs_slot + k)
            for i in self._lower[k]:
                factor = e.mul(A[i].pop(column), inverse)
                if store_lower:
                    e.store_lanes(factor, "%own", self._lower_slot[i, k])
                for j in self._upper[k]:
                    previous = A[i].get(j)
                    product = A[row][j]
                    A[i][j] = (
                        e.fneg(e.mul(factor, product)) if previous is None else e.fnmadd(previous, factor, product)
                    )
                y[i] = e.fnmadd(y[i], factor, y[row]) if i in y else e.fneg(e.mul(factor, y[row]))
        self._write_updates(e, A, y)
        return e.to_ir_loop(self.n_index_slots, self.n_outputs, self.n_factor_entries)

    def _write_updates(self, e: IndexedEmitter, A: dict[int, dict[int, str]], y: dict[int, str]) -> None:
        for slot, (i, j) in enumerate(self.update_entries):
            e.store_lanes(A[i][j], "%out", slot)
        for a in range(self.n_boundary):
            e.store_lanes(y.get(self.n_pivots + a, ZERO), "%out", len(self.update_entries) + a)

    def _forward_ir(self, in_runs: bool) -> str:
        """Return the forward substitution of a further right-hand side with stored factors."""
        e = IndexedEmitter("forward")
        y = self._load_rhs(e, in_runs)
        for k, (row, _) in enumerate(self.pivot_order):
            e.store_lanes(y[row], "%own", self._rhs_slot + k)
            for i in self._lower[k]:
                factor = e.load_lanes("%own", self._lower_slot[i, k])
                y[i] = e.fnmadd(y[i], factor, y[row]) if i in y else e.fneg(e.mul(factor, y[row]))
        for a in range(self.n_boundary):
            e.store_lanes(y.get(self.n_pivots + a, ZERO), "%out", len(self.update_entries) + a)
        return e.to_ir_loop(self.n_index_slots, self.n_outputs, self.n_factor_entries)

    def _backward_ir(self) -> str:
        e, p = IndexedEmitter("back"), self.n_pivots
        x = {p + a: e.gather("%a0", *self.unknown_addresses[p + a]) for a in range(self.n_boundary)}
        for k in reversed(range(p)):
            _, column = self.pivot_order[k]
            value = e.load_lanes("%own", self._rhs_slot + k)
            for j in self._upper[k]:
                value = e.fnmadd(value, e.load_lanes("%own", self._upper_slot[k, j]), x[j])
            x[column] = e.mul(value, e.load_lanes("%own", self._pivot_slot + k))
        e.scatter((x[i], "%a0", *self.unknown_addresses[i]) for i in range(p))
        return e.to_ir_loop(self.n_index_slots, self.n_outputs, self.n_factor_entries)


def _share_index_columns(table: np.ndarray, first_slot: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Share index columns that differ by a constant; return the shared columns, and (slot, offset) of every column.
    Slots are counted from `first_slot`.
    """
    columns: list[np.ndarray] = []
    addresses = []
    for column in table.T:
        for slot, shared in enumerate(columns):
            if np.all(column - shared == column[0] - shared[0]):
                addresses.append((first_slot + slot, int(column[0] - shared[0])))
                break
        else:
            addresses.append((first_slot + len(columns), 0))
            columns.append(column)
    return np.stack(columns, axis=1), addresses
