"""Signed distance of a height field over a plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens import math as m
from livens.multibody.contacts.geometry.pair_geometry import SQRT_EPS
from livens.multibody.contacts.geometry.signed_distance import LocalDistance
from livens.types import Expr, ModelFunction, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Number of Newton iterations for the closest point of the surface.
_NEWTON_ITERATIONS = 4


@dataclass(frozen=True)
class HeightFieldDistance(LocalDistance):
    """Signed distance of the region below ``height(x, y)`` over the plane of the first axes (plane: ``height(x)``).

    The closest point p of the surface satisfies ``p - x + (f(p) - z) grad f(p) = 0``. Newton's method starts from
    ``p = x`` and converges for points closer to the surface than its radius of curvature.
    """

    height: ModelFunction

    def distance(self, w: Vector, k: ParameterNamespace) -> Any:
        d = len(w) - 1
        p_symbol = ca.SX.sym("p", d)
        f = ca.SX(m.to_casadi(self.height(*m.from_casadi(p_symbol))))
        hessian, gradient = ca.hessian(f, p_symbol)
        surface = ca.Function("height", [p_symbol], [f, ca.densify(gradient), ca.densify(hessian)])
        point = m.to_casadi(m.array(list(w)))
        x, z, p = point[:d], point[d], point[:d]
        for _ in range(_NEWTON_ITERATIONS):
            level, slope_at_p, curvature = surface(p)
            matrix = ca.SX.eye(d) + slope_at_p @ slope_at_p.T + (level - z) * curvature
            p = p - _solve(matrix, p - x + (level - z) * slope_at_p)
        level, slope_at_p, _ = surface(p)
        separation = ca.sqrt(ca.sumsqr(x - p) + (z - level) ** 2 + SQRT_EPS)
        (distance,) = m.from_casadi(ca.if_else(z > level, separation, -separation))
        return distance


def _solve(A: Expr, b: Expr) -> Expr:
    """Solve a system of one or two equations."""
    if A.shape[0] == 1:
        return b / A
    determinant = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    return ca.vertcat(A[1, 1] * b[0] - A[0, 1] * b[1], A[0, 0] * b[1] - A[1, 0] * b[0]) / determinant
