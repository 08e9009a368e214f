"""Steppers of the assembled and the tree tier for steps with a step density."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import IntegratorState, StepChunk, StepFailure, Stepper, StepperOptions, step_inputs
from livens.engine.trees.lazy_states import LazyStates
from livens.engine.variable_steps import VariableSteps
from livens.schemes.time_transformed.step_density import density_step
from livens.schemes.time_transformed.step_density_equations import StepDensityEquations

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep

#: Secant iteration for the logarithm of a step size: largest number of attempts, residual at round-off, and residual
#: below which a stagnating iteration has converged.
_MAX_ATTEMPTS, _ROUND_OFF, _CONVERGED = 25, 4e-14, 1e-9
#: Range of the derivative by differences, which is near 1 at the solution; outside of it, a fixed-point step is taken.
_MIN_DERIVATIVE, _MAX_DERIVATIVE = 0.2, 5.0
#: Largest logarithm of a step size in a message; the exponential of larger ones overflows.
_MAX_LOG_SIZE = 700.0


class StepDensityStepper(Stepper):
    """Steps of a base scheme whose sizes follow a step density; the state ends with time, density and accelerations."""

    base_tier: ClassVar[str]

    def __init__(self, compiled: CompiledStep, k: np.ndarray, options: StepperOptions) -> None:
        super().__init__(compiled.layout)
        assert compiled.base_step is not None and isinstance(compiled.equations, StepDensityEquations)
        self._equations, self._k = compiled.equations, k.copy()
        self._base = compiled.base_step.make_stepper(self.base_tier, k, n_threads=options.n_threads)
        self.statistics = self._base.statistics
        self._n = compiled.layout["t"].start  # size of the state of the base scheme
        #: Final state of the last chunk, and its part of the base scheme.
        self._last: tuple[IntegratorState, IntegratorState] | None = None

    @classmethod
    def create(cls, compiled: CompiledStep, k: np.ndarray, options: StepperOptions) -> StepDensityStepper:
        return cls(compiled, k, options)

    def set_parameters(self, k: np.ndarray) -> None:
        self._k = k.copy()
        self._base.set_parameters(k)

    def close(self) -> None:
        self._base.close()

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        assert not policy.adaptive, "steps have equal sizes in fictive time"
        n, e, h = self._n, self._equations, policy.h
        nodes, density, failure, reached_end = [float(state.z[n])], float(state.z[n + 1]), None, False
        rows: list[np.ndarray] = [state.z[n:].copy()]  # parts of the state beyond those of the base scheme
        with self._base.variable_steps(self._base_state(state), n_steps) as steps:
            rate = e.density_rate(steps.state(0), self._k) if e.integrates_density else 0.0
            for s in range(n_steps):
                t = nodes[-1]
                if e.integrates_density:
                    size, is_solved, density, rate = density_step(density, rate, h, self._take(steps, s, t))
                    accelerations = np.zeros(0)
                else:
                    size, is_solved, accelerations = self._solve_size(steps, s, t, density, h)
                    density = h / size
                if not (is_solved and size > 0.0):
                    failure = self._failure(steps, s, size, h)
                    break
                if policy.stop_entry >= 0 and not t + size <= policy.stop_value:
                    reached_end = True
                    break
                nodes.append(t + size)
                rows.append(np.array([t + size, density, *accelerations]))
            chunk = steps.chunk(np.array(nodes), failure, reached_end)
        return self._extended(chunk, state, np.array(rows[: chunk.n_steps + 1]))

    def _take(self, steps: VariableSteps, s: int, t: float) -> Callable[[float], tuple[bool, float]]:
        """Return the function that takes step s of a given size, and returns success and the rate after it."""

        def take(size: float) -> tuple[bool, float]:
            if not (0.0 < size < math.inf and steps.attempt(s, t, size)):
                return False, 0.0
            return True, self._equations.density_rate(steps.state(s + 1), self._k)

        return take

    def _solve_size(
        self, steps: VariableSteps, s: int, t: float, density: float, h: float
    ) -> tuple[float, bool, np.ndarray]:
        """Solve ``log(size/h) = log g`` of step s by the secant method; return size, success and accelerations."""
        old, x, x_last, residual_last = steps.state(s), -math.log(density), 0.0, math.inf
        for i in range(_MAX_ATTEMPTS):
            size = h * math.exp(x)
            if not (0.0 < size < math.inf and steps.attempt(s, t, size)):
                break
            new = steps.end_state(s, t, size) if self._equations.uses_multipliers else steps.state(s + 1)
            log_scaling, accelerations = self._equations.log_scaling(old, new, step_inputs(size, t, self._k), h)
            residual = x - log_scaling
            stagnates = i > 1 and abs(residual) <= _CONVERGED and not abs(residual) < 0.5 * abs(residual_last)
            if abs(residual) <= _ROUND_OFF or stagnates:
                return size, True, accelerations
            # the first residual is the change of log g from step to step, half of which follows a change of the size
            derivative = (residual - residual_last) / (x - x_last) if i else 1.0 + residual / 2
            if not _MIN_DERIVATIVE < derivative < _MAX_DERIVATIVE:
                derivative = 1.0
            x_last, residual_last, x = x, residual, x - residual / derivative
        return h * math.exp(min(x, _MAX_LOG_SIZE)), False, np.zeros(0)

    def _failure(self, steps: VariableSteps, s: int, size: float, h: float) -> StepFailure:
        if not 0.0 < size < math.inf:
            reason = "time does not advance, because the scaling function is no longer positive"
            return StepFailure(0.0, 0.0, "time", reason, h)
        return steps.unsolved(s, size)

    # -- states -------------------------------------------------------------------------------------------------------
    def _base_state(self, state: IntegratorState) -> IntegratorState:
        """Return the state of the base stepper, the same object after a chunk as at its end."""
        if self._last is not None and self._last[0] is state:
            return self._last[1]
        n = self._n
        return replace(state, t=float(state.z[n]), z=state.z[:n].copy())

    def _extended(self, chunk: StepChunk, initial: IntegratorState, rows: np.ndarray) -> StepChunk:
        """Return a chunk of the base stepper with the further parts of the states."""
        states = chunk.states
        extended = states.extended(rows) if isinstance(states, LazyStates) else np.hstack([states, rows])
        final = replace(chunk.final, z=np.concatenate([chunk.final.z, rows[-1]]))
        self._last = final, chunk.final
        return replace(chunk, states=extended, initial=initial, final=final)


class AssembledStepDensityStepper(StepDensityStepper):
    """Steps with a step density of the assembled tier."""

    base_tier = "assembled"


class TreeStepDensityStepper(StepDensityStepper):
    """Steps with a step density of the tree tier."""

    base_tier = "tree"


#: Stepper class by tier.
STEPPERS: dict[str, type[Stepper]] = {"assembled": AssembledStepDensityStepper, "tree": TreeStepDensityStepper}
