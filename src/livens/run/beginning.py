"""Start of a run: initial integrator state, initial Newton unknowns and choice of the stepper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from livens.engine.compiled import CompiledStep, compiled_step
from livens.engine.factors import Order
from livens.engine.pivots import SingularMatrixError
from livens.engine.step_size import Control
from livens.engine.steps import Carry, Stepper, step_constants
from livens.engine.variable_order import VariableOrderStepper
from livens.errors import IntegrationError
from livens.models.model import InitialState
from livens.run.plan import Plan
from livens.schemes.radau import Radau
from livens.schemes.step import FlatEquations

#: Largest number of steps, and of state values, of one call of the compiled loop (fits into the cache of a core).
_CHUNK_STEPS, _CHUNK_NUMBERS = 4096, 150_000
#: Assembled tier: largest number of state values per call (fits into the shared cache), and fewest steps per call.
#: The largest systems exceed the cache; several steps per call then reduce the overhead between calls.
_ASSEMBLED_NUMBERS, _ASSEMBLED_STEPS = 1_200_000, 8
#: Reference tier: steps per call. Small, because the clock and Ctrl-C are checked between calls.
_REFERENCE_STEPS = 32
#: Step size in seconds for which the first pivot order is chosen, together with the model's default parameters.
TYPICAL_STEP = 2.0**-10


def beginning(
    plan: Plan, compiled: CompiledStep, initial: InitialState, memory: Mapping[str, Any] | None = None
) -> tuple[Carry, Stepper]:
    """Return the initial integrator state and the stepper; `scheme_state` if the scheme's extra state is known."""
    carry = first_carry(plan, compiled, initial, memory)
    return carry, stepper_of(plan, compiled, carry)


def first_carry(
    plan: Plan, compiled: CompiledStep, initial: InitialState, memory: Mapping[str, Any] | None = None
) -> Carry:
    """Return the initial `IntegratorState`; `scheme_state` if the scheme's extra state is known."""
    z, x, c = first_unknowns(plan, compiled, initial, memory)
    carry = Carry.start(initial.t, z, x)
    return replace(carry, memory=compiled.first_memory(z, c)) if plan.tier == "assembled" else carry


def first_unknowns(
    plan: Plan, compiled: CompiledStep, initial: InitialState, memory: Mapping[str, Any] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the initial state z, the initial unknowns x and the inputs c of the first step."""
    if memory is None:
        memory = compiled.scheme.memory(compiled.model, initial.values, plan.k, initial.t, plan.h)
    z = compiled.layout.vector({**initial.values, **memory} if memory else initial.values)
    c = step_constants(plan.h, plan.t0, plan.k)
    return z, compiled.first_guess(z, c, plan.tier), c


def chunk_of(tier: str, numbers: int) -> int:
    """Return the number of steps per call for states of `n_values` values."""
    if tier == "reference":
        return _REFERENCE_STEPS
    if tier == "assembled":
        return max(_ASSEMBLED_STEPS, min(_CHUNK_STEPS, _ASSEMBLED_NUMBERS // numbers))
    return max(1, min(_CHUNK_STEPS, _CHUNK_NUMBERS // numbers))


def stepper_of(plan: Plan, compiled: CompiledStep, carry: Carry) -> Stepper:
    """Return the stepper of the plan's tier, with a pivot order chosen for the first step."""
    control, order, own = None, None, None
    if plan.control and compiled.series:
        own = plan.control.own_steps(plan.t_end - plan.t0)
    elif plan.control:
        estimated = compiled.estimated(plan.tier) if plan.control.estimates else None
        control = plan.control.of(estimated, plan.h, plan.t_end - plan.t0)
    if control is not None and isinstance(plan.scheme, Radau):
        return _of_variable_order(plan, compiled, carry, control)
    if plan.tier == "fused" and compiled.size and not compiled.swept:
        c = step_constants(plan.h, plan.t0, plan.k)
        typical = step_constants(TYPICAL_STEP, plan.t0, plan.model.parameter_vector())
        try:
            order = compiled.first_order(carry.x[-1], carry.z, c, typical)
        except SingularMatrixError as error:
            open_ = _undetermined(compiled.flat, carry.x[-1], carry.z, c)
            raise IntegrationError(
                f"the first step cannot be solved: {error}; {open_}. "
                "If this is a singular configuration, start slightly away from it"
            ) from None
    return compiled.stepper(plan.tier, plan.k, order, control, own, plan.threads)


def _of_variable_order(plan: Plan, compiled: CompiledStep, carry: Carry, control: Control) -> Stepper:
    """Return a variable-order Radau stepper; each method is compiled when it is first used."""
    scheme = plan.scheme
    assert isinstance(scheme, Radau)
    c = step_constants(plan.h, plan.t0, plan.k)
    typical = step_constants(TYPICAL_STEP, plan.t0, plan.model.parameter_vector())

    def member(s: int) -> CompiledStep:
        return compiled.once(("stages", s), lambda: compiled_step(compiled.model, scheme.member(s), compiled.dropped))

    def order_for(one: CompiledStep, x: np.ndarray, z: np.ndarray) -> Order:
        try:
            return one.first_order(x, z, c, typical)
        except SingularMatrixError as error:
            raise IntegrationError(f"a step cannot be solved: {error}; {_undetermined(one.flat, x, z, c)}") from None

    return VariableOrderStepper(compiled, plan.k, control, member, order_for)


def _undetermined(e: FlatEquations, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> str:
    """Describe the null space of a singular Jacobian by the names of its dominant rows."""
    values = e.newton_function(x, z, c)[1].full().ravel()
    if not np.all(np.isfinite(values)):
        return "the derivatives of the model are not finite at the initial values"
    matrix = np.zeros((e.size, e.size))
    matrix[e.rows, e.columns] = values
    direction = np.abs(np.linalg.svd(matrix)[2][-1])
    names = [e.row_names[i] for i in np.flatnonzero(direction > 0.3 * direction.max())[:4]]
    return f"the system does not determine the unknowns of: {', '.join(names)}"
