"""Derivative kernels of a step: tangent, adjoint and second-order adjoint, fully unrolled.

A step solves ``r(x; z, c) = 0`` for x and ends at ``z1 = e(x, z, c)`` with c = (h, t, parameters). Hence::

    tangent:  dz1 = e_z dz + e_c dc + e_x dx     with  r_x dx = -(r_z dz + r_c dc)
    adjoint:  r_x^T mu = e_x^T a,   a0 = e_z^T a - r_z^T mu,   g += e_c^T a - r_c^T mu
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from livens.engine.emit import ZERO, Emitter
from livens.engine.factors import Factors, Order
from livens.engine.kernels import writer
from livens.engine.native import Code, find_or_compile
from livens.schemes.step import FlatEquations

_X, _Z, _C, _A, _OUT = range(5)
#: Pivot growth above which a step requires another pivot order. Unlike the Newton iteration, derivatives cannot correct
#: elimination errors.
GROWTH_LIMIT = 1e8


def _jacobian(e: FlatEquations) -> ca.Function:
    """Return the function of the Jacobian's nonzeros, and of the update matrix, if there is one."""
    return ca.Function("jacobian", e.arguments, [e.jacobian, *([] if e.turn is None else [e.turn[0]])])


def _inputs(emitter: Emitter, *sizes: int) -> list[Sequence[str]]:
    """Return the inputs of a kernel, x, z and c first; step size and parameters are run-invariant."""
    inputs = [emitter.inputs(pointer, size) for pointer, size in enumerate(sizes)]
    c = inputs[_C]
    emitter.steady.update(c[i] for i in range(len(c)) if i != 1)
    return inputs


def _factors(emitter: Emitter, e: FlatEquations, order: Order, inputs: Sequence[Sequence[str]]) -> Factors:
    entries, *turn = emitter.graph(_jacobian(e), inputs)
    return Factors(emitter, e, order, entries, anchored=True, turn=turn)


def _content(e: FlatEquations, order: Order | None, *graphs: ca.Function) -> str:
    """Return the cache key of a kernel."""
    turn = [] if e.turn is None else [list(part) for part in e.turn[1:]]
    texts = "".join(graph.serialize() for graph in (*graphs, _jacobian(e)))
    return f"{writer()} {order} {e.rows.tolist()} {e.columns.tolist()} {turn} {texts}"


def adjoint_kernel(equations: FlatEquations, order: Order | None) -> Code:
    """Compile (x, z, c, a, g): a <- adjoint at the start of the step, g += gradient by c; pivot growth -> g[nc]."""
    e = equations
    a, mu = ca.SX.sym("a", e.z.numel()), ca.SX.sym("mu", e.size)
    product = ca.dot(a, e.end)
    right = ca.Function("right", [*e.arguments, a], [ca.densify(ca.gradient(product, e.x)) if e.size else ca.SX(0, 1)])
    lagrangian = product - ca.dot(mu, e.residual) if e.size else product
    by = [ca.densify(ca.gradient(lagrangian, symbol)) for symbol in (e.z, e.c)]
    rest = ca.Function("rest", [*e.arguments, a, mu], by)

    def text() -> str:
        emitter = Emitter("adjoint", 5)
        inputs = _inputs(emitter, e.size, e.z.numel(), e.c.numel(), e.z.numel())
        multipliers: list[str] = []
        growth = ZERO
        if order is not None:
            (given,) = emitter.graph(right, inputs)
            factors = _factors(emitter, e, order, inputs[:3])
            multipliers, growth = factors.solve_transposed(given), factors.growth
        by_z, by_c = emitter.graph(rest, [*inputs, multipliers])
        for i, value in enumerate(by_z):
            emitter.store(value, _A, i)
        for i, value in enumerate(by_c):
            emitter.store(emitter.add(emitter.load(_OUT, i), value), _OUT, i)
        emitter.store(growth, _OUT, len(by_c))
        return emitter.text()

    return find_or_compile(_content(e, order, rest), text, "adjoint")


def tangent_kernel(equations: FlatEquations, order: Order | None, directions: int) -> Code:
    """Compile (x, z, c, d, out): rows (dz, dc) of d -> rows of dz at the end of the step, then the pivot growth."""
    e = equations
    nz, nc = e.z.numel(), e.c.numel()
    d, dx = ca.SX.sym("d", nz + nc, directions), ca.SX.sym("dx", e.size, directions)
    start, everything = ca.vertcat(e.z, e.c), ca.vertcat(e.x, e.z, e.c)
    right = [-ca.jtimes(e.residual, start, d[:, j]) for j in range(directions) if e.size]
    moved = [ca.jtimes(e.end, everything, ca.vertcat(dx[:, j], d[:, j])) for j in range(directions)]
    first = ca.Function("first", [*e.arguments, d], [ca.densify(ca.vertcat(*right)) if right else ca.SX(0, 1)])
    last = ca.Function("last", [*e.arguments, d, dx], [ca.densify(ca.vertcat(*moved))])

    def text() -> str:
        emitter = Emitter("tangent", 5)
        inputs = _inputs(emitter, e.size, nz, nc, (nz + nc) * directions)
        steps: list[str] = []
        growth = ZERO
        if order is not None:
            factors = _factors(emitter, e, order, inputs[:3])
            (given,) = emitter.graph(first, inputs)
            for j in range(directions):
                steps += factors.solve(given[j * e.size : (j + 1) * e.size])
            growth = factors.growth
        (out,) = emitter.graph(last, [*inputs, steps])
        for i, value in enumerate(out):
            emitter.store(value, _OUT, i)
        emitter.store(growth, _OUT, len(out))
        return emitter.text()

    return find_or_compile(f"{directions} {_content(e, order, first, last)}", text, "tangent")


def second_kernel(equations: FlatEquations, order: Order | None) -> Code:
    """Compile (x, z, c, s, out): the tangent of the adjoint, for second derivatives.

    s contains (a, da, dz, dc): adjoint at the end of the step and its tangent, and a tangent at the start. out receives
    the adjoint at the start of the step, its tangent, the gradient by c, its tangent, and the pivot growth. With the
    Lagrangian ``L = a.e - mu.r`` and ``L_x = 0``::

        a0 = L_z,  g = L_c,      r_x^T dmu = (L_x)' at fixed mu,      da0 = (L_z)',  dg = (L_c)'
    """
    e = equations
    nz, nc, n = e.z.numel(), e.c.numel(), e.size
    a, da, dz, mu, dmu = (ca.SX.sym(name, size) for name, size in zip("abzmn", (nz, nz, nz, n, n), strict=True))
    dx, dc = ca.SX.sym("dx", n), ca.SX.sym("dc", nc)
    product = ca.dot(a, e.end)
    lagrangian = product - ca.dot(mu, e.residual) if n else product
    start, given = ca.vertcat(e.z, e.c), [*e.arguments, a, da, dz, dc]
    by_x = ca.densify(ca.gradient(lagrangian, e.x)) if n else ca.SX(0, 1)
    by_rest = ca.densify(ca.vertcat(ca.gradient(lagrangian, e.z), ca.gradient(lagrangian, e.c)))
    everything, moves = ca.vertcat(e.x, e.z, e.c, a), ca.vertcat(dx, dz, dc, da)
    right = [
        -ca.jtimes(e.residual, start, ca.vertcat(dz, dc)) if n else ca.SX(0, 1),
        ca.gradient(product, e.x) if n else ca.SX(0, 1),
    ]
    first = ca.Function("first", given, [ca.densify(part) for part in right])
    turned = ca.densify(ca.jtimes(by_x, everything, moves)) if n else ca.SX(0, 1)
    second = ca.Function("second", [*given, mu, dx], [turned])
    change = ca.jtimes(by_rest, ca.vertcat(everything, mu), ca.vertcat(moves, dmu))
    last = ca.Function("last", [*given, mu, dx, dmu], [by_rest, ca.densify(change)])

    def text() -> str:
        emitter = Emitter("second", 5)
        inputs = _inputs(emitter, n, nz, nc)
        for size in (nz, nz, nz, nc):
            inputs.append(emitter.inputs(_A, size, sum(len(part) for part in inputs[3:])))
        multipliers, moved, changed, growth = list[str](), list[str](), list[str](), ZERO
        if order is not None:
            factors = _factors(emitter, e, order, inputs[:3])
            forth, back = emitter.graph(first, inputs)
            multipliers, moved = factors.solve_transposed(back), factors.solve(forth)
            (given_back,) = emitter.graph(second, [*inputs, multipliers, moved])
            changed, growth = factors.solve_transposed(given_back), factors.growth
        plain, varied = emitter.graph(last, [*inputs, multipliers, moved, changed])
        out = [*plain[:nz], *varied[:nz], *plain[nz:], *varied[nz:], growth]
        for i, value in enumerate(out):
            emitter.store(value, _OUT, i)
        return emitter.text()

    return find_or_compile(_content(e, order, first, second, last), text, "second")
