"""How a run begins: the state and the unknowns before its first step, and the tier that takes its steps."""

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

#: One call of the compiled loop takes at most this many steps, and numbers (what fits into a core's cache).
_CHUNK_STEPS, _CHUNK_NUMBERS = 4096, 150_000
#: Of large systems, what fits into the cache of all cores; of the largest nothing does, and more steps at a time cost
#: less between them.
_ASSEMBLED_NUMBERS, _ASSEMBLED_STEPS = 1_200_000, 8
#: The reference tier is slow: look at the clock and at Ctrl-C more often.
_REFERENCE_STEPS = 32
#: The first pivot order is chosen for the model's own parameters and this step, whatever those of the run.
TYPICAL_STEP = 2.0**-10


def beginning(
    plan: Plan, compiled: CompiledStep, initial: InitialState, memory: Mapping[str, Any] | None = None
) -> tuple[Carry, Stepper]:
    """State and unknowns before the first step, and who takes it; `memory` if what the scheme adds is known."""
    carry = first_carry(plan, compiled, initial, memory)
    return carry, stepper_of(plan, compiled, carry)


def first_carry(
    plan: Plan, compiled: CompiledStep, initial: InitialState, memory: Mapping[str, Any] | None = None
) -> Carry:
    """All that the first step needs; `memory` if what the scheme adds to the state is known."""
    z, x, c = first_unknowns(plan, compiled, initial, memory)
    carry = Carry.start(initial.t, z, x)
    return replace(carry, memory=compiled.first_memory(z, c)) if plan.tier == "assembled" else carry


def first_unknowns(
    plan: Plan, compiled: CompiledStep, initial: InitialState, memory: Mapping[str, Any] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """State and unknowns before the first step, and the constants of that step."""
    if memory is None:
        memory = compiled.scheme.memory(compiled.model, initial.values, plan.k, initial.t, plan.h)
    z = compiled.layout.vector({**initial.values, **memory} if memory else initial.values)
    c = step_constants(plan.h, plan.t0, plan.k)
    return z, compiled.first_guess(z, c, plan.tier), c


def chunk_of(tier: str, numbers: int) -> int:
    """How many steps are taken at a time, if each has this many numbers."""
    if tier == "reference":
        return _REFERENCE_STEPS
    if tier == "assembled":
        return max(_ASSEMBLED_STEPS, min(_CHUNK_STEPS, _ASSEMBLED_NUMBERS // numbers))
    return max(1, min(_CHUNK_STEPS, _CHUNK_NUMBERS // numbers))


def stepper_of(plan: Plan, compiled: CompiledStep, carry: Carry) -> Stepper:
    """A tier for the run, with a pivot order that suits its first step."""
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
                "If this is a singular position, start a little beside it"
            ) from None
    return compiled.stepper(plan.tier, plan.k, order, control, own, plan.threads)


def _of_variable_order(plan: Plan, compiled: CompiledStep, carry: Carry, control: Control) -> Stepper:
    """A stepper that changes between methods, each of which is compiled when it is needed."""
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
    """Which unknowns a singular Jacobian leaves open, in words."""
    values = e.newton_function(x, z, c)[1].full().ravel()
    if not np.all(np.isfinite(values)):
        return "the derivatives of the model are not finite at the initial values"
    matrix = np.zeros((e.size, e.size))
    matrix[e.rows, e.columns] = values
    direction = np.abs(np.linalg.svd(matrix)[2][-1])
    names = [e.row_names[i] for i in np.flatnonzero(direction > 0.3 * direction.max())[:4]]
    return f"the system does not determine what belongs to: {', '.join(names)}"
