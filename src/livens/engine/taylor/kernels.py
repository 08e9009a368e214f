"""Native code of Taylor-series steps: time loop with step-size selection, and coefficients for dense output."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.jit import NativeCode, load_or_compile
from livens.engine.codegen.vector_emitter import VectorEmitter, native_width
from livens.engine.newton.convergence import CONVERGED, DIVERGED, END_REACHED
from livens.engine.taylor.looped_recurrences import LoopedRecurrences
from livens.expressions.evaluate import Evaluator
from livens.expressions.graph.parameter_constants import coefficient_expression
from livens.expressions.graph.taylor_graph import VectorFieldGraph
from livens.progress import report_progress
from livens.schemes.taylor_equations import TaylorEquations, optimal_order

#: Smallest step size relative to the time, in units in the last place.
_MIN_ULPS = 16.0 * 2.0**-52
#: Smallest coefficient norm that limits a step.
_TINY = 1e-290
#: Allowance (base-2 logarithm) for radius estimates from coefficients before the last two.
_RADIUS_SLACK = math.log2(1.2)
_ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'


class LoopArgs(NamedTuple):
    """Arguments of the compiled loop, in memory order; fixed steps if `h` is positive."""

    h: float
    t_origin: float
    t_end: float
    land_on_end: float
    log2_step_ratio: float  # base-2 logarithm of the step size relative to the radius of convergence
    min_norm: float  # lower limit of the norm of the state
    h_max: float
    h_min: float
    max_defect: float  # largest change of the rates at the end of a step, times the step size and relative to the state


#: Lines of LLVM IR above which a lower optimization level saves a fifth of the compile time, at equal speed.
_LONG_TEXT = 10_000
_ARG_INDEX = {name: i for i, name in enumerate(LoopArgs._fields)}


class _TaylorStepWriter:
    """Writer of a Taylor step: coefficients, step size, state at its end."""

    def __init__(
        self, field: VectorFieldGraph, order: int, columns: tuple[int, ...], velocities: dict[int, int], width: int
    ):
        self.writer = LoopedRecurrences(field, order)
        self.text: VectorEmitter = self.writer.text
        self.order, self._columns, self._velocities, self._width = order, columns, velocities, width
        #: Variable of each slot of the state; padding lanes repeat the first variable of a group.
        self.slots: list[int] = []
        self._vectors: list[tuple[int, int, int]] = []  # group, index of its vector, slot of the first lane
        for g in self.writer.states:
            w, chunks = self.writer.widths[g]
            members = [field.nodes[n].data[0] for n in self.writer.groups[g]]
            self._vectors += [(g, c, len(self.slots) + c * w) for c in range(chunks)]
            self.slots += members + [members[0]] * (w * chunks - len(members))
        self._norm_groups = [
            g for g in self.writer.states if field.nodes[self.writer.groups[g][0]].data[0] < field.n_controlled
        ]

    def coefficients(self, state: str, time: str) -> None:
        """Emit all coefficients of a state in memory."""
        writer, t = self.writer, self.text
        initial: dict[int, list[str]] = {}
        for g, _, slot in self._vectors:
            initial.setdefault(g, []).append(
                t.emit_new(f"load {t.type(writer.widths[g][0])}, ptr {t.address(state, slot)}, align 8")
            )
        for g, chunks in initial.items():
            writer.store(g, 0, chunks)
        rates = {writer.field.derivative(i)[0] for i in range(len(writer.field.derivatives))}
        used = rates | {a for node in writer.nodes for a in node.arguments}
        for k in range(self.order + 1):
            for g, members in enumerate(writer.groups):
                if g in initial:
                    if k:
                        writer.store(g, k, writer.coefficient(g, k))
                elif k < self.order:
                    op = writer.nodes[members[0]].op
                    if op == "lin" and not used & set(members):
                        writer.series[g].append(None)  # its only factor is part of the rate
                    elif op == "time" and k == 0:
                        writer.series[g].append([time])
                    else:
                        writer.store(g, k, writer.coefficient(g, k))

    # -- step size ----------------------------------------------------------------------------------------------------
    def _norm(self, k: int) -> str:
        """Return the max norm of coefficient k over the variables with error control."""
        widths, series = self.writer.widths, self.writer.series
        return self._max_norm([(widths[g][0], v) for g in self._norm_groups for v in series[g][k] or ()])

    def _max_norm(self, vectors: list[tuple[int, str]]) -> str:
        """Return the largest absolute value of all entries of vectors of some widths."""
        t, by_width = self.text, dict[int, str]()
        for w, v in vectors:
            a = t.call("fabs", w, v)
            by_width[w] = a if w not in by_width else t.fmax(w, by_width[w], a)
        out = None
        for w, v in by_width.items():
            while w > 1:
                w //= 2
                low, high = (
                    t.lane(2, v, i) if w == 1 else t.shuffle(2 * w, v, "poison", range(i * w, (i + 1) * w))
                    for i in range(2)
                )
                v = t.fmax(w, low, high)
            out = v if out is None else t.fmax(1, out, v)
        return out or t.zero(1)

    def size(self) -> str:
        """Return Jorba and Zou's step: ``rho = min (|x|/|x_k|)^(1/k)`` for the last two k, times the tolerance factor.

        For a symmetric motion, such as a pendulum released at rest, both coefficients may vanish. The two coefficients
        before them then limit the radius, with an allowance.
        """
        t, N = self.text, self.order
        base = self._log2(t.fmax(1, self._norm(0), t.load(1, "%P", _ARG_INDEX["min_norm"])))
        logs = []
        for k in range(max(1, N - 3), N + 1):
            # NaN propagates: the comparison returns its second operand
            norm = t.fmax(1, t.splat_constant(_TINY, 1), self._norm(k))
            radius = t.op("fmul", 1, t.op("fsub", 1, base, self._log2(norm)), t.splat_constant(1.0 / k, 1))
            logs.append(radius if k >= N - 1 else t.op("fadd", 1, radius, t.splat_constant(_RADIUS_SLACK, 1)))
        smallest = logs[0]
        for radius in logs[1:]:
            bit = t.emit(f"fcmp olt double {radius}, {smallest}")
            smallest = t.emit(f"select i1 {bit}, double {radius}, double {smallest}")
        return self._exp2(t.op("fadd", 1, smallest, t.load(1, "%P", _ARG_INDEX["log2_step_ratio"])))

    def _log2(self, a: str) -> str:
        """Return log2 to three digits: the exponent, and a polynomial of the mantissa."""
        t = self.text
        i = t.emit(f"bitcast double {a} to i64")
        exponent = t.emit(f"sub i64 {t.emit(f'lshr i64 {i}, 52')}, 1023")
        mantissa = t.emit(f"or i64 {t.emit(f'and i64 {i}, 4503599627370495')}, 4607182418800017408")
        m = t.emit(f"bitcast i64 {mantissa} to double")
        return t.op("fadd", 1, t.emit(f"sitofp i64 {exponent} to double"), self._polynomial(_cubic(np.log2, 1.0), m))

    def _exp2(self, a: str) -> str:
        t = self.text
        integer_part = t.call("floor", 1, a)
        m = self._polynomial(_cubic(np.exp2, 0.0), t.op("fsub", 1, a, integer_part))
        i = t.emit(f"add i64 {t.emit(f'fptosi double {integer_part} to i64')}, 1023")
        return t.op("fmul", 1, m, t.emit(f"bitcast i64 {t.emit(f'shl i64 {i}, 52')} to double"))

    def _polynomial(self, c: tuple[float, ...], x: str) -> str:
        t = self.text
        square = t.op("fmul", 1, x, x)
        even = t.fma(1, t.splat_constant(c[2], 1), square, t.splat_constant(c[0], 1))
        odd = t.fma(1, t.splat_constant(c[3], 1), square, t.splat_constant(c[1], 1))
        return t.fma(1, odd, x, even)

    # -- end of the step ----------------------------------------------------------------------------------------------
    def _polynomial_increment(self, g: int, c: int, h: str) -> str:
        """Return ``sum c_k h^k`` for k > 0 by four interleaved Horner schemes in h^4, added from small to large."""
        t, w = self.text, self.writer.widths[g][0]
        p1 = t.broadcast(h, w)
        p2 = t.op("fmul", w, p1, p1)
        p4 = t.op("fmul", w, p2, p2)
        series = [None if chunks is None else chunks[c] for chunks in self.writer.series[g]]
        strands: list[str | None] = []
        for start in range(1, 5):
            v = None
            for k in reversed(range(start, self.order + 1, 4)):
                v = series[k] if v is None else t.fma(w, v, p4, series[k] or t.zero(w))
            strands.append(v)

        def join(high: str | None, power: str, low: str | None) -> str | None:
            return low if high is None else t.fma(w, high, power, low or t.zero(w))

        upper, lower = join(strands[3], p1, strands[2]), join(strands[1], p1, strands[0])
        return t.op("fmul", w, join(upper, p2, lower) or t.zero(w), p1)

    def _polynomial_rate(self, g: int, c: int, h: str) -> str:
        """Return ``sum k c_k h^(k-1)`` by four interleaved Horner schemes in h^4."""
        t, w = self.text, self.writer.widths[g][0]
        p1 = t.broadcast(h, w)
        p2 = t.op("fmul", w, p1, p1)
        p4 = t.op("fmul", w, p2, p2)
        strands = []
        for start in range(1, 5):
            v = t.zero(w)
            for k in reversed(range(start, self.order + 1, 4)):
                chunks = self.writer.series[g][k]
                term = t.zero(w) if chunks is None else t.op("fmul", w, chunks[c], t.splat_constant(float(k), w))
                v = t.fma(w, v, p4, term)
            strands.append(v)
        return t.fma(w, t.fma(w, strands[3], p1, strands[2]), p2, t.fma(w, strands[1], p1, strands[0]))

    # -- rejection of steps -------------------------------------------------------------------------------------------
    @property
    def backup_size(self) -> int:
        """Size of ``%B``: predicted rates, last state and its compensation, time and its compensation, step size."""
        return 3 * len(self.slots) + 3

    def defect(self) -> str:
        """Return the largest difference of the rates and those that the last series predicts, times the step size.

        It is relative to the state. A series does not contain what its first point does not show, such as a pulse at a
        later time: the rates at the end of the step then differ from the predicted ones.
        """
        t, slots, differences = self.text, len(self.slots), list[tuple[int, str]]()
        for g, c, slot in self._vectors:
            if g in self._norm_groups:
                w, rates = self.writer.widths[g][0], self.writer.series[g][1]
                predicted = t.emit_new(f"load {t.type(w)}, ptr {t.address('%B', slot)}, align 8")
                differences.append((w, t.op("fsub", w, t.zero(w) if rates is None else rates[c], predicted)))
        h = t.emit_new(f"load double, ptr {t.address('%B', 3 * slots + 2)}, align 8")
        size = t.fmax(1, self._norm(0), t.load(1, "%P", _ARG_INDEX["min_norm"]))
        return t.op("fdiv", 1, t.op("fmul", 1, h, self._max_norm(differences)), size)

    def back_up(self, time: str, time_low: str, h: str) -> None:
        """Store time and step size in ``%B``."""
        for i, value in enumerate((time, time_low, h)):
            self.text.store(1, value, "%B", 3 * len(self.slots) + i)

    def restore(self) -> str:
        """Restore state and time of the last step in ``%W``; return its size."""
        t, slots = self.text, len(self.slots)
        offsets = [(w, offset + slot) for w, slot in self._slot_vectors() for offset in (0, slots)]
        for w, offset in [*offsets, (1, 2 * slots), (1, 2 * slots + 1)]:
            value = t.emit_new(f"load {t.type(w)}, ptr {t.address('%B', slots + offset)}, align 8")
            t.store(w, value, "%W", offset)
        return t.emit_new(f"load double, ptr {t.address('%B', 3 * slots + 2)}, align 8")

    def _slot_vectors(self) -> list[tuple[int, int]]:
        return [(self.writer.widths[g][0], slot) for g, _, slot in self._vectors]

    def advance(self, h: str) -> None:
        """Store the state at the end of the step as a compensated sum in ``%W``, ``%Z`` and ``%M``."""
        t, slots = self.text, len(self.slots)
        for g, c, slot in self._vectors:
            w, initial = self.writer.widths[g][0], self.writer.series[g][0]
            assert initial is not None
            x = initial[c]
            compensation = t.emit_new(f"load {t.type(w)}, ptr {t.address('%W', slots + slot)}, align 8")
            change = t.op("fadd", w, self._polynomial_increment(g, c, h), compensation)
            x_next, error = self.two_sum(w, x, change)
            if g in self._norm_groups:
                t.store(w, self._polynomial_rate(g, c, h), "%B", slot)
            t.store(w, x, "%B", slots + slot)
            t.store(w, compensation, "%B", 2 * slots + slot)
            for value, pointer, offset in ((x_next, "%W", slot), (error, "%W", slots + slot), (error, "%memory", slot)):
                t.store(w, value, pointer, offset)
            for lane in range(min(w, len(self.writer.groups[g]) - c * w)):
                t.store(1, t.lane(w, x_next, lane), "%next", self._columns[self.slots[slot + lane]])

    def two_sum(self, w: int, a: str, b: str) -> tuple[str, str]:
        """Return ``a + b`` and its rounding error (TwoSum)."""
        t = self.text
        total = t.op("fadd", w, a, b)
        shifted = t.op("fsub", w, total, a)
        error = t.op("fadd", w, t.op("fsub", w, a, t.op("fsub", w, total, shifted)), t.op("fsub", w, b, shifted))
        return total, error

    def store_velocities(self) -> None:
        """Store velocities of the state, the coefficients of order one, in ``%row``."""
        t = self.text
        for variable, column in self._velocities.items():
            slot = self.slots.index(variable)
            g, c, first_slot = next(vector for vector in reversed(self._vectors) if vector[2] <= slot)
            chunks, w = self.writer.series[g][1], self.writer.widths[g][0]
            t.store(1, t.zero(1) if chunks is None else t.lane(w, chunks[c], slot - first_slot), "%row", column)


@functools.cache
def _cubic(function: np.ufunc, begin: float) -> tuple[float, ...]:
    """Return the cubic interpolant of a function at Chebyshev points of an interval of length one."""
    x = np.cos(np.pi * (np.arange(4) + 0.5) / 4) * 0.5 + begin + 0.5
    return tuple(float(c) for c in np.polyfit(x, function(x), 3)[::-1])


def _emit_loop(step: _TaylorStepWriter) -> str:
    """Return ``i64 advance(W, K, P, Z, T, M, first, most)``: at most `most` steps; the status is stored in W.

    An adaptive step is repeated with half its size if its series does not predict the rates at its end.

    W contains the state, its compensation, the time, its compensation, and the status. The coefficients at the last
    state are computed as well: its velocities are among them.
    """
    t, slots = step.text, len(step.slots)
    t.lines += [f"%row_at = mul i64 %n, {step._width}", "%row = getelementptr double, ptr %Z, i64 %row_at"]
    t.lines += [f"%next = getelementptr double, ptr %row, i64 {step._width}"]
    t.lines += [f"%memory_at = mul i64 %n, {slots + 1}", "%memory = getelementptr double, ptr %M, i64 %memory_at"]
    fixed, origin, t_end, land_on_end = (
        t.load(1, "%P", _ARG_INDEX[name]) for name in ("h", "t_origin", "t_end", "land_on_end")
    )
    is_fixed = t.emit_new(f"fcmp ogt double {fixed}, {t.zero(1)}")
    step_number = t.emit_new("add i64 %first, %n")
    grid_time = t.op("fadd", 1, origin, t.op("fmul", 1, t.emit_new(f"sitofp i64 {step_number} to double"), fixed))
    accumulated_time, time_low = (
        t.emit_new(f"load double, ptr {t.address('%W', 2 * slots + i)}, align 8") for i in range(2)
    )
    time = t.emit_new(f"select i1 {is_fixed}, double {grid_time}, double {accumulated_time}")
    step.coefficients("%W", time)
    too_large = t.emit_new(f"fcmp ogt double {step.defect()}, {t.load(1, '%P', _ARG_INDEX['max_defect'])}")
    is_adaptive = t.emit_new(f"xor i1 {is_fixed}, true")
    rejected = t.emit_new(f"and i1 %predicted, {t.emit_new(f'and i1 {is_adaptive}, {too_large}')}")
    t.lines += [f"br i1 {rejected}, label %reject, label %accept", "reject:"]
    half = t.emit_new(f"fmul double {step.restore()}, {t.splat_constant(0.5, 1)}")
    t.lines += ["%less = sub i64 %n, 1", "br label %loop", "accept:"]
    step.store_velocities()
    natural_h = step.size()
    h_max = t.load(1, "%P", _ARG_INDEX["h_max"])
    limited = t.emit_new(f"fcmp olt double %limit, {h_max}")
    h_max = t.emit_new(f"select i1 {limited}, double %limit, double {h_max}")
    too_long = t.emit_new(f"fcmp ogt double {natural_h}, {h_max}")
    natural_h = t.emit_new(f"select i1 {too_long}, double {h_max}, double {natural_h}")
    remaining = t.op("fsub", 1, t.op("fsub", 1, t_end, time), time_low)
    fits = t.emit_new(f"fcmp olt double {natural_h}, {remaining}")
    is_last = t.emit_new(f"xor i1 {fits}, true")
    h = t.emit_new(f"select i1 {is_last}, double {remaining}, double {natural_h}")
    h = t.emit_new(f"select i1 {is_fixed}, double {fixed}, double {h}")
    # conditions of an adaptive step: finite, not too short, end not reached
    units = t.op("fmul", 1, t.call("fabs", 1, time), t.splat_constant(_MIN_ULPS, 1))
    h_min = t.fmax(1, units, t.load(1, "%P", _ARG_INDEX["h_min"]))
    possible = t.emit_new(f"fcmp oge double {natural_h}, {h_min}")
    any_left = t.emit_new(f"fcmp ogt double {remaining}, {t.zero(1)}")
    lands = t.emit_new(f"fcmp one double {land_on_end}, {t.zero(1)}")
    can_step = t.emit_new(f"and i1 {t.emit_new(f'or i1 {fits}, {lands}')}, {any_left}")
    can_step = t.emit_new(f"or i1 {is_fixed}, {t.emit_new(f'and i1 {can_step}, {possible}')}")
    has_room = t.emit_new("icmp slt i64 %n, %most")
    take = t.emit_new(f"and i1 {has_room}, {can_step}")
    # the order matters: an impossible step is a failure, unless the end is reached
    failed = t.emit_new(f"select i1 {possible}, i64 {END_REACHED:d}, i64 {DIVERGED:d}")
    end_status = t.emit_new(f"select i1 {any_left}, i64 {failed}, i64 {END_REACHED:d}")
    status = t.emit_new(f"select i1 {has_room}, i64 {end_status}, i64 {CONVERGED:d}")
    t.lines += [f"br i1 {take}, label %take, label %end", "take:"]
    step.advance(h)
    step.back_up(time, time_low, h)
    t_next, t_compensation = step.two_sum(1, time, t.op("fadd", 1, h, time_low))
    no_compensation = t.emit_new(f"or i1 {is_last}, {is_fixed}")
    t_next = t.emit_new(f"select i1 {is_last}, double {t_end}, double {t_next}")
    t_compensation = t.emit_new(f"select i1 {no_compensation}, double {t.zero(1)}, double {t_compensation}")
    for value, pointer, offset in (
        (t_next, "%W", 2 * slots),
        (t_compensation, "%W", 2 * slots + 1),
        (t_compensation, "%memory", slots),
    ):
        t.store(1, value, pointer, offset)
    t.lines += ["%more = add i64 %n, 1", "%time_at = getelementptr double, ptr %T, i64 %more"]
    t.lines += [f"store double {t_next}, ptr %time_at, align 8", "br label %loop"]
    ending = (
        f"end:\n%status = sitofp i64 {status} to double\n%status_at = getelementptr double, ptr %W, i64 {2 * slots + 2}"
    )
    no_limit = t.splat_constant(math.inf, 1)
    t.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    body, declared = "\n".join(t.lines), "\n".join(sorted(t.declared))
    return (
        f"{declared}\ndefine i64 @advance({_pointers('WKPZTM')}, i64 %first, i64 %most) #0 {{\n"
        f"entry:\n%S = alloca double, i64 {max(1, step.writer.spill_size)}, align 64\n"
        f"%B = alloca double, i64 {step.backup_size}, align 64\n"
        f"call void @llvm.memset.p0.i64(ptr %B, i8 0, i64 {8 * step.backup_size}, i1 false)\nbr label %loop\n"
        f"loop:\n%n = phi i64 [0, %entry], [%more, %take], [%less, %reject]\n"
        f"%predicted = phi i1 [false, %entry], [true, %take], [false, %reject]\n"
        f"%limit = phi double [{no_limit}, %entry], [{no_limit}, %take], [{half}, %reject]\n{body}\n{ending}\n"
        f"store double %status, ptr %status_at, align 8\nret i64 %n\n}}\n{_ATTRIBUTES}"
    )


def _pointers(names: str) -> str:
    return ", ".join(f"ptr noalias %{name}" for name in names)


def _emit_coefficients(step: _TaylorStepWriter) -> str:
    """Return ``void coefficients(X, K, T, C, rows)``: coefficients of the states X at times T, by order, in C."""
    t, slots = step.text, len(step.slots)
    t.lines += [f"%row_at = mul i64 %n, {slots}", "%row = getelementptr double, ptr %X, i64 %row_at"]
    t.lines += [f"%out_at = mul i64 %n, {slots * (step.order + 1)}", "%out = getelementptr double, ptr %C, i64 %out_at"]
    t.lines += ["%time_at = getelementptr double, ptr %T, i64 %n"]
    step.coefficients("%row", t.emit_new("load double, ptr %time_at, align 8"))
    for k in range(step.order + 1):
        for g, c, slot in step._vectors:
            w, chunks = step.writer.widths[g][0], step.writer.series[g][k]
            t.store(w, t.zero(w) if chunks is None else chunks[c], "%out", k * slots + slot)
    t.lines += ["%more = add i64 %n, 1", "%go = icmp slt i64 %more, %rows", "br i1 %go, label %loop, label %end"]
    body, declared = "\n".join(t.lines), "\n".join(sorted(t.declared))
    return (
        f"{declared}\ndefine void @coefficients({_pointers('XKTC')}, i64 %rows) #0 {{\n"
        f"entry:\n%S = alloca double, i64 {max(1, step.writer.spill_size)}, align 64\nbr label %loop\n"
        f"loop:\n%n = phi i64 [0, %entry], [%more, %{step.writer.block}]\n{body}\nend:\nret void\n}}\n{_ATTRIBUTES}"
    )


@dataclass(frozen=True, eq=False)
class TaylorCode:
    """Native code, slots of the variables in its vectors, and its constants as functions of the parameters."""

    code: NativeCode
    slots: np.ndarray
    constants: Evaluator
    order: int

    @functools.cached_property
    def slot_of_variable(self) -> np.ndarray:
        """Slot of every variable."""
        return np.array([int(np.argmax(self.slots == i)) for i in range(int(self.slots.max()) + 1)])

    def constant_values(self, k: np.ndarray) -> np.ndarray:
        """Return the constants for the parameters k."""
        if not k.size:
            return self._fixed_constants
        return self._with_zero(self.constants(k)[0])

    @functools.cached_property
    def _fixed_constants(self) -> np.ndarray:
        return self._with_zero(self.constants(np.zeros(0))[0])

    @staticmethod
    def _with_zero(values: np.ndarray) -> np.ndarray:
        constants = np.zeros(values.size + 1)
        constants[:-1] = values.ravel()
        return constants


def step_code(equations: TaylorEquations) -> TaylorCode:
    """Compile the time loop."""
    return _compile(equations, "advance")


def coefficient_code(equations: TaylorEquations) -> TaylorCode:
    """Compile the coefficients at many states."""
    return _compile(equations, "coefficients")


def _compile(equations: TaylorEquations, name: str) -> TaylorCode:
    field = equations.field
    report_progress(f"deriving series of {len(equations.state_indices)} variables")
    step = _TaylorStepWriter(
        field, equations.order, equations.state_indices, equations.velocity_slots, equations.layout.size
    )
    text = _emit_loop(step) if name == "advance" else _emit_coefficients(step)
    key = f"{codegen_fingerprint()} {native_width()} {equations.fingerprint_data}"
    code = load_or_compile(key, lambda: text, name, 1 if text.count("\n") > _LONG_TEXT else 2)
    constants = Evaluator([field.k], [ca.vertcat(ca.SX(0, 1), *map(coefficient_expression, step.writer.constants))])
    return TaylorCode(code, np.array(step.slots), constants, equations.order)


def log2_step_ratio(tolerance: float, order: int) -> float:
    """Return the base-2 logarithm of the step size relative to the radius of convergence.

    The term of the last order then equals the tolerance. With the optimal order of the tolerance, the step is 1/e^2 of
    the radius, slightly less for low orders (Jorba and Zou, sect. 3.2).
    """
    part = -2.0 if order == optimal_order(tolerance) else math.log(tolerance) / (order - 1)
    return (part - 0.7 / (order - 1)) / math.log(2.0)
