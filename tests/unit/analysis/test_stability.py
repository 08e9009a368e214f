"""Small motions, exponents and multipliers, against what is known of them."""

import numpy as np
import pytest
import scipy.optimize
from scipy.special import ellipk

import livens as lv
from livens import bodies


def four_bar(stiffness=400.0, length=1.6):
    """Three bars of a parallelogram and a spring along its diagonal, in the vertical plane (director bodies)."""
    return lv.System(
        "x1 y1 x2 y2",  # the upper joints
        kinetic=lambda v, k: sum(
            k.m / 6 * (a @ a + a @ b + b @ b)  # a thin bar, by the velocities of its ends
            for a, b in ((np.array([0, 0]), v[:2]), (v[:2], v[2:]), (v[2:], np.array([0, 0])))
        ),
        potential=lambda q, k: (
            k.m * k.g * (q[1] / 2 + (q[1] + q[3]) / 2 + q[3] / 2)
            + k.c / 2 * (lv.math.sqrt((q[2] - 0) ** 2 + (q[3] - 0) ** 2) - k.l0) ** 2
        ),
        constraints=lambda q: [
            (q[0] ** 2 + q[1] ** 2 - 1) / 2,
            ((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1) / 2,
            ((q[2] - 1) ** 2 + q[3] ** 2 - 1) / 2,
        ],
        parameters=dict(m=1.0, g=9.81, c=stiffness, l0=length),
    )


def test_four_bar_with_a_spring():
    """Its equilibrium and frequency, from energies of the crank angle alone."""
    system = four_bar()

    def potential(phi):
        height = np.sin(phi)
        diagonal = np.hypot(1 + np.cos(phi), np.sin(phi))
        return 9.81 * 2 * height + 200 * (diagonal - 1.6) ** 2

    mass = 1 / 3 + 1 + 1 / 3  # the bar between moves without turning
    phi = scipy.optimize.minimize_scalar(potential, bounds=(0.8, 1.6), method="bounded", options=dict(xatol=1e-12)).x
    e = 1e-4
    curvature = (potential(phi + e) - 2 * potential(phi) + potential(phi - e)) / e**2
    found = lv.linearise(system, q0=[np.cos(1.2), np.sin(1.2), 1 + np.cos(1.2), np.sin(1.2)])
    assert found.equilibrium == pytest.approx([np.cos(phi), np.sin(phi), 1 + np.cos(phi), np.sin(phi)], abs=1e-6)
    assert found.frequencies == pytest.approx([np.sqrt(curvature / mass) / (2 * np.pi)], rel=1e-5)
    assert found.stable and found.damping_ratios == pytest.approx([0.0], abs=1e-9)
    # the motion itself: a small deflection comes back after that time
    start = found.equilibrium + 1e-4 * found.mode(0)
    run = lv.simulate(
        system, start, np.zeros(4), scheme="lobatto-iiia-iiib-3", h=0.01, t_end=1 / found.frequencies[0], project=True
    )
    assert run.q[-1] == pytest.approx(run.q[0], abs=1e-8)


def test_bodies_with_redundant_joints_and_dampers():
    """A compound pendulum in directors: sqrt(m g s/J), and the damping that a damper gives."""
    body = bodies.director_body("bar", bodies.Inertia(2.0, [0.1, 0.2, 0.15]))
    pin = bodies.spherical_joint((body, [0.0, 0.0, 0.5]), [0.0, 0.0, 0.0])
    system = lv.System(bodies.coordinates([body]), elements=[body, pin, bodies.gravity(body)])
    q0, _ = body.state([0.0, 0.0, -0.5], None, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    found = lv.linearise(system, q0=q0)
    expected = [np.sqrt(2 * 9.81 * 0.5 / (J + 2 * 0.25)) / (2 * np.pi) for J in (0.2, 0.1)]
    assert found.frequencies == pytest.approx(expected, rel=1e-9)
    assert (found.eigenvalues == 0).sum() == 2 and (np.abs(found.eigenvalues) < 1.0).sum() == 2  # about its own axis


def test_other_kinds_of_models():
    oscillator = lv.Hamiltonian("x", hamiltonian=lambda q, p: p[0] ** 2 / 2 + 2 * q[0] ** 2)
    assert lv.linearise(oscillator, q0=[0.3]).eigenvalues == pytest.approx([2j, -2j])
    first = lv.FirstOrder("a b", rhs=lambda x: [x[1], -x[0] - 0.2 * x[1] + 1.0])
    found = lv.linearise(first, x0=[0.0, 0.0])
    assert found.equilibrium == pytest.approx([1.0, 0.0]) and found.damping_ratios == pytest.approx([0.1])
    massless = lv.System("x y", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: (q[0] - q[1]) ** 2 + q[1] ** 2)
    assert lv.linearise(massless, q0=[0.3, 0]).eigenvalues == pytest.approx([1j, -1j])  # two springs in a row


def test_no_equilibrium_is_said():
    falling = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: 3 * q[0])
    with pytest.raises(lv.InputError, match=r"not an equilibrium: .* none was found nearby"):
        lv.linearise(falling, q0=[0.0])
    with pytest.raises(lv.InputError, match="find=True"):
        lv.linearise(lv.problems.load("simple-pendulum"), q0=[0.6, -0.8], find=False)


def test_exponents_of_a_constrained_motion_come_in_pairs():
    found = lv.study.lyapunov(lv.problems.load("double-pendulum"), 4, t_end=30.0)
    assert found.exponents[0] == pytest.approx(-found.exponents[-1], abs=0.02)
    assert found.exponents.sum() == pytest.approx(0.0, abs=0.06)
    assert found.exponents[0] > 0.3 and found.horizon == pytest.approx(1 / found.exponents[0])


def test_a_damped_motion_forgets():
    """Two exponents of x'' + 2 d x' + x = 0 are -d."""
    model = lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q: q[0] ** 2 / 2,
        dissipation=lambda v: 0.2 * v[0] ** 2 / 2,
    )
    found = lv.study.lyapunov(model, 2, q0=[1.0], v0=[0.0], scheme="gauss-2", h=0.02, t_end=60.0)
    assert found.exponents == pytest.approx([-0.1, -0.1], abs=2e-3)


def test_a_periodic_orbit_of_a_pendulum():
    """Its period is the elliptic integral of its amplitude; conservative, so both multipliers are 1."""
    start = dict(q0=[np.sin(1.0), -np.cos(1.0)], v0=[0.0, 0.0])
    orbit = lv.study.periodic_orbit(
        lv.problems.load("simple-pendulum"), 2.2, **start, scheme="lobatto-iiia-iiib-3", h=0.02
    )
    q, v = orbit.initial["q0"], orbit.initial["v0"]
    energy = 9.81 * q[1] + (v @ v) / 2  # of mass 1: where does it turn?
    amplitude = np.arccos(-energy / 9.81)
    assert orbit.period == pytest.approx(4 / np.sqrt(9.81) * ellipk(np.sin(amplitude / 2) ** 2), rel=1e-7)
    assert orbit.multipliers == pytest.approx([1.0, 1.0], abs=1e-3) and orbit.stable
    assert np.linalg.det(orbit.monodromy) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(("b", "stable"), [(0.2, False), (0.05, True)])
def test_mathieus_equation(b, stable):
    """``x'' + (a + 2 b cos 2t) x = 0`` at a = 1 + 3 b: with b = 0.2 within Mathieu's tongue, a < 1 + b."""
    a = 1.0 if not stable else 1.2
    model = lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q, t, k: (k.a + 2 * k.b * lv.math.cos(2 * t)) * q[0] ** 2 / 2,
        parameters=dict(a=a, b=b),
    )
    orbit = lv.study.periodic_orbit(model, np.pi, q0=[0.0], v0=[0.0], scheme="gauss-3", h=0.02, fixed_period=True)
    assert orbit.stable is stable
    assert np.prod(orbit.multipliers) == pytest.approx(1.0, abs=1e-10)  # Liouville
    if not stable:
        assert orbit.exponents[0].real == pytest.approx(b / 2, rel=0.05)  # to first order in b
