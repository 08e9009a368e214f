"""Stepper of explicit schemes: unrolled native code maps a state to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens.engine.codegen.explicit_simd import SimdStep, vectorize_step
from livens.engine.neighbour_list import bind_contacts
from livens.engine.newton import time_loop
from livens.engine.newton.convergence import END_REACHED
from livens.engine.newton.iteration import StepKernels, kernel_names
from livens.engine.newton.step_size_control import FIXED_STEP
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import (
    IntegratorState,
    StepChunk,
    Stepper,
    WorkspaceManager,
    chunk_from_workspace,
    nonfinite_failure,
    truncate_at_nonfinite,
)

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep


class ExplicitStepper(Stepper):
    """Stepper of schemes without unknowns; `simd`: vectorise isomorphic parts of the step, if that is faster."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray, simd: bool = True) -> None:
        assert compiled.flat_equations.size == 0
        self._compiled = compiled  # keeps the addresses of the kernels valid
        self._neighbours = compiled.neighbour_list(k)
        self._k, self._h = k, np.nan
        self._simd: SimdStep | None = None
        if simd and compiled.flat_equations.external_force is None:
            self._simd = compiled.cached("lanes", lambda: vectorize_step(compiled.flat_equations))
        if self._simd is None:
            self._kernels, parameters = bind_contacts(compiled.kernels(None), self._neighbours), k
        else:
            no_kernels = dict.fromkeys(kernel_names(), 0)
            self._kernels = StepKernels(**{**no_kernels, "update_state": self._simd.code.address})
            parameters = np.concatenate([k, np.zeros(self._simd.constants.nnz_out(0))])
        super().__init__(compiled.layout, WorkspaceManager(parameters, pool=compiled.workspace_pool if simd else None))

    def set_parameters(self, k: np.ndarray) -> None:
        if self._neighbours is not None:
            self._neighbours.require_parameters(k)
        self._k, self._h = k, np.nan  # loop invariants depend on the parameters
        n_invariants = 0 if self._simd is None else self._simd.constants.nnz_out(0)
        self._workspaces.set_parameters(np.concatenate([k, np.zeros(n_invariants)]))

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        w = self._workspaces.prepare(state, n_steps)
        if self._simd is not None:
            w.c[2 + self._k.size :] = self._invariants(self._simd, policy.h)
        status, n_taken = time_loop.advance(self._kernels, policy, FIXED_STEP, controller_state, w, 0, n_steps, 0)
        if self._neighbours is not None:
            self._neighbours.report_tunnelling(w.Z[1 : n_taken + 1, self._layout["v"]], policy.h)
        if status == END_REACHED and np.isfinite(w.Z[n_taken]).all():
            failure = nonfinite_failure(w.Z[n_taken + 1], self._layout, policy.h)
            if failure is not None:
                return chunk_from_workspace(w, state, n_taken, policy, failure)
        return truncate_at_nonfinite(
            chunk_from_workspace(w, state, n_taken, policy, reached_end=status == END_REACHED), self._layout
        )

    def _invariants(self, simd: SimdStep, h: float) -> np.ndarray:
        if h != self._h:
            self._h, self._invariant_values = h, simd.invariant_values(h, self._k)
        return self._invariant_values
