"""A walker with four legs of Theo Jansen on one crank: 26 bodies in closed loops on compliant feet with friction."""

import numpy as np
import pytest

from benchmarks.jansen_walker import LEGS, RATE, START, WEIGHT, leg_error, walker


def checked(run):
    """Legs as in closed form, no drift of energy, and the mean load of the feet."""
    assert run.summary.max_energy_drift < 1e-10 and run.summary.max_constraint < 1e-12
    chassis = run["chassis.position"]
    for row in range(0, len(run.t), max(1, len(run.t) // 20)):
        lower_parts = [run[f"lower{n}.position"][row] for n in range(len(LEGS))]
        assert leg_error(START + RATE * run.t[row], chassis[row], lower_parts) < 1e-10
    assert np.abs(chassis[:, 1] - chassis[0, 1]).max() < 0.02


def test_a_walker_takes_its_first_steps():
    run = walker().simulate(t_end=4.0, h=1e-3, every=10)
    checked(run)
    assert run["chassis.position"][-1, 0] < -1.5
    assert all(run[f"foot{n}.normal_force"].max() > WEIGHT / 4 for n in range(4))


@pytest.mark.slow
def test_a_walker_walks_for_a_hundred_seconds():
    """A limit cycle: the same way in every turn of the crank, and the feet carry the weight on average."""
    run = walker().simulate(t_end=100.0, h=1e-3, every=20)
    checked(run)
    turn = 2 * np.pi / RATE
    ways = np.diff(np.interp(np.arange(2, 100 / turn - 1) * turn, run.t, run["chassis.position"][:, 0]))
    assert np.ptp(ways) < 1e-3 * abs(ways.mean())
    load = sum(np.asarray(run[f"foot{n}.normal_force"]) for n in range(4))[len(run.t) // 2 :]
    assert load.mean() == pytest.approx(WEIGHT, rel=1e-3)
