"""A slider-crank whose slider pin has clearance, with the dimensions of Flores, Ambrosio, Claro and Lankarani (2006).

Mechanism and Machine Theory 41, 247-261: crank 0.05 m at 5000 rpm, rod 0.12 m, bearing radius 10 mm, steel. The pin is
a disc in a hole with the law of Hertz and the dissipation of Hunt and Crossley.

The publication shows forces as curves only; no published number of the peak was found, in it or in works that cite it.
The peak asserted here is that of an independent code of the same equations, in the angle of the rod and the position of
the slider, with DOP853 at 1e-12.
"""

import functools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import livens as lv
from livens import contacts

CRANK, ROD, BEARING, CLEARANCE = 0.05, 0.12, 0.010, 0.0005
ROD_MASS, ROD_INERTIA, SLIDER_MASS = 0.21, 0.00025, 0.14
SPEED, DISSIPATION, YOUNG, POISSON = 5000 * 2 * np.pi / 60, 0.3, 207e9, 0.3
#: Published stiffness of this clearance, in N/m^1.5.
STIFFNESS = 6.61e10
T_END = 2 * np.pi / SPEED


def mechanism():
    mb = lv.Multibody(planar=True)
    crank = mb.body("crank", mass=0.3, inertia=1e-4, position=[CRANK / 2, 0])
    rod = mb.body("rod", mass=ROD_MASS, inertia=ROD_INERTIA, position=[CRANK + ROD / 2, 0])
    slider = mb.body("slider", mass=SLIDER_MASS, inertia=1e-4, position=[CRANK + ROD, 0])
    axle = mb.revolute("axle", mb.ground, crank, at=[0, 0])
    mb.revolute("crank pin", crank, rod, at=[CRANK, 0])
    mb.prismatic("guide", mb.ground, slider, axis="x")
    mb.drive(axle, rate=SPEED)
    steel = contacts.ElasticMaterial(YOUNG, POISSON)
    pin = contacts.Sphere(rod, BEARING - CLEARANCE, at=[CRANK + ROD, 0])
    hole = contacts.HollowSphere(slider, BEARING, at=[CRANK + ROD, 0])
    mb.contact(pin, hole, law=contacts.Hertz(materials=steel), dissipation=DISSIPATION, name="joint")
    mb.initial(crank, omega=SPEED, velocity=[0, SPEED * CRANK / 2])
    # the rod turns so that its end moves along the guide
    omega = -SPEED * CRANK / ROD
    mb.initial(rod, omega=omega, velocity=[0, SPEED * CRANK + omega * ROD / 2])
    return mb


def contact_force(e, rate, stiffness):
    """Force of the pin on the hole for its eccentricity and the rate of this."""
    distance = np.linalg.norm(e)
    depth = distance - CLEARANCE
    if depth <= 0:
        return np.zeros(2)
    n = e / distance
    return stiffness * depth**1.5 * max(0.0, 1 + DISSIPATION * (n @ rate)) * n


@functools.cache
def reference():
    """Angle of the rod and position of the slider by DOP853, and the largest force."""
    J = ROD_INERTIA + ROD_MASS * (ROD / 2) ** 2

    def force(t, y):
        c, s = np.cos(SPEED * t), np.sin(SPEED * t)
        e = CRANK * np.array([c, s]) + ROD * np.array([np.cos(y[0]), np.sin(y[0])]) - [y[1], 0]
        pin_rate = SPEED * CRANK * np.array([-s, c]) + ROD * y[2] * np.array([-np.sin(y[0]), np.cos(y[0])])
        return contact_force(e, pin_rate - [y[3], 0], STIFFNESS_HERTZ)

    def slope(t, y):
        f, pin = force(t, y), -(SPEED**2) * CRANK * np.array([np.cos(SPEED * t), np.sin(SPEED * t)])
        across = np.array([-np.sin(y[0]), np.cos(y[0])])
        return [y[2], y[3], (-ROD_MASS * ROD / 2 * across @ pin - ROD * across @ f) / J, f[0] / SLIDER_MASS]

    start = [0.0, CRANK + ROD, -SPEED * CRANK / ROD, 0.0]
    run = solve_ivp(slope, (0, T_END), start, method="DOP853", rtol=1e-12, atol=1e-14, max_step=4e-6, dense_output=True)
    times = np.linspace(0, T_END, 24001)
    return run.y[:, -1], max(np.linalg.norm(force(t, y)) for t, y in zip(times, run.sol(times).T, strict=True))


STIFFNESS_HERTZ = (
    4 / 3 * YOUNG / (2 * (1 - POISSON**2)) * np.sqrt(BEARING * (BEARING - CLEARANCE) / CLEARANCE)
)  # sphere in a sphere


def test_the_stiffness_is_the_published_one():
    mb = mechanism()
    (element,) = [element for element in mb.system.elements if element.name == "joint"]
    stiffness = element.parameters.values["stiffness"]
    assert stiffness == pytest.approx(STIFFNESS_HERTZ, rel=1e-12)
    assert stiffness == pytest.approx(STIFFNESS, rel=1e-3)


def test_peak_force_and_motion_of_a_revolution():
    """All bounces of the pin in one revolution against the equations in angle and position; the balance of energy."""
    end, peak = reference()
    run = mechanism().simulate(t_end=T_END, h=T_END / 24000, scheme="lie-em", every=1)
    forces = run["joint.normal_force"]
    starts = np.count_nonzero(np.diff((forces > 0).astype(int)) > 0)
    assert starts >= 2 and peak > 10 * SLIDER_MASS * SPEED**2 * CRANK  # many times that of a joint without clearance
    assert forces.max() == pytest.approx(peak, rel=2e-3)
    assert run["slider.position"][-1, 0] == pytest.approx(end[1], abs=2e-6)
    assert run.summary.max_energy_drift < 1e-11
    assert np.diff(run.dissipated_energy).min() >= -1e-12
