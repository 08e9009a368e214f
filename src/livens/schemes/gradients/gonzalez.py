"""Gonzalez' discrete gradient, safe at every increment (S000 def. 5.1, S004 sect. 4.1 and app. A)."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.schemes.gradients.base import DiscreteGradient
from livens.schemes.gradients.calculus import Slope, corrected, defect, weight


class Gonzalez(DiscreteGradient):
    """``DG f = grad f(z) + (f(x+w) - f(x) - grad f(z).w) / |w|^2  w`` with ``z = x + w/2``.

    For functions at most quadratic in x this is the midpoint gradient itself, and nothing else is computed. Otherwise
    the increment of f is computed without cancellation, so the correction has a small relative error however short w
    is. The correction along w knows nothing of symmetries, but it leaves out the coordinates that f does not depend on.
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
        # only the coordinates f depends on enter the length of w; with them all, directionality would hold as well, but
        # the correction would push coordinates that f knows nothing of
        return corrected(midpoint, missing, w * slope.support, z * slope.support)

    def derivative(self, function: ca.Function, x: Any, w: Any, *others: Any) -> Any:
        """How ``DG f(x, x + w)`` changes with w, which is a vector of symbols.

        What automatic differentiation finds, with a third of the operations: the increment of f changes with w as f
        does at ``x + w``.
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
