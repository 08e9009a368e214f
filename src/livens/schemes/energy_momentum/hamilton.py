"""Schemes for Hamilton's equations, with a regular mass matrix or an augmented one for unit quaternions."""

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
from livens.schemes.discretization.so3 import left_multiplication
from livens.schemes.energy_momentum.base import EnergyMomentum
from livens.schemes.symplectic.ggl import QUADRATIC_KINETIC_ENERGY
from livens.types import Expr

REGULAR_AUGMENTED_MASS = Requirement(
    "regular_augmented_mass", "a regular mass matrix (or unit quaternions, for which it is made regular)"
)


class AugmentedKinetic:
    """Augmented kinetic energy ``T + 1/2 sum a (q.v)^2`` over the unit quaternions, Kinon and Betsch 2024, (140)-(141).

    ``a = 2 tr J``: half the trace of the quaternion's mass matrix ``4 G^T J G`` at the identity.
    """

    def __init__(self, e: ElementFunctions) -> None:
        m = e.model
        T = m.T
        for quat_dofs in m.quaternions:
            i = list(quat_dofs)
            v_hessian = ca.hessian(m.T, m.v)[0]
            identity = ca.substitute(ca.trace(v_hessian[i, i]), m.q[i], ca.DM([1, 0, 0, 0]))
            T = T + identity / 4 * ca.dot(m.q[i], m.v[i]) ** 2
        self._k = e.k
        self._T_q = ca.Function("T_q", [m.q, m.v, m.k], [ca.gradient(T, m.q)])
        self._T_v = ca.Function("T_v", [m.q, m.v, m.k], [ca.gradient(T, m.v)])

    def T_q(self, q: Expr, v: Expr) -> Expr:
        return self._T_q(q, v, self._k)

    def T_v(self, q: Expr, v: Expr) -> Expr:
        return self._T_v(q, v, self._k)


class HamiltonMidpoint(ElementScheme):
    """Midpoint rule for Hamilton's equations, constraints at the end of the step, Kinon and Betsch 2024, (133)::

        q1 - q0 = h M(q_m)^-1 p_m
        p1 - p0 = -h dT*/dq(q_m, p_m) - h DV(q_m) - h G(q_m)^T lam + h F_m
        0       = g(q1)

    With ``v_m = M(q_m)^-1 p_m`` as unknown, ``dT*/dq = -dT/dq(q_m, v_m)``, and M is not inverted. The final velocities
    satisfy ``p1 = M(q1) v1``. For unit quaternions M is the augmented mass matrix of (139).
    """

    name = "hamilton-midpoint"
    aliases = ("MPH",)
    group = "Energy-momentum and midpoint schemes"
    order = 2
    symplectic = False
    symmetric = True
    conserves = ("constraint", "momentum_maps")
    summary = "midpoint rule for Hamilton's equations (MPH)"
    source = "Kinon and Betsch 2024, (133)"
    when_to_use = "You compare the midpoint rule for Hamilton's equations with `livens-midpoint`."
    when_to_avoid = "The mass matrix is singular: use `livens-midpoint`."
    requires = (REGULAR_AUGMENTED_MASS,)
    unknowns = ("v_m", "v1")
    multipliers = ("lam",)

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * x.v_m, x.v1

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [-2 * old.p, old.p]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return -old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        kinetic = AugmentedKinetic(e)
        q_m, v_m, t_m = old.q + h / 2 * x.v_m, x.v_m, t + h / 2
        F, R_v = e.F(q_m, v_m, t_m), e.R_v(q_m, v_m, t_m)
        p_m = kinetic.T_v(q_m, v_m)
        force = kinetic.T_q(q_m, v_m) - e.V_q(q_m, t_m) - e.G(q_m, t_m).T @ x.lam + F - R_v
        return ElementContribution(
            residuals=[2 * p_m - h * force, kinetic.T_v(new.q, new.v) - 2 * p_m],
            constraint_residuals=[e.g(new.q, t + h) / h],
            momentum=2 * p_m,
            supplied_work=h * (ca.dot(F, v_m) + e.V_t(q_m, t_m) + ca.dot(x.lam, e.g_t(q_m, t_m))),
            dissipated_work=h * ca.dot(R_v, v_m),
        )


class HamiltonEM(EnergyMomentum):
    """Energy-momentum scheme for Hamilton's equations with unit quaternions (Kinon and Betsch 2024, 138-146)::

        q1 - q0 = h (dt/dp(q_m))^T DT*(t_m)                            t = Q_l(q)^T p
        p1 - p0 = -h (dt/dq(p_m))^T DT*(t_m) - h DG V - h sum_k lam_k DG g_k + h F_m
        0       = g(q1)

    The kinetic co-energy is a quadratic function of the invariant t (for coordinates other than quaternions, of p), and
    ``t_m = (t0 + t1)/2``. Unknowns are ``(q1-q0)/h``, ``(p0+p1)/2`` and the final velocity ``v1 = M(q1)^-1 p1``.
    """

    name = "hamilton-em"
    aliases = ("EMH",)
    group = "Energy-momentum and midpoint schemes"
    order = 2
    symplectic = False
    symmetric = True
    conserves = ("hamiltonian", "constraint")
    summary = "energy-momentum scheme for Hamilton's equations with unit quaternions (EMH)"
    source = "Kinon and Betsch 2024, (138)-(146)"
    when_to_use = "You compare Livens' principle with Hamilton's equations for bodies with unit quaternions."
    when_to_avoid = "The mass matrix is singular: use `livens-em`."
    requires = (
        REGULAR_AUGMENTED_MASS,
        Requirement("left_invariant_mass", "a left-invariant mass matrix, one body per element (unit quaternions)"),
        QUADRATIC_KINETIC_ENERGY,
    )
    unknowns = ("u", "p_m", "v1")
    multipliers = ("lam",)

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [old.v, old.p, old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * x.u, x.v1

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [x.u, 2 * (x.p_m - old.p), x.v1]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 2 * x.p_m - old.p

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        m = e.model
        Dq, q_m, t_mid = h * x.u, old.q + h / 2 * x.u, t + h / 2
        F, R_v = e.F(q_m, x.u, t_mid), e.R_v(q_m, x.u, t_mid)
        V_q, dV_t = self.gradient.gradient_and_time_increment(e, m.V, old.q, Dq, t, h)
        force, supplied = -V_q + F - R_v, h * ca.dot(F, x.u) + dV_t
        for i in range(e.m):
            g_q, dg_t = self.gradient.gradient_and_time_increment(e, m.g[i], old.q, Dq, t, h)
            force -= x.lam[i] * g_q
            supplied += x.lam[i] * dg_t
        zeros = ca.SX(e.n, 1)
        dq, dp, v1 = zeros, zeros, zeros
        if not m.T.is_zero():
            co_energy = CoEnergy(e)
            p1 = 2 * x.p_m - old.p
            co_gradient = co_energy.gradient((co_energy.invariant(old.q, old.p) + co_energy.invariant(new.q, p1)) / 2)
            dq = co_energy.dt_dp(q_m).T @ co_gradient
            dp = -co_energy.dt_dq(x.p_m).T @ co_gradient
            v1 = co_energy.dt_dp(new.q).T @ co_energy.gradient(co_energy.invariant(new.q, p1))
        return ElementContribution(
            residuals=[-dq, -h * (force + dp), -v1],
            constraint_residuals=[e.g(new.q, t + h) / h],
            momentum=zeros,
            supplied_work=supplied,
            dissipated_work=h * ca.dot(R_v, x.u),
        )


class CoEnergy:
    """Kinetic co-energy ``T*(t) = 1/2 t . A t`` with ``t = Q_l(q)^T p`` for quaternions, t = p for other coordinates.

    A is the inverse of the augmented mass matrix at the identity: there t = p.
    """

    def __init__(self, e: ElementFunctions) -> None:
        m = e.model
        kinetic = AugmentedKinetic(e)
        identity = ca.SX.zeros(m.n)
        for quat_dofs in m.quaternions:
            identity[quat_dofs[0]] = 1
        mass = ca.jacobian(kinetic.T_v(identity, m.v), m.v)
        p = ca.SX.sym("p", m.n)
        t = ca.SX(p)
        for quat_dofs in m.quaternions:
            i = list(quat_dofs)
            t[i] = left_multiplication(m.q[i]).T @ p[i]
        self._mass = mass
        self.invariant = ca.Function("t", [m.q, p], [t])
        self.dt_dp = ca.Function("t_p", [m.q], [ca.jacobian(t, p)])
        self.dt_dq = ca.Function("t_q", [p], [ca.jacobian(t, m.q)])

    def gradient(self, t: Expr) -> Expr:
        """Return the gradient ``DT*(t) = A t``."""
        return ca.solve(self._mass, t)
