"""Initial step size of adaptive runs (Hairer, Norsett, Wanner II.4)."""

from __future__ import annotations

import casadi as ca
import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.models.base import InitialState
from livens.models.descriptor import DescriptorModel
from livens.models.hamiltonian.model import Hamiltonian
from livens.run.plan import Plan

#: Relative change of the state in the first step.
_RELATIVE_CHANGE = 0.01
#: Largest initial step, relative to the time span.
_MAX_SPAN_FRACTION = 0.01


def initial_step_size(plan: Plan, compiled: CompiledStep, initial: InitialState) -> float:
    """Return ``0.01 |x| / |x'|``, both in the weighted maximum norm of the tolerances (Hairer, Norsett, Wanner II.4).

    The estimate is conservative, because the first steps may grow freely. A state at rest yields the plan's h.
    """
    estimated = compiled.error_estimate(plan.tier)
    if plan.control is None or estimated is None:
        return plan.h
    absolute, relative = plan.control.tolerances(estimated.names)
    state, rate = _state_and_rate(plan, compiled, initial)
    if state.size != absolute.size or not np.all(np.isfinite(rate)):
        return plan.h
    with np.errstate(all="ignore"):
        allowed = absolute + relative * np.abs(state)
        size, speed = (float(np.nanmax(np.abs(values) / allowed, initial=0.0)) for values in (state, rate))
    span = plan.t_end - plan.t0
    if not (np.isfinite(speed) and speed > 0):
        return plan.h
    # for a state near zero, its norm is replaced by 1, the tolerance
    return float(min(_RELATIVE_CHANGE * max(size, 1.0) / speed, _MAX_SPAN_FRACTION * span, plan.control.largest))


def _state_and_rate(plan: Plan, compiled: CompiledStep, initial: InitialState) -> tuple[np.ndarray, np.ndarray]:
    model = compiled.model
    if isinstance(model, Hamiltonian):
        force = np.array(model.function(model.momentum_rate)(initial["q"], initial["p"], plan.t0, plan.k)).ravel()
        return np.hstack([initial["q"], initial["p"]]), np.hstack([initial["v"], force])
    if not isinstance(model, DescriptorModel):
        return initial["q"], initial["v"]
    d = model.descriptor
    x = np.concatenate([initial[name] for name in ("x", "y") if name in initial.values])
    residual_at_rest = ca.Function("still", [d.x, d.xdot, d.t, d.k], [d.residual, ca.jacobian(d.residual, d.xdot)])
    residual, E = (np.array(value) for value in residual_at_rest(x, np.zeros(x.size), plan.t0, plan.k))
    if not (np.all(np.isfinite(residual)) and np.all(np.isfinite(E))):
        return x, np.full(x.size, np.nan)
    return x, np.linalg.lstsq(E, -residual.ravel(), rcond=1e-12)[0]
