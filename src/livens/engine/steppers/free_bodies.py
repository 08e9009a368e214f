"""Stepper for free bodies without joints: each body is a separate small system; contact forces are explicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.arrays import offsets
from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.step_kernels import state_update_kernel
from livens.engine.collision import NeighbourList, contact_forces
from livens.engine.collision import NeighbourListArrays as ContactNumbers
from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I64Array, Struct
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


@dataclass(frozen=True, eq=False)
class FreeBodyArrays(Struct):
    """Kernels, state indices and parameters of all bodies."""

    n_bodies: int
    kernel: I64Array
    n_body_state: I64Array  # state size of each body
    state_ptr: I64Array  # offsets in `state_indices`
    state_indices: I64Array
    inputs_ptr: I64Array
    step_inputs: F64Array  # step inputs h, t and parameters of each body
    sums: F64Array
    z_body: F64Array
    z_body_next: F64Array
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
def _step_body(t: FreeBodyArrays, p: int, z: F64Array, z_next: F64Array, h: float, time: float) -> None:
    """Take one step of one body."""
    size, indices, c = t.n_body_state[p], t.state_indices + t.state_ptr[p], t.step_inputs + t.inputs_ptr[p]
    c[0], c[1] = h, time
    for e in range(size):
        g = indices[e]
        if g >= 0:
            t.z_body[e] = z[g]
        else:
            t.z_body[e] = 0.0
    call_kernel(t.kernel[p], t.z_body, t.z_body, c, t.z_body_next, t.z_body_next)
    for e in range(size):
        g = indices[e]
        if g >= 0:
            z_next[g] = t.z_body_next[e]
        else:
            t.sums[-g] += t.z_body_next[e]


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
        for i in range(5):
            t.sums[i] = 0.0
        time = t_origin + (step0 + s) * h
        for p in range(t.n_bodies):
            _step_body(t, p, z, z_next, h, time)
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


def free_body_arrays(equations: IndependentBodyEquations, k: np.ndarray) -> tuple[FreeBodyArrays, list[NativeCode]]:
    """Return the arrays of the compiled loop for the parameters of one run."""
    assert (SUPPLIED_SLOT, DISSIPATED_SLOT, POTENTIAL_POWER_SLOT, DISSIPATED_POWER_SLOT) == (-1, -2, -3, -4)
    layout, system, contacts = equations.layout, equations.system, equations.system.external_force
    assert isinstance(contacts, DetectedContacts)
    kernel_of, codes = _step_kernels(equations, k)
    functions, sizes, state_indices, step_inputs = [], [], [], []
    for body_type, kernels, index_rows in zip(equations.body_classes, kernel_of, equations.state_dofs, strict=True):
        for row, parameters, kernel in zip(index_rows, body_type.parameter_dofs(system), kernels, strict=True):
            functions.append(kernel)
            sizes.append(len(row))
            state_indices.append(row)
            step_inputs.append(np.concatenate([np.zeros(2), k[parameters]]))
    max_size = max(sizes)
    arrays = FreeBodyArrays(
        n_bodies=len(functions),
        kernel=np.array(functions, dtype=np.int64),
        n_body_state=np.array(sizes, dtype=np.int64),
        state_ptr=offsets([len(row) for row in state_indices])[:-1],
        state_indices=np.concatenate(state_indices),
        inputs_ptr=offsets([len(row) for row in step_inputs])[:-1],
        step_inputs=np.concatenate(step_inputs),
        sums=np.zeros(5),
        z_body=np.zeros(max_size),
        z_body_next=np.zeros(max_size),
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


def _step_kernels(equations: IndependentBodyEquations, k: np.ndarray) -> tuple[list[list[int]], list[NativeCode]]:
    """Return the address of the step of each body, by body class, and the code of these steps.

    Bodies whose moments of inertia are equal in this run are stepped without iterations.
    """
    isotropic_bodies = isotropic_coordinates(equations.system, k)
    kernels, codes = list[list[int]](), list[NativeCode]()
    for i, body_class in enumerate(equations.body_classes):
        is_isotropic = [set(row) <= isotropic_bodies for row in body_class.coordinates.tolist()]
        code = {
            flag: state_update_kernel((equations.isotropic_steps() if flag else equations.steps)[i])
            for flag in sorted(set(is_isotropic))
        }
        kernels.append([code[flag].address for flag in is_isotropic])
        codes += code.values()
    return kernels, codes


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
