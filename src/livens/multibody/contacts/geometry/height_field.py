"""Ground that goes up and down: a height over a plane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens import math as m
from livens.multibody.contacts.geometry.base import TINY
from livens.multibody.contacts.geometry.surface import Local

#: So many of Newton's steps lead from below a point to the point of the surface that is nearest to it.
_STEPS = 4


@dataclass(frozen=True)
class HeightSurface(Local):
    """All that is below ``height(x, y)`` over the plane of the first axes; in the plane, below ``height(x)``.

    The nearest point p of the surface is where ``p - x + (f(p) - z) grad f(p) = 0``: Newton's method finds it from
    ``p = x``, for points that are nearer to the surface than it is curved.
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
    """The solution of one or two equations."""
    if A.shape[0] == 1:
        return b / A
    size = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    return ca.vertcat(A[1, 1] * b[0] - A[0, 1] * b[1], A[0, 0] * b[1] - A[1, 0] * b[0]) / size


@dataclass(frozen=True)
class Grid:
    """A surface through heights on a grid: twice continuously differentiable, by cubic B-splines.

    Beyond the outermost points it goes on for one more cell and then ends at height zero.
    """

    spacing: tuple[float, ...]
    first: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]

    def __call__(self, *x: Any) -> Any:
        waves = [
            [_bell((one - first) / step - i) for i in range(count)]
            for one, first, step, count in zip(x, self.first, self.spacing, self.counts, strict=True)
        ]
        if len(x) == 1:
            return sum(weight * wave for weight, wave in zip(self.weights[0], waves[0], strict=True))
        rows = [
            sum(weight * wave for weight, wave in zip(row, waves[1], strict=True) if weight) for row in self.weights
        ]
        return sum(wave * row for wave, row in zip(waves[0], rows, strict=True))

    @property
    def counts(self) -> tuple[int, ...]:
        last = len(self.weights[0])
        return (last,) if len(self.spacing) == 1 else (len(self.weights), last)


def _bell(s: Any) -> Any:
    """The cubic B-spline on whole numbers: 2/3 at zero, 1/6 at one, nothing from two on."""
    size = m.abs(s)
    return (m.maximum(2 - size, 0.0) ** 3 - 4 * m.maximum(1 - size, 0.0) ** 3) / 6
