"""Long adaptive runs: energy and constraints at round-off, drift of the action and of the phase."""

import numpy as np
import pytest
from scipy.special import ellipe, ellipk

import livens as lv

GRAVITY = 9.81
PENDULUM = lv.System(
    "x y",
    kinetic=lambda v: (v[0] ** 2 + v[1] ** 2) / 2,
    potential=lambda q: GRAVITY * q[1],
    constraints=lambda q: [(q[0] ** 2 + q[1] ** 2 - 1) / 2],
)
HIGH = dict(q0=[0.6, 0.8], v0=[0.0, 0.0], project=True)


def spatial_pendulum():
    """Two rods with ball joints in space: a chaotic motion."""
    mb = lv.Multibody(gravity=(0, 0, -GRAVITY))
    upper = mb.rod("upper", a=(0, 0, 0), b=(0.6, 0, -0.8), mass=1.0, radius=0.05)
    lower = mb.rod("lower", a=upper.b, b=(1.2, 0.3, -1.0), mass=0.5, radius=0.05)
    mb.spherical("ball", mb.ground, upper, at=upper.a)
    mb.spherical("joint", upper, lower, at=upper.b)
    mb.initial(upper, omega=(0.5, 1.0, 2.0))
    return mb


CONTROLS = {
    "tolerance": dict(tolerance=1e-4),
    "reversible": dict(adaptive="reversible", h=0.02, scaling=lv.scaling.speed(1.0, exponent=0.5)),
}


@pytest.mark.parametrize(
    ("control", "t_end", "n_steps"),
    [
        ("tolerance", 20.0, 20_000),
        ("reversible", 150.0, 20_000),
        pytest.param("tolerance", 300.0, 1_000_000, marks=pytest.mark.slow),
        pytest.param("reversible", 6700.0, 1_000_000, marks=pytest.mark.slow),
    ],
)
def test_energy_and_constraints_of_many_steps(control, t_end, n_steps):
    run = spatial_pendulum().simulate(t_end=t_end, every=100, **CONTROLS[control])
    assert run.statistics.steps > n_steps
    assert run.summary.max_energy_drift < 1e-12 and run.summary.max_constraint < 1e-12


def upward_passages(run):
    """Return the times at which the pendulum passes its lowest or highest position to the right."""
    x, t = run.q[:, 0], run.t
    first = np.clip(np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0)) - 1, 0, len(t) - 4)
    return np.array([t[i] + np.polyval(np.polyfit(x[i : i + 4], t[i : i + 4] - t[i], 3), 0.0) for i in first])


def action(energy):
    """Return the action of a swinging pendulum of unit mass and length, ``8 w/pi (E(k) - (1 - k^2) K(k))``."""
    k2 = (energy / GRAVITY + 1) / 2
    return 8 * np.sqrt(GRAVITY) / np.pi * (ellipe(k2) - (1 - k2) * ellipk(k2))


@pytest.mark.parametrize("share", [0.02, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scheme", ["livens-variational", "rattle"])
def test_drift_of_action_and_phase(scheme, share):
    """Symplectic schemes: no drift with reversible steps, drift with steps that follow the error."""
    options = dict(HIGH, scheme=scheme, progress=False)
    reversible = dict(adaptive="reversible", h=0.1, scaling=lambda q: 1 / (1.3 - q[1]))
    run = lv.simulate(PENDULUM, **options, t_end=share * 135_000, **reversible)
    assert run.statistics.steps > share * 1e6
    values, passages = action(run.observe("total_energy")), upward_passages(run)
    assert abs(np.polyfit(run.t / run.t[-1], values, 1)[0]) < 1e-4 * np.ptp(values)
    equal_periods = np.linspace(passages[0], passages[-1], len(passages))
    assert np.abs(passages - equal_periods).max() < 1e-4

    run = lv.simulate(PENDULUM, **options, t_end=share * 20_000, tolerance=1.0 * share)
    assert run.statistics.steps > share * 1e6
    energy, periods, n = run.observe("total_energy"), np.diff(upward_passages(run)), len(run.t) // 10
    assert energy[:n].mean() - energy[-n:].mean() > 0.3
    assert periods[-20:].mean() < 0.98 * periods[:20].mean()
