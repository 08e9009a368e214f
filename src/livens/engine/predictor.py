"""Code generation for the predictor of the unknowns, scalar and SIMD."""

from __future__ import annotations

import casadi as ca

from livens.engine.correction import eights
from livens.engine.emit import ONE, ZERO, Emitter, literal
from livens.engine.kernels import writer
from livens.engine.native import Code, find_or_compile
from livens.engine.newton import BENT, PAST, STEADY
from livens.schemes.step import FlatEquations

_X, _Z, _C, _, _OUT = range(5)
_EIGHT = 8


def predictor_kernel(equations: FlatEquations, width: int = 1) -> Code:
    """Compile the predictor: five rows of unknowns at x -> the sixth; out is 1 where it is accepted, else 0.

    The formula is that of `livens.engine.newton.iteration.predict_unknowns`. If the scheme provides a propagator A,
    the part A x of its unknowns x is propagated to the next step. The remainder ``d_n = x_n - A x_(n-1)`` is smaller
    and as smooth. It is extrapolated from the last four steps by ``d4 = 2 (d3 - d1) + d0``: exact for parabolas and
    for alternating signs.
    """
    e = equations
    graph = "" if e.onward is None else ca.Function("onward", e.arguments, [e.onward]).serialize()
    content = f"{writer()} {width} {e.kinds} {graph}"
    return find_or_compile(content, lambda: _text(e, width), "predict")


def _text(equations: FlatEquations, width: int) -> str:
    e = equations
    if width == 1 and e.onward is None and min(e.kinds) >= _EIGHT:
        return _text_in_eights(e)
    emitter, n = Emitter("predict", 5, width), e.size
    X = [[emitter.load(_X, s * n + i) for i in range(n)] for s in range(PAST)]
    new = _extrapolated(emitter, X) if e.onward is None else _carried_on(emitter, e, X)
    smooth, start = "", 0
    for kind in e.kinds if e.onward is None else (n,):
        bend, change, twist = [ZERO] * 2, [ZERO] * 2, [ZERO] * 2
        for i in range(start, start + kind):
            emitter.store(new[i], _X, PAST * n + i)
            linear = emitter.sub(emitter.add(X[4][i], X[3][i]), X[2][i])
            bend[i % 2] = emitter.larger(bend[i % 2], emitter.fabs(emitter.sub(new[i], linear)))
            change[i % 2] = emitter.larger(change[i % 2], emitter.fabs(emitter.sub(X[4][i], X[3][i])))
            parabola = emitter.add(emitter.mul(literal(2.0), emitter.sub(X[4][i], X[2][i])), X[1][i])
            twist[i % 2] = emitter.larger(twist[i % 2], emitter.fabs(emitter.sub(new[i], parabola)))
            emitter.anchor(bend[i % 2], change[i % 2], twist[i % 2])
        start += kind
        smooth = emitter.both(smooth, _straight(emitter, *(emitter.larger(*part) for part in (bend, change, twist))))
    emitter.store(emitter.number(smooth) if smooth else ONE, _OUT, 0)
    return emitter.text()


def _straight(emitter: Emitter, bend: str, change: str, twist: str) -> str:
    """Return the acceptance mask: curvature small against the last increment, or hardly changing between steps."""
    steady = emitter.compare("ole", twist, emitter.mul(literal(STEADY), bend))
    allowed = emitter.larger(emitter.mul(literal(BENT), change), emitter.select(steady, bend, ZERO))
    return emitter.compare("ole", bend, allowed)


def _extrapolated(emitter: Emitter, X: list[list[str]]) -> list[str]:
    new = []
    for a, b, c, d, e in zip(*X, strict=True):
        inner = emitter.mul(literal(2.0), emitter.add(d, c))
        new.append(emitter.sub(emitter.sub(emitter.mul(literal(3.0), emitter.add(e, b)), inner), a))
    return new


def _carried_on(emitter: Emitter, equations: FlatEquations, X: list[list[str]]) -> list[str]:
    e, two = equations, literal(2.0)
    given = [
        emitter.sub(emitter.sub(x4, emitter.mul(two, emitter.sub(x3, x1))), x0)
        for x0, x1, _, x3, x4 in zip(*X, strict=True)
    ]
    onward = ca.Function("onward", e.arguments, [ca.densify(e.onward)])
    z, c = emitter.inputs(_Z, e.z.numel()), emitter.inputs(_C, e.c.numel())
    (carried,) = emitter.graph(onward, [given, z, c])
    return [
        emitter.add(emitter.add(emitter.mul(two, emitter.sub(x4, x2)), x1), ahead)
        for (_, x1, x2, _, x4), ahead in zip(zip(*X, strict=True), carried, strict=True)
    ]


def _text_in_eights(equations: FlatEquations) -> str:
    """Return the predictor of one trajectory, eight unknowns at a time."""
    emitter, n, reals = Emitter("predict", 5), equations.size, "<8 x double>"
    start, smooth = 0, ""

    def operation(name: str, a: str, b: str) -> str:
        return emitter.value(f"{name} contract {reals} {a}, {b}")

    def times(value: float, a: str) -> str:
        return operation("fmul", "<" + ", ".join([f"double {literal(value)}"] * _EIGHT) + ">", a)

    def larger(a: str, b: str) -> str:
        size = emitter.called("llvm.fabs.v8f64", reals, b)
        if not a:
            return size
        above = emitter.value(f"fcmp ogt {reals} {a}, {size}")
        return emitter.value(f"select <8 x i1> {above}, {reals} {a}, {reals} {size}")

    for kind in equations.kinds:
        bend = change = twist = ""
        for block in eights(kind):
            first = start + block
            X = [emitter.value(f"load {reals}, ptr {emitter.slot(_X, s * n + first)}, align 8") for s in range(PAST)]
            inner = times(2.0, operation("fadd", X[3], X[2]))
            outer = times(3.0, operation("fadd", X[4], X[1]))
            new = operation("fsub", operation("fsub", outer, inner), X[0])
            emitter.lines.append(f"store {reals} {new}, ptr {emitter.slot(_X, PAST * n + first)}, align 8")
            linear = operation("fsub", operation("fadd", X[4], X[3]), X[2])
            bend = larger(bend, operation("fsub", new, linear))
            change = larger(change, operation("fsub", X[4], X[3]))
            parabola = operation("fadd", times(2.0, operation("fsub", X[4], X[2])), X[1])
            twist = larger(twist, operation("fsub", new, parabola))
        start += kind
        measures = (bend, change, twist)
        reduced = (emitter.reduced("llvm.vector.reduce.fmax.v8f64", "double", reals, a) for a in measures)
        smooth = emitter.both(smooth, _straight(emitter, *reduced))
    emitter.store(emitter.number(smooth), _OUT, 0)
    return emitter.text()
