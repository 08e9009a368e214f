"""Mean value discrete gradient (averaged vector field)."""

from __future__ import annotations

import math
from typing import NamedTuple

import casadi as ca
import numpy as np

from livens.expressions.graph.interpreter import interpret
from livens.schemes.gradients.base import DiscreteGradient
from livens.schemes.gradients.correction import GradientFunction, add_correction, directionality_defect
from livens.types import Expr

#: Maximum number of Gauss nodes; more nodes gain no accuracy for step sizes of practical interest.
MAX_NODES = 8


class MeanValue(DiscreteGradient):
    """Mean value discrete gradient ``DG f = int_0^1 grad f(x + s w) ds``, by Gauss quadrature.

    For polynomials of degree d the quadrature has ``d/2`` nodes and is exact; one node, for at most quadratic
    functions, is the midpoint gradient. For other functions it has eight nodes, and the remaining defect of size
    O(|w|^17) is corrected along w, as in Gonzalez' discrete gradient.

    Each gradient is normal to every translation that leaves f invariant, hence so is the mean: linear momenta are
    conserved. The correction is restricted to the directions that f depends on, so that it conserves them as well.
    """

    name = "mean-value"
    order = 2
    symmetric = True
    momenta = ("cyclic", "translations")
    summary = "the mean of the gradient along the step"
    source = "Harten, Lax and van Leer 1983; McLachlan, Quispel and Robidoux 1999"

    def __call__(self, function: ca.Function, x: Expr, w: Expr, *others: object) -> Expr:
        z = x + w / 2
        gradient = GradientFunction(function)
        if gradient.is_affine:
            return gradient(z, *others)
        degree = polynomial_degree(function)
        exact = degree <= 2 * MAX_NODES
        nodes, weights = np.polynomial.legendre.leggauss(math.ceil(degree / 2) if exact else MAX_NODES)
        # the factors 1/2 map [-1, 1] to [0, 1]; relative to z, nodes come in exact pairs
        values = [
            b / 2 * gradient(z + c / 2 * w, *others) for c, b in zip(nodes.tolist(), weights.tolist(), strict=True)
        ]
        mean = sum(values[1:], values[0])
        if exact:
            return mean
        # components of w that f does not depend on contribute round-off only, which the correction would amplify
        P = dependence_projector(function)
        return add_correction(mean, directionality_defect(function, mean, x, P @ w, others), P @ w, P @ z)


# -- polynomial degree ------------------------------------------------------------------------------------------------
class _Degree(NamedTuple):
    degree: float  # degree in the first argument; infinite if not a polynomial
    constant: float | None = None  # value of a constant


def polynomial_degree(function: ca.Function) -> float:
    """Return the polynomial degree of f in its first argument, from its graph; infinite if it is not a polynomial.

    >>> x, k = ca.SX.sym("x", 2), ca.SX.sym("k")
    >>> polynomial_degree(ca.Function("f", [x, k], [x[0] ** 3 * x[1] / ca.sin(k)]))
    4.0
    >>> polynomial_degree(ca.Function("f", [x, k], [ca.sin(x[0])]))
    inf
    """
    inputs = [[_Degree(1.0 if i == 0 else 0.0)] * function.nnz_in(i) for i in range(function.n_in())]
    ((output, *_), *_) = interpret(function, inputs, lambda c: _Degree(0.0, c), _degree)
    return output.degree


def _degree(name: str, a: _Degree, b: _Degree | None = None) -> _Degree:
    if name in ("ASSIGN", "NEG", "TWICE"):
        return _Degree(a.degree)
    if name == "SQ":
        return _Degree(2 * a.degree)
    if b is None or a.degree == b.degree == 0:
        return _Degree(math.inf if a.degree else 0.0)
    if name in ("ADD", "SUB"):
        return _Degree(max(a.degree, b.degree))
    if name == "MUL":
        return _Degree(a.degree + b.degree)
    if name == "DIV" and b.degree == 0:
        return _Degree(a.degree)
    if name == "IF_ELSE_ZERO" and a.degree == 0:
        return _Degree(b.degree)
    if name in ("POW", "CONSTPOW") and b.constant is not None and b.constant >= 0 and b.constant == int(b.constant):
        return _Degree(b.constant * a.degree)
    return _Degree(math.inf)


# -- translation symmetries -------------------------------------------------------------------------------------------
class _LinearForm(NamedTuple):
    row: np.ndarray  # the node is row . x plus a function of linear forms that are recorded already
    constant: float | None = None  # value of a constant


def dependence_projector(function: ca.Function) -> ca.DM:
    """Return the orthogonal projector onto the directions in which f depends on its first argument, from its graph.

    f is a function of linear forms of x: those that enter its nonlinear operations, and the form of its output.
    Directions in which all forms vanish leave f invariant.

    >>> x = ca.SX.sym("x", 3)
    >>> dependence_projector(ca.Function("f", [x], [ca.sin(x[0] - x[1])])).full()
    array([[ 0.5, -0.5,  0. ],
           [-0.5,  0.5,  0. ],
           [ 0. ,  0. ,  0. ]])
    """
    n = function.nnz_in(0)
    zero_row = np.zeros(n)
    forms: list[np.ndarray] = []

    def apply(name: str, a: _LinearForm, b: _LinearForm | None = None) -> _LinearForm:
        if name in ("ASSIGN", "NEG", "TWICE"):
            return _LinearForm({"ASSIGN": 1.0, "NEG": -1.0, "TWICE": 2.0}[name] * a.row)
        if b is not None and name in ("ADD", "SUB"):
            return _LinearForm(a.row + b.row if name == "ADD" else a.row - b.row)
        if b is not None and name == "MUL" and a.constant is not None:
            return _LinearForm(a.constant * b.row)
        if b is not None and name == "MUL" and b.constant is not None:
            return _LinearForm(b.constant * a.row)
        if b is not None and name == "DIV" and b.constant is not None:
            return _LinearForm(a.row / b.constant)
        forms.extend(operand.row for operand in (a, b) if operand is not None and operand.row.any())
        return _LinearForm(zero_row)

    inputs = [[_LinearForm(zero_row)] * function.nnz_in(i) for i in range(function.n_in())]
    inputs[0] = [_LinearForm(row) for row in np.eye(n)]
    ((output, *_), *_) = interpret(function, inputs, lambda c: _LinearForm(zero_row, c), apply)
    # normalized rows, as the size of a form does not matter for its direction
    unit_rows = np.array([row / np.linalg.norm(row) for row in [*forms, output.row] if row.any()]).reshape(-1, n)
    _, sizes, directions = np.linalg.svd(unit_rows, full_matrices=False)
    basis = directions[sizes > 1e-12]
    return ca.sparsify(ca.DM(np.round(basis.T @ basis, 15)))
