"""What to try after a failure that no smaller step would have prevented."""

from __future__ import annotations

import numpy as np

from livens import schemes
from livens.engine.steps import Carry
from livens.expressions.layout import Layout
from livens.results.record import Summary
from livens.run.plan import Plan
from livens.schemes.recipes.step_limit import longest_stable, slopes

#: Velocities that violate hidden constraints by this part of themselves are no motion of the system any more.
_FAR = 0.1
#: A step that is too long fails sooner than this; what grows from step to step takes longer.
_MANY_STEPS = 100


def hidden_constraints_left(plan: Plan, layout: Layout, carry: Carry, summary: Summary, steps: int) -> str:
    """Words about velocities that have left the constraints over many steps; nothing if that is not what happened.

    Schemes that hold positions to constraints, but not velocities, may have a mode that grows at every step size, with
    energy and constraints at round-off all the time (docs/notes.md).
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
        f"Over {steps} steps the velocities have left the constraints, to which {scheme.name} does not hold them "
        f"(d/dt g = {away:.2g} with velocities of {speed:.2g}); a smaller step does not help against that{better}"
    )


def too_long_for_expensive_forces(plan: Plan) -> str:
    """Words about a step that the expensive forces do not allow at the start, of schemes that evaluate them once.

    In the state in which a run has broken down nothing means anything.
    """
    ahead = getattr(plan.scheme, "ahead", None)
    if ahead is None or plan.scheme.fictive or getattr(plan.model, "box", None) is not None:
        return ""
    state = plan.model.start(plan.start, plan.k, plan.t0, plan.project, plan.redundant)
    limit = longest_stable(*slopes(plan.model, state["q"], state["v"], state.t, plan.k), ahead)
    if not plan.h > limit:
        return ""
    return (
        f"Try a smaller step than h = {plan.h:g}: at the start the expensive forces allow up to {limit:.2g} "
        "(lv.study.longest_step)"
    )
