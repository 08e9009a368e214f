"""Native kernels of one step, all with the signature ``void f(x, z, c, r, out)`` of five pointers to doubles."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

import casadi as ca
import numpy as np

from livens.engine.bounds import OWN_BOUND, OWN_DIGITS, TINY, write_floor
from livens.engine.emit import Emitter
from livens.engine.factors import Factors, Order
from livens.engine.native import Code, find_or_compile, vector_library_width
from livens.expressions.graph import roundoff
from livens.expressions.graph.roundoff import UNIT, VECTOR_LIBRARY
from livens.schemes.step import FlatEquations

_X, _Z, _C, _R, _OUT = range(5)
#: Modules that generate native code.
_WRITERS = ("bounds", "emit", "order", "kernels", "factors", "correction", "predictor", "watch", "tangent", "starts")
#: LLVM optimisation levels: 1 for code of every step (for straight-line code level 2 gives the same code in a fifth
#: more time), 2 for SIMD code, 0 for rarely executed code (compiles ten times faster).
_OFTEN, _VECTORS, _SELDOM = 1, 2, 0


def simple_kernel(
    function: ca.Function, name: str, pointer: int = _OUT, effort: int | None = None, width: int = 1, graph: str = ""
) -> Code:
    """Compile a function of (x, z, c) with one dense output, written to `pointer`; `graph` is its serialisation, if
    available.
    """
    tried = effort if effort is not None else _OFTEN if width == 1 else _VECTORS

    def text() -> str:
        emitter = Emitter(name, 5, width)
        (values,) = emitter.graph(function, _inputs(emitter, function))
        for i, value in enumerate(values):
            emitter.store(value, pointer, i)
        return emitter.text(quick=tried == _SELDOM)

    return find_or_compile(f"{writer()} {width} {pointer} {graph or function.serialize()}", text, name, tried)


def _inputs(emitter: Emitter, function: ca.Function) -> list[Sequence[str]]:
    """Return lazy loads of the inputs: x, z and c; the round-off kernel has a fourth input."""
    return [emitter.inputs(pointer, function.nnz_in(pointer)) for pointer in range(function.n_in())]


@functools.cache
def writer() -> str:
    """Return the fingerprint of the code generators: a new version may generate other code."""
    files = [Path(__file__).with_name(f"{name}.py") for name in _WRITERS] + [Path(roundoff.__file__)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def residual_kernel(equations: FlatEquations, width: int = 1) -> Code:
    """Compile the residual, written to r."""
    return simple_kernel(equations.residual_function, "residual", _R, width=width, graph=equations.residual_text)


def end_kernel(equations: FlatEquations, width: int = 1) -> Code:
    """Compile the state at the end of the step -> out."""
    return simple_kernel(equations.end_function, "end", width=width, graph=equations.end_text)


def guess_kernel(equations: FlatEquations, width: int = 1) -> Code:
    """Compile the scheme's initial guess of the unknowns -> out."""
    guess = ca.Function("guess", equations.arguments, [equations.guess])
    return simple_kernel(guess, "guess", effort=_SELDOM, width=width)


def error_kernel(equations: FlatEquations) -> Code:
    """Compile the error estimate: errors, reference magnitudes, and the filter matrix by rows -> out."""
    e = equations.error
    assert e is not None
    parts = [e.errors, e.sizes, *([] if e.matrix is None else [ca.vec(e.matrix.T)])]
    return simple_kernel(ca.Function("error", equations.arguments, [ca.densify(ca.vertcat(*parts))]), "error")


def carry_kernel(equations: FlatEquations) -> Code:
    """Compile the stage extrapolation to the next step -> out; reads the ratio of the step sizes from r."""
    ratio, carried = equations.carried
    return simple_kernel(ca.Function("carry", [*equations.arguments, ratio], [carried]), "carry", effort=_SELDOM)


def floor_kernel(equations: FlatEquations, width: int = 1) -> Code:
    """Compile the reciprocal round-off bounds of the residual -> out; reads the last Newton update from r.

    Without analytic bounds of the equations, the bounds are derived during code generation: symbolic expressions would
    take several times as long, even if the code is cached already.
    """
    if equations.noise is not None:
        return simple_kernel(floor_function(equations, equations.noise), "floor", effort=_SELDOM, width=width)
    library = 1 if width == 1 or vector_library_width() == 1 else VECTOR_LIBRARY

    def text() -> str:
        emitter = Emitter("floor", 5, width)
        sizes = (equations.size, equations.z.numel(), equations.c.numel(), equations.size)
        inputs = [emitter.inputs(pointer, size) for pointer, size in enumerate(sizes)]
        for i, value in enumerate(write_floor(emitter, equations, inputs, library)):
            emitter.store(value, _OUT, i)
        return emitter.text(quick=True)

    content = f"{writer()} {width} {library} {list(equations.kinds)} {equations.residual_text}"
    return find_or_compile(content, text, "floor", _SELDOM)


def floor_function(equations: FlatEquations, noise: ca.Function | None = None) -> ca.Function:
    """Return the function of (x, z, c, dx) for the reciprocal round-off bounds of the residual.

    The unknowns contain the rounding errors of x, of the last Newton update dx, and a small fraction of the rounding
    error of the largest unknown of their group. Without this fraction, an equation whose terms all vanish would be
    held to the rounding of zero, while other equations perturb its unknowns. The rounding of the residual is given by
    the equations, or by `roundoff`.
    """
    x, dx = equations.x, ca.SX.sym("dx", equations.size)
    kinds = np.split(np.arange(equations.size), np.cumsum(equations.kinds)[:-1])
    largest = [ca.repmat(OWN_DIGITS * ca.norm_inf(x[list(kind)]), len(kind)) for kind in kinds if len(kind)]
    errors = ca.fabs(x) + 4 * ca.fabs(dx) + ca.vertcat(*largest)
    bound = UNIT * (equations.roundoff if noise is None else noise)(*equations.arguments, errors)
    # the same lower limit for equations: a part at rest with all values zero is not solved below this fraction of the
    # largest round-off bound of its group
    most = [ca.repmat(OWN_BOUND * ca.norm_inf(bound[list(kind)]), len(kind)) for kind in kinds if len(kind)]
    bound = ca.fmax(bound, ca.vertcat(*most))
    return ca.Function("floor", [*equations.arguments, dx], [1 / (bound + TINY)])


def newton_kernel(equations: FlatEquations, order: Order) -> Code:
    """Compile one fused Newton iteration: residual -> r, pivot growth -> r[size], update dx -> out.

    Graph, LU factorisation in a static pivot order and both substitutions are fully unrolled (branch-free) code.
    """
    places = [equations.rows.tolist(), equations.columns.tolist()]
    places += [list(part) for part in equations.turn[1:]] if equations.turn is not None else []
    content = f"{writer()} {order} {places} {equations.newton_text}"
    return find_or_compile(content, lambda: _newton_text(equations, order), "newton", _OFTEN)


def _newton_text(equations: FlatEquations, order: Order) -> str:
    emitter = Emitter("newton", 5)
    inputs = _inputs(emitter, equations.newton_function)
    # step size and parameters are run-invariant: divisions by them become multiplications by their reciprocals
    emitter.steady.update(inputs[_C][i] for i in range(len(inputs[_C])) if i != 1)
    residual, jacobian, *turn = emitter.graph(equations.newton_function, inputs)
    for i, value in enumerate(residual):
        emitter.store(value, _R, i)
    factors = Factors(emitter, equations, order, jacobian, residual, turn=turn)
    for j, value in factors.solution():
        emitter.store(value, _OUT, j)
    emitter.store(factors.growth, _R, len(residual))
    return emitter.text()
