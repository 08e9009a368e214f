"""Hints appended to the messages of failed runs where a smaller step does not help."""

from __future__ import annotations

import numpy as np

from livens import schemes
from livens.engine.stepper import IntegratorState
from livens.expressions.state_layout import Layout
from livens.results.record import Summary
from livens.run.plan import Plan

#: Ratio of the velocity-constraint residual to the largest velocity above which a velocity drift is reported.
_DRIFT_RATIO = 0.1
#: Fewest steps before a failure is attributed to drift; a step that is too long fails sooner.
_MIN_STEPS = 100


def hint_velocity_drift(plan: Plan, layout: Layout, state: IntegratorState, summary: Summary, steps: int) -> str:
    """Return a message about drift of the hidden (velocity) constraints; empty string if there is no such drift.

    Schemes that enforce constraints at position level only may have a mode that grows at every step size, while
    energy and position constraints stay at round-off level (docs/theory/known-limits.md).
    """
    scheme, model = plan.scheme, plan.model
    if "velocity_constraint" in scheme.conserves or "v" not in layout or steps < _MIN_STEPS:
        return ""
    speed, drift = float(np.abs(state.z[layout["v"]]).max(initial=0.0)), summary.max_velocity_constraint
    if not drift > _DRIFT_RATIO * speed:
        return ""
    alternatives = [name for name in schemes.compatible(model) if "velocity_constraint" in schemes.get(name).conserves][
        :2
    ]
    if not alternatives:
        alternatives = [
            name
            for name in ("livens-midpoint", "radau-iia-3")
            if name != scheme.name and not schemes.get(name).unmet_requirements(model)
        ]
    advice = f": try {' or '.join(alternatives)}" if alternatives else ""
    if getattr(model, "quaternions", ()):
        advice += f"{';' if alternatives else ':'} bodies with quaternions and joints need equivariant=False"
    return (
        f"Over {steps} steps the velocities have drifted off the constraints, which {scheme.name} does not enforce at "
        f"velocity level (d/dt g = {drift:.2g} with velocities of {speed:.2g}); a smaller step does not help{advice}"
    )


def hint_explicit_stability(plan: Plan) -> str:
    """Return a message if h exceeds the stability limit of the explicitly treated forces; empty string otherwise.

    The limit is evaluated at the initial state, because the state of a failed run is not meaningful.
    """
    extrapolation = getattr(plan.scheme, "explicit_point", None)
    if extrapolation is None or plan.scheme.fictive or getattr(plan.model, "external_force", None) is not None:
        return ""
    state = plan.model.initial_state(plan.start, plan.k, plan.t0, plan.project, plan.redundant)
    from livens.schemes.discretization.stability_limit import force_jacobians, stability_limit

    limit = stability_limit(*force_jacobians(plan.model, state["q"], state["v"], state.t, plan.k), extrapolation)
    if not plan.h > limit:
        return ""
    return (
        f"Try a smaller step than h = {plan.h:g}: at the initial state the expensive forces allow h <= {limit:.2g} "
        "(lv.study.longest_step)"
    )
