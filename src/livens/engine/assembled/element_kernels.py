"""Native kernels of one element type: residual, Jacobian, round-off bounds, final state, and increment map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.assembled.indexed_emitter import (
    CONTEXT,
    HISTORY,
    IMPULSES,
    NEXT_HISTORY,
    NEXT_STATE,
    SHARED_PARAMS,
    UNCERTAINTIES,
    IndexedEmitter,
    LazyInput,
    pack_lanes,
)
from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.jit import NativeCode, load_or_compile, vector_library_width
from livens.expressions.graph.roundoff import VECTOR_LIBM_ULPS, uses_libm
from livens.expressions.state_layout import Layout
from livens.schemes.discretization.assembly_plan import AssemblyPlan, ElementBatch

_FULL_OPTIMIZATION, _LOW_OPTIMIZATION = 2, 1


@dataclass(frozen=True)
class GatherAddress:
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

    def address(self, array: int, column: np.ndarray) -> GatherAddress:
        """Return the gather address of the entries `column` of an array."""
        first_index = int(column[0])
        part = next(
            i for i, (a, start, size) in enumerate(self.parts) if a == array and start <= first_index < start + size
        )
        _, start, size = self.parts[part]
        local_indices = column - start
        for slot, (shared_size, shared) in enumerate(self._columns):
            if shared_size == size and np.all(local_indices - shared == local_indices[0] - shared[0]):
                return GatherAddress(part, slot, int(local_indices[0] - shared[0]))
        self._columns.append((size, local_indices))
        return GatherAddress(part, len(self._columns) - 1, 0)

    @property
    def n_slots(self) -> int:
        return len(self._columns)

    def is_contiguous(self, slot: int) -> bool:
        """Return True if the indices of a slot are consecutive over the instances."""
        return bool(np.all(np.diff(self._columns[slot][1]) == 1))

    def packed(self) -> np.ndarray:
        return pack_lanes(np.stack([column for _, column in self._columns], axis=1).astype(np.int32))

    @property
    def offsets(self) -> list[int]:
        return [start for _, start, _ in self.parts]


#: Arrays that the parts belong to.
UNKNOWNS, STATE, STORED_HISTORY, RESIDUAL = range(4)


class ElementTypeKernels:
    """Native kernels of an element batch and its index table; only the table depends on the number of instances.

    `newton` writes the residual, then the nonzeros of its Jacobian; `residual` writes the residual alone, to the same
    positions; `roundoff` writes the round-off bounds. `final_state` writes contributions to the final state and
    history; entries without other contributions are written directly. `increment_map` maps variations (in the context's
    errors) to increments of the unknowns, in place.
    """

    def __init__(
        self, element_batch: ElementBatch, plan: AssemblyPlan, is_single: np.ndarray, residual_rows: np.ndarray
    ) -> None:
        """Compile the kernels; `is_single` marks state entries with one contribution."""
        self.element_batch = element_batch
        local = element_batch.symbols
        self.n_rows, self.n_outputs = (
            int(element_batch.residual.numel()),
            int(element_batch.residual.numel()) + len(element_batch.jac_pattern),
        )
        newton = ca.Function("newton", local.arguments, [element_batch.residual, element_batch.jac_values])
        impulse = [] if element_batch.impulse is None else [element_batch.impulse]
        final_state = ca.Function(
            "final_state",
            [*local.arguments, *impulse],
            [element_batch.final_state, element_batch.compensation, element_batch.increments],
        )
        libm_ulps = VECTOR_LIBM_ULPS if vector_library_width() > 1 and uses_libm(newton) else 1
        # the bounds have the same inputs as the residual, and are derived only if they must be compiled
        rows = [
            ca.Function("rows", local.arguments, [expression])
            for expression in (element_batch.residual, element_batch.uncompensated_residual)
            if expression is not None
        ]
        self.table = IndexTable(
            [plan.unknowns, plan.layout, plan.compensation_layout, Layout(rows=int(residual_rows.max()) + 1)]
        )
        increment_map = (
            None
            if element_batch.update is None
            else ca.Function("increment_map", [*local.arguments, element_batch.update[0]], [element_batch.update[1]])
        )
        used = _used_entries([f for f in (newton, final_state, increment_map, *rows[1:]) if f is not None])
        self._x = {i: self.table.address(UNKNOWNS, element_batch.unknown_dofs[:, i]) for i in sorted(used[0] | used[6])}
        if increment_map is not None:
            self._x |= {
                i: self.table.address(UNKNOWNS, element_batch.unknown_dofs[:, i])
                for i in range(element_batch.unknown_dofs.shape[1])
            }
        self._z = {i: self.table.address(STATE, element_batch.state_dofs[:, i]) for i in used[1]}
        impulse_entries = sorted(_used_entries([final_state])[6])
        self._impulses = {
            i: self.table.address(RESIDUAL, residual_rows[element_batch.unknown_dofs[:, i]]) for i in impulse_entries
        }
        self._m = {i: self.table.address(STORED_HISTORY, element_batch.compensation_dofs[:, i]) for i in used[2]}
        #: Parameters shared by all instances, and parameters of single instances.
        self.shared_params = [
            i for i in used[5] if np.all(element_batch.parameter_dofs[:, i] == element_batch.parameter_dofs[0, i])
        ]
        self.private_params = [i for i in used[5] if i not in self.shared_params]
        #: Entries of the final state written directly, and entries that are gathered.
        self.written_directly = [
            a for a in range(element_batch.final_dofs.shape[1]) if is_single[element_batch.final_dofs[:, a]].all()
        ]
        self.gathered = [a for a in range(element_batch.final_dofs.shape[1]) if a not in self.written_directly]
        self._targets = {a: self.table.address(STATE, element_batch.final_dofs[:, a]) for a in self.written_directly}
        history_entries = range(element_batch.compensation_out_dofs.shape[1])
        self._sums = [
            (
                self.table.address(STATE, element_batch.increment_dofs[:, a]),
                self.table.address(STORED_HISTORY, element_batch.compensation_low_dofs[:, a]),
            )
            for a in range(element_batch.increment_dofs.shape[1])
        ]
        self._stored = {
            a: self.table.address(STORED_HISTORY, element_batch.compensation_out_dofs[:, a]) for a in history_entries
        }
        if not self.table.n_slots:  # no indexed access
            self.table.address(STATE, np.zeros(element_batch.count, dtype=np.int64))
        self._contiguous_slots = [slot for slot in range(self.table.n_slots) if self.table.is_contiguous(slot)]
        self.kernels: dict[str, NativeCode] = {}
        if self.n_rows:
            self._compile("newton", newton)
            self._compile("residual", ca.Function("residual", local.arguments, [element_batch.residual]))
            key_text = " ".join([f"{libm_ulps}", *(f.serialize() for f in rows)])
            self._compile(
                "roundoff", lambda: self._roundoff_function(libm_ulps), self.n_rows, _LOW_OPTIMIZATION, key_text
            )
        if element_batch.final_state.numel() or element_batch.compensation.numel() or element_batch.increments.numel():
            self._compile("final_state", final_state, stride=len(self.gathered))
        if increment_map is not None:
            self._compile("increment_map", increment_map, stride=0)

    def address(self, name: str) -> int:
        return self.kernels[name].address if name in self.kernels else 0

    def _roundoff_function(self, libm_ulps: int) -> ca.Function:
        e, roundoff_bound = self.element_batch.roundoff_bound(libm_ulps)
        return ca.Function("roundoff", [*self.element_batch.symbols.arguments, e], [roundoff_bound])

    def _compile(
        self,
        name: str,
        function: ca.Function | Callable[[], ca.Function],
        stride: int | None = None,
        effort: int = _FULL_OPTIMIZATION,
        key_text: str = "",
    ) -> None:
        """Compile a function or load it from the cache; the cache key of a lazily derived function is `key_text`."""
        stride = self.n_outputs if stride is None else stride
        layout = [
            self._x,
            self._z,
            self._m,
            self._targets,
            self._stored,
            self._sums,
            self.shared_params,
            self.private_params,
            self.gathered,
        ]
        layout += [self._contiguous_slots, self._impulses]
        cache_key = f"{codegen_fingerprint()} {stride} {self.table.n_slots} {layout} "
        cache_key += function.serialize() if isinstance(function, ca.Function) else key_text

        def text() -> str:
            return self._ir(name, function if isinstance(function, ca.Function) else function(), stride)

        self.kernels[name] = load_or_compile(cache_key, text, name, effort)

    def _ir(self, name: str, function: ca.Function, stride: int) -> str:
        e = IndexedEmitter(name, self._contiguous_slots)
        context = e.load_pointer("%a3", CONTEXT)
        bases = {UNKNOWNS: "%a0", STATE: "%a1"}

        def load(address: GatherAddress, base: str) -> str:
            return e.gather(e.part_address(base, address.part), address.slot, address.offset)

        def lazy_input(addresses: dict[int, GatherAddress], size: int, base: str) -> LazyInput:
            return LazyInput(size, lambda i: load(addresses[i], base))

        def parameter(i: int) -> str:
            if i in self.shared_params:
                return e.broadcast(e.load_pointer("%a3", SHARED_PARAMS), self.shared_params.index(i))
            return e.load_lanes("%own", self.private_params.index(i))

        sizes = [function.nnz_in(i) for i in range(function.n_in())]
        history = e.load_pointer(context, HISTORY)
        inputs: list[Sequence[str]] = [
            lazy_input(self._x, sizes[0], bases[UNKNOWNS]),
            lazy_input(self._z, sizes[1], bases[STATE]),
            lazy_input(self._m, sizes[2], history),
            LazyInput(1, lambda _: e.broadcast("%a2", 0)),
            LazyInput(1, lambda _: e.broadcast("%a2", 1)),
            LazyInput(sizes[5], parameter),
        ]
        if function.n_in() == 7:
            if name == "final_state":
                inputs.append(lazy_input(self._impulses, sizes[6], e.load_pointer(context, IMPULSES)))
            else:
                inputs.append(lazy_input(self._x, sizes[6], e.load_pointer(context, UNCERTAINTIES)))
        outputs = e.graph(function, inputs)
        if name == "final_state":
            self._write_final_state(e, outputs, context)
        elif name == "increment_map":
            variations = e.load_pointer(context, UNCERTAINTIES)
            addresses = [self._x[i] for i in range(len(outputs[0]))]
            e.scatter(
                (value, e.part_address(variations, address.part), address.slot, address.offset)
                for value, address in zip(outputs[0], addresses, strict=True)
            )
        else:
            for i, value in enumerate(value for part in outputs for value in part):
                e.store_lanes(value, "%out", i)
        return e.to_ir_loop(self.table.n_slots, stride, len(self.private_params))

    def _write_final_state(self, e: IndexedEmitter, outputs: list[list[str]], context: str) -> None:
        state, history, next_history = (e.load_pointer(context, entry) for entry in (NEXT_STATE, HISTORY, NEXT_HISTORY))
        stores = [(outputs[0][a], state, address) for a, address in self._targets.items()]
        stores += [(outputs[1][a], next_history, address) for a, address in self._stored.items()]
        for step, (address, low) in zip(outputs[2], self._sums, strict=True):
            high = e.gather(e.part_address("%a1", address.part), address.slot, address.offset)
            compensation = e.gather(e.part_address(history, low.part), low.slot, low.offset)
            total, error = e.two_sum(high, compensation, step)
            stores += [(total, state, address), (error, next_history, low)]
        e.scatter(
            (value, e.part_address(base, address.part), address.slot, address.offset) for value, base, address in stores
        )
        for i, a in enumerate(self.gathered):
            e.store_lanes(outputs[0][a], "%out", i)


def _used_entries(functions: Sequence[ca.Function]) -> list[set[int]]:
    """Return the entries of each input used by any of the functions."""
    used: list[set[int]] = [set() for _ in range(7)]
    for f in functions:
        for k in range(f.n_instructions()):
            if f.instruction_id(k) == ca.OP_INPUT:
                i, entry = f.instruction_input(k)
                used[i].add(entry)
    return used


def parameter_tables(kernels: ElementTypeKernels, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of shared parameters, and of the parameters of single instances packed in lanes."""
    indices = kernels.element_batch.parameter_dofs
    shared_values = k[indices[0, kernels.shared_params]] if kernels.shared_params else np.zeros(1)
    private_values: Any = pack_lanes(k[indices[:, kernels.private_params]]) if kernels.private_params else np.zeros(1)
    return np.ascontiguousarray(shared_values, dtype=float), np.ascontiguousarray(private_values, dtype=float)
