"""Simplification of nested quotients to one division."""

from __future__ import annotations

import casadi as ca

from livens.expressions.graph.interpreter import interpret, operate
from livens.types import Expr


def merge_divisions(function: ca.Function) -> ca.Function:
    """Rewrite ``(a/b)/c`` as ``a/(b c)`` in a function.

    Derivatives of quotients and roots contain chains of dependent divisions, whose latency dominates an explicit step.

    >>> r = ca.SX.sym("r")
    >>> merge_divisions(ca.Function("f", [r], [2 / r / r / r]))(r)
    SX((2/(sq(r)*r)))
    """
    symbols = [ca.SX.sym(f"i{i}", *function.size_in(i)) for i in range(function.n_in())]

    def apply(name: str, a: Expr, b: Expr | None = None) -> Expr:
        if b is None:
            return operate(name, a)
        if name == "DIV" and a.op() == ca.OP_DIV:
            return a.dep(0) / (a.dep(1) * b)
        return operate(name, a, b)

    outputs = interpret(function, [[s.nz[j] for j in range(s.nnz())] for s in symbols], ca.SX, apply)
    expressions = [ca.SX(function.sparsity_out(i), ca.vertcat(*out)) for i, out in enumerate(outputs)]
    return ca.Function(function.name(), symbols, expressions)
