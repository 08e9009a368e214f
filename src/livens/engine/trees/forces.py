"""Forces on single bodies in the tree tier: their wrenches and 6x6 blocks are added to those of the body."""

from __future__ import annotations

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import call_kernel, load_quad
from livens.engine.lowering.types import F64Array
from livens.engine.trees.records import A11, PHI, RL, RP, STRIDE, UPS, TreeArrays
from livens.engine.trees.vectors import add_to


@lowered
def begin_forces(t: TreeArrays, h: float, time: float) -> None:
    """Set step size and time of all forces."""
    for j in range(t.n_forces):
        c = t.force_inputs + t.force_inputs_ptr[j]
        c[0], c[1] = h, time


@lowered
def add_wrenches(t: TreeArrays) -> None:
    """Add the wrenches of all forces to the balances of their bodies."""
    out = t.force_outputs
    for j in range(t.n_forces):
        b, c = t.records + t.force_body[j] * STRIDE, t.force_inputs + t.force_inputs_ptr[j]
        call_kernel(t.force_kernel[j], b + UPS, b + PHI, c, out, out)
        add_to(b, RP, load_quad(out, 0))
        add_to(b, RL, load_quad(out, 4))


@lowered
def add_wrenches_and_blocks(t: TreeArrays) -> None:
    """Add the wrenches of all forces and their derivatives."""
    out = t.force_outputs
    for j in range(t.n_forces):
        b, c = t.records + t.force_body[j] * STRIDE, t.force_inputs + t.force_inputs_ptr[j]
        call_kernel(t.force_kernel[j], b + UPS, b + PHI, c, out, out)
        add_to(b, RP, load_quad(out, 0))
        add_to(b, RL, load_quad(out, 4))
        for i in range(12):  # blocks A11, A12, A21, A22 are contiguous
            add_to(b, A11 + 4 * i, load_quad(out, 8 + 4 * i))


@lowered
def add_force_work(t: TreeArrays, work: F64Array) -> None:
    """Add supplied, dissipated and potential energy of all forces at the end of the step to ``work[3:6]``."""
    out = t.force_outputs
    for j in range(t.n_forces):
        b, c = t.records + t.force_body[j] * STRIDE, t.force_inputs + t.force_inputs_ptr[j]
        call_kernel(t.force_work_kernel[j], b + UPS, b + PHI, c, out, out)
        for i in range(3):
            work[3 + i] += out[i]


@lowered
def force_potential(t: TreeArrays) -> float:
    """Return the potential energy of all forces for bodies that do not move in the step."""
    potential, out = 0.0, t.force_outputs
    for j in range(t.n_forces):
        b, c = t.records + t.force_body[j] * STRIDE, t.force_inputs + t.force_inputs_ptr[j]
        for i in range(8):
            out[16 + i] = 0.0
        c[0] = 1e-30  # no time passes: the potential at the end is that at the start
        call_kernel(t.force_work_kernel[j], out + 16, b + PHI, c, out, out)
        potential += out[2]
    return potential
