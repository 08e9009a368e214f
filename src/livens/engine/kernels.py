"""The native functions of one step. All have the signature ``void f(x, z, c, r, out)`` of five pointers to doubles."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

import casadi as ca
import numpy as np

from livens.engine.emit import Emitter
from livens.engine.factors import Factors, Order
from livens.engine.native import Code, find_or_compile, vector_library_width
from livens.expressions.graph.roundoff import UNIT
from livens.schemes.step import FlatEquations

_X, _Z, _C, _R, _OUT = range(5)
#: The modules that write native code.
_WRITERS = ("emit", "order", "kernels", "factors", "correction", "predictor", "watch", "tangent", "starts")
#: How hard LLVM tries: 2 for what runs in every step, 0 for what runs now and then (it compiles ten times faster).
_OFTEN, _SELDOM = 2, 0
#: Unknowns smaller than this part of the largest of their kind need not be known to their own last digit.
_OWN_DIGITS = 1e-4
#: Equations are solved at least to this part of the largest round-off bound of their kind.
_OWN_BOUND = 1e-10


def simple_kernel(function: ca.Function, name: str, pointer: int = _OUT, effort: int = _OFTEN, width: int = 1) -> Code:
    """Native code for a function of (x, z, c) with one dense output, written to `pointer`."""

    def text() -> str:
        emitter = Emitter(name, 5, width)
        (values,) = emitter.graph(function, _inputs(emitter, function))
        for i, value in enumerate(values):
            emitter.store(value, pointer, i)
        return emitter.text(quick=effort == _SELDOM)

    return find_or_compile(f"{writer()} {width} {pointer} {function.serialize()}", text, name, effort)


def _inputs(emitter: Emitter, function: ca.Function) -> list[Sequence[str]]:
    """The first arguments are x, z and c; the floor alone reads a fourth."""
    return [emitter.inputs(pointer, function.nnz_in(pointer)) for pointer in range(function.n_in())]


@functools.cache
def writer() -> str:
    """A fingerprint of the code that writes native code: the same function may be written otherwise tomorrow."""
    files = [Path(__file__).with_name(f"{name}.py") for name in _WRITERS]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def residual_kernel(equations: FlatEquations) -> Code:
    """The residual, written to r."""
    return simple_kernel(equations.residual_function, "residual", _R)


def end_kernel(equations: FlatEquations, width: int = 1) -> Code:
    """State at the end of the step -> out."""
    return simple_kernel(equations.end_function, "end", width=width)


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
    """Reciprocal of the round-off bound of every residual entry -> out; reads the last correction from r."""
    noise = equations.roundoff if width == 1 or vector_library_width() == 1 else equations.vector_roundoff
    return simple_kernel(floor_function(equations, noise), "floor", effort=_SELDOM, width=width)


def floor_function(equations: FlatEquations, noise: ca.Function | None = None) -> ca.Function:
    """What a residual entry is multiplied by to be measured in units of its own round-off, at (x, z, c, dx).

    The unknowns carry the rounding of x, that of the last correction dx, and a small part of the rounding of the
    largest unknown of their kind: so where everything in an equation vanishes, it is not held to the rounding of zero
    while the other equations shake its unknowns. What of a residual can be rounding is known to the equations, or
    given as `noise`.
    """
    x, dx = equations.x, ca.SX.sym("dx", equations.size)
    kinds = np.split(np.arange(equations.size), np.cumsum(equations.kinds)[:-1])
    largest = [ca.repmat(_OWN_DIGITS * ca.norm_inf(x[list(kind)]), len(kind)) for kind in kinds if len(kind)]
    errors = ca.fabs(x) + 4 * ca.fabs(dx) + ca.vertcat(*largest)
    bound = UNIT * (equations.roundoff if noise is None else noise)(*equations.arguments, errors)
    # the same for equations: those of a part that rests where all numbers are zero are not held to less than this part
    # of what rounding does to others of their kind
    most = [ca.repmat(_OWN_BOUND * ca.norm_inf(bound[list(kind)]), len(kind)) for kind in kinds if len(kind)]
    bound = ca.fmax(bound, ca.vertcat(*most))
    # the smallest numbers keep the quotient finite where an entry is identically zero
    return ca.Function("floor", [*equations.arguments, dx], [1 / (bound + 1e-290)])


def newton_kernel(equations: FlatEquations, order: Order) -> Code:
    """One Newton correction, fused: residual -> r, largest multiplier of the elimination -> r[size], dx -> out.

    Graph, LU factorisation in a static pivot order and both substitutions are one straight line of code.
    """
    places = [equations.rows.tolist(), equations.columns.tolist()]
    places += [list(part) for part in equations.turn[1:]] if equations.turn is not None else []
    content = f"{writer()} {order} {places} {equations.newton_function.serialize()}"
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
