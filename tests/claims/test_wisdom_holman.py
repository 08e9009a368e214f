"""Planets on ellipses that kick each other: orders, what the corrector gains, conservation, and what is refused."""

import numpy as np
import pytest
from conftest import measured_order

import livens as lv


def planets(mass=1e-3, count=2, dimension=2):
    """A star with planets on slightly eccentric orbits, each half as far out again as the one before."""
    names = ["star", *(f"planet{i + 1}" for i in range(count))]
    model = lv.PointMasses(names, [1.0, *(mass * (1 + 0.3 * i) for i in range(count))], dimension=dimension)
    q, v = np.zeros((count + 1, dimension)), np.zeros((count + 1, dimension))
    for i in range(count):
        a, angle = 1.5**i, 2.0 * i
        q[i + 1, :2] = a * np.array([np.cos(angle), np.sin(angle)])
        v[i + 1, :2] = 1.04 / np.sqrt(a) * np.array([-np.sin(angle), np.cos(angle)])
        v[i + 1, 2:] = 0.05
    v[0, 0] = 0.01  # the centre of mass moves too
    return model, q.ravel(), v.ravel()


def error(model, q, v, scheme, h, t_end, exact):
    return np.abs(lv.simulate(model, q, v, scheme=scheme, h=h, t_end=t_end).q[-1] - exact).max()


@pytest.mark.parametrize("scheme", ["wisdom-holman", "wisdom-holman:4"])
def test_order(scheme):
    """Two, with the corrector too: what it leaves is of second order in the masses, and in the step."""
    model, q, v = planets(0.01)
    t_end = 16.0
    exact = lv.simulate(model, q, v, scheme="taylor", t_end=t_end).q[-1]
    inner = 4 if ":" in scheme else 1
    steps = [inner * t_end / n for n in (128, 176, 256, 360, 512)]
    errors = [error(model, q, v, scheme, h, t_end, exact) for h in steps]
    assert abs(measured_order(steps, errors) - 2) < 0.1


def test_errors_are_of_the_order_of_the_masses():
    """Ten times lighter planets: errors a tenth, and a hundredth with the corrector."""
    found = {}
    for mass in (1e-4, 1e-5):
        model, q, v = planets(mass)
        exact = lv.simulate(model, q, v, scheme="taylor", t_end=16.0).q[-1]
        for scheme, h in (("wisdom-holman", 0.1), ("wisdom-holman:160", 16.0)):
            found[scheme, mass] = error(model, q, v, scheme, h, 16.0, exact)
    plain, corrected = (found[s, 1e-4] / found[s, 1e-5] for s in ("wisdom-holman", "wisdom-holman:160"))
    assert 8 < plain < 12 and 90 < corrected < 110
    assert found["wisdom-holman", 1e-5] > 100 * found["wisdom-holman:160", 1e-5]


def test_outer_planets():
    """A million days in steps of 200: the errors that are known of it (REBOUND's WHFast has the same)."""
    problem = lv.problems.load("outer-solar-system")
    exact = lv.simulate(problem, scheme="taylor", t_end=1e6).q[-1]
    for scheme, h, known in (("wisdom-holman", 200.0, 1.25e-3), ("wisdom-holman:5000", 1e6, 1.80e-5)):
        assert abs(error(problem.model, problem.q0, problem.v0, scheme, h, 1e6, exact) / known - 1) < 0.01


def test_long_runs():
    """Momenta at round-off; the energy is not conserved, but goes nowhere either."""
    model, q, v = planets(count=3, dimension=3)
    run = lv.simulate(model, q, v, scheme="wisdom-holman", h=0.2, t_end=20_000.0)
    drift = run.summary.momentum_drift
    assert drift["momentum"] < 1e-13 and drift["angular_momentum"] < 1e-12
    energy = run.observe("total_energy")
    away = np.abs(energy / energy[0] - 1)
    assert away.max() > 1e-8
    assert away.max() < 1.3 * away[: len(away) // 20].max()


def test_one_planet_moves_exactly():
    """Steps of a third of a period on a long ellipse, which need the robust way through Kepler's equation."""
    problem = lv.problems.load("kepler", e=0.8)
    model = lv.PointMasses("star planet", [1.0, 1e-9], G=1 / (1 + 1e-9), dimension=2)
    share = 1e-9 / (1 + 1e-9)
    q = np.concatenate([-share * problem.q0, (1 - share) * problem.q0])
    v = np.concatenate([-share * problem.v0, (1 - share) * problem.v0])
    run = lv.simulate(model, q, v, scheme="wisdom-holman", h=2.0, t_end=40.0)
    exact = np.array([problem.reference(t)["q"] for t in run.t])
    assert np.abs(run.q[:, 2:] - run.q[:, :2] - exact).max() < 1e-11


@pytest.mark.parametrize(("count", "dimension"), [(1, 3), (2, 2), (3, 3), (9, 2)])
def test_tiers_agree(count, dimension):
    """Lanes, idle ones among them, and the graph that derivatives are taken of; with other masses than the model's."""
    model, q, v = planets(count=count, dimension=dimension)
    masses = [1.1, *([2e-3] * count)]
    runs = [
        lv.simulate(model, q, v, scheme="wisdom-holman", h=0.1, t_end=1.0, tier=tier, parameters={"masses": masses})
        for tier in ("fused", "reference")
    ]
    for name in ("q", "v", "p"):
        assert np.abs(getattr(runs[0], name) - getattr(runs[1], name)).max() < 1e-13


@pytest.mark.parametrize("scheme", ["wisdom-holman", "wisdom-holman:3"])
def test_resumed_bit_for_bit(scheme, tmp_path):
    """Also where a shorter last step is not a step of the longer run."""
    model, q, v = planets(count=3)
    whole = lv.simulate(model, q, v, scheme=scheme, h=0.3, t_end=30.0)
    file = tmp_path / "planets.h5"
    lv.simulate(model, q, v, scheme=scheme, h=0.3, t_end=10.1, out=file)
    again = lv.resume(file, t_end=30.0, system=model)
    assert np.array_equal(again.q[-1], whole.q[-1]) and np.array_equal(again.p[-1], whole.p[-1])


def test_what_it_refuses():
    model, q, v = planets()
    for name in ("wisdom-holman:0", "wisdom-holman:1.5"):
        with pytest.raises(lv.InputError, match="must be whole and at least 1"):
            lv.schemes.get(name)
    with pytest.raises(lv.InputError, match="a gravitational N-body system"):
        lv.simulate(lv.problems.load("kepler"), scheme="wisdom-holman", h=0.1, t_end=1.0)
    with pytest.raises(lv.IntegrationError, match="Kepler's equation is not solved"):
        lv.simulate(model, q, v, scheme="wisdom-holman", h=1e4, t_end=1e6)
    with pytest.raises(lv.InputError, match="too long to be one graph"):
        lv.simulate(model, q, v, scheme="wisdom-holman:100", h=1.0, t_end=2.0, tier="reference")
    with pytest.raises(lv.ModelError, match="3 bodies, but 2 masses"):
        lv.PointMasses("a b c", [1.0, 2.0])
    with pytest.raises(lv.ModelError, match="at least two"):
        lv.PointMasses("a", [1.0])
    with pytest.raises(lv.InputError, match="dimension must be 2 or 3"):
        lv.PointMasses("a b", [1.0, 2.0], dimension=4)
