"""Compiled time loops with fixed and adaptive steps, and tabulation of kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import bits_to_float, call_kernel, f64_pointer, float_to_bits
from livens.engine.lowering.types import F64Array
from livens.engine.newton.adaptive_step import adaptive_step
from livens.engine.newton.convergence import CONVERGED, END_REACHED, MAX_NEWTON_ITERATIONS
from livens.engine.newton.iteration import (
    BOUND_REFRESH_INTERVAL,
    HISTORY,
    IS_LAST_STEP,
    N_ITERATIONS,
    N_STEPS,
    StepKernels,
    Workspace,
    newton_solve,
    solve_step,
)
from livens.engine.newton.step_size_control import StepSizeController


class StepPolicy(NamedTuple):
    """Policy for the size of the next step: fixed steps on a time grid, or adaptive steps.

    Fixed step number ``step0 + s`` starts at ``t_origin + (step0 + s) * h``. If `stop_entry` is not negative, steps end
    before this entry of the state exceeds `stop_value` (the physical time of schemes with fictive time). Adaptive steps
    end before `t_end`, and with `land_on_end` exactly there; `StepSizeController` determines their sizes.
    """

    adaptive: bool
    h: float
    t_origin: float
    step0: int
    stop_entry: int = -1
    stop_value: float = np.inf
    t_end: float = np.inf
    land_on_end: bool = True


def advance(
    kernels: StepKernels,
    policy: StepPolicy,
    control: StepSizeController,
    controller_state: np.ndarray,
    w: Workspace,
    done: int,
    n_steps: int,
    repivot_after: int,
) -> tuple[int, int]:
    """Take the steps from number `done` to `n_steps` of a chunk. Returns (status code, completed steps).

    An explicit scheme has no unknowns: its step is the update of the state only. If a step fails, the number of
    completed steps is its index.
    """
    if policy.adaptive:
        controller_values = controller_state.view(np.float64)
        status = _advance_adaptive(
            kernels,
            control,
            controller_values,
            w,
            policy.t_end,
            policy.land_on_end,
            done,
            n_steps,
            repivot_after,
        )
    else:
        status = advance_fixed(
            kernels,
            w,
            policy.h,
            policy.t_origin,
            policy.step0,
            policy.stop_entry,
            policy.stop_value,
            done,
            n_steps,
            repivot_after,
        )
    return status, int(w.counters[N_STEPS])


@lowered
def _eval_external_force(kernels: StepKernels, z_next: F64Array, c: F64Array) -> None:
    """Evaluate the external force at the end of a step."""
    force_data = c + 2
    if kernels.external_data:
        force_data = f64_pointer(kernels.external_data)
    call_kernel(
        kernels.external_force,
        z_next + kernels.external_q,
        z_next + kernels.external_v,
        z_next + kernels.external_t,
        force_data,
        z_next + kernels.external_out,
    )


@lowered
def advance_fixed(
    kernels: StepKernels,
    w: Workspace,
    h: float,
    t_origin: float,
    step0: int,
    stop_entry: int,
    stop_value: float,
    done: int,
    n_steps: int,
    repivot_after: int,
) -> int:
    """Take fixed steps; return a status code."""
    n, nz, c, r, dx, inv_roundoff, work = w.n_unknowns, w.n_state, w.c, w.r, w.newton_update, w.inv_roundoff, w.work
    predictor_row = 2 * n + 4  # offset as in `livens.engine.newton.workspace_layout`
    c[0] = h
    for s in range(done, n_steps):
        z, z_next, step = w.Z + s * nz, w.Z + (s + 1) * nz, step0 + s
        c[1] = t_origin + step * h
        x = w.X + (s + HISTORY) * n
        if n:
            call_kernel(kernels.predict, w.X + s * n, z, c, r, work + predictor_row)
            predictor_ok = work[predictor_row] != 0.0
            if not predictor_ok:
                call_kernel(kernels.initial_guess, x, z, c, r, x)
            if step % BOUND_REFRESH_INTERVAL == 0:
                call_kernel(kernels.inv_roundoff, x, z, c, dx, inv_roundoff)
            status = solve_step(kernels, w, x, z, z_next, predictor_ok, repivot_after)
            w.newton_iterations[s] = w.counters[N_ITERATIONS]
            if status != CONVERGED:
                w.counters[N_STEPS] = s
                return status
        else:
            call_kernel(kernels.update_state, x, z, c, r, z_next)
        if kernels.external_force:
            _eval_external_force(kernels, z_next, c)
        if stop_entry >= 0 and z_next[stop_entry] > stop_value:  # a NaN completes the step, which is rejected later
            w.counters[N_STEPS] = s
            return END_REACHED
    w.counters[N_STEPS] = n_steps
    return CONVERGED


@lowered
def _advance_adaptive(
    kernels: StepKernels,
    control: StepSizeController,
    controller_state: F64Array,
    w: Workspace,
    t_end: float,
    land_on_end: bool,
    done: int,
    n_steps: int,
    repivot_after: int,
) -> int:
    """Take adaptive steps; return a status code."""
    for s in range(done, n_steps):
        w.counters[N_STEPS] = s
        status = adaptive_step(kernels, t_end, land_on_end, control, controller_state, w, s, repivot_after)
        w.newton_iterations[s] = w.counters[N_ITERATIONS]
        if status != CONVERGED:
            return status
        if kernels.external_force:
            _eval_external_force(kernels, w.Z + (s + 1) * w.n_state, w.c)
        if w.counters[IS_LAST_STEP]:
            w.counters[N_STEPS] = s + 1
            return END_REACHED
    w.counters[N_STEPS] = n_steps
    return CONVERGED


def fill_time_grid(t_nodes: np.ndarray, step_sizes: np.ndarray, t_origin: float, step0: int, h: float) -> None:
    """Fill the time grid of fixed steps. Times are multiples of h: a sum would accumulate rounding errors."""
    _fill_time_grid(t_nodes, step_sizes, len(step_sizes), t_origin, step0, h)


@lowered
def _fill_time_grid(
    t_nodes: F64Array, step_sizes: F64Array, n_steps: int, t_origin: float, step0: int, h: float
) -> None:
    for s in range(n_steps):
        t_nodes[s + 1], step_sizes[s] = t_origin + (step0 + s + 1) * h, h


def tabulate_steps(
    kernel: int,
    X: np.ndarray,
    Z: np.ndarray,
    extra: np.ndarray,
    c: np.ndarray,
    t: np.ndarray,
    h: np.ndarray,
    out: np.ndarray,
) -> None:
    """Evaluate a kernel at every step: unknowns X, initial state Z, time, size and a row of additional inputs."""
    columns = X.shape[1], Z.shape[1], extra.shape[1], out.shape[1]
    _tabulate_steps(kernel, X, Z, extra, c, t, h, out, len(out), *columns)


@lowered
def _tabulate_steps(
    kernel: int,
    X: F64Array,
    Z: F64Array,
    extra: F64Array,
    c: F64Array,
    t: F64Array,
    h: F64Array,
    out: F64Array,
    n_rows: int,
    n: int,
    nz: int,
    n_extra: int,
    width: int,
) -> None:
    for s in range(n_rows):
        c[0], c[1] = h[s], t[s]
        call_kernel(kernel, X + s * n, Z + s * nz, c, extra + s * n_extra, out + s * width)


def resolve_steps(
    kernels: StepKernels,
    X: np.ndarray,
    Z: np.ndarray,
    c: np.ndarray,
    t: np.ndarray,
    h: np.ndarray,
    converged: np.ndarray,
) -> None:
    """Solve steps from initial states Z, each independently; `converged` flags the solved steps."""
    n = X.shape[1]
    w = Workspace(
        c=c,
        Z=Z,
        X=X,
        t=t,
        newton_iterations=np.zeros(len(Z), dtype=np.int64),
        work=np.empty(0),
        newton_update=np.zeros(n),
        inv_roundoff=np.empty(n),
        r=np.empty(n + 1),
        estimate=np.empty(0),
        group_sizes=np.zeros(0, dtype=np.int64),
    )
    _resolve_steps(kernels, w, h, len(Z))
    converged[:] = w.newton_iterations


@lowered
def _resolve_steps(kernels: StepKernels, w: Workspace, h: F64Array, n_steps: int) -> None:
    n = w.n_unknowns
    for s in range(n_steps):
        w.c[0], w.c[1] = h[s], w.t[s]
        x, z = w.X + s * n, w.Z + s * w.n_state
        for i in range(n):
            x[i], w.newton_update[i] = 0.0, 0.0
        call_kernel(kernels.initial_guess, x, z, w.c, w.r, x)
        call_kernel(kernels.inv_roundoff, x, z, w.c, w.newton_update, w.inv_roundoff)
        w.newton_iterations[s] = newton_solve(kernels, w, x, z, MAX_NEWTON_ITERATIONS + 1, False) == CONVERGED


def tabulate(kernel: int, X: np.ndarray, Z: np.ndarray, c: np.ndarray, t: np.ndarray, out: np.ndarray) -> None:
    """Evaluate a kernel at every row of (X, Z, t)."""
    _tabulate(kernel, X, Z, c, t, out, len(Z), X.shape[1], Z.shape[1], out.shape[1])


@lowered
def _tabulate(
    kernel: int,
    X: F64Array,
    Z: F64Array,
    c: F64Array,
    t: F64Array,
    out: F64Array,
    n_rows: int,
    n: int,
    nz: int,
    width: int,
) -> None:
    for s in range(n_rows):
        c[1] = t[s]
        call_kernel(kernel, X + s * n, Z + s * nz, c, out + s * width, out + s * width)


@lowered
def all_finite(Z: F64Array, start: int, stop: int) -> bool:
    """Return True if all entries from `start` to `stop` are finite."""
    largest_bits = 0
    for i in range(start, stop):  # bit patterns of non-negative doubles order like int64; inf and NaN sort last
        largest_bits = max(largest_bits, float_to_bits(abs(Z[i])))
    return bits_to_float(largest_bits) < np.inf


# units by use: a run of fixed steps compiles the first only
compile_unit(advance_fixed, _fill_time_grid, all_finite)
compile_unit(_advance_adaptive)
compile_unit(_tabulate_steps, _resolve_steps, _tabulate)
