"""Schemes on the GGL principle and on the classical Gear-Gupta-Leimkuhler equations, for constant regular mass.

``M^-1`` is not formed: in place of ``M^-1 x`` of the papers there is an unknown u with ``M u = x``, and ``M u`` is the
sum of ``D_2 T(., u)`` over the elements.
"""

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

CONSTANT_MASS = Requirement("constant_mass", "a constant mass matrix")
REGULAR_MASS = Requirement("regular_mass", "a regular mass matrix")
SCLERONOMIC = Requirement("scleronomic", "constraints that do not depend on time")
QUADRATIC_KINETIC_ENERGY = Requirement(
    "homogeneous_kinetic_energy", "a kinetic energy that is a quadratic form of the velocities"
)


def hidden_constraints(e: ElementFunctions, q: Expr, u: Expr) -> Expr:
    """Return the hidden constraints ``g^v_k(q, u) = Dg_k(q) . u`` at velocity u."""
    return e.G(q, 0) @ u


def constraint_hessian_force(e: ElementFunctions, q: Expr, u: Expr, gam: Expr) -> Expr:
    """Return the constraint Hessian force ``sum_k gam_k D^2 g_k(q) u``."""
    m = e.model
    if not e.m:
        return ca.SX(e.n, 1)
    direction, weights = ca.SX.sym("u", m.n), ca.SX.sym("gam", m.m)
    value = ca.gradient(ca.dot(weights, ca.jacobian(m.g, m.q) @ direction), m.q)
    return ca.Function("D2g", [m.q, direction, weights, m.t, m.k], [value])(q, u, gam, 0, e.k)


class GGLVariational(ElementScheme):
    """Variational integrator of the GGL principle, Kinon et al. 2023, (41) and (57), with ``p1`` in (41b)::

        q1 - q0       = h v + h M^-1 G(qb)^T gam                        qb = q0 + h v
        p1 - p0       = h D_1 L(q0, v) - h G(q0)^T lam - h sum_k gam_k D^2 g_k(qb) M^-1 p1 - h C(q0) v
        D_2 L(q0, v)  = (I + h sum_k gam_k D^2 g_k(qb) M^-1) p1
        0             = g(q1)
        0             = G(qb) M^-1 p1

    Unknowns are v, ``u = M^-1 p1`` and ``s = M^-1 G(qb)^T gam``. The velocity reported at t + h is u.
    """

    name = "ggl-variational"
    group = "Symplectic schemes for systems with constraints"
    order = 1
    symplectic = True
    symmetric = False
    conserves = ("constraint", "momentum_maps")
    summary = "variational integrator of the GGL principle"
    source = "Kinon et al. 2023, (41), (57)"
    when_to_use = "You reproduce the variational integrator of the GGL principle."
    when_to_avoid = "You need order 2: use `livens-variational`."
    requires = (CONSTANT_MASS, REGULAR_MASS, QUADRATIC_KINETIC_ENERGY, SCLERONOMIC)
    unknowns = ("v", "u", "s")
    multipliers = ("lam", "gam")

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, old.v, 0 * old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * (x.v + x.s), x.u

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [-old.p, 0 * old.p, 0 * old.p]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 0 * old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        q_bar = old.q + h * x.v
        F, R_v = e.F(old.q, x.v, t), e.R_v(old.q, x.v, t)
        p1, hessian_force = e.T_v(old.q, x.u), constraint_hessian_force(e, q_bar, x.u, x.gam)
        force = -e.V_q(old.q, t) - e.G(old.q, 0).T @ x.lam - hessian_force + F - R_v
        return ElementContribution(
            residuals=[
                p1 - h * force,
                e.T_v(old.q, x.v) - p1 - h * hessian_force,
                e.T_v(old.q, x.s) - e.G(q_bar, 0).T @ x.gam,
            ],
            constraint_residuals=[e.g(new.q, t + h) / h, hidden_constraints(e, q_bar, x.u)],
            momentum=p1,
            supplied_work=h * (ca.dot(F, x.v) + e.V_t(old.q, t)),
            dissipated_work=h * ca.dot(R_v, x.v),
        )


class GGLClassic(ElementScheme):
    """One-step scheme on the original Gear-Gupta-Leimkuhler equations, Kinon et al. 2023, (21)::

        q1 - q0 = h M^-1 p1 + h G(qb)^T gam                             qb = q0 + h M^-1 p1
        p1 - p0 = -h DV(q0) - h G(q0)^T lam - h C(q0) v
        0       = g(q1)
        0       = G(qb) M^-1 p1

    The kinematic equation is modified, the momentum equation is not: the structure is not Hamiltonian, and the scheme
    is not symplectic.
    """

    name = "ggl-classic"
    group = "Methods for comparison"
    order = 1
    symplectic = False
    symmetric = False
    conserves = ("constraint",)
    summary = "the classical Gear-Gupta-Leimkuhler stabilisation, stepped in the same way"
    source = "Kinon et al. 2023, (21)"
    when_to_use = "Comparison with the Gear-Gupta-Leimkuhler stabilisation."
    when_to_avoid = "Energy or symplecticity matters: use `ggl-em` or `ggl-variational`."
    requires = (CONSTANT_MASS, REGULAR_MASS, QUADRATIC_KINETIC_ENERGY, SCLERONOMIC)
    unknowns = ("v", "s")
    multipliers = ("lam", "gam")

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, 0 * old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * (x.v + x.s), x.v

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [-old.p, x.s]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 0 * old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        q_bar = old.q + h * x.v
        F, R_v = e.F(old.q, x.v, t), e.R_v(old.q, x.v, t)
        p1 = e.T_v(old.q, x.v)
        force = -e.V_q(old.q, t) - e.G(old.q, 0).T @ x.lam + F - R_v
        return ElementContribution(
            residuals=[p1 - h * force, -e.G(q_bar, 0).T @ x.gam],
            constraint_residuals=[e.g(new.q, t + h) / h, hidden_constraints(e, q_bar, x.v)],
            momentum=p1,
            supplied_work=h * (ca.dot(F, x.v) + e.V_t(old.q, t)),
            dissipated_work=h * ca.dot(R_v, x.v),
        )
