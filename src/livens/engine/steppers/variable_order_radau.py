"""Stepper of the variable-order Radau method: selection of the number of stages, and transfer of the unknowns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.codegen.unrolled_lu import PivotOrder
from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.step_size_control import SAFETY, StepSizeController
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import (
    LANDING_STEPS,
    CompleteRun,
    IntegratorState,
    StepChunk,
    StepFailure,
    Stepper,
    step_inputs,
)
from livens.engine.steppers.fused import FusedStepper
from livens.errors import IntegrationError
from livens.models.descriptor import DescriptorModel
from livens.schemes.runge_kutta.radau import (
    INITIAL_STAGES,
    MAX_STAGES,
    LowerOrderErrorEstimate,
    Radau,
    resampling_matrix,
)

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep

#: Steps between selections of the number of stages: initial interval, and maximum after repeated doubling.
_MIN_INTERVAL, _MAX_INTERVAL = 4, 32
#: Largest ratio of the work per unit time at which the number of stages changes: steps after a change cost more.
_MIN_GAIN = 0.85
#: Maximum number of operations of a Newton iteration, limited by compilation time.
_MAX_OPERATIONS = 20_000
#: Size of the header of the stepper state, in front of the unknowns: number of stages, steps since the last selection,
#: interval to the next selection.
_HEADER = 3


class VariableOrderRadauStepper(Stepper):
    """Stepper that delegates to one fused stepper per number of stages.

    The complete state is in `IntegratorState.stepper_state`, so that a resumed run continues bit for bit. Callers
    receive the unknowns of the maximum number of stages: the collocation polynomial at their nodes.
    """

    def __init__(
        self,
        compiled: CompiledStep,
        k: np.ndarray,
        control: StepSizeController,
        step_of_stages: Callable[[int], CompiledStep],
        pivot_order_for: Callable[[CompiledStep, np.ndarray, np.ndarray], PivotOrder],
    ) -> None:
        super().__init__(compiled.layout)
        self._compiled, self._k, self._control = compiled, k, control
        self._step_of_stages, self._pivot_order_for = step_of_stages, pivot_order_for
        self._steppers: dict[int, FusedStepper] = {}
        self._n = compiled.size // MAX_STAGES
        self._min_stages, self._max_stages = compiled.cached("range of stages", self._range_of_stages)

    # -- stepper protocol ---------------------------------------------------------------------------------------------
    def close(self) -> None:
        for stepper in self._steppers.values():
            stepper.close()

    def set_parameters(self, k: np.ndarray) -> None:
        self._k = k
        for stepper in self._steppers.values():
            stepper.set_parameters(k)

    def checkpoint(self) -> dict[str, Any]:
        orders: dict[str, Any] = {}
        for s, stepper in self._steppers.items():
            orders |= {f"{name}_{s}": order for name, order in stepper.checkpoint().items()}
        return orders

    def restore(self, stored: dict[str, Any]) -> None:
        for s in Radau.stages:
            if f"row_order_{s}" in stored:
                order: Any = tuple(tuple(map(int, stored[f"{name}_order_{s}"])) for name in ("row", "column"))
                self._steppers[s] = self._make_stepper(s, order)

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        parts: list[StepChunk] = []
        current, n_remaining, initial = state, n_steps, state
        failure: StepFailure | None = None
        reached_end = False
        while n_remaining and failure is None and not reached_end:
            s, steps_since, interval = self._order_state(current)
            n_burst = min(n_remaining, max(1, int(interval - steps_since))) if policy.adaptive else n_remaining
            native_state = self._native_state(current)
            chunk = self._stepper(s, native_state).advance(native_state, n_burst, policy, controller_state)
            failure, reached_end = chunk.failure, chunk.reached_end
            parts.append(self._to_max_stages(chunk, s, steps_since, interval))
            current = parts[-1].final
            n_remaining -= chunk.n_steps
            if policy.adaptive and chunk.n_steps and failure is None and not reached_end:
                current = self._select_order(current, chunk, controller_state)
                parts[-1].stepper_states[-1] = current.stepper_state  # type: ignore[index]  # not None here
            elif not chunk.n_steps:
                break
        self._update_statistics(controller_state, policy)
        return _concatenate(parts, initial, current, failure, reached_end)

    def advance_to_end(
        self, state: IntegratorState, h: float, t_end: float, n_steps: int, controller_state: np.ndarray
    ) -> CompleteRun | None:
        times, states, iterations = [np.array([state.t])], [state.z[None, :]], list[np.ndarray]()
        current, reached_end = state, False
        for lands_on_end, n_remaining in ((False, n_steps), (True, LANDING_STEPS)):
            policy, reached_end = StepPolicy(True, h, 0.0, 0, t_end=t_end, land_on_end=lands_on_end), False
            while n_remaining and not reached_end:
                s, steps_since, interval = self._order_state(current)
                native_state = self._native_state(current)
                stepper = self._stepper(s, native_state)
                n_burst = min(n_remaining, max(1, int(interval - steps_since)))
                chunk = stepper.advance(native_state, n_burst, policy, controller_state)
                if chunk.failure is not None or stepper.statistics.repivots or stepper.statistics.fallback_steps:
                    self._forget_steppers()  # the run is repeated with the first pivot orders
                    return None
                reached_end = chunk.reached_end
                if not chunk.n_steps:
                    break
                times.append(chunk.t_end.copy())
                states.append(chunk.end_states.copy())
                iterations.append(chunk.newton_iterations.copy())
                n_remaining -= chunk.n_steps
                current = self._with_order_state(chunk, s, steps_since + chunk.n_steps, interval)
                if not reached_end:
                    current = self._select_order(current, chunk, controller_state)
            if not reached_end or current.t >= t_end:
                break
        self._update_statistics(controller_state, policy)
        return CompleteRun(np.concatenate(times), np.concatenate(states), np.concatenate(iterations), reached_end)

    def _forget_steppers(self) -> None:
        self.close()
        self._steppers.clear()

    # -- fixed number of stages ---------------------------------------------------------------------------------------
    def _order_state(self, state: IntegratorState) -> tuple[int, float, float]:
        if not state.stepper_state.size:
            return INITIAL_STAGES, 0.0, float(_MIN_INTERVAL)
        s, steps_since, interval = state.stepper_state[:_HEADER]
        return int(s), float(steps_since), float(interval)

    def _native_state(self, state: IntegratorState) -> IntegratorState:
        """Return the integrator state of the stepper with this number of stages."""
        s, _, _ = self._order_state(state)
        if not state.stepper_state.size:
            c = step_inputs(1.0, state.t, self._k)
            return IntegratorState.initial(state.t, state.z, self._step_of_stages(s).initial_unknowns(state.z, c))
        return IntegratorState.initial(state.t, state.z, state.stepper_state[_HEADER : _HEADER + s * self._n])

    def _stepper(self, s: int, native_state: IntegratorState) -> FusedStepper:
        if s not in self._steppers:
            self._steppers[s] = self._make_stepper(
                s, self._pivot_order_for(self._step_of_stages(s), native_state.unknown_history[-1], native_state.z)
            )
        return self._steppers[s]

    def _make_stepper(self, s: int, order: PivotOrder) -> FusedStepper:
        compiled = self._step_of_stages(s)
        error = compiled.flat_equations.error_estimate
        assert error is not None
        return FusedStepper(compiled, self._k, order, _control_of_order(self._control, error.order))

    def _to_max_stages(self, chunk: StepChunk, s: int, steps_since: float, interval: float) -> StepChunk:
        """Return the chunk with the unknowns of the maximum number of stages, and the stepper state after each step."""
        n_steps, n = chunk.n_steps, self._n
        X = np.einsum("ij,tjn->tin", _nodes(s, MAX_STAGES), chunk.unknowns.reshape(n_steps, s, n)).reshape(
            n_steps, MAX_STAGES * n
        )
        M = np.zeros((n_steps, _HEADER + MAX_STAGES * n))
        M[:, 0], M[:, 1], M[:, 2] = s, steps_since + np.arange(1, n_steps + 1), interval
        M[:, _HEADER : _HEADER + s * n] = chunk.unknowns
        final = self._with_order_state(chunk, s, steps_since + n_steps, interval)
        return replace(
            chunk,
            t_nodes=chunk.t_nodes.copy(),
            states=chunk.states.copy(),
            unknowns=X,
            newton_iterations=chunk.newton_iterations.copy(),
            final=final,
            stepper_states=M,
        )

    def _with_order_state(self, chunk: StepChunk, s: int, steps_since: float, interval: float) -> IntegratorState:
        """Return the state at the end of a chunk of s stages, with its unknowns in the stepper state."""
        last_state = chunk.final if chunk.n_steps else chunk.initial
        size = MAX_STAGES * self._n
        unknowns = chunk.unknowns[-1] if chunk.n_steps else last_state.unknown_history[-1]
        stepper_state = np.zeros(_HEADER + size)
        stepper_state[:_HEADER] = s, steps_since, interval
        stepper_state[_HEADER : _HEADER + unknowns.size] = unknowns
        return IntegratorState(
            last_state.t,
            last_state.z,
            np.zeros((HISTORY, size)),
            np.zeros(size),
            np.full(size, np.inf),
            stepper_state,
        )

    def _update_statistics(self, controller_state: np.ndarray, policy: StepPolicy) -> None:
        statistics = [stepper.statistics for stepper in self._steppers.values()]
        for name in ("repivots", "fallback_steps", "compile_s"):
            setattr(self.statistics, name, sum(getattr(cost, name) for cost in statistics))
        if policy.adaptive:
            self._count_rejections(controller_state)

    # -- selection of the number of stages ----------------------------------------------------------------------------
    def _select_order(self, state: IntegratorState, chunk: StepChunk, controller_state: np.ndarray) -> IntegratorState:
        """Return the state, with another number of stages if its estimated work per unit time is smaller."""
        s, steps_since, interval = self._order_state(state)
        if steps_since < interval or controller_state[0]["since_failure"] < 1.0:
            return state
        h, error_norm = float(chunk.step_sizes[-1]), max(float(controller_state[0]["norm"]), 1e-10)
        c = step_inputs(h, float(chunk.t_nodes[-2]), self._k)
        tolerances = self._control.atol, self._control.rtol
        error_fewer = max(self._lower_order_error(s)(chunk.unknowns[-1], chunk.states[-2], c, *tolerances), 1e-10)
        errors = {s: error_norm}
        if s > self._min_stages:
            errors[s - 1] = error_fewer
        if s < self._max_stages and error_fewer > error_norm:
            errors[s + 1] = error_norm**2 / error_fewer
        step_ratios = {j: self._step_ratio(j, error) for j, error in errors.items()}
        best = min(step_ratios, key=lambda j: self._work_per_step(j) / step_ratios[j])
        stepper_state, n = state.stepper_state.copy(), self._n
        stepper_state[1], stepper_state[2] = 0.0, min(2 * interval, _MAX_INTERVAL)
        unchanged = replace(state, stepper_state=stepper_state.copy())
        if (
            best == s
            or self._work_per_step(best) / step_ratios[best] > _MIN_GAIN * self._work_per_step(s) / step_ratios[s]
        ):
            return unchanged
        stage_derivatives = _nodes(s, best) @ stepper_state[_HEADER : _HEADER + s * n].reshape(s, n)
        stepper_state[:] = 0.0
        stepper_state[0], stepper_state[1], stepper_state[2] = best, 0.0, _MIN_INTERVAL
        stepper_state[_HEADER : _HEADER + best * n] = stage_derivatives.ravel()
        changed = replace(state, stepper_state=stepper_state)
        try:
            self._stepper(best, self._native_state(changed))
        except IntegrationError:  # the equations cannot be solved with this number of stages here
            return unchanged
        controller_state["norm"], controller_state["equal"] = errors[best], 0.0
        controller_state["size"] = min(h * min(step_ratios[best], self._control.max_growth), self._control.h_max)
        return changed

    def _range_of_stages(self) -> tuple[int, int]:
        """Return the smallest and largest number of stages; variables of higher index require at least three."""
        smallest = INITIAL_STAGES if max(_descriptor_model(self._compiled).pencil.indices) > 1 else Radau.stages[0]
        affordable = [s for s in Radau.stages if self._work_per_step(s) <= _MAX_OPERATIONS]
        return smallest, max(INITIAL_STAGES, smallest, *affordable)

    def _step_ratio(self, s: int, error: float) -> float:
        """Return the admissible ratio of step sizes with s stages, given the scaled error of the last size."""
        order = self._compiled.flat_equations.error_estimate.order - (MAX_STAGES - s)  # type: ignore[union-attr]  # not None here
        return float(SAFETY * error ** (-1.0 / (order + 1.0)))

    def _work_per_step(self, s: int) -> float:
        """Return the operations of a Newton iteration with s stages: residual, derivatives, elimination."""
        work: float = self._compiled.cached(("work", s), lambda: self._count_operations(s))
        return work

    def _count_operations(self, s: int) -> float:
        terms = self._compiled.flat_equations.newton_function.n_instructions() / MAX_STAGES
        return s * terms + (s * self._n) ** 3 / 3.0

    def _lower_order_error(self, s: int) -> LowerOrderErrorEstimate:
        compiled = self._step_of_stages(s)
        estimator: LowerOrderErrorEstimate = self._compiled.cached(
            ("fewer", s),
            lambda: LowerOrderErrorEstimate(
                _descriptor_model(compiled).without_constraints(compiled.removed_constraints),
                compiled.flat_equations,
                s,
            ),
        )
        return estimator


def _descriptor_model(compiled: CompiledStep) -> DescriptorModel:
    """Return the descriptor model, the only model type of Radau steps."""
    assert isinstance(compiled.model, DescriptorModel)
    return compiled.model


@functools.lru_cache(maxsize=64)
def _control_of_order(control: StepSizeController, order: int) -> StepSizeController:
    """Return the step-size control for an error estimate of another order; runs of one plan share it."""
    return replace(control, error_order=order)


@functools.lru_cache(maxsize=64)
def _nodes(s: int, other: int) -> np.ndarray:
    return np.eye(s) if s == other else resampling_matrix(s, other)


def _concatenate(
    parts: list[StepChunk],
    initial: IntegratorState,
    final: IntegratorState,
    failure: StepFailure | None,
    reached_end: bool,
) -> StepChunk:
    if len(parts) == 1:
        return replace(parts[0], initial=initial, final=final, failure=failure, reached_end=reached_end)
    head, *tail = parts
    nodes = {
        name: np.concatenate([getattr(head, name), *(getattr(part, name)[1:] for part in tail)])
        for name in ("t_nodes", "states")
    }
    per_step = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("step_sizes", "unknowns", "newton_iterations")
    }
    M = np.concatenate([part.stepper_states for part in parts if part.stepper_states is not None])
    return StepChunk(
        **nodes, **per_step, initial=initial, final=final, failure=failure, reached_end=reached_end, stepper_states=M
    )
