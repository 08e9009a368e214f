"""Fused Newton kernels: residual, elimination, updated unknowns, final state, and convergence test in one function.

Arguments are the unknowns x, the state z, the step inputs c = (h, t, parameters), a workspace, and the final state.
"""

from __future__ import annotations

from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.ir_emitter import ONE, ZERO, Emitter, literal
from livens.engine.codegen.jit import NativeCode, load_or_compile
from livens.engine.codegen.unrolled_lu import PivotOrder, UnrolledLU
from livens.engine.newton.workspace_layout import newton_offsets
from livens.schemes.core.step_equations import StepGraph

_X, _Z, _C, _WORK, _OUT = range(5)
#: Largest number of doubles in a SIMD register.
_SIMD8 = 8


def first_correction_kernel(equations: StepGraph, order: PivotOrder, width: int = 1) -> NativeCode:
    """Compile the first Newton iteration of a step in all lanes, which is usually the only one.

    It omits the residual norm before the iteration and the pivot growth, which only further iterations need.
    The row `norm_after` is at most 1 where every residual is within its round-off bound, else larger or NaN.
    """
    return _load_or_compile(equations, order, width, "first", lambda: _first_correction_ir(equations, order, width))


def masked_correction_kernel(equations: StepGraph, order: PivotOrder, width: int) -> NativeCode:
    """Compile a further Newton iteration of the active lanes; all other lanes are unchanged."""
    return _load_or_compile(equations, order, width, "further", lambda: _masked_correction_ir(equations, order, width))


def _load_or_compile(equations: StepGraph, order: PivotOrder, width: int, name: str, make_ir) -> NativeCode:  # type: ignore[no-untyped-def]
    pattern = [equations.jac_rows.tolist(), equations.jac_cols.tolist()]
    pattern += [list(part) for part in equations.update_matrix[1:]] if equations.update_matrix is not None else []
    graphs = equations.newton_source + equations.final_state_source + equations.residual_source
    key = f"{codegen_fingerprint()} {width} {order} {pattern} {graphs}"
    return load_or_compile(key, make_ir, name)


def _first_correction_ir(equations: StepGraph, order: PivotOrder, width: int) -> str:
    emitter = Emitter("first", 5, width)
    offsets = newton_offsets(equations.size)
    lu = _factorize(emitter, equations, order, track_growth=False)
    emitter.barrier()
    for j, value in lu.solve_attached_rhs():
        emitter.store(value, _WORK, offsets.update + j)
        emitter.store(emitter.sub(emitter.load(_X, j), value), _X, j)
    end, residual = _final_state_and_residual(emitter, equations)
    for j, value in enumerate(end):
        emitter.store(value, _OUT, j)
    emitter.store(_all_within_bound(emitter, residual), _WORK, offsets.norm_after)
    return emitter.to_ir()


def _masked_correction_ir(equations: StepGraph, order: PivotOrder, width: int) -> str:
    emitter = Emitter("further", 5, width)
    offsets = newton_offsets(equations.size)
    lu = _factorize(emitter, equations, order, track_growth=True)
    emitter.store(lu.pivot_growth, _WORK, offsets.pivot_growth)
    emitter.barrier()
    active = emitter.to_bool(emitter.load(_WORK, offsets.active))
    for j, value in lu.solve_attached_rhs():
        current = emitter.load(_X, j)
        emitter.store(emitter.select(active, value, emitter.load(_WORK, offsets.update + j)), _WORK, offsets.update + j)
        emitter.store(emitter.select(active, emitter.sub(current, value), current), _X, j)
    end, residual = _final_state_and_residual(emitter, equations)
    active = emitter.to_bool(emitter.load(_WORK, offsets.active))
    for j, value in enumerate(end):
        # select by mask instead of a branch: converged lanes keep their values
        emitter.store(emitter.select(active, value, emitter.load(_OUT, j)), _OUT, j)
    norm = _nanmax(emitter, [emitter.mul(emitter.fabs(r), emitter.load(_WORK, i)) for i, r in enumerate(residual)])
    emitter.store(emitter.select(active, norm, emitter.load(_WORK, offsets.norm_after)), _WORK, offsets.norm_after)
    return emitter.to_ir()


def _factorize(emitter: Emitter, equations: StepGraph, order: PivotOrder, track_growth: bool) -> UnrolledLU:
    x, z, c = _inputs(emitter, equations)
    residual, jacobian, *update_matrix = emitter.graph(equations.newton_function, [x, z, c])
    if track_growth:
        scaled = [emitter.mul(emitter.fabs(residual[i]), emitter.load(_WORK, i)) for i in order[0]]
        emitter.store(_nanmax(emitter, scaled), _WORK, newton_offsets(equations.size).norm_before)
    return UnrolledLU(
        emitter,
        equations,
        order,
        jacobian,
        residual,
        track_growth=track_growth,
        schedule_rows=True,
        update_matrix=update_matrix,
    )


def _final_state_and_residual(emitter: Emitter, equations: StepGraph) -> tuple[list[str], list[str]]:
    """Return the final state and the residual at the updated unknowns."""
    emitter.barrier(drop_values=True)
    _, z, c = _inputs(emitter, equations)
    x = [emitter.load(_X, j, reload=True) for j in range(equations.size)]
    (end,) = emitter.graph(equations.final_state_function, [x, z, c])
    (residual,) = emitter.graph(equations.residual_function, [x, z, c])
    return end, residual


def _inputs(emitter: Emitter, equations: StepGraph):  # type: ignore[no-untyped-def]
    e = equations
    x, z, c = emitter.inputs(_X, e.size), emitter.inputs(_Z, e.z.numel()), emitter.inputs(_C, e.c.numel())
    # step size and parameters are run-invariant; a linkage divides by the step size 78 times
    emitter.invariant.update(c[i] for i in range(len(c)) if i != 1)
    return x, z, c


def _nanmax(emitter: Emitter, sizes: list[str]) -> str:
    """Return the maximum of the values. NaN propagates by their sum, as a maximum would ignore it."""
    largest_of, total = [ZERO] * 2, [ZERO] * 2
    for j, size in enumerate(sizes):
        largest_of[j % 2], total[j % 2] = emitter.fmax(largest_of[j % 2], size), emitter.add(total[j % 2], size)
        emitter.anchor(largest_of[j % 2], total[j % 2])
    largest, total_sum = emitter.fmax(*largest_of), emitter.add(*total)
    return emitter.select(emitter.compare("ord", total_sum, total_sum), largest, total_sum)


def _all_within_bound(emitter: Emitter, residuals: list[str]) -> str:
    """Return a value of at most 1 if every residual is within its bound, else larger or NaN."""
    n = len(residuals)
    if emitter.width == 1 and n >= _SIMD8:
        return _all_within_bound_simd8(emitter, residuals)
    within = ["", ""]
    for j, residual in enumerate(residuals):
        size = emitter.mul(emitter.fabs(residual), emitter.load(_WORK, j))
        within[j % 2] = emitter.logical_and(within[j % 2], emitter.compare("ole", size, ONE))
        emitter.anchor(within[j % 2])
    return emitter.select(emitter.logical_and(*within), ZERO, literal(2.0))


def _all_within_bound_simd8(emitter: Emitter, residuals: list[str]) -> str:
    """Return the same for one trajectory, eight residuals at a time; the bit pattern of NaN sorts last."""
    n, double_vector, int_vector, largest = len(residuals), "<8 x double>", "<8 x i64>", ""
    scratch = newton_offsets(n).scratch
    for j, residual in enumerate(residuals):
        emitter.store(residual, _WORK, scratch + j)
    emitter.barrier()
    for block in blocks_of_8(n):
        r = emitter.emit(f"load {double_vector}, ptr {emitter.address(_WORK, scratch + block)}, align 8 ; again")
        scale = emitter.emit(f"load {double_vector}, ptr {emitter.address(_WORK, block)}, align 8")
        size = emitter.emit(f"fmul {double_vector} {emitter.call('llvm.fabs.v8f64', double_vector, r)}, {scale}")
        bits = emitter.emit(f"bitcast {double_vector} {size} to {int_vector}")
        largest = emitter.call("llvm.smax.v8i64", int_vector, largest, bits) if largest else bits
    reduced = emitter.reduce("llvm.vector.reduce.smax.v8i64", "i64", int_vector, largest)
    return emitter.emit(f"bitcast i64 {reduced} to double")


def blocks_of_8(size: int) -> list[int]:
    """Return the starts of blocks of eight that cover `size` entries; the last block may overlap the previous one.

    >>> blocks_of_8(20)
    [0, 8, 12]
    """
    return [*range(0, size - _SIMD8 + 1, _SIMD8)] + ([size - _SIMD8] if size % _SIMD8 else [])
