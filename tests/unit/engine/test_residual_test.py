"""When Newton's method is done: the test of residuals, case by case."""

import math

import numba as nb
import numpy as np
import pytest

from livens.engine.newton import DONE, FAILED, MOST_ITERATIONS, SMALL, Kernels, at_the_floor, extrapolate, scaled
from livens.engine.newton import solve_step as solve


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
    assert scaled(np.array([1e-16, -4e-16, 7.0]), np.array([1e16, 1e16])) == pytest.approx(4.0)
    assert scaled(np.zeros(3), np.ones(2)) == 0.0


def test_the_predictor_is_exact_for_cubics_and_alternating_errors():
    t = np.arange(6.0)
    exact = np.stack([1 + 2 * t - t**2 + 0.5 * t**3, 3 - t + 1e-3 * (-1.0) ** t], axis=1)
    x = np.zeros(2)
    extrapolate(exact[:5], 0, x, np.array([2]))
    assert x == pytest.approx(exact[5], abs=1e-12)


@pytest.mark.parametrize(("step", "trusted"), [(0.05, True), (3.0, False)])
def test_the_predictor_says_where_steps_are_too_long(step, trusted):
    x = np.zeros(1)
    X = np.sin(step * np.arange(5.0))[:, None] + 0.1
    assert extrapolate(X, 0, x, np.array([1])) is trusted


# -- an equation without a solution -------------------------------------------------------------------------------
_POINTER = nb.types.CPointer(nb.double)
_KERNEL = nb.void(_POINTER, _POINTER, _POINTER, _POINTER, _POINTER)


@nb.cfunc(_KERNEL)
def _newton(x, z, c, r, dx):
    r[0] = x[0] ** 2 + z[0]
    dx[0] = r[0] / (2 * x[0])
    r[1] = 1.0  # the growth of elimination


@nb.cfunc(_KERNEL)
def _residual(x, z, c, r, out):
    r[0] = x[0] ** 2 + z[0]


@nb.cfunc(_KERNEL)
def _floor(x, z, c, out, scale):
    scale[0] = 1e16


@pytest.mark.parametrize(("missed", "status"), [(1e-14, DONE), (1e-8, FAILED), (1e-6, FAILED)])
def test_curvature_explains_what_is_near_round_off_only(missed, status):
    """A parabola that misses zero is explained by its curvature wherever Newton's method jumps to.

    If it misses by round-off, the position is singular; if by more, there is no solution.
    """
    kernels = Kernels(_newton.address, 0, _residual.address, _floor.address, 0, 0, 0, 0, 0)
    x, z, c, r, dx = np.array([1.0]), np.array([missed]), np.zeros(1), np.zeros(2), np.zeros(1)
    found, corrections = solve(kernels, x, z.ctypes.data, c.ctypes.data, r, dx, np.array([1e16]), 100, False)
    assert found == status
    if status == FAILED:
        assert corrections == MOST_ITERATIONS
    else:
        assert abs(x[0]) < 1e-4
