"""When Newton's method is done: the test of residuals, case by case."""

import math

import casadi as ca
import numpy as np
import pytest

from livens.engine.floor import SMALL, at_the_floor
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles
from livens.engine.newton import (
    CORRECTIONS,
    DONE,
    FAILED,
    MOST_ITERATIONS,
    Kernels,
    Workspace,
    extrapolate,
    scaled,
    solve_step,
)
from livens.engine.reference import ReferenceSolver
from livens.expressions.layout import Layout
from livens.schemes.step import FlatEquations


@pytest.mark.parametrize(
    ("worst", "last", "before", "iteration", "done"),
    [
        (1.01, 1e9, 1e12, 2, False),  # above its bound: never
        (math.nan, 1.0, 1.0, 3, False),
        (math.inf, 1.0, 1.0, 1, False),
        (1.0, math.inf, math.inf, 1, True),  # a guess that needed but one correction
        (0.9, 100.0, 1000.0, 2, False),  # may still be what is left of the error
        (SMALL, 100.0, 1000.0, 2, True),  # far below
        (1.01 * SMALL, 100.0, 1000.0, 2, False),
        (0.5, 1.9, 1000.0, 3, True),  # nothing is gained any more
        (0.5, 2.1, 2.0, 3, False),
        (0.3, 2.0, 1000.0, 3, True),  # quadratic convergence leaves far less
        (0.3, 2.0, 8.0, 3, False),
    ],
)
def test_at_the_floor(worst, last, before, iteration, done):
    assert at_the_floor(worst, last, before, iteration) is done


def test_residuals_in_units_of_their_bounds():
    assert scaled(np.array([1e-16, -4e-16, 7.0]), np.array([1e16, 1e16]), 2) == pytest.approx(4.0)
    assert scaled(np.zeros(3), np.ones(2), 2) == 0.0


def test_the_predictor_is_exact_for_cubics_and_alternating_errors():
    t = np.arange(6.0)
    exact = np.stack([1 + 2 * t - t**2 + 0.5 * t**3, 3 - t + 1e-3 * (-1.0) ** t], axis=1)
    x = np.zeros(2)
    extrapolate(exact[:5], x, 2, np.array([2]), 1)
    assert x == pytest.approx(exact[5], abs=1e-12)


@pytest.mark.parametrize(("step", "trusted"), [(0.05, True), (3.0, False)])
def test_the_predictor_says_where_steps_are_too_long(step, trusted):
    x = np.zeros(1)
    X = np.sin(step * np.arange(5.0))[:, None] + 0.1
    assert extrapolate(X, x, 1, np.array([1]), 1) is trusted


def test_the_predictor_is_trusted_where_unknowns_turn_around():
    """At the top of a parabola, or of a long wave, the last change says nothing; at that of a short one it does."""
    x, t = np.zeros(1), np.arange(5.0)[:, None]
    for top in (3.0, 3.5, 4.0):
        assert extrapolate((t - top) ** 2, x, 1, np.array([1]), 1) is True and x[0] == (5.0 - top) ** 2
        assert extrapolate(np.cos(0.05 * (t - top)), x, 1, np.array([1]), 1) is True
        assert extrapolate(np.cos(1.0 * (t - top)), x, 1, np.array([1]), 1) is False


# -- an equation without a solution -------------------------------------------------------------------------------
@lowered
def _newton(x: Doubles, z: Doubles, c: Doubles, r: Doubles, dx: Doubles) -> None:
    r[0] = x[0] ** 2 + z[0]
    dx[0] = r[0] / (2 * x[0])
    r[1] = 1.0  # the growth of elimination


@lowered
def _residual(x: Doubles, z: Doubles, c: Doubles, r: Doubles, out: Doubles) -> None:
    r[0] = x[0] ** 2 + z[0]


@lowered
def _floor(x: Doubles, z: Doubles, c: Doubles, out: Doubles, scale: Doubles) -> None:
    scale[0] = 1e16


@pytest.mark.parametrize(("missed", "status"), [(1e-14, DONE), (1e-8, FAILED), (1e-6, FAILED)])
def test_curvature_explains_what_is_near_round_off_only(missed, status):
    """A parabola that misses zero is explained by its curvature wherever Newton's method jumps to.

    If it misses by round-off, the position is singular; if by more, there is no solution.
    """
    kernels = Kernels(_newton.address, 0, _residual.address, _floor.address, 0, 0, 0, 0, 0)
    w = Workspace(
        c=np.zeros(1),
        Z=np.array([[missed]]),
        X=np.array([[1.0]]),
        t=np.zeros(1),
        iterations=np.zeros(1, dtype=np.int64),
        work=np.zeros(0),
        dx=np.zeros(1),
        scale=np.array([1e16]),
        r=np.zeros(2),
        estimate=np.zeros(0),
        kinds=np.array([1]),
    )
    assert solve_step(kernels, w, w.X[0], w.Z[0], 100, False) == status
    if status == FAILED:
        assert w.told[CORRECTIONS] == MOST_ITERATIONS
    else:
        assert abs(w.X[0, 0]) < 1e-4


# -- unknowns out of range --------------------------------------------------------------------------------------------
def alone(residual):
    """The equations of a step with one unknown and nothing else."""
    x, z, c = ca.SX.sym("x"), ca.SX.sym("z"), ca.SX.sym("c", 2)
    parts = dict(end=z, guess=x, kinds=(1,), row_names=("the equation",), layout=Layout(z=1))
    return ReferenceSolver(FlatEquations.of(x, z, c, residual=residual(x), **parts))


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
