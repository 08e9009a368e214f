"""Code generation for the predictor of the unknowns, scalar and SIMD."""

from __future__ import annotations

import casadi as ca

from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.ir_emitter import ONE, ZERO, Emitter, literal
from livens.engine.codegen.jit import NativeCode, load_or_compile
from livens.engine.codegen.newton_kernels import blocks_of_8
from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.predictors import MAX_CURVATURE, MAX_CURVATURE_CHANGE
from livens.schemes.core.step_equations import StepGraph

_X, _Z, _C, _, _OUT = range(5)
_SIMD8 = 8


def predictor_kernel(equations: StepGraph, width: int = 1) -> NativeCode:
    """Compile the predictor: five rows of unknowns at x -> the sixth; out is 1 where it is accepted, else 0.

    The formula is that of `livens.engine.newton.predictors.predict_unknowns`. If the scheme provides a propagator A,
    the part A x of its unknowns x is propagated to the next step. The remainder ``d_n = x_n - A x_(n-1)`` is smaller
    and as smooth. It is extrapolated from the last four steps by ``d4 = 2 (d3 - d1) + d0``: exact for parabolas and
    for alternating signs.
    """
    e = equations
    graph = "" if e.linear_predictor is None else ca.Function("onward", e.arguments, [e.linear_predictor]).serialize()
    key = f"{codegen_fingerprint()} {width} {e.block_sizes} {graph}"
    return load_or_compile(key, lambda: _predictor_ir(e, width), "predict")


def _predictor_ir(equations: StepGraph, width: int) -> str:
    e = equations
    if width == 1 and e.linear_predictor is None and min(e.block_sizes) >= _SIMD8:
        return _predictor_ir_simd8(e)
    emitter, n = Emitter("predict", 5, width), e.size
    X = [[emitter.load(_X, s * n + i) for i in range(n)] for s in range(HISTORY)]
    x_next = _extrapolate(emitter, X) if e.linear_predictor is None else _propagate_and_extrapolate(emitter, e, X)
    accepted, start = "", 0
    for group_size in e.block_sizes if e.linear_predictor is None else (n,):
        curvature, increment, curvature_change = [ZERO] * 2, [ZERO] * 2, [ZERO] * 2
        for i in range(start, start + group_size):
            emitter.store(x_next[i], _X, HISTORY * n + i)
            linear = emitter.sub(emitter.add(X[4][i], X[3][i]), X[2][i])
            curvature[i % 2] = emitter.fmax(curvature[i % 2], emitter.fabs(emitter.sub(x_next[i], linear)))
            increment[i % 2] = emitter.fmax(increment[i % 2], emitter.fabs(emitter.sub(X[4][i], X[3][i])))
            parabola = emitter.add(emitter.mul(literal(2.0), emitter.sub(X[4][i], X[2][i])), X[1][i])
            curvature_change[i % 2] = emitter.fmax(
                curvature_change[i % 2], emitter.fabs(emitter.sub(x_next[i], parabola))
            )
            emitter.anchor(curvature[i % 2], increment[i % 2], curvature_change[i % 2])
        start += group_size
        accepted = emitter.logical_and(
            accepted,
            _accept_extrapolation(emitter, *(emitter.fmax(*part) for part in (curvature, increment, curvature_change))),
        )
    emitter.store(emitter.to_double(accepted) if accepted else ONE, _OUT, 0)
    return emitter.to_ir()


def _accept_extrapolation(emitter: Emitter, curvature: str, increment: str, curvature_change: str) -> str:
    """Return the acceptance mask: curvature small against the last increment, or hardly changing between steps."""
    is_steady = emitter.compare("ole", curvature_change, emitter.mul(literal(MAX_CURVATURE_CHANGE), curvature))
    allowed = emitter.fmax(emitter.mul(literal(MAX_CURVATURE), increment), emitter.select(is_steady, curvature, ZERO))
    return emitter.compare("ole", curvature, allowed)


def _extrapolate(emitter: Emitter, X: list[list[str]]) -> list[str]:
    x_next = []
    for a, b, c, d, e in zip(*X, strict=True):
        inner = emitter.mul(literal(2.0), emitter.add(d, c))
        x_next.append(emitter.sub(emitter.sub(emitter.mul(literal(3.0), emitter.add(e, b)), inner), a))
    return x_next


def _propagate_and_extrapolate(emitter: Emitter, equations: StepGraph, X: list[list[str]]) -> list[str]:
    e, two = equations, literal(2.0)
    differences = [
        emitter.sub(emitter.sub(x4, emitter.mul(two, emitter.sub(x3, x1))), x0)
        for x0, x1, _, x3, x4 in zip(*X, strict=True)
    ]
    propagator = ca.Function("onward", e.arguments, [ca.densify(e.linear_predictor)])
    z, c = emitter.inputs(_Z, e.z.numel()), emitter.inputs(_C, e.c.numel())
    (propagated,) = emitter.graph(propagator, [differences, z, c])
    return [
        emitter.add(emitter.add(emitter.mul(two, emitter.sub(x4, x2)), x1), correction)
        for (_, x1, x2, _, x4), correction in zip(zip(*X, strict=True), propagated, strict=True)
    ]


def _predictor_ir_simd8(equations: StepGraph) -> str:
    """Return the predictor of one trajectory, eight unknowns at a time."""
    emitter, n, double_vector = Emitter("predict", 5), equations.size, "<8 x double>"
    start, accepted = 0, ""

    def operation(name: str, a: str, b: str) -> str:
        return emitter.emit(f"{name} contract {double_vector} {a}, {b}")

    def times(value: float, a: str) -> str:
        return operation("fmul", "<" + ", ".join([f"double {literal(value)}"] * _SIMD8) + ">", a)

    def abs_max(a: str, b: str) -> str:
        size = emitter.call("llvm.fabs.v8f64", double_vector, b)
        if not a:
            return size
        above = emitter.emit(f"fcmp ogt {double_vector} {a}, {size}")
        return emitter.emit(f"select <8 x i1> {above}, {double_vector} {a}, {double_vector} {size}")

    for group_size in equations.block_sizes:
        curvature = increment = curvature_change = ""
        for block in blocks_of_8(group_size):
            offset = start + block
            X = [
                emitter.emit(f"load {double_vector}, ptr {emitter.address(_X, s * n + offset)}, align 8")
                for s in range(HISTORY)
            ]
            inner = times(2.0, operation("fadd", X[3], X[2]))
            outer = times(3.0, operation("fadd", X[4], X[1]))
            x_next = operation("fsub", operation("fsub", outer, inner), X[0])
            emitter.lines.append(
                f"store {double_vector} {x_next}, ptr {emitter.address(_X, HISTORY * n + offset)}, align 8"
            )
            linear = operation("fsub", operation("fadd", X[4], X[3]), X[2])
            curvature = abs_max(curvature, operation("fsub", x_next, linear))
            increment = abs_max(increment, operation("fsub", X[4], X[3]))
            parabola = operation("fadd", times(2.0, operation("fsub", X[4], X[2])), X[1])
            curvature_change = abs_max(curvature_change, operation("fsub", x_next, parabola))
        start += group_size
        measures = (curvature, increment, curvature_change)
        reduced = (emitter.reduce("llvm.vector.reduce.fmax.v8f64", "double", double_vector, a) for a in measures)
        accepted = emitter.logical_and(accepted, _accept_extrapolation(emitter, *reduced))
    emitter.store(emitter.to_double(accepted), _OUT, 0)
    return emitter.to_ir()
