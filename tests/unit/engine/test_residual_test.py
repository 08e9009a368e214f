"""When Newton's method is done: the test of residuals, case by case."""

import ctypes
import math

import casadi as ca
import numpy as np
import pytest

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import sqrt
from livens.engine.lowering.types import F64Array
from livens.engine.newton.convergence import (
    CONTINUE,
    CONVERGED,
    DIVERGED,
    MAX_GROWTH,
    MAX_NEWTON_ITERATIONS,
    MODERATE_GROWTH,
    NEEDS_REPIVOT,
    SAFE_FRACTION,
    converged_to_roundoff,
    explained_by_curvature,
    newton_decision,
)
from livens.engine.newton.iteration import (
    HISTORY,
    N_ITERATIONS,
    STAGNATION_FLOOR,
    StepKernels,
    Workspace,
    kernel_names,
    newton_solve,
    scaled_max_norm,
    within_curvature_bound,
    within_rounding_of_all_equations,
)
from livens.engine.newton.predictors import predict_unknowns
from livens.engine.newton.time_loop import BOUND_REFRESH_INTERVAL, advance_fixed
from livens.engine.steppers.reference import ReferenceSolver
from livens.expressions.state_layout import Layout
from livens.schemes.core.step_equations import StepGraph


@pytest.mark.parametrize(
    ("worst", "last", "before", "iteration", "done"),
    [
        (1.01, 1e9, 1e12, 2, False),  # above its bound: never
        (math.nan, 1.0, 1.0, 3, False),
        (math.inf, 1.0, 1.0, 1, False),
        (1.0, math.inf, math.inf, 1, True),  # a guess that needed but one correction
        (0.9, 100.0, 1000.0, 2, False),  # may still be what is left of the error
        (SAFE_FRACTION, 100.0, 1000.0, 2, True),  # far below
        (1.01 * SAFE_FRACTION, 100.0, 1000.0, 2, False),
        (0.5, 1.9, 1000.0, 3, True),  # nothing is gained any more
        (0.5, 2.1, 2.0, 3, False),
        (0.3, 2.0, 1000.0, 3, True),  # quadratic convergence leaves far less
        (0.3, 2.0, 8.0, 3, False),
    ],
)
def test_at_the_floor(worst, last, before, iteration, done):
    assert converged_to_roundoff(worst, last, before, iteration) is done


@pytest.mark.parametrize(
    ("growth", "iteration", "status"),
    [
        (2 * MAX_GROWTH, 1, CONTINUE),  # the first iteration may converge in spite of lost digits
        (2 * MAX_GROWTH, 2, NEEDS_REPIVOT),
        (2 * MODERATE_GROWTH, 2, CONTINUE),
        (2 * MODERATE_GROWTH, 4, CONTINUE),
        (2 * MODERATE_GROWTH, 5, NEEDS_REPIVOT),
        (1.0, 5, CONTINUE),
    ],
)
def test_grown_pivots_need_another_order(growth, iteration, status):
    assert newton_decision(9.0, 100.0, 1e4, iteration, False, 0, 0, growth, 5) == status


def test_curvature_explains_residuals_up_to_ten_times_its_size():
    """The bound is that of round-off and ten times ``(r(x + dx) - 2 r(x) + r(x - dx)) / 2``."""
    scale = np.array([1.0])
    for size, explained in ((10.9, True), (11.1, False), (19.0, False), (-10.9, True), (-11.1, False)):
        r = np.array([size])
        assert explained_by_curvature(r, r + 1.0, r + 1.0, scale, 1) is explained  # curvature 1, round-off 1
    for size, explained in ((0.9, True), (1.1, False)):
        r = np.array([size])
        assert explained_by_curvature(r, r + 3.0, r - 3.0, scale, 1) is explained  # a straight line


def test_rounding_of_the_largest_equation_is_accepted_in_all_others():
    """An equation without terms has no bound of its own, and keeps rounded multipliers of the others."""
    wide, narrow = 1e-3, 1e-3  # reciprocal bounds: both equations have terms of size 1e3
    assert within_rounding_of_all_equations(np.array([1.0, 2.0]), np.array([wide, narrow]), 2)
    floor = STAGNATION_FLOOR * 1e3
    for size, accepted in ((0.9 * floor, True), (1.1 * floor, False)):
        r, scale = np.array([0.0, size]), np.array([1e-3, 1e300])
        assert within_rounding_of_all_equations(r, scale, 2) is accepted
    small = np.array([1e300, 1e300])
    assert not within_rounding_of_all_equations(np.array([0.0, 1e-15]), small, 2)


def test_residuals_in_units_of_their_bounds():
    assert scaled_max_norm(np.array([1e-16, -4e-16, 7.0]), np.array([1e16, 1e16]), 2) == pytest.approx(4.0)
    assert scaled_max_norm(np.zeros(3), np.ones(2), 2) == 0.0


def test_the_predictor_is_exact_for_cubics_and_alternating_errors():
    t = np.arange(6.0)
    exact = np.stack([1 + 2 * t - t**2 + 0.5 * t**3, 3 - t + 1e-3 * (-1.0) ** t], axis=1)
    x = np.zeros(2)
    predict_unknowns(exact[:5], x, 2, np.array([2]), 1)
    assert x == pytest.approx(exact[5], abs=1e-12)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("step", "trusted"), [(0.05, True), (3.0, False)])
def test_the_predictor_says_where_steps_are_too_long(step, trusted, unit):
    """Whatever the unknowns are measured in."""
    x = np.zeros(1)
    X = unit * (np.sin(step * np.arange(5.0))[:, None] + 0.1)
    assert predict_unknowns(X, x, 1, np.array([1]), 1) is trusted


def test_the_predictor_is_trusted_where_unknowns_turn_around():
    """At the top of a parabola, or of a long wave, the last change says nothing; at that of a short one it does."""
    x, t = np.zeros(1), np.arange(5.0)[:, None]
    for top in (3.0, 3.5, 4.0):
        assert predict_unknowns((t - top) ** 2, x, 1, np.array([1]), 1) is True and x[0] == (5.0 - top) ** 2
        assert predict_unknowns(np.cos(0.05 * (t - top)), x, 1, np.array([1]), 1) is True
        assert predict_unknowns(np.cos(1.0 * (t - top)), x, 1, np.array([1]), 1) is False


# -- an equation without a solution -------------------------------------------------------------------------------
@lowered
def _newton(x: F64Array, z: F64Array, c: F64Array, r: F64Array, dx: F64Array) -> None:
    r[0] = x[0] ** 2 + z[0]
    dx[0] = r[0] / (2 * x[0])
    r[1] = 1.0  # the growth of elimination


@lowered
def _residual(x: F64Array, z: F64Array, c: F64Array, r: F64Array, out: F64Array) -> None:
    r[0] = x[0] ** 2 + z[0]


@lowered
def _floor(x: F64Array, z: F64Array, c: F64Array, out: F64Array, scale: F64Array) -> None:
    scale[0] = 1e16


def solver(newton, residual, inv_roundoff, **others):
    """Kernels by their addresses; those that are not given are not there."""
    given = dict(newton=newton, residual=residual, inv_roundoff=inv_roundoff, **others)
    names = kernel_names()
    return StepKernels(**{name: given[name].address if name in given else 0 for name in names})


def workspace(*, z=0.0, scale=1.0, past=(1.0,), steps=1):
    """That of steps with one unknown from a state of one number; the unknowns of steps before are `past`."""
    X = np.zeros((len(past) + steps, 1))
    X[: len(past), 0] = past
    return Workspace(
        c=np.zeros(2),
        Z=np.full((steps + 1, 1), z),
        X=X,
        t=np.zeros(steps + 1),
        newton_iterations=np.zeros(steps, dtype=np.int64),
        work=np.zeros(10),
        newton_update=np.zeros(1),
        inv_roundoff=np.array([scale]),
        r=np.zeros(2),
        estimate=np.zeros(0),
        group_sizes=np.array([1]),
    )


@pytest.mark.parametrize(("missed", "status"), [(1e-14, CONVERGED), (1e-8, DIVERGED), (1e-6, DIVERGED)])
def test_curvature_explains_what_is_near_round_off_only(missed, status):
    """A parabola that misses zero is explained by its curvature wherever Newton's method jumps to.

    If it misses by round-off, the position is singular; if by more, there is no solution.
    """
    kernels, w = solver(_newton, _residual, _floor), workspace(z=missed, scale=1e16)
    assert newton_solve(kernels, w, w.X[0], w.Z[0], 100, False) == status
    if status == DIVERGED:
        assert w.counters[N_ITERATIONS] == MAX_NEWTON_ITERATIONS
    else:
        assert abs(w.X[0, 0]) < 1e-4


@lowered
def _coarse_floor(x: F64Array, z: F64Array, c: F64Array, out: F64Array, scale: F64Array) -> None:
    scale[0] = 1e8


def test_what_still_shrinks_is_not_the_floor():
    """Behind every correction of Newton's method the residual is what the curvature explains, until there is none."""
    kernels, w = solver(_newton, _residual, _coarse_floor), workspace(z=-4.0, scale=1e8)
    assert newton_solve(kernels, w, w.X[0], w.Z[0], 100, False) == CONVERGED
    assert w.X[0, 0] == pytest.approx(2.0, abs=1e-9)


@lowered
def _flat_newton(x: F64Array, z: F64Array, c: F64Array, r: F64Array, dx: F64Array) -> None:
    size = sqrt(1.0 + x[0] ** 2)
    r[0] = x[0] / size
    dx[0] = x[0] * size**2
    r[1] = 1.0


@lowered
def _flat_residual(x: F64Array, z: F64Array, c: F64Array, r: F64Array, out: F64Array) -> None:
    r[0] = x[0] / sqrt(1.0 + x[0] ** 2)


@lowered
def _wide_floor(x: F64Array, z: F64Array, c: F64Array, out: F64Array, scale: F64Array) -> None:
    scale[0] = 1e5


def test_one_correction_without_gain_is_not_the_floor():
    """Corrections of ``x / sqrt(1 + x^2)`` go from x to -x^3: the second gains little, and all that follow a lot."""
    kernels, w = solver(_flat_newton, _flat_residual, _wide_floor), workspace(scale=1e5, past=[0.9])
    assert newton_solve(kernels, w, w.X[0], w.Z[0], 100, False) == CONVERGED
    assert abs(w.X[0, 0]) < 1e-5


def test_the_curvature_of_a_straight_line_is_zero():
    """The residuals at x + dx and x - dx differ; a correction of a thousand does not explain a residual of fifty."""

    def residual(x, z, c, r, out):
        r[0] = x[0]

    kernel, scratch = Python(residual), np.zeros(3)
    numbers = np.zeros(1), np.zeros(2), np.array([50.0]), np.array([1e3]), np.array([1.0])
    assert not within_curvature_bound(kernel.address, np.array([50.0]), *numbers, 1, scratch)
    assert scratch[:2] == pytest.approx([1050.0, -950.0])


def test_quadratic_convergence_is_measured_from_the_initial_guess():
    """Norms of 1000, 4 and 0.5: a third of the kind is far below round-off, so that no third correction is needed."""
    norms = {8.0: 1000.0, 1.0: 4.0, 0.0: 0.5}

    def newton(x, z, c, r, dx):
        r[0], dx[0], r[1] = norms[x[0]], 1.0, 1.0

    def residual(x, z, c, r, out):
        r[0] = norms[x[0]]

    def floor(x, z, c, out, scale):
        scale[0] = 1.0

    kept = dict(newton=Python(newton), residual=Python(residual), inv_roundoff=Python(floor))
    w = workspace(past=[1.0])
    w.newton_update[0] = 7.0  # of the first correction, from 8 to 1
    assert newton_solve(solver(**kept), w, w.X[0], w.Z[0], 100, True) == CONVERGED
    assert w.counters[N_ITERATIONS] == 2 and w.X[0, 0] == 0.0


# -- the loop over steps ----------------------------------------------------------------------------------------------
class Python:
    """A kernel in Python, for what the loop does with others."""

    _KIND = ctypes.CFUNCTYPE(None, *[ctypes.POINTER(ctypes.c_double)] * 5)

    def __init__(self, function):
        self._entry = self._KIND(function)
        self.address = ctypes.cast(self._entry, ctypes.c_void_p).value


def stepped(w, *, newton, residual, floor, steps=1, first=0, trusted=True, guess=None):
    """Return the status of equal steps of size 0.5 with a constant predictor, `trusted` or not."""

    def predict(x, z, c, r, verdict):
        x[HISTORY], verdict[0] = x[HISTORY - 1], float(trusted)

    def end(x, z, c, r, new):
        new[0] = x[0]

    given = dict(newton=newton, residual=residual, inv_roundoff=floor, predict=predict)
    given |= dict(update_state=end, initial_guess=guess or end)
    kept = {name: Python(one) for name, one in given.items()}  # as long as the loop calls them
    kernels = solver(**kept)
    return advance_fixed(kernels, w, 0.5, 0.0, first, -1, 0.0, 0, steps, 100)


def test_bounds_are_made_anew_from_time_to_time():
    """By the number of the step, so that a run which was stopped in between goes on as it would have."""
    times = []

    def newton(x, z, c, r, dx):
        dx[0], r[1] = 0.0, 1.0

    def residual(x, z, c, r, out):
        r[0] = 0.0

    def floor(x, z, c, out, scale):
        times.append(c[1])

    first, steps = BOUND_REFRESH_INTERVAL - 3, 2 * BOUND_REFRESH_INTERVAL
    w = workspace(past=[1.0] * HISTORY, steps=steps)
    assert stepped(w, newton=newton, residual=residual, floor=floor, first=first, steps=steps) == CONVERGED
    assert times == [0.5 * BOUND_REFRESH_INTERVAL, 0.5 * 2 * BOUND_REFRESH_INTERVAL]


@pytest.mark.parametrize(("beyond", "corrections"), [(0.9, 1), (10.0, 1), (20.0, 2), (1000.0, 2)])
def test_bounds_of_another_time_are_doubted_for_small_residuals_only(beyond, corrections):
    """The bounds of now are a thousand times wider; but what is twenty times off had not been solved before them."""
    solved = []

    def newton(x, z, c, r, dx):
        dx[0], r[1] = 0.0, 1.0
        solved.append(x[0])

    def residual(x, z, c, r, out):
        r[0] = beyond if len(solved) == 1 else 0.0

    def floor(x, z, c, out, scale):
        scale[0] = 1e-3 if solved else 1.0

    w = workspace(past=[1.0] * HISTORY)
    assert stepped(w, newton=newton, residual=residual, floor=floor) == CONVERGED
    assert w.newton_iterations[0] == len(solved) == corrections


@pytest.mark.parametrize(("trusted", "tried"), [(False, [100.0, 5.0]), (True, [5.0, 7.0])])
def test_a_step_that_fails_is_tried_once_more_from_elsewhere(trusted, tried):
    """From the last unknowns where the guess of the scheme was taken, and from that guess where it was not."""
    begun = []

    def newton(x, z, c, r, dx):
        if not begun or begun[-1] != x[0]:
            begun.append(x[0])
        dx[0], r[1] = 0.0, 1.0

    def residual(x, z, c, r, out):
        r[0] = math.nan if len(begun) == 1 else 0.0

    def floor(x, z, c, out, scale):
        scale[0] = 1.0

    def guess(x, z, c, r, out):
        out[0] = 7.0 if trusted else 100.0

    w = workspace(past=[1.0, 2.0, 3.0, 4.0, 5.0])
    assert stepped(w, newton=newton, residual=residual, floor=floor, trusted=trusted, guess=guess) == CONVERGED
    assert begun == tried and w.Z[1, 0] == tried[-1]


# -- unknowns out of range --------------------------------------------------------------------------------------------
def alone(residual):
    """The equations of a step with one unknown and nothing else."""
    x, z, c = ca.SX.sym("x"), ca.SX.sym("z"), ca.SX.sym("c", 2)
    labels = ("the equation",)
    parts = dict(final_state=z, initial_guess=x, block_sizes=(1,), equation_labels=labels, layout=Layout(z=1))
    return ReferenceSolver(StepGraph.from_residual(x, z, c, residual=residual(x), **parts))


@pytest.mark.parametrize(
    ("residual", "guess"),
    [
        (lambda x: 1e300 * ca.exp(-x / 1e307), 1.75e308),  # fulfilled at infinity, where the unknown goes
        (lambda x: 1e-10 * (x + 1e308) + 1.5e298, -1e308),  # the first correction goes beyond the largest number
    ],
)
def test_a_correction_out_of_range_has_failed(residual, guess):
    """An unknown that is infinite is no solution; and there is no warning, which would be an error here."""
    x, _, trouble, _, _ = alone(residual).solve(np.array([guess]), np.zeros(1), np.array([1e-3, 0.0]))
    assert trouble is not None and np.isfinite(x).all()
