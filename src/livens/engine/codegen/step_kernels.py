"""Native kernels of one step, all with the signature ``void f(x, z, c, r, out)`` of five pointers to doubles."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.ir_emitter import Emitter
from livens.engine.codegen.jit import NativeCode, load_or_compile, vector_library_width
from livens.engine.codegen.roundoff_bounds import (
    RELATIVE_FLOOR_EQUATIONS,
    RELATIVE_FLOOR_UNKNOWNS,
    TINY,
    emit_inv_roundoff,
)
from livens.engine.codegen.unrolled_lu import PivotOrder, UnrolledLU
from livens.expressions.graph.roundoff import UNIT_ROUNDOFF, VECTOR_LIBM_ULPS
from livens.schemes.core.step_equations import StepGraph

_X, _Z, _C, _R, _OUT = range(5)
#: LLVM optimisation levels: 1 for code of every step (for straight-line code level 2 gives the same code in a fifth
#: more time), 2 for SIMD code, 0 for rarely executed code (compiles ten times faster).
_OPT_HOT, _OPT_SIMD, _OPT_COLD = 1, 2, 0


def compile_function_kernel(
    function: ca.Function, name: str, pointer: int = _OUT, opt_level: int | None = None, width: int = 1, graph: str = ""
) -> NativeCode:
    """Compile a function of (x, z, c) with one dense output, written to `pointer`; `graph` is its serialisation, if
    available.
    """
    level = opt_level if opt_level is not None else _OPT_HOT if width == 1 else _OPT_SIMD

    def make_ir() -> str:
        emitter = Emitter(name, 5, width)
        (values,) = emitter.graph(function, _inputs(emitter, function))
        for i, value in enumerate(values):
            emitter.store(value, pointer, i)
        return emitter.to_ir(split_blocks=level == _OPT_COLD)

    return load_or_compile(
        f"{codegen_fingerprint()} {width} {pointer} {graph or function.serialize()}", make_ir, name, level
    )


def _inputs(emitter: Emitter, function: ca.Function) -> list[Sequence[str]]:
    """Return lazy loads of the inputs: x, z and c; the round-off kernel has a fourth input."""
    return [emitter.inputs(pointer, function.nnz_in(pointer)) for pointer in range(function.n_in())]


def residual_kernel(equations: StepGraph, width: int = 1) -> NativeCode:
    """Compile the residual, written to r."""
    return compile_function_kernel(
        equations.residual_function, "residual", _R, width=width, graph=equations.residual_source
    )


def state_update_kernel(equations: StepGraph, width: int = 1) -> NativeCode:
    """Compile the state at the end of the step -> out."""
    return compile_function_kernel(
        equations.final_state_function, "end", width=width, graph=equations.final_state_source
    )


def initial_guess_kernel(equations: StepGraph, width: int = 1) -> NativeCode:
    """Compile the scheme's initial guess of the unknowns -> out."""
    initial_guess = ca.Function("guess", equations.arguments, [equations.initial_guess])
    return compile_function_kernel(initial_guess, "guess", opt_level=_OPT_COLD, width=width)


def error_kernel(equations: StepGraph) -> NativeCode:
    """Compile the error estimate: errors, reference magnitudes, and the filter matrix by rows -> out."""
    e = equations.error_estimate
    assert e is not None
    parts = [e.errors, e.scales, *([] if e.matrix is None else [ca.vec(e.matrix.T)])]
    return compile_function_kernel(ca.Function("error", equations.arguments, [ca.densify(ca.vertcat(*parts))]), "error")


def stage_extrapolation_kernel(equations: StepGraph) -> NativeCode:
    """Compile the stage extrapolation to the next step -> out; reads the ratio of the step sizes from r."""
    ratio, extrapolated = equations.stage_extrapolation
    return compile_function_kernel(
        ca.Function("carry", [*equations.arguments, ratio], [extrapolated]), "carry", opt_level=_OPT_COLD
    )


def inv_roundoff_kernel(equations: StepGraph, width: int = 1) -> NativeCode:
    """Compile the reciprocal round-off bounds of the residual -> out; reads the last Newton update from r.

    Without analytic bounds of the equations, the bounds are derived during code generation: symbolic expressions would
    take several times as long, even if the code is cached already.
    """
    if equations.assembled_roundoff_bound is not None:
        return compile_function_kernel(
            inv_roundoff_function(equations, equations.assembled_roundoff_bound),
            "floor",
            opt_level=_OPT_COLD,
            width=width,
        )
    library = 1 if width == 1 or vector_library_width() == 1 else VECTOR_LIBM_ULPS

    def make_ir() -> str:
        emitter = Emitter("floor", 5, width)
        sizes = (equations.size, equations.z.numel(), equations.c.numel(), equations.size)
        inputs = [emitter.inputs(pointer, size) for pointer, size in enumerate(sizes)]
        for i, value in enumerate(emit_inv_roundoff(emitter, equations, inputs, library)):
            emitter.store(value, _OUT, i)
        return emitter.to_ir(split_blocks=True)

    key = f"{codegen_fingerprint()} {width} {library} {list(equations.block_sizes)} {equations.residual_source}"
    return load_or_compile(key, make_ir, "floor", _OPT_COLD)


def inv_roundoff_function(equations: StepGraph, roundoff: ca.Function | None = None) -> ca.Function:
    """Return the function of (x, z, c, dx) for the reciprocal round-off bounds of the residual.

    The unknowns contain the rounding errors of x, of the last Newton update dx, and a small fraction of the rounding
    error of the largest unknown of their group. Without this fraction, an equation whose terms all vanish would be
    held to the rounding of zero, while other equations perturb its unknowns. The rounding of the residual is given by
    the equations, or by `roundoff`.
    """
    x, dx = equations.x, ca.SX.sym("dx", equations.size)
    groups = np.split(np.arange(equations.size), np.cumsum(equations.block_sizes)[:-1])
    unknown_limits = [
        ca.repmat(RELATIVE_FLOOR_UNKNOWNS * ca.norm_inf(x[list(group)]), len(group)) for group in groups if len(group)
    ]
    errors = ca.fabs(x) + 4 * ca.fabs(dx) + ca.vertcat(*unknown_limits)
    bound = UNIT_ROUNDOFF * (equations.roundoff_bound if roundoff is None else roundoff)(*equations.arguments, errors)
    # the same lower limit for equations: a part at rest with all values zero is not solved below this fraction of the
    # largest round-off bound of its group
    lower_limits = [
        ca.repmat(RELATIVE_FLOOR_EQUATIONS * ca.norm_inf(bound[list(group)]), len(group))
        for group in groups
        if len(group)
    ]
    bound = ca.fmax(bound, ca.vertcat(*lower_limits))
    return ca.Function("floor", [*equations.arguments, dx], [1 / (bound + TINY)])


def newton_kernel(equations: StepGraph, order: PivotOrder) -> NativeCode:
    """Compile one fused Newton iteration: residual -> r, pivot growth -> r[size], update dx -> out.

    Graph, LU factorisation in a static pivot order and both substitutions are fully unrolled (branch-free) code.
    """
    pattern = [equations.jac_rows.tolist(), equations.jac_cols.tolist()]
    pattern += [list(part) for part in equations.update_matrix[1:]] if equations.update_matrix is not None else []
    key = f"{codegen_fingerprint()} {order} {pattern} {equations.newton_source}"
    return load_or_compile(key, lambda: _newton_ir(equations, order), "newton", _OPT_HOT)


def _newton_ir(equations: StepGraph, order: PivotOrder) -> str:
    emitter = Emitter("newton", 5)
    inputs = _inputs(emitter, equations.newton_function)
    # step size and parameters are run-invariant: divisions by them become multiplications by their reciprocals
    emitter.invariant.update(inputs[_C][i] for i in range(len(inputs[_C])) if i != 1)
    residual, jacobian, *update_matrix = emitter.graph(equations.newton_function, inputs)
    for i, value in enumerate(residual):
        emitter.store(value, _R, i)
    lu = UnrolledLU(emitter, equations, order, jacobian, residual, update_matrix=update_matrix)
    for j, value in lu.solve_attached_rhs():
        emitter.store(value, _OUT, j)
    emitter.store(lu.pivot_growth, _R, len(residual))
    return emitter.to_ir()
