"""Code list of a vector field: elementary operations with recurrences for their Taylor coefficients.

Values are linear forms, so that d, -d and 2 d share one node. Powers of one base are merged, so that chains of roots
and quotients in derivatives become one power. Sums of products without other uses become dot products.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import casadi as ca

from livens.errors import ModelError
from livens.expressions.graph.interpreter import BINARY, NAMES
from livens.expressions.graph.parameter_constants import (
    Coefficient,
    ConstantPool,
    make_coefficient,
    scale,
    split_coefficient,
)
from livens.types import Expr

#: Cofunctions: pairs of functions whose derivatives are each other up to sign.
COFUNCTIONS = {"sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh"}
#: Largest integer power written as products, which are defined for a zero base.
_MAX_MULTIPLIED_POWER = 8
#: Non-analytic operations, with their names in messages.
NONSMOOTH_OPS = {
    "FABS": "abs",
    "CALL": "a look-up table",
    "SIGN": "sign",
    "COPYSIGN": "copysign",
    "FMIN": "minimum",
    "FMAX": "maximum",
    "FLOOR": "floor",
    "CEIL": "ceil",
    "FMOD": "mod",
    "REMAINDER": "remainder",
    "IF_ELSE_ZERO": "a condition",
    "LT": "a comparison",
    "LE": "a comparison",
    "EQ": "a comparison",
    "NE": "a comparison",
    "NOT": "a condition",
    "AND": "a condition",
    "OR": "a condition",
}


class Node(NamedTuple):
    """One elementary operation::

    var i | time | lin(nodes; factors, constant) | mul(a, b) | dot(a1, b1, a2, b2, ...) | div(a, b) | pow(a; exponent)
    exp(a) | sin(a), cos(a), always both | sinh, cosh | quad(a, d; f): n' = a'/d with n(0) = f(a(0))
    flow(a, w; f): n' = w a' with n(0) = f(a(0)) | angle(y, x, d): n' = (x y' - y x')/d with n(0) = atan2(y, x)
    """

    op: str
    arguments: tuple[int, ...] = ()
    data: tuple[Any, ...] = ()


#: Linear form: coefficients of nodes. The node `CONSTANT` is the constant term; an empty form is zero.
LinearForm = dict[int, Coefficient]
CONSTANT = -1


class CodeListBuilder:
    """Builder of the code list; equal operations share one node."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.index_of: dict[Node, int] = {}
        self.constants = ConstantPool()

    def node(self, op: str, arguments: tuple[int, ...] = (), data: tuple[object, ...] = ()) -> int:
        key = Node(op, arguments, data)
        if key not in self.index_of:
            self.index_of[key] = len(self.nodes)
            self.nodes.append(key)
        return self.index_of[key]

    # -- linear forms -------------------------------------------------------------------------------------------------
    def scale_form(self, a: LinearForm, factor: Coefficient) -> LinearForm:
        products = {n: self.constants.multiply(c, factor) for n, c in a.items()}
        return {n: c for n, c in products.items() if split_coefficient(c)[0]}

    def add(self, a: LinearForm, b: LinearForm) -> LinearForm:
        out = dict(a)
        for n, c in b.items():
            total = self.constants.add(out[n], c) if n in out else c
            if split_coefficient(total)[0]:
                out[n] = total
            else:
                out.pop(n, None)
        return out

    def scaled_node(self, a: LinearForm) -> tuple[Coefficient, int]:
        """Return a linear form as coefficient times node; the node `CONSTANT` represents a constant."""
        if not a:
            return 0.0, CONSTANT
        if len(a) == 1:
            ((n, c),) = a.items()
            return c, n
        order = sorted(n for n in a if n != CONSTANT)
        sizes = {(abs(s), x) for s, x in map(split_coefficient, a.values())}
        number, constant = split_coefficient(a[order[0]])
        common = make_coefficient(number, constant) if len(sizes) == 1 else math.copysign(1.0, number)
        normalized = {n: self.constants.divide(c, common) for n, c in a.items()}
        return common, self._sum(normalized)

    def _sum(self, a: LinearForm) -> int:
        order = tuple(sorted(n for n in a if n != CONSTANT))
        return self.node("lin", order, (tuple(a[n] for n in order), a.get(CONSTANT, 0.0)))

    def node_of(self, a: LinearForm) -> int:
        """Return a node with exactly the value of a linear form."""
        c, n = self.scaled_node(a)
        return n if c == 1.0 and n != CONSTANT else self._sum({n: c} if split_coefficient(c)[0] else {})

    def derivative_node(self, a: LinearForm) -> int:
        """Return the node of a time derivative without sign normalisation: equal bodies get isomorphic nodes."""
        return self.node_of(a) if len(a) < 2 else self._sum(a)

    # -- products and powers ------------------------------------------------------------------------------------------
    def _base(self, n: int) -> tuple[int, float]:
        node = self.nodes[n]
        return (node.arguments[0], node.data[0]) if node.op == "pow" else (n, 1.0)

    def power(self, n: int, e: float) -> int:
        """Return the node of a constant power of a node."""
        base, inner = self._base(n)
        e *= inner
        if e == 1.0:
            return base
        if e == int(e) and 0 < e <= _MAX_MULTIPLIED_POWER:
            half = self.power(base, e // 2)
            square = self.node("mul", (half, half))
            return self.node("mul", (square, base)) if e % 2 else square
        return self.node("pow", (base,), (e,))

    def multiply(self, a: LinearForm, b: LinearForm) -> LinearForm:
        (c, m), (d, n) = self.scaled_node(a), self.scaled_node(b)
        if m == CONSTANT or n == CONSTANT:
            return self.scale_form(b if m == CONSTANT else a, c if m == CONSTANT else d)
        factor = self.constants.multiply(c, d)
        (p, e), (q, f) = self._base(m), self._base(n)
        if p == q and "pow" in (self.nodes[m].op, self.nodes[n].op):
            return {CONSTANT: factor} if e + f == 0 else {self.power(p, e + f): factor}
        return {self.node("mul", (min(m, n), max(m, n))): factor}

    def divide(self, a: LinearForm, b: LinearForm) -> LinearForm:
        (c, m), (d, n) = self.scaled_node(a), self.scaled_node(b)
        if n == CONSTANT:
            return self.scale_form(a, self.constants.divide(1.0, d))
        factor = self.constants.divide(c, d)
        if m == CONSTANT:
            return {self.power(n, -1.0): factor} if split_coefficient(c)[0] else {}
        if self.nodes[n].op == "pow" or self._base(m)[0] == n:
            return self.multiply({m: factor}, {self.power(n, -1.0): 1.0})
        return {self.node("div", (m, n)): factor}

    # -- functions ----------------------------------------------------------------------------------------------------
    def apply(self, name: str, a: LinearForm, b: LinearForm | None = None) -> LinearForm:
        """Append one instruction of an expression graph."""
        if b is not None and name in ("ADD", "SUB"):
            return self.add(a, b if name == "ADD" else self.scale_form(b, -1.0))
        if name in ("NEG", "TWICE", "ASSIGN"):
            return self.scale_form(a, {"NEG": -1.0, "TWICE": 2.0, "ASSIGN": 1.0}[name])
        if name in ("MUL", "SQ"):
            return self.multiply(a, a if b is None else b)
        if name in ("DIV", "INV"):
            return self.divide({CONSTANT: 1.0}, a) if b is None else self.divide(a, b)
        c, n = self.scaled_node(a)
        d, m = (0.0, CONSTANT) if b is None else self.scaled_node(b)
        if n == CONSTANT and m == CONSTANT:
            value = self.constants.apply(name, c, None if b is None else d)
            return {CONSTANT: value} if split_coefficient(value)[0] else {}
        if name in ("SQRT", "POW", "CONSTPOW"):
            return self._pow(a, {CONSTANT: 0.5} if b is None else b)
        return self._function(name, a, b)

    def _pow(self, a: LinearForm, b: LinearForm) -> LinearForm:
        (c, n), (e, m) = self.scaled_node(a), self.scaled_node(b)
        if m != CONSTANT or not isinstance(e, float):  # a^b = exp(b log a)
            return self.apply("EXP", self.multiply(b, self.apply("LOG", a)))
        if e == 0.0:
            return {CONSTANT: 1.0}
        if e != int(e) and (
            split_coefficient(c)[1] is not None or split_coefficient(c)[0] < 0
        ):  # sign unknown or negative
            c, n = 1.0, self.node_of(a)
        return {self.power(n, e): self.constants.power(c, e)}

    def _function(self, name: str, a: LinearForm, b: LinearForm | None) -> LinearForm:
        if name in NONSMOOTH_OPS:
            raise ModelError(NONSMOOTH_OPS[name])
        unit_form: LinearForm = {CONSTANT: 1.0}
        lower = name.lower()
        if lower in COFUNCTIONS:
            n = self.node_of(a)
            for op in (lower, COFUNCTIONS[lower]):
                self.node(op, (n,))
            return {self.node(lower, (n,)): 1.0}
        if name == "EXP":
            return {self.node("exp", (self.node_of(a),)): 1.0}
        if name == "EXPM1":
            return self.add(self.apply("EXP", a), {CONSTANT: -1.0})
        if name in ("TAN", "TANH"):
            return self.divide(self.apply("SIN" + name[3:], a), self.apply("COS" + name[3:], a))
        if name in ("LOG", "LOG1P"):
            return self._quadrature_node(lower, a, a if name == "LOG" else self.add(unit_form, a))
        square = self.multiply(a, a)
        if name in ("ATAN", "ATANH"):
            return self._quadrature_node(
                lower, a, self.add(unit_form, self.scale_form(square, 1.0 if name == "ATAN" else -1.0))
            )
        if name in ("ASIN", "ASINH", "ACOSH"):
            sign, shift = (-1.0, 1.0) if name == "ASIN" else (1.0, 1.0 if name == "ASINH" else -1.0)
            return self._quadrature_node(
                lower, a, self.apply("SQRT", self.add({CONSTANT: shift}, self.scale_form(square, sign)))
            )
        if name == "ACOS":
            return self.add({CONSTANT: math.pi / 2}, self.scale_form(self.apply("ASIN", a), -1.0))
        if name == "ERF":
            derivative = self.scale_form(self.apply("EXP", self.scale_form(square, -1.0)), 2 / math.sqrt(math.pi))
            return {self.node("flow", (self.node_of(a), self.node_of(derivative)), (lower,)): 1.0}
        if name == "HYPOT" and b is not None:
            return self.apply("SQRT", self.add(square, self.multiply(b, b)))
        if name == "ATAN2" and b is not None:
            total = self.node_of(self.add(square, self.multiply(b, b)))
            return {self.node("angle", (self.node_of(a), self.node_of(b), total)): 1.0}
        raise ModelError(lower)

    def _quadrature_node(self, function: str, a: LinearForm, d: LinearForm) -> LinearForm:
        return {self.node("quad", (self.node_of(a), self.node_of(d)), (function,)): 1.0}


class VectorFieldGraph(NamedTuple):
    """Vector field as a code list: elementary operations and the derivative node of every variable."""

    nodes: tuple[Node, ...]
    derivatives: tuple[int, ...]
    index_of: dict[Node, int]
    k: Any  # parameter symbols of the constants
    n_controlled: int  # number of leading variables used for step-size selection

    def derivative(self, i: int) -> tuple[int, Coefficient]:
        """Return ``x_i' = coefficient * node``; a pure scaling needs no node."""
        node = self.nodes[self.derivatives[i]]
        is_scaling = node.op == "lin" and len(node.arguments) == 1 and node.data[1] == 0.0
        return (node.arguments[0], node.data[0][0]) if is_scaling else (self.derivatives[i], 1.0)

    def cofunction(self, n: int) -> int:
        """Return the cofunction of a node: the cosine of a sine, and vice versa."""
        node = self.nodes[n]
        return self.index_of[Node(COFUNCTIONS[node.op], node.arguments)]


def all_smooth(function: ca.Function) -> bool:
    """Return True if no operation of a graph is in `NONSMOOTH_OPS`, including operations on parameters only."""
    return not {NAMES[function.instruction_id(i)] for i in range(function.n_instructions())} & NONSMOOTH_OPS.keys()


def decompose(function: ca.Function, n_controlled: int | None = None) -> VectorFieldGraph:
    """Decompose the vector field ``f(x, t, k)`` into elementary operations; `n_controlled` defaults to all variables.

    Raises `ModelError` with the name of an operation that has no Taylor series.
    """
    graph, uses = CodeListBuilder(), _use_counts(function)
    k = ca.SX.sym("k", function.nnz_in(2))
    variables: list[LinearForm] = [{graph.node("var", (), (i,)): 1.0} for i in range(function.nnz_in(0))]
    work: dict[int, LinearForm] = {}
    outputs: dict[int, LinearForm] = {}
    for step in range(function.n_instructions()):
        code, i, o = (
            function.instruction_id(step),
            function.instruction_input(step),
            function.instruction_output(step),
        )
        if code == ca.OP_INPUT:
            if i[0] == 0:
                work[o[0]] = variables[i[1]]
            elif i[0] == 1:
                work[o[0]] = {graph.node("time"): 1.0}
            else:
                work[o[0]] = {CONSTANT: graph.constants.parameter(i[1], k[i[1]])}
        elif code == ca.OP_CONST:
            number: Coefficient = function.instruction_constant(step)
            work[o[0]] = {CONSTANT: number} if number else {}
        elif code == ca.OP_OUTPUT:
            outputs[o[1]] = work[i[0]]
        else:
            name = NAMES[code]
            value = graph.apply(name, *(work[j] for j in (i[:2] if name in BINARY else i[:1])))
            if uses[step] > 1 and len(value) > 2:  # a long sum with several uses becomes a node
                factor, n = graph.scaled_node(value)
                value = {n: factor}
            work[o[0]] = value
    derivatives = [graph.derivative_node(outputs.get(i, {})) for i in range(function.nnz_in(0))]
    return _fuse_dot_products(graph, derivatives, k, function.nnz_in(0) if n_controlled is None else n_controlled)


def _use_counts(function: ca.Function) -> Counter[int]:
    """Return the number of uses of the value of every instruction."""
    writer: dict[int, int] = {}
    uses: Counter[int] = Counter()
    for step in range(function.n_instructions()):
        code, i, o = (
            function.instruction_id(step),
            function.instruction_input(step),
            function.instruction_output(step),
        )
        if code not in (ca.OP_INPUT, ca.OP_CONST):
            for j in i[:1] if code == ca.OP_OUTPUT or NAMES[code] not in BINARY else i[:2]:
                uses[writer[j]] += 1
        if code != ca.OP_OUTPUT:
            writer[o[0]] = step
    return uses


def _fuse_dot_products(graph: CodeListBuilder, derivatives: list[int], k: Expr, n_controlled: int) -> VectorFieldGraph:
    """Fuse sums of products without other uses into dot products, and remove dead nodes."""
    nodes = graph.nodes
    alive: set[int] = set()
    stack = [*derivatives, *(n for n, node in enumerate(nodes) if node.op == "var")]
    while stack:
        n = stack.pop()
        if n in alive:
            continue
        alive.add(n)
        stack += nodes[n].arguments
        if nodes[n].op in COFUNCTIONS:
            stack.append(graph.index_of[Node(COFUNCTIONS[nodes[n].op], nodes[n].arguments)])
    uses = Counter(a for n in alive for a in nodes[n].arguments) + Counter(derivatives)

    def is_dot_product(n: int) -> bool:
        node = nodes[n]
        return (
            node.op == "lin"
            and node.data[1] == 0.0
            and len(node.arguments) > 1
            and all(c == 1.0 for c in node.data[0])
            and all(nodes[a].op == "mul" and uses[a] == 1 for a in node.arguments)
        )

    dot_products = {n for n in alive if is_dot_product(n)}
    fused_products = {a for n in dot_products for a in nodes[n].arguments}
    sign_flipped = _sign_flipped_sums(graph, alive - dot_products, derivatives)
    new, new_index = CodeListBuilder(), dict[int, int]()
    for n, node in enumerate(nodes):
        if n in dot_products:
            new_index[n] = new.node("dot", tuple(new_index[b] for a in node.arguments for b in nodes[a].arguments))
        elif n in alive and n not in fused_products:
            data, arguments = node.data, node.arguments
            if node.op == "lin":
                flip = -1.0 if n in sign_flipped else 1.0
                factors = [
                    scale(c, -flip if a in sign_flipped else flip) for a, c in zip(arguments, data[0], strict=True)
                ]
                data = (tuple(factors), scale(data[1], flip))
                if arguments and arguments[0] in sign_flipped and data == ((1.0,), 0.0):
                    new_index[n] = new_index[arguments[0]]
                    continue
            new_index[n] = new.node(node.op, tuple(new_index[a] for a in arguments), data)
    return VectorFieldGraph(tuple(new.nodes), tuple(new_index[n] for n in derivatives), new.index_of, k, n_controlled)


def _sign_flipped_sums(graph: CodeListBuilder, alive: set[int], derivatives: list[int]) -> set[int]:
    """Return sums that equal derivatives up to sign and occur only in other sums; their sign is flipped.

    The forces on equal bodies are then isomorphic, independent of the sign of their first term.
    """
    nodes = graph.nodes
    consumers = {a for n in alive if nodes[n].op != "lin" for a in nodes[n].arguments}
    sums = set()
    for n in derivatives:
        node = nodes[n]
        if node.op == "lin" and node.data == ((-1.0,), 0.0):
            (a,) = node.arguments
            if nodes[a].op == "lin" and a not in consumers and a not in derivatives and a in alive:
                sums.add(a)
    return sums
