"""Derivatives of a step: straight-line kernels, and the loops that take them through a run, forth or back.

A step solves ``r(x; z, c) = 0`` for x and ends at ``z1 = e(x, z, c)`` with c = (h, t, parameters). Hence::

    tangent:  dz1 = e_z dz + e_c dc + e_x dx     with  r_x dx = -(r_z dz + r_c dc)
    adjoint:  r_x^T mu = e_x^T a,   a0 = e_z^T a - r_z^T mu,   g += e_c^T a - r_c^T mu
"""

from __future__ import annotations

import casadi as ca
import numba as nb
import numpy as np

from livens.engine.emit import ZERO, Emitter
from livens.engine.factors import Factors, Order
from livens.engine.kernels import writer
from livens.engine.native import Code, find_or_compile
from livens.engine.newton import call
from livens.errors import InputError
from livens.schemes.step import FlatEquations

_X, _Z, _C, _A, _OUT = range(5)
#: Derivatives have no second chance, as Newton's method has: a step whose elimination factors exceed this asks for
#: another pivot order.
GROWTH_LIMIT = 1e8


def _differentiable(equations: FlatEquations) -> FlatEquations:
    """The equations, if their Jacobian is that by the unknowns themselves."""
    if equations.turn is not None:
        raise InputError("there are no gradients yet for schemes of frame bodies, such as lie-em; take livens-em")
    return equations


def adjoint_kernel(equations: FlatEquations, order: Order | None) -> Code:
    """(x, z, c, a, g): a <- the adjoint at the beginning of the step, g += what goes to c; growth -> g[size of c]."""
    e = _differentiable(equations)
    a, mu = ca.SX.sym("a", e.z.numel()), ca.SX.sym("mu", e.size)
    product = ca.dot(a, e.end)
    right = ca.Function("right", [*e.arguments, a], [ca.densify(ca.gradient(product, e.x)) if e.size else ca.SX(0, 1)])
    lagrangian = product - ca.dot(mu, e.residual) if e.size else product
    by = [ca.densify(ca.gradient(lagrangian, symbol)) for symbol in (e.z, e.c)]
    rest = ca.Function("rest", [*e.arguments, a, mu], by)
    jacobian = ca.Function("jacobian", e.arguments, [e.jacobian])

    def text() -> str:
        emitter = Emitter("adjoint", 5)
        sizes = e.size, e.z.numel(), e.c.numel(), e.z.numel()
        inputs = [emitter.inputs(pointer, size) for pointer, size in enumerate(sizes)]
        multipliers: list[str] = []
        growth = ZERO
        if order is not None:
            (given,) = emitter.graph(right, inputs)
            (entries,) = emitter.graph(jacobian, inputs[:3])
            factors = Factors(emitter, e, order, entries)
            multipliers, growth = factors.solve_transposed(given), factors.growth
        by_z, by_c = emitter.graph(rest, [*inputs, multipliers])
        for i, value in enumerate(by_z):
            emitter.store(value, _A, i)
        for i, value in enumerate(by_c):
            emitter.store(emitter.add(emitter.load(_OUT, i), value), _OUT, i)
        emitter.store(growth, _OUT, len(by_c))
        return emitter.text()

    content = f"{writer()} {order} {e.rows.tolist()} {e.columns.tolist()} {rest.serialize()}{jacobian.serialize()}"
    return find_or_compile(content, text, "adjoint")


def tangent_kernel(equations: FlatEquations, order: Order | None, directions: int) -> Code:
    """(x, z, c, d, out): d has one row (dz, dc) for each direction; rows of dz behind the step, then growth -> out."""
    e = _differentiable(equations)
    nz, nc = e.z.numel(), e.c.numel()
    d, dx = ca.SX.sym("d", nz + nc, directions), ca.SX.sym("dx", e.size, directions)
    start, everything = ca.vertcat(e.z, e.c), ca.vertcat(e.x, e.z, e.c)
    right = [-ca.jtimes(e.residual, start, d[:, j]) for j in range(directions) if e.size]
    moved = [ca.jtimes(e.end, everything, ca.vertcat(dx[:, j], d[:, j])) for j in range(directions)]
    first = ca.Function("first", [*e.arguments, d], [ca.densify(ca.vertcat(*right)) if right else ca.SX(0, 1)])
    last = ca.Function("last", [*e.arguments, d, dx], [ca.densify(ca.vertcat(*moved))])
    jacobian = ca.Function("jacobian", e.arguments, [e.jacobian])

    def text() -> str:
        emitter = Emitter("tangent", 5)
        sizes = e.size, nz, nc, (nz + nc) * directions
        inputs = [emitter.inputs(pointer, size) for pointer, size in enumerate(sizes)]
        steps: list[str] = []
        growth = ZERO
        if order is not None:
            (entries,) = emitter.graph(jacobian, inputs[:3])
            factors = Factors(emitter, e, order, entries)
            (given,) = emitter.graph(first, inputs)
            for j in range(directions):
                steps += factors.solve(given[j * e.size : (j + 1) * e.size])
            growth = factors.growth
        (out,) = emitter.graph(last, [*inputs, steps])
        for i, value in enumerate(out):
            emitter.store(value, _OUT, i)
        emitter.store(growth, _OUT, len(out))
        return emitter.text()

    graphs = first.serialize() + last.serialize() + jacobian.serialize()
    content = f"{writer()} {order} {directions} {e.rows.tolist()} {e.columns.tolist()} {graphs}"
    return find_or_compile(content, text, "tangent")


@nb.njit(cache=True, nogil=True)
def sweep_back(
    kernel: int,
    last: int,
    first: int,
    h: float,
    origin: float,
    c: np.ndarray,
    Z: np.ndarray,
    X: np.ndarray,
    a: np.ndarray,
    g: np.ndarray,
    at: np.ndarray,
    bars: np.ndarray,
    left: int,
    limit: float,
) -> tuple[int, int]:
    """Through the steps of a chunk from number `last` of it down to the first. Returns (steps left, bars left).

    ``bars[i]`` is the derivative by state number ``at[i]``, and the first `left` of them are still to come. If a step
    asks for another pivot order, nothing of it is done.
    """
    pa, pg, pc, grown = a.ctypes.data, g.ctypes.data, c.ctypes.data, g.size - 1
    a_before, g_before = np.empty_like(a), np.empty_like(g)
    c[0] = h
    for s in range(last, -1, -1):
        c[1] = origin + (first + s) * h
        while left > 0 and at[left - 1] == first + s + 1:
            left -= 1
            for i in range(a.size):
                a[i] += bars[left, i]
        a_before[:], g_before[:] = a, g
        call(kernel, X[s].ctypes.data, Z[s].ctypes.data, pc, pa, pg)
        if not g[grown] <= limit:
            a[:], g[:] = a_before, g_before
            return s + 1, left
    return 0, left


@nb.njit(cache=True, nogil=True)
def sweep_forth(
    kernel: int,
    start: int,
    first: int,
    h: float,
    origin: float,
    c: np.ndarray,
    Z: np.ndarray,
    X: np.ndarray,
    d: np.ndarray,
    new: np.ndarray,
    kept: np.ndarray,
    limit: float,
) -> int:
    """Through the steps of a chunk from number `start` on. Returns how many are done; `kept` has dz behind each."""
    c[0] = h
    for s in range(start, len(X)):
        c[1] = origin + (first + s) * h
        call(kernel, X[s].ctypes.data, Z[s].ctypes.data, c.ctypes.data, d.ctypes.data, new.ctypes.data)
        if not new[new.size - 1] <= limit:
            return s
        nz, i = kept.shape[2], 0
        for j in range(d.shape[0]):
            for k in range(nz):
                d[j, k] = new[i]
                kept[s, j, k] = new[i]
                i += 1
    return len(X)
