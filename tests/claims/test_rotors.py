"""Bodies with ``rotor=True``: what their corrected energy keeps exact, and how much of the error in phase is left."""

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens.schemes.discretization.rotor import corrected_discrete_gradient, corrected_energy

SPIN, LEAN, LENGTH, RADIUS, MASS = 150.0, 0.3, 0.05, 0.1, 1.0
ACROSS, ALONG = MASS * (3 * RADIUS**2 + LENGTH**2) / 12, MASS * RADIUS**2 / 2


def top(rotor=True, spring=False, spin=SPIN, h=1e-3, t_end=0.1, every=1, **options):
    """A disc on a light rod that stands on its tip; a spring at its rim changes the spin within every turn."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    axis = np.array([0, np.sin(LEAN), np.cos(LEAN)])
    disc = mb.cylinder("disc", at=0.5 * axis, axis=axis, length=LENGTH, radius=RADIUS, mass=MASS, rotor=rotor)
    mb.spherical("tip", mb.ground, disc, at=[0, 0, 0])
    if spring:
        disc.point("rim", at=disc.reference_position + disc.reference_rotation @ [RADIUS, 0, 0])
        mb.spring("spring", disc.rim, [0.3, 0.3, 0.6], stiffness=50.0, free_length=0.1)
    mb.initial(disc, omega=spin * axis, velocity=np.cross(spin * axis, disc.reference_position))
    return mb.simulate(t_end=t_end, h=h, every=every, **options)


def spins(run):
    """Angular momentum in the frame of the disc, from the momenta of its directors."""
    D, P = (x[:, 3:].reshape(-1, 3, 3) for x in (run.q, run.p))
    return np.einsum("tij,tj->ti", D, np.cross(D, P).sum(axis=1))


@pytest.fixture(scope="module")
def exact():
    """Motions without and with a spring, extrapolated from fine steps of the scheme without correction."""

    def fine(spring):
        coarse, finer = (top(False, spring, h=2.5e-3 / n, every=n) for n in (128, 256))
        return (4 * finer.q - coarse.q) / 3

    return {spring: fine(spring) for spring in (False, True)}


@pytest.mark.parametrize("spring, gain", [(False, 1000), (True, 50)])
def test_most_of_the_phase_error_is_gone_and_the_order_stays(exact, spring, gain):
    sizes = [2.5e-3, 1.25e-3, 6.25e-4, 3.125e-4]
    errors = {
        rotor: [np.abs(top(rotor, spring, h=h, every=2**i).q - exact[spring]).max() for i, h in enumerate(sizes)]
        for rotor in (False, True)
    }
    assert measured_order(sizes, errors[True]) == pytest.approx(2, abs=0.1)
    assert min(np.divide(errors[False], errors[True])) > gain


def test_the_corrected_energy_is_exact_and_the_true_one_is_not():
    h = 1e-3
    run = top(spring=True, h=h, t_end=1.0)
    P = ca.SX.sym("P", 3)
    K = ca.Function("K", [P], [corrected_energy(P, ACROSS, ALONG, h)])
    kinetic = np.array([float(K(spin)) for spin in spins(run)]) + (run.p[:, :3] ** 2).sum(axis=1) / (2 * MASS)
    rim = run.q[:, :3] + RADIUS * run.q[:, 3:6]
    stretch = np.linalg.norm(rim - [0.3, 0.3, 0.6], axis=1) - 0.1
    energy = kinetic + MASS * 9.81 * run.q[:, 2] + 25.0 * stretch**2
    assert np.abs(energy - energy[0]).max() < 1e-12 * kinetic[0]
    true = run.observe("total_energy")
    assert 1e-6 < np.abs(true - true[0]).max() / kinetic[0] < 1e-2
    assert np.ptp(spins(run)[:, 2]) > 0.01 * ALONG * SPIN  # the spring does change the spin
    assert run.summary.max_constraint < 1e-15


def test_angular_momentum_about_the_vertical_is_exact():
    run = top(h=4e-3, t_end=4.0)  # 0.6 rad in a step
    D, P = (x.reshape(-1, 4, 3) for x in (run.q, run.p))
    vertical = np.cross(D, P).sum(axis=1)[:, 2]
    assert np.abs(vertical - vertical[0]).max() < 1e-12 * abs(vertical[0])


def test_both_tiers_take_rotors():
    fused, assembled = (top(spring=True, tier=tier).q for tier in ("fused", "assembled"))
    np.testing.assert_allclose(assembled, fused, atol=1e-12)


@pytest.mark.parametrize("change", [0.0, 1e-9, 1e-3, 0.2])
def test_divided_differences_are_those_of_the_energy(change):
    """Against the energy itself where it changes much, and its gradient where it does not."""
    h, across, along = 0.01, 0.8, 1.1
    first = np.array([3.0, -2.0, 70.0])
    second = first + change * np.array([1.0, 2.0, 50.0])
    P = ca.SX.sym("P", 3)
    K = corrected_energy(P, across, along, h)
    value, gradient = ca.Function("K", [P], [K]), ca.Function("g", [P], [ca.gradient(K, P)])
    rate = np.array(ca.evalf(corrected_discrete_gradient(ca.DM(first), ca.DM(second), across, along, h))).ravel()
    if change > 1e-6:
        gained = float(value(second)) - float(value(first))
        assert rate @ (second - first) == pytest.approx(gained, rel=1e-9)
    else:
        np.testing.assert_allclose(rate, np.array(gradient(first)).ravel(), rtol=1e-7)
    plain = np.array([first[0] / across, first[1] / across, first[2] / along])
    slow = np.array(ca.evalf(corrected_discrete_gradient(ca.DM(first), ca.DM(first), across, along, 1e-6))).ravel()
    np.testing.assert_allclose(slow, plain, rtol=1e-8)


def test_what_a_rotor_may_not_be():
    with pytest.raises(lv.InputError, match=r"turns by 3.75 rad in a step"):
        top(h=0.025)
    with pytest.raises(lv.LivensError, match="no rotor bodies"):
        top(velocity_level=True)
    mb = lv.Multibody()
    with pytest.raises(lv.InputError, match="is not a rotor"):
        mb.body("brick", mass=1.0, inertia=[1.0, 2.0, 2.5], rotor=True)
    with pytest.raises(lv.InputError, match="rotor must be True or False"):
        mb.cylinder("disc", at=[0, 0, 0], length=1.0, radius=1.0, mass=1.0, rotor="fast")
    with pytest.raises(lv.InputError, match="must be a spatial body"):
        lv.Multibody(planar=True).body("disc", mass=1.0, inertia=1.0, rotor=True)
