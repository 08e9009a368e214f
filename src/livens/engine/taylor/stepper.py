"""Taylor-series stepper and its dense output."""

from __future__ import annotations

import ctypes
import functools
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.engine.newton.convergence import DIVERGED, END_REACHED
from livens.engine.newton.time_loop import StepPolicy, fill_time_grid, tabulate
from livens.engine.stepper import (
    LANDING_STEPS,
    CompleteRun,
    IntegratorState,
    StepChunk,
    StepFailure,
    Stepper,
    StepperOptions,
    step_inputs,
    truncate_at_nonfinite,
)
from livens.engine.taylor.kernels import LoopArgs, TaylorCode, coefficient_code, log2_step_ratio, step_code
from livens.schemes.taylor_equations import TaylorEquations

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep

_POINTER, _INT64 = ctypes.c_void_p, ctypes.c_int64
_LAND_ON_END = LoopArgs._fields.index("land_on_end")
#: Largest defect of a step relative to its tolerance, and smallest defect that rejects a step.
_TOLERATED_DEFECT, _MIN_DEFECT = 1e3, 1e-10
_log2_step_ratio = functools.lru_cache(maxsize=64)(log2_step_ratio)


@dataclass(frozen=True)
class TaylorStepControl:
    """Step-size control of Taylor series."""

    tolerance: float
    min_norm: float
    h_max: float
    h_min: float


class DependentVariables:
    """Dependent variables of a state (functions of the integrated variables), evaluated at many states."""

    def __init__(self, equations: TaylorEquations, follows: ca.Function) -> None:
        z, c = ca.SX.sym("z", equations.layout.size), ca.SX.sym("c", 2 + follows.nnz_in(2))
        value = follows(z[list(equations.state_indices)], c[1], c[2:])
        self._code = compile_function_kernel(
            ca.Function("follows", [ca.SX.sym("x", 0), z, c], [value]), "follows", opt_level=1
        )
        self._indices = list(equations.algebraic_slots)

    @classmethod
    def from_equations(cls, equations: TaylorEquations) -> DependentVariables | None:
        return None if equations.algebraic is None else cls(equations, equations.algebraic)

    def __call__(self, Z: np.ndarray, t: np.ndarray, k: np.ndarray) -> None:
        """Write the dependent variables into the states Z at times t."""
        out, states = np.empty((len(Z), len(self._indices))), np.ascontiguousarray(Z)
        tabulate(self._code.address, states, states, step_inputs(0.0, 0.0, k), np.ascontiguousarray(t), out)
        Z[:, self._indices] = out


class _TaylorLoop:
    """Compiled time loop of a Taylor scheme, and the places of its variables in a state."""

    def __init__(self, equations: TaylorEquations) -> None:
        self.code: TaylorCode = step_code(equations)
        self.call = ctypes.CFUNCTYPE(_INT64, *[_POINTER] * 6, _INT64, _INT64)(self.code.code.address)
        self.columns = np.array(equations.state_indices)[self.code.slots]
        variable_entries = {*equations.state_indices, *equations.velocity_slots.values(), *equations.algebraic_slots}
        self.constant_entries = [i for i in range(equations.layout.size) if i not in variable_entries]


class TaylorStepper(Stepper):
    """Stepper by Taylor series, with adaptive or fixed steps."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray, step_control: TaylorStepControl | None) -> None:
        equations = compiled.equations
        assert isinstance(equations, TaylorEquations)
        super().__init__(compiled.layout)
        self._equations, self._step_control = equations, step_control
        loop = compiled.cached("series", lambda: _TaylorLoop(equations))
        self._code, self._call, self._columns = loop.code, loop.call, loop.columns
        self._dependent = compiled.cached("follows", lambda: DependentVariables.from_equations(equations))
        self._constant_entries, self._constants, self._k = loop.constant_entries, self._code.constant_values(k), k
        self._arrays: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @classmethod
    def create(cls, compiled: CompiledStep, k: np.ndarray, options: StepperOptions) -> TaylorStepper:
        assert options.control is None or isinstance(options.control, TaylorStepControl)
        return cls(compiled, k, options.control)

    def close(self) -> None:
        self._arrays = None

    def set_parameters(self, k: np.ndarray) -> None:
        self._k, self._constants = k, self._code.constant_values(k)

    def _buffers(self, state: IntegratorState, n_steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self._arrays is None or len(self._arrays[1]) <= n_steps:
            slots = len(self._code.slots)
            self._arrays = np.empty((n_steps + 1, state.z.size)), np.empty(n_steps + 1), np.empty((n_steps, slots + 1))
        return self._arrays

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        slots = len(self._code.slots)
        Z, T, M = self._buffers(state, n_steps)
        Z[0], T[0] = state.z, state.t
        w = np.zeros(2 * slots + 3)
        w[:slots] = state.z[self._columns]
        w[2 * slots] = state.t
        if state.stepper_state.size:
            w[slots : 2 * slots], w[2 * slots + 1] = state.stepper_state[:slots], state.stepper_state[slots]
        loop_args = np.array(self._loop_args(policy))
        pointers = [a.ctypes.data for a in (w, self._constants, loop_args, Z, T, M)]
        n_taken = self._call(*pointers, policy.step0, n_steps)
        status = int(w[2 * slots + 2])
        Z[1 : n_taken + 1, self._constant_entries] = state.z[self._constant_entries]
        t_nodes, step_sizes = T[: n_taken + 1], np.empty(n_taken)
        if policy.adaptive:
            step_sizes = np.diff(t_nodes)
        else:
            fill_time_grid(t_nodes, step_sizes, policy.t_origin, policy.step0, policy.h)
        if self._dependent is not None:
            self._dependent(Z[1 : n_taken + 1], t_nodes[1:], self._k)
        stepper_state = M[n_taken - 1].copy() if n_taken else state.stepper_state
        final = replace(state, t=float(t_nodes[n_taken]), z=Z[n_taken].copy(), stepper_state=stepper_state)
        failure = None
        if status == DIVERGED:
            failure = StepFailure(
                0.0, 0.0, "", "the Taylor series does not converge: the step size fell below its minimum", 0.0
            )
        if policy.adaptive and n_taken:
            controller_state["last"], controller_state["steps"] = step_sizes[-1], controller_state["steps"] + n_taken
        newton_iterations = np.zeros(n_taken, dtype=np.int64)
        X = np.zeros((n_taken, 0))
        chunk = StepChunk(
            t_nodes,
            Z[: n_taken + 1],
            step_sizes,
            X,
            newton_iterations,
            state,
            final,
            failure,
            status == END_REACHED,
            stepper_states=M[:n_taken],
        )
        return truncate_at_nonfinite(chunk, self._layout)

    def advance_to_end(
        self, state: IntegratorState, h: float, t_end: float, n_steps: int, controller_state: np.ndarray
    ) -> CompleteRun | None:
        slots, n_state, capacity = len(self._code.slots), state.z.size, n_steps + LANDING_STEPS
        # one buffer: state and time of the loop, its arguments, times, states, compensations
        sizes = 2 * slots + 3, len(LoopArgs._fields), capacity + 1, (capacity + 1) * n_state
        ends = list(itertools.accumulate(sizes))
        buffer = np.empty(ends[-1] + capacity * (slots + 1))
        w, loop_args, T = buffer[: ends[0]], buffer[ends[0] : ends[1]], buffer[ends[1] : ends[2]]
        Z = buffer[ends[2] : ends[3]].reshape(capacity + 1, n_state)
        w.fill(0.0)
        w[:slots], w[2 * slots], T[0], Z[0] = state.z[self._columns], state.t, state.t, state.z
        loop_args[:] = self._loop_args(StepPolicy(True, h, 0.0, 0, t_end=t_end))
        at_w = buffer.__array_interface__["data"][0]
        at_args, at_T, at_Z, at_M = (at_w + 8 * end for end in ends)
        at_constants = self._constants.__array_interface__["data"][0]
        n_done = self._call(at_w, at_constants, at_args, at_Z, at_T, at_M, 0, n_steps)
        status = w.item(-1)  # comparisons of NumPy's numbers with an enumeration are slow
        if status == END_REACHED and T[n_done] < t_end:
            loop_args[_LAND_ON_END] = 1.0
            at_T, at_Z, at_M = at_T + 8 * n_done, at_Z + 8 * n_done * n_state, at_M + 8 * n_done * (slots + 1)
            n_done += self._call(at_w, at_constants, at_args, at_Z, at_T, at_M, 0, LANDING_STEPS)
            status = w.item(-1)
            if status != END_REACHED:
                return None
        if status == DIVERGED or not n_done:
            return None
        t, states = T[: n_done + 1].copy(), Z[: n_done + 1].copy()
        if self._constant_entries:
            states[1:, self._constant_entries] = state.z[self._constant_entries]
        if self._dependent is not None:
            self._dependent(states[1:], t[1:], self._k)
        if not np.isfinite(states).all():
            return None
        return CompleteRun(t, states, np.zeros(n_done, dtype=np.int64), status == END_REACHED)

    def _loop_args(self, policy: StepPolicy) -> LoopArgs:
        if not policy.adaptive:
            return LoopArgs(policy.h, policy.t_origin, np.inf, 0.0, 0.0, 1.0, np.inf, 0.0, np.inf)
        assert self._step_control is not None
        control = self._step_control
        return LoopArgs(
            0.0,
            0.0,
            policy.t_end,
            float(policy.land_on_end),
            _log2_step_ratio(control.tolerance, self._equations.order),
            control.min_norm,
            control.h_max,
            control.h_min,
            max(_TOLERATED_DEFECT * control.tolerance, _MIN_DEFECT),
        )


class TaylorInterpolant:
    """Dense output of Taylor-series steps."""

    def __init__(self, compiled: CompiledStep) -> None:
        equations = compiled.equations
        assert isinstance(equations, TaylorEquations)
        self._equations = equations
        self._code: TaylorCode = compiled.cached("coefficients", lambda: coefficient_code(equations))
        self._dependent = compiled.cached("follows", lambda: DependentVariables.from_equations(equations))
        self._call = ctypes.CFUNCTYPE(None, *[_POINTER] * 4, _INT64)(self._code.code.address)

    def coefficients(self, Z: np.ndarray, t: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the Taylor coefficients at every state: (state, order, variable)."""
        e, slots = self._equations, self._code.slots
        X = np.ascontiguousarray(Z[:, np.array(e.state_indices)[slots]])
        times, constants = np.ascontiguousarray(t, dtype=float), self._code.constant_values(k)
        C = np.empty((len(X), e.order + 1, len(slots)))
        if len(X):
            self._call(*(a.ctypes.data for a in (X, constants, times, C)), len(X))
        return C[:, :, self._code.slot_of_variable]

    def evaluate(self, Z: np.ndarray, C: np.ndarray, t: np.ndarray, dt: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the states at times t + dt from states Z at times t with coefficients C, row by row."""
        e, out, time = self._equations, Z.copy(), dt[:, None]
        value, derivative = np.zeros((len(Z), C.shape[2])), np.zeros((len(Z), C.shape[2]))
        for order in reversed(range(e.order + 1)):
            derivative = derivative * time + value
            value = value * time + C[:, order]
        out[:, list(e.state_indices)] = value
        if e.velocity_slots:
            out[:, list(e.velocity_slots.values())] = derivative[:, list(e.velocity_slots)]
        if self._dependent is not None:
            self._dependent(out, t + dt, k)
        return out
