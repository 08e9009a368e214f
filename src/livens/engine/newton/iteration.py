"""Newton iteration of one step: kernels are passed as addresses, everything else as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I64Array, Struct
from livens.engine.newton.convergence import (
    CONTINUE,
    CONVERGED,
    DIVERGED,
    MAX_CURVATURE_RESIDUAL,
    MAX_NEWTON_ITERATIONS,
    NEEDS_REPIVOT,
    SAFE_FRACTION,
    explained_by_curvature,
    newton_decision,
    stagnates,
)

# A division by zero gives infinity or NaN; the convergence test rejects both.

#: Residual at which a stagnating iteration is converged, relative to the largest round-off bound of all equations.
STAGNATION_FLOOR = 1e-14
#: Number of past steps used by the predictor of the unknowns.
HISTORY = 5
#: Largest residual, relative to outdated round-off bounds, that may still be round-off. Larger residuals are not
#: converged, whatever the updated bounds are: near a difference quotient 0/0 the bounds are wide.
STALE_BOUND_FACTOR = 16.0
#: Number of equal steps between evaluations of the round-off bounds; residuals above their bound also trigger one.
BOUND_REFRESH_INTERVAL = 64
#: Growth of the unknowns of a group in one step above which the step is ill-conditioned.
MAX_GROUP_GROWTH = 4.0
#: Indices into `Workspace.counters`: Newton iterations of the step, last-step flag, completed steps of the chunk.
N_ITERATIONS, IS_LAST_STEP, N_STEPS = 0, 1, 2


@dataclass(frozen=True, eq=False)
class StepKernels(Struct):
    """Addresses of the native functions of one step; 0 for functions that a scheme does not have."""

    newton: int
    first_correction: int
    residual: int
    inv_roundoff: int
    update_state: int
    initial_guess: int
    predict: int
    error: int
    extrapolate_stages: int
    #: Address of an external force, and offsets of coordinates, velocities, time and force in the state.
    external_force: int = 0
    external_q: int = 0
    external_v: int = 0
    external_t: int = 0
    external_out: int = 0
    #: Address of the data passed to the external force instead of the parameters, or 0.
    external_data: int = 0


def kernel_names() -> tuple[str, ...]:
    """Return the names of the kernels of a step."""
    return tuple(item.name for item in fields(StepKernels) if not item.name.startswith("external"))


@dataclass(frozen=True, eq=False)
class Workspace(Struct):
    """Workspace of a chunk of steps.

    Step s goes from ``Z[s]`` at ``t[s]`` to ``Z[s+1]`` at ``t[s+1]`` and stores its unknowns in ``X[s+HISTORY]``;
    ``X[:HISTORY]`` are the unknowns of the previous steps, oldest first.
    """

    c: F64Array  # step inputs: h, t and the parameters
    Z: F64Array
    X: F64Array
    t: F64Array
    newton_iterations: I64Array
    work: F64Array  # workspace of the fused Newton kernels, see `livens.engine.newton.workspace_layout`
    newton_update: F64Array  # view of `work`: last Newton update
    inv_roundoff: F64Array  # view of `work`: reciprocal round-off bounds of the residual
    r: F64Array  # residual, followed by the pivot growth
    estimate: F64Array  # error estimate of a step, reference magnitudes, and the matrix of the filter
    group_sizes: I64Array  # sizes of the consecutive groups of unknowns (velocities, multipliers, ...)
    n_unknowns: int = field(init=False)
    n_state: int = field(init=False)  # size of a state
    n_groups: int = field(init=False)
    counters: I64Array = field(init=False)
    scratch: F64Array = field(init=False)  # 3 n_unknowns, 2 n_state and the size of the error estimate

    def __post_init__(self) -> None:
        n, n_state = self.X.shape[1], self.Z.shape[1]
        derived = {
            "n_unknowns": n,
            "n_state": n_state,
            "n_groups": self.group_sizes.size,
            "counters": np.zeros(3, dtype=np.int64),
        }
        for name, value in (*derived.items(), ("scratch", np.zeros(3 * n + 2 * n_state + self.estimate.size))):
            object.__setattr__(self, name, value)
        super().__post_init__()


@lowered
def has_outgrown_group(
    x: F64Array, x_last: F64Array, x_last_but_one: F64Array, group_sizes: I64Array, n_groups: int
) -> bool:
    """Return True if the unknowns of a group are much larger than those of the last two steps.

    Multipliers grow as ``1 / d`` at a distance d from a singular position. Their product with the round-off of the
    constraints is an error of the energy.
    """
    start = 0
    for k in range(n_groups):
        largest, largest_last = 0.0, 0.0
        for i in range(start, start + group_sizes[k]):
            largest = max(largest, abs(x[i]))
            largest_last = max(largest_last, max(abs(x_last[i]), abs(x_last_but_one[i])))
        if largest_last > 0.0 and largest > MAX_GROUP_GROWTH * largest_last:
            return True
        start += group_sizes[k]
    return False


# -- the residual test ------------------------------------------------------------------------------------------------
@lowered
def scaled_max_norm(r: F64Array, inv_roundoff: F64Array, n: int) -> float:
    """Return the max norm of the residual scaled by its round-off bounds: converged if <= 1. NaN propagates."""
    largest, total = 0.0, 0.0
    for i in range(n):
        a = abs(r[i]) * inv_roundoff[i]
        total += a  # the comparison ignores NaN, the sum propagates it
        if a > largest:
            largest = a
    return largest if total == total else total


@lowered
def within_curvature_bound(
    residual: int,
    x: F64Array,
    z: F64Array,
    c: F64Array,
    r: F64Array,
    dx: F64Array,
    inv_roundoff: F64Array,
    n: int,
    scratch: F64Array,
) -> bool:
    """Return True if the second-order term of the last Newton update explains a stagnating residual."""
    r_plus, r_minus, x_trial = scratch, scratch + n, scratch + 2 * n
    for i in range(n):
        x_trial[i] = x[i] + dx[i]
    call_kernel(residual, x_trial, z, c, r_plus, r_plus)
    for i in range(n):
        x_trial[i] = x[i] - dx[i]
    call_kernel(residual, x_trial, z, c, r_minus, r_minus)
    return explained_by_curvature(r, r_plus, r_minus, inv_roundoff, n)


@lowered
def within_rounding_of_all_equations(r: F64Array, inv_roundoff: F64Array, n: int) -> bool:
    """Accept a stagnating residual below the relative floor `STAGNATION_FLOOR` of the largest round-off bound.

    Redundant constraints of a system at rest keep residuals caused by rounded multipliers, although their own terms,
    and with them their own round-off bounds, all vanish.
    """
    largest_bound, largest_excess = 0.0, 0.0
    for i in range(n):
        bound = 1.0 / inv_roundoff[i]
        largest_bound = max(largest_bound, bound)
        largest_excess = max(largest_excess, abs(r[i]) - bound)
    return largest_excess <= STAGNATION_FLOOR * largest_bound


@lowered
def newton_solve(
    kernels: StepKernels, w: Workspace, x: F64Array, z: F64Array, repivot_after: int, already_corrected: bool
) -> int:
    """Solve one step by Newton iteration from the initial guess x to the round-off level. Returns a status code.

    With `already_corrected`, x contains one Newton update already, which counts as the first iteration. The number of
    iterations is returned in `Workspace.counters`.
    """
    n, c, r, dx, inv_roundoff, x_guess = w.n_unknowns, w.c, w.r, w.newton_update, w.inv_roundoff, w.scratch
    norm_prev, norm_prev2, norm_guess, n_stalls = np.inf, np.inf, 0.0, 0
    if already_corrected:
        for i in range(n):
            x_guess[i] = x[i] + dx[i]
    for iteration in range(2 if already_corrected else 1, MAX_NEWTON_ITERATIONS + 1):
        w.counters[N_ITERATIONS] = iteration
        call_kernel(kernels.newton, x, z, c, r, dx)
        pivot_growth = r[n]
        if iteration == 1:
            norm_guess = scaled_max_norm(r, inv_roundoff, n)
            if norm_guess < np.inf and not scaled_max_norm(dx, dx, n) < np.inf:
                return NEEDS_REPIVOT  # a zero pivot: entries of the Jacobian vanish where a switched force is off
        elif already_corrected and iteration == 2:
            norm_prev = scaled_max_norm(r, inv_roundoff, n)
        for i in range(n):
            x[i] -= dx[i]
        call_kernel(kernels.residual, x, z, c, r, dx)
        norm = scaled_max_norm(r, inv_roundoff, n)
        if stagnates(norm, norm_prev):
            n_stalls += 1
            call_kernel(kernels.inv_roundoff, x, z, c, dx, inv_roundoff)
            norm = scaled_max_norm(r, inv_roundoff, n)
            stagnated = n_stalls > 1 and norm <= MAX_CURVATURE_RESIDUAL
            if stagnated and within_curvature_bound(kernels.residual, x, z, c, r, dx, inv_roundoff, n, w.scratch):
                return CONVERGED
            if n_stalls > 1 and within_rounding_of_all_equations(r, inv_roundoff, n):
                return CONVERGED
        if already_corrected and iteration == 2 and SAFE_FRACTION < norm <= 1.0:
            # the residual norm of the initial guess is needed to test for quadratic convergence
            call_kernel(kernels.residual, x_guess, z, c, x_guess + n, x_guess + n)
            norm_guess = scaled_max_norm(x_guess + n, inv_roundoff, n)
        if iteration == 2:
            norm_prev2 = norm_guess
        status = newton_decision(norm, norm_prev, norm_prev2, iteration, False, 0, 0, pivot_growth, repivot_after)
        if status != CONTINUE:
            return status
        norm_prev2, norm_prev = norm_prev, norm
    return DIVERGED


@lowered
def solve_step(
    kernels: StepKernels, w: Workspace, x: F64Array, z: F64Array, z_next: F64Array, predicted: bool, repivot_after: int
) -> int:
    """Solve one step from the initial guess x and update the state. Returns a status code.

    The first correction is one fused kernel. If the iteration fails, it is repeated from the last unknowns, or from
    the initial guess of the scheme if x was `predicted`. The number of iterations is returned in `Workspace.counters`.
    """
    n, c, r, dx, inv_roundoff, work = w.n_unknowns, w.c, w.r, w.newton_update, w.inv_roundoff, w.work
    residual_row = n + 2  # offset as in `livens.engine.newton.workspace_layout`
    w.counters[N_ITERATIONS] = 1
    if kernels.first_correction:
        call_kernel(kernels.first_correction, x, z, c, work, z_next)
        scaled_residual = work[residual_row]
    else:  # long steps have no fused first correction
        call_kernel(kernels.newton, x, z, c, r, dx)
        for i in range(n):
            x[i] -= dx[i]
        call_kernel(kernels.residual, x, z, c, r, dx)
        scaled_residual = scaled_max_norm(r, inv_roundoff, n)
        if scaled_residual <= 1.0:
            call_kernel(kernels.update_state, x, z, c, r, z_next)
    if scaled_residual <= 1.0:
        return CONVERGED
    if predicted and scaled_residual <= STALE_BOUND_FACTOR:
        # The bounds may be outdated. An unnecessary Newton update has a bias: constraints are rounded where
        # floating-point numbers may be denser on one side, which shifts positions outwards.
        call_kernel(kernels.inv_roundoff, x, z, c, dx, inv_roundoff)
        call_kernel(kernels.residual, x, z, c, r, dx)
        if scaled_max_norm(r, inv_roundoff, n) <= 1.0:
            call_kernel(kernels.update_state, x, z, c, r, z_next)
            return CONVERGED
    status = newton_solve(kernels, w, x, z, repivot_after, True)
    if status != CONVERGED:
        n_iterations, x_last = w.counters[N_ITERATIONS], x + (-n)
        for i in range(n):
            x[i], dx[i] = x_last[i], 0.0
        if predicted:
            call_kernel(kernels.initial_guess, x, z, c, r, x)
        call_kernel(kernels.inv_roundoff, x, z, c, dx, inv_roundoff)
        status = newton_solve(kernels, w, x, z, repivot_after, False)
        w.counters[N_ITERATIONS] += n_iterations
    if status == CONVERGED:
        call_kernel(kernels.update_state, x, z, c, r, z_next)
    return status
