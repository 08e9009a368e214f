"""Itoh-Abe discrete gradient: coordinate increments in sequence."""

from __future__ import annotations

import casadi as ca

from livens.schemes.gradients.base import DiscreteGradient
from livens.schemes.gradients.gonzalez import Gonzalez
from livens.types import Expr


class ItohAbe(DiscreteGradient):
    """Itoh-Abe discrete gradient of difference quotients.

    ``(DG f)_i = (f(y_1 .. y_i, x_i+1 ..) - f(y_1 .. y_i-1, x_i ..)) / (y_i - x_i)``.

    It contains no derivative of f and is therefore suitable for functions whose gradient is expensive or has jumps. It
    depends on the order of the coordinates and on the direction of the step: it is of order one, not symmetric, and
    conserves only the momenta of coordinates that do not occur in f.

    A massless coordinate is in force equilibrium with the already updated values of the preceding coordinates. It
    therefore oscillates by the displacement of one step, also from consistent initial values. With y attached to x by
    a spring and listed after it, ``y1 = 2 x1 - y0``, so that ``y - x`` is 0, D, 0, D for equal displacements D. This
    is a property of the method, an error of its order one; symmetric discrete gradients do not have it.

    In one dimension the discrete gradient is unique; Gonzalez' form has no cancellation and no division of zero by zero
    for constant coordinates.
    """

    name = "itoh-abe"
    order = 1
    symmetric = False
    momenta = ("cyclic",)
    summary = "difference quotients, coordinate by coordinate"
    source = "Itoh and Abe 1988"

    def __call__(self, function: ca.Function, x: Expr, w: Expr, *others: object) -> Expr:
        difference_quotient = Gonzalez()
        initial_values, steps = ca.vertsplit(ca.densify(x)), ca.vertsplit(ca.densify(w))
        current = list(initial_values)  # current values of the coordinates
        components = []
        for i, (x_i, step) in enumerate(zip(initial_values, steps, strict=True)):
            components.append(difference_quotient(_restricted(function, i), x_i, step, ca.vertcat(*current), *others))
            current[i] = x_i + step
        return ca.vertcat(*components)


def _restricted(function: ca.Function, i: int) -> ca.Function:
    """Return the restriction to coordinate i: ``(x_i, x, *others) -> f(x, *others)`` with x_i inserted into x."""
    x_i = ca.SX.sym("x_i")
    x, *others = (ca.SX.sym("x", function.numel_in(j)) for j in range(function.n_in()))
    items = ca.vertsplit(x)
    items[i] = x_i
    return ca.Function("f", [x_i, x, *others], [function(ca.vertcat(*items), *others)])
