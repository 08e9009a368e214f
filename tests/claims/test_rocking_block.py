"""A rocking block: period and restitution of Housner (1963), with rigid contacts at both corners."""

import functools

import numpy as np
import pytest
from scipy.integrate import quad

import livens as lv
from livens import contacts

HALF_WIDTH, HALF_HEIGHT, MASS, G = 0.1, 0.3, 2.0, 9.81
RADIUS, SLENDERNESS = np.hypot(HALF_WIDTH, HALF_HEIGHT), np.arctan(HALF_WIDTH / HALF_HEIGHT)
INERTIA = MASS * RADIUS**2 / 3
START = 0.4 * SLENDERNESS


@functools.cache
def rocking():
    """Return the run of a block that is let go on its right corner, leaning to the right."""
    mb = lv.Multibody(planar=True, gravity=[0, -G])
    c, s = np.cos(START), np.sin(START)
    R = np.array([[c, s], [-s, c]])
    centre = R @ [-HALF_WIDTH, HALF_HEIGHT]
    block = mb.body("block", mass=MASS, inertia=INERTIA, position=centre, rotation=R)
    for name, sign in (("right", 1.0), ("left", -1.0)):
        corner = contacts.PointCloud(block, [centre + R @ [sign * HALF_WIDTH, -HALF_HEIGHT]])
        mb.rigid_contact(corner, mb.ground, restitution=0.0, friction=1.5, name=name)
    return mb.simulate(t_end=1.2, h=1e-3)


def quarter(tilt):
    """Return the time from rest at a tilt until the block is upright: the energy integral of rocking about a corner."""

    def speed(angle):
        height = RADIUS * (np.cos(SLENDERNESS - angle) - np.cos(SLENDERNESS - tilt))
        return np.sqrt(2 * MASS * G * -height / (INERTIA + MASS * RADIUS**2))

    # angle = tilt - x^2 removes the singularity at rest
    return quad(lambda x: 2 * x / speed(tilt - x**2), 1e-9, np.sqrt(tilt), epsabs=1e-12)[0]


def test_the_first_impact_comes_after_a_quarter_of_the_period():
    events = rocking().events
    assert events[0].name == "left"
    assert events[0].t == pytest.approx(quarter(START), abs=2e-6)
    # Housner's period, linear in the tilt
    p = np.sqrt(MASS * G * RADIUS / (INERTIA + MASS * RADIUS**2))
    assert events[0].t == pytest.approx(np.arccosh(1 / (1 - START / SLENDERNESS)) / p, rel=0.01)


def test_every_impact_reduces_the_rate_by_housners_ratio():
    """The angular momentum about the new corner is kept: the rate is multiplied by 1 - 3/2 sin(slenderness)^2."""
    run = rocking()
    ratio, omega = 1 - 1.5 * np.sin(SLENDERNESS) ** 2, np.abs(run["block.omega"].ravel())
    impacts = [event.t for event in run.events][:4]
    for t in impacts:
        i = int(np.searchsorted(run.t, t))
        before, after = omega[i - 1], omega[i + 1]
        assert after / before == pytest.approx(ratio, abs=0.02)  # the rates one step before and behind
    energy, lost = run.observe("total_energy"), run.dissipated_energy
    at_rest = energy[0] - MASS * G * HALF_HEIGHT
    assert (lost[np.searchsorted(run.t, impacts[0]) + 1]) == pytest.approx(
        (1 - ratio**2) * at_rest, rel=1e-7
    )  # to the tolerance of the gap
    assert run.summary.max_energy_drift < 1e-13


def test_the_following_half_period_is_that_of_the_smaller_tilt():
    """From the first impact to the second one: twice the quarter of the tilt that the energy left reaches."""
    run = rocking()
    ratio = 1 - 1.5 * np.sin(SLENDERNESS) ** 2
    level = RADIUS * (np.cos(SLENDERNESS) + ratio**2 * (np.cos(SLENDERNESS - START) - np.cos(SLENDERNESS)))
    tilt = SLENDERNESS - np.arccos(level / RADIUS)
    times = [event.t for event in run.events]
    assert times[1] - times[0] == pytest.approx(2 * quarter(tilt), abs=5e-6)
