"""When Newton's method is done: the test of residuals, case by case."""

import math

import numpy as np
import pytest

from livens.engine.newton import SMALL, at_the_floor, extrapolate, scaled


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
