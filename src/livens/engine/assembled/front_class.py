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

from livens.engine.assembled.indexed import WIDTH, IndexedEmitter
from livens.engine.assembled.piece_kernels import indexed_writer
from livens.engine.emit import ZERO
from livens.engine.native import Code, find_or_compile

#: Pivot threshold relative to the largest entry of its column among equations of its type.
_USABLE = 1e-3
#: Singularity threshold relative to the largest entry of the front.
_ZERO = 1e-11


class NoPivotError(ArithmeticError):
    """Error: a front has no usable pivot at its position in the elimination order."""


class Signature:
    """Sparsity pattern of a contribution: matrix entries (block, row, block, column, slot), rhs (block, row, slot).

    A block index counts the blocks of the contribution; rows and columns are positions of unknowns in their block; a
    slot is the index of the value among the outputs. Patterns are compared by identity: the analysis guarantees that
    equal patterns are one object.
    """

    def __init__(
        self,
        number: int,
        entries: tuple[tuple[int, int, int, int, int], ...],
        right: tuple[tuple[int, int, int], ...],
        roles: int,
    ) -> None:
        self.number, self.entries, self.right, self.roles = number, entries, right, roles
        near: list[set[int]] = [set() for _ in range(roles)]
        for a, _, b, _, _ in entries:
            near[a].add(b)
            near[b].add(a)
        #: Adjacency of the blocks.
        self.couplings = [sorted(found) for found in near]
        self.pushed = {role for role, _, _ in right}


@dataclass(frozen=True)
class Shape:
    """Common structure of the fronts of a class; the key of the class."""

    kinds: tuple[int, ...]  # of the unknowns to be eliminated: 0 for coordinates, 1 for multipliers
    #: (pattern, index of the eliminated block, boundary block of each block); the index -1 marks a contribution that is
    #: absorbed from the boundary and added to the update of the front.
    sources: tuple[tuple[Signature, int, tuple[int, ...]], ...]
    boundary: tuple[int, ...]  # sizes of its blocks


class FrontClass:
    """Structurally equal fronts: sources of their entries, pivot order, and kernels."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.p, self.f = len(shape.kinds), int(sum(shape.boundary))
        self.source_count = len(shape.sources)
        offsets = np.concatenate([[0], np.cumsum(shape.boundary)]).astype(int).tolist()
        comes: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        right: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for s, (signature, own, local) in enumerate(shape.sources):

            def at(role: int, position: int, own: int = own, local: tuple[int, ...] = local) -> int:
                if role == own:
                    return position
                return -1 if local[role] < 0 else self.p + offsets[local[role]] + position

            for row_role, row, column_role, column, slot in signature.entries:
                if own >= 0 and own not in (row_role, column_role):
                    continue
                i, j = at(row_role, row), at(column_role, column)
                if i >= 0 and j >= 0:
                    comes[i, j].append((s, slot))
            for role, row, slot in signature.right:
                if role == own or (own < 0 and local[role] >= 0):
                    right[at(role, row)].append((s, slot))
        #: Sources (contribution, slot) of the entries of the matrix and of its right-hand side.
        self.comes, self.right = dict(sorted(comes.items())), dict(sorted(right.items()))
        self.order: tuple[tuple[int, int], ...] = ()  # (row, column) of the pivots
        self._offsets = offsets
        self.signature: Signature | None = None  # pattern of the update of the front
        self.number = -1  # index of the class
        self.slots = self.read_slots = 0  # of the index table: all, and those of contributions and equations
        self.two_runs: tuple[bool, ...] = ()  # whether contiguous contributions form one run or two
        #: Addresses of the eliminated equations and unknowns: slot of the table and offset.
        self.rights: list[tuple[int, int]] = []
        self.places: list[tuple[int, int]] = []

    # -- pivot order --------------------------------------------------------------------------------------------------
    def assembled(self, pool: np.ndarray, where: np.ndarray, strides: Sequence[int]) -> np.ndarray:
        """Return sample matrices of fronts; contribution s of front i starts at ``starts[i, s]`` of the pool."""
        d = self.p + self.f
        A = np.zeros((len(where), d, d))
        for (i, j), parts in self.comes.items():
            for s, slot in parts:
                A[:, i, j] += pool[where[:, s] + slot * strides[s]]
        return A

    def eliminated(self, A: np.ndarray) -> np.ndarray:
        """Eliminate sample matrices in place and return which fronts have usable pivots; choose the order if unset.

        Coordinates are eliminated before multipliers. Diagonal pivots are preferred if they are usable in all fronts,
        then pivots with the fewest flops. The sample is taken at a generic position and is the same for all runs.
        """
        p, chosen = self.p, list(self.order)
        scale = np.abs(A[:, :p, :]).max(axis=(1, 2), initial=0.0) + 1e-300
        good = np.ones(len(A), dtype=bool)
        rows = {i: {j for (a, j) in self.comes if a == i} for i in range(p + self.f)}
        left_rows, left_columns = set(range(p)), set(range(p))
        order: list[tuple[int, int]] = []
        with np.errstate(all="ignore"):
            for step in range(p):
                if chosen:
                    row, column = chosen[step]
                else:
                    row, column = self._choice(A, rows, left_rows, left_columns, scale, good)
                order.append((row, column))
                left_rows.discard(row)
                left_columns.discard(column)
                pivot = A[:, row, column]
                size = np.abs(A[:, :, column]).max(axis=1)
                good &= (np.abs(pivot) > _ZERO * np.maximum(size, 1e-6 * scale)) & np.isfinite(pivot)
                factor = A[:, :, column] / pivot[:, None]
                factor[:, [i for i, _ in order]] = 0.0
                A -= factor[:, :, None] * A[:, row, :][:, None, :]
                touched = rows.pop(row)
                for i in rows:
                    if column in rows[i]:
                        rows[i] = (rows[i] | touched) - {column}
        if not self.order and good.any():
            self._settle(tuple(order))
        return good

    def _choice(
        self,
        A: np.ndarray,
        rows: dict[int, set[int]],
        left_rows: set[int],
        left_columns: set[int],
        scale: np.ndarray,
        good: np.ndarray,
    ) -> tuple[int, int]:
        kinds = self.shape.kinds
        count: dict[int, int] = defaultdict(int)
        for there in rows.values():
            for j in there:
                count[j] += 1
        best: tuple[tuple[float, ...], tuple[int, int]] | None = None
        for column in left_columns:
            near = [i for i in left_rows if kinds[i] == kinds[column]]
            for row in (column, *sorted(left_rows - {column})) if column in left_rows else sorted(left_rows):
                if column not in rows[row]:
                    continue
                values = np.abs(A[:, row, column])
                compared = near if kinds[row] == kinds[column] else sorted(left_rows)
                largest = np.abs(A[:, compared, column]).max(axis=1)
                quality = np.min(np.where(good, values / np.maximum(largest, _ZERO * scale), 1.0))
                if not quality > 1e-8:
                    continue
                usable = quality > _USABLE
                cost = (len(rows[row]) - 1) * (count[column] - 1)
                rank = (
                    kinds[column], not usable, kinds[row] != kinds[column], row != column, cost, column, row,
                )  # fmt: skip
                if best is None or rank < best[0]:
                    best = rank, (row, column)
        if best is None:
            raise NoPivotError("a front has no pivot")
        return best[1]

    def _settle(self, order: tuple[tuple[int, int], ...]) -> None:
        """Fix the pivot order and the layout of factors and updates."""
        self.order, p = order, self.p
        rows: dict[int, set[int]] = defaultdict(set)
        for i, j in self.comes:
            rows[i].add(j)
        self._upper: dict[int, list[int]] = {}  # for every pivot: the columns of its row
        self._lower: dict[int, list[int]] = {}  # and the rows below it
        self.products = 0
        for k, (row, column) in enumerate(order):
            touched = rows.pop(row)
            self._upper[k] = sorted(touched - {column})
            self._lower[k] = sorted(i for i in rows if column in rows[i])
            self.products += len(self._upper[k]) * len(self._lower[k])
            for i in self._lower[k]:
                rows[i] = (rows[i] | touched) - {column}
        self.updates = sorted((i, j) for i, there in rows.items() for j in there if i >= p and j >= p)
        self.outputs = len(self.updates) + self.f
        blocks = np.repeat(np.arange(len(self.shape.boundary)), self.shape.boundary)

        def place(i: int) -> tuple[int, int]:
            block = int(blocks[i - p])
            return block, i - p - self._offsets[block]

        self.offered = (
            tuple((*place(i), *place(j), slot) for slot, (i, j) in enumerate(self.updates)),
            tuple((*place(p + a), len(self.updates) + a) for a in range(self.f)),
            len(self.shape.boundary),
        )
        # factors: rows of U, reciprocal pivots, right-hand sides; then L, which is stored only for chord iterations
        self._at_upper: dict[tuple[int, int], int] = {}
        for k in range(p):
            for j in self._upper[k]:
                self._at_upper[k, j] = len(self._at_upper)
        top = len(self._at_upper)
        self._at_pivot, self._at_right = top, top + p
        self._at_lower: dict[tuple[int, int], int] = {}
        for k in range(p):
            for i in self._lower[k]:
                self._at_lower[i, k] = top + 2 * p + len(self._at_lower)
        self.factors = top + 2 * p + len(self._at_lower)

    def table(self, sources: np.ndarray, rows: np.ndarray, unknowns: np.ndarray) -> np.ndarray:
        """Return the index table, one row per front: contributions, positions of the eliminated equations in the
        residual, eliminated unknowns and boundary unknowns.
        """
        sources = sources.reshape(len(unknowns), -1)
        rights, self.rights = _shared_columns(rows, self.source_count)
        self.read_slots = self.source_count + rights.shape[1]
        columns, self.places = _shared_columns(unknowns, self.read_slots)
        self.slots = self.read_slots + columns.shape[1]
        return np.concatenate([sources, rights, columns], axis=1)

    # -- native code --------------------------------------------------------------------------------------------------
    def compile(self, name: str, in_runs: bool = False) -> Code:
        """Compile the kernel "factor", "keep" (factor, and store L for `forward`), "forward" or "back".

        With `in_runs` the kernel is for blocks of fronts whose contributions are contiguous.
        """
        laid_out = self.slots, self.rights, self.places, self.two_runs if in_runs else None
        content = f"{indexed_writer()} {self.shape.kinds} {self.comes} {self.right} {self.order} {self.f} {laid_out}"
        text = {
            "factor": lambda: self._factor_text("factor", False, in_runs),
            "keep": lambda: self._factor_text("keep", True, in_runs),
            "forward": lambda: self._forward_text(in_runs),
            "back": self._back_text,
        }[name]
        # higher optimisation levels of LLVM double the compile time without effect
        return find_or_compile(content, text, name, 1)

    def _source(self, e: IndexedEmitter, s: int, slot: int, in_runs: bool) -> str:
        return self._read(e, "%a0", s, slot * WIDTH, in_runs)

    def _read(self, e: IndexedEmitter, base: str, slot: int, offset: int, in_runs: bool) -> str:
        return e.runs(base, slot, offset, self.two_runs[slot]) if in_runs else e.gather(base, slot, offset)

    def _right_sides(self, e: IndexedEmitter, in_runs: bool) -> dict[int, str]:
        """Return the right-hand sides: residuals of eliminated rows plus updates of earlier fronts."""
        y = {i: self._read(e, "%a1", *self.rights[i], in_runs) for i in range(self.p)}
        for i, parts in self.right.items():
            for s, slot in parts:
                value = self._source(e, s, slot, in_runs)
                y[i] = e.add(y[i], value) if i in y else value
        return y

    def _factor_text(self, name: str, keep: bool, in_runs: bool) -> str:
        e, _p = IndexedEmitter(name), self.p
        A: dict[int, dict[int, str]] = defaultdict(dict)
        for (i, j), parts in self.comes.items():
            values = [self._source(e, s, slot, in_runs) for s, slot in parts]
            A[i][j] = values[0]
            for value in values[1:]:
                A[i][j] = e.add(A[i][j], value)
        y = self._right_sides(e, in_runs)
        for k, (row, column) in enumerate(self.order):
            inverse = e.reciprocal(A[row][column])
            for j in self._upper[k]:
                e.put(A[row][j], "%own", self._at_upper[k, j])
            e.put(inverse, "%own", self._at_pivot + k)
            e.put(y[row], "%own", self._at_right + k)
            for i in self._lower[k]:
                factor = e.mul(A[i].pop(column), inverse)
                if keep:
                    e.put(factor, "%own", self._at_lower[i, k])
                for j in self._upper[k]:
                    old = A[i].get(j)
                    product = A[row][j]
                    A[i][j] = e.fneg(e.mul(factor, product)) if old is None else e.minus_product(old, factor, product)
                y[i] = e.minus_product(y[i], factor, y[row]) if i in y else e.fneg(e.mul(factor, y[row]))
        self._write_updates(e, A, y)
        return e.loop(self.slots, self.outputs, self.factors)

    def _write_updates(self, e: IndexedEmitter, A: dict[int, dict[int, str]], y: dict[int, str]) -> None:
        for slot, (i, j) in enumerate(self.updates):
            e.put(A[i][j], "%out", slot)
        for a in range(self.f):
            e.put(y.get(self.p + a, ZERO), "%out", len(self.updates) + a)

    def _forward_text(self, in_runs: bool) -> str:
        """Return the forward substitution of a further right-hand side with stored factors."""
        e = IndexedEmitter("forward")
        y = self._right_sides(e, in_runs)
        for k, (row, _) in enumerate(self.order):
            e.put(y[row], "%own", self._at_right + k)
            for i in self._lower[k]:
                factor = e.get("%own", self._at_lower[i, k])
                y[i] = e.minus_product(y[i], factor, y[row]) if i in y else e.fneg(e.mul(factor, y[row]))
        for a in range(self.f):
            e.put(y.get(self.p + a, ZERO), "%out", len(self.updates) + a)
        return e.loop(self.slots, self.outputs, self.factors)

    def _back_text(self) -> str:
        e, p = IndexedEmitter("back"), self.p
        x = {p + a: e.gather("%a0", *self.places[p + a]) for a in range(self.f)}
        for k in reversed(range(p)):
            _, column = self.order[k]
            value = e.get("%own", self._at_right + k)
            for j in self._upper[k]:
                value = e.minus_product(value, e.get("%own", self._at_upper[k, j]), x[j])
            x[column] = e.mul(value, e.get("%own", self._at_pivot + k))
        e.scatter((x[i], "%a0", *self.places[i]) for i in range(p))
        return e.loop(self.slots, self.outputs, self.factors)


def _shared_columns(table: np.ndarray, first: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Share index columns that differ by a constant; return the shared columns, and (slot, offset) of every column.
    Slots are counted from `first_slot`.
    """
    columns: list[np.ndarray] = []
    places = []
    for column in table.T:
        for slot, known in enumerate(columns):
            if np.all(column - known == column[0] - known[0]):
                places.append((first + slot, int(column[0] - known[0])))
                break
        else:
            places.append((first + len(columns), 0))
            columns.append(column)
    return np.stack(columns, axis=1), places
