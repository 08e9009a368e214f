"""Time loop of the tree tier: prediction, Newton iteration and final state of fixed steps."""

from __future__ import annotations

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import load_quad, make_quad, store_quad
from livens.engine.lowering.types import F64Array, I64Array
from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.predictors import POLYNOMIAL_POINTS, extrapolate_polynomial
from livens.engine.trees.armatures import half_increment
from livens.engine.trees.closures import (
    add_closure_work,
    add_closures,
    apply_multipliers,
    begin_closures,
    correct_closures,
    load_multipliers,
    store_multipliers,
)
from livens.engine.trees.elimination import (
    apply_correction,
    correct_body,
    eliminate_body,
    load_body,
    transmit_wrench,
)
from livens.engine.trees.forces import add_force_work, add_wrenches_and_blocks, begin_forces
from livens.engine.trees.laws import add_work, begin_laws
from livens.engine.trees.monitor import MONITOR_WIDTH, monitor_state
from livens.engine.trees.records import (
    ALPHA,
    AXIS_A,
    AXIS_B,
    COMPACT,
    CROSS,
    D0,
    FIXED,
    FREE,
    MASS,
    PHI,
    PI,
    PRISMATIC,
    RELATIVE,
    REVOLUTE,
    ROTOR,
    SPHERICAL,
    STRIDE,
    TAU,
    UPS,
    F,
    J,
    P,
    R,
    TreeArrays,
    X,
    Y,
)
from livens.engine.trees.residual import balance_body, begin_step, linearize_body, move_body
from livens.engine.trees.vectors import add_to, cross, dot, mul, mul_transposed, set_matrix, set_product

#: Maximum number of Newton iterations of a step.
MAX_ITERATIONS = 25
#: Tolerance of the estimated error of the unknowns, relative to one plus the largest unknown.
TOLERANCE = 1e-17
#: Largest correction, relative to the largest unknown, that may be round-off if it does not decrease any more.
ROUNDOFF_CORRECTION = 1e-9
#: Constant of the quadratic convergence in the first iteration, in 1/rad or 1/m.
QUADRATIC_CONSTANT = 10.0
#: Correction above which Newton's method has failed, and largest correction of the damped iteration, in rad or m.
DIVERGED_CORRECTION, MAX_DAMPED_CORRECTION = 1e6, 0.3
#: Squared largest tangent of half an angle increment of a solution. The step equations have further roots near half a
#: turn.
MAX_SQUARED_TANGENT = 100.0
#: Numbers of a Newton iteration in `TreeArrays.newton`: largest correction of a body, sum of the corrections, largest
#: correction of the wrenches of closures, applied fraction, one plus the largest unknown, and in lanes the largest
#: squared tangent of half an angle.
CORRECTION, TOTAL, WRENCHES, PART, SCALE, TANGENT, N_NEWTON = range(7)


@lowered
def load_state(t: TreeArrays, state: F64Array) -> None:
    """Copy a compact state to the records."""
    for i in range(t.n_bodies):
        if t.model_body[i] >= 0:
            b, s = t.records + i * STRIDE, state + t.model_body[i] * COMPACT
            for j in range(3):
                b[PHI + j], b[R + j], b[R + 4 + j], b[R + 8 + j] = s[j], s[3 + j], s[6 + j], s[9 + j]
                b[P + j], b[PI + j] = s[12 + j], s[15 + j]


@lowered
def store_state(t: TreeArrays, state: F64Array) -> None:
    """Copy the records to a compact state."""
    for i in range(t.n_bodies):
        if t.model_body[i] >= 0:
            b, s = t.records + i * STRIDE, state + t.model_body[i] * COMPACT
            for j in range(3):
                s[j], s[3 + j], s[6 + j], s[9 + j] = b[PHI + j], b[R + j], b[R + 4 + j], b[R + 8 + j]
                s[12 + j], s[15 + j] = b[P + j], b[PI + j]


@lowered
def load_unknowns(t: TreeArrays, x: F64Array, half: float) -> None:
    """Set the unknowns of the records from rates: velocities times half the step size."""
    for i in range(t.n_bodies):
        b, joint_type, y = t.records + i * STRIDE, t.joint_type[i], x + t.unknown_ptr[i]
        if joint_type == FREE:
            for j in range(3):
                b[UPS + j], b[ALPHA + j] = half * y[j], half * y[3 + j]
        elif joint_type == SPHERICAL:
            for j in range(3):
                b[ALPHA + j] = half * y[j]
        elif joint_type in (REVOLUTE, PRISMATIC):
            b[TAU] = half * y[0]
    load_multipliers(t, x)


@lowered
def store_unknowns(t: TreeArrays, x: F64Array, half: float) -> None:
    """Store the unknowns of the records as rates."""
    for i in range(t.n_bodies):
        b, joint_type, y = t.records + i * STRIDE, t.joint_type[i], x + t.unknown_ptr[i]
        if joint_type == FREE:
            for j in range(3):
                y[j], y[3 + j] = b[UPS + j] / half, b[ALPHA + j] / half
        elif joint_type == SPHERICAL:
            for j in range(3):
                y[j] = b[ALPHA + j] / half
        elif joint_type in (REVOLUTE, PRISMATIC):
            y[0] = b[TAU] / half
    store_multipliers(t, x)


@lowered
def _largest_unknown(t: TreeArrays) -> float:
    largest = 0.0
    for i in range(t.n_bodies):
        b, joint_type = t.records + i * STRIDE, t.joint_type[i]
        if joint_type == FREE:
            for j in range(3):
                largest = max(largest, abs(b[UPS + j]))
        elif joint_type in (PRISMATIC, REVOLUTE):
            largest = max(largest, abs(b[TAU]))
    return largest


@lowered
def largest_squared_tangent(t: TreeArrays) -> float:
    """Return the largest squared tangent of half the rotation angle of a joint or of a free body, at least one."""
    largest = 1.0
    for i in range(t.n_driven):
        b, joint_type = t.records + i * STRIDE, t.joint_type[i]
        if joint_type == REVOLUTE:
            largest = max(largest, b[TAU] * b[TAU])
        elif joint_type in (FREE, SPHERICAL):
            largest = max(largest, 1.0 / b[F])
    return largest


@lowered
def evaluate_correction(t: TreeArrays, h: float) -> None:
    """Evaluate the Newton correction with exact derivatives, and its norms."""
    hh = 0.25 * h * h
    for i in range(t.n_driven):
        b = t.records + i * STRIDE
        move_body(t, i)
        balance_body(b, hh)
        linearize_body(b)
    add_wrenches_and_blocks(t)
    add_closures(t, True)
    for i in range(t.n_driven - 1, -1, -1):
        transmit_wrench(t, i, h)
        eliminate_body(t, i)
    wrenches = 0.0
    if t.n_closures > 0:
        for i in range(t.n_driven):
            correct_body(t, i, 1.0)
        wrenches = correct_closures(t)
        for i in range(t.n_driven - 1, -1, -1):
            load_body(t, i, 1.0)
    correction, total = 0.0, 0.0
    for i in range(t.n_driven):
        change = correct_body(t, i, 1.0)
        total += change
        correction = max(correction, change)
    t.newton[CORRECTION], t.newton[TOTAL], t.newton[WRENCHES] = correction, total, wrenches


@lowered
def update_unknowns(t: TreeArrays, h: float) -> None:
    """Update the unknowns by a fraction of the Newton correction, and evaluate their scale."""
    apply_correction(t, t.newton[PART])
    apply_multipliers(t, h, t.newton[PART])
    t.newton[SCALE] = 1.0 + _largest_unknown(t)


@lowered
def tree_newton_decision(
    correction: float, wrenches: float, scale: float, previous: float, previous_product: float, iteration: int
) -> bool:
    """Return True if the Newton iteration on a tree has converged with a full correction.

    The iteration stops if the estimated error of the next iterate is at round-off. It is the product of the correction
    and of its sum with the correction of the wrenches of closures, whose directions follow the motion.
    """
    # constant of the quadratic convergence from the last two corrections, where they converge
    constant, product = QUADRATIC_CONSTANT, correction * (correction + wrenches)
    if iteration > 1 and correction < 0.1 * previous:
        constant = min(correction / previous_product, 10.0 * QUADRATIC_CONSTANT) + 1.0
    if constant * product < TOLERANCE * scale or correction < 10.0 * TOLERANCE * scale:
        return True
    return iteration > 1 and correction < ROUNDOFF_CORRECTION * scale and correction > 0.1 * previous  # round-off


@lowered
def newton_solve_tree(t: TreeArrays, h: float, damped: bool) -> int:
    """Solve one step by Newton's method with exact derivatives; return the number of iterations, or -1."""
    newton, previous, previous_product = t.newton, 0.0, 1.0
    for iteration in range(1, MAX_ITERATIONS + 1):
        evaluate_correction(t, h)
        correction, wrenches = newton[CORRECTION], newton[WRENCHES]
        if not newton[TOTAL] < DIVERGED_CORRECTION:  # also NaN
            return -1
        part = 1.0
        if damped and correction > MAX_DAMPED_CORRECTION:
            part = MAX_DAMPED_CORRECTION / correction
        newton[PART] = part
        update_unknowns(t, h)
        if part == 1.0 and tree_newton_decision(
            correction, wrenches, newton[SCALE], previous, previous_product, iteration
        ):
            return iteration if largest_squared_tangent(t) < MAX_SQUARED_TANGENT else -1
        previous, previous_product = correction, correction * (correction + wrenches)
    return -1


@lowered
def finish_step(t: TreeArrays, h: float) -> None:
    """Update momenta and poses of all bodies; rotations are orthonormal and joints closed to round-off."""
    scale = 2.0 / h
    for i in range(t.n_bodies):
        b, a, joint_type = t.records + i * STRIDE, t.records + t.parent[i] * STRIDE, t.joint_type[i]
        if joint_type == ROTOR:
            change = 2.0 * t.law_sign[t.driver[i]] * half_increment(t, t.driver[i])
            b[PHI], b[P] = b[PHI] + change, scale * b[MASS] * change - b[P]
        elif t.model_body[i] >= 0:
            alpha, ups, f2 = load_quad(b, ALPHA), load_quad(b, UPS), 2.0 * b[F]
            store_quad(b, PI, mul(b + J, mul_transposed(b + R, alpha)) * (2.0 * scale) - load_quad(b, PI))
            store_quad(b, P, ups * (2.0 * b[MASS] * scale) - load_quad(b, P))
            if joint_type in (PRISMATIC, FIXED):
                set_product(b + R, a + R, b + RELATIVE)
            else:
                d0, d1, d2 = load_quad(b, R), load_quad(b, R + 4), load_quad(b, R + 8)
                d0 = (d0 + cross(alpha, d0) + alpha * dot(alpha, d0)) * f2 - d0
                d1 = (d1 + cross(alpha, d1) + alpha * dot(alpha, d1)) * f2 - d1
                d2 = (d2 + cross(alpha, d2) + alpha * dot(alpha, d2)) * f2 - d2
                d01, d02, d12 = dot(d0, d1), dot(d0, d2), dot(d1, d2)
                set_matrix(
                    b + R,
                    (d0 * (3.0 - dot(d0, d0)) - d1 * d01 - d2 * d02) * 0.5,
                    (d1 * (3.0 - dot(d1, d1)) - d0 * d01 - d2 * d12) * 0.5,
                    (d2 * (3.0 - dot(d2, d2)) - d0 * d02 - d1 * d12) * 0.5,
                )
                if t.dimension == 2:
                    store_quad(b + R, 8, make_quad(0.0, 0.0, 1.0))
                elif joint_type == REVOLUTE:  # align the axes: rounding errors would accumulate
                    if t.model_body[t.parent[i]] != CROSS:
                        axis_a = mul(a + R, load_quad(b, AXIS_A))
                        tilt = cross(mul(b + R, load_quad(b, AXIS_B)), axis_a)
                    else:  # universal joint: the axis of the parent's parent is normal to that of the body
                        grandparent = t.records + t.parent[t.parent[i]] * STRIDE
                        first = mul(grandparent + R, load_quad(a, AXIS_A))
                        second = mul(b + R, load_quad(b, AXIS_B))
                        tilt = cross(first, second) * dot(first, second)
                    add_to(b + R, 0, cross(tilt, load_quad(b, R)))
                    add_to(b + R, 4, cross(tilt, load_quad(b, R + 4)))
                    add_to(b + R, 8, cross(tilt, load_quad(b, R + 8)))
            if joint_type == FREE:
                store_quad(b, PHI, load_quad(b, PHI) + ups * 2.0)
            else:
                phi = load_quad(a, PHI) + mul(a + R, load_quad(b, X)) - mul(b + R, load_quad(b, Y))
                if joint_type == PRISMATIC:
                    phi = phi + mul(b + R, load_quad(b, AXIS_B)) * (b[D0] + 2.0 * b[TAU])
                store_quad(b, PHI, phi)
        else:
            set_product(b + R, a + R, b + RELATIVE)
            phi = load_quad(a, PHI) + mul(a + R, load_quad(b, X))
            if joint_type == PRISMATIC:
                phi = phi + mul(a + R, load_quad(b, AXIS_A)) * (b[D0] + 2.0 * b[TAU])
            store_quad(b, PHI, phi)


@lowered
def advance_tree(
    t: TreeArrays,
    states: F64Array,
    X: F64Array,
    work: F64Array,
    monitor: F64Array,
    newton_iterations: I64Array,
    h: float,
    t_origin: float,
    step0: int,
    done: int,
    n_steps: int,
    n_history: int,
) -> int:
    """Take fixed steps from step `done` of a chunk; return the number of completed steps.

    Step s goes from ``states[s]`` to ``states[s+1]``. Its unknowns are ``X[s+HISTORY]``, as rates, and `n_history` of
    the rows before step `done` are valid. ``work[s]`` contains the supplied and the dissipated energy.
    """
    n, width = t.n_unknowns, COMPACT * t.n_real
    load_state(t, states + done * width)
    for s in range(done, n_steps):
        begin_step(t, h)
        begin_laws(t, h, t_origin + (step0 + s) * h)
        begin_forces(t, h, t_origin + (step0 + s) * h)
        begin_closures(t, h, t_origin + (step0 + s) * h)
        x = X + (s + HISTORY) * n
        extrapolate_polynomial(X + (s + HISTORY - POLYNOMIAL_POINTS) * n, x, n, n_history + s - done)
        load_unknowns(t, x, 0.5 * h)
        n_iterations = newton_solve_tree(t, h, False)
        if n_iterations < 0:
            load_unknowns(t, X + (s + HISTORY - 1) * n, 0.5 * h)
            n_iterations = newton_solve_tree(t, h, True)
            if n_iterations < 0:
                return s
            n_iterations += MAX_ITERATIONS
        for i in range(t.n_bodies):
            move_body(t, i)
        add_work(t, h, work + 3 * s)
        add_force_work(t, work + 3 * s)
        add_closure_work(t, work + 3 * s)
        finish_step(t, h)
        newton_iterations[s] = n_iterations
        store_unknowns(t, x, 0.5 * h)
        store_state(t, states + (s + 1) * width)
        monitor_state(t, t_origin + (step0 + s + 1) * h, work[3 * s + 5], monitor + (s + 1) * MONITOR_WIDTH)
    return n_steps
