"""Stepper for free bodies without joints: each body is a separate small system; contact forces are explicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.engine.arrays import aligned_zeros, offsets
from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.step_kernels import state_update_kernel
from livens.engine.collision import NeighbourListArrays as ContactNumbers
from livens.engine.collision import contact_forces
from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I64Array, Struct
from livens.engine.neighbour_list import NeighbourList
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import (
    IntegratorState,
    StepChunk,
    Stepper,
    WorkspaceManager,
    chunk_from_workspace,
    truncate_at_nonfinite,
)
from livens.errors import InputError
from livens.models.contact_detection import DetectedContacts
from livens.schemes.core.step_equations import StepGraph
from livens.schemes.discretization.independent_bodies import (
    DISSIPATED_POWER_SLOT,
    DISSIPATED_SLOT,
    POTENTIAL_POWER_SLOT,
    SUPPLIED_SLOT,
    IndependentBodyEquations,
    isotropic_coordinates,
)

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep


#: SIMD lanes of the steps of identical bodies.
N_LANES = 8
#: Marker in the index tables of body states for entries that are not stored: lanes without a body.
_UNUSED_SLOT = -5


@dataclass(frozen=True, eq=False)
class FreeBodyArrays(Struct):
    """Kernels, state indices and parameters of all blocks of bodies; the bodies of a block have one kernel.

    Entry e of lane i of a block has the index ``e * width + i``.
    """

    n_blocks: int
    kernel: I64Array
    width: I64Array  # lanes of each block
    # state entries that a step reads and writes: entries of a block, and state indices of each lane
    input_ptr: I64Array
    input_slots: I64Array
    input_indices_ptr: I64Array
    input_indices: I64Array
    output_ptr: I64Array
    output_slots: I64Array
    output_indices_ptr: I64Array
    output_indices: I64Array
    parameters_ptr: I64Array
    step_inputs: F64Array  # step inputs h, t and parameters of each block
    sums: F64Array
    z_block: F64Array
    z_block_next: F64Array
    # offsets of sums and contacts in the system state
    n_state: int
    supplied_index: int
    dissipated_index: int
    force_power: int
    contact_inputs: int
    n_coordinates: int
    contact_outputs: int
    n_groups: int
    n_energy_terms: int


@lowered
def _step_block(t: FreeBodyArrays, b: int, z: F64Array, z_next: F64Array, h: float, time: float) -> None:
    """Take one step of the bodies of a block."""
    width, c = t.width[b], t.step_inputs + t.parameters_ptr[b]
    for i in range(width):
        c[i], c[width + i] = h, time
    first, indices = t.input_ptr[b], t.input_indices + t.input_indices_ptr[b]
    for e in range(t.input_ptr[b + 1] - first):
        values = t.z_block + t.input_slots[first + e] * width
        for i in range(width):
            g = indices[e * width + i]
            if g >= 0:
                values[i] = z[g]
            else:
                values[i] = 0.0
    call_kernel(t.kernel[b], t.z_block, t.z_block, c, t.z_block_next, t.z_block_next)
    first, indices = t.output_ptr[b], t.output_indices + t.output_indices_ptr[b]
    for e in range(t.output_ptr[b + 1] - first):
        values = t.z_block_next + t.output_slots[first + e] * width
        for i in range(width):
            g = indices[e * width + i]
            if g >= 0:
                z_next[g] = values[i]
            else:
                t.sums[-g] += values[i]


@lowered
def advance_bodies(
    t: FreeBodyArrays,
    contacts: ContactNumbers,
    Z: F64Array,
    done: int,
    n_steps: int,
    h: float,
    t_origin: float,
    step0: int,
) -> None:
    """Take fixed steps from ``Z[0]``."""
    for s in range(done, n_steps):
        z, z_next = Z + s * t.n_state, Z + (s + 1) * t.n_state
        for i in range(6):
            t.sums[i] = 0.0
        time = t_origin + (step0 + s) * h
        for b in range(t.n_blocks):
            _step_block(t, b, z, z_next, h, time)
        dissipated_power = z[t.force_power + 1]
        for group in range(t.n_groups):
            for term in range(1, t.n_energy_terms):
                dissipated_power += z[t.contact_outputs + t.n_coordinates + group * t.n_energy_terms + term]
        z_next[t.supplied_index] = z[t.supplied_index] + t.sums[1] + h * (z[t.force_power] + dissipated_power)
        z_next[t.dissipated_index] = z[t.dissipated_index] + t.sums[2] + h * dissipated_power
        z_next[t.force_power], z_next[t.force_power + 1] = t.sums[3], t.sums[4]
        contact_inputs = z_next + t.contact_inputs
        contact_forces(
            contact_inputs,
            contact_inputs + t.n_coordinates,
            contact_inputs + 2 * t.n_coordinates,
            contacts,
            z_next + t.contact_outputs,
        )


compile_unit(advance_bodies)


@dataclass(frozen=True, eq=False)
class BodyBlock:
    """Block of bodies of one class that are stepped by one kernel, one body per lane."""

    kernel: int
    # state entries of a body that the step reads and writes, and their state indices, of shape (n_entries, width)
    input_slots: np.ndarray
    input_indices: np.ndarray
    output_slots: np.ndarray
    output_indices: np.ndarray
    parameters: np.ndarray  # (n_parameters, width)

    @property
    def width(self) -> int:
        return self.parameters.shape[1]


def free_body_arrays(equations: IndependentBodyEquations, k: np.ndarray) -> tuple[FreeBodyArrays, list[NativeCode]]:
    """Return the arrays of the compiled loop for the parameters of one run."""
    assert (SUPPLIED_SLOT, DISSIPATED_SLOT, POTENTIAL_POWER_SLOT, DISSIPATED_POWER_SLOT) == (-1, -2, -3, -4)
    layout, system, contacts = equations.layout, equations.system, equations.system.external_force
    assert isinstance(contacts, DetectedContacts)
    blocks, codes = _body_blocks(equations, k)
    inputs, outputs = ([block.input_indices for block in blocks], [block.output_indices for block in blocks])
    step_inputs = [_step_inputs(block) for block in blocks]
    max_size = max(rows.shape[1] for rows in equations.state_dofs) * N_LANES
    aligned_inputs = aligned_zeros(sum(row.size for row in step_inputs))
    aligned_inputs[:] = np.concatenate(step_inputs)
    arrays = FreeBodyArrays(
        n_blocks=len(blocks),
        kernel=np.array([block.kernel for block in blocks], dtype=np.int64),
        width=np.array([block.width for block in blocks], dtype=np.int64),
        input_ptr=offsets([len(block.input_slots) for block in blocks]),
        input_slots=np.concatenate([block.input_slots for block in blocks]),
        input_indices_ptr=offsets([indices.size for indices in inputs])[:-1],
        input_indices=np.concatenate([indices.ravel() for indices in inputs]),
        output_ptr=offsets([len(block.output_slots) for block in blocks]),
        output_slots=np.concatenate([block.output_slots for block in blocks]),
        output_indices_ptr=offsets([indices.size for indices in outputs])[:-1],
        output_indices=np.concatenate([indices.ravel() for indices in outputs]),
        parameters_ptr=offsets([row.size for row in step_inputs])[:-1],
        step_inputs=aligned_inputs,
        sums=np.zeros(-_UNUSED_SLOT + 1),
        z_block=aligned_zeros(max_size),
        z_block_next=aligned_zeros(max_size),
        n_state=layout.size,
        supplied_index=layout["supplied_energy"].start,
        dissipated_index=layout["dissipated_energy"].start,
        force_power=layout["A"].stop - 2,
        contact_inputs=layout["asked"].start,
        n_coordinates=system.n,
        contact_outputs=layout["box"].start,
        n_groups=len(contacts.groups),
        n_energy_terms=contacts.n_energy_terms // len(contacts.groups),
    )
    return arrays, codes


def _step_inputs(block: BodyBlock) -> np.ndarray:
    """Return the step inputs of a block, h, t and parameters, filled up to a multiple of the lanes."""
    values = np.concatenate([np.zeros(2 * block.width), block.parameters.ravel()])
    return np.concatenate([values, np.zeros(-values.size % N_LANES)])


def _body_blocks(equations: IndependentBodyEquations, k: np.ndarray) -> tuple[list[BodyBlock], list[NativeCode]]:
    """Return the blocks of all bodies, and the code of their kernels.

    Bodies whose moments of inertia are equal in this run are stepped without iterations. Blocks of `N_LANES` bodies
    have vectorised kernels; unused lanes repeat the last body.
    """
    isotropic_bodies = isotropic_coordinates(equations.system, k)
    blocks, codes = list[BodyBlock](), list[NativeCode]()
    contact_forces_of_body = equations.layout["box"]
    for i, (body_class, rows) in enumerate(zip(equations.body_classes, equations.state_dofs, strict=True)):
        is_isotropic = np.array([set(row) <= isotropic_bodies for row in body_class.coordinates.tolist()])
        parameters = k[body_class.parameter_dofs(equations.system)]
        for flag in sorted(set(is_isotropic.tolist())):
            step = (equations.isotropic_steps() if flag else equations.steps)[i]
            members = np.flatnonzero(is_isotropic == flag)
            width = N_LANES if len(members) >= N_LANES else 1
            code = state_update_kernel(step, width)
            codes.append(code)
            inputs = _input_slots(step)
            # contact forces are written by `contact_forces`
            is_output = (rows[0] < contact_forces_of_body.start) | (rows[0] >= contact_forces_of_body.stop)
            outputs = np.flatnonzero(is_output)
            for start in range(0, len(members), width):
                lanes = members[start : start + width]
                filled = np.concatenate([lanes, np.full(width - len(lanes), lanes[-1])])
                output_indices = rows[filled][:, outputs].T.copy()
                output_indices[:, len(lanes) :] = _UNUSED_SLOT
                blocks.append(
                    BodyBlock(
                        code.address, inputs, rows[filled][:, inputs].T, outputs, output_indices, parameters[filled].T
                    )
                )
    return blocks, codes


def _input_slots(step: StepGraph) -> np.ndarray:
    """Return the state entries that the final state of a step depends on."""
    z = ca.SX.sym("z", step.z.numel())
    used = {x.element_hash() for x in ca.symvar(step.final_state_function(step.x, z, step.c))}
    return np.array([i for i in range(z.numel()) if z[i].element_hash() in used], dtype=np.int64)


class FreeBodiesStepper(Stepper):
    """Stepper of free bodies coupled by contact only."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray) -> None:
        equations = compiled.equations
        assert isinstance(equations, IndependentBodyEquations)
        self._arrays, self._codes = free_body_arrays(equations, k)
        contacts = equations.system.external_force
        assert isinstance(contacts, DetectedContacts)
        self._neighbours = NeighbourList(contacts, k)
        super().__init__(compiled.layout, WorkspaceManager(k, pool=compiled.workspace_pool))

    def set_parameters(self, k: np.ndarray) -> None:
        raise InputError(f"steps of the {type(self).__name__} do not support parameters that change during a run")

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        if policy.adaptive or policy.stop_entry >= 0:
            raise InputError(
                "free bodies with detected contacts require fixed steps: "
                "adaptive steps and fictive time are not supported"
            )
        w = self._workspaces.prepare(state, n_steps)
        advance_bodies(self._arrays, self._neighbours.arrays, w.Z, 0, n_steps, policy.h, policy.t_origin, policy.step0)
        self._neighbours.report_tunnelling(w.Z[1 : n_steps + 1, self._layout["v"]], policy.h)
        return truncate_at_nonfinite(chunk_from_workspace(w, state, n_steps, policy), self._layout)
