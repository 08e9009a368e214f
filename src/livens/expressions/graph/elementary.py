"""Equations of motion as elementary operations whose Taylor coefficients follow from those of their operands.

Values are linear forms, so that d, -d and 2 d are one node; powers of one base are merged, so that the chain of roots
and quotients that derivatives consist of becomes one power; sums of products that nobody else needs become one running
sum.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import casadi as ca

from livens.errors import ModelError
from livens.expressions.graph.constants import Constants, Factor, joined, scaled, split
from livens.expressions.graph.walk import BINARY, NAMES

#: Functions that come in pairs: the derivative of each is the other.
PARTNERS = {"sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh"}
#: Whole powers up to this one are products: their base may vanish.
_LARGEST_PRODUCT = 8
#: Operations whose series break off somewhere.
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
    """One operation::

    var i | time | lin(nodes; factors, constant) | mul(a, b) | dot(a1, b1, a2, b2, ...) | div(a, b) | pow(a; exponent)
    exp(a) | sin(a), cos(a), always together | sinh, cosh | quad(a, d; f): n' = a'/d with n(0) = f(a(0))
    flow(a, w; f): n' = w a' with n(0) = f(a(0)) | angle(y, x, d): n' = (x y' - y x')/d with n(0) = atan2(y, x)
    """

    op: str
    arguments: tuple[int, ...] = ()
    data: tuple[Any, ...] = ()


#: A linear form: factors of nodes; that of `ONE` is a constant, and an empty one is zero.
Form = dict[int, Factor]
ONE = -1


class Elementary:
    """Elementary operations, each written once."""

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
        """A linear form as factor times node; the node `ONE` stands for a constant."""
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
        """A node for a linear form as it stands."""
        c, n = self.scaled_node(a)
        return n if c == 1.0 and n != ONE else self._sum({n: c} if split(c)[0] else {})

    def rate(self, a: Form) -> int:
        """A node for a rate: not normalised by sign, so that the rates of equal bodies look alike."""
        return self.plain(a) if len(a) < 2 else self._sum(a)

    # -- products and powers ------------------------------------------------------------------------------------------
    def _base(self, n: int) -> tuple[int, float]:
        node = self.nodes[n]
        return (node.arguments[0], node.data[0]) if node.op == "pow" else (n, 1.0)

    def power(self, n: int, e: float) -> int:
        """A node to a constant power."""
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
        """One instruction of an expression graph."""
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
        if e != int(e) and (split(c)[1] is not None or split(c)[0] < 0):  # nobody knows its sign, or it is negative
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
    """Elementary operations, and which of them are the rates of the variables."""

    nodes: tuple[Node, ...]
    rates: tuple[int, ...]
    known: dict[Node, int]
    k: Any  # the symbols of the parameters in its constants
    counted: int  # so many variables, the first ones, decide how long steps are

    def rate(self, i: int) -> tuple[int, Factor]:
        """``x_i' = factor times node``: a factor alone needs no sum of its own."""
        node = self.nodes[self.rates[i]]
        alone = node.op == "lin" and len(node.arguments) == 1 and node.data[1] == 0.0
        return (node.arguments[0], node.data[0][0]) if alone else (self.rates[i], 1.0)

    def partner(self, n: int) -> int:
        """The cosine of a sine, and so on."""
        node = self.nodes[n]
        return self.known[Node(PARTNERS[node.op], node.arguments)]


def all_smooth(function: ca.Function) -> bool:
    """Whether no operation of a graph is among those without a series; if one is, parameters alone may be behind it."""
    return not {NAMES[function.instruction_id(i)] for i in range(function.n_instructions())} & NOT_SMOOTH.keys()


def decompose(function: ca.Function, counted: int | None = None) -> Field:
    """The elementary operations of rates ``f(x, t, k)``; all variables count unless it is said how many.

    A ModelError names an operation that has no Taylor series.
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
            if uses[step] > 1 and len(value) > 2:  # a long sum that is used again is a node of its own
                factor, n = graph.scaled_node(value)
                value = {n: factor}
            work[o[0]] = value
    rates = [graph.rate(outputs.get(i, {})) for i in range(function.nnz_in(0))]
    return _fused(graph, rates, k, function.nnz_in(0) if counted is None else counted)


def _uses(function: ca.Function) -> Counter[int]:
    """How often the value of every instruction is used."""
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
    """Sums of products that are used nowhere else become one running sum; what nobody needs is dropped."""
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
    """Sums that are rates but for their sign, and take part in other sums only: these are written with that sign.

    The forces on equal bodies are then alike, whichever sign the first of their terms has.
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
