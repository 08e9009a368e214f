"""Variational integrator on Livens' principle, for any mass matrix."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.schemes.core.scheme import Requirement
from livens.schemes.discretization.element_scheme import (
    ElementContribution,
    ElementFunctions,
    ElementScheme,
    MechanicalState,
)
from livens.types import Expr

MASS_REGULAR_ON_NULLSPACE = Requirement(
    "mass_regular_on_nullspace", "a mass matrix that is positive definite on the null space of G"
)


class LivensVariational(ElementScheme):
    """Variational integrator of Livens' action with the midpoint rule (derived in docs/theory/livens-variational.md)::

        q1 - q0 = h v                                                  q_m = (q0 + q1)/2
        p0 = D_2 L(q_m, v) - h/2 (D_1 L(q_m, v) + F) + h/2 G(q0)^T lam
        p1 = D_2 L(q_m, v) + h/2 (D_1 L(q_m, v) + F) - h/2 G(q1)^T mu
        p1 = D_2 L(q1, v1)
        0  = g(q1)
        0  = G(q1) v1

    As in RATTLE, lam enforces the constraints on position level and mu on velocity level. The momentum p1 follows from
    a velocity v1 by the fibre derivative, which is not inverted, so that the mass matrix may be singular or depend on
    q. Massless motions must be determined by constraints, as no force acts on v1. Unknowns are v and v1.
    """

    name = "livens-variational"
    group = "Symplectic schemes for systems with constraints"
    order = 2
    symplectic = True
    symmetric = True
    conserves = ("constraint", "velocity_constraint", "momentum_maps")
    summary = "variational integrator on Livens' principle (midpoint), for singular and non-constant mass"
    source = "outlook of Kinon and Betsch 2024; docs/theory/livens-variational.md"
    when_to_use = "Long runs with constraints that have to be symplectic, also with singular or variable mass."
    when_to_avoid = "Energy has to be exact in every step: use `livens-em`."
    requires = (MASS_REGULAR_ON_NULLSPACE,)
    unknowns = ("v", "v1")
    multipliers = ("lam", "mu")
    error_order, estimates_error_by_doubling = 2, True

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * x.v, x.v1

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [-old.p, 0 * old.p]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 0 * old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        q_m, t_m = old.q + h / 2 * x.v, t + h / 2
        F, R_v = e.F(q_m, x.v, t_m), e.R_v(q_m, x.v, t_m)
        p_m, force = e.T_v(q_m, x.v), e.T_q(q_m, x.v) - e.V_q(q_m, t_m) + F - R_v
        G0, G1 = e.G(old.q, t), e.G(new.q, t + h)
        p1 = e.T_v(new.q, new.v)
        rheonomic_power = ca.dot(x.lam, e.g_t(old.q, t)) + ca.dot(x.mu, e.g_t(new.q, t + h))
        return ElementContribution(
            residuals=[p_m - h / 2 * force + h / 2 * G0.T @ x.lam, p1 - p_m - h / 2 * force + h / 2 * G1.T @ x.mu],
            constraint_residuals=[e.g(new.q, t + h) / h, G1 @ new.v + e.g_t(new.q, t + h)],
            momentum=p1,
            supplied_work=h * (ca.dot(F, x.v) + e.V_t(q_m, t_m) + rheonomic_power / 2),
            dissipated_work=h * ca.dot(R_v, x.v),
        )
