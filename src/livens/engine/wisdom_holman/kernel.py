"""Native code for sequences of kicks and drifts of all planets in SIMD lanes."""

from __future__ import annotations

from collections.abc import Sequence

from livens.engine.codegen.jit import NativeCode, compile_function
from livens.engine.codegen.vector_emitter import VectorEmitter
from livens.schemes.splitting.kepler_maps import (
    FAST,
    KEPLER_TOLERANCE,
    ROBUST,
    STUMPFF_LIMIT,
    KeplerDrift,
    WisdomHolmanMaps,
    jacobi_coefficients,
)

_ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'


def lane_count(planets: int) -> int:
    """Return the number of lanes for all planets: a power of two, which native code splits into registers."""
    return max(2, 1 << (planets - 1).bit_length())


def row_names(planets: int) -> list[str]:
    """Return the names of the constant rows that the kernel reads, in their order."""
    return list(jacobi_coefficients(1.0, [1.0] * (planets + 1)))


class LaneAlgebra:
    """Algebra of emitted vectors with one lane per planet."""

    def __init__(self, text: VectorEmitter, lanes: int) -> None:
        self.text, self.lanes = text, lanes

    def constant(self, value: float) -> LaneValue:
        return LaneValue(self, self.text.splat_constant(value, self.lanes))

    def fma(self, a: LaneValue, b: LaneValue, c: LaneValue) -> LaneValue:
        return LaneValue(self, self.text.fma(self.lanes, a.name, b.name, c.name))

    def sqrt(self, a: LaneValue) -> LaneValue:
        return LaneValue(self, self.text.call("sqrt", self.lanes, a.name))

    def absolute(self, a: LaneValue) -> LaneValue:
        return LaneValue(self, self.text.call("fabs", self.lanes, a.name))

    def gather(self, a: LaneValue, indices: Sequence[int]) -> LaneValue:
        return LaneValue(self, self.text.shuffle(self.lanes, a.name, "poison", indices))

    def load(self, pointer: str, row: int) -> LaneValue:
        return LaneValue(self, self.text.load(self.lanes, pointer, self.lanes * row))


class LaneValue:
    """Emitted vector with one lane per planet."""

    def __init__(self, algebra: LaneAlgebra, name: str) -> None:
        self.algebra, self.name = algebra, name

    def _binary(self, operation: str, other: LaneValue) -> LaneValue:
        return LaneValue(self.algebra, self.algebra.text.op(operation, self.algebra.lanes, self.name, other.name))

    def __add__(self, other: LaneValue) -> LaneValue:
        return self._binary("fadd", other)

    def __sub__(self, other: LaneValue) -> LaneValue:
        return self._binary("fsub", other)

    def __mul__(self, other: LaneValue) -> LaneValue:
        return self._binary("fmul", other)

    def __truediv__(self, other: LaneValue) -> LaneValue:
        return self._binary("fdiv", other)

    def __neg__(self) -> LaneValue:
        return LaneValue(self.algebra, self.algebra.text.fneg(self.algebra.lanes, self.name))


class _KickDriftWriter:
    """Writer of ``advance(state, pairs, count, stride, numbers)``: a sequence of pairs of a kick and a drift.

    `stride` is the distance of the pairs in memory; a stride of 0 repeats one pair. The function returns the number of
    completed pairs, which is smaller than `count` if Kepler's equation does not converge.
    """

    def __init__(self, planets: int, dimension: int) -> None:
        self.text = VectorEmitter()
        self.dimension, self.lanes = dimension, lane_count(planets)
        self.algebra = LaneAlgebra(self.text, self.lanes)
        self.names = row_names(planets)
        row_index = {name: i for i, name in enumerate(self.names)}
        padding = self.text.constant([0.0] * planets + [1.0] * (self.lanes - planets))

        def row(name: str) -> LaneValue:
            return self.algebra.load("%K", row_index[name])

        self.maps = WisdomHolmanMaps(
            planets, self.algebra, row, None if planets == self.lanes else LaneValue(self.algebra, padding)
        )

    def _broadcast(self, number: str) -> LaneValue:
        return LaneValue(self.algebra, self.text.broadcast(number, self.lanes))

    def _block(self, label: str) -> None:
        self.text.lines.append(f"{label}:")
        self.text.emitted = {}

    def _state(self) -> tuple[list[LaneValue], list[LaneValue]]:
        d = self.dimension
        state = [self.algebra.load("%s", i) for i in range(2 * d)]
        return state[:d], state[d:]

    def _store(self, values: Sequence[LaneValue], offset: int = 0) -> None:
        for i, value in enumerate(values):
            self.text.store(self.lanes, value.name, "%s", self.lanes * (offset + i))

    def _all(self, a: LaneValue, b: LaneValue) -> str:
        """Return True if a <= b in all lanes."""
        t, w = self.text, self.lanes
        bits = t.emit(f"fcmp ole <{w} x double> {a.name}, {b.name}")
        t.declared.add(f"declare i1 @llvm.vector.reduce.and.v{w}i1(<{w} x i1>)")
        return t.emit(f"call i1 @llvm.vector.reduce.and.v{w}i1(<{w} x i1> {bits})")

    def _kepler_converged(self, motion: KeplerDrift, fast: bool) -> str:
        algebra = self.algebra
        small = self._all(
            algebra.absolute(motion.correction), algebra.absolute(motion.unknown) * algebra.constant(KEPLER_TOLERANCE)
        )
        if not fast:
            return small
        short = self._all(algebra.absolute(motion.argument), algebra.constant(STUMPFF_LIMIT))
        return self.text.emit(f"and i1 {small}, {short}")

    def write(self) -> str:
        t, lines = self.text, self.text.lines
        lines += ["%any = icmp sgt i64 %n, 0", "br i1 %any, label %head, label %done"]
        lines += ["head:", "%i = phi i64 [0, %entry], [%next, %tail]"]
        offset = t.emit_new("mul i64 %i, %stride")
        kick_address = t.emit_new(f"getelementptr double, ptr %c, i64 {offset}")
        drift_address = t.emit_new(f"getelementptr double, ptr {kick_address}, i64 1")
        kick = t.emit_new(f"load double, ptr {kick_address}, align 8")
        drift = t.emit_new(f"load double, ptr {drift_address}, align 8")
        no_kick = t.emit_new(f"fcmp oeq double {kick}, {t.zero(1)}")
        lines.append(f"br i1 {no_kick}, label %kicked, label %kick")
        self._block("kick")
        r, v = self._state()
        self._store(self.maps.kick(r, v, self._broadcast(kick)), self.dimension)
        lines.append("br label %kicked")
        self._block("kicked")
        for label, solver, after in (("quick", FAST, "slow"), ("slow", ROBUST, "failed")):
            lines.append(f"br label %{label}") if label == "quick" else None
            self._block(label)
            r, v = self._state()
            motion = self.maps.drift(r, v, self._broadcast(drift), solver)
            converged = self._kepler_converged(motion, label == "quick")
            lines.append(f"br i1 {converged}, label %{label}.done, label %{after}")
            lines.append(f"{label}.done:")
            self._store([*motion.r, *motion.v])
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


def wisdom_holman_kernel(planets: int, dimension: int) -> NativeCode:
    """Compile ``rows`` and ``advance`` for a number of planets."""

    writer = _KickDriftWriter(planets, dimension)
    body = writer.write()
    declared = "\n".join(sorted(writer.text.declared))
    header = "define i64 @advance(ptr noalias %s, ptr noalias %c, i64 %n, i64 %stride, ptr noalias %K) #0 {\nentry:\n"
    text = f"{declared}\n{header}{body}\n}}\n{_ROWS}{_ATTRIBUTES}"
    return compile_function(text, "rows")
