"""Spherical midpoint method for spins."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from livens.schemes.discretization.so3 import cross
from livens.schemes.discretization.spin_step import SpinScheme
from livens.types import Expr


class SphericalMidpoint(SpinScheme):
    """Spherical midpoint method (McLachlan, Modin and Verdier 2014, eq. 2)::

        s1 - s0 = h m x dH/ds(m)        m = |s0| (s0 + s1)/|s0 + s1|

    The midpoint lies on the sphere of the spin. The method is a symplectic map of the product of spheres, symmetric, of
    order 2, and conserves invariants that are linear in the spins. Unknown is ``d = (s1 - s0)/h``. The part of d along
    ``s0 + s1``, which is a rounding error, is removed at t + h.
    """

    name = "spherical-midpoint"
    order = 2
    summary = "midpoint rule on products of spheres, symplectic on them"
    source = "McLachlan, Modin and Verdier 2014, (2)"
    when_to_use = "Spin systems and free rigid bodies over long times; thousands of spins."
    when_to_avoid = "You need order above 2: use `collective-gauss-<s>`, or a composition."

    def stages(self, spin: Expr, x: Expr, h: Expr) -> Sequence[Expr]:
        total = 2 * spin + h * x
        return [ca.sqrt(ca.sumsqr(spin) / ca.sumsqr(total)) * total]

    def nodal_residual(self, spin: Expr, x: Expr, h: Expr) -> Expr:
        return x

    def field_residual(self, spin: Expr, x: Expr, h: Expr, fields: Sequence[Expr]) -> Expr:
        return -cross(self.stages(spin, x, h)[0], fields[0])

    def final_spin(self, spin: Expr, x: Expr, h: Expr) -> Expr:
        total = 2 * spin + h * x
        return spin + h * (x - ca.dot(x, total) / ca.sumsqr(total) * total)
