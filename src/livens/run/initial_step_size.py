"""Initial step size of adaptive runs (Hairer, Norsett, Wanner II.4)."""

from __future__ import annotations

import casadi as ca
import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.engine.newton.step_size_control import SETPOINT, initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.errors import InputError
from livens.expressions.evaluate import Evaluator
from livens.models.base import InitialState
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.models.hamiltonian.model import Hamiltonian
from livens.run.plan import Plan
from livens.run.startup import start_integration
from livens.validation import all_finite

#: Relative change of the state in the first step.
_RELATIVE_CHANGE = 0.01
#: Largest initial step, relative to the time span.
_MAX_SPAN_FRACTION = 0.01
#: Largest number of trials for the first step with an error estimate by a double step, and steps of a trial. The error
#: of the positions vanishes at rest, so that the first steps do not show it.
_MAX_TRIALS, _TRIAL_STEPS = 12, 8
#: Smallest first step relative to the time span; shorter steps are due to round-off in the error estimate.
_MIN_SPAN_FRACTION = 1e-9


def initial_step_size(plan: Plan, compiled: CompiledStep, initial: InitialState) -> float:
    """Return ``0.01 |x| / |x'|``, both in the weighted maximum norm of the tolerances (Hairer, Norsett, Wanner II.4).

    The estimate is conservative, because the first steps may grow freely. A state at rest yields the plan's h.
    """
    estimated = compiled.error_estimate(plan.tier)
    if plan.control is None or estimated is None:
        return plan.h
    if estimated.doubling_order:
        return _trial_step_size(plan, compiled, initial, estimated.order)
    if "tolerances" not in plan.cache:
        plan.cache["tolerances"] = plan.control.tolerances(estimated.names)
    absolute, relative = plan.cache["tolerances"]
    state, rate = _state_and_rate(plan, compiled, initial)
    if state.size != absolute.size or not all_finite(rate):
        return plan.h
    with np.errstate(all="ignore"):
        allowed = absolute + relative * np.abs(state)
        size, speed = (float(np.fmax.reduce(np.abs(values) / allowed, initial=0.0)) for values in (state, rate))
    span = plan.t_end - plan.t0
    if not (np.isfinite(speed) and speed > 0):
        return plan.h
    # for a state near zero, its norm is replaced by 1, the tolerance
    return float(min(_RELATIVE_CHANGE * max(size, 1.0) / speed, _MAX_SPAN_FRACTION * span, plan.control.largest))


def _trial_step_size(plan: Plan, compiled: CompiledStep, initial: InitialState, order: int) -> float:
    """Return a first step whose error is near the tolerance, by trial steps with an error estimate."""
    span = plan.t_end - plan.t0
    assert plan.control is not None
    largest = min(_MAX_SPAN_FRACTION * span, plan.control.largest)
    size, speed = (float(np.max(np.abs(initial[name]), initial=0.0)) for name in ("q", "v"))
    h = min(largest, _RELATIVE_CHANGE * size / speed) if size * speed > 0 else 0.1 * largest
    verified, too_long = 0.0, np.inf
    state, stepper = start_integration(plan, compiled, initial)
    try:
        for _ in range(_MAX_TRIALS):
            policy, controller_state = StepPolicy(True, h, 0.0, 0, t_end=plan.t_end), initial_controller_state(h)
            steps = stepper.advance(state, _TRIAL_STEPS, policy, controller_state)
            error = max(float(controller_state[0]["norm"]), 1e-10)
            allowed = min(
                float(controller_state[0]["last"]) * (SETPOINT / error) ** (1 / (order + 1)),
                float(np.min(steps.step_sizes, initial=np.inf)) if controller_state[0]["failures"] else np.inf,
            )
            if steps.failure is not None:
                allowed = 0.1 * h
            is_solved = steps.failure is None or controller_state[0]["failures"] > controller_state[0]["unsolved"]
            if h < _MIN_SPAN_FRACTION * span and h > 1.5 * allowed and is_solved:
                raise InputError(
                    f"no first step meets the tolerance {plan.control.default_rtol:g}: estimated errors are round-off; "
                    "use a larger tolerance, or give h without a tolerance"
                )
            if h > 1.5 * allowed:
                too_long, h = h, min(max(allowed, 0.1 * h), 0.5 * h)
                continue
            verified, longer = h, min(allowed, largest, 10 * h, 0.5 * too_long)
            if longer < 2 * h:
                break
            h = longer
    finally:
        stepper.close()
    return verified or min(h, largest)


def _state_and_rate(plan: Plan, compiled: CompiledStep, initial: InitialState) -> tuple[np.ndarray, np.ndarray]:
    model = compiled.model
    if isinstance(model, Hamiltonian):
        force = np.array(model.function(model.momentum_rate)(initial["q"], initial["p"], plan.t0, plan.k)).ravel()
        return np.hstack([initial["q"], initial["p"]]), np.hstack([initial["v"], force])
    if not isinstance(model, DescriptorModel):
        return initial["q"], initial["v"]
    d = model.descriptor
    x = np.concatenate([initial[name] for name in ("x", "y") if name in initial.values])
    residual_at_rest, is_explicit = compiled.cached("residual at rest", lambda: _residual_at_rest(d))
    residual, *mass = residual_at_rest(x, 0.0, plan.t0, plan.k)
    if is_explicit:
        return x, -residual.ravel()
    (E,) = mass
    if not (np.all(np.isfinite(residual)) and np.all(np.isfinite(E))):
        return x, np.full(x.size, np.nan)
    return x, np.linalg.lstsq(E, -residual.ravel(), rcond=1e-12)[0]


def _residual_at_rest(d: Descriptor) -> tuple[Evaluator, bool]:
    """Return the residual and the mass matrix as functions of (x, x', t, k), or the residual alone if ``E = I``."""
    mass = ca.jacobian(d.residual, d.xdot)
    is_explicit = mass.shape[0] == mass.shape[1] == d.x.numel() and mass.is_eye()
    return Evaluator([d.x, d.xdot, d.t, d.k], [d.residual] if is_explicit else [d.residual, mass]), is_explicit
