"""Hints appended to the messages of failed runs where a smaller step does not help."""

from __future__ import annotations

import numpy as np

from livens import schemes
from livens.engine.steps import Carry
from livens.expressions.layout import Layout
from livens.results.record import Summary
from livens.run.plan import Plan
from livens.schemes.recipes.step_limit import longest_stable, slopes

#: Ratio of the velocity-constraint residual to the largest velocity above which a velocity drift is reported.
_FAR = 0.1
#: Fewest steps before a failure is attributed to drift; a step that is too long fails sooner.
_MANY_STEPS = 100


def hidden_constraints_left(plan: Plan, layout: Layout, carry: Carry, summary: Summary, steps: int) -> str:
    """Return a message about drift of the hidden (velocity) constraints; empty string if there is no such drift.

    Schemes that enforce constraints at position level only may have a mode that grows at every step size, while
    energy and position constraints stay at round-off level (docs/notes.md).
    """
    scheme, model = plan.scheme, plan.model
    if "velocity_constraint" in scheme.conserves or "v" not in layout or steps < _MANY_STEPS:
        return ""
    speed, away = float(np.abs(carry.z[layout["v"]]).max(initial=0.0)), summary.max_velocity_constraint
    if not away > _FAR * speed:
        return ""
    others = [name for name in schemes.fitting(model) if "velocity_constraint" in schemes.get(name).conserves][:2]
    if not others:
        others = [name for name in ("livens-midpoint", "radau-iia-3") if not schemes.get(name).missing(model)]
    better = f": try {' or '.join(others)}" if others else ""
    if getattr(model, "quaternions", ()):
        better += f"{';' if others else ':'} bodies with quaternions and joints need equivariant=False"
    return (
        f"Over {steps} steps the velocities have drifted off the constraints, which {scheme.name} does not enforce at "
        f"velocity level (d/dt g = {away:.2g} with velocities of {speed:.2g}); a smaller step does not help{better}"
    )


def too_long_for_expensive_forces(plan: Plan) -> str:
    """Return a message if h exceeds the stability limit of the explicitly treated forces; empty string otherwise.

    The limit is evaluated at the initial state, because the state of a failed run is not meaningful.
    """
    ahead = getattr(plan.scheme, "ahead", None)
    if ahead is None or plan.scheme.fictive or getattr(plan.model, "box", None) is not None:
        return ""
    state = plan.model.start(plan.start, plan.k, plan.t0, plan.project, plan.redundant)
    limit = longest_stable(*slopes(plan.model, state["q"], state["v"], state.t, plan.k), ahead)
    if not plan.h > limit:
        return ""
    return (
        f"Try a smaller step than h = {plan.h:g}: at the initial state the expensive forces allow h <= {limit:.2g} "
        "(lv.study.longest_step)"
    )
