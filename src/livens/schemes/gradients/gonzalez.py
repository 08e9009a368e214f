"""Gonzalez' discrete gradient, regular at zero increment.

See Kinon and Betsch 2023, def. 5.1, Kinon and Betsch 2024, sect. 4.1 and app. A.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.schemes.gradients.base import DiscreteGradient
from livens.schemes.gradients.correction import (
    GradientFunction,
    add_correction,
    directionality_defect,
    inverse_squared_norm,
)
from livens.types import Expr


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
    source = "Gonzalez 1996; Kinon and Betsch 2023, def. 5.1"

    def __call__(self, function: ca.Function, x: Any, w: Any, *others: object) -> Expr:
        z = x + w / 2
        gradient = GradientFunction(function)
        midpoint = gradient(z, *others)
        if gradient.is_affine:
            return midpoint
        f_defect = directionality_defect(function, midpoint, x, w, others)
        # only coordinates that f depends on enter |w|; otherwise the correction would act on all other coordinates,
        # although directionality would hold as well
        return add_correction(midpoint, f_defect, w * gradient.dependence_mask, z * gradient.dependence_mask)

    def derivative(self, function: ca.Function, x: Expr, w: Expr, *others: Any) -> Any:
        """Return the derivative of ``DG f(x, x + w)`` with respect to w, a vector of symbols.

        The result is that of automatic differentiation, with a third of the operations: the derivative of the increment
        of f with respect to w is the gradient of f at ``x + w``.
        """
        z, gradient = x + w / 2, GradientFunction(function)
        z_symbols = ca.SX.sym("z", w.numel())
        curvature = ca.Function(
            "curvature", [z_symbols, *others], [ca.jacobian(gradient(z_symbols, *others), z_symbols)]
        )(z, *others)
        if gradient.is_affine:
            return curvature / 2
        midpoint, mask = gradient(z, *others), gradient.dependence_mask
        f_defect = directionality_defect(function, midpoint, x, w, others)
        defect_gradient = gradient(x + w, *others) - midpoint - curvature @ w / 2
        inverse_norm2 = inverse_squared_norm(w * mask, z * mask)
        correction_gradient = inverse_norm2 * defect_gradient + f_defect * ca.gradient(inverse_norm2, w)
        return curvature / 2 + (w * mask) @ correction_gradient.T + f_defect * inverse_norm2 * ca.diag(mask)
