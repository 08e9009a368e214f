"""Taylor coefficients of elementary operations, group by group (Jorba and Zou, Experimental Mathematics 14, 2005)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from livens.engine.series.vectors import Vectors, width_for
from livens.expressions.graph.alike import groups
from livens.expressions.graph.constants import Constants, Factor
from livens.expressions.graph.elementary import Field

#: Number of independent chains in a sum of many products.
CHAINS = 3
#: Vectors of a group; None if all of them vanish.
Chunks = Sequence[str] | None
#: Product in a sum: the order at which it is available, and its factors.
Term = tuple[int, Chunks, Chunks]


class Series:
    """Taylor coefficients of one operand, arranged in the lanes of its user."""

    def __init__(self, text: Vectors, width: int, coefficient: Callable[[int], Chunks]) -> None:
        self._text, self._width, self._coefficient = text, width, coefficient
        self._scaled: dict[tuple[int, float], Sequence[str]] = {}

    def __call__(self, k: int) -> Chunks:
        return self._coefficient(k)

    def times(self, factor: float, k: int) -> Chunks:
        """Return coefficient k times a number, emitted once."""
        chunks = self(k)
        if chunks is None or factor == 0.0:
            return None
        if factor == 1.0:
            return chunks
        if (k, factor) not in self._scaled:
            t, w = self._text, self._width
            if factor == -1.0:
                self._scaled[k, factor] = [t.negative(w, v) for v in chunks]
            else:
                self._scaled[k, factor] = [t.op("fmul", w, v, t.filled(factor, w)) for v in chunks]
        return self._scaled[k, factor]


class Recurrences:
    """Emitter of the Taylor coefficients of all groups of a field, order by order.

    Factors that depend on parameters are loaded from ``%K`` as vectors; `constants` lists them.
    """

    def __init__(self, field: Field, order: int, alone: bool = False) -> None:
        self.field, self.order, self.text = field, order, Vectors()
        self.nodes, self.groups = field.nodes, groups(field, alone)
        self.place: dict[int, tuple[int, int]] = {}
        self.widths: list[tuple[int, int]] = []  # vector width and number of vectors of every group
        for g, members in enumerate(self.groups):
            self.place |= {n: (g, lane) for lane, n in enumerate(members)}
            w = width_for(len(members))
            self.widths.append((w, -(-len(members) // w)))
        self.series: list[list[Chunks]] = [[] for _ in self.groups]
        self.states = [g for g, members in enumerate(self.groups) if self.nodes[members[0]].op == "var"]
        self.constants: list[Factor] = []
        self._algebra = Constants()
        self._vectors: dict[tuple[Factor, ...], int] = {}
        self._series: dict[tuple[int, tuple[int, ...], int], Series] = {}
        self._gathered: dict[tuple[tuple[int, ...], int, int], Chunks] = {}
        self._once: dict[tuple[str, int], Sequence[str]] = {}

    # -- constants ----------------------------------------------------------------------------------------------------
    def factors(self, w: int, given: Sequence[Factor]) -> str:
        """Return a vector of factors: literals, or loaded from memory if they depend on parameters."""
        if all(isinstance(c, float) for c in given):
            return self.text.constant([c for c in given if isinstance(c, float)])
        key = tuple(given)
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

    def over(self, w: int, v: str, divisor: float, sign: float = 1.0) -> str:
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
        if all(self.series[self.place[n][0]][k] is None for n in names):
            return None
        lanes = []
        for n in names:
            g, lane = self.place[n]
            found, width = self.series[g][k], self.widths[g][0]
            lanes.append((t.zero(1), 1, 0) if found is None else (found[lane // width], width, lane % width))
        return [t.picked(lanes[i : i + w]) for i in range(0, len(lanes), w)]

    def operand(self, g: int, slot: int) -> Series:
        """Return the operands of a group in one argument slot."""
        return self.of(g, [self.nodes[n].arguments[slot] for n in self.groups[g]])

    def of(self, g: int, names: Sequence[int], shape: tuple[int, int] | None = None) -> Series:
        """Return the coefficients of operations in the lanes of group g."""
        w, chunks = shape or self.widths[g]
        key = (g, tuple(names), w)
        if key not in self._series:
            self._series[key] = Series(self.text, w, lambda k: self.gather(names, k, w, chunks))
        return self._series[key]

    def own(self, g: int) -> Series:
        key = (g, (), 0)
        if key not in self._series:
            self._series[key] = Series(self.text, self.widths[g][0], lambda k: self.series[g][k])
        return self._series[key]

    def once(self, what: str, g: int, write: Callable[[], Sequence[str]]) -> Sequence[str]:
        """Return a value shared by all coefficients of a group."""
        if (what, g) not in self._once:
            self._once[what, g] = write()
        return self._once[what, g]

    def inverse(self, g: int, a: Series, number: float = 1.0) -> Sequence[str]:
        """Return ``number / a_0``."""
        t, w = self.text, self.widths[g][0]
        first = a(0)
        assert first is not None
        return self.once(f"{number} over", g, lambda: [t.op("fdiv", w, t.filled(number, w), x) for x in first])

    # -- sums ---------------------------------------------------------------------------------------------------------
    def sum(self, shape: tuple[int, int], given: Sequence[Term], start: Chunks = None) -> Chunks:
        """Sum products: early terms in several independent chains, the latest terms last."""
        w, chunks = shape
        terms = sorted(((when, a, b) for when, a, b in given if a is not None and b is not None), key=lambda x: x[0])
        if not terms:
            return start
        newest = terms[-1][0]
        early, late = ([x for x in terms if (x[0] < newest - 1) == first] for first in (True, False))
        many = 1 if chunks > 1 and len(early) < 8 else min(CHAINS, max(1, len(early) // 3))
        out = []
        for c in range(chunks):
            parts: list[str | None] = [None] * many
            parts[0] = None if start is None else start[c]
            for i, (_, a, b) in enumerate(early):
                parts[i % many] = self.text.fma(w, a[c], b[c], parts[i % many])
            total = self.added(w, parts)
            for _, a, b in late:
                total = self.text.fma(w, a[c], b[c], total)
            assert total is not None
            out.append(total)
        return out

    def added(self, w: int, parts: Sequence[str | None]) -> str | None:
        total = None
        for part in parts:
            if part is not None:
                total = part if total is None else self.text.op("fadd", w, total, part)
        return total

    @staticmethod
    def product(a: Series, b: Series, k: int) -> list[Term]:
        """Return the terms of coefficient k of a product; a square needs half of them."""
        if a is b:
            terms: list[Term] = [(k - j, a.times(2.0, j), a(k - j)) for j in range((k + 1) // 2)]
            return terms + ([(k // 2, a(k // 2), a(k // 2))] if k % 2 == 0 else [])
        return [(max(j, k - j), a(j), b(k - j)) for j in range(k + 1)]

    def each(self, g: int, a: Chunks, b: Sequence[str]) -> Chunks:
        w = self.widths[g][0]
        return None if a is None else [self.text.op("fmul", w, x, y) for x, y in zip(a, b, strict=True)]

    # -- coefficients -------------------------------------------------------------------------------------------------
    def coefficient(self, g: int, k: int) -> Chunks:
        """Return coefficient k of all operations of a group."""
        node, (w, _) = self.nodes[self.groups[g][0]], self.widths[g]
        if node.op == "var":
            return self._variable(g, k)
        if node.op == "time":
            return [self.text.filled(1.0, 1)] if k == 1 else None
        if node.op == "lin":
            return self._linear(g, k)
        if node.op in ("mul", "dot"):
            return self._products(g, k)
        operands = [self.operand(g, slot) for slot in range(len(node.arguments))]
        if k == 0:
            known = [chunks or [self.text.zero(w)] * self.widths[g][1] for chunks in (a(0) for a in operands)]
            return [self._first(node.op, node.data, w, x) for x in zip(*known, strict=True)]
        return self._function(g, k, operands)

    def _variable(self, g: int, k: int) -> Chunks:
        """Return coefficient k of ``x' = c n``; coordinates use ``q'' = c n``, which does not wait for velocities."""
        w, chunks = self.widths[g]
        pairs = [self.field.rate(self.nodes[n].data[0]) for n in self.groups[g]]
        back, divisor = 1, float(k)
        if k > 1 and all(self.nodes[rate].op == "var" for rate, _ in pairs):
            second = [self.field.rate(self.nodes[rate].data[0]) for rate, _ in pairs]
            back, divisor = 2, k * (k - 1.0)
            pairs = [(n, self._algebra.times(a, b)) for (_, a), (n, b) in zip(pairs, second, strict=True)]
        values = self.gather([n for n, _ in pairs], k - back, w, chunks)
        if values is None:
            return None
        given = [c for _, c in pairs]
        given += [given[0]] * (w * chunks - len(given))
        out = []
        for c, v in enumerate(values):
            here = given[c * w : (c + 1) * w]
            if all(isinstance(x, float) for x in here):
                out.append(self.rational(w, v, [x for x in here if isinstance(x, float)], divisor))
            else:
                out.append(self.over(w, self.text.op("fmul", w, v, self.factors(w, here)), divisor))
        return out

    def _linear(self, g: int, k: int) -> Chunks:
        """Return sums with constant factors, term by term."""
        (w, chunks), members, t = self.widths[g], self.groups[g], self.text
        padded = [self.nodes[n] for n in (*members, *[members[0]] * (w * chunks - len(members)))]
        out: list[str | None] = [None] * chunks
        for i in range(len(padded[0].arguments)):
            values = self.gather([self.nodes[n].arguments[i] for n in members], k, w, chunks)
            for c, v in enumerate(values or ()):
                here, so_far = [node.data[0][i] for node in padded[c * w : (c + 1) * w]], out[c]
                if so_far is None:
                    out[c] = v if set(here) == {1.0} else t.op("fmul", w, v, self.factors(w, here))
                elif set(here) in ({1.0}, {-1.0}):
                    out[c] = t.op("fadd" if here[0] == 1.0 else "fsub", w, so_far, v)
                else:
                    out[c] = t.fma(w, v, self.factors(w, here), so_far)
        if k == 0:
            for c in range(chunks):
                here, so_far = [node.data[1] for node in padded[c * w : (c + 1) * w]], out[c]
                if so_far is None:
                    out[c] = self.factors(w, here)
                elif any(x != 0.0 for x in here):
                    out[c] = t.op("fadd", w, so_far, self.factors(w, here))
        return None if out[0] is None else [v for v in out if v is not None]

    def _products(self, g: int, k: int) -> Chunks:
        """Return ``a b``, or ``a1 b1 + a2 b2 + ...`` in one sum."""
        members = self.groups[g]
        arguments = self.nodes[members[0]].arguments
        pairs = len(arguments) // 2
        if len(members) == 1 and pairs > 1 and len({self.place[a][0] for a in arguments}) == 1:
            return self._across(g, arguments[::2], arguments[1::2], k)
        terms: list[Term] = []
        for i in range(0, 2 * pairs, 2):
            terms += self.product(self.operand(g, i), self.operand(g, i + 1), k)
        return self.sum(self.widths[g], terms)

    def _across(self, g: int, left: Sequence[int], right: Sequence[int], k: int) -> Chunks:
        """Return one sum of products, with the products in SIMD lanes."""
        w = width_for(len(left))
        shape = (w, -(-len(left) // w))
        total = self.sum(shape, self.product(self.of(g, left, shape), self.of(g, right, shape), k))
        if total is None:
            return None
        lanes: list[str | None] = [self.text.lane(w, total[i // w], i % w) for i in range(len(left))]
        found = self.added(1, lanes)
        return None if found is None else [found]

    def _first(self, op: str, data: tuple[object, ...], w: int, x: Sequence[str]) -> str:
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
            return t.library("pow", w, x[0], *([t.filled(e, w)]))
        out, whole = None, int(abs(e))
        for _ in range(whole):
            out = x[0] if out is None else t.op("fmul", w, out, x[0])
        if whole != abs(e):
            root = t.call("sqrt", w, x[0])
            out = root if out is None else t.op("fmul", w, out, root)
        assert out is not None
        return out if e > 0 else t.op("fdiv", w, t.filled(1.0, w), out)

    def _function(self, g: int, k: int, operands: Sequence[Series]) -> Chunks:
        members, (w, _) = self.groups[g], self.widths[g]
        node, a, own = self.nodes[members[0]], operands[0], self.own(g)

        def integrated(total: Chunks, sign: float = 1.0) -> Chunks:
            return None if total is None else [self.over(w, v, float(k), sign) for v in total]

        def divided(total: Chunks, d: Series) -> Chunks:
            return self.each(g, total, [self.over(w, x, float(k)) for x in self.inverse(g, d)])

        if node.op == "div":  # q_k = (a_k - sum b_j q_(k-j))/b_0
            b = operands[1]
            terms = [(max(j, k - j), b.times(-1.0, j), own(k - j)) for j in range(1, k + 1)]
            return self.each(g, self.sum(self.widths[g], terms, a(k)), self.inverse(g, b))
        if node.op == "pow":
            return self._power(g, a, float(node.data[0]), k)
        if node.op in ("exp", "flow", "sin", "cos", "sinh", "cosh"):  # n' = w a'
            slope = own if node.op == "exp" else operands[1] if node.op == "flow" else None
            if slope is None:
                slope = self.of(g, [self.field.partner(n) for n in members])
            terms = [(max(j, k - j), a.times(float(j), j), slope(k - j)) for j in range(1, k + 1)]
            return integrated(self.sum(self.widths[g], terms), -1.0 if node.op == "cos" else 1.0)
        if node.op == "quad":  # k n_k d_0 = k a_k - sum j n_j d_(k-j)
            d = operands[1]
            terms = [(max(j, k - j), own.times(-float(j), j), d(k - j)) for j in range(1, k)]
            return divided(self.sum(self.widths[g], terms, a.times(float(k), k)), d)
        y, x, d = operands  # k n_k d_0 = sum j (y_j x_(k-j) - x_j y_(k-j)) - sum j n_j d_(k-j)
        terms = [(max(j, k - j), own.times(-float(j), j), d(k - j)) for j in range(1, k)]
        for j in range(1, k + 1):
            terms.append((max(j, k - j), y.times(float(j), j), x(k - j)))
            terms.append((max(j, k - j), x.times(-float(j), j), y(k - j)))
        return divided(self.sum(self.widths[g], terms), d)

    # -- powers -------------------------------------------------------------------------------------------------------
    def _power(self, g: int, a: Series, e: float, k: int) -> Chunks:
        """Return ``p = a^e``: k a_0 p_k = sum (e (k-j) - j) a_(k-j) p_j. Roots and reciprocals need fewer products."""
        own, (w, _) = self.own(g), self.widths[g]
        if e == 0.5:  # 2 p_0 p_k = a_k - sum p_j p_(k-j)
            terms: list[Term] = [(k - j, own.times(-2.0, j), own(k - j)) for j in range(1, (k + 1) // 2)]
            if k % 2 == 0:
                terms.append((k // 2, own.times(-1.0, k // 2), own(k // 2)))
            return self.each(g, self.sum(self.widths[g], terms, a(k)), self.inverse(g, own, 0.5))
        if e == -1.0:
            terms = [(max(j, k - j), a.times(-1.0, j), own(k - j)) for j in range(1, k + 1)]
            return self.each(g, self.sum(self.widths[g], terms), self.inverse(g, a))
        if w == 1:
            return self._single_power(g, a, e, k)
        terms = []
        for j in range(k):
            terms.append((max(k - j, j), a.times(e * (k - j), k - j), own(j)))
            if j:
                terms.append((max(k - j, j), a.times(-1.0, k - j), own.times(float(j), j)))
        return self.each(g, self.sum(self.widths[g], terms), [self.over(w, x, float(k)) for x in self.inverse(g, a)])

    def _single_power(self, g: int, a: Series, e: float, k: int) -> Chunks:
        """Return a single power, which is on the critical path: both sums in the two lanes of one vector.

        The latest two terms are divided by k a_0 beforehand: one operation leads from p_(k-1) to p_k.
        """
        t, own = self.text, self.own(g)
        (inverse,) = self.inverse(g, a)

        def left(i: int) -> Chunks:  # (e i a_i, -a_i)
            x = a(i)
            return None if x is None else [t.op("fmul", 2, t.spread(x[0], 2), t.constant([e * i, -1.0]))]

        def right(j: int) -> Chunks:  # (p_j, j p_j)
            p = own(j)
            return None if p is None else [t.op("fmul", 2, t.spread(p[0], 2), t.constant([1.0, float(j)]))]

        pairs = [(max(j, k - j), left(k - j), right(j)) for j in range(1, k - 1)]
        known = sorted(((i, x[0], y[0]) for i, x, y in pairs if x is not None and y is not None), key=lambda x: x[0])
        parts: list[str | None] = [None] * min(CHAINS, max(1, len(known) // 3))
        for i, (_, x, y) in enumerate(known):
            parts[i % len(parts)] = t.fma(2, x, y, parts[i % len(parts)])
        both, total = self.added(2, parts), None
        if both is not None:
            total = t.op("fmul", 1, t.op("fadd", 1, t.lane(2, both, 0), t.lane(2, both, 1)), self.over(1, inverse, k))
        slope, last, newest, first = a(1), own(k - 1), a(k), own(0)
        if k > 1 and slope is not None and last is not None:
            relative = t.op("fmul", 1, slope[0], inverse)
            total = t.fma(1, self.rational(1, relative, [e - (k - 1)], float(k)), last[0], total)
        if newest is not None and first is not None:
            rate = t.op("fmul", 1, t.op("fmul", 1, first[0], inverse), t.filled(e, 1))
            total = t.fma(1, newest[0], rate, total)
        return None if total is None else [total]
