"""Native code for sequences of kicks and drifts of all planets in SIMD lanes."""

from __future__ import annotations

from collections.abc import Sequence

from livens.engine.native import Code, compile_function
from livens.engine.series.vectors import Vectors
from livens.schemes.kepler_maps import ANY, QUICK, SETTLED, SHORT, KeplerMaps, Motion, rows

_ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'


def lanes_for(planets: int) -> int:
    """Return the number of lanes for all planets: a power of two, which native code splits into registers."""
    return max(2, 1 << (planets - 1).bit_length())


def row_names(planets: int) -> list[str]:
    """Return the names of the constant rows that the kernel reads, in their order."""
    return list(rows(1.0, [1.0] * (planets + 1)))


class Lanes:
    """Algebra of emitted vectors with one lane per planet."""

    def __init__(self, text: Vectors, lanes: int) -> None:
        self.text, self.lanes = text, lanes

    def constant(self, number: float) -> Lane:
        return Lane(self, self.text.filled(number, self.lanes))

    def fma(self, a: Lane, b: Lane, c: Lane) -> Lane:
        return Lane(self, self.text.fma(self.lanes, a.name, b.name, c.name))

    def sqrt(self, a: Lane) -> Lane:
        return Lane(self, self.text.call("sqrt", self.lanes, a.name))

    def absolute(self, a: Lane) -> Lane:
        return Lane(self, self.text.call("fabs", self.lanes, a.name))

    def picked(self, a: Lane, places: Sequence[int]) -> Lane:
        return Lane(self, self.text.shuffle(self.lanes, a.name, "poison", places))

    def load(self, pointer: str, row: int) -> Lane:
        return Lane(self, self.text.load(self.lanes, pointer, self.lanes * row))


class Lane:
    """Emitted vector with one lane per planet."""

    def __init__(self, of: Lanes, name: str) -> None:
        self.of, self.name = of, name

    def _made(self, operation: str, other: Lane) -> Lane:
        return Lane(self.of, self.of.text.op(operation, self.of.lanes, self.name, other.name))

    def __add__(self, other: Lane) -> Lane:
        return self._made("fadd", other)

    def __sub__(self, other: Lane) -> Lane:
        return self._made("fsub", other)

    def __mul__(self, other: Lane) -> Lane:
        return self._made("fmul", other)

    def __truediv__(self, other: Lane) -> Lane:
        return self._made("fdiv", other)

    def __neg__(self) -> Lane:
        return Lane(self.of, self.of.text.negative(self.of.lanes, self.name))


class _Writer:
    """Writer of ``advance(state, pairs, count, stride, numbers)``: a sequence of pairs of a kick and a drift.

    `stride` is the distance of the pairs in memory; a stride of 0 repeats one pair. The function returns the number of
    completed pairs, which is smaller than `count` if Kepler's equation does not converge.
    """

    def __init__(self, planets: int, dimension: int) -> None:
        self.text = Vectors()
        self.dimension, self.lanes = dimension, lanes_for(planets)
        self.do = Lanes(self.text, self.lanes)
        self.names = row_names(planets)
        place = {name: i for i, name in enumerate(self.names)}
        apart = self.text.constant([0.0] * planets + [1.0] * (self.lanes - planets))

        def row(name: str) -> Lane:
            return self.do.load("%K", place[name])

        self.maps = KeplerMaps(planets, self.do, row, None if planets == self.lanes else Lane(self.do, apart))

    def _splat(self, number: str) -> Lane:
        return Lane(self.do, self.text.spread(number, self.lanes))

    def _block(self, label: str) -> None:
        self.text.lines.append(f"{label}:")
        self.text.known = {}

    def _state(self) -> tuple[list[Lane], list[Lane]]:
        d = self.dimension
        both = [self.do.load("%s", i) for i in range(2 * d)]
        return both[:d], both[d:]

    def _stored(self, values: Sequence[Lane], first: int = 0) -> None:
        for i, value in enumerate(values):
            self.text.store(self.lanes, value.name, "%s", self.lanes * (first + i))

    def _all(self, a: Lane, b: Lane) -> str:
        """Return True if a <= b in all lanes."""
        t, w = self.text, self.lanes
        bits = t.value(f"fcmp ole <{w} x double> {a.name}, {b.name}")
        t.declared.add(f"declare i1 @llvm.vector.reduce.and.v{w}i1(<{w} x i1>)")
        return t.value(f"call i1 @llvm.vector.reduce.and.v{w}i1(<{w} x i1> {bits})")

    def _settled(self, motion: Motion, quick: bool) -> str:
        do = self.do
        small = self._all(do.absolute(motion.correction), do.absolute(motion.unknown) * do.constant(SETTLED))
        if not quick:
            return small
        short = self._all(do.absolute(motion.argument), do.constant(SHORT))
        return self.text.value(f"and i1 {small}, {short}")

    def write(self) -> str:
        t, lines = self.text, self.text.lines
        lines += ["%any = icmp sgt i64 %n, 0", "br i1 %any, label %head, label %done"]
        lines += ["head:", "%i = phi i64 [0, %entry], [%next, %tail]"]
        at = t.raw("mul i64 %i, %stride")
        first = t.raw(f"getelementptr double, ptr %c, i64 {at}")
        second = t.raw(f"getelementptr double, ptr {first}, i64 1")
        kick = t.raw(f"load double, ptr {first}, align 8")
        drift = t.raw(f"load double, ptr {second}, align 8")
        still = t.raw(f"fcmp oeq double {kick}, {t.zero(1)}")
        lines.append(f"br i1 {still}, label %kicked, label %kick")
        self._block("kick")
        r, v = self._state()
        self._stored(self.maps.kick(r, v, self._splat(kick)), self.dimension)
        lines.append("br label %kicked")
        self._block("kicked")
        for label, kind, after in (("quick", QUICK, "slow"), ("slow", ANY, "failed")):
            lines.append(f"br label %{label}") if label == "quick" else None
            self._block(label)
            r, v = self._state()
            motion = self.maps.drift(r, v, self._splat(drift), kind)
            good = self._settled(motion, label == "quick")
            lines.append(f"br i1 {good}, label %{label}.done, label %{after}")
            lines.append(f"{label}.done:")
            self._stored([*motion.r, *motion.v])
            lines.append("br label %tail")
        lines += ["failed:", "ret i64 %i", "tail:", "%next = add i64 %i, 1", "%more = icmp slt i64 %next, %n"]
        lines += ["br i1 %more, label %head, label %done", "done:", "ret i64 %n"]
        return "\n".join(lines)


#: Loop over output rows: first pair of a step, repeated middle pair, last pair; copy of the state; final pairs on the
#: copy. Returns the number of completed rows.
_ROWS = """
define i64 @rows(ptr %s, ptr %c, i64 %n, ptr %e, i64 %m, ptr %K, ptr %states, ptr %out, i64 %size, i64 %rows) #0 {
entry:
  %bytes = shl i64 %size, 3
  %middle = getelementptr double, ptr %c, i64 2
  %last = getelementptr double, ptr %c, i64 4
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %stored]
  %more = icmp slt i64 %i, %rows
  br i1 %more, label %step, label %end
step:
  %one = call i64 @advance(ptr %s, ptr %c, i64 1, i64 2, ptr %K)
  %inner = call i64 @advance(ptr %s, ptr %middle, i64 %n, i64 0, ptr %K)
  %two = call i64 @advance(ptr %s, ptr %last, i64 1, i64 2, ptr %K)
  %both = add i64 %one, %two
  %taken = add i64 %both, %inner
  %all = add i64 %n, 2
  %good = icmp eq i64 %taken, %all
  br i1 %good, label %copy, label %end
copy:
  %at = mul i64 %i, %size
  %state = getelementptr double, ptr %states, i64 %at
  %row = getelementptr double, ptr %out, i64 %at
  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr %s, i64 %bytes, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %row, ptr %s, i64 %bytes, i1 false)
  %ended = call i64 @advance(ptr %row, ptr %e, i64 %m, i64 2, ptr %K)
  %well = icmp eq i64 %ended, %m
  br i1 %well, label %stored, label %end
stored:
  %next = add i64 %i, 1
  br label %head
end:
  ret i64 %i
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def planet_code(planets: int, dimension: int) -> Code:
    """Compile ``rows`` and ``advance`` for a number of planets."""

    writer = _Writer(planets, dimension)
    body = writer.write()
    declared = "\n".join(sorted(writer.text.declared))
    header = "define i64 @advance(ptr noalias %s, ptr noalias %c, i64 %n, i64 %stride, ptr noalias %K) #0 {\nentry:\n"
    text = f"{declared}\n{header}{body}\n}}\n{_ROWS}{_ATTRIBUTES}"
    return compile_function(text, "rows")
