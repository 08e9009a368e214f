"""G-equivariant discrete gradients of energies that are functions of invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca

from livens.models.element import Invariants
from livens.schemes.gradients.base import DiscreteGradient
from livens.schemes.gradients.gonzalez import Gonzalez

if TYPE_CHECKING:
    from livens.schemes.recipes.elements import ElementEnergies


class Equivariant(DiscreteGradient):
    """G-equivariant discrete gradient of ``f(q) = F(pi(q))`` (`livens.of_invariants`), S004 (87)-(89).

    It is ``Dpi(q_m)^T DG F(pi_0, pi_1)``. `inner` is the discrete gradient of F, and of all functions without
    invariants. As the invariants pi are at most quadratic, ``Dpi(q_m, v_m)`` maps the increments of q and v exactly to
    those of pi. It is normal to all translations and rotations that leave pi invariant, so that their momenta are
    conserved for every F.
    """

    name = "equivariant"
    momenta = ("cyclic", "translations", "rotations")  # of energies that are functions of invariants
    summary = "discrete gradient in the invariants of an energy, if it has any"
    source = "Gonzalez 1996; S004 (87)-(89)"

    def __init__(self, inner: DiscreteGradient | None = None) -> None:
        self.inner = Gonzalez() if inner is None else inner
        self.order, self.symmetric = self.inner.order, self.inner.symmetric

    def __call__(self, function: ca.Function, x: Any, w: Any, *others: Any) -> Any:
        return self.inner(function, x, w, *others)

    def kinetic(self, e: ElementEnergies, q0: Any, Dq: Any, v0: Any, Dv: Any) -> tuple[Any, Any]:
        if "kinetic" not in e.model.through:
            return self.inner.kinetic(e, q0, Dq, v0, Dv)
        return self._through(e, e.model.through["kinetic"], q0, Dq, v0, Dv)

    def in_time(self, e: ElementEnergies, f: Any, q0: Any, Dq: Any, t: Any, h: Any) -> tuple[Any, Any]:
        if f is not e.model.V or "potential" not in e.model.through:
            return self.inner.in_time(e, f, q0, Dq, t, h)
        none = ca.SX(e.n, 1)
        return self._through(e, e.model.through["potential"], q0, Dq, none, none)[0], ca.SX(0)

    def _through(self, e: ElementEnergies, given: Invariants, q0: Any, Dq: Any, v0: Any, Dv: Any) -> tuple[Any, Any]:
        m = e.model
        of = ca.Function("of", [m.q, m.v, m.k], [given.of])
        slopes = ca.Function("slopes", [m.q, m.v, m.k], [ca.jacobian(given.of, m.q), ca.jacobian(given.of, m.v)])
        by_q, by_v = slopes(q0 + Dq / 2, v0 + Dv / 2, e.k)
        energy = ca.Function("F", [given.w, m.k], [given.energy])
        F_w = self.inner(energy, of(q0, v0, e.k), by_q @ Dq + by_v @ Dv, e.k)
        return by_q.T @ F_w, by_v.T @ F_w
