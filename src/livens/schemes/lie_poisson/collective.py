"""Collective Gauss methods on so(3)*: symplectic steps of unit quaternions that rotate the spins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens import tableaus
from livens.schemes.discretization.so3 import cross, left_multiplication
from livens.schemes.discretization.spin_step import SpinScheme
from livens.types import Expr


class CollectiveGauss(SpinScheme):
    """Collective Gauss method (McLachlan, Modin and Verdier 2013 and 2015)::

        A_i = 1 + h sum_j a_ij K_j      K_i = -1/2 xi_i A_i      xi_i = dH/ds(S_i)      S_i = A_i s0 A_i*
        A   = 1 + h sum_i b_i K_i       s1  = A s0 A*

    The momentum map ``z -> z k z*`` of quaternions lifts the Hamiltonian to a canonical one. Gauss methods keep the
    quadratic norm ``|z|^2``, and their lifted steps are the same for all quaternions over one spin: they are products
    of quaternions ``A_i z``, without a choice of z. The map of spins is symplectic on the spheres, symmetric, and of
    order 2s. Invariants linear in the spins are quadratic in the quaternions, and conserved. Unknowns are K_i.
    """

    family = "collective-gauss-<s>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((1,), (2,))
    summary = "Gauss methods lifted to unit quaternions, symplectic on products of spheres"
    source = "McLachlan, Modin and Verdier 2013, 2015"
    when_to_use = "Spin systems and free rigid bodies with order 2s."
    when_to_avoid = "Order 2 suffices: `spherical-midpoint` has fewer unknowns."

    def __init__(self, s: int) -> None:
        self.tableau = tableaus.gauss(s)
        self.name, self.order = f"collective-gauss-{s}", 2 * s
        self.n_stages, self.n_unknowns = s, 4 * s

    def _stage_rates(self, x: Expr) -> list[Expr]:
        return [x[4 * i : 4 * i + 4] for i in range(self.n_stages)]

    def _quaternions(self, x: Expr, h: Expr) -> list[Expr]:
        """Return the quaternions A_i of the stages."""
        stage_rates, unit = self._stage_rates(x), ca.SX(ca.DM([1, 0, 0, 0]))
        return [
            unit + h * sum((float(a) * rate for a, rate in zip(row, stage_rates, strict=True)), ca.SX(4, 1))
            for row in np.asarray(self.tableau.A)
        ]

    def stages(self, spin: Expr, x: Expr, h: Expr) -> Sequence[Expr]:
        return [rotated(A, spin) for A in self._quaternions(x, h)]

    def nodal_residual(self, spin: Expr, x: Expr, h: Expr) -> Expr:
        return x

    def field_residual(self, spin: Expr, x: Expr, h: Expr, fields: Sequence[Expr]) -> Expr:
        pairs = zip(fields, self._quaternions(x, h), strict=True)
        return ca.vertcat(*(left_multiplication(ca.vertcat(0, xi)) @ A / 2 for xi, A in pairs))

    def final_spin(self, spin: Expr, x: Expr, h: Expr) -> Expr:
        stage_rates = self._stage_rates(x)
        a = h * sum((float(b) * rate for b, rate in zip(self.tableau.b, stage_rates, strict=True)), ca.SX(4, 1))
        scalar, vector = 1 + a[0], a[1:]
        turned = cross(vector, spin)
        return spin + 2 * (scalar * turned + cross(vector, turned)) / (scalar**2 + ca.sumsqr(vector))


def rotated(a: Expr, spin: Expr) -> Expr:
    """Return ``a s a*`` of a quaternion that need not have unit length."""
    product = left_multiplication(a) @ ca.vertcat(0, spin)
    return (left_multiplication(product) @ ca.vertcat(a[0], -a[1:]))[1:]
