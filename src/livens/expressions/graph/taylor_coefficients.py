"""Taylor coefficients as CasADi expressions; reference implementation, differentiable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca

from livens.expressions.graph.interpreter import OPS
from livens.expressions.graph.parameter_constants import coefficient_expression
from livens.expressions.graph.taylor_graph import Node, VectorFieldGraph
from livens.types import Expr

_UNARY = frozenset("exp sin cos sinh cosh log log1p atan atanh asin asinh acosh erf".split())
#: Taylor coefficients of an operand computed so far.
Coefficients = Sequence[Any]


def taylor_coefficients(field: VectorFieldGraph, order: int) -> ca.Function:
    """Return the Taylor coefficients of the variables, one column for each order, as a function of (x, t, k)."""
    n = len(field.derivatives)
    x, t = ca.SX.sym("x", n), ca.SX.sym("t")
    series: list[list[Any]] = [[] for _ in field.nodes]
    variable_node = {node.data[0]: i for i, node in enumerate(field.nodes) if node.op == "var"}
    for i in range(n):
        series[variable_node[i]].append(x[i])
    for k in range(order + 1):
        for i in range(n):
            if k:
                series[variable_node[i]].append(series[field.derivatives[i]][k - 1] / k)
        for i, node in enumerate(field.nodes):
            if node.op == "time":
                series[i].append(t if k == 0 else ca.SX(1.0 if k == 1 else 0.0))
            elif node.op != "var":
                cofunction = series[field.cofunction(i)] if node.op in ("sin", "cos", "sinh", "cosh") else series[i]
                series[i].append(_coefficient(node, k, [series[a] for a in node.arguments], series[i], cofunction))
    columns = [ca.vertcat(*(series[variable_node[i]][k] for i in range(n))) for k in range(order + 1)]
    return ca.Function("series", [x, t, field.k], [ca.densify(ca.horzcat(*columns))])


def _sum(start: int, stop: int, term: Callable[[int], Any]) -> Expr:
    total: Any = ca.SX(0)
    for j in range(start, stop):
        total += term(j)
    return total


def _product(a: Coefficients, b: Coefficients, k: int) -> Expr:
    return _sum(0, k + 1, lambda j: a[j] * b[k - j])


def _coefficient(
    node: Node, k: int, operands: Sequence[Coefficients], result: Coefficients, cofunction: Coefficients
) -> Expr:
    """Return coefficient k of an operation from its operands and its own lower coefficients; see `Node`."""
    op, data = node.op, node.data
    if op == "lin":
        total = _sum(0, len(operands), lambda i: coefficient_expression(data[0][i]) * operands[i][k])
        return total + coefficient_expression(data[1]) if k == 0 else total
    if op in ("mul", "dot"):
        pairs = list(zip(operands[::2], operands[1::2], strict=True))
        return sum((_product(a, b, k) for a, b in pairs), ca.SX(0))
    a = operands[0]
    if k == 0:
        return _coefficient_zero(node, [operand[0] for operand in operands])
    if op == "div":
        b = operands[1]
        return (a[k] - _sum(1, k + 1, lambda j: b[j] * result[k - j])) / b[0]
    if op == "pow":
        e = data[0]
        return _sum(0, k, lambda j: (e * (k - j) - j) * a[k - j] * result[j]) / (k * a[0])
    if op == "quad":
        d = operands[1]
        return (k * a[k] - _sum(1, k, lambda j: j * result[j] * d[k - j])) / (k * d[0])
    if op == "angle":
        y, x, d = operands
        cross_terms = _sum(1, k + 1, lambda j: j * (y[j] * x[k - j] - x[j] * y[k - j]))
        return (cross_terms - _sum(1, k, lambda j: j * result[j] * d[k - j])) / (k * d[0])
    derivative = operands[1] if op == "flow" else cofunction
    coefficient = _sum(1, k + 1, lambda j: j * a[j] * derivative[k - j]) / k
    return -coefficient if op == "cos" else coefficient


def _coefficient_zero(node: Node, x: Sequence[Expr]) -> Expr:
    if node.op == "div":
        return x[0] / x[1]
    if node.op == "pow":
        return x[0] ** node.data[0]
    if node.op == "angle":
        return ca.atan2(x[0], x[1])
    name = node.data[0] if node.op in ("quad", "flow") else node.op
    assert name in _UNARY
    return ca.SX.unary(OPS[name.upper()], x[0])
