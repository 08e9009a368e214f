"""Laws of contact: Hertz' theory against closed forms, tables and Brewe and Hamrock's fit; own laws; durations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import ellipe, ellipk

import livens as lv
from livens import contacts
from livens.expressions.parameters import ParameterNamespace
from livens.multibody.contacts.dissipation import (
    friction_force,
    friction_potential,
    hunt_crossley_force,
    hunt_crossley_potential,
)
from livens.multibody.contacts.elliptic_integrals import elliptic_integrals
from livens.multibody.contacts.normal_laws.material import contact_ellipse
from livens.multibody.contacts.pair_contact import reduced_mass

few = settings(max_examples=40, deadline=None)


@given(st.floats(0.0, 1.0 - 1e-9))
@few
def test_elliptic_integrals(m):
    K, B, D = elliptic_integrals(m)
    assert pytest.approx(ellipk(m), rel=1e-14) == K
    assert B + (1 - m) * D == pytest.approx(ellipe(m), rel=1e-14)
    assert pytest.approx(B + D, rel=1e-14) == K


def test_a_ball_on_a_plane_and_on_a_ball():
    steel = contacts.ElasticMaterial(E=2e11, nu=0.3)
    e = 2 * 0.91 / 2e11
    assert contacts.hertz_stiffness((50, 50), (0, 0), steel) == pytest.approx(4 / 3 * math.sqrt(0.02) / e, rel=1e-13)
    both = 1 / (50 + 20)
    assert contacts.hertz_stiffness((50, 50), (20, 20), steel) == pytest.approx(4 / 3 * math.sqrt(both) / e, rel=1e-13)
    soft = contacts.ElasticMaterial(E=1e7, nu=0.5)
    mixed = contacts.hertz_stiffness((50, 50), (0, 0), (steel, soft))
    assert mixed == pytest.approx(4 / 3 * math.sqrt(0.02) / (0.91 / 2e11 + 0.75 / 1e7), rel=1e-13)


def test_crossed_cylinders_are_a_ball_on_a_plane():
    assert contacts.hertz_stiffness((40, 0), (0, 40)) == pytest.approx(contacts.hertz_stiffness((40, 40), (0, 0)))


D, F, PITCH, CLEARANCE = 7.938e-3, 0.52, 38.5e-3, 15e-6
COSINE = 1 - CLEARANCE / (2 * (2 * F * D - D))
GAMMA = D * COSINE / PITCH
RACES = {"inner": 2 / D * GAMMA / (1 - GAMMA), "outer": -2 / D * GAMMA / (1 + GAMMA)}


@pytest.mark.parametrize(("race", "stiffness", "ratio"), [("inner", 2.53308e10, 9.327), ("outer", 2.68270e10, 7.273)])
def test_races_of_a_ball_bearing(race, stiffness, ratio):
    """A 6205 bearing, computed independently."""
    across, along = -1 / (F * D), RACES[race]
    assert contacts.hertz_stiffness((2 / D, 2 / D), (across, along)) == pytest.approx(stiffness, rel=2e-6)
    total = 4 / D + across + along
    assert contact_ellipse(abs(across - along) / total).ratio == pytest.approx(ratio, rel=1e-4)


def brewe_hamrock(x, y, compliance):
    """Their fit of 1977, with radii of relative curvature x (along) and y (across), y > x."""
    k = 1.0339 * (y / x) ** 0.6360
    E, K = 1.0003 + 0.5968 * x / y, 1.5277 + 0.6023 * math.log(y / x)
    R = 1 / (1 / x + 1 / y)
    return math.pi * k * (2 / compliance) * math.sqrt(R * E / (4.5 * K**3))


@given(st.floats(3.0, 30.0))
@few
def test_brewe_and_hamrock(ratio):
    """Their fit is good to 1.5 % in the range of bearings: an error of ours would be seen."""
    x, y = 5e-3, 5e-3 * ratio
    ours = contacts.hertz_stiffness((1 / x, 1 / y), (0, 0))
    assert ours == pytest.approx(brewe_hamrock(x, y, 2 * contacts.ElasticMaterial().compliance), rel=0.015)


@given(st.floats(1e-9, 0.999))
@few
def test_the_ellipse_solves_its_equation(difference):
    k = contact_ellipse(difference).ratio
    m = 1 - 1 / k**2
    if m > 1e-3:  # the form of the literature loses digits for circles
        E, K = ellipe(m), ellipk(m)
        assert ((k**2 + 1) * E - 2 * K) / ((k**2 - 1) * E) == pytest.approx(difference, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("law", [contacts.Linear(1e5), contacts.Hertz(1e7)])
def test_how_long_a_blow_takes(law):
    mass, speed, values = 0.3, 0.8, dict(stiffness=law.stiffness)
    k = ParameterNamespace(values)

    def rates(t, y):
        return [y[1], -float(law.force(max(y[0], 0.0), k)) / mass]

    leaves = lambda t, y: y[0] - 1e-14  # noqa: E731
    leaves.terminal, leaves.direction = True, -1
    end = 2 * math.pi / law.collision_frequency(values, mass, speed)
    motion = solve_ivp(rates, (0, end), [0, speed], events=leaves, rtol=1e-10, atol=1e-14)
    assert motion.t_events[0][0] == pytest.approx(math.pi / law.collision_frequency(values, mass, speed), rel=1e-5)


def test_a_law_of_ones_own():
    law = contacts.CustomLaw(lambda depth, k: k.c * depth**2 / 2 + k.d * depth**4, parameters=dict(c=1e4, d=1e9))
    k = ParameterNamespace(dict(c=1e4, d=1e9))
    assert float(law.force(2e-3, k)) == pytest.approx(1e4 * 2e-3 + 4e9 * 2e-3**3, rel=1e-12)
    by_slope = math.sqrt((1e4 + 12e9 * 1e-3**2) / 0.3)  # at the depth that is looked at, a millimetre
    assert law.collision_frequency(dict(c=1e4, d=1e9), 0.3, 1.0) == pytest.approx(by_slope, rel=1e-4)
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.11], radius=0.1, mass=1.0)
    mb.contact(ball, mb.ground, law=law)
    run = mb.simulate(t_end=0.2, h=1e-3)
    depth = np.maximum(run["ball-ground.depth"], 0)
    assert run["ball-ground.normal_force"] == pytest.approx(1e4 * depth + 4e9 * depth**3, rel=1e-9, abs=1e-9)
    assert depth.max() > 1e-3 and run.summary.max_energy_drift < 1e-12
    stiffer = mb.simulate(t_end=0.2, h=1e-3, parameters={"ball-ground.c": 1e6})
    assert stiffer["ball-ground.depth"].max() < depth.max() / 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: contacts.Linear(-1.0), "stiffness"),
        (lambda: contacts.Hertz(0.0), "stiffness"),
        (lambda: contacts.Hertz(materials="steel"), "Material"),
        (lambda: contacts.ElasticMaterial(E=-1.0), "Young"),
        (lambda: contacts.ElasticMaterial(nu=0.7), "Poisson"),
        (lambda: contacts.CustomLaw(lambda depth: 1 - depth), "zero at depth zero"),
        (lambda: contacts.CustomLaw(lambda depth: -(depth**2)), "increase with the depth"),
        (lambda: contacts.CustomLaw(lambda depth: nonsense), "nonsense"),  # noqa: F821
        (lambda: contacts.CustomLaw(3.0), "function"),
        (lambda: contacts.hertz_stiffness((1, 1), (-2, -2)), "do not touch in a point"),
        (lambda: contacts.hertz_stiffness((1, 0), (0, 0)), "line"),
        (lambda: contacts.Friction(-0.1), "coefficient"),
        (lambda: contacts.Friction(0.1, slip_tolerance=0.0), "slip_tolerance"),
        (lambda: contacts.Friction(0.0, spinning=0.1), "coefficient"),
    ],
)
def test_bad_laws(make, words):
    with pytest.raises(lv.InputError, match=words):
        make()


def test_every_number_of_a_contact_is_one_parameter():
    mb = lv.Multibody()
    box = mb.box("box", at=[0, 0, 1], size=[1, 1, 1], mass=1)
    friction = contacts.Friction(0.3, spinning=0.1, rolling=0.01)
    mb.contact(box, mb.ground, stiffness=1e4, dissipation=0.1, friction=friction)
    own = [
        name for name in mb.system.parameters if name.startswith("box-ground") and not name.endswith((".X", ".reach"))
    ]
    assert own == [
        "box-ground.stiffness",
        "box-ground damping.damping",
        "box-ground sliding.friction",
        "box-ground sliding.smooth",
        "box-ground pivoting.pivoting",
        "box-ground pivoting.smooth_rate",
        "box-ground rolling.rolling",
    ]
    ball = lv.Multibody()
    ball.contact(ball.sphere("ball", at=[0, 0, 1], radius=0.1, mass=1), ball.ground, stiffness=1.0, friction=0.1)
    larger = ball.system.parameter_vector({"ball-ground.reach": 0.2})
    assert np.count_nonzero(larger != ball.system.parameter_vector()) == 2  # of what pushes, and of what slides


def test_forces_are_the_derivatives_of_their_dissipation_potentials():
    """Hunt and Crossley's force per elastic force, less one, integrates to its potential; friction to its own."""
    c = 0.5
    for rate in (-7.0, -2.1, -1.9, -0.3, 0.0, 0.4, 3.0):
        d = 1e-6
        slope = (hunt_crossley_potential(c, rate + d) - hunt_crossley_potential(c, rate - d)) / (2 * d)
        assert hunt_crossley_force(1.0, c, rate) - 1.0 == pytest.approx(float(slope), abs=1e-8)
    slip, gradient = np.array([0.03, -0.02]), []
    for direction in 1e-6 * np.eye(2):
        ends = [float(friction_potential(0.4, slip + sign * direction, 0.01)) for sign in (1, -1)]
        gradient.append((ends[0] - ends[1]) / 2e-6)
    assert np.array(friction_force(3.0, slip, 0.4, 0.01), dtype=float) == pytest.approx(
        -3.0 * np.array(gradient), rel=1e-6
    )


def test_the_mass_of_a_collision_is_less_than_either():
    mb = lv.Multibody()
    balls = [mb.sphere(f"ball{i}", at=[3.0 * i, 0, 0], radius=0.1, mass=mass) for i, mass in enumerate((2.0, 6.0))]
    assert reduced_mass(*balls) == pytest.approx(1.5) and reduced_mass(balls[0], mb.ground) == pytest.approx(2.0)


def test_an_energy_at_depth_zero_is_compared_with_that_at_the_end():
    """A user's formula has round-off of the size of its largest value."""
    contacts.CustomLaw(lambda x: 1e3 * x**2 + 5e-10, max_depth=1.0)
    with pytest.raises(lv.InputError, match="must be zero at depth zero"):
        contacts.CustomLaw(lambda x: 1e3 * x**2 + 5e-8, max_depth=1.0)
