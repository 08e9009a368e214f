"""Steps of several members of an ensemble in SIMD lanes on the tree: one number per lane in place of each float.

The sweeps are those of single runs, compiled for lanes (`NativeFunction.in_lanes`). A lane that has converged keeps its
unknowns while others iterate, so that each lane has the values of a single run. Closures are not supported: the
pivots of their Schur complement differ from lane to lane.
"""

from __future__ import annotations

from dataclasses import dataclass

from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I64Array, Struct
from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.predictors import POLYNOMIAL_POINTS, extrapolate_polynomial
from livens.engine.observables.drift_monitor import accumulate_row
from livens.engine.trees.forces import add_force_work, begin_forces, force_potential
from livens.engine.trees.laws import add_work, begin_laws, law_potential
from livens.engine.trees.monitor import monitor_state
from livens.engine.trees.output import OutputArrays, expand_rows, joint_rates, pack_state
from livens.engine.trees.records import COMPACT, TreeArrays
from livens.engine.trees.residual import begin_step, move_body
from livens.engine.trees.time_loop import (
    CORRECTION,
    DIVERGED_CORRECTION,
    MAX_ITERATIONS,
    MAX_SQUARED_TANGENT,
    PART,
    SCALE,
    TANGENT,
    TOTAL,
    WRENCHES,
    evaluate_correction,
    finish_step,
    largest_squared_tangent,
    load_state,
    load_unknowns,
    store_state,
    store_unknowns,
    tree_newton_decision,
    update_unknowns,
)


@dataclass(frozen=True, eq=False)
class LaneMonitor(Struct):
    """Drift monitor of all lanes, see `livens.engine.observables.drift_monitor.accumulate_row`."""

    n_columns: int
    columns: I64Array  # columns of `monitor_state`
    momentum_sizes: I64Array
    n_momenta: int
    row: F64Array  # of `monitor_state`
    table: F64Array  # monitored columns of the row
    initial_row: F64Array
    last_energy: F64Array
    maxima: F64Array
    reference_energy: F64Array


@dataclass(frozen=True, eq=False)
class LaneData(Struct):
    """States, unknowns and work of all lanes."""

    step_time: F64Array  # step size, and time at the start of the step
    n_history: I64Array  # number of past steps that the predictor may use
    z: F64Array  # full initial state
    state: F64Array  # compact state
    work: F64Array  # supplied and dissipated energy before the step, and after it with the potential energy


@dataclass(frozen=True, eq=False)
class TreeLaneKernels(Struct):
    """Addresses of the functions of one step in lanes."""

    start: int
    begin: int
    correct: int
    finish: int
    store: int


@dataclass(frozen=True, eq=False)
class LaneSteps(Struct):
    """Members in lanes, their iteration and their output rows."""

    width: int
    kernels: TreeLaneKernels
    tree: TreeArrays
    output: OutputArrays
    data: LaneData
    monitor: LaneMonitor
    X: F64Array  # unknowns as rates, (HISTORY + 1, n_unknowns)
    previous: F64Array  # correction of the last iteration, and its product with that and the wrenches
    newton_iterations: I64Array
    failed: I64Array
    # output rows: compact states before and after the step, unknowns and work, lanes last
    row_states: F64Array
    row_unknowns: F64Array
    row_work: F64Array


# -- in lanes --------------------------------------------------------------------------------------------------------
@lowered
def _update_monitor(m: LaneMonitor, net_work: float) -> None:
    for j in range(m.n_columns):
        m.table[j] = m.row[m.columns[j]]
    accumulate_row(
        m.table, net_work, m.initial_row, m.last_energy, m.maxima, m.momentum_sizes, m.n_momenta, m.reference_energy
    )


@lowered
def start_lanes(t: TreeArrays, o: OutputArrays, d: LaneData, m: LaneMonitor, X: F64Array) -> None:
    """Set states, unknowns and monitor from the full initial states."""
    time, n = d.step_time[1], t.n_unknowns
    pack_state(t, o, d.z, d.state)
    joint_rates(t, o, d.z, d.state, X)
    for i in range(n):
        for j in range(1, HISTORY):
            X[j * n + i] = X[i]
    load_state(t, d.state)
    begin_step(t, 1.0)
    begin_laws(t, 1.0, time)
    begin_forces(t, 1.0, time)
    monitor_state(t, time, law_potential(t) + force_potential(t), m.row)
    d.work[0], d.work[1] = d.z[o.supplied], d.z[o.supplied + 1]
    net_work = d.work[0] - d.work[1]
    for j in range(m.n_columns):
        m.initial_row[j] = m.row[m.columns[j]]
    m.last_energy[0] = m.initial_row[0] - net_work
    _update_monitor(m, net_work)


@lowered
def begin_lanes(t: TreeArrays, o: OutputArrays, d: LaneData, m: LaneMonitor, X: F64Array) -> None:
    """Begin a step from the states in the records, with extrapolated unknowns."""
    h, time, n = d.step_time[0], d.step_time[1], t.n_unknowns
    begin_step(t, h)
    begin_laws(t, h, time)
    begin_forces(t, h, time)
    extrapolate_polynomial(X + (HISTORY - POLYNOMIAL_POINTS) * n, X + HISTORY * n, n, d.n_history[0])
    load_unknowns(t, X + HISTORY * n, 0.5 * h)


@lowered
def correct_lanes(t: TreeArrays, o: OutputArrays, d: LaneData, m: LaneMonitor, X: F64Array) -> None:
    """Take one Newton iteration."""
    evaluate_correction(t, d.step_time[0])
    update_unknowns(t, d.step_time[0])
    t.newton[TANGENT] = largest_squared_tangent(t)


@lowered
def finish_lanes(t: TreeArrays, o: OutputArrays, d: LaneData, m: LaneMonitor, X: F64Array) -> None:
    """Evaluate the states at the end of the step, their work, and the monitor."""
    h, n, work = d.step_time[0], t.n_unknowns, d.work
    for i in range(t.n_bodies):
        move_body(t, i)
    add_work(t, h, work)
    add_force_work(t, work)
    finish_step(t, h)
    store_unknowns(t, X + HISTORY * n, 0.5 * h)
    monitor_state(t, d.step_time[1] + h, work[5], m.row)
    work[0], work[1] = work[3], work[4]
    _update_monitor(m, work[0] - work[1])


@lowered
def store_lanes(t: TreeArrays, o: OutputArrays, d: LaneData, m: LaneMonitor, X: F64Array) -> None:
    """Store the compact states of the records."""
    store_state(t, d.state)


# -- one after another -----------------------------------------------------------------------------------------------
@lowered
def _solve_lanes(s: LaneSteps) -> None:
    """Solve one step in all lanes; lanes in which the iteration without damping does not converge fail."""
    width, newton, d, failed = s.width, s.tree.newton, s.data, s.failed
    n_active, previous, product = 0, s.previous, s.previous + s.width
    for i in range(width):
        newton[PART * width + i] = 0.0
        if failed[i] == 0:
            newton[PART * width + i] = 1.0
            n_active += 1
        previous[i], product[i] = 0.0, 1.0
    for iteration in range(1, MAX_ITERATIONS + 1):
        if n_active == 0:
            return
        call_kernel(s.kernels.correct, s.tree, s.output, d, s.monitor, s.X)
        for i in range(width):
            if newton[PART * width + i] == 0.0:
                continue
            correction, wrenches = newton[CORRECTION * width + i], newton[WRENCHES * width + i]
            s.newton_iterations[i] += 1
            if not newton[TOTAL * width + i] < DIVERGED_CORRECTION:  # also NaN
                failed[i], newton[PART * width + i] = 1, 0.0
                n_active -= 1
            elif tree_newton_decision(
                correction, wrenches, newton[SCALE * width + i], previous[i], product[i], iteration
            ):
                newton[PART * width + i] = 0.0
                n_active -= 1
                if not newton[TANGENT * width + i] < MAX_SQUARED_TANGENT:
                    failed[i] = 1
            previous[i], product[i] = correction, correction * (correction + wrenches)
    for i in range(width):
        if newton[PART * width + i] != 0.0:
            failed[i] = 1


@lowered
def _store_state(s: LaneSteps, index: int) -> None:
    """Store the states of the records with the output rows."""
    size = COMPACT * s.tree.n_real * s.width
    call_kernel(s.kernels.store, s.tree, s.output, s.data, s.monitor, s.X)
    out = s.row_states + index * size
    for i in range(size):
        out[i] = s.data.state[i]


@lowered
def advance_in_lanes(
    s: LaneSteps, h: float, t_origin: float, step0: int, n_steps: int, n_history: int, stride: int, is_last: bool
) -> int:
    """Take fixed steps from step `step0`; return the number of lanes that have not failed.

    Steps that `stride` divides have an output row; so has the last step if `is_last`.
    """
    width, n, d, X = s.width, s.tree.n_unknowns, s.data, s.X
    size, n_left = n * width, 0
    for i in range(width):
        d.step_time[i] = h
    for step in range(step0, step0 + n_steps):
        row = -1
        if (step + 1) % stride == 0:
            row = (step + 1) // stride - 1 - step0 // stride
        elif is_last and step == step0 + n_steps - 1:
            row = (step + 1) // stride - step0 // stride
        for i in range(width):
            d.step_time[width + i] = t_origin + step * h
        d.n_history[0] = min(n_history + step - step0, POLYNOMIAL_POINTS)
        if row >= 0:
            _store_state(s, 2 * row)
        call_kernel(s.kernels.begin, s.tree, s.output, d, s.monitor, X)
        _solve_lanes(s)
        call_kernel(s.kernels.finish, s.tree, s.output, d, s.monitor, X)
        if row >= 0:
            _store_state(s, 2 * row + 1)
            for i in range(size):
                s.row_unknowns[row * size + i] = X[HISTORY * size + i]
            for i in range(2 * width):
                s.row_work[2 * row * width + i] = d.work[i]
        for i in range(HISTORY * size):  # ascending, as source and target overlap
            X[i] = X[size + i]
        n_left = 0
        for i in range(width):
            for j in range(3):  # energies and constraint residual
                if s.monitor.row[j * width + i] - s.monitor.row[j * width + i] != 0.0:
                    s.failed[i] = 1
            n_left += 1 - s.failed[i]
        if n_left == 0:
            return 0
    return n_left


@lowered
def expand_stored_rows(
    t: TreeArrays,
    o: OutputArrays,
    states: F64Array,
    X: F64Array,
    work: F64Array,
    h: float,
    t_origin: float,
    steps: I64Array,
    n_rows: int,
    first: I64Array,
    Z: F64Array,
) -> None:
    """Write the full states of the output rows of one lane; row r has the number ``steps[r]`` and ``first[0] = 0``."""
    for r in range(n_rows):
        before, x = states + 2 * r * COMPACT * t.n_real, X + (r - HISTORY) * t.n_unknowns
        expand_rows(t, o, before, x, work + (2 * r - 3), h, t_origin, steps[r], first, 1, Z + r * o.n_state)


compile_unit(advance_in_lanes, expand_stored_rows)
