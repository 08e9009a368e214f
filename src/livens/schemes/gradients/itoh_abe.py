"""The discrete gradient of Itoh and Abe: one coordinate moves after the other."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.schemes.gradients.base import DiscreteGradient
from livens.schemes.gradients.gonzalez import Gonzalez


class ItohAbe(DiscreteGradient):
    """``(DG f)_i = (f(y_1 .. y_i, x_i+1 ..) - f(y_1 .. y_i-1, x_i ..)) / (y_i - x_i)``: quotients of differences.

    No derivative of f is in it, so it also serves functions whose gradient is expensive or has jumps. It depends on the
    order of the coordinates and on the direction of the step: it is of order one and not symmetric, and keeps the
    momenta of no symmetry but those of coordinates that do not occur in f.

    A coordinate without mass is where its forces balance, and here that is seen from where the coordinates before it
    already are: it is off by the way of one step in every second step, also from a start in balance. With y held to x
    by a spring and listed after it, ``y1 = 2 x1 - y0``, so that ``y - x`` is 0, D, 0, D for equal ways D. That is the
    method, an error of its order one; symmetric gradients do not have it.

    In one dimension there is only one discrete gradient, and Gonzalez' form of it has no cancellation and no division
    of zero by zero where a coordinate does not move.
    """

    name = "itoh-abe"
    order = 1
    symmetric = False
    momenta = ("cyclic",)
    summary = "quotients of differences, one coordinate after the other"
    source = "Itoh and Abe 1988"

    def __call__(self, function: ca.Function, x: Any, w: Any, *others: Any) -> Any:
        quotient = Gonzalez()
        starts, steps = ca.vertsplit(ca.densify(x)), ca.vertsplit(ca.densify(w))
        at = list(starts)  # where every coordinate is by now
        parts = []
        for i, (start, step) in enumerate(zip(starts, steps, strict=True)):
            parts.append(quotient(_along(function, i), start, step, ca.vertcat(*at), *others))
            at[i] = start + step
        return ca.vertcat(*parts)


def _along(function: ca.Function, i: int) -> ca.Function:
    """The function of its i-th coordinate alone: ``(x_i, x, *others) -> f(x, *others)`` with x_i put into x."""
    one = ca.SX.sym("x_i")
    x, *others = (ca.SX.sym("x", function.numel_in(j)) for j in range(function.n_in()))
    items = ca.vertsplit(x)
    items[i] = one
    return ca.Function("f", [one, x, *others], [function(ca.vertcat(*items), *others)])
