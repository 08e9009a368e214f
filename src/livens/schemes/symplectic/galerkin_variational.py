"""Galerkin variational integrators with Lobatto quadrature, for any mass matrix."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.schemes.discretization.collocation import lagrange_basis
from livens.schemes.discretization.element_scheme import (
    ElementContribution,
    ElementFunctions,
    ElementScheme,
    MechanicalState,
)
from livens.schemes.symplectic.livens_variational import MASS_REGULAR_ON_NULLSPACE
from livens.schemes.tableaus import lobatto_iiia
from livens.types import Expr


class GalerkinVariational(ElementScheme):
    """Galerkin variational integrator of degree s (Wenger, Ober-Bloebaum and Leyendecker 2017), written with momenta::

        q(t0 + c h) = sum_n l_n(c) Q_n,   v_i = sum_n l_n'(c_i) Q_n/h,   p_i = D_2 L(Q_i, v_i)         i, n = 0 .. s
        p0 = -sum_i b_i l_0'(c_i) p_i - h b_0 (D_1 L_0 + F_0 - G(Q_0)^T lam_0)
        0  =  sum_i b_i l_n'(c_i) p_i + h b_n (D_1 L_n + F_n - G(Q_n)^T lam_n)                        n = 1 .. s-1
        p1 =  sum_i b_i l_s'(c_i) p_i + h b_s (D_1 L_s + F_s - G(Q_s)^T mu)
        p1 = D_2 L(q1, v1)        0 = g(Q_n), n = 1 .. s        0 = G(q1) v1

    The coordinates are polynomials of degree s through the Lobatto nodes c, which are the nodes of the quadrature b as
    well. The mass matrix may be singular or depend on q, as momenta follow from velocities by the fibre derivative. Of
    order 2s, symplectic and symmetric. For a regular mass the scheme is the pair `lobatto-iiia-iiib-<s+1>`. Unknowns
    are ``U_n = (Q_n - q0)/h`` and v1.
    """

    family = "galerkin-variational-<s>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((1,), (2,), (3,))
    group = "Symplectic schemes for systems with constraints"
    symplectic = True
    symmetric = True
    conserves = ("constraint", "velocity_constraint", "momentum_maps")
    summary = "Galerkin variational integrator with Lobatto quadrature, for singular and non-constant mass"
    source = "Wenger, Ober-Bloebaum and Leyendecker 2017; outlook of Kinon and Betsch 2023"
    when_to_use = "Symplectic steps of high order with constraints, also with singular or variable mass."
    when_to_avoid = "Order 2 suffices: use `livens-variational`."
    requires = (MASS_REGULAR_ON_NULLSPACE,)

    def __init__(self, s: int) -> None:
        if s < 1:
            raise InputError(f"galerkin-variational-<s> needs a degree of at least 1, got {s}")
        tableau = lobatto_iiia(s + 1)
        self.degree, self.nodes, self.weights = s, np.asarray(tableau.c), np.asarray(tableau.b)
        self.name, self.order = f"galerkin-variational-{s}", 2 * s
        #: Derivatives of the Lagrange polynomials: row n, node i.
        self.derivatives = lagrange_derivatives(self.nodes)
        self.unknowns = (*(f"U_{n}" for n in range(1, s + 1)), "v1")
        self.multipliers = ("lam", *(f"lam_{n}" for n in range(1, s)), "mu")
        self.evaluations_per_step = s + 1

    def initial_guess(self, old: MechanicalState, h: Expr) -> list[Expr]:
        return [*(float(c) * old.v for c in self.nodes[1:]), old.v]

    def kinematic_update(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> tuple[Expr, Expr]:
        return old.q + h * getattr(x, f"U_{self.degree}"), x.v1

    def nodal_residual(self, old: MechanicalState, x: Any, h: Expr) -> list[Expr]:
        return [-old.p, *[0 * old.p] * self.degree]

    def nodal_momentum(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> Expr:
        return 0 * old.p

    def reported_multipliers(self, x: SimpleNamespace, old_multipliers: Expr) -> Expr:
        parts = [x.lam, *(getattr(x, f"lam_{n}") for n in range(1, self.degree)), x.mu]
        return sum((float(b) * part for b, part in zip(self.weights, parts, strict=True)), 0 * x.lam)

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: SimpleNamespace, h: Expr, t: Expr
    ) -> ElementContribution:
        s, b, D = self.degree, self.weights, self.derivatives
        U = [0 * old.q, *(getattr(x, f"U_{n}") for n in range(1, s + 1))]
        lam = [x.lam, *(getattr(x, f"lam_{n}") for n in range(1, s)), x.mu]
        momenta, forces = [], []
        supplied: Any = 0
        dissipated: Any = 0
        Q, times = [old.q + h * u for u in U], [t + float(c) * h for c in self.nodes]
        for i in range(s + 1):
            v = sum((float(D[n, i]) * U[n] for n in range(1, s + 1)), 0 * old.q)
            F, R_v, G = e.F(Q[i], v, times[i]), e.R_v(Q[i], v, times[i]), e.G(Q[i], times[i])
            momenta.append(e.T_v(Q[i], v))
            forces.append(e.T_q(Q[i], v) - e.V_q(Q[i], times[i]) + F - R_v - G.T @ lam[i])
            rheonomic_power = ca.dot(lam[i], e.g_t(Q[i], times[i]))
            supplied += h * float(b[i]) * (ca.dot(F, v) + e.V_t(Q[i], times[i]) + rheonomic_power)
            dissipated += h * float(b[i]) * ca.dot(R_v, v)
        impulses = [
            sum((float(b[i] * D[n, i]) * momenta[i] for i in range(s + 1)), 0 * old.q) + h * float(b[n]) * forces[n]
            for n in range(s + 1)
        ]
        p1 = e.T_v(new.q, new.v)
        interior_constraints = [e.g(Q[n], times[n]) / h for n in range(1, s)]
        return ElementContribution(
            residuals=[-impulses[0], *impulses[1:s], p1 - impulses[s]],
            constraint_residuals=[
                e.g(new.q, t + h) / h,
                *interior_constraints,
                e.G(new.q, t + h) @ new.v + e.g_t(new.q, t + h),
            ],
            momentum=p1,
            supplied_work=supplied,
            dissipated_work=dissipated,
        )

    def named_values(self, old: MechanicalState, x: SimpleNamespace, h: Expr) -> dict[str, Any]:
        return {f"Q{n}": old.q + h * getattr(x, f"U_{n}") for n in range(1, self.degree + 1)}


def lagrange_derivatives(nodes: np.ndarray) -> np.ndarray:
    """Return the derivatives ``l_n'(c_i)`` of the Lagrange polynomials of the nodes, row n and column i.

    >>> lagrange_derivatives(np.array([0.0, 1.0])).round(12)
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    theta = ca.SX.sym("theta")
    derivative = ca.Function("derivative", [theta], [ca.jacobian(ca.vertcat(*lagrange_basis(nodes, theta)), theta)])
    return np.column_stack([np.array(derivative(node)).ravel() for node in nodes])
