"""Midpoint rule on Livens' principle (MPL)."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace

import casadi as ca

from livens.models.system import System
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.element_scheme import ElementContribution, ElementFunctions, MechanicalState
from livens.schemes.discretization.midpoint_external_force import MidpointForceEquations
from livens.schemes.discretization.midpoint_velocity import MidpointVelocity
from livens.schemes.discretization.velocity_constraints import velocity_constraint_forces
from livens.types import Expr


class LivensMidpoint(MidpointVelocity):
    """Midpoint rule for the Livens equations, constraints at the end of the step, Kinon and Betsch 2024, (132)::

        q1 - q0     = h v_m
        p1 - p0     = h dL/dq(q_m, v_m) - h G(q_m)^T lam + h F_m
        (p0 + p1)/2 = dL/dv(q_m, v_m)
        0           = g(q1)

    Without constraints and with a regular mass matrix this is the implicit midpoint rule of Hamilton's equations, which
    is symplectic; constraints at t + h destroy symplecticity.
    """

    name = "livens-midpoint"
    aliases = ("MPL",)
    group = "Energy-momentum and midpoint schemes"
    order = 2
    symplectic = False
    symmetric = True
    conserves = ("constraint", "momentum_maps")
    summary = "midpoint rule on Livens' principle (MPL)"
    source = "Kinon and Betsch 2024, (132)"
    when_to_use = "Angular momentum matters more than energy, or the kinetic energy is no quadratic form."
    when_to_avoid = "Energy has to be exact: use `livens-em`."
    supports_velocity_constraints = True
    external_force_at_midpoint = True

    def equations(self, model: System, removed_constraints: Collection[int] = ()) -> StepEquations:
        if model.external_force is not None:
            return MidpointForceEquations(model, lambda symbolic: self.equations(symbolic, removed_constraints))
        return super().equations(model, removed_constraints)

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        q_m, v_m, t_m = old.q + h / 2 * x.v_m, x.v_m, t + h / 2
        p_m = e.T_v(q_m, v_m)
        F, R_v = e.F(q_m, v_m, t_m), e.R_v(q_m, v_m, t_m)
        force = e.T_q(q_m, v_m) - e.V_q(q_m, t_m) - e.G(q_m, t_m).T @ x.lam + F - R_v
        supplied = h * (ca.dot(F, v_m) + e.V_t(q_m, t_m) + ca.dot(x.lam, e.g_t(q_m, t_m)))
        constraint_residual = e.g(new.q, t + h) / h
        dissipated = h * ca.dot(R_v, v_m)
        if e.model.velocity_constraints is not None:
            reaction, work, friction_loss, constraint_residual = velocity_constraint_forces(
                e, old.q, v_m, x.lam, constraint_residual, t, h
            )
            force, supplied, dissipated = force + reaction, supplied + work, dissipated + friction_loss
        return ElementContribution(
            residuals=[2 * p_m - h * force],
            constraint_residuals=[constraint_residual],
            momentum=2 * p_m,
            supplied_work=supplied,
            dissipated_work=dissipated,
        )
