"""Signed distance of a height field over a plane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens import math as m
from livens.multibody.contacts.geometry.base import TINY
from livens.multibody.contacts.geometry.surface import Local

#: Number of Newton iterations for the closest point of the surface.
_STEPS = 4


@dataclass(frozen=True)
class HeightSurface(Local):
    """Signed distance of the region below ``height(x, y)`` over the plane of the first axes (plane: ``height(x)``).

    The closest point p of the surface satisfies ``p - x + (f(p) - z) grad f(p) = 0``. Newton's method starts from
    ``p = x`` and converges for points closer to the surface than its radius of curvature.
    """

    height: Callable[..., Any]

    def distance(self, w: Any, k: Any) -> Any:
        d = len(w) - 1
        own = ca.SX.sym("p", d)
        f = ca.SX(m.expression(self.height(*m.symbols(own))))
        hessian, slope = ca.hessian(f, own)
        surface = ca.Function("height", [own], [f, ca.densify(slope), ca.densify(hessian)])
        given = m.expression(m.array(list(w)))
        x, z, p = given[:d], given[d], given[:d]
        for _ in range(_STEPS):
            level, rise, bend = surface(p)
            matrix = ca.SX.eye(d) + rise @ rise.T + (level - z) * bend
            p = p - _solved(matrix, p - x + (level - z) * rise)
        level, rise, _ = surface(p)
        way = ca.sqrt(ca.sumsqr(x - p) + (z - level) ** 2 + TINY)
        (found,) = m.symbols(ca.if_else(z > level, way, -way))
        return found


def _solved(A: Any, b: Any) -> Any:
    """Solve a system of one or two equations."""
    if A.shape[0] == 1:
        return b / A
    size = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    return ca.vertcat(A[1, 1] * b[0] - A[0, 1] * b[1], A[0, 0] * b[1] - A[1, 0] * b[0]) / size
