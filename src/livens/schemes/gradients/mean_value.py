"""The mean value of the gradient along the way from one end to the other (averaged vector field)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from livens.expressions.graph.walk import walk
from livens.schemes.gradients.base import DiscreteGradient
from livens.schemes.gradients.calculus import Slope, corrected, defect

#: With more nodes nothing is gained in steps that are short enough to mean anything.
MOST_NODES = 8


class MeanValue(DiscreteGradient):
    """``DG f = int_0^1 grad f(x + s w) ds`` by Gauss' rule.

    For polynomials of degree d the rule has ``d/2`` nodes and is exact; one node, for at most quadratic functions, is
    the midpoint gradient. For other functions it has eight nodes, and what is missing of the increment of f (of the
    size of the seventeenth power of w) is put along w, as Gonzalez does with his much larger rest.

    Each gradient on the way is normal to every translation that leaves f as it is, hence so is their mean: linear
    momenta are kept. The correction is taken along the part of w that f can see, so that it keeps them as well.
    """

    name = "mean-value"
    order = 2
    symmetric = True
    momenta = ("cyclic", "translations")
    summary = "the mean of the gradient along the step"
    source = "Harten, Lax and van Leer 1983; McLachlan, Quispel and Robidoux 1999"

    def __call__(self, function: ca.Function, x: Any, w: Any, *others: Any) -> Any:
        z = x + w / 2
        slope = Slope(function)
        if slope.linear:
            return slope(z, *others)
        degree = degree_along_lines(function)
        exact = degree <= 2 * MOST_NODES
        places, weights = np.polynomial.legendre.leggauss(math.ceil(degree / 2) if exact else MOST_NODES)
        # both factors 1/2 are those of the map from [-1, 1] to [0, 1]; about z, nodes come in exact pairs
        values = [b / 2 * slope(z + c / 2 * w, *others) for c, b in zip(places.tolist(), weights.tolist(), strict=True)]
        mean = sum(values[1:], values[0])
        if exact:
            return mean
        # what f cannot see of w changes nothing but by round-off, and that would be divided by what it can see
        seen = visible_part(function)
        return corrected(mean, defect(function, mean, x, seen @ w, others), seen @ w, seen @ z)


# -- the degree of a polynomial ---------------------------------------------------------------------------------------
class _Degree(NamedTuple):
    degree: float  # in the first argument; infinite if it is no polynomial
    number: float | None = None  # the value of a constant


def degree_along_lines(function: ca.Function) -> float:
    """The degree of f as a polynomial in its first argument, as its graph shows it; infinite if it shows none.

    >>> x, k = ca.SX.sym("x", 2), ca.SX.sym("k")
    >>> degree_along_lines(ca.Function("f", [x, k], [x[0] ** 3 * x[1] / ca.sin(k)]))
    4.0
    >>> degree_along_lines(ca.Function("f", [x, k], [ca.sin(x[0])]))
    inf
    """
    inputs = [[_Degree(1.0 if i == 0 else 0.0)] * function.nnz_in(i) for i in range(function.n_in())]
    ((output, *_), *_) = walk(function, inputs, lambda c: _Degree(0.0, c), _degree)
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
    if name in ("POW", "CONSTPOW") and b.number is not None and b.number >= 0 and b.number == int(b.number):
        return _Degree(b.number * a.degree)
    return _Degree(math.inf)


# -- translations that leave a function as it is ----------------------------------------------------------------------
class _Form(NamedTuple):
    row: np.ndarray  # the node is row . x plus a function of linear forms that are noted already
    number: float | None = None  # the value of a constant


def visible_part(function: ca.Function) -> Any:
    """The orthogonal projection onto the directions in which f, as its graph shows it, depends on its first argument.

    f is a function of some linear forms of x: of those that enter its nonlinear operations, and of the one it ends
    with. Directions in which all of them vanish leave f as it is.

    >>> x = ca.SX.sym("x", 3)
    >>> visible_part(ca.Function("f", [x], [ca.sin(x[0] - x[1])])).full()
    array([[ 0.5, -0.5,  0. ],
           [-0.5,  0.5,  0. ],
           [ 0. ,  0. ,  0. ]])
    """
    n = function.nnz_in(0)
    nothing = np.zeros(n)
    noted: list[np.ndarray] = []

    def apply(name: str, a: _Form, b: _Form | None = None) -> _Form:
        if name in ("ASSIGN", "NEG", "TWICE"):
            return _Form({"ASSIGN": 1.0, "NEG": -1.0, "TWICE": 2.0}[name] * a.row)
        if b is not None and name in ("ADD", "SUB"):
            return _Form(a.row + b.row if name == "ADD" else a.row - b.row)
        if b is not None and name == "MUL" and a.number is not None:
            return _Form(a.number * b.row)
        if b is not None and name == "MUL" and b.number is not None:
            return _Form(b.number * a.row)
        if b is not None and name == "DIV" and b.number is not None:
            return _Form(a.row / b.number)
        noted.extend(operand.row for operand in (a, b) if operand is not None and operand.row.any())
        return _Form(nothing)

    inputs = [[_Form(nothing)] * function.nnz_in(i) for i in range(function.n_in())]
    inputs[0] = [_Form(row) for row in np.eye(n)]
    ((output, *_), *_) = walk(function, inputs, lambda c: _Form(nothing, c), apply)
    # rows of length one: how large a form is says nothing about which direction it is
    rows = np.array([row / np.linalg.norm(row) for row in [*noted, output.row] if row.any()]).reshape(-1, n)
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    kept = directions[sizes > 1e-12]
    return ca.sparsify(ca.DM(np.round(kept.T @ kept, 15)))
