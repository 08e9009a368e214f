"""Full states of the tree tier: coordinates, velocities, momenta and multipliers from compact states and unknowns."""

from __future__ import annotations

from dataclasses import dataclass

from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import lane, load_quad, make_quad, store_quad
from livens.engine.lowering.types import F64Array, I64Array, Quad, Struct
from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.predictors import POLYNOMIAL_POINTS
from livens.engine.newton.step_size_control import (
    H_LAST,
    MAX_SLOW_CHANGE,
    NOT_ESTIMATED,
    StepSizeController,
    is_estimate_due,
    next_attempt_size,
    on_accept,
)
from livens.engine.trees.armatures import half_increment
from livens.engine.trees.closures import add_closures, begin_closures, closure_potential
from livens.engine.trees.elimination import transmit_wrench
from livens.engine.trees.forces import add_wrenches, begin_forces, force_potential
from livens.engine.trees.laws import begin_laws, law_potential
from livens.engine.trees.monitor import monitor_state
from livens.engine.trees.records import (
    ALPHA,
    ARMATURE,
    ARMATURE_FORCE,
    COMPACT,
    EPS,
    FREE,
    J_INV,
    LAW_F,
    LAW_STRIDE,
    MASS,
    MO,
    N0,
    NM,
    NU,
    PHI,
    PI,
    PRISMATIC,
    REVOLUTE,
    RP,
    SPHERICAL,
    STRIDE,
    UPS,
    F,
    G,
    J,
    P,
    R,
    TreeArrays,
    Y,
)
from livens.engine.trees.residual import balance_body, begin_step, move_body
from livens.engine.trees.time_loop import advance_tree, load_state, load_unknowns
from livens.engine.trees.vectors import cross, dot, factor_lu, midpoint, mul, solve_lu

#: Integers of a joint: nodes of first and second body and of the child, sign of the child, first constraint, law
#: records of angle and displacement, numbers of locked translations and of orthogonal axes, and both lists.
FIRST, SECOND, CHILD, SIGN, CONSTRAINT, ANGLE_LAW, SLIDE_LAW, N_LOCKED, N_ORTHOGONAL, LOCKED = range(10)
JOINT_INTS = 20
#: Numbers of a joint: axes on the first and on the second body, as columns of four, and the same at the midpoint.
AXES_FIRST, AXES_SECOND, MID_FIRST, MID_SECOND, GRAM, RHS = 0, 12, 24, 36, 48, 84
JOINT_FLOATS = 96


@dataclass(frozen=True, eq=False)
class OutputArrays(Struct):
    """Indices of the full state, and geometry of all joints."""

    n_state: int
    q: int
    v: int
    p: int
    supplied: int
    multipliers: int
    n_multipliers: int
    spins: int
    dofs: I64Array  # coordinates of each body in space, centre first, (n_real, 12); -1 if it has none
    n_joints: int
    joint_ints: I64Array
    joint_floats: F64Array
    n_closure_multipliers: int
    closure_constraints: I64Array  # number of each constraint of closures
    armature_constraints: I64Array  # number of the constraint of each armature


@lowered
def _axis(joint: F64Array, table: int, number: int) -> Quad:
    return load_quad(joint, table + 4 * (number - 1))


@lowered
def _solve_gram(joint: F64Array, n: int) -> None:
    """Solve the normal equations of at most three columns; the result replaces the right-hand side."""
    factor_lu(joint + GRAM, n)
    solve_lu(joint + GRAM, n, joint + RHS)


@lowered
def _armature_torque(joint: F64Array, first: F64Array, second: F64Array, child: F64Array) -> Quad:
    """Return the torque of the armature on the child, times h^2/4.

    It acts on the invariants of the angle at the mean directors, along the mean of their derivatives at both ends.
    """
    a1, a2 = _axis(joint, MID_FIRST, 1), _axis(joint, MID_FIRST, 2)
    b1, nm = _axis(joint, MID_SECOND, 1), load_quad(child, NM)
    a1_start, a2_start = mul(first + R, _axis(joint, AXES_FIRST, 1)), mul(first + R, _axis(joint, AXES_FIRST, 2))
    b1_start = mul(second + R, _axis(joint, AXES_SECOND, 1))
    b1_end = b1 * 2.0 - b1_start
    cosine = dot(a1_start, b1_start) + dot(a1 * 2.0 - a1_start, b1_end)
    sine = dot(a2_start, b1_start) + dot(a2 * 2.0 - a2_start, b1_end)
    direction = cross(b1, a2 * cosine - a1 * sine)
    return direction * (child[ARMATURE_FORCE] / (child[G] * dot(nm, direction)))


@lowered
def _joint_multipliers(t: TreeArrays, o: OutputArrays, j: int, h: float, lam: F64Array) -> None:
    """Evaluate the multipliers of one joint from the wrench that it transmits at the midpoint."""
    ints, joint = o.joint_ints + j * JOINT_INTS, o.joint_floats + j * JOINT_FLOATS
    first, second = t.records + ints[FIRST] * STRIDE, t.records + ints[SECOND] * STRIDE
    child, scale = t.records + ints[CHILD] * STRIDE, 4.0 / (h * h)
    if ints[SIGN] == 0:
        scale = -scale
    for i in range(3):
        axis = midpoint(mul(first + R, load_quad(joint, AXES_FIRST + 4 * i)), load_quad(first, ALPHA), first[F])
        store_quad(joint, MID_FIRST + 4 * i, axis)
        axis = midpoint(mul(second + R, load_quad(joint, AXES_SECOND + 4 * i)), load_quad(second, ALPHA), second[F])
        store_quad(joint, MID_SECOND + 4 * i, axis)
    force, torque = load_quad(child, RP) * scale, load_quad(child, MO) * scale
    if ints[SLIDE_LAW] >= 0:
        law = t.law_records + ints[SLIDE_LAW] * LAW_STRIDE
        force = force - _axis(joint, MID_FIRST, 3) * law[LAW_F]
    if ints[ANGLE_LAW] >= 0:
        law = t.law_records + ints[ANGLE_LAW] * LAW_STRIDE
        arm = _axis(joint, MID_FIRST, 1) * law[LAW_F] + _axis(joint, MID_FIRST, 2) * law[LAW_F + 1]
        torque = torque - cross(_axis(joint, MID_SECOND, 1), arm)
    if child[ARMATURE] != 0.0:
        if t.joint_type[ints[CHILD]] == PRISMATIC:
            force = force - _axis(joint, MID_FIRST, 3) * (child[ARMATURE_FORCE] * scale)
        else:
            torque = torque - _armature_torque(joint, first, second, child) * scale
    n_locked, n_orthogonal = ints[N_LOCKED], ints[N_ORTHOGONAL]
    out = lam + ints[CONSTRAINT]
    if n_locked == t.dimension:
        store_quad(joint, RHS, -force)
    else:
        for i in range(n_locked):
            axis = _axis(joint, MID_FIRST, ints[LOCKED + i])
            joint[RHS + i] = -dot(axis, force)
            for k in range(n_locked):
                joint[GRAM + 6 * i + k] = dot(axis, _axis(joint, MID_FIRST, ints[LOCKED + k]))
        _solve_gram(joint, n_locked)
    for i in range(n_locked):
        out[i] = joint[RHS + i]
    pairs = ints + (LOCKED + 3)
    for i in range(n_orthogonal):
        column = cross(_axis(joint, MID_SECOND, pairs[2 * i + 1]), _axis(joint, MID_FIRST, pairs[2 * i]))
        joint[RHS + i] = -dot(column, torque)
        for k in range(n_orthogonal):
            other = cross(_axis(joint, MID_SECOND, pairs[2 * k + 1]), _axis(joint, MID_FIRST, pairs[2 * k]))
            joint[GRAM + 6 * i + k] = dot(column, other)
    if n_orthogonal > 0:
        _solve_gram(joint, n_orthogonal)
    for i in range(n_orthogonal):
        out[n_locked + i] = joint[RHS + i]


@lowered
def _expand_bodies(t: TreeArrays, o: OutputArrays, z: F64Array) -> None:
    """Write coordinates, velocities and momenta of the poses and momenta in the records."""
    for i in range(t.n_bodies):
        if t.model_body[i] >= 0:
            b, dofs = t.records + i * STRIDE, o.dofs + 12 * t.model_body[i]
            omega, mass = mul(b + R, mul(b + J_INV, load_quad(b, PI))), b[MASS]
            if t.spin_ptr[t.model_body[i]] < 0:  # a body with one coordinate
                z[o.q + dofs[0]], z[o.p + dofs[0]], z[o.v + dofs[0]] = b[PHI], b[P], b[P] / mass
                continue
            spins, trace = z + (o.spins + t.spin_ptr[t.model_body[i]]), 0.5 * (b[J] + b[J + 5] + b[J + 10])
            for j in range(t.dimension):
                z[o.q + dofs[j]], z[o.p + dofs[j]], z[o.v + dofs[j]] = b[PHI + j], b[P + j], b[P + j] / mass
            if t.dimension == 2:
                spins[0] = b[PI + 2]
            else:
                for j in range(3):
                    spins[j] = b[PI + j]
            for d in range(t.dimension):
                rate = cross(omega, load_quad(b, R + 4 * d))
                momentum = rate * trace
                for e in range(3):
                    momentum = momentum - cross(omega, load_quad(b, R + 4 * e)) * b[J + 4 * d + e]
                store_quad(o.joint_floats, GRAM, rate)  # scratch: components by index
                store_quad(o.joint_floats, GRAM + 4, momentum)
                for j in range(t.dimension):
                    index = dofs[3 + 3 * d + j]
                    z[o.q + index] = b[R + 4 * d + j]
                    z[o.v + index], z[o.p + index] = o.joint_floats[GRAM + j], o.joint_floats[GRAM + 4 + j]


@lowered
def expand_rows(
    t: TreeArrays,
    o: OutputArrays,
    states: F64Array,
    X: F64Array,
    work: F64Array,
    h: float,
    t_origin: float,
    step0: int,
    rows: I64Array,
    n_rows: int,
    Z: F64Array,
) -> None:
    """Write the full states at the ends of the steps `rows` of a chunk; step s ends at ``states[s+1]``."""
    width, hh = COMPACT * t.n_real, 0.25 * h * h
    for row in range(n_rows):
        s, z = rows[row], Z + row * o.n_state
        load_state(t, states + s * width)
        begin_step(t, h)
        begin_laws(t, h, t_origin + (step0 + s) * h)
        begin_forces(t, h, t_origin + (step0 + s) * h)
        begin_closures(t, h, t_origin + (step0 + s) * h)
        load_unknowns(t, X + (s + HISTORY) * t.n_unknowns, 0.5 * h)
        for i in range(t.n_bodies):
            move_body(t, i)
            balance_body(t.records + i * STRIDE, hh)
        add_wrenches(t)
        add_closures(t, False)
        for i in range(t.n_bodies - 1, -1, -1):
            transmit_wrench(t, i, h)
        for i in range(o.n_multipliers):
            z[o.multipliers + i] = 0.0
        for j in range(o.n_joints):
            _joint_multipliers(t, o, j, h, z + o.multipliers)
        lam = X + ((s + HISTORY) * t.n_unknowns + t.n_joint_unknowns)
        for i in range(o.n_closure_multipliers):
            z[o.multipliers + o.closure_constraints[i]] = lam[i]
        for i in range(t.n_driven, t.n_bodies):
            rate = 2.0 * half_increment(t, t.driver[i]) / h
            b = t.records + i * STRIDE
            torque = 2.0 * (b[MASS] * t.law_sign[t.driver[i]] * rate - b[P]) / h
            z[o.multipliers + o.armature_constraints[i - t.n_driven]] = torque
        z[o.supplied], z[o.supplied + 1] = work[3 * (s + 1)], work[3 * (s + 1) + 1]
        load_state(t, states + (s + 1) * width)
        _expand_bodies(t, o, z)


@lowered
def expand_state(t: TreeArrays, o: OutputArrays, state: F64Array, z: F64Array) -> None:
    """Write coordinates, velocities and momenta of a compact state; the other parts of z are unchanged."""
    load_state(t, state)
    _expand_bodies(t, o, z)


@lowered
def expand_mean_velocities(t: TreeArrays, o: OutputArrays, state: F64Array, x: F64Array, h: float, z: F64Array) -> None:
    """Write the mean velocities of a step from a compact state with the unknowns x to the full state z."""
    load_state(t, state)
    begin_step(t, h)
    load_unknowns(t, x, 0.5 * h)
    for i in range(t.n_bodies):
        move_body(t, i)
        if t.model_body[i] >= 0:
            b, v = t.records + i * STRIDE, z + o.v
            dofs = o.dofs + 12 * t.model_body[i]
            if t.spin_ptr[t.model_body[i]] < 0:  # a body with one coordinate
                v[dofs[0]] = b[P] / b[MASS]
                continue
            omega, middle = load_quad(b, ALPHA) * (2.0 / h), b[F]
            for j in range(t.dimension):
                v[dofs[j]] = 2.0 / h * b[UPS + j]
            for d in range(t.dimension):
                rate = cross(omega, midpoint(load_quad(b, R + 4 * d), load_quad(b, ALPHA), middle))
                store_quad(o.joint_floats, GRAM, rate)  # scratch: components by index
                for j in range(t.dimension):
                    v[dofs[3 + 3 * d + j]] = o.joint_floats[GRAM + j]


@dataclass(frozen=True, eq=False)
class ChunkArrays(Struct):
    """Arrays of a chunk of steps, and full states before the first and after the last step."""

    states: F64Array  # compact states, (n_steps + 1, COMPACT n_real)
    X: F64Array  # unknowns as rates, (n_steps + HISTORY, n_unknowns)
    work: F64Array  # supplied and dissipated energy, potential energy of forces, (n_steps + 1, 3)
    monitor: F64Array  # monitored quantities, (n_steps + 1, MONITOR_WIDTH)
    newton_iterations: I64Array
    z_first: F64Array
    z_last: F64Array
    last_step: I64Array  # one entry: number of the last step


@lowered
def pack_state(t: TreeArrays, o: OutputArrays, z: F64Array, states: F64Array) -> None:
    """Write the compact state of a full state."""
    for i in range(t.n_real):
        state, dofs = states + i * COMPACT, o.dofs + 12 * i
        if t.spin_ptr[i] < 0 or t.dimension == 2:  # entries without coordinate are those of a body in the plane at rest
            for j in range(COMPACT):
                state[j] = 0.0
            state[3], state[7], state[11] = 1.0, 1.0, 1.0
            for j in range(12):
                if dofs[j] >= 0:
                    state[j] = z[o.q + dofs[j]]
            for j in range(2):
                if dofs[j] >= 0:
                    state[12 + j] = z[o.p + dofs[j]]
            if t.spin_ptr[i] >= 0:
                state[17] = z[o.spins + t.spin_ptr[i]]
        else:
            for j in range(12):
                state[j] = z[o.q + dofs[j]]
            for j in range(3):
                state[12 + j], state[15 + j] = z[o.p + dofs[j]], z[o.spins + t.spin_ptr[i] + j]


@lowered
def joint_rates(t: TreeArrays, o: OutputArrays, z: F64Array, state: F64Array, x: F64Array) -> None:
    """Write the rates of all joints, and the multipliers of closures, of a full state with its compact state."""
    load_state(t, state)
    begin_step(t, 1.0)
    ground = t.records + t.n_bodies * STRIDE
    zero = make_quad(0.0, 0.0, 0.0)
    store_quad(ground, EPS, zero)
    store_quad(ground, NU, zero)
    for i in range(t.n_bodies):
        if t.model_body[i] >= 0:
            b, dofs = t.records + i * STRIDE, o.dofs + 12 * t.model_body[i]
            v, omega = zero, zero
            if dofs[2] >= 0:
                v = make_quad(z[o.v + dofs[0]], z[o.v + dofs[1]], z[o.v + dofs[2]])
            elif dofs[1] >= 0:
                v = make_quad(z[o.v + dofs[0]], z[o.v + dofs[1]], 0.0)
            else:
                v = make_quad(z[o.v + dofs[0]], 0.0, 0.0)
            for d in range(3):
                rates = dofs + (3 + 3 * d)
                if rates[2] >= 0:
                    rate = make_quad(z[o.v + rates[0]], z[o.v + rates[1]], z[o.v + rates[2]])
                    omega = omega + cross(load_quad(b, R + 4 * d), rate) * 0.5
                elif rates[1] >= 0:
                    rate = make_quad(z[o.v + rates[0]], z[o.v + rates[1]], 0.0)
                    omega = omega + cross(load_quad(b, R + 4 * d), rate) * 0.5
            store_quad(b, NU, v)
            store_quad(b, EPS, omega)
    for i in range(t.n_bodies):
        b, a, joint_type = t.records + i * STRIDE, t.records + t.parent[i] * STRIDE, t.joint_type[i]
        end, y, axis = t.records + t.tail[i] * STRIDE, x + t.unknown_ptr[i], load_quad(b, N0)
        v, omega, parent_omega = load_quad(end, NU), load_quad(end, EPS), load_quad(a, EPS)
        if joint_type == FREE:
            for j in range(3):
                y[j], y[3 + j] = lane(v, j), lane(omega, j)
        elif joint_type == SPHERICAL:
            for j in range(3):
                y[j] = lane(omega, j)
        elif joint_type == PRISMATIC:
            lever = mul(end + R, load_quad(end, Y))
            distance = load_quad(end, PHI) + lever - load_quad(a, PHI)
            y[0] = dot(axis, v + cross(omega, lever) - load_quad(a, NU) - cross(parent_omega, distance))
        elif joint_type == REVOLUTE:
            y[0] = dot(axis, omega - parent_omega)
        if t.model_body[i] < 0:
            spin = parent_omega
            if joint_type == REVOLUTE:
                spin = parent_omega + axis * y[0]
            store_quad(b, NU, load_quad(a, NU) + cross(parent_omega, load_quad(b, PHI) - load_quad(a, PHI)))
            store_quad(b, EPS, spin)
    for i in range(o.n_closure_multipliers):
        x[t.n_joint_unknowns + i] = z[o.multipliers + o.closure_constraints[i]]


@lowered
def advance_to_end(
    t: TreeArrays,
    o: OutputArrays,
    w: ChunkArrays,
    h: float,
    t_origin: float,
    step0: int,
    n_steps: int,
    n_history: int,
) -> int:
    """Take fixed steps from the full state `z_first` to `z_last`; return the number of completed steps."""
    z = w.z_first
    pack_state(t, o, z, w.states)
    w.work[0], w.work[1] = z[o.supplied], z[o.supplied + 1]
    n_done = advance_tree(
        t, w.states, w.X, w.work, w.monitor, w.newton_iterations, h, t_origin, step0, 0, n_steps, n_history
    )
    if n_done == n_steps:
        w.last_step[0] = n_steps - 1
        expand_rows(t, o, w.states, w.X, w.work, h, t_origin, step0, w.last_step, 1, w.z_last)
    return n_done


@lowered
def advance_between_estimates(
    t: TreeArrays,
    states: F64Array,
    X: F64Array,
    work: F64Array,
    monitor: F64Array,
    newton_iterations: I64Array,
    times: F64Array,
    control: StepSizeController,
    controller_state: F64Array,
    t_end: float,
    land_on_end: bool,
    done: int,
    n_steps: int,
    n_history: int,
) -> int:
    """Take controlled steps until an error estimate is due, a step is not solved or the end is near.

    Returns the number of the next step. ``times[s]`` is the start time of step s.
    """
    for s in range(done, n_steps):
        if control.n_variables > 0 and is_estimate_due(control, controller_state):
            return s
        start, h_last = times[s], controller_state[H_LAST]
        h = next_attempt_size(control, controller_state, start, t_end, land_on_end, True)
        if h <= 0.0:
            return s
        n_known = 1
        if abs(h - h_last) <= MAX_SLOW_CHANGE * h_last:
            n_known = min(n_history + s, POLYNOMIAL_POINTS)
        if advance_tree(t, states, X, work, monitor, newton_iterations, h, start, -s, s, s + 1, n_known) <= s:
            return s
        is_last = h >= t_end - start
        on_accept(control, controller_state, h, NOT_ESTIMATED if control.n_variables > 0 else 0.0, is_last)
        times[s + 1] = t_end if is_last else start + h
        if is_last:
            return s + 1
    return n_steps


@lowered
def monitor_compact_state(t: TreeArrays, state: F64Array, time: float, row: F64Array) -> None:
    """Evaluate the monitored quantities of a compact state."""
    load_state(t, state)
    begin_step(t, 1.0)
    begin_laws(t, 1.0, time)
    begin_forces(t, 1.0, time)
    begin_closures(t, 1.0, time)
    monitor_state(t, time, law_potential(t) + force_potential(t) + closure_potential(t), row)


@lowered
def monitor_compact_states(
    t: TreeArrays, states: F64Array, times: F64Array, rows: F64Array, n_rows: int, n_state: int, width: int
) -> None:
    """Evaluate the monitored quantities of the rows of a table of compact states."""
    for i in range(n_rows):
        monitor_compact_state(t, states + i * n_state, times[i], rows + i * width)


compile_unit(
    advance_tree, expand_rows, expand_state, advance_to_end, monitor_compact_state, monitor_compact_states,
    expand_mean_velocities, advance_between_estimates, joint_rates,
)  # fmt: skip
