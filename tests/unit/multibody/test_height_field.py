"""Ground that goes up and down: distances against closed forms, and motion with its balance of energy."""

import numpy as np
import pytest

import livens as lv
from livens import contacts
from livens import math as m
from livens.errors import InputError


def depth(height, at, radius=0.05, normal=None):
    mb = lv.Multibody()
    ball = mb.sphere("ball", at=at, radius=radius, mass=1.0)
    mb.contact(ball, contacts.HeightField(mb.ground, height, normal=normal), stiffness=1e4, name="hill")
    q, v = mb.assembly.state
    system = mb.system
    quantity = system.quantities["hill.depth"]
    return float(quantity.expression(*(np.asarray(x) for x in (q, v)), None, 0.0, system.parameter_vector()))


def test_a_slope_is_a_half_space():
    at = np.array([0.3, -0.2, 0.4])
    normal = np.array([-0.5, 0.25, 1.0]) / np.linalg.norm([-0.5, 0.25, 1.0])
    assert depth(lambda x, y: 0.5 * x - 0.25 * y, at) == pytest.approx(0.05 - at @ normal, abs=1e-14)


@pytest.mark.parametrize("sign", [1, -1], ids=["hill", "hollow"])
def test_a_round_hill_and_a_round_hollow(sign):
    """A part of a sphere of radius 2 about a point below, or above."""
    R, centre = 2.0, np.array([0.1, 0.2, -2.0 * sign])

    def height(x, y):
        return centre[2] + sign * m.sqrt(R**2 - (x - centre[0]) ** 2 - (y - centre[1]) ** 2)

    for at in ([0.3, 0.1, 0.1], [-0.3, 0.5, 0.15], [0.5, -0.2, 0.2]):
        away = np.linalg.norm(np.array(at) - centre)
        expected = 0.05 - sign * (away - R)
        assert depth(height, at) == pytest.approx(expected, abs=1e-10)


def test_a_ball_rolls_over_hills_and_the_energy_is_accounted_for():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0.2, 0, 0.16], radius=0.05, mass=0.2)
    hills = contacts.HeightField(mb.ground, lambda x, y: 0.1 * m.sin(2 * x) * m.cos(y))
    mb.contact(
        ball, hills, stiffness=2e4, friction=contacts.Friction(0.4, slip_tolerance=1e-2), dissipation=0.5, name="hill"
    )
    run = mb.simulate(t_end=0.5, h=5e-4)
    assert run["hill.normal_force"].max() > 5 and run.summary.max_energy_drift < 1e-12
    assert np.diff(run.dissipated_energy).min() >= 0
    assert run["ball.position"][-1, 0] < 0.1  # it has rolled downhill


def test_in_the_plane_and_along_another_normal():
    mb = lv.Multibody(planar=True, gravity=[0, -9.81])
    disc = mb.body("disc", mass=1.0, inertia=0.005, position=[0.3, 0.3])
    road = contacts.HeightField(mb.ground, lambda x: 0.05 * m.sin(3 * x))
    mb.contact(contacts.Sphere(disc, radius=0.1), road, stiffness=1e4, dissipation=1.0, name="road")
    run = mb.simulate(t_end=0.4, h=1e-3)
    assert run.summary.max_energy_drift < 1e-12 and run["road.normal_force"].max() > 5
    assert depth(lambda y, z: 0.0 * y, [0.02, 3.0, -2.0], normal="x") == pytest.approx(0.03, abs=1e-14)


def test_what_it_refuses():
    mb = lv.Multibody()
    with pytest.raises(InputError, match="function of x and y"):
        contacts.HeightField(mb.ground, [[0.0, 1.0]])
    box = mb.box("box", at=[0, 0, 1], size=[0.1, 0.2, 0.3], mass=2.0)
    with pytest.raises(InputError, match="contact of a box with a height field is not supported"):
        mb.contact(box, contacts.HeightField(mb.ground, lambda x, y: 0.1 * x), stiffness=1e4)
