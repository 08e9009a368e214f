"""Fused Newton kernels: residual, elimination, updated unknowns, final state, and convergence test in one function.

Arguments are the unknowns x, the state z, the step inputs c = (h, t, parameters), a workspace, and the final state.
"""

from __future__ import annotations

from livens.engine.emit import ONE, ZERO, Emitter, literal
from livens.engine.factors import Factors, Order
from livens.engine.kernels import writer
from livens.engine.native import Code, find_or_compile
from livens.engine.places import places
from livens.schemes.step import FlatEquations

_X, _Z, _C, _WORK, _OUT = range(5)
#: Largest number of doubles in a SIMD register.
_EIGHT = 8


def first_kernel(equations: FlatEquations, order: Order, width: int = 1) -> Code:
    """Compile the first Newton iteration of a step in all lanes, which is usually the only one.

    It omits the residual norm before the iteration and the pivot growth, which only further iterations need.
    The row `norm_after` is at most 1 where every residual is within its round-off bound, else larger or NaN.
    """
    return _found(equations, order, width, "first", lambda: _first_text(equations, order, width))


def further_kernel(equations: FlatEquations, order: Order, width: int) -> Code:
    """Compile a further Newton iteration of the active lanes; all other lanes are unchanged."""
    return _found(equations, order, width, "further", lambda: _further_text(equations, order, width))


def _found(equations: FlatEquations, order: Order, width: int, name: str, text) -> Code:  # type: ignore[no-untyped-def]
    where = [equations.rows.tolist(), equations.columns.tolist()]
    where += [list(part) for part in equations.turn[1:]] if equations.turn is not None else []
    graphs = equations.newton_text + equations.end_text + equations.residual_text
    content = f"{writer()} {width} {order} {where} {graphs}"
    return find_or_compile(content, text, name)


def _first_text(equations: FlatEquations, order: Order, width: int) -> str:
    emitter = Emitter("first", 5, width)
    at = places(equations.size)
    factors = _eliminated(emitter, equations, order, watched=False)
    emitter.barrier()
    for j, value in factors.solution():
        emitter.store(value, _WORK, at.dx + j)
        emitter.store(emitter.sub(emitter.load(_X, j), value), _X, j)
    end, left = _behind(emitter, equations)
    for j, value in enumerate(end):
        emitter.store(value, _OUT, j)
    emitter.store(_verdict(emitter, left), _WORK, at.worst)
    return emitter.text()


def _further_text(equations: FlatEquations, order: Order, width: int) -> str:
    emitter = Emitter("further", 5, width)
    at = places(equations.size)
    factors = _eliminated(emitter, equations, order, watched=True)
    emitter.store(factors.growth, _WORK, at.growth)
    emitter.barrier()
    active = emitter.truth(emitter.load(_WORK, at.active))
    for j, value in factors.solution():
        old = emitter.load(_X, j)
        emitter.store(emitter.select(active, value, emitter.load(_WORK, at.dx + j)), _WORK, at.dx + j)
        emitter.store(emitter.select(active, emitter.sub(old, value), old), _X, j)
    end, left = _behind(emitter, equations)
    active = emitter.truth(emitter.load(_WORK, at.active))
    for j, value in enumerate(end):
        # select by mask instead of a branch: converged lanes keep their values
        emitter.store(emitter.select(active, value, emitter.load(_OUT, j)), _OUT, j)
    worst = _largest(emitter, [emitter.mul(emitter.fabs(r), emitter.load(_WORK, i)) for i, r in enumerate(left)])
    emitter.store(emitter.select(active, worst, emitter.load(_WORK, at.worst)), _WORK, at.worst)
    return emitter.text()


def _eliminated(emitter: Emitter, equations: FlatEquations, order: Order, watched: bool) -> Factors:
    x, z, c = _inputs(emitter, equations)
    residual, jacobian, *turn = emitter.graph(equations.newton_function, [x, z, c])
    if watched:
        sizes = [emitter.mul(emitter.fabs(residual[i]), emitter.load(_WORK, i)) for i in order[0]]
        emitter.store(_largest(emitter, sizes), _WORK, places(equations.size).first)
    return Factors(emitter, equations, order, jacobian, residual, watched=watched, anchored=True, turn=turn)


def _behind(emitter: Emitter, equations: FlatEquations) -> tuple[list[str], list[str]]:
    """Return the final state and the residual at the updated unknowns."""
    emitter.barrier(forget=True)
    _, z, c = _inputs(emitter, equations)
    x = [emitter.load(_X, j, again=True) for j in range(equations.size)]
    (end,) = emitter.graph(equations.end_function, [x, z, c])
    (left,) = emitter.graph(equations.residual_function, [x, z, c])
    return end, left


def _inputs(emitter: Emitter, equations: FlatEquations):  # type: ignore[no-untyped-def]
    e = equations
    x, z, c = emitter.inputs(_X, e.size), emitter.inputs(_Z, e.z.numel()), emitter.inputs(_C, e.c.numel())
    # step size and parameters are run-invariant; a linkage divides by the step size 78 times
    emitter.steady.update(c[i] for i in range(len(c)) if i != 1)
    return x, z, c


def _largest(emitter: Emitter, sizes: list[str]) -> str:
    """Return the maximum of the values. NaN propagates by their sum, as a maximum would ignore it."""
    worst, total = [ZERO] * 2, [ZERO] * 2
    for j, size in enumerate(sizes):
        worst[j % 2], total[j % 2] = emitter.larger(worst[j % 2], size), emitter.add(total[j % 2], size)
        emitter.anchor(worst[j % 2], total[j % 2])
    largest, everything = emitter.larger(*worst), emitter.add(*total)
    return emitter.select(emitter.compare("ord", everything, everything), largest, everything)


def _verdict(emitter: Emitter, left: list[str]) -> str:
    """Return a value of at most 1 if every residual is within its bound, else larger or NaN."""
    n = len(left)
    if emitter.width == 1 and n >= _EIGHT:
        return _verdict_in_eights(emitter, left)
    good = ["", ""]
    for j, residual in enumerate(left):
        size = emitter.mul(emitter.fabs(residual), emitter.load(_WORK, j))
        good[j % 2] = emitter.both(good[j % 2], emitter.compare("ole", size, ONE))
        emitter.anchor(good[j % 2])
    return emitter.select(emitter.both(*good), ZERO, literal(2.0))


def _verdict_in_eights(emitter: Emitter, left: list[str]) -> str:
    """Return the same for one trajectory, eight residuals at a time; the bit pattern of NaN sorts last."""
    n, reals, wholes, worst = len(left), "<8 x double>", "<8 x i64>", ""
    scratch = places(n).scratch
    for j, residual in enumerate(left):
        emitter.store(residual, _WORK, scratch + j)
    emitter.barrier()
    for block in eights(n):
        r = emitter.value(f"load {reals}, ptr {emitter.slot(_WORK, scratch + block)}, align 8 ; again")
        scale = emitter.value(f"load {reals}, ptr {emitter.slot(_WORK, block)}, align 8")
        size = emitter.value(f"fmul {reals} {emitter.called('llvm.fabs.v8f64', reals, r)}, {scale}")
        bits = emitter.value(f"bitcast {reals} {size} to {wholes}")
        worst = emitter.called("llvm.smax.v8i64", wholes, worst, bits) if worst else bits
    reduced = emitter.reduced("llvm.vector.reduce.smax.v8i64", "i64", wholes, worst)
    return emitter.value(f"bitcast i64 {reduced} to double")


def eights(size: int) -> list[int]:
    """Return the starts of blocks of eight that cover `size` entries; the last block may overlap the previous one.

    >>> eights(20)
    [0, 8, 12]
    """
    return [*range(0, size - _EIGHT + 1, _EIGHT)] + ([size - _EIGHT] if size % _EIGHT else [])
