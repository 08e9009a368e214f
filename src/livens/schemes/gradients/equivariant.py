"""G-equivariant discrete gradients of energies that are functions of invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca

from livens.models.element import InvariantExpressions
from livens.schemes.gradients.base import DiscreteGradient
from livens.schemes.gradients.gonzalez import Gonzalez
from livens.types import Expr

if TYPE_CHECKING:
    from livens.schemes.discretization.element_scheme import ElementFunctions


class Equivariant(DiscreteGradient):
    """G-equivariant discrete gradient of ``f(q) = F(pi(q))`` (`livens.of_invariants`).

    See Kinon and Betsch 2024, eqs. 87-89.

    It is ``Dpi(q_m)^T DG F(pi_0, pi_1)``. `inner` is the discrete gradient of F, and of all functions without
    invariants. As the invariants pi are at most quadratic, ``Dpi(q_m, v_m)`` maps the increments of q and v exactly to
    those of pi. It is normal to all translations and rotations that leave pi invariant, so that their momenta are
    conserved for every F.
    """

    name = "equivariant"
    momenta = ("cyclic", "translations", "rotations")  # of energies that are functions of invariants
    summary = "discrete gradient in the invariants of an energy, if it has any"
    source = "Gonzalez 1996; Kinon and Betsch 2024, (87)-(89)"

    def __init__(self, inner: DiscreteGradient | None = None) -> None:
        self.inner = Gonzalez() if inner is None else inner
        self.order, self.symmetric = self.inner.order, self.inner.symmetric

    def __call__(self, function: ca.Function, x: Expr, w: Expr, *others: object) -> Expr:
        return self.inner(function, x, w, *others)

    def kinetic_gradients(self, e: ElementFunctions, q0: Expr, Dq: Expr, v0: Expr, Dv: Expr) -> tuple[Expr, Expr]:
        if "kinetic" not in e.model.invariant_forms:
            return self.inner.kinetic_gradients(e, q0, Dq, v0, Dv)
        return self._via_invariants(e, e.model.invariant_forms["kinetic"], q0, Dq, v0, Dv)

    def gradient_and_time_increment(
        self, e: ElementFunctions, f: Expr, q0: Expr, Dq: Expr, t: Expr, h: Expr
    ) -> tuple[Expr, Expr]:
        if f is not e.model.V or "potential" not in e.model.invariant_forms:
            return self.inner.gradient_and_time_increment(e, f, q0, Dq, t, h)
        zeros = ca.SX(e.n, 1)
        return self._via_invariants(e, e.model.invariant_forms["potential"], q0, Dq, zeros, zeros)[0], ca.SX(0)

    def _via_invariants(
        self, e: ElementFunctions, invariants: InvariantExpressions, q0: Expr, Dq: Expr, v0: Expr, Dv: Expr
    ) -> tuple[Expr, Expr]:
        m = e.model
        w_of = ca.Function("of", [m.q, m.v, m.k], [invariants.w_of_q])
        jacobians = ca.Function(
            "slopes", [m.q, m.v, m.k], [ca.jacobian(invariants.w_of_q, m.q), ca.jacobian(invariants.w_of_q, m.v)]
        )
        dw_dq, dw_dv = jacobians(q0 + Dq / 2, v0 + Dv / 2, e.k)
        energy = ca.Function("F", [invariants.w, m.k], [invariants.law])
        dF_dw = self.inner(energy, w_of(q0, v0, e.k), dw_dq @ Dq + dw_dv @ Dv, e.k)
        return dw_dq.T @ dF_dw, dw_dv.T @ dF_dw
