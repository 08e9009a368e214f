"""Gauss' collocation in a fictive time: order 2s, symplectic, symmetric; sweeps end where Newton's method does."""

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import math as m
from livens.errors import InputError
from livens.problems import load


def distance(q):
    return m.norm(q)


@pytest.fixture(scope="module")
def orbit():
    """Kepler's problem as H(q, p)."""
    return lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / m.norm(q))


def start(e):
    return dict(q0=[1 - e, 0.0], p0=[0.0, np.sqrt((1 + e) / (1 - e))])


def mixed():
    """An energy whose parts do not come apart, and a scaling of momenta too."""
    H = lv.Hamiltonian("x y", hamiltonian=lambda q, p: (1 + q[0] ** 2) * (p @ p) / 2 + q @ q / 2 + q[1] ** 4 / 4)
    return H, dict(q=[0.6, -0.4], p=[0.5, 0.7], scaling=lv.scaling.user_scaling(lambda q, p: 1 / (1 + q @ q + p @ p)))


@pytest.mark.parametrize(("s", "first"), [(1, 0.1), (2, 0.5), (3, 0.6), (4, 1.0)])
def test_order(s, first):
    """Against a Taylor series, where nothing comes apart."""
    model, at = mixed()
    where = dict(q0=at["q"], p0=at["p"], t_end=4.7)
    exact = lv.simulate(model, **where, scheme="taylor")
    steps = [first / 2 ** (i / 2) for i in range(5)]
    assert lv.schemes.get(f"sundman-gauss-{s}").order == 2 * s
    runs = [lv.simulate(model, **where, scheme=f"sundman-gauss-{s}", h=h, scaling=at["scaling"]) for h in steps]
    errors = [np.linalg.norm([run.q[-1] - exact.q[-1], run.v[-1] - exact.v[-1]]) for run in runs]
    assert measured_order(steps, errors) == pytest.approx(2 * s, abs=0.1), errors


@pytest.mark.parametrize("s", [1, 2, 3, 8])
def test_sweeps_find_what_newton_finds(orbit, s):
    """Two codes for the same equations: in lanes, and by elimination with pivots. Lanes without a stage do no harm."""
    run, other = (
        lv.simulate(orbit, **start(0.6), scheme=f"sundman-gauss-{s}", h=0.3, t_end=9.0, scaling=distance, tier=tier)
        for tier in ("fused", "reference")
    )
    assert run.statistics.reference_steps == 0 and len(run.t) == len(other.t)
    for name in ("q", "v", "p", "t"):
        assert np.abs(getattr(run, name) - getattr(other, name)).max() < 2e-12, name
    # every sweep evaluates forces at all stages, and there are no more sweeps than rounding asks for
    assert run.statistics.force_evaluations == s * run.statistics.newton_iterations
    assert run.statistics.force_jacobians == 0
    assert run.statistics.newton_iterations < 25 * run.statistics.steps


def test_symplectic_and_reversible():
    model, at = mixed()
    for s in (1, 2, 5):
        assert lv.study.symplecticity_defect(model, f"sundman-gauss-{s}", h=0.4, **at) < 1e-13
        assert lv.study.reversibility_defect(model, f"sundman-gauss-{s}", h=0.4, **at) < 1e-13
    # the same method in time itself, with steps of the same changing size, is not
    assert lv.study.symplecticity_defect(model, "step-density:gauss-2", h=0.4, **at) > 1e-6


def test_energy_and_angular_momentum_over_ten_thousand_steps(orbit):
    """With eight stages to the last digits; with two, the energy errs and does not drift."""
    options = dict(**start(0.8), scaling=distance)
    run = lv.simulate(orbit, **options, scheme="sundman-gauss-8", h=0.3, t_end=3000.0)
    spin = run.q[:, 0] * run.p[:, 1] - run.q[:, 1] * run.p[:, 0]
    energy = run.observe("total_energy")
    assert run.statistics.steps > 9_000
    assert np.abs(spin / spin[0] - 1).max() < 2e-14 and np.abs(energy / energy[0] - 1).max() < 2e-13
    run = lv.simulate(orbit, **options, scheme="sundman-gauss-2", h=0.3, t_end=3000.0)
    energy = run.observe("total_energy")
    early, late = (np.abs(part / energy[0] - 1).max() for part in (energy[:1000], energy[-1000:]))
    assert early > 1e-6 and 0.8 < late / early < 1.2
    spin = run.q[:, 0] * run.p[:, 1] - run.q[:, 1] * run.p[:, 0]
    assert np.abs(spin / spin[0] - 1).max() < 2e-14


def test_thirteen_steps_an_orbit_to_nine_digits(orbit):
    """Kepler, e = 0.8, over 100.3 periods: what steps of the fictive time are worth."""
    t_end = 100.3 * 2 * np.pi
    exact = load("kepler", e=0.8).reference(t_end)["q"]
    run = lv.simulate(orbit, **start(0.8), scheme="sundman-gauss-8", h=0.5, t_end=t_end, scaling=distance)
    assert np.abs(run.q[-1] - exact).max() < 1e-9 and run.statistics.steps == 1262
    plain = lv.simulate(orbit, **start(0.8), scheme="gauss-8", h=t_end / 2524, t_end=t_end)
    assert np.abs(plain.q[-1] - exact).max() > 1e-4  # with twice as many steps of equal length


def test_steps_too_long_for_sweeps(orbit):
    """Newton's method takes them, and the order says that it solves the same equations."""
    run = lv.simulate(orbit, **start(0.3), scheme="sundman-gauss-8", h=2.5, t_end=60.0, scaling=distance)
    assert run.statistics.reference_steps > 10
    assert np.abs(run.q[-1] - load("kepler", e=0.3).reference(60.0)["q"]).max() < 1e-3
    spin = run.q[:, 0] * run.p[:, 1] - run.q[:, 1] * run.p[:, 0]
    assert np.abs(spin / spin[0] - 1).max() < 1e-13


def test_a_run_that_goes_on_is_the_longer_run(orbit, tmp_path):
    """Bit for bit: what rounding left of every sum is kept, too."""
    options = dict(**start(0.8), scheme="sundman-gauss-4", h=0.2, scaling=distance)
    whole = lv.simulate(orbit, **options, t_end=30.0)
    lv.simulate(orbit, **options, t_end=11.0, out=tmp_path / "part.h5")
    rest = lv.resume(tmp_path / "part.h5", system=orbit, scaling=distance, t_end=30.0)
    assert np.array_equal(rest.q[-1], whole.q[-1]) and np.array_equal(rest.t, whole.t)


def test_parameters_are_run_time_inputs():
    """A heavier sun, with code that is compiled once."""
    model = lv.Hamiltonian(
        "x y", kinetic=lambda p: p @ p / 2, potential=lambda q, k: -k.mu / m.norm(q), parameters=dict(mu=1.0)
    )
    step = lv.prepare(model, "sundman-gauss-6", scaling=distance)
    for mu in (1.0, 4.0):
        run = step.run(q0=[1.0, 0.0], p0=[0.0, np.sqrt(mu)], h=0.2, t_end=3.0, parameters=dict(mu=mu))
        angle = np.sqrt(mu) * 3.0
        assert np.abs(run.q[-1] - [np.cos(angle), np.sin(angle)]).max() < 1e-11


@pytest.mark.parametrize(
    ("scheme", "options", "words"),
    [
        ("sundman-gauss-0", {"scaling": distance}, "takes 1 to 16 stages, got 0"),
        ("sundman-gauss-3", {}, "needs a scaling function"),
        ("sundman-gauss-3", {"scaling": lambda q: q[0] - 1}, "must be finite and greater than 0"),
    ],
)
def test_bad_input(orbit, scheme, options, words):
    with pytest.raises(InputError, match=words):
        lv.simulate(orbit, **start(0.5), scheme=scheme, h=0.1, t_end=1.0, **options)
