"""Building blocks of discrete gradients: gradient functions, smoothness tests, directional correction."""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca

from livens.expressions.graph.increments import increments
from livens.expressions.graph.interpreter import interpret
from livens.types import Expr

#: Relative and absolute length of the increment below which the correction is faded out smoothly (below round-off).
_REL_CUTOFF = 1e-10
_ABS_CUTOFF = 1e-25
#: Operations whose second derivative does not describe their kinks and jumps.
NONSMOOTH_OPS = frozenset(
    "CALL FABS FMIN FMAX IF_ELSE_ZERO SIGN FLOOR CEIL FMOD REMAINDER COPYSIGN LT LE EQ NE NOT AND OR".split()
)


class GradientFunction:
    """Gradient function of a scalar function f(x, *others) in its first argument."""

    def __init__(self, function: ca.Function) -> None:
        self._f = function
        self._x = ca.SX.sym("x", function.numel_in(0))
        other_symbols = [ca.SX.sym("y", function.numel_in(i)) for i in range(1, function.n_in())]
        self._expression = ca.gradient(function(self._x, *other_symbols), self._x)
        self._gradient = ca.Function("gradient", [self._x, *other_symbols], [self._expression])

    def __call__(self, x: Expr, *others: Any) -> Expr:
        return self._gradient(x, *others)

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates x."""
        return int(self._x.numel())

    @functools.cached_property
    def is_affine(self) -> bool:
        """True if f is at most quadratic in x: the midpoint gradient is then a discrete gradient."""
        return not ca.depends_on(ca.jacobian(self._expression, self._x), self._x) and not is_nonsmooth(self._f)

    @functools.cached_property
    def dependence_mask(self) -> ca.DM:
        """Dependence mask: 1 for the coordinates that f depends on, 0 for all others."""
        entries = [self._expression[i] for i in range(self._x.numel())]
        return ca.DM([0.0 if ca.simplify(entry).is_zero() else 1.0 for entry in entries])


def directionality_defect(function: ca.Function, estimate: Expr, x: Expr, w: Expr, others: tuple[Any, ...]) -> Expr:
    """Return the directionality defect ``f(x + w) - f(x) - estimate . w``, without cancellation."""
    return increments(function, x, w, [ca.SX(o) for o in others]) - ca.dot(estimate, w)


def add_correction(estimate: Expr, defect: Expr, w: Expr, z: Expr) -> Expr:
    """Return ``estimate + defect / |w|^2  w``, which satisfies directionality.

    The correction is faded out below round-off (``|w| < 1e-10 |z|``), which keeps value and derivative bounded at
    ``w = 0``.
    """
    square, fade = _faded_norms(w, z)
    return estimate + defect * square / (square**2 + fade) * w


def inverse_squared_norm(w: Expr | ca.DM, z: Expr | ca.DM) -> Expr | ca.DM:
    """Return ``1/|w|^2``, faded to zero where `add_correction` fades out the correction."""
    square, fade = _faded_norms(w, z)
    return square / (square**2 + fade)


def _faded_norms(w: Expr | ca.DM, z: Expr | ca.DM) -> tuple[Expr, Expr]:
    return ca.dot(w, w), (_REL_CUTOFF**2 * ca.dot(z, z) + _ABS_CUTOFF**2) ** 2


def is_nonsmooth(function: ca.Function) -> bool:
    """Return True if the first argument enters an operation with a kink or jump."""
    nonsmooth: list[str] = []

    def apply(name: str, *operands: bool) -> bool:
        if name in NONSMOOTH_OPS and any(operands):
            nonsmooth.append(name)
        return any(operands)

    inputs = [[i == 0] * function.nnz_in(i) for i in range(function.n_in())]
    interpret(function, inputs, lambda _: False, apply)
    return bool(nonsmooth)
