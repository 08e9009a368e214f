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
    momenta: tuple[str, ...] = ("cyclic",)
    summary = "the midpoint gradient and a correction along the increment"
    source = "Gonzalez 1996; Kinon and Betsch 2023, def. 5.1"

    def __call__(self, function: ca.Function, x: Expr, w: Expr, *others: object) -> Expr:
        z = x + w / 2
        gradient = GradientFunction(function)
        midpoint = gradient(z, *others)
        if gradient.is_affine:
            return midpoint
        f_defect = directionality_defect(function, midpoint, x, w, others)
        mask = self.correction_mask(gradient)
        return add_correction(midpoint, f_defect, w * mask, z * mask)

    def correction_mask(self, gradient: GradientFunction) -> ca.DM:
        """Return 1 for the coordinates of the correction: those that f depends on.

        With all coordinates, directionality would hold as well, but the correction would act on coordinates that do
        not occur in f.
        """
        return gradient.dependence_mask

    def derivative(self, function: ca.Function, x: Expr, w: Expr, *others: Any) -> Expr:
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
        midpoint, mask = gradient(z, *others), self.correction_mask(gradient)
        f_defect = directionality_defect(function, midpoint, x, w, others)
        defect_gradient = gradient(x + w, *others) - midpoint - curvature @ w / 2
        inverse_norm2 = inverse_squared_norm(w * mask, z * mask)
        correction_gradient = inverse_norm2 * defect_gradient + f_defect * ca.gradient(inverse_norm2, w)
        return curvature / 2 + (w * mask) @ correction_gradient.T + f_defect * inverse_norm2 * ca.diag(mask)


class GonzalezFull(Gonzalez):
    """Gonzalez' discrete gradient as printed, with the correction along the whole increment of the coordinates.

    This is Kinon and Betsch 2023, (26), and Kinon and Betsch 2024, (71) and (130), literally: the correction also acts
    on coordinates that f does not depend on, and momenta of cyclic coordinates are not conserved. In a model of several
    elements, the increment is that of the coordinates of the element.
    """

    name = "gonzalez-full"
    momenta = ()
    summary = "the midpoint gradient and a correction along the increment of all coordinates, as printed"
    source = "Gonzalez 1996; Kinon and Betsch 2023, (26); Kinon and Betsch 2024, (71), (130)"

    def correction_mask(self, gradient: GradientFunction) -> ca.DM:
        """Return 1 for all coordinates."""
        return ca.DM.ones(gradient.n_coordinates)
