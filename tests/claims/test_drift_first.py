"""Drift first: the same order and the same cost, and often much smaller errors."""

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import math as m

FORCED = lv.System(
    "x y",
    kinetic=lambda v: 0.5 * (v @ v) + 0.2 * v[0] * v[1],
    potential=lambda q, t: m.cos(q[0]) * q[1] + 0.5 * (q @ q) * (1 + 0.1 * m.sin(t)),
    forces=lambda q: [0.1 * q[1], -0.1 * q[0] ** 2],
)
START = [0.3, 0.5], [0.2, -0.4]


@pytest.mark.parametrize(("scheme", "order"), [("position-verlet", 2), ("kahan-li-6:position-verlet", 6)])
def test_order_with_forces_and_time(scheme, order):
    """Against a Taylor series; the account of energies is of the same order."""
    exact = lv.simulate(FORCED, *START, scheme="taylor", t_end=2.0).q[-1]
    steps = [0.2 / 2 ** (i / 2) for i in range(5)] if order == 2 else [0.5 / 2 ** (i / 2) for i in range(5)]
    runs = [lv.simulate(FORCED, *START, scheme=scheme, h=2.0 / round(2.0 / h), t_end=2.0) for h in steps]
    steps = [2.0 / run.statistics.steps for run in runs]
    assert abs(measured_order(steps, [np.abs(run.q[-1] - exact).max() for run in runs]) - order) < 0.1
    if order == 2:
        assert runs[-1].summary.max_energy_drift < 1e-3


@pytest.mark.slow
def test_planets_with_the_drift_first():
    """The outer solar system in steps of 250 days: at least ten times as accurate, with as many forces."""
    problem, t_end = lv.problems.load("outer-solar-system"), 2e5
    exact = lv.simulate(problem, scheme="taylor", t_end=t_end).q[-1]
    errors = {}
    for base in ("stormer-verlet", "position-verlet"):
        scheme = f"kahan-li-8:{base}"
        errors[base] = np.abs(lv.simulate(problem, scheme=scheme, h=250.0, t_end=t_end).q[-1] - exact).max()
    assert errors["position-verlet"] < 5e-6 and 10 * errors["position-verlet"] < errors["stormer-verlet"]


def test_the_logarithmic_hamiltonian_stays_on_the_ellipse():
    """Thirteen steps for an orbit of eccentricity 0.8; with the kick first the same steps leave it at once."""
    problem = lv.problems.load("kepler", e=0.8)
    options = dict(h=0.5, t_end=60.0, scaling=lv.scaling.potential(1))
    drift = lv.simulate(problem, scheme="sundman-drift", **options)
    kick = lv.simulate(problem, scheme="sundman", **options)
    away = {}
    for name, run in (("drift", drift), ("kick", kick)):
        x, y = run.q[:-1].T
        away[name] = np.abs((x + 0.8) ** 2 + y**2 / (1 - 0.8**2) - 1).max()
    assert away["drift"] < 1e-12 and away["kick"] > 0.1
    assert drift.summary.max_energy_drift < 1e-12
    assert len(drift.t) < 14 * 60 / (2 * np.pi)


def test_order_of_the_logarithmic_hamiltonian():
    """Time is of second order, and with it where the planet is; composed, of sixth."""
    problem, t_end = lv.problems.load("kepler", e=0.5), 5.0
    exact = problem.reference(t_end)["q"]
    for scheme, order, first in (("sundman-drift", 2, 0.05), ("kahan-li-6:sundman-drift", 6, 0.3)):
        steps = [first / 2 ** (i / 2) for i in range(5)]
        errors = [
            np.abs(
                lv.simulate(problem, scheme=scheme, h=h, t_end=t_end, scaling=lv.scaling.potential(1)).q[-1] - exact
            ).max()
            for h in steps
        ]
        assert abs(measured_order(steps, errors) - order) < 0.1, scheme


def test_a_hundred_orbits_with_the_logarithmic_hamiltonian():
    """Composed to order 8, with as many forces: a thousand times smaller errors where the drift is first."""
    problem, t_end = lv.problems.load("kepler", e=0.8), 100.3 * 2 * np.pi
    exact, errors = problem.reference(t_end)["q"], {}
    for base in ("sundman", "sundman-drift"):
        run = lv.simulate(
            problem, scheme=f"kahan-li-8:{base}", h=0.3, t_end=t_end, scaling=lv.scaling.potential(1), every=1000
        )
        errors[base] = np.abs(run.q[-1] - exact).max()
    assert errors["sundman-drift"] < 2e-8 and 1000 * errors["sundman-drift"] < errors["sundman"]
