"""Assembly of element kernels into residual, Jacobian and final state.

Element kernels write to a contribution pool; sums gather their terms from the pool. No two instances write to the same
entry, and sums have a fixed order, so that results are independent of the number of threads.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from livens.engine.arrays import aligned_zeros, offsets
from livens.engine.assembled.element_kernels import ElementTypeKernels, parameter_tables
from livens.engine.assembled.indexed_emitter import FIRST_BLOCK, OFFSETS, STOP_BLOCK, WIDTH, pool_index
from livens.engine.assembled.lane_assignment import permute_batches
from livens.engine.assembled.residual_gather import ResidualGather
from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I32Array, I64Array
from livens.expressions.graph.roundoff import UNIT_ROUNDOFF
from livens.schemes.discretization.assembly_plan import AssemblyPlan

#: Uncertainty of an unknown relative to the largest unknown of its group.
_RELATIVE_UNCERTAINTY = 1e-4
#: Columns of the kernel addresses of an element batch; further columns are the offsets of its outputs.
NEWTON, RESIDUAL, ROUNDOFF, FINAL_STATE, INCREMENT_MAP = range(5)
_KERNEL_NAMES = ("newton", "residual", "roundoff", "final_state", "increment_map")
POOL_OFFSET, BOUNDS_OFFSET, STATE_OFFSET, N_COLUMNS = range(5, 9)


@dataclass(frozen=True)
class GatherLists:
    """Gather lists (CSR): the terms of target ``i`` are ``pool[positions[starts[i]:starts[i+1]]]``."""

    starts: np.ndarray
    positions: np.ndarray

    @classmethod
    def build(cls, targets: list[np.ndarray], positions: list[np.ndarray], size: int) -> GatherLists:
        """Build gather lists that preserve the order of the terms of each target; negative targets are removed."""
        target = np.concatenate([*targets, np.zeros(0, dtype=np.int64)])
        position = np.concatenate([*positions, np.zeros(0, dtype=np.int64)])
        selected = target >= 0
        target, position = target[selected], position[selected]
        order = np.argsort(target, kind="stable")
        starts = offsets(np.bincount(target, minlength=size))
        return cls(starts.astype(np.int32), position[order].astype(np.int32))

    def subset(self, selected: np.ndarray) -> GatherLists:
        """Return the gather lists of some targets, in the given order."""
        counts = np.diff(self.starts)[selected]
        starts = offsets(counts)
        index_in_target = np.arange(int(counts.sum())) - np.repeat(starts[:-1], counts)
        return GatherLists(
            starts.astype(np.int32), self.positions[np.repeat(self.starts[:-1][selected], counts) + index_in_target]
        )

    def sum_into(self, pool: np.ndarray, out: np.ndarray) -> None:
        """Sum the terms of every target into `out`."""
        gather_sums(self.starts, self.positions, pool, out, 0, self.starts.size - 1)


def _residual_rows(plan: AssemblyPlan) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[bool]]:
    """Return target equations and pool positions of every residual row, and whether each row is of a force."""
    targets_and_positions, is_force, offset = [], [], 0
    for p in plan.batches:
        count, outputs = int(p.residual.numel()), int(p.residual.numel()) + len(p.jac_pattern)
        first_position = offset + pool_index(np.arange(p.count), outputs)
        targets_and_positions += [(p.equation_dofs[:, a], first_position + a * WIDTH) for a in range(count)]
        is_force += [p.is_force] * count
        offset += -(-p.count // WIDTH) * WIDTH * outputs
    return targets_and_positions, is_force


class Assembly:
    """Kernels of a step and the gather lists of their outputs; shared by all runs of a model."""

    def __init__(self, plan: AssemblyPlan) -> None:
        self.plan = plan = permute_batches(plan)
        size, states = plan.size, plan.layout.size
        n_contributions = np.zeros(states, dtype=np.int64)
        for p in plan.batches:
            for column in (*p.final_dofs.T, *p.increment_dofs.T):
                np.add.at(n_contributions, column, 1)
        rows, is_force = _residual_rows(plan)
        first_multiplier = int(np.argmax(plan.is_multiplier)) if plan.is_multiplier.any() else size
        self.has_impulses = any(p.impulse is not None for p in plan.batches)
        has_impulse = [self.has_impulses and force for force in is_force]
        self.residual_gather = ResidualGather(
            [r for r, _ in rows], [at for _, at in rows], has_impulse, first_multiplier, size
        )
        self.kernels = [
            ElementTypeKernels(p, plan, n_contributions == 1, self.residual_gather.row_of) for p in plan.batches
        ]
        #: Entries of the state without contributions.
        self.zero_entries = np.flatnonzero(n_contributions == 0)
        #: Pool offsets of the outputs of each element batch: residual and Jacobian, round-off bounds, final state.
        self.pool_offsets = np.zeros((len(self.kernels), 3), dtype=np.int64)
        pool_sizes = np.zeros(3, dtype=np.int64)
        positions: list[list[np.ndarray]] = [[at for _, at in rows], [], []]
        state_entries: list[np.ndarray] = []
        for i, kernel in enumerate(self.kernels):
            p, instances = kernel.element_batch, np.arange(kernel.element_batch.count)
            self.pool_offsets[i] = pool_sizes
            strides = np.array([kernel.n_outputs, kernel.n_rows, len(kernel.gathered)])
            first_positions = [
                base + pool_index(instances, stride) for base, stride in zip(pool_sizes, strides, strict=True)
            ]
            for a in range(kernel.n_rows):
                positions[1].append(first_positions[1] + a * WIDTH)
            for a, column in enumerate(kernel.gathered):
                state_entries.append(p.final_dofs[:, column])
                positions[2].append(first_positions[2] + a * WIDTH)
            pool_sizes = pool_sizes + -(-p.count // WIDTH) * WIDTH * strides
        self.pool_sizes = pool_sizes
        targets = [target for target, _ in rows]
        self.residual_sums, self.roundoff_sums = (GatherLists.build(targets, positions[i], size) for i in (0, 1))
        #: Round-off bounds in the order of the residual.
        self.bound_sums = self.roundoff_sums.subset(self.residual_gather.equations)
        force_rows = [i for i, force in enumerate(is_force) if force]
        impulse_targets = [np.where(targets[i] < first_multiplier, targets[i], -1) for i in force_rows]
        #: Generalized impulses of forces, gathered for the equations of coordinates.
        self.first_multiplier = first_multiplier
        self.impulse_sums = GatherLists.build(impulse_targets, [positions[0][i] for i in force_rows], size)
        summed_entries = np.unique(np.concatenate([*state_entries, np.zeros(0, dtype=np.int64)]))
        sum_index = np.full(states, -1)
        sum_index[summed_entries] = np.arange(summed_entries.size)
        self.summed_entries = summed_entries.astype(np.int64)  # entries of the final state that are sums
        self.state_sums = GatherLists.build([sum_index[e] for e in state_entries], positions[2], summed_entries.size)
        codes = [[kernel.address(name) for name in _KERNEL_NAMES] for kernel in self.kernels]
        self.addresses = np.concatenate([np.array(codes, dtype=np.int64), self.pool_offsets], axis=1)
        self.has_increment_map = any(kernel.address("increment_map") for kernel in self.kernels)
        self.index_blocks = [kernel.table.packed() for kernel in self.kernels]

    @property
    def jacobian_triplets(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns and pool positions (COO) of the Jacobian contributions."""
        rows, columns, positions = [], [], []
        for i, kernel in enumerate(self.kernels):
            p = kernel.element_batch
            first_position = self.pool_offsets[i, 0] + pool_index(np.arange(p.count), kernel.n_outputs)
            for a, (i_row, i_column) in enumerate(p.jac_pattern):
                rows.append(p.equation_dofs[:, i_row])
                columns.append(p.unknown_dofs[:, i_column])
                positions.append(first_position + (kernel.n_rows + a) * WIDTH)
        row, column, position = np.concatenate(rows), np.concatenate(columns), np.concatenate(positions)
        is_present = row >= 0
        return row[is_present], column[is_present], position[is_present]

    @functools.cached_property
    def pattern(self) -> tuple[np.ndarray, np.ndarray, GatherLists]:
        """Rows and columns of the Jacobian's nonzeros in column-major order, and their gather lists."""
        row, column, position = self.jacobian_triplets
        key = column * self.plan.size + row
        unique_keys = np.unique(key)
        sums = GatherLists.build([np.searchsorted(unique_keys, key)], [position], unique_keys.size)
        return unique_keys % self.plan.size, unique_keys // self.plan.size, sums


class AssemblyWorkspace:
    """Workspace of one run: tables with parameters, contribution pool, and context."""

    def __init__(self, assembly: Assembly, k: np.ndarray, n_extra: int = 0) -> None:
        a = self.assembly = assembly
        self.context = np.zeros(5, dtype=np.int64)
        # loads of two contiguous runs may start before the first entry and end after the last
        self.pool = aligned_zeros(WIDTH + int(a.pool_sizes[0]) + n_extra + WIDTH)[WIDTH:]
        self.roundoff_terms, self.state_terms = (aligned_zeros(int(a.pool_sizes[i]) + WIDTH) for i in (1, 2))
        self.uncertainties, self.impulses = np.zeros(a.plan.size), aligned_zeros(a.residual_gather.equations.size)
        self.context[4] = self.impulses.ctypes.data
        self._parameter_arrays = [parameter_tables(kernel, k) for kernel in a.kernels]
        offsets = [kernel.table.offsets for kernel in a.kernels]
        self.tables = np.zeros((len(a.kernels), OFFSETS + max(map(len, offsets))), dtype=np.int64)
        for i, kernel in enumerate(a.kernels):
            shared_params, private_params = self._parameter_arrays[i]
            blocks = -(-kernel.element_batch.count // WIDTH)
            addresses = (
                a.index_blocks[i].ctypes.data,
                private_params.ctypes.data,
                shared_params.ctypes.data,
                self.context.ctypes.data,
            )
            self.tables[i, FIRST_BLOCK:OFFSETS] = [0, blocks, *addresses]
            self.tables[i, OFFSETS : OFFSETS + len(offsets[i])] = offsets[i]
        self.group_sizes = np.array(a.plan.block_sizes, dtype=np.int64)

    def set_parameters(self, k: np.ndarray, changed: np.ndarray) -> None:
        """Update the parameter tables of the kernels that depend on the changed entries of the parameter vector."""
        for i, kernel in enumerate(self.assembly.kernels):
            if np.isin(changed, kernel.element_batch.parameter_dofs).any():
                for table, values in zip(self._parameter_arrays[i], parameter_tables(kernel, k), strict=True):
                    table[...] = values

    def _evaluate_kernel(
        self, kernel: int, offset_column: int, x: np.ndarray, z: np.ndarray, c: np.ndarray, out: np.ndarray
    ) -> None:
        """Evaluate one kernel of every element batch."""
        count, width = self.tables.shape
        run_element_batches(self.assembly.addresses, self.tables, count, width, kernel, offset_column, x, z, c, out)

    # -- single evaluations, for callers outside the compiled time loop -----------------------------------------------
    def residual(self, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the residual at x."""
        a, r = self.assembly, np.zeros(x.size)
        self.context[0] = m.ctypes.data
        self._evaluate_kernel(RESIDUAL, POOL_OFFSET, x, z, c, self.pool)
        a.residual_sums.sum_into(self.pool, r)
        if a.has_impulses:
            impulses = np.zeros(x.size)
            a.impulse_sums.sum_into(self.pool, impulses)
            self.impulses[:] = impulses[a.residual_gather.equations]
        return r

    def newton(self, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residual at x and the nonzeros of its Jacobian."""
        a, r = self.assembly, np.zeros(x.size)
        self.context[0] = m.ctypes.data
        self._evaluate_kernel(NEWTON, POOL_OFFSET, x, z, c, self.pool)
        a.residual_sums.sum_into(self.pool, r)
        sums = a.pattern[2]
        values = np.zeros(sums.starts.size - 1)
        sums.sum_into(self.pool, values)
        return r, values

    def reciprocal_bounds(
        self, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray, dx: np.ndarray
    ) -> np.ndarray:
        """Return the reciprocal round-off bounds of the residual at x."""
        a, scale = self.assembly, np.zeros(x.size)
        self.context[0] = m.ctypes.data
        unknown_uncertainties(x, dx, self.group_sizes, self.group_sizes.size, self.uncertainties)
        self.context[3] = self.uncertainties.ctypes.data
        self._evaluate_kernel(ROUNDOFF, BOUNDS_OFFSET, x, z, c, self.roundoff_terms)
        a.roundoff_sums.sum_into(self.roundoff_terms, scale)
        invert_bounds(scale, scale.size)
        return scale

    def to_increment(self, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray, dx: np.ndarray) -> None:
        """Map variations to increments of the unknowns, in place."""
        if self.assembly.has_increment_map:
            self.context[0], self.context[3] = m.ctypes.data, dx.ctypes.data
            self._evaluate_kernel(INCREMENT_MAP, STATE_OFFSET, x, z, c, self.state_terms)

    def final_state(self, x: np.ndarray, z: np.ndarray, m: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return final state and history at the end of the step."""
        a, z1, m1 = self.assembly, np.zeros(z.size), np.zeros(m.size)
        if a.has_impulses:
            self.residual(x, z, m, c)
        self.context[0], self.context[1], self.context[2] = m.ctypes.data, z1.ctypes.data, m1.ctypes.data
        self._evaluate_kernel(FINAL_STATE, STATE_OFFSET, x, z, c, self.state_terms)
        sums = np.zeros(a.summed_entries.size)
        a.state_sums.sum_into(self.state_terms, sums)
        z1[a.summed_entries] = sums
        return z1, m1


# -- compiled once per machine ----------------------------------------------------------------------------------------
@lowered
def run_element_batches(
    addresses: I64Array,
    tables: I64Array,
    n_batches: int,
    width: int,
    kernel: int,
    offset_column: int,
    x: F64Array,
    z: F64Array,
    c: F64Array,
    out: F64Array,
) -> None:
    """Call one kernel of every element batch that has it and a nonempty range; tables have `width` entries."""
    for i in range(n_batches):
        codes, table = addresses + i * N_COLUMNS, tables + i * width
        if codes[kernel] != 0 and table[FIRST_BLOCK] < table[STOP_BLOCK]:
            call_kernel(codes[kernel], x, z, c, table, out + codes[offset_column])


@lowered
def gather_sums(starts: I32Array, positions: I32Array, pool: F64Array, out: F64Array, start: int, stop: int) -> None:
    """Sum the terms of the targets from `start` to `stop`, in a fixed order."""
    for i in range(start, stop):
        total = 0.0
        for j in range(starts[i], starts[i + 1]):
            total += pool[positions[j]]
        out[i] = total


@lowered
def unknown_uncertainties(
    x: F64Array, dx: F64Array, group_sizes: I64Array, n_groups: int, uncertainties: F64Array
) -> None:
    """Compute the uncertainties of the unknowns, in units of the unit round-off."""
    start = 0
    for k in range(n_groups):
        stop, largest = start + group_sizes[k], 0.0
        for i in range(start, stop):
            largest = max(largest, abs(x[i]))
        for i in range(start, stop):
            uncertainties[i] = abs(x[i]) + 4.0 * abs(dx[i]) + _RELATIVE_UNCERTAINTY * largest
        start = stop


@lowered
def invert_bounds(scale: F64Array, size: int) -> None:
    for i in range(size):
        scale[i] = 1.0 / (UNIT_ROUNDOFF * scale[i] + 1e-290)
