"""Gonzalez' discrete gradient, regular at zero increment (S000 def. 5.1, S004 sect. 4.1 and app. A)."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.schemes.gradients.base import DiscreteGradient
from livens.schemes.gradients.calculus import Slope, corrected, defect, weight


class Gonzalez(DiscreteGradient):
    """Gonzalez' discrete gradient (midpoint discrete gradient).

    ``DG f = grad f(z) + (f(x+w) - f(x) - grad f(z).w) / |w|^2  w`` with ``z = x + w/2``.

    For functions at most quadratic in x this is the midpoint gradient, and no correction is computed. Otherwise the
    increment of f is computed without cancellation, so that the correction has a small relative error for every w. The
    correction along w ignores symmetries, but it is restricted to the coordinates that f depends on.
    """

    name = "gonzalez"
    order = 2
    symmetric = True
    momenta = ("cyclic",)
    summary = "the midpoint gradient and a correction along the increment"
    source = "Gonzalez 1996; S000 def. 5.1"

    def __call__(self, function: ca.Function, x: Any, w: Any, *others: Any) -> Any:
        z = x + w / 2
        slope = Slope(function)
        midpoint = slope(z, *others)
        if slope.linear:
            return midpoint
        missing = defect(function, midpoint, x, w, others)
        # only coordinates that f depends on enter |w|; otherwise the correction would act on all other coordinates,
        # although directionality would hold as well
        return corrected(midpoint, missing, w * slope.support, z * slope.support)

    def derivative(self, function: ca.Function, x: Any, w: Any, *others: Any) -> Any:
        """Return the derivative of ``DG f(x, x + w)`` with respect to w, a vector of symbols.

        The result is that of automatic differentiation, with a third of the operations: the derivative of the increment
        of f with respect to w is the gradient of f at ``x + w``.
        """
        z, slope = x + w / 2, Slope(function)
        at = ca.SX.sym("z", w.numel())
        curvature = ca.Function("curvature", [at, *others], [ca.jacobian(slope(at, *others), at)])(z, *others)
        if slope.linear:
            return curvature / 2
        midpoint, used = slope(z, *others), slope.support
        missing = defect(function, midpoint, x, w, others)
        by_w = slope(x + w, *others) - midpoint - curvature @ w / 2
        size = weight(w * used, z * used)
        grown = size * by_w + missing * ca.gradient(size, w)
        return curvature / 2 + (w * used) @ grown.T + missing * size * ca.diag(used)
