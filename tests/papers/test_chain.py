"""The chain of rods: one rod against a pendulum, hinges against balls, starts of any length."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import livens as lv


def test_one_rod_is_a_pendulum():
    """``I a'' = -m g l/2 cos a`` about the end, with the angle a of the rod above the horizontal."""
    run = lv.simulate(lv.problems.load("chain", N=1, revolute=1), h=1e-4, t_end=0.5, every=100)
    inertia = 1 / 12 + (1 / 10) ** 2 / 4 + 1 / 4
    swing = solve_ivp(
        lambda t, y: [y[1], -9.81 / 2 * np.cos(y[0]) / inertia], (0, 0.5), [-1.2, 0.0], rtol=1e-11, atol=1e-12
    )
    angle = np.arctan2(run["rod0.d1z"][-1], run["rod0.d1x"][-1])
    assert angle == pytest.approx(swing.y[0, -1], abs=1e-6)
    assert run.summary.max_energy_drift < 1e-12


def test_hinges_and_balls_swing_alike():
    """Without spin, the balls' chain stays in the plane that the hinges keep."""
    hinges, balls, directors = (
        lv.simulate(lv.problems.load("chain", N=3, **options), t_end=0.2, every=50)
        for options in (dict(revolute=1), dict(spin=0.0), dict(revolute=1, frames=0))
    )
    assert np.abs(hinges.q - balls.q).max() < 1e-10
    assert np.abs(hinges.q - directors.q).max() < 1e-8
    for run in (hinges, balls, directors):
        assert run.summary.max_energy_drift < 1e-13 and run.summary.max_constraint < 1e-13


@pytest.mark.parametrize("fold", [0.0, 1.2, np.pi / 2])
def test_every_start_is_consistent(fold):
    problem = lv.problems.load("chain", N=30, fold=fold)
    state = problem.model.initial_state(problem.start_values, problem.model.parameter_vector(), 0.0, False, "error")
    assert np.array_equal(state["q"], problem.q0) and state.removed_constraints == ()
    assert np.isfinite(state["multipliers"]).all()


def test_a_chain_needs_a_rod():
    with pytest.raises(lv.InputError, match="option 'N' must be at least 1"):
        lv.problems.load("chain", N=0)
