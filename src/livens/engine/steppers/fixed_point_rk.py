"""Implicit Runge-Kutta steps by fixed-point iteration; the stages occupy SIMD lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.engine.arrays import aligned_zeros
from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.ir_emitter import Emitter, literal
from livens.engine.codegen.jit import NativeCode, load_or_compile
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I64Array, Struct
from livens.engine.newton.convergence import CONVERGED, DIVERGED, END_REACHED
from livens.engine.newton.iteration import HISTORY, N_STEPS, Workspace
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import (
    IntegratorState,
    StepChunk,
    StepFailure,
    Stepper,
    WorkspaceManager,
    chunk_from_workspace,
    nonfinite_failure,
    truncate_at_nonfinite,
)
from livens.schemes.discretization.fixed_point_stages import FixedPointStages
from livens.schemes.tableaus import Tableau
from livens.schemes.tableaus.families import gauss_weight_residuals
from livens.schemes.tableaus.interpolation import Interpolant

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep

#: Maximum number of fixed-point iterations of a step.
_MAX_ITERATIONS = 100
#: Convergence tolerances relative to the state: predicted change of the next iteration, and change below which
#: stagnation is accepted.
_ROUNDOFF_TOL, _STAGNATION_TOL = 2.0**-55, 1e-11


def lane_count(s: int) -> int:
    """Return the number of SIMD lanes for s stages."""
    return max(2, 1 << (s - 1).bit_length())


@dataclass(frozen=True, eq=False)
class StageWorkspace(Struct):
    """Kernels and arrays of the stages of one step; lane arrays have a row of `width` numbers for each variable."""

    iterate: int  # addresses of native code
    extrapolate: int
    velocity: int
    width: int
    n_stages: int
    n_variables: int
    columns: I64Array  # indices of the variables in the state
    velocity_offset: int  # offset of the velocities
    time_offset: int
    energy_offset: int
    weights: F64Array
    weight_errors: F64Array  # rounding errors of the weights
    y0: F64Array  # initial state and energy in all lanes
    c: F64Array  # h and parameters in all lanes
    stage_derivatives: F64Array  # stage derivatives, including that of time, double buffered
    increments: F64Array  # largest changes of the derivatives of q and of p
    compensation: F64Array  # compensation of state and time
    step_states: F64Array  # stepper state after every step: compensation and step size
    n_step_state: int  # its size


@lowered
def _iterate_stages(r: StageWorkspace, z: F64Array, active_half: int, size: int) -> int:
    """Iterate the stages of a step from z to convergence; return the iteration count, negative if it diverges.

    `active_half` is the buffer half of the initial stage derivatives; every iteration swaps the halves.
    """
    half = r.n_variables // 2
    q_scale, p_scale = 1e-300, 1e-300
    for i in range(half):
        q_scale = max(q_scale, abs(z[r.columns[i]]))
        p_scale = max(p_scale, abs(z[r.columns[half + i]]))
    by_q, by_p, change_prev, active = abs(r.c[0]) / q_scale, abs(r.c[0]) / p_scale, np.inf, active_half
    for iteration in range(1, _MAX_ITERATIONS + 1):
        call_kernel(
            r.iterate,
            r.stage_derivatives + active * size,
            r.y0,
            r.c,
            r.increments,
            r.stage_derivatives + (1 - active) * size,
        )
        active = 1 - active
        change = by_q * r.increments[0] + by_p * r.increments[1]
        if not change < np.inf:
            return -iteration
        # the remaining error decreases by the ratio of the last changes
        if change == 0.0 or (change_prev < np.inf and change * change <= _ROUNDOFF_TOL * change_prev):
            return iteration
        if change < _STAGNATION_TOL and change >= change_prev:
            return iteration
        change_prev = change
    return -_MAX_ITERATIONS


@lowered
def _compensated_update(r: StageWorkspace, i: int, y_old: float, derivatives: F64Array) -> float:
    """Return ``old + h sum b_j F_j`` of variable i by compensated summation."""
    total, weight_error = 0.0, 0.0
    for j in range(r.n_stages):
        total += r.weights[j] * derivatives[j]
        weight_error += r.weight_errors[j] * derivatives[j]
    change = r.c[0] * (total + weight_error) + r.compensation[i]
    y_new = y_old + change
    shifted = y_new - y_old
    r.compensation[i] = (y_old - (y_new - shifted)) + (change - shifted)
    return y_new


@lowered
def advance_fixed_point(
    r: StageWorkspace,
    w: Workspace,
    h: float,
    h_prev: float,
    stop_entry: int,
    stop_value: float,
    done: int,
    n_steps: int,
) -> int:
    """Take fixed steps from number `done`; return a status code. `h_prev` is the previous step size, 0 if none."""
    n, width, size = r.n_variables, r.width, (r.n_variables + 1) * r.width
    active = 0
    for s in range(done, n_steps):
        z, z_next = w.Z + s * w.n_state, w.Z + (s + 1) * w.n_state
        x_prev, x = w.X + (s + HISTORY - 1) * w.n_unknowns, w.X + (s + HISTORY) * w.n_unknowns
        for i in range(n):
            for j in range(width):
                r.y0[i * width + j] = z[r.columns[i]]
        for j in range(width):
            r.y0[n * width + j], r.c[j] = z[r.energy_offset], h
        if h_prev == h:
            for i in range(n):
                for j in range(width):
                    r.stage_derivatives[active * size + i * width + j] = x_prev[(j if j < r.n_stages else 0) * n + i]
            call_kernel(
                r.extrapolate,
                r.stage_derivatives + active * size,
                r.y0,
                r.c,
                r.increments,
                r.stage_derivatives + (1 - active) * size,
            )
        else:  # with h = 0 all stage derivatives are those at the initial state
            for j in range(width):
                r.c[j] = 0.0
            call_kernel(
                r.iterate,
                r.stage_derivatives + active * size,
                r.y0,
                r.c,
                r.increments,
                r.stage_derivatives + (1 - active) * size,
            )
            for j in range(width):
                r.c[j] = h
        active = 1 - active
        n_iterations = _iterate_stages(r, z, active, size)
        w.counters[N_STEPS] = s
        if n_iterations < 0:
            return DIVERGED
        if n_iterations % 2 == 1:
            active = 1 - active
        derivatives = r.stage_derivatives + active * size
        for i in range(w.n_state):
            z_next[i] = z[i]
        for i in range(n):
            z_next[r.columns[i]] = _compensated_update(r, i, z[r.columns[i]], derivatives + i * width)
            for j in range(r.n_stages):
                x[j * n + i] = derivatives[i * width + j]
        z_next[r.time_offset] = _compensated_update(r, n, z[r.time_offset], derivatives + n * width)
        call_kernel(r.velocity, z_next, z_next, w.c, r.increments, z_next + r.velocity_offset)
        w.newton_iterations[s] = n_iterations
        h_prev = h
        step_state = r.step_states + s * r.n_step_state
        for i in range(n + 1):
            step_state[i] = r.compensation[i]
        step_state[n + 1] = h
        if stop_entry >= 0 and z_next[stop_entry] > stop_value:  # a NaN completes the step, which is rejected later
            return END_REACHED
    w.counters[N_STEPS] = n_steps
    return CONVERGED


class FixedPointStepper(Stepper):
    """Stepper of implicit Runge-Kutta schemes in fictive time, by fixed-point iteration."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray) -> None:
        e = compiled.equations
        assert isinstance(e, FixedPointStages)
        super().__init__(compiled.layout, WorkspaceManager(k, pool=compiled.workspace_pool))
        self._compiled, self._e, self._k = compiled, e, k
        self._codes = compiled.cached(
            "swept", lambda: (_iteration_kernel(e), _stage_extrapolation_kernel(e), _velocity_kernel(e))
        )

    def set_parameters(self, k: np.ndarray) -> None:
        self._k = k
        super().set_parameters(k)

    def _stage_workspace(self, state: IntegratorState, n_steps: int) -> StageWorkspace:
        e, width, n = self._e, lane_count(self._e.tableau.s), self._e.n_variables
        compensation = np.zeros(n + 1)
        if state.stepper_state.size:
            compensation[:] = state.stepper_state[: n + 1]
        inputs = aligned_zeros(1 + self._k.size, width)
        inputs[1:] = self._k[:, None]
        iterate, extrapolate, velocity = (code.address for code in self._codes)
        return StageWorkspace(
            iterate,
            extrapolate,
            velocity,
            width,
            e.tableau.s,
            n,
            np.array(e.state_indices, dtype=np.int64),
            e.layout["v"].start,
            e.layout["t"].start,
            e.layout["start_energy"].start,
            np.array(e.tableau.b),
            gauss_weight_residuals(e.tableau.s),
            aligned_zeros(n + 1, width),
            inputs,
            aligned_zeros(2, n + 1, width),
            np.zeros(2),
            compensation,
            np.zeros((n_steps, n + 2)),
            n + 2,
        )

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        w, r = self._workspaces.prepare(state, n_steps), self._stage_workspace(state, n_steps)
        w.c[0], w.c[1] = policy.h, 0.0
        n, done, reached_end = self._e.n_variables, 0, False
        h_prev = float(state.stepper_state[n + 1]) if state.stepper_state.size else 0.0
        failure: StepFailure | None = None
        while done < n_steps and not reached_end and failure is None:
            status = advance_fixed_point(r, w, policy.h, h_prev, policy.stop_entry, policy.stop_value, done, n_steps)
            done, reached_end = int(w.counters[N_STEPS]), status == END_REACHED
            if status == DIVERGED:
                initial_guess = self._compiled.flat_equations.initial_guess_function(w.Z[done], w.c).full().ravel()
                failure = self._compiled.reference_solver.take_step(initial_guess, w, done)
                self.statistics.fallback_steps += failure is None
                reached_end = (
                    failure is None
                    and policy.stop_entry >= 0
                    and not w.Z[done + 1, policy.stop_entry] <= policy.stop_value
                )
                r.compensation[:], h_prev = 0.0, policy.h
                r.step_states[done, -1] = h_prev
                done += failure is None and not reached_end
        if reached_end and np.isfinite(w.Z[done]).all():
            failure = nonfinite_failure(w.Z[done + 1], self._layout, policy.h)
            reached_end = failure is None
        chunk = chunk_from_workspace(w, state, done, policy, failure, reached_end)
        stepper_state = r.step_states[done - 1].copy() if done else state.stepper_state
        chunk = replace(
            chunk, final=replace(chunk.final, stepper_state=stepper_state), stepper_states=r.step_states[:done]
        )
        return truncate_at_nonfinite(chunk, self._layout)


# -- native code ------------------------------------------------------------------------------------------------------
class _ReciprocalEmitter(Emitter):
    """Emitter that shares reciprocals: a vector division takes as long as ten products."""

    def _divide(self, a: str, b: str) -> str:
        return self.mul(a, self.reciprocal(b))


def _vector(values: Sequence[float]) -> str:
    return "<" + ", ".join(f"double {literal(value)}" for value in values) + ">"


def _columns(matrix: np.ndarray, width: int) -> list[str]:
    """Return the columns of a matrix as vectors; lanes without a stage repeat the first entry."""
    return [_vector([*column, *[column[0]] * (width - len(column))]) for column in matrix.T.tolist()]


def _broadcast_lane(emitter: Emitter, a: str, lane: int) -> str:
    lanes = ", ".join([f"i32 {lane}"] * emitter.width)
    return emitter.emit(f"shufflevector {emitter.type} {a}, {emitter.type} poison, <{emitter.width} x i32> <{lanes}>")


def _matrix_vector(emitter: Emitter, columns: Sequence[str], a: str) -> str:
    """Return a matrix-vector product in two independent chains."""
    parts: list[str] = []
    for j, column in enumerate(columns):
        component = _broadcast_lane(emitter, a, j)
        if j < 2:
            parts.append(emitter.mul(component, column))
        else:
            parts[j % 2] = emitter.intrinsic("fma", component, column, parts[j % 2])
    return parts[0] if len(parts) == 1 else emitter.add(*parts)


def _nanmax(emitter: Emitter, values: Sequence[str]) -> str:
    """Return the maximum over all lanes of the values. NaN propagates."""
    largest = values[0]
    for value in values[1:]:
        largest = emitter.intrinsic("maximum", largest, value)
    name = f"llvm.vector.reduce.fmaximum.v{emitter.width}f64"
    return emitter.reduce(name, "double", emitter.type, largest)


def _iteration_kernel(e: FixedPointStages) -> NativeCode:
    """Compile ``sweep(F, Y, c, changes, out)``: stage derivatives at the stages given by the derivatives F."""
    width, n = lane_count(e.tableau.s), e.n_variables

    def make_ir() -> str:
        emitter = _ReciprocalEmitter("sweep", 5, width)
        columns, h = _columns(e.tableau.A, width), emitter.load(2, 0)
        derivatives = [emitter.load(0, i) for i in range(n)]
        stages = [
            emitter.intrinsic("fma", _matrix_vector(emitter, columns, derivatives[i]), h, emitter.load(1, i))
            for i in range(n)
        ]
        parameters = emitter.inputs(2, e.vector_field.nnz_in(2), 1)
        (rates,) = emitter.graph(e.vector_field, [stages, [emitter.load(1, n)], parameters])
        for i, value in enumerate(rates):
            emitter.store(value, 4, i)
        for i, indices in enumerate((range(n // 2), range(n // 2, n))):
            differences = [emitter.fabs(emitter.sub(rates[j], derivatives[j])) for j in indices]
            address = emitter.emit(f"getelementptr inbounds double, ptr %a3, i64 {i}")
            emitter.lines.append(f"store double {_nanmax(emitter, differences)}, ptr {address}, align 8")
        return emitter.to_ir()

    return load_or_compile(f"{codegen_fingerprint()} {__name__} {width} {e.fingerprint_data}", make_ir, "sweep")


def _stage_extrapolation_kernel(e: FixedPointStages) -> NativeCode:
    """Compile ``carry(F, Y, c, changes, out)``: stage extrapolation by the collocation polynomial to the next step."""
    width, T = lane_count(e.tableau.s), e.tableau

    def make_ir() -> str:
        emitter = Emitter("carry", 5, width)
        columns = _columns(_extrapolation_matrix(T), width)
        for i in range(e.n_variables):
            emitter.store(_matrix_vector(emitter, columns, emitter.load(0, i)), 4, i)
        return emitter.to_ir()

    return load_or_compile(
        f"{codegen_fingerprint()} {__name__} {width} {T.c.tolist()} {e.n_variables}", make_ir, "carry"
    )


def _extrapolation_matrix(T: Tableau) -> np.ndarray:
    return Interpolant.through(T.c).lagrange(1.0 + T.c)


def _velocity_kernel(e: FixedPointStages) -> NativeCode:
    z, c = ca.SX.sym("z", e.layout.size), ca.SX.sym("c", 2 + e.velocity.nnz_in(1))
    velocity = e.velocity(z[list(e.state_indices)], c[2:])
    return compile_function_kernel(ca.Function("velocity", [ca.SX.sym("x", 0), z, c], [velocity]), "velocity")
