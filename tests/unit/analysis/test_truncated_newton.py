"""Truncated Newton iterations: residual tolerance, initial guesses, and their effect on the energy."""

import numpy as np
import pytest

import livens as lv

PENDULUM = lv.problems.load("pendulum")
OPTIONS = dict(scheme="M-PRK", h=0.01, t_end=1.0)


def test_a_small_tolerance_gives_the_run_of_the_engine():
    run = lv.study.truncated_newton(PENDULUM, 1e-13, **OPTIONS)
    exact = lv.simulate(PENDULUM, **OPTIONS)
    for name in "qvp":
        assert np.abs(run[name] - getattr(exact, name)).max() < 1e-11
    assert np.allclose(run.t, exact.t, rtol=0, atol=1e-14)


@pytest.mark.parametrize("guess", ["start", "extrapolated", lambda state, h, t: np.repeat([0.0, 9.81], (6, 3))])
def test_residuals_are_tested_against_the_tolerance(guess):
    run = lv.study.truncated_newton(PENDULUM, 1e-8, initial_guess=guess, **OPTIONS)
    size = 1 + max(np.linalg.norm(np.hstack([run[name] for name in run.states]), axis=1))
    assert run.residual_norms.max() <= 1e-8 * size and len(run.residual_norms) == 100
    assert np.all(run.residual_norms <= run.initial_norms) and run.newton_iterations.min() >= 0


def test_a_tolerance_makes_the_energy_drift():
    """Symank 2025, figure 11: the energy of M-PRK drifts with a tolerance of 1e-8, and not if solved further."""
    changes = []
    for tolerance in (1e-8, 1e-13):
        run = lv.study.truncated_newton(PENDULUM, tolerance, scheme="M-PRK", h=0.01, t_end=5.0)
        energy = 0.5 * np.sum(run["v"] ** 2, axis=1) + 9.81 * run["q"][:, 1]
        changes.append(abs(energy[-1] - energy[0]))
    assert changes[0] > 1e-10 > 1e-12 > changes[1]


def test_misuse_is_named():
    with pytest.raises(lv.InputError, match="residual_tolerance must be greater than 0"):
        lv.study.truncated_newton(PENDULUM, 0.0, **OPTIONS)
    with pytest.raises(lv.InputError, match="initial_guess must be 'start' or 'extrapolated', got 'zero'"):
        lv.study.truncated_newton(PENDULUM, 1e-8, initial_guess="zero", **OPTIONS)
    with pytest.raises(lv.InputError, match="needs a Problem"):
        lv.study.truncated_newton(PENDULUM.model, 1e-8, **OPTIONS)
    with pytest.raises(lv.InputError, match="is explicit on this problem"):
        lv.study.truncated_newton(lv.problems.load("nonlinear-pendulum"), 1e-8, scheme="stormer-verlet")
    with pytest.raises(lv.IntegrationError, match="did not reach the residual tolerance 1e-30"):
        lv.study.truncated_newton(PENDULUM, 1e-30, **OPTIONS)
    with pytest.raises(lv.InputError, match="has no 'x', only q, v"):
        lv.study.truncated_newton(PENDULUM, 1e-8, **OPTIONS)["x"]
