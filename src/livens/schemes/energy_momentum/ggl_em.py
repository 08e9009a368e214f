"""Energy-momentum scheme on the GGL principle, for constant, variable and singular mass matrices."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.models.system import System
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.element_scheme import ElementContribution, ElementFunctions, MechanicalState
from livens.schemes.discretization.element_step import ElementEquations
from livens.schemes.energy_momentum.base import EnergyMomentum
from livens.schemes.symplectic.ggl import QUADRATIC_KINETIC_ENERGY, SCLERONOMIC, hidden_constraints
from livens.schemes.symplectic.livens_variational import MASS_REGULAR_ON_NULLSPACE
from livens.types import Expr


class GGLEnergyMomentum(EnergyMomentum):
    """Energy-momentum scheme on the GGL principle: position and velocity constraints hold at the end of every step.

    The GGL Hamiltonian ``H + lam.g(q) + gam.g^v(q, p)`` with ``g^v = G(q) M^-1 p`` (Kinon et al. 2023, eq. 30),
    discretised with discrete gradients (derived in docs/theory/ggl-em.md)::

        q1 - q0 = h M^-1 p_m + h sum_k gam_k DG_p g^v_k
        p1 - p0 = -h DG V - h sum_k lam_k DG g_k - h sum_k gam_k DG_q g^v_k + h F_m
        0       = g(q1)
        0       = G(q1) M^-1 p1

    The unknowns are the midpoint value of ``u = M^-1 p`` and ``s = M^-1 sum_k gam_k D_q g_k``, averaged over both ends.
    `GGLEnergyMomentumVariableMass` has the equations for a variable or singular M.
    """

    name = "ggl-em"
    group = "Energy-momentum and midpoint schemes"
    order = 2
    symplectic = False
    symmetric = True
    conserves = ("total_energy", "constraint", "velocity_constraint")
    summary = "energy-momentum scheme on the GGL principle, both constraint levels at the end of the step"
    source = "outlook of Kinon et al. 2023; docs/theory/ggl-em.md"
    when_to_use = "Positions and velocities both have to satisfy the constraints, and energy has to be exact."
    when_to_avoid = (
        "The kinetic energy is no quadratic form of the velocities, or constraints depend on time: use `livens-em`."
    )
    requires = (QUADRATIC_KINETIC_ENERGY, MASS_REGULAR_ON_NULLSPACE, SCLERONOMIC)
    unknowns = ("u_m", "s")
    multipliers = ("lam", "gam")
    error_order, estimates_error_by_doubling = 2, True

    def equations(self, model: System, removed_constraints: Collection[int] = ()) -> StepEquations:
        scheme = self if model.separable and model.regular_mass else GGLEnergyMomentumVariableMass(self.gradient)
        return ElementEquations(model, scheme, tuple(removed_constraints))

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, 0 * old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * (x.u_m + x.s), 2 * x.u_m - old.v

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [-2 * old.p, 0 * old.p]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return -old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        m = e.model
        q0, Dq, q_m = old.q, h * (x.u_m + x.s), old.q + h / 2 * (x.u_m + x.s)
        F, R_v = e.F(q_m, x.u_m, t + h / 2), e.R_v(q_m, x.u_m, t + h / 2)
        V_q, dV_t = self.gradient.gradient_and_time_increment(e, m.V, q0, Dq, t, h)
        force = -V_q + F - R_v
        u = ca.SX.sym("u", m.n)
        for i in range(e.m):
            force -= x.lam[i] * self.gradient.gradient_and_time_increment(e, m.g[i], q0, Dq, t, h)[0]
            hidden = ca.Function("g_v", [m.q, u, m.t, m.k], [ca.jtimes(m.g[i], m.q, u)])
            dq_terms = [self.gradient(hidden, q0, Dq, v, 0, e.k) for v in (old.v, new.v)]
            force -= x.gam[i] * sum(dq_terms) / 2
        p_m = e.T_v(q0, x.u_m)
        G_mean = (e.G(q0, 0) + e.G(new.q, 0)) / 2
        return ElementContribution(
            residuals=[2 * p_m - h * force, e.T_v(q0, x.s) - G_mean.T @ x.gam],
            constraint_residuals=[e.g(new.q, t + h) / h, hidden_constraints(e, new.q, new.v)],
            momentum=2 * p_m,
            supplied_work=ca.dot(F, Dq) + dV_t,
            dissipated_work=ca.dot(R_v, Dq),
        )


class GGLEnergyMomentumVariableMass(GGLEnergyMomentum):
    """GGL energy-momentum scheme for a mass M(q) that is regular on the null space of G (docs/theory/ggl-em.md)::

        q1 - q0        = h (v_m + s)                                            v_m = (v0 + v1)/2
        p1 - p0        = h DG_q (v0.M v1 / 2 + s.M v_m - gam.G v_m) - h DG V - h sum_k lam_k DG g_k + h F_m
        p1             = M(q1) v1
        (M0 + M1) s    = (G0 + G1)^T gam
        0              = g(q1)
        0              = G(q1) v1

    ``DG_q`` is the discrete gradient in q at constant velocities, s and multipliers. M occurs in products only, so that
    element contributions add up, and p1 is the momentum of v1. The unknowns are v_m and ``w = v_m + s``: both have the
    size of a velocity, while s may be at round-off.
    """

    unknowns = ("v_m", "w")

    def equations(self, model: System, removed_constraints: Collection[int] = ()) -> StepEquations:
        return ElementEquations(model, self, tuple(removed_constraints))

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * x.w, 2 * x.v_m - old.v

    def nodal_residual(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> list[Expr]:
        return [-old.p, 0 * old.p]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 0 * old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        q0, Dq, q_m, s = old.q, h * x.w, old.q + h / 2 * x.w, x.w - x.v_m
        F, R_v = e.F(q_m, x.v_m, t + h / 2), e.R_v(q_m, x.v_m, t + h / 2)
        V_q, dV_t = self.gradient.gradient_and_time_increment(e, e.model.V, q0, Dq, t, h)
        force = self._kinetic_discrete_gradient(e, q0, Dq, old.v, new.v, s, x.gam) - V_q + F - R_v
        for i in range(e.m):
            force -= x.lam[i] * self.gradient.gradient_and_time_increment(e, e.model.g[i], q0, Dq, t, h)[0]
        p1 = e.T_v(new.q, new.v)
        M_s = (e.T_v(q0, s) + e.T_v(new.q, s)) / 2
        G_mean = (e.G(q0, 0) + e.G(new.q, 0)) / 2
        return ElementContribution(
            residuals=[p1 - h * force, M_s - G_mean.T @ x.gam],
            constraint_residuals=[e.g(new.q, t + h) / h, hidden_constraints(e, new.q, new.v)],
            momentum=p1,
            supplied_work=ca.dot(F, Dq) + dV_t,
            dissipated_work=ca.dot(R_v, Dq),
        )

    def _kinetic_discrete_gradient(
        self, e: ElementFunctions, q0: Expr, Dq: Expr, v0: Expr, v1: Expr, s: Expr, gam: Expr
    ) -> Expr:
        """Return ``DG_q (v0.M(q) v1 / 2 + s.M(q) v_m - gam.G(q) v_m)``."""
        m = e.model
        if m.T.is_zero() and not e.m:
            return ca.SX(m.n, 1)
        a, b, c = (ca.SX.sym(name, m.n) for name in ("v0", "v1", "s"))
        weights = ca.SX.sym("gam", m.m)
        p = ca.Function("p", [m.q, m.v, m.k], [ca.gradient(m.T, m.v)])
        energy = ca.dot(a, p(m.q, b, m.k)) / 2 + ca.dot(c, p(m.q, (a + b) / 2, m.k))
        if m.m:
            energy -= ca.dot(weights, ca.jtimes(m.g, m.q, (a + b) / 2))
        function = ca.Function("turning", [m.q, a, b, c, weights, m.t, m.k], [energy])
        return self.gradient(function, q0, Dq, v0, v1, s, gam, 0, e.k)
