"""Taylor coefficients of elementary operations, group by group (Jorba and Zou, Experimental Mathematics 14, 2005)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from livens.engine.codegen.vector_emitter import VectorEmitter, vector_width
from livens.expressions.graph.parameter_constants import Coefficient, ConstantPool
from livens.expressions.graph.simd_groups import simd_groups
from livens.expressions.graph.taylor_graph import VectorFieldGraph

#: Number of independent chains in a sum of many products.
CHAINS = 3
#: Vectors of a group; None if all of them vanish.
Chunks = Sequence[str] | None
#: Product in a sum: the order at which it is available, and its factors.
Term = tuple[int, Chunks, Chunks]


class CoefficientSeries:
    """Taylor coefficients of one operand, arranged in the lanes of its user."""

    def __init__(self, text: VectorEmitter, width: int, coefficient: Callable[[int], Chunks]) -> None:
        self._text, self._width, self._coefficient = text, width, coefficient
        self._scaled: dict[tuple[int, float], Sequence[str]] = {}

    def __call__(self, k: int) -> Chunks:
        return self._coefficient(k)

    def scaled(self, factor: float, k: int) -> Chunks:
        """Return coefficient k times a number, emitted once."""
        chunks = self(k)
        if chunks is None or factor == 0.0:
            return None
        if factor == 1.0:
            return chunks
        if (k, factor) not in self._scaled:
            t, w = self._text, self._width
            if factor == -1.0:
                self._scaled[k, factor] = [t.fneg(w, v) for v in chunks]
            else:
                self._scaled[k, factor] = [t.op("fmul", w, v, t.splat_constant(factor, w)) for v in chunks]
        return self._scaled[k, factor]


class Recurrences:
    """Emitter of the Taylor coefficients of all groups of a field, order by order.

    Factors that depend on parameters are loaded from ``%K`` as vectors; `constants` lists them.
    """

    def __init__(self, field: VectorFieldGraph, order: int, separate: bool = False) -> None:
        self.field, self.order, self.text = field, order, VectorEmitter()
        self.nodes, self.groups = field.nodes, simd_groups(field, separate)
        self.position: dict[int, tuple[int, int]] = {}
        self.widths: list[tuple[int, int]] = []  # vector width and number of vectors of every group
        for g, members in enumerate(self.groups):
            self.position |= {n: (g, lane) for lane, n in enumerate(members)}
            w = vector_width(len(members))
            self.widths.append((w, -(-len(members) // w)))
        self.series: list[list[Chunks]] = [[] for _ in self.groups]
        self.states = [g for g, members in enumerate(self.groups) if self.nodes[members[0]].op == "var"]
        self.constants: list[Coefficient] = []
        self._algebra = ConstantPool()
        self._vectors: dict[tuple[Coefficient, ...], int] = {}
        self._series: dict[tuple[int, tuple[int, ...], int], CoefficientSeries] = {}
        self._gathered: dict[tuple[tuple[int, ...], int, int], Chunks] = {}
        self._memo: dict[tuple[str, int], Sequence[str]] = {}

    # -- constants ----------------------------------------------------------------------------------------------------
    def factors(self, w: int, values: Sequence[Coefficient]) -> str:
        """Return a vector of factors: literals, or loaded from memory if they depend on parameters."""
        if all(isinstance(c, float) for c in values):
            return self.text.constant([c for c in values if isinstance(c, float)])
        key = tuple(values)
        if key not in self._vectors:
            self._vectors[key] = len(self.constants)
            self.constants += key
        return self.text.load(w, "%K", self._vectors[key])

    def rational(self, w: int, v: str, numbers: Sequence[float], divisor: float) -> str:
        """Return ``v number/divisor`` with a double-double constant: a rounded 1/k is a bias that accumulates."""
        high = [c / divisor for c in numbers]
        if set(high) == {1.0}:
            return v
        low = [float(Fraction(c) / Fraction(divisor) - Fraction(x)) for c, x in zip(numbers, high, strict=True)]
        t = self.text
        if not any(low):
            return t.op("fmul", w, v, t.constant(high))
        return t.fma(w, v, t.constant(high), t.op("fmul", w, v, t.constant(low)))

    def divided_by(self, w: int, v: str, divisor: float, sign: float = 1.0) -> str:
        return self.rational(w, v, [sign] * w, divisor)

    # -- operands -----------------------------------------------------------------------------------------------------
    def gather(self, names: Sequence[int], k: int, w: int, chunks: int) -> Chunks:
        """Gather coefficient k of operations as lanes."""
        padded = (*names, *[names[0]] * (w * chunks - len(names)))
        key = (padded, k, w)
        if key not in self._gathered:
            self._gathered[key] = self._gather(padded, k, w)
        return self._gathered[key]

    def _gather(self, names: Sequence[int], k: int, w: int) -> Chunks:
        t = self.text
        if all(self.series[self.position[n][0]][k] is None for n in names):
            return None
        lanes = [self.lane_of(n, k) for n in names]
        return [t.gather_lanes(lanes[i : i + w]) for i in range(0, len(lanes), w)]

    def lane_of(self, n: int, k: int) -> tuple[str, int, int]:
        """Return the location of coefficient k of an operation: vector, its width, and lane."""
        g, lane = self.position[n]
        coefficient, width = self.series[g][k], self.widths[g][0]
        return (self.text.zero(1), 1, 0) if coefficient is None else (coefficient[lane // width], width, lane % width)

    def operand(self, g: int, slot: int) -> CoefficientSeries:
        """Return the operands of a group in one argument slot."""
        return self.operand_series(g, [self.nodes[n].arguments[slot] for n in self.groups[g]])

    def operand_series(self, g: int, names: Sequence[int], shape: tuple[int, int] | None = None) -> CoefficientSeries:
        """Return the coefficients of operations in the lanes of group g."""
        w, chunks = shape or self.widths[g]
        key = (g, tuple(names), w)
        if key not in self._series:
            self._series[key] = CoefficientSeries(self.text, w, lambda k: self.gather(names, k, w, chunks))
        return self._series[key]

    def own_series(self, g: int) -> CoefficientSeries:
        key = (g, (), 0)
        if key not in self._series:
            self._series[key] = CoefficientSeries(self.text, self.widths[g][0], lambda k: self.series[g][k])
        return self._series[key]

    def memo(self, name: str, g: int, write: Callable[[], Sequence[str]]) -> Sequence[str]:
        """Return a value shared by all coefficients of a group."""
        if (name, g) not in self._memo:
            self._memo[name, g] = write()
        return self._memo[name, g]

    def inverse(self, g: int, a: CoefficientSeries, number: float = 1.0) -> Sequence[str]:
        """Return ``number / a_0``."""
        t, w = self.text, self.widths[g][0]
        constant_term = a(0)
        assert constant_term is not None
        return self.memo(
            f"{number} over", g, lambda: [t.op("fdiv", w, t.splat_constant(number, w), x) for x in constant_term]
        )

    # -- sums ---------------------------------------------------------------------------------------------------------
    def sum_products(self, shape: tuple[int, int], candidate_terms: Sequence[Term], start: Chunks = None) -> Chunks:
        """Sum products: early terms in several independent chains, the latest terms last."""
        w, chunks = shape
        terms = sorted(
            ((when, a, b) for when, a, b in candidate_terms if a is not None and b is not None), key=lambda x: x[0]
        )
        if not terms:
            return start
        newest = terms[-1][0]
        early, late = ([x for x in terms if (x[0] < newest - 1) == is_early] for is_early in (True, False))
        n_chains = 1 if chunks > 1 and len(early) < 8 else min(CHAINS, max(1, len(early) // 3))
        out = []
        for c in range(chunks):
            parts: list[str | None] = [None] * n_chains
            parts[0] = None if start is None else start[c]
            for i, (_, a, b) in enumerate(early):
                parts[i % n_chains] = self.text.fma(w, a[c], b[c], parts[i % n_chains])
            total = self.add_all(w, parts)
            for _, a, b in late:
                total = self.text.fma(w, a[c], b[c], total)
            assert total is not None
            out.append(total)
        return out

    def add_all(self, w: int, parts: Sequence[str | None]) -> str | None:
        total = None
        for part in parts:
            if part is not None:
                total = part if total is None else self.text.op("fadd", w, total, part)
        return total

    @staticmethod
    def product(a: CoefficientSeries, b: CoefficientSeries, k: int) -> list[Term]:
        """Return the terms of coefficient k of a product; a square needs half of them."""
        if a is b:
            terms: list[Term] = [(k - j, a.scaled(2.0, j), a(k - j)) for j in range((k + 1) // 2)]
            return terms + ([(k // 2, a(k // 2), a(k // 2))] if k % 2 == 0 else [])
        return [(max(j, k - j), a(j), b(k - j)) for j in range(k + 1)]

    def elementwise(self, g: int, a: Chunks, b: Sequence[str]) -> Chunks:
        w = self.widths[g][0]
        return None if a is None else [self.text.op("fmul", w, x, y) for x, y in zip(a, b, strict=True)]

    # -- coefficients -------------------------------------------------------------------------------------------------
    def coefficient(self, g: int, k: int) -> Chunks:
        """Return coefficient k of all operations of a group."""
        node, (w, _) = self.nodes[self.groups[g][0]], self.widths[g]
        if node.op == "var":
            return self._variable(g, k)
        if node.op == "time":
            return [self.text.splat_constant(1.0, 1)] if k == 1 else None
        if node.op == "lin":
            return self._linear(g, k)
        if node.op in ("mul", "dot"):
            return self._products(g, k)
        operands = [self.operand(g, slot) for slot in range(len(node.arguments))]
        if k == 0:
            known = [chunks or [self.text.zero(w)] * self.widths[g][1] for chunks in (a(0) for a in operands)]
            return [self._order_zero(node.op, node.data, w, x) for x in zip(*known, strict=True)]
        return self._higher_order(g, k, operands)

    def _variable(self, g: int, k: int) -> Chunks:
        """Return coefficient k of ``x' = c n``; coordinates use ``q'' = c n``, which does not wait for velocities."""
        w, chunks = self.widths[g]
        pairs = [self.field.derivative(self.nodes[n].data[0]) for n in self.groups[g]]
        depth, divisor = 1, float(k)
        if k > 1 and all(self.nodes[rate].op == "var" for rate, _ in pairs):
            second = [self.field.derivative(self.nodes[rate].data[0]) for rate, _ in pairs]
            depth, divisor = 2, k * (k - 1.0)
            pairs = [(n, self._algebra.multiply(a, b)) for (_, a), (n, b) in zip(pairs, second, strict=True)]
        values = self.gather([n for n, _ in pairs], k - depth, w, chunks)
        if values is None:
            return None
        factors = [c for _, c in pairs]
        factors += [factors[0]] * (w * chunks - len(factors))
        out = []
        for c, v in enumerate(values):
            chunk_factors = factors[c * w : (c + 1) * w]
            if all(isinstance(x, float) for x in chunk_factors):
                out.append(self.rational(w, v, [x for x in chunk_factors if isinstance(x, float)], divisor))
            else:
                out.append(self.divided_by(w, self.text.op("fmul", w, v, self.factors(w, chunk_factors)), divisor))
        return out

    def _linear(self, g: int, k: int) -> Chunks:
        """Return sums with constant factors, term by term."""
        (w, chunks), members, t = self.widths[g], self.groups[g], self.text
        padded = [self.nodes[n] for n in (*members, *[members[0]] * (w * chunks - len(members)))]
        out: list[str | None] = [None] * chunks
        for i in range(len(padded[0].arguments)):
            values = self.gather([self.nodes[n].arguments[i] for n in members], k, w, chunks)
            for c, v in enumerate(values or ()):
                chunk_factors, partial = [node.data[0][i] for node in padded[c * w : (c + 1) * w]], out[c]
                if partial is None:
                    out[c] = v if set(chunk_factors) == {1.0} else t.op("fmul", w, v, self.factors(w, chunk_factors))
                elif set(chunk_factors) in ({1.0}, {-1.0}):
                    out[c] = t.op("fadd" if chunk_factors[0] == 1.0 else "fsub", w, partial, v)
                else:
                    out[c] = t.fma(w, v, self.factors(w, chunk_factors), partial)
        if k == 0:
            for c in range(chunks):
                chunk_factors, partial = [node.data[1] for node in padded[c * w : (c + 1) * w]], out[c]
                if partial is None:
                    out[c] = self.factors(w, chunk_factors)
                elif any(x != 0.0 for x in chunk_factors):
                    out[c] = t.op("fadd", w, partial, self.factors(w, chunk_factors))
        return None if out[0] is None else [v for v in out if v is not None]

    def _products(self, g: int, k: int) -> Chunks:
        """Return ``a b``, or ``a1 b1 + a2 b2 + ...`` in one sum."""
        members = self.groups[g]
        arguments = self.nodes[members[0]].arguments
        pairs = len(arguments) // 2
        if len(members) == 1 and pairs > 1 and len({self.position[a][0] for a in arguments}) == 1:
            return self._horizontal_sum(g, arguments[::2], arguments[1::2], k)
        terms: list[Term] = []
        for i in range(0, 2 * pairs, 2):
            terms += self.product(self.operand(g, i), self.operand(g, i + 1), k)
        return self.sum_products(self.widths[g], terms)

    def _horizontal_sum(self, g: int, lhs: Sequence[int], rhs: Sequence[int], k: int) -> Chunks:
        """Return one sum of products, with the products in SIMD lanes."""
        w = vector_width(len(lhs))
        shape = (w, -(-len(lhs) // w))
        total = self.sum_products(
            shape, self.product(self.operand_series(g, lhs, shape), self.operand_series(g, rhs, shape), k)
        )
        if total is None:
            return None
        lanes: list[str | None] = [self.text.lane(w, total[i // w], i % w) for i in range(len(lhs))]
        total_sum = self.add_all(1, lanes)
        return None if total_sum is None else [total_sum]

    def _order_zero(self, op: str, data: tuple[object, ...], w: int, x: Sequence[str]) -> str:
        """Return the function itself, of the coefficients of order zero."""
        t = self.text
        if op == "div":
            return t.op("fdiv", w, x[0], x[1])
        if op == "angle":
            return t.library("atan2", w, x[0], x[1])
        if op in ("quad", "flow"):
            return t.library(str(data[0]), w, x[0])
        if op != "pow":
            return t.library(op, w, x[0])
        e = data[0]
        assert isinstance(e, float)
        if 2 * e != int(2 * e) or abs(e) > 8:
            return t.library("pow", w, x[0], *([t.splat_constant(e, w)]))
        out, integer_exponent = None, int(abs(e))
        for _ in range(integer_exponent):
            out = x[0] if out is None else t.op("fmul", w, out, x[0])
        if integer_exponent != abs(e):
            root = t.call("sqrt", w, x[0])
            out = root if out is None else t.op("fmul", w, out, root)
        assert out is not None
        return out if e > 0 else t.op("fdiv", w, t.splat_constant(1.0, w), out)

    def _higher_order(self, g: int, k: int, operands: Sequence[CoefficientSeries]) -> Chunks:
        members, (w, _) = self.groups[g], self.widths[g]
        node, a, result_series = self.nodes[members[0]], operands[0], self.own_series(g)

        def integrated(total: Chunks, sign: float = 1.0) -> Chunks:
            return None if total is None else [self.divided_by(w, v, float(k), sign) for v in total]

        def divided(total: Chunks, d: CoefficientSeries) -> Chunks:
            return self.elementwise(g, total, [self.divided_by(w, x, float(k)) for x in self.inverse(g, d)])

        if node.op == "div":  # q_k = (a_k - sum b_j q_(k-j))/b_0
            b = operands[1]
            terms = [(max(j, k - j), b.scaled(-1.0, j), result_series(k - j)) for j in range(1, k + 1)]
            return self.elementwise(g, self.sum_products(self.widths[g], terms, a(k)), self.inverse(g, b))
        if node.op == "pow":
            return self._power(g, a, float(node.data[0]), k)
        if node.op in ("exp", "flow", "sin", "cos", "sinh", "cosh"):  # n' = w a'
            derivative = result_series if node.op == "exp" else operands[1] if node.op == "flow" else None
            if derivative is None:
                derivative = self.operand_series(g, [self.field.cofunction(n) for n in members])
            terms = [(max(j, k - j), a.scaled(float(j), j), derivative(k - j)) for j in range(1, k + 1)]
            return integrated(self.sum_products(self.widths[g], terms), -1.0 if node.op == "cos" else 1.0)
        if node.op == "quad":  # k n_k d_0 = k a_k - sum j n_j d_(k-j)
            d = operands[1]
            terms = [(max(j, k - j), result_series.scaled(-float(j), j), d(k - j)) for j in range(1, k)]
            return divided(self.sum_products(self.widths[g], terms, a.scaled(float(k), k)), d)
        y, x, d = operands  # k n_k d_0 = sum j (y_j x_(k-j) - x_j y_(k-j)) - sum j n_j d_(k-j)
        terms = [(max(j, k - j), result_series.scaled(-float(j), j), d(k - j)) for j in range(1, k)]
        for j in range(1, k + 1):
            terms.append((max(j, k - j), y.scaled(float(j), j), x(k - j)))
            terms.append((max(j, k - j), x.scaled(-float(j), j), y(k - j)))
        return divided(self.sum_products(self.widths[g], terms), d)

    # -- powers -------------------------------------------------------------------------------------------------------
    def _power(self, g: int, a: CoefficientSeries, e: float, k: int) -> Chunks:
        """Return ``p = a^e``: k a_0 p_k = sum (e (k-j) - j) a_(k-j) p_j. Roots and reciprocals need fewer products."""
        result_series, (w, _) = self.own_series(g), self.widths[g]
        if e == 0.5:  # 2 p_0 p_k = a_k - sum p_j p_(k-j)
            terms: list[Term] = [
                (k - j, result_series.scaled(-2.0, j), result_series(k - j)) for j in range(1, (k + 1) // 2)
            ]
            if k % 2 == 0:
                terms.append((k // 2, result_series.scaled(-1.0, k // 2), result_series(k // 2)))
            return self.elementwise(
                g, self.sum_products(self.widths[g], terms, a(k)), self.inverse(g, result_series, 0.5)
            )
        if e == -1.0:
            terms = [(max(j, k - j), a.scaled(-1.0, j), result_series(k - j)) for j in range(1, k + 1)]
            return self.elementwise(g, self.sum_products(self.widths[g], terms), self.inverse(g, a))
        if w == 1:
            return self._single_power(g, a, e, k)
        terms = []
        for j in range(k):
            terms.append((max(k - j, j), a.scaled(e * (k - j), k - j), result_series(j)))
            if j:
                terms.append((max(k - j, j), a.scaled(-1.0, k - j), result_series.scaled(float(j), j)))
        return self.elementwise(
            g, self.sum_products(self.widths[g], terms), [self.divided_by(w, x, float(k)) for x in self.inverse(g, a)]
        )

    def _single_power(self, g: int, a: CoefficientSeries, e: float, k: int) -> Chunks:
        """Return a single power, which is on the critical path: both sums in the two lanes of one vector.

        The latest two terms are divided by k a_0 beforehand: one operation leads from p_(k-1) to p_k.
        """
        t, result_series = self.text, self.own_series(g)
        (inverse,) = self.inverse(g, a)

        def a_factors(i: int) -> Chunks:  # (e i a_i, -a_i)
            x = a(i)
            return None if x is None else [t.op("fmul", 2, t.broadcast(x[0], 2), t.constant([e * i, -1.0]))]

        def p_factors(j: int) -> Chunks:  # (p_j, j p_j)
            p = result_series(j)
            return None if p is None else [t.op("fmul", 2, t.broadcast(p[0], 2), t.constant([1.0, float(j)]))]

        pairs = [(max(j, k - j), a_factors(k - j), p_factors(j)) for j in range(1, k - 1)]
        early_terms = sorted(
            ((i, x[0], y[0]) for i, x, y in pairs if x is not None and y is not None), key=lambda x: x[0]
        )
        parts: list[str | None] = [None] * min(CHAINS, max(1, len(early_terms) // 3))
        for i, (_, x, y) in enumerate(early_terms):
            parts[i % len(parts)] = t.fma(2, x, y, parts[i % len(parts)])
        paired_sums, total = self.add_all(2, parts), None
        if paired_sums is not None:
            total = t.op(
                "fmul",
                1,
                t.op("fadd", 1, t.lane(2, paired_sums, 0), t.lane(2, paired_sums, 1)),
                self.divided_by(1, inverse, k),
            )
        a1, p_last, a_newest, p0 = a(1), result_series(k - 1), a(k), result_series(0)
        if k > 1 and a1 is not None and p_last is not None:
            relative = t.op("fmul", 1, a1[0], inverse)
            total = t.fma(1, self.rational(1, relative, [e - (k - 1)], float(k)), p_last[0], total)
        if a_newest is not None and p0 is not None:
            rate = t.op("fmul", 1, t.op("fmul", 1, p0[0], inverse), t.splat_constant(e, 1))
            total = t.fma(1, a_newest[0], rate, total)
        return None if total is None else [total]
