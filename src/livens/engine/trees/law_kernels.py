"""Kernels of force laws in joints: forces on the invariants of a joint coordinate, and the work of a step."""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca

from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.models.element import ElementType
from livens.schemes.gradients import DiscreteGradient

#: Number of arguments: invariants at start, end and midpoint, their rate, and the derivative of those at the end.
_N_ARGUMENTS = 10


@functools.lru_cache(maxsize=256)
def law_kernels(model: ElementType, gradient: DiscreteGradient, width: int = 1) -> tuple[NativeCode, NativeCode]:
    """Return the kernels of an element type: forces with derivatives, and work with the potential energy.

    The forces are those of `livens.schemes.energy_momentum.livens_em` on the invariants: the discrete gradient of the
    potential, applied forces and dissipation at the midpoint.
    """
    x, c = ca.SX.sym("x", _N_ARGUMENTS), ca.SX.sym("c", 2 + model.k.numel())
    size = next(iter(model.invariant_forms.values())).w.numel()
    w0, w1, wm, u, dw = (x[2 * i : 2 * i + size] for i in range(5))
    h, t, k = c[0], c[1] + c[0] / 2, c[2:]
    force, supplied, dissipated, potential = ca.SX.zeros(size), ca.SX(0), ca.SX(0), ca.SX(0)

    def at_midpoint(expression: Any, form: Any) -> Any:
        return ca.substitute(expression, ca.vertcat(form.w, form.w_dot, model.t, model.k), ca.vertcat(wm, u, t, k))

    for role, form in model.invariant_forms.items():
        if role == "potential":
            energy = ca.Function("V", [form.w, model.k], [form.law])
            force -= gradient(energy, w0, w1 - w0, k)
            potential += energy(w1, k)
        elif role == "forces":
            applied = at_midpoint(form.law, form)
            force += applied
            supplied += h * ca.dot(applied, u)
        else:
            friction = at_midpoint(ca.gradient(form.law, form.w_dot), form)
            force -= friction
            dissipated += h * ca.dot(friction, u)
    by_end = ca.jtimes(force, w1, dw) + ca.jtimes(force, u, dw / h)
    by_midpoint = ca.jacobian(force, wm)
    out = ca.SX.zeros(8)
    out[:size], out[2 : 2 + size] = force, by_end
    for i in range(size):
        for j in range(size):
            out[4 + 2 * i + j] = by_midpoint[i, j]
    unused = ca.SX.sym("z", 0)
    work = ca.densify(ca.vertcat(supplied, dissipated, potential))
    return (
        compile_function_kernel(ca.Function("law", [x, unused, c], [ca.densify(out)]), "law", width=width),
        compile_function_kernel(ca.Function("work", [x, unused, c], [work]), "work", width=width),
    )
