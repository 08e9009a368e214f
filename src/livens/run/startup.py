"""Start of a run: compiled step, initial state, initial Newton unknowns and stepper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.codegen.unrolled_lu import PivotOrder
from livens.engine.compiled_step import CompiledStep, compiled_step
from livens.engine.newton.markowitz import SingularMatrixError
from livens.engine.newton.step_size_control import StepSizeController
from livens.engine.stepper import IntegratorState, Stepper, StepperOptions, step_inputs
from livens.errors import IntegrationError
from livens.models.base import InitialState
from livens.run.plan import Plan
from livens.schemes.core.step_equations import StepGraph

if TYPE_CHECKING:
    from livens.engine.taylor.stepper import TaylorStepControl
    from livens.run.step_control import StepControl
    from livens.schemes.runge_kutta.radau import Radau

#: Largest number of steps, and of state values, of one call of the compiled loop (fits into the cache of a core).
_CHUNK_STEPS, _CHUNK_VALUES = 4096, 150_000
#: Largest number of state values per call of the assembled tier (fits into the shared cache).
_ASSEMBLED_CHUNK_VALUES = 1_200_000
#: Fewest steps per call. The largest systems exceed the cache; several steps then reduce the overhead between calls.
_MIN_CHUNK_STEPS = 8
#: Reference tier: steps per call. Small, because the clock and Ctrl-C are checked between calls.
_REFERENCE_CHUNK_STEPS = 32
#: Step size in seconds for which the first pivot order is chosen, together with the model's default parameters.
REFERENCE_H = 2.0**-10


def compile_and_start(plan: Plan) -> tuple[CompiledStep, InitialState]:
    """Return the compiled step and the initial state, which determines the redundant constraints."""
    compiled = compiled_step(plan.model, plan.scheme)
    # the compiled model equals the plan's model, and its derived functions exist already
    initial = compiled.model.initial_state(plan.start, plan.k, plan.t0, plan.project, plan.redundant)
    if initial.removed_constraints:
        compiled = compiled_step(plan.model, plan.scheme, initial.removed_constraints)
        plan.settle_tier(compiled)
    return compiled, initial


def start_integration(
    plan: Plan, compiled: CompiledStep, initial: InitialState, scheme_state: Mapping[str, object] | None = None
) -> tuple[IntegratorState, Stepper]:
    """Return the initial integrator state and the stepper; `scheme_state` if the scheme's extra state is known."""
    state = initial_integrator_state(plan, compiled, initial, scheme_state)
    return state, make_stepper(plan, compiled, state)


def initial_integrator_state(
    plan: Plan, compiled: CompiledStep, initial: InitialState, scheme_state: Mapping[str, object] | None = None
) -> IntegratorState:
    """Return the initial `IntegratorState`; `scheme_state` if the scheme's extra state is known."""
    z, x, c = initial_unknowns(plan, compiled, initial, scheme_state)
    state = IntegratorState.initial(initial.t, z, x)
    return replace(state, stepper_state=compiled.initial_history(z, c)) if plan.tier == "assembled" else state


def initial_unknowns(
    plan: Plan, compiled: CompiledStep, initial: InitialState, scheme_state: Mapping[str, Any] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the initial state z, the initial unknowns x and the inputs c of the first step."""
    if scheme_state is None:
        scheme_state = compiled.scheme.initial_scheme_state(compiled.model, initial.values, plan.k, initial.t, plan.h)
    z = compiled.layout.pack({**initial.values, **scheme_state} if scheme_state else initial.values)
    c = step_inputs(plan.h, plan.t0, plan.k)
    return z, compiled.initial_unknowns(z, c, plan.tier), c


def chunk_size(tier: str, n_values: int) -> int:
    """Return the number of steps per call for states of `n_values` values."""
    if tier == "reference":
        return _REFERENCE_CHUNK_STEPS
    if tier == "assembled":
        return max(_MIN_CHUNK_STEPS, min(_CHUNK_STEPS, _ASSEMBLED_CHUNK_VALUES // n_values))
    return max(_MIN_CHUNK_STEPS, min(_CHUNK_STEPS, _CHUNK_VALUES // n_values))


def make_stepper(plan: Plan, compiled: CompiledStep, state: IntegratorState) -> Stepper:
    """Return the stepper of the plan's tier, with a pivot order chosen for the first step."""
    control: StepSizeController | TaylorStepControl | None = None
    order: PivotOrder | None = None
    if plan.control:
        key = "control", compiled.removed_constraints, None if plan.control.has_tolerance else plan.h
        control = plan.cache.get(key)
        if control is None:
            control = plan.cache[key] = _engine_control(plan, plan.control, compiled)
    if isinstance(control, StepSizeController):
        from livens.schemes.runge_kutta.radau import Radau

        if isinstance(plan.scheme, Radau):
            return _variable_order_stepper(plan, plan.scheme, compiled, control)
    stepper_type = compiled.stepper_type(plan.tier)
    if stepper_type.needs_pivot_order:
        c = step_inputs(plan.h, plan.t0, plan.k)
        reference_inputs = plan.cache.get("reference inputs")
        if reference_inputs is None:
            reference_inputs = step_inputs(REFERENCE_H, plan.t0, plan.model.parameter_vector())
            plan.cache["reference inputs"] = reference_inputs
        try:
            order = compiled.initial_pivot_order(state.unknown_history[-1], state.z, c, reference_inputs)
        except SingularMatrixError as error:
            null_space = _describe_null_space(compiled.flat_equations, state.unknown_history[-1], state.z, c)
            raise IntegrationError(
                f"the first step cannot be solved: {error}; {null_space}. "
                "If this is a singular configuration, start slightly away from it"
            ) from None
    return stepper_type.create(compiled, plan.k, StepperOptions(order, control, plan.threads))


def _engine_control(plan: Plan, control: StepControl, compiled: CompiledStep) -> StepSizeController | TaylorStepControl:
    """Return the settings of the step-size control of a plan."""
    if compiled.uses_taylor_series:
        return control.taylor_control(plan.t_end - plan.t0)
    estimated = compiled.error_estimate(plan.tier) if control.has_tolerance else None
    return control.to_engine(estimated, plan.h, plan.t_end - plan.t0)


def _variable_order_stepper(plan: Plan, scheme: Radau, compiled: CompiledStep, control: StepSizeController) -> Stepper:
    """Return a variable-order Radau stepper; each method is compiled when it is first used."""
    from livens.engine.steppers.variable_order_radau import VariableOrderRadauStepper

    c = step_inputs(plan.h, plan.t0, plan.k)
    reference_inputs = step_inputs(REFERENCE_H, plan.t0, plan.model.parameter_vector())

    def member(s: int) -> CompiledStep:
        return compiled.cached(
            ("stages", s), lambda: compiled_step(compiled.model, scheme.with_stages(s), compiled.removed_constraints)
        )

    def order_for(step: CompiledStep, x: np.ndarray, z: np.ndarray) -> PivotOrder:
        try:
            return step.initial_pivot_order(x, z, c, reference_inputs)
        except SingularMatrixError as error:
            raise IntegrationError(
                f"a step cannot be solved: {error}; {_describe_null_space(step.flat_equations, x, z, c)}"
            ) from None

    return VariableOrderRadauStepper(compiled, plan.k, control, member, order_for)


def _describe_null_space(e: StepGraph, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> str:
    """Describe the null space of a singular Jacobian by the names of its dominant rows."""
    values = e.newton_function(x, z, e.complete_inputs(x, z, c))[1].full().ravel()
    if not np.all(np.isfinite(values)):
        return "the derivatives of the model are not finite at the initial values"
    matrix = np.zeros((e.size, e.size))
    matrix[e.jac_rows, e.jac_cols] = values
    direction = np.abs(np.linalg.svd(matrix)[2][-1])
    names = [e.equation_labels[i] for i in np.flatnonzero(direction > 0.3 * direction.max())[:4]]
    return f"the system does not determine the unknowns of: {', '.join(names)}"
