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
from livens.expressions.graph.constants import Constants, Factor, joined, scaled, split
from livens.expressions.graph.walk import BINARY, NAMES

#: Cofunctions: pairs of functions whose derivatives are each other up to sign.
PARTNERS = {"sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh"}
#: Largest integer power written as products, which are defined for a zero base.
_LARGEST_PRODUCT = 8
#: Non-analytic operations, with their names in messages.
NOT_SMOOTH = {
    "FABS": "abs",
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
Form = dict[int, Factor]
ONE = -1


class Elementary:
    """Builder of the code list; equal operations share one node."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.known: dict[Node, int] = {}
        self.constants = Constants()

    def node(self, op: str, arguments: tuple[int, ...] = (), data: tuple[Any, ...] = ()) -> int:
        key = Node(op, arguments, data)
        if key not in self.known:
            self.known[key] = len(self.nodes)
            self.nodes.append(key)
        return self.known[key]

    # -- linear forms -------------------------------------------------------------------------------------------------
    def times(self, a: Form, factor: Factor) -> Form:
        found = {n: self.constants.times(c, factor) for n, c in a.items()}
        return {n: c for n, c in found.items() if split(c)[0]}

    def add(self, a: Form, b: Form) -> Form:
        out = dict(a)
        for n, c in b.items():
            total = self.constants.plus(out[n], c) if n in out else c
            if split(total)[0]:
                out[n] = total
            else:
                out.pop(n, None)
        return out

    def scaled_node(self, a: Form) -> tuple[Factor, int]:
        """Return a linear form as coefficient times node; the node `CONSTANT` represents a constant."""
        if not a:
            return 0.0, ONE
        if len(a) == 1:
            ((n, c),) = a.items()
            return c, n
        order = sorted(n for n in a if n != ONE)
        sizes = {(abs(s), x) for s, x in map(split, a.values())}
        number, constant = split(a[order[0]])
        common = joined(number, constant) if len(sizes) == 1 else math.copysign(1.0, number)
        rest = {n: self.constants.over(c, common) for n, c in a.items()}
        return common, self._sum(rest)

    def _sum(self, a: Form) -> int:
        order = tuple(sorted(n for n in a if n != ONE))
        return self.node("lin", order, (tuple(a[n] for n in order), a.get(ONE, 0.0)))

    def plain(self, a: Form) -> int:
        """Return a node with exactly the value of a linear form."""
        c, n = self.scaled_node(a)
        return n if c == 1.0 and n != ONE else self._sum({n: c} if split(c)[0] else {})

    def rate(self, a: Form) -> int:
        """Return the node of a time derivative without sign normalisation: equal bodies get isomorphic nodes."""
        return self.plain(a) if len(a) < 2 else self._sum(a)

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
        if e == int(e) and 0 < e <= _LARGEST_PRODUCT:
            half = self.power(base, e // 2)
            square = self.node("mul", (half, half))
            return self.node("mul", (square, base)) if e % 2 else square
        return self.node("pow", (base,), (e,))

    def multiply(self, a: Form, b: Form) -> Form:
        (c, m), (d, n) = self.scaled_node(a), self.scaled_node(b)
        if m == ONE or n == ONE:
            return self.times(b if m == ONE else a, c if m == ONE else d)
        factor = self.constants.times(c, d)
        (p, e), (q, f) = self._base(m), self._base(n)
        if p == q and "pow" in (self.nodes[m].op, self.nodes[n].op):
            return {ONE: factor} if e + f == 0 else {self.power(p, e + f): factor}
        return {self.node("mul", (min(m, n), max(m, n))): factor}

    def divide(self, a: Form, b: Form) -> Form:
        (c, m), (d, n) = self.scaled_node(a), self.scaled_node(b)
        if n == ONE:
            return self.times(a, self.constants.over(1.0, d))
        factor = self.constants.over(c, d)
        if m == ONE:
            return {self.power(n, -1.0): factor} if split(c)[0] else {}
        if self.nodes[n].op == "pow" or self._base(m)[0] == n:
            return self.multiply({m: factor}, {self.power(n, -1.0): 1.0})
        return {self.node("div", (m, n)): factor}

    # -- functions ----------------------------------------------------------------------------------------------------
    def apply(self, name: str, a: Form, b: Form | None = None) -> Form:
        """Append one instruction of an expression graph."""
        if b is not None and name in ("ADD", "SUB"):
            return self.add(a, b if name == "ADD" else self.times(b, -1.0))
        if name in ("NEG", "TWICE", "ASSIGN"):
            return self.times(a, {"NEG": -1.0, "TWICE": 2.0, "ASSIGN": 1.0}[name])
        if name in ("MUL", "SQ"):
            return self.multiply(a, a if b is None else b)
        if name in ("DIV", "INV"):
            return self.divide({ONE: 1.0}, a) if b is None else self.divide(a, b)
        c, n = self.scaled_node(a)
        d, m = (0.0, ONE) if b is None else self.scaled_node(b)
        if n == ONE and m == ONE:
            value = self.constants.apply(name, c, None if b is None else d)
            return {ONE: value} if split(value)[0] else {}
        if name in ("SQRT", "POW", "CONSTPOW"):
            return self._raised(a, {ONE: 0.5} if b is None else b)
        return self._function(name, a, b)

    def _raised(self, a: Form, b: Form) -> Form:
        (c, n), (e, m) = self.scaled_node(a), self.scaled_node(b)
        if m != ONE or not isinstance(e, float):  # a^b = exp(b log a)
            return self.apply("EXP", self.multiply(b, self.apply("LOG", a)))
        if e == 0.0:
            return {ONE: 1.0}
        if e != int(e) and (split(c)[1] is not None or split(c)[0] < 0):  # sign unknown or negative
            c, n = 1.0, self.plain(a)
        return {self.power(n, e): self.constants.power(c, e)}

    def _function(self, name: str, a: Form, b: Form | None) -> Form:
        if name in NOT_SMOOTH:
            raise ModelError(NOT_SMOOTH[name])
        one: Form = {ONE: 1.0}
        lower = name.lower()
        if lower in PARTNERS:
            n = self.plain(a)
            for op in (lower, PARTNERS[lower]):
                self.node(op, (n,))
            return {self.node(lower, (n,)): 1.0}
        if name == "EXP":
            return {self.node("exp", (self.plain(a),)): 1.0}
        if name == "EXPM1":
            return self.add(self.apply("EXP", a), {ONE: -1.0})
        if name in ("TAN", "TANH"):
            return self.divide(self.apply("SIN" + name[3:], a), self.apply("COS" + name[3:], a))
        if name in ("LOG", "LOG1P"):
            return self._quad(lower, a, a if name == "LOG" else self.add(one, a))
        square = self.multiply(a, a)
        if name in ("ATAN", "ATANH"):
            return self._quad(lower, a, self.add(one, self.times(square, 1.0 if name == "ATAN" else -1.0)))
        if name in ("ASIN", "ASINH", "ACOSH"):
            sign, shift = (-1.0, 1.0) if name == "ASIN" else (1.0, 1.0 if name == "ASINH" else -1.0)
            return self._quad(lower, a, self.apply("SQRT", self.add({ONE: shift}, self.times(square, sign))))
        if name == "ACOS":
            return self.add({ONE: math.pi / 2}, self.times(self.apply("ASIN", a), -1.0))
        if name == "ERF":
            slope = self.times(self.apply("EXP", self.times(square, -1.0)), 2 / math.sqrt(math.pi))
            return {self.node("flow", (self.plain(a), self.plain(slope)), (lower,)): 1.0}
        if name == "HYPOT" and b is not None:
            return self.apply("SQRT", self.add(square, self.multiply(b, b)))
        if name == "ATAN2" and b is not None:
            total = self.plain(self.add(square, self.multiply(b, b)))
            return {self.node("angle", (self.plain(a), self.plain(b), total)): 1.0}
        raise ModelError(lower)

    def _quad(self, function: str, a: Form, d: Form) -> Form:
        return {self.node("quad", (self.plain(a), self.plain(d)), (function,)): 1.0}


class Field(NamedTuple):
    """Vector field as a code list: elementary operations and the derivative node of every variable."""

    nodes: tuple[Node, ...]
    rates: tuple[int, ...]
    known: dict[Node, int]
    k: Any  # parameter symbols of the constants
    counted: int  # number of leading variables used for step-size selection

    def rate(self, i: int) -> tuple[int, Factor]:
        """Return ``x_i' = coefficient * node``; a pure scaling needs no node."""
        node = self.nodes[self.rates[i]]
        alone = node.op == "lin" and len(node.arguments) == 1 and node.data[1] == 0.0
        return (node.arguments[0], node.data[0][0]) if alone else (self.rates[i], 1.0)

    def partner(self, n: int) -> int:
        """Return the cofunction of a node: the cosine of a sine, and vice versa."""
        node = self.nodes[n]
        return self.known[Node(PARTNERS[node.op], node.arguments)]


def all_smooth(function: ca.Function) -> bool:
    """Return True if no operation of a graph is in `NONSMOOTH_OPS`, including operations on parameters only."""
    return not {NAMES[function.instruction_id(i)] for i in range(function.n_instructions())} & NOT_SMOOTH.keys()


def decompose(function: ca.Function, counted: int | None = None) -> Field:
    """Decompose the vector field ``f(x, t, k)`` into elementary operations; `n_controlled` defaults to all variables.

    Raises `ModelError` with the name of an operation that has no Taylor series.
    """
    graph, uses = Elementary(), _uses(function)
    k = ca.SX.sym("k", function.nnz_in(2))
    variables: list[Form] = [{graph.node("var", (), (i,)): 1.0} for i in range(function.nnz_in(0))]
    work: dict[int, Form] = {}
    outputs: dict[int, Form] = {}
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
                work[o[0]] = {ONE: graph.constants.parameter(i[1], k[i[1]])}
        elif code == ca.OP_CONST:
            number: Factor = function.instruction_constant(step)
            work[o[0]] = {ONE: number} if number else {}
        elif code == ca.OP_OUTPUT:
            outputs[o[1]] = work[i[0]]
        else:
            name = NAMES[code]
            value = graph.apply(name, *(work[j] for j in (i[:2] if name in BINARY else i[:1])))
            if uses[step] > 1 and len(value) > 2:  # a long sum with several uses becomes a node
                factor, n = graph.scaled_node(value)
                value = {n: factor}
            work[o[0]] = value
    rates = [graph.rate(outputs.get(i, {})) for i in range(function.nnz_in(0))]
    return _fused(graph, rates, k, function.nnz_in(0) if counted is None else counted)


def _uses(function: ca.Function) -> Counter[int]:
    """Return the number of uses of the value of every instruction."""
    last: dict[int, int] = {}
    uses: Counter[int] = Counter()
    for step in range(function.n_instructions()):
        code, i, o = (
            function.instruction_id(step),
            function.instruction_input(step),
            function.instruction_output(step),
        )
        if code not in (ca.OP_INPUT, ca.OP_CONST):
            for j in i[:1] if code == ca.OP_OUTPUT or NAMES[code] not in BINARY else i[:2]:
                uses[last[j]] += 1
        if code != ca.OP_OUTPUT:
            last[o[0]] = step
    return uses


def _fused(graph: Elementary, rates: list[int], k: Any, counted: int) -> Field:
    """Fuse sums of products without other uses into dot products, and remove dead nodes."""
    nodes = graph.nodes
    alive: set[int] = set()
    stack = [*rates, *(n for n, node in enumerate(nodes) if node.op == "var")]
    while stack:
        n = stack.pop()
        if n in alive:
            continue
        alive.add(n)
        stack += nodes[n].arguments
        if nodes[n].op in PARTNERS:
            stack.append(graph.known[Node(PARTNERS[nodes[n].op], nodes[n].arguments)])
    uses = Counter(a for n in alive for a in nodes[n].arguments) + Counter(rates)

    def running(n: int) -> bool:
        node = nodes[n]
        return (
            node.op == "lin"
            and node.data[1] == 0.0
            and len(node.arguments) > 1
            and all(c == 1.0 for c in node.data[0])
            and all(nodes[a].op == "mul" and uses[a] == 1 for a in node.arguments)
        )

    sums = {n for n in alive if running(n)}
    inside = {a for n in sums for a in nodes[n].arguments}
    turned = _turned(graph, alive - sums, rates)
    new, where = Elementary(), dict[int, int]()
    for n, node in enumerate(nodes):
        if n in sums:
            where[n] = new.node("dot", tuple(where[b] for a in node.arguments for b in nodes[a].arguments))
        elif n in alive and n not in inside:
            data, arguments = node.data, node.arguments
            if node.op == "lin":
                flip = -1.0 if n in turned else 1.0
                factors = [scaled(c, -flip if a in turned else flip) for a, c in zip(arguments, data[0], strict=True)]
                data = (tuple(factors), scaled(data[1], flip))
                if arguments and arguments[0] in turned and data == ((1.0,), 0.0):
                    where[n] = where[arguments[0]]
                    continue
            where[n] = new.node(node.op, tuple(where[a] for a in arguments), data)
    return Field(tuple(new.nodes), tuple(where[n] for n in rates), new.known, k, counted)


def _turned(graph: Elementary, alive: set[int], rates: list[int]) -> set[int]:
    """Return sums that equal derivatives up to sign and occur only in other sums; their sign is flipped.

    The forces on equal bodies are then isomorphic, independent of the sign of their first term.
    """
    nodes = graph.nodes
    consumers = {a for n in alive if nodes[n].op != "lin" for a in nodes[n].arguments}
    found = set()
    for n in rates:
        node = nodes[n]
        if node.op == "lin" and node.data == ((-1.0,), 0.0):
            (a,) = node.arguments
            if nodes[a].op == "lin" and a not in consumers and a not in rates and a in alive:
                found.add(a)
    return found
