"""Native kernels of one element type: residual, Jacobian, round-off bounds, final state, and increment map."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.assembled.indexed import (
    CONTEXT,
    ERRORS,
    IMPULSES,
    MEMORY,
    NEXT_MEMORY,
    NEXT_STATE,
    SHARED,
    Columns,
    IndexedEmitter,
    in_blocks,
)
from livens.engine.kernels import writer
from livens.engine.native import Code, find_or_compile, vector_library_width
from livens.expressions.graph.roundoff import VECTOR_LIBRARY, uses_library
from livens.expressions.layout import Layout
from livens.schemes.recipes import pieces as recipe
from livens.schemes.recipes.pieces import Piece, Pieces

#: Modules of this package whose source is part of the code fingerprint.
_HERE = ("indexed", "piece_kernels", "front_class", "row_sums")
_OFTEN, _SELDOM = 2, 1


@functools.cache
def indexed_writer() -> str:
    """Return a fingerprint of the code generators of loops over instances."""
    files = [*(Path(__file__).with_name(f"{name}.py") for name in _HERE), Path(recipe.__file__)]
    return writer() + hashlib.sha256(b"".join(f.read_bytes() for f in files if f.exists())).hexdigest()


@dataclass(frozen=True)
class Place:
    """Gather address of an entry: part of an array, slot of the index table, and offset."""

    part: int
    slot: int
    offset: int


class IndexTable:
    """Index table of the instances of an element batch. Columns that differ by a constant share a slot."""

    def __init__(self, layouts: Sequence[Layout]) -> None:
        self.parts: list[tuple[int, int, int]] = []  # (array, start in it, size)
        for array, layout in enumerate(layouts):
            self.parts += [(array, layout[name].start, size) for name, size in layout.sizes.items()]
        self._columns: list[tuple[int, np.ndarray]] = []  # (size of the part, indices there)

    def place(self, array: int, column: np.ndarray) -> Place:
        """Return the gather address of the entries `column` of an array."""
        first = int(column[0])
        part = next(i for i, (a, start, size) in enumerate(self.parts) if a == array and start <= first < start + size)
        _, start, size = self.parts[part]
        inside = column - start
        for slot, (known_size, known) in enumerate(self._columns):
            if known_size == size and np.all(inside - known == inside[0] - known[0]):
                return Place(part, slot, int(inside[0] - known[0]))
        self._columns.append((size, inside))
        return Place(part, len(self._columns) - 1, 0)

    @property
    def slots(self) -> int:
        return len(self._columns)

    def side_by_side(self, slot: int) -> bool:
        """Return True if the indices of a slot are consecutive over the instances."""
        return bool(np.all(np.diff(self._columns[slot][1]) == 1))

    def blocks(self) -> np.ndarray:
        return in_blocks(np.stack([column for _, column in self._columns], axis=1).astype(np.int32))

    @property
    def offsets(self) -> list[int]:
        return [start for _, start, _ in self.parts]


#: Arrays that the parts belong to.
UNKNOWNS, STATE, REMEMBERED, ROWS = range(4)


class PieceKernels:
    """Native kernels of an element batch and its index table; only the table depends on the number of instances.

    `newton` writes the residual, then the nonzeros of its Jacobian; `residual` writes the residual alone, to the same
    positions; `floor` writes the round-off bounds. `end` writes contributions to the final state and history; entries
    without other contributions are written directly. `turn` maps variations (in the context's errors) to increments of
    the unknowns, in place.
    """

    def __init__(self, piece: Piece, pieces: Pieces, direct: np.ndarray, row_places: np.ndarray) -> None:
        """Compile the kernels; `is_single` marks state entries with one contribution."""
        self.piece = piece
        local = piece.local
        self.row_count, self.outputs = int(piece.rows.numel()), int(piece.rows.numel()) + len(piece.pattern)
        newton = ca.Function("newton", local.all, [piece.rows, piece.entries])
        impulse = [] if piece.impulse is None else [piece.impulse]
        end = ca.Function("end", [*local.all, *impulse], [piece.ends, piece.keeps, piece.sums])
        library = VECTOR_LIBRARY if vector_library_width() > 1 and uses_library(newton) else 1
        # the bounds have the same inputs as the residual, and are derived only if they must be compiled
        rows = [ca.Function("rows", local.all, [one]) for one in (piece.rows, piece.plain) if one is not None]
        self.table = IndexTable([pieces.unknowns, pieces.layout, pieces.memory, Layout(rows=int(row_places.max()) + 1)])
        turn = None if piece.turn is None else ca.Function("turn", [*local.all, piece.turn[0]], [piece.turn[1]])
        used = _used([f for f in (newton, end, turn, *rows[1:]) if f is not None])
        self._x = {i: self.table.place(UNKNOWNS, piece.x[:, i]) for i in sorted(used[0] | used[6])}
        if turn is not None:
            self._x |= {i: self.table.place(UNKNOWNS, piece.x[:, i]) for i in range(piece.x.shape[1])}
        self._z = {i: self.table.place(STATE, piece.z[:, i]) for i in used[1]}
        pushed = sorted(_used([end])[6])
        self._impulses = {i: self.table.place(ROWS, row_places[piece.x[:, i]]) for i in pushed}
        self._m = {i: self.table.place(REMEMBERED, piece.m[:, i]) for i in used[2]}
        #: Parameters shared by all instances, and parameters of single instances.
        self.shared = [i for i in used[5] if np.all(piece.k[:, i] == piece.k[0, i])]
        self.own = [i for i in used[5] if i not in self.shared]
        #: Entries of the final state written directly, and entries that are gathered.
        self.direct = [a for a in range(piece.end_places.shape[1]) if direct[piece.end_places[:, a]].all()]
        self.summed = [a for a in range(piece.end_places.shape[1]) if a not in self.direct]
        self._targets = {a: self.table.place(STATE, piece.end_places[:, a]) for a in self.direct}
        kept = range(piece.keep_places.shape[1])
        self._sums = [
            (self.table.place(STATE, piece.sum_places[:, a]), self.table.place(REMEMBERED, piece.low_places[:, a]))
            for a in range(piece.sum_places.shape[1])
        ]
        self._kept = {a: self.table.place(REMEMBERED, piece.keep_places[:, a]) for a in kept}
        if not self.table.slots:  # no indexed access
            self.table.place(STATE, np.zeros(piece.count, dtype=np.int64))
        self._side_by_side = [slot for slot in range(self.table.slots) if self.table.side_by_side(slot)]
        self.codes: dict[str, Code] = {}
        if self.row_count:
            self._make("newton", newton)
            self._make("residual", ca.Function("residual", local.all, [piece.rows]))
            said = " ".join([f"{library}", *(f.serialize() for f in rows)])
            self._make("floor", lambda: self._floor(library), self.row_count, _SELDOM, said)
        if piece.ends.numel() or piece.keeps.numel() or piece.sums.numel():
            self._make("end", end, stride=len(self.summed))
        if turn is not None:
            self._make("turn", turn, stride=0)

    def address(self, name: str) -> int:
        return self.codes[name].address if name in self.codes else 0

    def _floor(self, library: int) -> ca.Function:
        e, noise = self.piece.noise(library)
        return ca.Function("floor", [*self.piece.local.all, e], [noise])

    def _make(
        self,
        name: str,
        function: ca.Function | Callable[[], ca.Function],
        stride: int | None = None,
        effort: int = _OFTEN,
        said: str = "",
    ) -> None:
        """Compile a function or load it from the cache; the cache key of a lazily derived function is `key_text`."""
        stride = self.outputs if stride is None else stride
        found = [self._x, self._z, self._m, self._targets, self._kept, self._sums, self.shared, self.own, self.summed]
        found += [self._side_by_side, self._impulses]
        content = f"{indexed_writer()} {stride} {self.table.slots} {found} "
        content += function.serialize() if isinstance(function, ca.Function) else said

        def text() -> str:
            return self._text(name, function if isinstance(function, ca.Function) else function(), stride)

        self.codes[name] = find_or_compile(content, text, name, effort)

    def _text(self, name: str, function: ca.Function, stride: int) -> str:
        e = IndexedEmitter(name, self._side_by_side)
        context = e.pointer_at("%a3", CONTEXT)
        bases = {UNKNOWNS: "%a0", STATE: "%a1"}

        def read(place: Place, base: str) -> str:
            return e.gather(e.part(base, place.part), place.slot, place.offset)

        def columns(places: dict[int, Place], size: int, base: str) -> Columns:
            return Columns(size, lambda i: read(places[i], base))

        def parameter(i: int) -> str:
            if i in self.shared:
                return e.broadcast(e.pointer_at("%a3", SHARED), self.shared.index(i))
            return e.get("%own", self.own.index(i))

        sizes = [function.nnz_in(i) for i in range(function.n_in())]
        memory = e.pointer_at(context, MEMORY)
        inputs: list[Sequence[str]] = [
            columns(self._x, sizes[0], bases[UNKNOWNS]),
            columns(self._z, sizes[1], bases[STATE]),
            columns(self._m, sizes[2], memory),
            Columns(1, lambda _: e.broadcast("%a2", 0)),
            Columns(1, lambda _: e.broadcast("%a2", 1)),
            Columns(sizes[5], parameter),
        ]
        if function.n_in() == 7:
            if name == "end":
                inputs.append(columns(self._impulses, sizes[6], e.pointer_at(context, IMPULSES)))
            else:
                inputs.append(columns(self._x, sizes[6], e.pointer_at(context, ERRORS)))
        outputs = e.graph(function, inputs)
        if name == "end":
            self._write_end(e, outputs, context)
        elif name == "turn":
            variations = e.pointer_at(context, ERRORS)
            places = [self._x[i] for i in range(len(outputs[0]))]
            e.scatter(
                (value, e.part(variations, place.part), place.slot, place.offset)
                for value, place in zip(outputs[0], places, strict=True)
            )
        else:
            for i, value in enumerate(value for part in outputs for value in part):
                e.put(value, "%out", i)
        return e.loop(self.table.slots, stride, len(self.own))

    def _write_end(self, e: IndexedEmitter, outputs: list[list[str]], context: str) -> None:
        state, memory, kept = (e.pointer_at(context, what) for what in (NEXT_STATE, MEMORY, NEXT_MEMORY))
        written = [(outputs[0][a], state, place) for a, place in self._targets.items()]
        written += [(outputs[1][a], kept, place) for a, place in self._kept.items()]
        for step, (place, low) in zip(outputs[2], self._sums, strict=True):
            high = e.gather(e.part("%a1", place.part), place.slot, place.offset)
            rest = e.gather(e.part(memory, low.part), low.slot, low.offset)
            total, error = e.compensated(high, rest, step)
            written += [(total, state, place), (error, kept, low)]
        e.scatter((value, e.part(base, place.part), place.slot, place.offset) for value, base, place in written)
        for i, a in enumerate(self.summed):
            e.put(outputs[0][a], "%out", i)


def _used(functions: Sequence[ca.Function]) -> list[set[int]]:
    """Return the entries of each input used by any of the functions."""
    found: list[set[int]] = [set() for _ in range(7)]
    for f in functions:
        for k in range(f.n_instructions()):
            if f.instruction_id(k) == ca.OP_INPUT:
                i, entry = f.instruction_input(k)
                found[i].add(entry)
    return found


def parameter_tables(kernels: PieceKernels, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of shared parameters, and of the parameters of single instances packed in lanes."""
    places = kernels.piece.k
    shared = k[places[0, kernels.shared]] if kernels.shared else np.zeros(1)
    own: Any = in_blocks(k[places[:, kernels.own]]) if kernels.own else np.zeros(1)
    return np.ascontiguousarray(shared, dtype=float), np.ascontiguousarray(own, dtype=float)
