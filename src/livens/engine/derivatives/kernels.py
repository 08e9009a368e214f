"""Derivative kernels of a step: tangent, adjoint and second-order adjoint, fully unrolled.

A step solves ``r(x; z, c) = 0`` for x and ends at ``z1 = e(x, z, c)`` with c = (h, t, parameters). Hence::

    tangent:  dz1 = e_z dz + e_c dc + e_x dx     with  r_x dx = -(r_z dz + r_c dc)
    adjoint:  r_x^T mu = e_x^T a,   a0 = e_z^T a - r_z^T mu,   g += e_c^T a - r_c^T mu
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.ir_emitter import ZERO, Emitter
from livens.engine.codegen.jit import NativeCode, load_or_compile
from livens.engine.codegen.unrolled_lu import PivotOrder, UnrolledLU
from livens.schemes.core.step_equations import StepGraph

_X, _Z, _C, _A, _OUT = range(5)
#: Pivot growth above which a step requires another pivot order. Unlike the Newton iteration, derivatives cannot correct
#: elimination errors.
MAX_GROWTH = 1e8


def _jacobian(e: StepGraph) -> ca.Function:
    """Return the function of the Jacobian's nonzeros, and of the update matrix, if there is one."""
    return ca.Function(
        "jacobian", e.arguments, [e.jac_values, *([] if e.update_matrix is None else [e.update_matrix[0]])]
    )


def _inputs(emitter: Emitter, *sizes: int) -> list[Sequence[str]]:
    """Return the inputs of a kernel, x, z and c first; step size and parameters are run-invariant."""
    inputs = [emitter.inputs(pointer, size) for pointer, size in enumerate(sizes)]
    c = inputs[_C]
    emitter.invariant.update(c[i] for i in range(len(c)) if i != 1)
    return inputs


def _factorize(emitter: Emitter, e: StepGraph, order: PivotOrder, inputs: Sequence[Sequence[str]]) -> UnrolledLU:
    entries, *update_matrix = emitter.graph(_jacobian(e), inputs)
    return UnrolledLU(emitter, e, order, entries, schedule_rows=True, update_matrix=update_matrix)


def _key(e: StepGraph, order: PivotOrder | None, *graphs: ca.Function) -> str:
    """Return the cache key of a kernel."""
    update_matrix = [] if e.update_matrix is None else [list(part) for part in e.update_matrix[1:]]
    texts = "".join(graph.serialize() for graph in (*graphs, _jacobian(e)))
    return f"{codegen_fingerprint()} {order} {e.jac_rows.tolist()} {e.jac_cols.tolist()} {update_matrix} {texts}"


def adjoint_kernel(equations: StepGraph, order: PivotOrder | None) -> NativeCode:
    """Compile (x, z, c, a, g): a <- adjoint at the start of the step, g += gradient by c; pivot growth -> g[nc]."""
    e = equations
    a, mu = ca.SX.sym("a", e.z.numel()), ca.SX.sym("mu", e.size)
    product = ca.dot(a, e.final_state)
    rhs = ca.Function("right", [*e.arguments, a], [ca.densify(ca.gradient(product, e.x)) if e.size else ca.SX(0, 1)])
    lagrangian = product - ca.dot(mu, e.residual) if e.size else product
    derivatives = [ca.densify(ca.gradient(lagrangian, symbol)) for symbol in (e.z, e.c)]
    gradients = ca.Function("rest", [*e.arguments, a, mu], derivatives)

    def make_ir() -> str:
        emitter = Emitter("adjoint", 5)
        inputs = _inputs(emitter, e.size, e.z.numel(), e.c.numel(), e.z.numel())
        multipliers: list[str] = []
        growth = ZERO
        if order is not None:
            (rhs_values,) = emitter.graph(rhs, inputs)
            lu = _factorize(emitter, e, order, inputs[:3])
            multipliers, growth = lu.solve_transposed(rhs_values), lu.pivot_growth
        by_z, by_c = emitter.graph(gradients, [*inputs, multipliers])
        for i, value in enumerate(by_z):
            emitter.store(value, _A, i)
        for i, value in enumerate(by_c):
            emitter.store(emitter.add(emitter.load(_OUT, i), value), _OUT, i)
        emitter.store(growth, _OUT, len(by_c))
        return emitter.to_ir()

    return load_or_compile(_key(e, order, gradients), make_ir, "adjoint")


def tangent_kernel(equations: StepGraph, order: PivotOrder | None, n_directions: int) -> NativeCode:
    """Compile (x, z, c, d, out): rows (dz, dc) of d -> rows of dz at the end of the step, then the pivot growth."""
    e = equations
    nz, nc = e.z.numel(), e.c.numel()
    d, dx = ca.SX.sym("d", nz + nc, n_directions), ca.SX.sym("dx", e.size, n_directions)
    start, everything = ca.vertcat(e.z, e.c), ca.vertcat(e.x, e.z, e.c)
    rhs = [-ca.jtimes(e.residual, start, d[:, j]) for j in range(n_directions) if e.size]
    d_state = [ca.jtimes(e.final_state, everything, ca.vertcat(dx[:, j], d[:, j])) for j in range(n_directions)]
    rhs_function = ca.Function("first", [*e.arguments, d], [ca.densify(ca.vertcat(*rhs)) if rhs else ca.SX(0, 1)])
    output_function = ca.Function("last", [*e.arguments, d, dx], [ca.densify(ca.vertcat(*d_state))])

    def make_ir() -> str:
        emitter = Emitter("tangent", 5)
        inputs = _inputs(emitter, e.size, nz, nc, (nz + nc) * n_directions)
        steps: list[str] = []
        growth = ZERO
        if order is not None:
            lu = _factorize(emitter, e, order, inputs[:3])
            (rhs_values,) = emitter.graph(rhs_function, inputs)
            for j in range(n_directions):
                steps += lu.solve(rhs_values[j * e.size : (j + 1) * e.size])
            growth = lu.pivot_growth
        (out,) = emitter.graph(output_function, [*inputs, steps])
        for i, value in enumerate(out):
            emitter.store(value, _OUT, i)
        emitter.store(growth, _OUT, len(out))
        return emitter.to_ir()

    return load_or_compile(f"{n_directions} {_key(e, order, rhs_function, output_function)}", make_ir, "tangent")


def second_order_adjoint_kernel(equations: StepGraph, order: PivotOrder | None) -> NativeCode:
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
    product = ca.dot(a, e.final_state)
    lagrangian = product - ca.dot(mu, e.residual) if n else product
    start, symbols = ca.vertcat(e.z, e.c), [*e.arguments, a, da, dz, dc]
    by_x = ca.densify(ca.gradient(lagrangian, e.x)) if n else ca.SX(0, 1)
    by_rest = ca.densify(ca.vertcat(ca.gradient(lagrangian, e.z), ca.gradient(lagrangian, e.c)))
    everything, d_inputs = ca.vertcat(e.x, e.z, e.c, a), ca.vertcat(dx, dz, dc, da)
    rhs = [
        -ca.jtimes(e.residual, start, ca.vertcat(dz, dc)) if n else ca.SX(0, 1),
        ca.gradient(product, e.x) if n else ca.SX(0, 1),
    ]
    rhs_function = ca.Function("first", symbols, [ca.densify(part) for part in rhs])
    d_rhs = ca.densify(ca.jtimes(by_x, everything, d_inputs)) if n else ca.SX(0, 1)
    d_rhs_function = ca.Function("second", [*symbols, mu, dx], [d_rhs])
    change = ca.jtimes(by_rest, ca.vertcat(everything, mu), ca.vertcat(d_inputs, dmu))
    output_function = ca.Function("last", [*symbols, mu, dx, dmu], [by_rest, ca.densify(change)])

    def make_ir() -> str:
        emitter = Emitter("second", 5)
        inputs = _inputs(emitter, n, nz, nc)
        for size in (nz, nz, nz, nc):
            inputs.append(emitter.inputs(_A, size, sum(len(part) for part in inputs[3:])))
        multipliers, dx_values, dmu_values, growth = list[str](), list[str](), list[str](), ZERO
        if order is not None:
            lu = _factorize(emitter, e, order, inputs[:3])
            tangent_rhs, adjoint_rhs = emitter.graph(rhs_function, inputs)
            multipliers, dx_values = lu.solve_transposed(adjoint_rhs), lu.solve(tangent_rhs)
            (d_rhs_values,) = emitter.graph(d_rhs_function, [*inputs, multipliers, dx_values])
            dmu_values, growth = lu.solve_transposed(d_rhs_values), lu.pivot_growth
        values, tangents = emitter.graph(output_function, [*inputs, multipliers, dx_values, dmu_values])
        out = [*values[:nz], *tangents[:nz], *values[nz:], *tangents[nz:], growth]
        for i, value in enumerate(out):
            emitter.store(value, _OUT, i)
        return emitter.to_ir()

    return load_or_compile(_key(e, order, rhs_function, d_rhs_function, output_function), make_ir, "second")
