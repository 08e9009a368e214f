"""Forward recursion of the tree tier: kinematics, momentum balance and linearization of each body.

The unknowns are variations of the end pose: ``d(d1) = 2 eps x d1`` and ``d(d_m) = eps x d1`` of a body-fixed vector,
``d(alpha) = (I - alpha^ + alpha alpha^T) eps`` and ``d(ups) = nu``. Then no derivative of the Cayley map is needed.
"""

from __future__ import annotations

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import lane, load_quad, make_quad, store_quad
from livens.engine.lowering.types import F64Array, Quad
from livens.engine.trees.records import (
    A11,
    A12,
    A21,
    A22,
    ALPHA,
    AN,
    ARMATURE,
    ARMATURE_MOMENTUM,
    AXIS_A,
    AXIS_B,
    C1,
    C2,
    D0,
    FREE,
    I0,
    L0,
    L1,
    MASS,
    N0,
    N1,
    NM,
    P0,
    PHI,
    PI,
    PRISMATIC,
    RELATIVE,
    REVOLUTE,
    RL,
    ROTOR,
    RP,
    SPHERICAL,
    STRIDE,
    TAU,
    UPS,
    WEIGHT,
    X0,
    X1,
    XM,
    Y0,
    Y1,
    YM,
    F,
    G,
    J,
    P,
    R,
    TreeArrays,
    X,
    Y,
)
from livens.engine.trees.vectors import (
    cross,
    dot,
    midpoint,
    mul,
    set_inertia,
    set_matrix,
    set_product,
)


@lowered
def begin_step(t: TreeArrays, h: float) -> None:
    """Set levers, axes, scaled momenta and spatial inertias at the start of a step of size h."""
    half = 0.5 * h
    for i in range(t.n_bodies):
        b, a = t.records + i * STRIDE, t.records + t.parent[i] * STRIDE
        joint_type = t.joint_type[i]
        if joint_type == ROTOR:
            driver = t.records + t.driver[i] * STRIDE
            driver[ARMATURE], driver[ARMATURE_MOMENTUM] = b[MASS], half * t.law_sign[t.driver[i]] * b[P]
            continue
        x0 = mul(a + R, load_quad(b, X))
        store_quad(b, X0, x0)
        if t.model_body[i] < 0:  # massless: the pose follows from the bodies of the joint
            set_product(b + R, a + R, b + RELATIVE)
            store_quad(b, N0, mul(a + R, load_quad(b, AXIS_A)))
            store_quad(b, PHI, load_quad(a, PHI) + x0)
        else:
            set_inertia(b + I0, b + R, b + J)
            store_quad(b, L0, mul(b + R, load_quad(b, PI)) * half)
            store_quad(b, P0, load_quad(b, P) * half)
            store_quad(b, Y0, mul(b + R, load_quad(b, Y)))
            store_quad(b, N0, mul(b + R, load_quad(b, AXIS_B)))
        if joint_type == PRISMATIC:
            end = t.records + t.tail[i] * STRIDE
            n0 = load_quad(b, N0)
            gap = load_quad(end, PHI) + mul(end + R, load_quad(end, Y)) - load_quad(a, PHI) - x0
            b[D0] = dot(n0, gap)
            if t.model_body[i] < 0:
                store_quad(b, PHI, load_quad(b, PHI) + n0 * b[D0])


@lowered
def move_body(t: TreeArrays, i: int) -> None:
    """Evaluate the kinematics of one body: rotation and translation of the step, levers and axis at its midpoint."""
    b, a = t.records + i * STRIDE, t.records + t.parent[i] * STRIDE
    joint_type = t.joint_type[i]
    if joint_type == ROTOR:
        return
    if joint_type == FREE:
        alpha_free = load_quad(b, ALPHA)
        b[F] = 1.0 / (1.0 + dot(alpha_free, alpha_free))
        return
    aa, fa, x0 = load_quad(a, ALPHA), a[F], load_quad(b, X0)
    alpha = aa
    xm = midpoint(x0, aa, fa)
    x1 = xm * 2.0 - x0
    ups = load_quad(a, UPS)
    if joint_type == REVOLUTE:
        tau, n0 = b[TAU], load_quad(b, N0)
        an = dot(aa, n0)
        nm = (n0 + cross(aa, n0) + aa * an) * fa
        g = 1.0 / (fa * (1.0 - tau * an))
        alpha = aa + nm * (tau * g)
        b[AN], b[G] = an, g
        store_quad(b, NM, nm)
        store_quad(b, N1, nm * 2.0 - n0)
    elif joint_type == PRISMATIC:
        tau, n0 = b[TAU], load_quad(b, N0)
        n1 = midpoint(n0, aa, fa) * 2.0 - n0
        d0, d1 = b[D0], b[D0] + 2.0 * tau
        direction = n0 + cross(aa, n0)
        xm = xm + (n0 * d0 + n1 * d1) * 0.5
        x1 = x1 + n1 * d1
        ups = ups + direction * tau
        b[G] = 1.0
        store_quad(b, NM, direction)
        store_quad(b, N1, n1)
    elif joint_type == SPHERICAL:
        alpha = load_quad(b, ALPHA)
    f = 1.0 / (1.0 + dot(alpha, alpha))
    y0 = load_quad(b, Y0)
    ym = midpoint(y0, alpha, f)
    b[F] = f
    store_quad(b, ALPHA, alpha)
    store_quad(b, XM, xm)
    store_quad(b, X1, x1)
    store_quad(b, YM, ym)
    store_quad(b, Y1, ym * 2.0 - y0)
    store_quad(b, UPS, ups + cross(aa, xm) - cross(alpha, ym))


@lowered
def balance_body(b: F64Array, hh: float) -> None:
    """Evaluate the momentum balance of one body: h/4 times the momentum change minus the impulse of applied forces."""
    alpha, ups, f, l0 = load_quad(b, ALPHA), load_quad(b, UPS), b[F], load_quad(b, L0)
    store_quad(b, RP, ups * b[MASS] - load_quad(b, P0) - load_quad(b, WEIGHT) * hh)
    spin = mul(b + I0, alpha)
    rl = midpoint(spin - l0 + cross(alpha, spin), alpha, f)
    store_quad(b, RL, rl)
    store_quad(b, L1, l0 + rl * 2.0)


@lowered
def _rotation_column(alpha: Quad, f2: float, e: Quad, component: float) -> Quad:
    """Return a column of the Cayley map of 2 alpha."""
    return (e + cross(alpha, e) + alpha * component) * f2 - e


@lowered
def linearize_body(b: F64Array) -> None:
    """Set the 6x6 blocks of one body: ``m I``, and ``C I0 B - l1^`` with the Cayley map C and its inverse tangent B."""
    alpha, mass, l1, f2 = load_quad(b, ALPHA), b[MASS], load_quad(b, L1), 2.0 * b[F]
    e0, e1, e2 = make_quad(1.0, 0.0, 0.0), make_quad(0.0, 1.0, 0.0), make_quad(0.0, 0.0, 1.0)
    zero = make_quad(0.0, 0.0, 0.0)
    x, y, z = lane(alpha, 0), lane(alpha, 1), lane(alpha, 2)
    set_matrix(
        b + A12,
        _rotation_column(alpha, f2, e0, x),
        _rotation_column(alpha, f2, e1, y),
        _rotation_column(alpha, f2, e2, z),
    )
    set_product(b + A21, b + A12, b + I0)
    c0 = mul(b + A21, e0 - cross(alpha, e0) + alpha * x)
    c1 = mul(b + A21, e1 - cross(alpha, e1) + alpha * y)
    c2 = mul(b + A21, e2 - cross(alpha, e2) + alpha * z)
    l_x, l_y, l_z = lane(l1, 0), lane(l1, 1), lane(l1, 2)
    set_matrix(b + A22, c0 - make_quad(0.0, l_z, -l_y), c1 - make_quad(-l_z, 0.0, l_x), c2 - make_quad(l_y, -l_x, 0.0))
    set_matrix(b + A11, e0 * mass, e1 * mass, e2 * mass)
    set_matrix(b + A12, zero, zero, zero)
    set_matrix(b + A21, zero, zero, zero)
    store_quad(b, C1, zero)
    store_quad(b, C2, zero)
