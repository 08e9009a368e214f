"""Assembly of element kernels into residual, Jacobian and final state.

Element kernels write to a contribution pool; sums gather their terms from the pool. No two instances write to the same
entry, and sums have a fixed order, so that results are independent of the number of threads.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.indexed import FIRST, LAST, OFFSETS, WIDTH, in_pool
from livens.engine.assembled.lane_order import in_lanes
from livens.engine.assembled.memory import aligned_zeros
from livens.engine.assembled.piece_kernels import PieceKernels, parameter_tables
from livens.engine.assembled.row_sums import RowSums
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Indices, Integers
from livens.engine.lowering.words import call
from livens.expressions.graph.roundoff import UNIT
from livens.schemes.recipes.pieces import Pieces

#: Uncertainty of an unknown relative to the largest unknown of its group.
_OWN_DIGITS = 1e-4
#: Columns of the kernel addresses of an element batch; further columns are the offsets of its outputs.
NEWTON, RESIDUAL, FLOOR, END, TURN = range(5)
_KERNELS = ("newton", "residual", "floor", "end", "turn")
POOL, FLOORS, ENDS, COLUMNS = range(5, 9)


@dataclass(frozen=True)
class Sums:
    """Gather lists (CSR): the terms of target ``i`` are ``pool[positions[starts[i]:starts[i+1]]]``."""

    starts: np.ndarray
    positions: np.ndarray

    @classmethod
    def of(cls, targets: list[np.ndarray], positions: list[np.ndarray], size: int) -> Sums:
        """Build gather lists that preserve the order of the terms of each target; negative targets are removed."""
        target = np.concatenate([*targets, np.zeros(0, dtype=np.int64)])
        position = np.concatenate([*positions, np.zeros(0, dtype=np.int64)])
        chosen = target >= 0
        target, position = target[chosen], position[chosen]
        order = np.argsort(target, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=size))])
        return cls(starts.astype(np.int32), position[order].astype(np.int32))

    def of_targets(self, chosen: np.ndarray) -> Sums:
        """Return the gather lists of some targets, in the given order."""
        counts = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(counts)])
        inside = np.arange(int(counts.sum())) - np.repeat(starts[:-1], counts)
        return Sums(starts.astype(np.int32), self.positions[np.repeat(self.starts[:-1][chosen], counts) + inside])

    def gather(self, pool: np.ndarray, out: np.ndarray) -> None:
        """Sum the terms of every target into `out`."""
        gather_sums(self.starts, self.positions, pool, out, 0, self.starts.size - 1)


def _rows_of(pieces: Pieces) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[bool]]:
    """Return target equations and pool positions of every residual row, and whether each row is of a force."""
    found, forces, base = [], [], 0
    for p in pieces.pieces:
        count, outputs = int(p.rows.numel()), int(p.rows.numel()) + len(p.pattern)
        first = base + in_pool(np.arange(p.count), outputs)
        found += [(p.equations[:, a], first + a * WIDTH) for a in range(count)]
        forces += [p.force] * count
        base += -(-p.count // WIDTH) * WIDTH * outputs
    return found, forces


class Assembly:
    """Kernels of a step and the gather lists of their outputs; shared by all runs of a model."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces = in_lanes(pieces)
        size, states = pieces.size, pieces.layout.size
        adders = np.zeros(states, dtype=np.int64)
        for p in pieces.pieces:
            for column in (*p.end_places.T, *p.sum_places.T):
                np.add.at(adders, column, 1)
        rows, forces = _rows_of(pieces)
        cut = int(np.argmax(pieces.multiplier)) if pieces.multiplier.any() else size
        self.pushed = any(p.impulse is not None for p in pieces.pieces)
        pushes = [self.pushed and force for force in forces]
        self.row_sums = RowSums([r for r, _ in rows], [at for _, at in rows], pushes, cut, size)
        self.kernels = [PieceKernels(p, pieces, adders == 1, self.row_sums.places) for p in pieces.pieces]
        #: Entries of the state without contributions.
        self.blank = np.flatnonzero(adders == 0)
        #: Pool offsets of the outputs of each element batch: residual and Jacobian, round-off bounds, final state.
        self.bases = np.zeros((len(self.kernels), 3), dtype=np.int64)
        tops = np.zeros(3, dtype=np.int64)
        positions: list[list[np.ndarray]] = [[at for _, at in rows], [], []]
        ends: list[np.ndarray] = []
        for i, kernel in enumerate(self.kernels):
            p, each = kernel.piece, np.arange(kernel.piece.count)
            self.bases[i] = tops
            strides = np.array([kernel.outputs, kernel.row_count, len(kernel.summed)])
            first = [base + in_pool(each, stride) for base, stride in zip(tops, strides, strict=True)]
            for a in range(kernel.row_count):
                positions[1].append(first[1] + a * WIDTH)
            for a, column in enumerate(kernel.summed):
                ends.append(p.end_places[:, column])
                positions[2].append(first[2] + a * WIDTH)
            tops = tops + -(-p.count // WIDTH) * WIDTH * strides
        self.tops = tops
        targets = [target for target, _ in rows]
        self.residual_sums, self.floor_sums = (Sums.of(targets, positions[i], size) for i in (0, 1))
        #: Round-off bounds in the order of the residual.
        self.bound_sums = self.floor_sums.of_targets(self.row_sums.rows)
        of_forces = [i for i, force in enumerate(forces) if force]
        pushed = [np.where(targets[i] < cut, targets[i], -1) for i in of_forces]
        #: Generalized impulses of forces, gathered for the equations of coordinates.
        self.first_multiplier = cut
        self.impulse_sums = Sums.of(pushed, [positions[0][i] for i in of_forces], size)
        summed = np.unique(np.concatenate([*ends, np.zeros(0, dtype=np.int64)]))
        number = np.full(states, -1)
        number[summed] = np.arange(summed.size)
        self.summed = summed.astype(np.int64)  # entries of the final state that are sums
        self.end_sums = Sums.of([number[e] for e in ends], positions[2], summed.size)
        codes = [[kernel.address(name) for name in _KERNELS] for kernel in self.kernels]
        self.addresses = np.concatenate([np.array(codes, dtype=np.int64), self.bases], axis=1)
        self.turning = any(kernel.address("turn") for kernel in self.kernels)
        self.index_blocks = [kernel.table.blocks() for kernel in self.kernels]

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns and pool positions (COO) of the Jacobian contributions."""
        rows, columns, positions = [], [], []
        for i, kernel in enumerate(self.kernels):
            p = kernel.piece
            first = self.bases[i, 0] + in_pool(np.arange(p.count), kernel.outputs)
            for a, (i_row, i_column) in enumerate(p.pattern):
                rows.append(p.equations[:, i_row])
                columns.append(p.x[:, i_column])
                positions.append(first + (kernel.row_count + a) * WIDTH)
        row, column, position = np.concatenate(rows), np.concatenate(columns), np.concatenate(positions)
        there = row >= 0
        return row[there], column[there], position[there]

    @functools.cached_property
    def pattern(self) -> tuple[np.ndarray, np.ndarray, Sums]:
        """Rows and columns of the Jacobian's nonzeros in column-major order, and their gather lists."""
        row, column, position = self.places
        key = column * self.pieces.size + row
        places = np.unique(key)
        sums = Sums.of([np.searchsorted(places, key)], [position], places.size)
        return places % self.pieces.size, places // self.pieces.size, sums


class Bench:
    """Workspace of one run: tables with parameters, contribution pool, and context."""

    def __init__(self, assembly: Assembly, k: np.ndarray, extra: int = 0) -> None:
        a = self.assembly = assembly
        self.context = np.zeros(5, dtype=np.int64)
        # loads of two contiguous runs may start before the first entry and end after the last
        self.pool = aligned_zeros(WIDTH + int(a.tops[0]) + extra + WIDTH)[WIDTH:]
        self.floors, self.ends = (aligned_zeros(int(a.tops[i]) + WIDTH) for i in (1, 2))
        self.errors, self.impulses = np.zeros(a.pieces.size), aligned_zeros(a.row_sums.rows.size)
        self.context[4] = self.impulses.ctypes.data
        self._held = [parameter_tables(kernel, k) for kernel in a.kernels]
        offsets = [kernel.table.offsets for kernel in a.kernels]
        self.tables = np.zeros((len(a.kernels), OFFSETS + max(map(len, offsets))), dtype=np.int64)
        for i, kernel in enumerate(a.kernels):
            shared, own = self._held[i]
            blocks = -(-kernel.piece.count // WIDTH)
            addresses = a.index_blocks[i].ctypes.data, own.ctypes.data, shared.ctypes.data, self.context.ctypes.data
            self.tables[i, FIRST:OFFSETS] = [0, blocks, *addresses]
            self.tables[i, OFFSETS : OFFSETS + len(offsets[i])] = offsets[i]
        self.kinds = np.array(a.pieces.kinds, dtype=np.int64)

    def _run(self, which: int, base: int, x: np.ndarray, z: np.ndarray, c: np.ndarray, out: np.ndarray) -> None:
        """Evaluate one kernel of every element batch."""
        count, width = self.tables.shape
        run_pieces(self.assembly.addresses, self.tables, count, width, which, base, x, z, c, out)

    # -- single evaluations, for callers outside the compiled time loop -----------------------------------------------
    def residual(self, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the residual at x."""
        a, r = self.assembly, np.zeros(x.size)
        self.context[0] = m.ctypes.data
        self._run(RESIDUAL, POOL, x, z, c, self.pool)
        a.residual_sums.gather(self.pool, r)
        if a.pushed:
            impulses = np.zeros(x.size)
            a.impulse_sums.gather(self.pool, impulses)
            self.impulses[:] = impulses[a.row_sums.rows]
        return r

    def newton(self, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residual at x and the nonzeros of its Jacobian."""
        a, r = self.assembly, np.zeros(x.size)
        self.context[0] = m.ctypes.data
        self._run(NEWTON, POOL, x, z, c, self.pool)
        a.residual_sums.gather(self.pool, r)
        sums = a.pattern[2]
        values = np.zeros(sums.starts.size - 1)
        sums.gather(self.pool, values)
        return r, values

    def scales(self, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray, dx: np.ndarray) -> np.ndarray:
        """Return the reciprocal round-off bounds of the residual at x."""
        a, scale = self.assembly, np.zeros(x.size)
        self.context[0] = m.ctypes.data
        errors_of(x, dx, self.kinds, self.kinds.size, self.errors)
        self.context[3] = self.errors.ctypes.data
        self._run(FLOOR, FLOORS, x, z, c, self.floors)
        a.floor_sums.gather(self.floors, scale)
        reciprocals(scale, scale.size)
        return scale

    def turn(self, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray, dx: np.ndarray) -> None:
        """Map variations to increments of the unknowns, in place."""
        if self.assembly.turning:
            self.context[0], self.context[3] = m.ctypes.data, dx.ctypes.data
            self._run(TURN, ENDS, x, z, c, self.ends)

    def end(self, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return final state and history at the end of the step."""
        a, z1, m1 = self.assembly, np.zeros(z.size), np.zeros(m.size)
        if a.pushed:
            self.residual(x, z, m, c)
        self.context[0], self.context[1], self.context[2] = m.ctypes.data, z1.ctypes.data, m1.ctypes.data
        self._run(END, ENDS, x, z, c, self.ends)
        sums = np.zeros(a.summed.size)
        a.end_sums.gather(self.ends, sums)
        z1[a.summed] = sums
        return z1, m1


# -- compiled once per machine ----------------------------------------------------------------------------------------
@lowered
def run_pieces(
    addresses: Integers,
    tables: Integers,
    pieces: int,
    width: int,
    which: int,
    base: int,
    x: Doubles,
    z: Doubles,
    c: Doubles,
    out: Doubles,
) -> None:
    """Call one kernel of every element batch that has it and a nonempty range; tables have `width` entries."""
    for i in range(pieces):
        codes, table = addresses + i * COLUMNS, tables + i * width
        if codes[which] != 0 and table[FIRST] < table[LAST]:
            call(codes[which], x, z, c, table, out + codes[base])


@lowered
def gather_sums(starts: Indices, positions: Indices, pool: Doubles, out: Doubles, first: int, stop: int) -> None:
    """Sum the terms of the targets from `start` to `stop`, in a fixed order."""
    for i in range(first, stop):
        total = 0.0
        for j in range(starts[i], starts[i + 1]):
            total += pool[positions[j]]
        out[i] = total


@lowered
def errors_of(x: Doubles, dx: Doubles, kinds: Integers, count: int, errors: Doubles) -> None:
    """Compute the uncertainties of the unknowns, in units of the unit round-off."""
    first = 0
    for k in range(count):
        stop, largest = first + kinds[k], 0.0
        for i in range(first, stop):
            largest = max(largest, abs(x[i]))
        for i in range(first, stop):
            errors[i] = abs(x[i]) + 4.0 * abs(dx[i]) + _OWN_DIGITS * largest
        first = stop


@lowered
def reciprocals(scale: Doubles, size: int) -> None:
    for i in range(size):
        scale[i] = 1.0 / (UNIT * scale[i] + 1e-290)
