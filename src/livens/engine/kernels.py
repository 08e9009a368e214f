"""The native functions of one step. All have the signature ``void f(x, z, c, r, out)`` of five pointers to doubles."""

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
#: The modules that write native code.
_WRITERS = ("bounds", "emit", "order", "kernels", "factors", "correction", "predictor", "watch", "tangent", "starts")
#: How hard LLVM tries: 1 for what runs in every step (of straight lines, its second effort makes the same code in a
#: fifth more time), 2 for that in vectors, 0 for what runs now and then (it compiles ten times faster).
_OFTEN, _VECTORS, _SELDOM = 1, 2, 0


def simple_kernel(
    function: ca.Function, name: str, pointer: int = _OUT, effort: int | None = None, width: int = 1, graph: str = ""
) -> Code:
    """Native code for a function of (x, z, c) with one dense output, written to `pointer`; `graph` is its text, if it
    is known.
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
    """The first arguments are x, z and c; the floor alone reads a fourth."""
    return [emitter.inputs(pointer, function.nnz_in(pointer)) for pointer in range(function.n_in())]


@functools.cache
def writer() -> str:
    """A fingerprint of the code that writes native code: the same function may be written otherwise tomorrow."""
    files = [Path(__file__).with_name(f"{name}.py") for name in _WRITERS] + [Path(roundoff.__file__)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def residual_kernel(equations: FlatEquations, width: int = 1) -> Code:
    """The residual, written to r."""
    return simple_kernel(equations.residual_function, "residual", _R, width=width, graph=equations.residual_text)


def end_kernel(equations: FlatEquations, width: int = 1) -> Code:
    """State at the end of the step -> out."""
    return simple_kernel(equations.end_function, "end", width=width, graph=equations.end_text)


def guess_kernel(equations: FlatEquations, width: int = 1) -> Code:
    """The scheme's own guess of the unknowns -> out."""
    guess = ca.Function("guess", equations.arguments, [equations.guess])
    return simple_kernel(guess, "guess", effort=_SELDOM, width=width)


def error_kernel(equations: FlatEquations) -> Code:
    """Estimated errors of a step, then what they are measured against, then the matrix by rows -> out."""
    e = equations.error
    assert e is not None
    parts = [e.errors, e.sizes, *([] if e.matrix is None else [ca.vec(e.matrix.T)])]
    return simple_kernel(ca.Function("error", equations.arguments, [ca.densify(ca.vertcat(*parts))]), "error")


def carry_kernel(equations: FlatEquations) -> Code:
    """Unknowns of the next step from those of the last one -> out; reads the ratio of their sizes from r."""
    ratio, carried = equations.carried
    return simple_kernel(ca.Function("carry", [*equations.arguments, ratio], [carried]), "carry", effort=_SELDOM)


def floor_kernel(equations: FlatEquations, width: int = 1) -> Code:
    """Reciprocal of the round-off bound of every residual entry -> out; reads the last correction from r.

    Where the equations do not know their rounding, it is derived while the code is written: expressions of it would
    take several times as long, and be needed only to find code that is there already.
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
    """What a residual entry is multiplied by to be measured in units of its own round-off, at (x, z, c, dx).

    The unknowns carry the rounding of x, that of the last correction dx, and a small part of the rounding of the
    largest unknown of their kind: so where everything in an equation vanishes, it is not held to the rounding of zero
    while the other equations shake its unknowns. What of a residual can be rounding is known to the equations, or
    given as `noise`.
    """
    x, dx = equations.x, ca.SX.sym("dx", equations.size)
    kinds = np.split(np.arange(equations.size), np.cumsum(equations.kinds)[:-1])
    largest = [ca.repmat(OWN_DIGITS * ca.norm_inf(x[list(kind)]), len(kind)) for kind in kinds if len(kind)]
    errors = ca.fabs(x) + 4 * ca.fabs(dx) + ca.vertcat(*largest)
    bound = UNIT * (equations.roundoff if noise is None else noise)(*equations.arguments, errors)
    # the same for equations: those of a part that rests where all numbers are zero are not held to less than this part
    # of what rounding does to others of their kind
    most = [ca.repmat(OWN_BOUND * ca.norm_inf(bound[list(kind)]), len(kind)) for kind in kinds if len(kind)]
    bound = ca.fmax(bound, ca.vertcat(*most))
    return ca.Function("floor", [*equations.arguments, dx], [1 / (bound + TINY)])


def newton_kernel(equations: FlatEquations, order: Order) -> Code:
    """One Newton correction, fused: residual -> r, largest multiplier of the elimination -> r[size], dx -> out.

    Graph, LU factorisation in a static pivot order and both substitutions are one straight line of code.
    """
    places = [equations.rows.tolist(), equations.columns.tolist()]
    places += [list(part) for part in equations.turn[1:]] if equations.turn is not None else []
    content = f"{writer()} {order} {places} {equations.newton_text}"
    return find_or_compile(content, lambda: _newton_text(equations, order), "newton", _OFTEN)


def _newton_text(equations: FlatEquations, order: Order) -> str:
    emitter = Emitter("newton", 5)
    inputs = _inputs(emitter, equations.newton_function)
    # the step and the parameters stay as they are: what is divided by them is multiplied by their reciprocals
    emitter.steady.update(inputs[_C][i] for i in range(len(inputs[_C])) if i != 1)
    residual, jacobian, *turn = emitter.graph(equations.newton_function, inputs)
    for i, value in enumerate(residual):
        emitter.store(value, _R, i)
    factors = Factors(emitter, equations, order, jacobian, residual, turn=turn)
    for j, value in factors.solution():
        emitter.store(value, _OUT, j)
    emitter.store(factors.growth, _R, len(residual))
    return emitter.text()
