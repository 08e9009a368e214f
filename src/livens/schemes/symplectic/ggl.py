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
    conserves: tuple[str, ...] = ("constraint", "momentum_maps")
    summary = "variational integrator of the GGL principle"
    source = "Kinon et al. 2023, (41), (57)"
    when_to_use = "You reproduce the variational integrator of the GGL principle."
    when_to_avoid = "You need order 2: use `ggl-variational-symmetric` or `livens-variational`."
    requires = (CONSTANT_MASS, REGULAR_MASS, QUADRATIC_KINETIC_ENERGY, SCLERONOMIC)
    unknowns: tuple[str, ...] = ("v", "u", "s")
    multipliers: tuple[str, ...] = ("lam", "gam")

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, old.v, 0 * old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * (x.v + x.s), x.u

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [-old.p, *[0 * old.p] * (len(self.unknowns) - 1)]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 0 * old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        return _forward_terms(e, old.q, new.q, x, h, t)


def _forward_terms(
    e: ElementFunctions, q0: Expr, q1: Expr, x: SimpleNamespace, h: Expr, t: Expr
) -> ElementContribution:
    """Return the terms of `ggl-variational` from q0 to q1, without the momentum at q0."""
    q_bar = q0 + h * x.v
    F, R_v = e.F(q0, x.v, t), e.R_v(q0, x.v, t)
    p1, hessian_force = e.T_v(q0, x.u), constraint_hessian_force(e, q_bar, x.u, x.gam)
    force = -e.V_q(q0, t) - e.G(q0, 0).T @ x.lam - hessian_force + F - R_v
    return ElementContribution(
        residuals=[
            p1 - h * force,
            e.T_v(q0, x.v) - p1 - h * hessian_force,
            e.T_v(q0, x.s) - e.G(q_bar, 0).T @ x.gam,
        ],
        constraint_residuals=[e.g(q1, t + h) / h, hidden_constraints(e, q_bar, x.u)],
        momentum=p1,
        supplied_work=h * (ca.dot(F, x.v) + e.V_t(q0, t)),
        dissipated_work=h * ca.dot(R_v, x.v),
    )


def _adjoint_terms(
    e: ElementFunctions, q0: Expr, q1: Expr, x: SimpleNamespace, h: Expr, t: Expr
) -> ElementContribution:
    """Return the terms of `ggl-variational-adjoint` from q0 to q1, without the momentum at q0."""
    q_bar = q0 + h * x.s
    F, R_v = e.F(q1, x.v, t + h), e.R_v(q1, x.v, t + h)
    p, p1, hessian_force = e.T_v(q0, x.u), e.T_v(q0, x.v1), constraint_hessian_force(e, q_bar, x.u, x.gam)
    force = -e.V_q(q1, t + h) - e.G(q1, 0).T @ x.nu - hessian_force + F - R_v
    return ElementContribution(
        residuals=[
            p + h * e.G(q0, 0).T @ x.lam,
            e.T_v(q0, x.v) - p + h * hessian_force,
            e.T_v(q0, x.s) - e.G(q_bar, 0).T @ x.gam,
            p1 - p - h * force,
        ],
        constraint_residuals=[
            hidden_constraints(e, q_bar, x.u),
            e.g(q1, t + h) / h,
            hidden_constraints(e, q1, x.v1),
        ],
        momentum=p1,
        supplied_work=h * (ca.dot(F, x.v) + e.V_t(q1, t + h)),
        dissipated_work=h * ca.dot(R_v, x.v),
    )


class GGLVariationalAdjoint(GGLVariational):
    """Adjoint of the GGL variational integrator: `ggl-variational` with -h, solved for the other end of the step::

        p       = p0 - h G(q0)^T lam                                        qb = q0 + h M^-1 G(qb)^T gam
        q1 - qb = h v                          D_2 L(q1, v) = (I - h sum_k gam_k D^2 g_k(qb) M^-1) p
        p1 - p  = h D_1 L(q1, v) - h G(q1)^T nu - h sum_k gam_k D^2 g_k(qb) M^-1 p - h C(q1) v
        0       = G(qb) M^-1 p
        0       = g(q1)
        0       = G(q1) M^-1 p1

    On the constraints, momenta that differ by ``G(q)^T lam`` are equivalent. `ggl-variational` is a map of equivalence
    classes, and only as such has an inverse: lam selects the momentum that `ggl-variational` reaches with -h, and nu
    that of the hidden constraints. Unknowns are v, ``u = M^-1 p``, ``s = M^-1 G(qb)^T gam`` and
    ``v1 = M^-1 p1``.
    """

    name = "ggl-variational-adjoint"
    conserves = ("constraint", "velocity_constraint", "momentum_maps")
    summary = "adjoint of the variational integrator of the GGL principle"
    source = "Kinon et al. 2023, (41), adjoint"
    when_to_use = "You study the adjoint of `ggl-variational`, whose velocities satisfy the hidden constraints."
    unknowns = ("v", "u", "s", "v1")
    multipliers = ("lam", "gam", "nu")

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, old.v, 0 * old.v, old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * (x.v + x.s), x.v1

    def reported_multipliers(self, x: SimpleNamespace, old_multipliers: Expr) -> Expr:
        return x.lam + x.nu

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        return _adjoint_terms(e, old.q, new.q, x, h, t)


class GGLVariationalSymmetric(GGLVariational):
    """Symmetric composition: half a step of `ggl-variational`, then half a step of its adjoint.

    Of order 2 and symplectic, with the constraints on both levels at the end of the step. Compositions such as
    ``suzuki-4:ggl-variational-symmetric`` have order 4. The unknowns of the second half end with ``_2``.
    """

    name = "ggl-variational-symmetric"
    order, symmetric = 2, True
    conserves = ("constraint", "velocity_constraint", "momentum_maps")
    summary = "variational integrator of the GGL principle, composed with its adjoint"
    source = "outlook of Kinon et al. 2023; Hairer, Lubich and Wanner 2006, II.3"
    when_to_use = "Symplectic steps of the GGL principle of order 2, or base of compositions of order 4."
    when_to_avoid = "The mass matrix is singular or variable: use `livens-variational`."
    unknowns = ("v", "u", "s", "v_2", "u_2", "s_2", "v1")
    multipliers = ("lam", "gam", "lam_2", "gam_2", "nu")

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, old.v, 0 * old.v, old.v, old.v, 0 * old.v, old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h / 2 * (x.v + x.s + x.v_2 + x.s_2), x.v1

    def reported_multipliers(self, x: SimpleNamespace, old_multipliers: Expr) -> Expr:
        return (x.lam + x.lam_2 + x.nu) / 2

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        q_m = old.q + h / 2 * (x.v + x.s)
        second = SimpleNamespace(v=x.v_2, u=x.u_2, s=x.s_2, v1=x.v1, lam=x.lam_2, gam=x.gam_2, nu=x.nu)
        first, last = (
            _forward_terms(e, old.q, q_m, x, h / 2, t),
            _adjoint_terms(e, q_m, new.q, second, h / 2, t + h / 2),
        )
        last.residuals = [last.residuals[0] - first.momentum, *last.residuals[1:]]
        return ElementContribution(
            residuals=[*first.residuals, *last.residuals],
            constraint_residuals=[*first.constraint_residuals, *last.constraint_residuals],
            momentum=last.momentum,
            supplied_work=first.supplied_work + last.supplied_work,
            dissipated_work=first.dissipated_work + last.dissipated_work,
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
