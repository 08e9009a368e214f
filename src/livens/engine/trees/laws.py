"""Joint forces of the tree tier: forces on the invariants of a joint coordinate, and their linearization.

The invariants of an angle are its cosine and sine, ``w_i = a_i . b_1``, that of a displacement is itself. Forces f act
on the invariants at the mean directors of the step, as in all tiers; their generalised force on the joint unknown is
``f . e`` with ``e_i = a_im . (n_m x b_1m)``.
"""

from __future__ import annotations

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import call_kernel, load_quad, store_quad
from livens.engine.lowering.types import F64Array, Quad
from livens.engine.trees.records import (
    ALPHA,
    D0,
    LAW_A1,
    LAW_A2,
    LAW_A10,
    LAW_A20,
    LAW_B1,
    LAW_B10,
    LAW_DF,
    LAW_DW,
    LAW_F,
    LAW_FM,
    LAW_OUT,
    LAW_STRIDE,
    LAW_U,
    LAW_W0,
    LAW_W1,
    LAW_WM,
    N0,
    N1,
    NM,
    PRISMATIC,
    Q_EPS,
    Q_TAU,
    STRIDE,
    TAU,
    F,
    Q,
    R,
    TreeArrays,
)
from livens.engine.trees.vectors import cross, dot, midpoint, mul


@lowered
def begin_laws(t: TreeArrays, h: float, time: float) -> None:
    """Set the reference axes and the invariants at the start of a step."""
    if t.n_laws == 0:
        return
    for i in range(t.n_bodies):
        index = t.law_of_body[i]
        if index >= 0:
            law = t.law_records + index * LAW_STRIDE
            b, a = t.records + i * STRIDE, t.records + t.parent[i] * STRIDE
            if t.joint_type[i] == PRISMATIC:
                law[LAW_W0] = b[D0]
            else:
                first, second = a, b
                if t.law_sign[i] < 0.0:
                    first, second = b, a
                a1, a2 = mul(first + R, load_quad(law, LAW_A1)), mul(first + R, load_quad(law, LAW_A2))
                b1 = mul(second + R, load_quad(law, LAW_B1))
                store_quad(law, LAW_A10, a1)
                store_quad(law, LAW_A20, a2)
                store_quad(law, LAW_B10, b1)
                law[LAW_W0], law[LAW_W0 + 1] = dot(a1, b1), dot(a2, b1)
            for kernel in range(t.law_ptr[index], t.law_ptr[index + 1]):
                c = t.law_inputs + t.law_inputs_ptr[kernel]
                c[0], c[1] = h, time


@lowered
def _invariants_at_end(law: F64Array, tau: float, sign: float, h: float) -> None:
    """Set cosine and sine at the end of the step, their rate, and their derivative by the variation of the angle."""
    scale = 2.0 / (1.0 + tau * tau)
    cosine, sine = law[LAW_W0], law[LAW_W0 + 1]
    change_x = -scale * tau * (tau * cosine + sign * sine)
    change_y = -scale * tau * (tau * sine - sign * cosine)
    law[LAW_W1], law[LAW_W1 + 1] = cosine + change_x, sine + change_y
    law[LAW_U], law[LAW_U + 1] = change_x / h, change_y / h
    law[LAW_DW], law[LAW_DW + 1] = -2.0 * sign * law[LAW_W1 + 1], 2.0 * sign * law[LAW_W1]


@lowered
def _sum_laws(t: TreeArrays, index: int, law: F64Array) -> None:
    """Add up the forces of all laws of a joint coordinate and their derivatives."""
    for j in range(8):
        law[LAW_F + j] = 0.0
    for kernel in range(t.law_ptr[index], t.law_ptr[index + 1]):
        out = law + LAW_OUT
        call_kernel(t.law_kernel[kernel], law + LAW_W0, law, t.law_inputs + t.law_inputs_ptr[kernel], out, out)
        for j in range(8):
            law[LAW_F + j] += out[j]


@lowered
def _weight(a1: Quad, a1_end: Quad, b1: Quad, b1_end: Quad, nm: Quad, n1: Quad) -> Quad:
    """Return the derivative of ``e = a . (n x b)`` by a common variation of both bodies."""
    return cross(a1_end, cross(nm, b1)) + cross(n1, cross(b1, a1)) + cross(b1_end, cross(a1, nm))


@lowered
def _set_arguments(t: TreeArrays, i: int, law: F64Array, h: float) -> None:
    """Set the arguments of the laws of one joint for the unknowns of the step."""
    b, a = t.records + i * STRIDE, t.records + t.parent[i] * STRIDE
    tau = b[TAU]
    if t.joint_type[i] == PRISMATIC:
        law[LAW_WM] = (b[D0] + tau) * 0.5 * (1.0 + dot(load_quad(b, N0), load_quad(b, N1)))
        law[LAW_W1], law[LAW_U], law[LAW_DW] = b[D0] + 2.0 * tau, 2.0 * tau / h, 2.0
    else:
        first, second = a, b
        if t.law_sign[i] < 0.0:
            first, second = b, a
        b1 = midpoint(load_quad(law, LAW_B10), load_quad(second, ALPHA), second[F])
        alpha, f = load_quad(first, ALPHA), first[F]
        _invariants_at_end(law, tau, t.law_sign[i], h)
        law[LAW_WM] = dot(midpoint(load_quad(law, LAW_A10), alpha, f), b1)
        law[LAW_WM + 1] = dot(midpoint(load_quad(law, LAW_A20), alpha, f), b1)


@lowered
def add_work(t: TreeArrays, h: float, work: F64Array) -> None:
    """Evaluate supplied and dissipated energy, and the potential energy of all joint laws at the end of the step.

    ``work[:2]`` are the energies before the step, ``work[3:6]`` those after it and the potential energy.
    """
    supplied, dissipated, potential = work[0], work[1], 0.0
    if t.n_laws > 0:
        for i in range(t.n_bodies):
            index = t.law_of_body[i]
            if index >= 0:
                law = t.law_records + index * LAW_STRIDE
                out = law + LAW_OUT
                _set_arguments(t, i, law, h)
                for kernel in range(t.law_ptr[index], t.law_ptr[index + 1]):
                    c = t.law_inputs + t.law_inputs_ptr[kernel]
                    call_kernel(t.law_work_kernel[kernel], law + LAW_W0, law, c, out, out)
                    supplied, dissipated, potential = supplied + out[0], dissipated + out[1], potential + out[2]
    work[3], work[4], work[5] = supplied, dissipated, potential


@lowered
def law_potential(t: TreeArrays) -> float:
    """Return the potential energy of all joint laws at the start of the step."""
    potential = 0.0
    for i in range(t.n_bodies):
        index = t.law_of_body[i]
        if index >= 0:
            law = t.law_records + index * LAW_STRIDE
            out = law + LAW_OUT
            for j in range(2):
                law[LAW_W1 + j], law[LAW_WM + j], law[LAW_U + j] = law[LAW_W0 + j], law[LAW_W0 + j], 0.0
            for kernel in range(t.law_ptr[index], t.law_ptr[index + 1]):
                c = t.law_inputs + t.law_inputs_ptr[kernel]
                call_kernel(t.law_work_kernel[kernel], law + LAW_W0, law, c, out, out)
                potential += out[2]
    return potential


@lowered
def evaluate_joint_force(t: TreeArrays, i: int, h: float) -> None:
    """Evaluate the joint force times h^2/4, and its derivatives by joint unknown and by the parent's variation."""
    b, a, index = t.records + i * STRIDE, t.records + t.parent[i] * STRIDE, t.law_of_body[i]
    law, hh = t.law_records + index * LAW_STRIDE, 0.25 * h * h
    tau, n0, n1, nm = b[TAU], load_quad(b, N0), load_quad(b, N1), load_quad(b, NM)
    _set_arguments(t, i, law, h)
    _sum_laws(t, index, law)
    if t.joint_type[i] == PRISMATIC:
        mean, cosine = b[D0] + tau, 0.5 * (1.0 + dot(n0, n1))
        b[Q], b[Q_TAU] = hh * law[LAW_F], hh * (law[LAW_DF] + law[LAW_FM] * cosine)
        store_quad(b, Q_EPS, cross(n1, n0) * (hh * law[LAW_FM] * mean))
        return
    sign = t.law_sign[i]
    first, second = a, b
    if sign < 0.0:
        first, second = b, a
    a10, a20, b10 = load_quad(law, LAW_A10), load_quad(law, LAW_A20), load_quad(law, LAW_B10)
    alpha_1, f_1, alpha_2, f_2 = load_quad(first, ALPHA), first[F], load_quad(second, ALPHA), second[F]
    a1, a2, b1 = midpoint(a10, alpha_1, f_1), midpoint(a20, alpha_1, f_1), midpoint(b10, alpha_2, f_2)
    e1, e2 = dot(a1, cross(nm, b1)), dot(a2, cross(nm, b1))
    force_1, force_2 = law[LAW_F], law[LAW_F + 1]
    b[Q] = hh * sign * (force_1 * e1 + force_2 * e2)
    # derivatives: invariants at the midpoint, e, and forces by the invariants at the end
    a1_end, a2_end, b1_end = a1 * 2.0 - a10, a2 * 2.0 - a20, b1 * 2.0 - b10
    w1_first, w1_second = cross(a1_end, b1), cross(b1_end, a1)
    w2_first, w2_second = cross(a2_end, b1), cross(b1_end, a2)
    by_1 = e1 * law[LAW_FM] + e2 * law[LAW_FM + 2]  # derivative of f.e by the invariants at the midpoint
    by_2 = e1 * law[LAW_FM + 1] + e2 * law[LAW_FM + 3]
    common = (w1_first + w1_second) * by_1 + (w2_first + w2_second) * by_2
    common = common + _weight(a1, a1_end, b1, b1_end, nm, n1) * force_1
    common = common + _weight(a2, a2_end, b1, b1_end, nm, n1) * force_2
    store_quad(b, Q_EPS, common * (hh * sign))
    if sign > 0.0:
        free_part = w1_second * by_1 + w2_second * by_2
        free_part = free_part + cross(b1_end, cross(a1 * force_1 + a2 * force_2, nm))
    else:
        free_part = w1_first * by_1 + w2_first * by_2
        free_part = free_part + cross(a1_end, cross(nm, b1)) * force_1 + cross(a2_end, cross(nm, b1)) * force_2
    b[Q_TAU] = hh * sign * (dot(n1, free_part) + e1 * law[LAW_DF] + e2 * law[LAW_DF + 1])
