"""Merging of powers of one base into one square root and one division."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.errors import ModelError
from livens.expressions.graph.interpreter import OPS
from livens.expressions.graph.parameter_constants import coefficient_expression
from livens.expressions.graph.taylor_graph import Node, VectorFieldGraph, decompose
from livens.types import Expr

#: Largest absolute exponent that is written as products.
_MAX_POWER = 8


def merge_powers(function: ca.Function) -> ca.Function:
    """Merge powers of one base in a function of (x, t, k) with as many outputs as x has entries.

    Derivatives of distances contain many roots and divisions of the same operands, each as expensive as ten products.
    A function with an operation without Taylor series is returned unchanged.

    >>> x = ca.SX.sym("x")
    >>> f = ca.Function("f", [x, ca.SX.sym("t"), ca.SX.sym("k", 0)], [ca.sqrt(x) * (1 / x) / (2 * ca.sqrt(x))])
    >>> merge_powers(f)(x, 0, ca.SX(0, 1))
    SX((0.5/x))
    """
    try:
        field = decompose(function)
    except ModelError:
        return function
    x, t = ca.SX.sym("x", function.nnz_in(0)), ca.SX.sym("t")
    values: list[Any] = []
    powers = _PowerCache(field, values)
    for node in field.nodes:
        values.append(_node_value(node, values, x, t, powers))
    derivatives = ca.vertcat(*(values[n] for n in field.derivatives))
    return ca.Function(function.name(), [x, t, field.k], [ca.densify(derivatives)])


class _PowerCache:
    """Cache of half-integer powers: the reciprocal root of every base is written once."""

    def __init__(self, field: VectorFieldGraph, values: list[Any]) -> None:
        self._values = values
        self._exponents: dict[int, set[float]] = {}
        self._roots: dict[int, Any] = {}
        for node in field.nodes:
            if node.op == "pow":
                self._exponents.setdefault(node.arguments[0], set()).add(node.data[0])

    def __call__(self, base: int, e: float) -> Expr:
        b = self._values[base]
        if 2 * e != int(2 * e) or abs(e) > _MAX_POWER:
            return b**e
        has_half_integers = any(2 * f != 2 * int(f) for f in self._exponents[base])
        root = ca.sqrt(b) if has_half_integers else None
        if e > 0:
            assert root is not None  # positive integer powers are products
            return _product(b, int(e)) * root if e >= 1 else root
        if root is None:
            return _product(1 / b, int(-e))
        if base not in self._roots:
            self._roots[base] = 1 / root
        return _product(self._roots[base], int(-2 * e))


def _product(a: Expr, n: int) -> Expr:
    if n == 1:
        return a
    half = _product(a, n // 2)
    return half * half * a if n % 2 else half * half


def _node_value(node: Node, values: list[Any], x: Expr, t: Expr, powers: _PowerCache) -> Expr:
    a = [values[i] for i in node.arguments]
    if node.op == "var":
        return x[node.data[0]]
    if node.op == "time":
        return t
    if node.op == "lin":
        total = ca.SX(0)
        for term, factor in zip(a, node.data[0], strict=True):
            total = total + (term if factor == 1.0 else coefficient_expression(factor) * term)
        return total if node.data[1] == 0.0 else total + coefficient_expression(node.data[1])
    if node.op in ("mul", "dot"):
        return sum((a[i] * a[i + 1] for i in range(2, len(a), 2)), start=a[0] * a[1])
    if node.op == "div":
        return a[0] / a[1]
    if node.op == "pow":
        return powers(node.arguments[0], node.data[0])
    if node.op == "angle":
        return ca.atan2(a[0], a[1])
    return ca.SX.unary(OPS[(node.data[0] if node.op in ("quad", "flow") else node.op).upper()], a[0])
