"""The native functions of one step. All have the signature ``void f(x, z, c, r, out)`` of five pointers to doubles."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import casadi as ca
import numpy as np

from livens.engine.emit import ZERO, Emitter
from livens.engine.native import Code, find_or_compile
from livens.expressions.graph.roundoff import UNIT
from livens.schemes.step import FlatEquations

Order = tuple[tuple[int, ...], tuple[int, ...]]
_X, _Z, _C, _R, _OUT = range(5)
_INPUTS = [(_X, 0), (_Z, 0), (_C, 0), (_R, 0)]  # the floor alone reads the fourth
#: How hard LLVM tries: 2 for what runs in every step, 0 for what runs now and then (it compiles ten times faster).
_OFTEN, _SELDOM = 2, 0
#: Unknowns smaller than this part of the largest of their kind need not be known to their own last digit.
_OWN_DIGITS = 1e-4


def simple_kernel(function: ca.Function, name: str, pointer: int = _OUT, effort: int = _OFTEN) -> Code:
    """Native code for a function of (x, z, c) with one dense output, written to `pointer`."""

    def text() -> str:
        emitter = Emitter(name, 5)
        (values,) = emitter.graph(function, _INPUTS[: function.n_in()])
        for i, value in enumerate(values):
            emitter.store(value, pointer, i)
        return emitter.text()

    return find_or_compile(f"{_writer()} {pointer} {function.serialize()}", text, name, effort)


@functools.cache
def _writer() -> str:
    """A fingerprint of the code that writes native code: the same function may be written otherwise tomorrow."""
    files = [Path(__file__).with_name(name) for name in ("emit.py", "kernels.py")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def residual_kernel(equations: FlatEquations) -> Code:
    """The residual, written to r."""
    return simple_kernel(equations.residual_function, "residual", _R)


def end_kernel(equations: FlatEquations) -> Code:
    """State at the end of the step -> out."""
    return simple_kernel(equations.end_function, "end")


def guess_kernel(equations: FlatEquations) -> Code:
    """The scheme's own guess of the unknowns -> out."""
    return simple_kernel(ca.Function("guess", equations.arguments, [equations.guess]), "guess", effort=_SELDOM)


def onward_kernel(equations: FlatEquations) -> Code:
    """What of the next unknowns follows from those of a step -> out."""
    return simple_kernel(ca.Function("onward", equations.arguments, [equations.onward]), "onward")


def error_kernel(equations: FlatEquations) -> Code:
    """Estimated errors of a step, then what they are measured against -> out."""
    both = ca.densify(ca.vertcat(*equations.error))
    return simple_kernel(ca.Function("error", equations.arguments, [both]), "error")


def floor_kernel(equations: FlatEquations) -> Code:
    """Reciprocal of the round-off bound of every residual entry -> out; reads the last correction from r."""
    return simple_kernel(floor_function(equations), "floor", effort=_SELDOM)


def floor_function(equations: FlatEquations) -> ca.Function:
    """What a residual entry is multiplied by to be measured in units of its own round-off, at (x, z, c, dx).

    The unknowns carry the rounding of x, that of the last correction dx, and a small part of the rounding of the
    largest unknown of their kind: so where everything in an equation vanishes, it is not held to the rounding of zero
    while the other equations shake its unknowns.
    """
    x, dx = equations.x, ca.SX.sym("dx", equations.size)
    kinds = np.split(np.arange(equations.size), np.cumsum(equations.kinds)[:-1])
    largest = [ca.repmat(_OWN_DIGITS * ca.norm_inf(x[list(kind)]), len(kind)) for kind in kinds if len(kind)]
    errors = ca.fabs(x) + 4 * ca.fabs(dx) + ca.vertcat(*largest)
    bound = UNIT * equations.roundoff(*equations.arguments, errors)
    # the smallest numbers keep the quotient finite where an entry is identically zero
    return ca.Function("floor", [*equations.arguments, dx], [1 / (bound + 1e-290)])


def newton_kernel(equations: FlatEquations, order: Order) -> Code:
    """One Newton correction, fused: residual -> r, largest multiplier of the elimination -> r[size], dx -> out.

    Graph, LU factorisation in a static pivot order and both substitutions are one straight line of code, row by row,
    so that the row at work stays in registers.
    """
    places = [equations.rows.tolist(), equations.columns.tolist()]
    places += [list(part) for part in equations.turn[1:]] if equations.turn is not None else []
    content = f"{_writer()} {order} {places} {equations.newton_function.serialize()}"
    return find_or_compile(content, lambda: _newton_text(equations, order), "newton", _OFTEN)


def _newton_text(equations: FlatEquations, order: Order) -> str:
    emitter = Emitter("newton", 5)
    residual, jacobian, *turn = emitter.graph(equations.newton_function, _INPUTS[:3])
    for i, value in enumerate(residual):
        emitter.store(value, _R, i)
    row_at, column_at = np.argsort(order[0]), np.argsort(order[1])
    matrix: list[dict[int, str]] = [{} for _ in residual]
    for i, j, value in zip(row_at[equations.rows], column_at[equations.columns], jacobian, strict=True):
        matrix[i][int(j)] = value
    solution, growth = _solve(emitter, matrix, [residual[i] for i in order[0]])
    correction = dict(zip(order[1], solution, strict=True))
    if turn:
        correction |= _turned(emitter, equations, turn[0], correction)
    for j, value in correction.items():
        emitter.store(value, _OUT, int(j))
    emitter.store(growth, _R, len(residual))
    return emitter.text()


def _turned(emitter: Emitter, e: FlatEquations, values: list[str], solution: dict[int, str]) -> dict[int, str]:
    """The entries of the correction that are combinations of those of the solution."""
    rows: dict[int, list[tuple[int, str]]] = {}
    for i, j, value in zip(*e.turn[1:], values, strict=True):
        rows.setdefault(i, []).append((j, value))
    found = {}
    for i, terms in rows.items():
        (j, value), *rest = terms
        total = emitter.mul(value, solution[j])
        for j, value in rest:
            total = emitter.minus_product(total, emitter.fneg(value), solution[j])
        found[i] = total
    return found


def _solve(emitter: Emitter, matrix: list[dict[int, str]], right: list[str]) -> tuple[list[str], str]:
    """Gaussian elimination without pivoting; returns the solution and the largest elimination factor."""
    upper: list[list[tuple[int, str]]] = []
    inverse: list[str] = []
    largest = [ZERO] * 4  # four chains of comparisons instead of one: they run side by side
    count = 0
    y = list(right)
    for i, row in enumerate(matrix):
        pending = sorted(j for j in row if j < i)
        while pending:
            k = pending.pop(0)
            factor = emitter.mul(row.pop(k), inverse[k])
            largest[count % 4] = emitter.larger(largest[count % 4], emitter.apply("FABS", factor))
            count += 1
            for j, value in upper[k]:
                if j in row:
                    row[j] = emitter.minus_product(row[j], factor, value)
                else:
                    row[j] = emitter.mul(emitter.fneg(factor), value)
                    if j < i:
                        pending.append(j)
                        pending.sort()
            y[i] = emitter.minus_product(y[i], factor, y[k])
        inverse.append(emitter.reciprocal(row[i]))
        upper.append([(j, row[j]) for j in sorted(row) if j > i])
    for i in reversed(range(len(y))):
        for j, value in upper[i]:
            y[i] = emitter.minus_product(y[i], value, y[j])
        y[i] = emitter.mul(y[i], inverse[i])
    growth = largest[0]
    for other in largest[1:]:
        growth = emitter.larger(growth, other)
    return y, growth
