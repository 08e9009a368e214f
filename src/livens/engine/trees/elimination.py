"""Articulated-body recursion (Featherstone 2008) of the tree tier: exact Newton correction in O(n).

The backward recursion eliminates bodies from the leaves to the root, the forward recursion substitutes. Transformations
to the parent have levers of the midpoint on the left and of the end on the right, so that the 6x6
blocks are not symmetric.
"""

from __future__ import annotations

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import lane, load_quad, make_quad, store_quad
from livens.engine.lowering.types import F64Array, Quad
from livens.engine.trees.armatures import evaluate_armature
from livens.engine.trees.laws import evaluate_joint_force
from livens.engine.trees.records import (
    A11,
    A12,
    A21,
    A22,
    ALPHA,
    AN,
    ARMATURE,
    ARMATURE_FORCE,
    ARMATURE_TAU,
    C1,
    C2,
    DELTA,
    DTAU,
    EPS,
    FIXED,
    FREE,
    LU,
    MO,
    N0,
    N1,
    NM,
    NU,
    PIVOT,
    PRISMATIC,
    Q_EPS,
    Q_TAU,
    REVOLUTE,
    RL,
    ROW,
    RP,
    SAVED_A12,
    SPHERICAL,
    STRIDE,
    TAU,
    U1,
    U2,
    UPS,
    V1,
    V2,
    X1,
    XM,
    Y1,
    YM,
    F,
    G,
    Q,
    TreeArrays,
)
from livens.engine.trees.vectors import (
    add_to,
    cross,
    dot,
    factor_lu,
    hat_column,
    hat_hat_column,
    inverse_tangent,
    mul,
    set_matrix,
    solve_lu,
)


@lowered
def transmit_wrench(t: TreeArrays, i: int, h: float) -> None:
    """Add the wrench of one body to its parent, and evaluate the residual of its joint equation."""
    b, joint_type = t.records + i * STRIDE, t.joint_type[i]
    if joint_type == FREE:
        return
    rp = load_quad(b, RP)
    moment = load_quad(b, RL) - cross(load_quad(b, YM), rp)
    store_quad(b, MO, moment)
    if joint_type in (REVOLUTE, PRISMATIC):
        b[Q] = 0.0
        if t.law_of_body[i] >= 0:
            evaluate_joint_force(t, i, h)
        b[ROW] = dot(load_quad(b, NM), moment if joint_type == REVOLUTE else rp) - b[Q]
        if b[ARMATURE] != 0.0:
            evaluate_armature(t, i)
            b[ROW] -= b[ARMATURE_FORCE] / b[G]
    if t.parent[i] < t.n_bodies:
        a = t.records + t.parent[i] * STRIDE
        add_to(a, RP, rp)
        add_to(a, RL, moment + cross(load_quad(b, XM), rp))


@lowered
def _fill_lu(b: F64Array, joint_type: int) -> None:
    S = b + LU
    if joint_type == FREE:
        for i in range(3):
            for j in range(3):
                S[6 * i + j], S[6 * i + j + 3] = b[A11 + 4 * j + i], b[A12 + 4 * j + i]
                S[6 * i + 18 + j], S[6 * i + 21 + j] = b[A21 + 4 * j + i], b[A22 + 4 * j + i]
        factor_lu(S, 6)
    else:
        for i in range(3):
            for j in range(3):
                S[6 * i + j] = b[A22 + 4 * j + i]
        factor_lu(S, 3)


@lowered
def _solve_three(b: F64Array, x: Quad) -> Quad:
    """Return the solution of the 3x3 system of a spherical joint."""
    room = b + (LU + 24)
    room[0], room[1], room[2] = lane(x, 0), lane(x, 1), lane(x, 2)
    solve_lu(b + LU, 3, room)
    return make_quad(room[0], room[1], room[2])


@lowered
def eliminate_body(t: TreeArrays, i: int) -> None:
    """Eliminate the unknowns of one joint, and add the reduced blocks and residuals to the parent.

    The columns p, q, r and s of the blocks A11, A12, A21 and A22 are local: only those of the parent are stored.
    """
    b, joint_type = t.records + i * STRIDE, t.joint_type[i]
    if joint_type == FREE:
        _fill_lu(b, joint_type)
        return
    a = t.records + t.parent[i] * STRIDE
    rp, moment, ym, y1 = load_quad(b, RP), load_quad(b, MO), load_quad(b, YM), load_quad(b, Y1)
    p0, p1, p2 = load_quad(b, A11), load_quad(b, A11 + 4), load_quad(b, A11 + 8)
    r0, r1, r2 = load_quad(b, A21), load_quad(b, A21 + 4), load_quad(b, A21 + 8)
    x, y, z = lane(y1, 0), lane(y1, 1), lane(y1, 2)
    q0 = load_quad(b, A12) + hat_column(p1, p2, y, z)
    q1 = load_quad(b, A12 + 4) + hat_column(p2, p0, z, x)
    q2 = load_quad(b, A12 + 8) + hat_column(p0, p1, x, y)
    d = dot(rp, y1)
    s0 = load_quad(b, A22) + hat_column(r1, r2, y, z) - cross(ym, q0) - hat_hat_column(y1, rp, d, 0)
    s1 = load_quad(b, A22 + 4) + hat_column(r2, r0, z, x) - cross(ym, q1) - hat_hat_column(y1, rp, d, 1)
    s2 = load_quad(b, A22 + 8) + hat_column(r0, r1, x, y) - cross(ym, q2) - hat_hat_column(y1, rp, d, 2)
    r0, r1, r2 = r0 - cross(ym, p0), r1 - cross(ym, p1), r2 - cross(ym, p2)
    c1 = load_quad(b, C1)
    c2 = load_quad(b, C2) - cross(ym, c1)
    if joint_type == SPHERICAL:
        set_matrix(b + A22, s0, s1, s2)
        _fill_lu(b, joint_type)
        total = moment + c2
        store_quad(b, C2, total)
        set_matrix(b + SAVED_A12, q0, q1, q2)
        c1 = c1 - mul(b + SAVED_A12, _solve_three(b, total))
        c2 = -moment
        set_matrix(b + U1, r0, r1, r2)  # used by the forward recursion
        p0 = p0 - mul(b + SAVED_A12, _solve_three(b, r0))
        p1 = p1 - mul(b + SAVED_A12, _solve_three(b, r1))
        p2 = p2 - mul(b + SAVED_A12, _solve_three(b, r2))
        zero = make_quad(0.0, 0.0, 0.0)
        q0, q1, q2, r0, r1, r2, s0, s1, s2 = zero, zero, zero, zero, zero, zero, zero, zero, zero
    elif joint_type in (REVOLUTE, PRISMATIC):
        n1, nm, stiffness = load_quad(b, N1), load_quad(b, NM), 0.0
        nx, ny, nz = lane(n1, 0), lane(n1, 1), lane(n1, 2)
        law_row = make_quad(0.0, 0.0, 0.0)
        if t.law_of_body[i] >= 0:
            stiffness, law_row = -b[Q_TAU], -load_quad(b, Q_EPS)
        if b[ARMATURE] != 0.0:
            if joint_type == REVOLUTE:
                tau, g, torque = b[TAU], b[G], b[ARMATURE_FORCE]
                stiffness += (1.0 + tau * tau) * (torque * a[F] * b[AN] - b[ARMATURE_TAU] / g)
                law_row = law_row + (nm * tau + load_quad(a, ALPHA) * (2.0 / g)) * torque
            else:
                stiffness -= b[ARMATURE_TAU]
        if joint_type == REVOLUTE:
            v1, v2 = q0 * nx + q1 * ny + q2 * nz, s0 * nx + s1 * ny + s2 * nz
            pivot = 1.0 / (dot(nm, v2) + stiffness)
            u1 = make_quad(dot(r0, nm), dot(r1, nm), dot(r2, nm)) * pivot
            u2 = (make_quad(dot(s0, nm), dot(s1, nm), dot(s2, nm)) + cross(n1, moment) + law_row) * pivot
            delta = -(b[ROW] + dot(nm, c2)) * pivot
        else:
            v1, v2 = p0 * nx + p1 * ny + p2 * nz, r0 * nx + r1 * ny + r2 * nz + cross(n1, rp)
            pivot = 1.0 / (dot(nm, v1) + stiffness)
            w, alpha = cross(load_quad(b, N0), rp), load_quad(b, ALPHA)
            u1 = make_quad(dot(p0, nm), dot(p1, nm), dot(p2, nm)) * pivot
            u2 = make_quad(dot(q0, nm), dot(q1, nm), dot(q2, nm)) + w + cross(alpha, w) + alpha * dot(alpha, w)
            u2 = (u2 + law_row) * pivot
            delta = -(b[ROW] + dot(nm, c1)) * pivot
        b[DELTA], b[PIVOT] = delta, pivot
        c1, c2 = c1 + v1 * delta, c2 + v2 * delta
        store_quad(b, U1, u1)
        store_quad(b, U2, u2)
        store_quad(b, V1, v1)
        store_quad(b, V2, v2)
        p0, p1, p2 = p0 - v1 * lane(u1, 0), p1 - v1 * lane(u1, 1), p2 - v1 * lane(u1, 2)
        q0, q1, q2 = q0 - v1 * lane(u2, 0), q1 - v1 * lane(u2, 1), q2 - v1 * lane(u2, 2)
        r0, r1, r2 = r0 - v2 * lane(u1, 0), r1 - v2 * lane(u1, 1), r2 - v2 * lane(u1, 2)
        s0, s1, s2 = s0 - v2 * lane(u2, 0), s1 - v2 * lane(u2, 1), s2 - v2 * lane(u2, 2)
    if t.parent[i] < t.n_bodies:
        xm, x1 = load_quad(b, XM), load_quad(b, X1)
        x, y, z = lane(x1, 0), lane(x1, 1), lane(x1, 2)
        d = dot(rp, x1)
        q0, q1, q2 = q0 - hat_column(p1, p2, y, z), q1 - hat_column(p2, p0, z, x), q2 - hat_column(p0, p1, x, y)
        add_to(a, A22, s0 - hat_column(r1, r2, y, z) + cross(xm, q0) + hat_hat_column(x1, rp, d, 0))
        add_to(a, A22 + 4, s1 - hat_column(r2, r0, z, x) + cross(xm, q1) + hat_hat_column(x1, rp, d, 1))
        add_to(a, A22 + 8, s2 - hat_column(r0, r1, x, y) + cross(xm, q2) + hat_hat_column(x1, rp, d, 2))
        add_to(a, A11, p0)
        add_to(a, A11 + 4, p1)
        add_to(a, A11 + 8, p2)
        add_to(a, A12, q0)
        add_to(a, A12 + 4, q1)
        add_to(a, A12 + 8, q2)
        add_to(a, A21, r0 + cross(xm, p0))
        add_to(a, A21 + 4, r1 + cross(xm, p1))
        add_to(a, A21 + 8, r2 + cross(xm, p2))
        add_to(a, C1, c1)
        add_to(a, C2, c2 + cross(xm, c1))


@lowered
def load_body(t: TreeArrays, i: int, part: float) -> None:
    """Add the reduced loads C1 and C2 of one body, and a fraction of its residuals, to the parent."""
    b, joint_type = t.records + i * STRIDE, t.joint_type[i]
    if joint_type == FREE:
        return
    c1, moment = load_quad(b, C1), load_quad(b, MO) * part
    c2 = load_quad(b, C2) - cross(load_quad(b, YM), c1)
    if joint_type == SPHERICAL:
        total = moment + c2
        store_quad(b, C2, total)
        c1 = c1 - mul(b + SAVED_A12, _solve_three(b, total))
        c2 = -moment
    elif joint_type in (REVOLUTE, PRISMATIC):
        delta = -(part * b[ROW] + dot(load_quad(b, NM), c2 if joint_type == REVOLUTE else c1)) * b[PIVOT]
        b[DELTA] = delta
        c1, c2 = c1 + load_quad(b, V1) * delta, c2 + load_quad(b, V2) * delta
    if t.parent[i] < t.n_bodies:
        a = t.records + t.parent[i] * STRIDE
        add_to(a, C1, c1)
        add_to(a, C2, c2 + cross(load_quad(b, XM), c1))


@lowered
def _larger(a: float, b: float) -> float:
    """Return the larger absolute value; NaN propagates from b."""
    return a if abs(b) <= a else abs(b)


@lowered
def correct_body(t: TreeArrays, i: int, part: float) -> float:
    """Evaluate the variation of one body from that of its parent; return the largest change of its unknowns.

    The residual of a free body counts by a fraction.
    """
    b, a, joint_type = t.records + i * STRIDE, t.records + t.parent[i] * STRIDE, t.joint_type[i]
    if joint_type == FREE:
        r1, r2 = load_quad(b, RP) * part + load_quad(b, C1), load_quad(b, RL) * part + load_quad(b, C2)
        x = b + V1
        for j in range(3):
            x[j], x[3 + j] = -lane(r1, j), -lane(r2, j)
        solve_lu(b + LU, 6, x)
        largest = 0.0
        for j in range(6):
            largest = _larger(largest, x[j])
        store_quad(b, NU, make_quad(x[0], x[1], x[2]))
        store_quad(b, EPS, make_quad(x[3], x[4], x[5]))
        return largest
    parent_eps = load_quad(a, EPS)
    eps = parent_eps
    nu = load_quad(a, NU) + cross(parent_eps, load_quad(b, X1))
    change = 0.0
    if joint_type == SPHERICAL:
        eps = -_solve_three(b, load_quad(b, C2) + mul(b + U1, nu))
        change = _larger(_larger(abs(lane(eps, 0)), lane(eps, 1)), lane(eps, 2))
    elif joint_type != FIXED:
        delta = b[DELTA] - dot(load_quad(b, U1), nu) - dot(load_quad(b, U2), parent_eps)
        change = abs(delta)
        if joint_type == REVOLUTE:
            eps = parent_eps + load_quad(b, N1) * delta
            b[DTAU] = (1.0 + b[TAU] * b[TAU]) * delta
        else:
            nu = nu + load_quad(b, N1) * delta
            b[DTAU] = delta
    store_quad(b, EPS, eps)
    store_quad(b, NU, nu - cross(eps, load_quad(b, Y1)))
    return change


@lowered
def apply_correction(t: TreeArrays, part: float) -> None:
    """Update the unknowns by a fraction of the correction."""
    for i in range(t.n_driven):
        b, joint_type = t.records + i * STRIDE, t.joint_type[i]
        if joint_type in (FREE, SPHERICAL):
            alpha = load_quad(b, ALPHA)
            store_quad(b, ALPHA, alpha + inverse_tangent(alpha, load_quad(b, EPS) * part))
            store_quad(b, UPS, load_quad(b, UPS) + load_quad(b, NU) * part)
        else:
            b[TAU] += part * b[DTAU]
