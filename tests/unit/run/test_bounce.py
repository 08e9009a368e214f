"""Blows that take no time: restitution and friction of rigid bodies against what is known of them."""

import numpy as np
import pytest

import livens as lv


def test_a_ball_bounces_to_the_square_of_the_restitution():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 1.1], radius=0.1, mass=0.3)
    mb.rigid_contact(ball, mb.ground, restitution=0.8)
    run = mb.simulate(t_end=1.7, h=1e-2)
    first = np.sqrt(2 / 9.81)
    assert [event.t for event in run.events] == pytest.approx([first, first * (1 + 2 * 0.8)], rel=1e-9)
    between = (run.t > first) & (run.t < 2.6 * first)
    assert run["ball.position"][between, 2].max() - 0.1 == pytest.approx(0.64, abs=2e-4)
    assert run.dissipated_energy[-1] == pytest.approx(0.3 * 9.81 * (1 - 0.8**4), rel=1e-9)


@pytest.mark.parametrize(("friction", "sticks"), [(0.1, False), (1.0, True)])
def test_spin_and_friction(friction, sticks):
    """A ball that slides all the time gets ``mu (1 + e) v``; one that sticks rolls off, with 2/7 of its spin."""
    mb = lv.Multibody()
    ball = mb.sphere("ball", at=[0, 0, 0.11], radius=0.1, mass=1.0)
    mb.initial(ball, velocity=[0, 0, -1.0], omega=[0, 20.0, 0])
    mb.rigid_contact(ball, mb.ground, restitution=0.5, friction=friction)
    run = mb.simulate(t_end=0.1, h=1e-2)
    v, omega = run["ball.velocity"][-1], run["ball.omega"][-1]
    assert v[2] == pytest.approx(0.5)
    assert v[0] == pytest.approx(2 / 7 * 0.1 * 20.0 if sticks else friction * 1.5)
    assert omega[1] == pytest.approx(20.0 - v[0] * 0.1 / (0.4 * 0.1**2))


def test_two_bodies_in_the_plane_keep_their_momenta():
    mb = lv.Multibody(planar=True)
    a = mb.sphere("a", at=[-0.5, 0.02], radius=0.1, mass=1.0)
    b = mb.box("b", at=[0, 0], size=[0.3, 0.4], mass=2.0)
    mb.initial(a, velocity=[2.0, 0.3], omega=5.0)
    mb.rigid_contact(a, b, restitution=1.0)
    run = mb.simulate(t_end=0.3, h=1e-2)
    assert len(run.events) == 1
    for momentum in ("linear_momentum", "angular_momentum"):
        values = run.observe(momentum)
        assert np.abs(values - values[0]).max() < 1e-12
    energy = run.observe("kinetic_energy")
    assert np.abs(energy / energy[0] - 1).max() < 1e-12


def test_what_cannot_bounce():
    mb = lv.Multibody()
    ball = mb.sphere("ball", at=[0, 0, 1], radius=0.1, mass=1.0)
    with pytest.raises(lv.InputError, match="between 0 and 1"):
        mb.rigid_contact(ball, mb.ground, restitution=1.5)


def test_a_body_does_not_bounce_off_itself():
    """And the mechanism is as it was."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 1.0], radius=0.1, mass=0.3)
    with pytest.raises(lv.InputError, match="ball-ball bounce: both shapes belong to one body"):
        mb.rigid_contact(ball, ball)
    assert mb.simulate(t_end=0.02, h=1e-2).status == "complete"


def test_a_spinning_ball_that_only_bounces():
    """Friction takes two sevenths of what its lowest point moves by, and turns it as much as it pushes."""
    mb, radius = lv.Multibody(), 0.1
    ball = mb.sphere("ball", at=[0, 0, 0.3], radius=radius, mass=0.5)
    velocity, omega = np.array([0.3, -0.2, -1.0]), np.array([4.0, -7.0, 11.0])
    mb.initial(ball, velocity=velocity, omega=omega)
    mb.rigid_contact(ball, mb.ground, restitution=0.6, friction=9.0, persistent=False)
    run = mb.simulate(t_end=0.4, h=0.01)
    slip = (velocity + np.cross(omega, [0, 0, -radius])) * [1, 1, 0]
    push = -2 / 7 * slip + [0, 0, 1.6]
    assert run["ball.velocity"][-1] == pytest.approx(velocity + push, abs=1e-10)
    turned = np.cross([0, 0, -radius], push) / (0.4 * radius**2)
    assert run["ball.omega"][-1] == pytest.approx(omega + turned, abs=1e-8)
