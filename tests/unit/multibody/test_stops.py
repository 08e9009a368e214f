"""Ends of joints with a coefficient of restitution, and controllers with an integral part."""

import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m

G = 9.81


def box(restitution=0.8, height=1.0):
    mb = lv.Multibody(gravity=[0, 0, -G])
    body = mb.box("box", at=[0, 0, height], size=[0.1, 0.1, 0.1], mass=2)
    rail = mb.prismatic("rail", mb.ground, body, axis="z")
    mb.limit("floor", rail, lower=-height, stiffness=1e6, restitution=restitution)
    return mb


@pytest.fixture(scope="module")
def bouncing():
    mb = box()
    return mb, mb.simulate(t_end=6.0, h=0.01)


def test_a_box_bounces_as_in_the_textbook_and_comes_to_rest(bouncing):
    run = bouncing[1]
    fall = np.sqrt(2 / G)
    expected = fall * (1 + 2 * np.cumsum([0.0, *0.8 ** np.arange(1, 8)]))
    times = [event.t for event in run.events if event.name == "floor lower"]
    np.testing.assert_allclose(times[:8], expected, atol=1e-9)
    assert run.statistics.steps < 1.2 * 600  # it does not bounce for ever
    resting = run["rail.position"][run.t > 5.0]
    assert np.abs(resting + 1).max() < 1e-9 and run["rail.position"].min() > -1 - 1e-9
    assert run["floor.force"][run.t > 5.0] == pytest.approx(2 * G, rel=1e-9)  # the stop carries the weight
    assert run.summary.max_energy_drift < 1e-12


@pytest.mark.parametrize("contact", ["joint stop", "rigid contact"])
@pytest.mark.parametrize("h", [0.02, 0.005])
def test_all_contacts_close_at_the_end_of_their_bounces_by_one_rule(contact, h):
    """A contact with restitution e closes ``e/(1 - e)`` shortest flights, of a thousandth of a step, before the limit
    of its impact times, ``fall (1 + e)/(1 - e)``."""
    restitution = 0.5
    if contact == "joint stop":
        run = box(restitution).simulate(t_end=2.0, h=h)
        impacts = [event for event in run.events if event.name == "floor lower"]
    else:
        mb = lv.Multibody(gravity=[0, 0, -G])
        ball = mb.sphere("ball", at=[0, 0, 1.1], radius=0.1, mass=2)
        mb.rigid_contact(ball, mb.ground, restitution=restitution)
        run = mb.simulate(t_end=2.0, h=h)
        impacts = [event for event in run.events if "touching" in str(event.changes)]
    limit = np.sqrt(2 / G) * (1 + restitution) / (1 - restitution)
    assert -2e-3 * h < impacts[-1].t - limit <= 1e-9


def test_a_run_with_stops_goes_on_as_if_it_had_not_stopped(bouncing, tmp_path):
    mb, whole = bouncing
    mb.simulate(t_end=2.0, h=0.01, out=tmp_path / "bounce.h5")
    run = lv.resume(tmp_path / "bounce.h5", t_end=6.0, system=mb.system)
    assert np.array_equal(run.q[-1], whole.q[-1])
    assert [event.t for event in run.events] == [event.t for event in whole.events]


def test_a_body_that_starts_on_the_floor_stays_there():
    mb = lv.Multibody(gravity=[0, 0, -G])
    body = mb.box("box", at=[0, 0, 1], size=[0.1, 0.1, 0.1], mass=2)
    rail = mb.prismatic("rail", mb.ground, body, axis="z")
    mb.limit("floor", rail, lower=0, stiffness=1e6, restitution=0.8)
    assert mb.system.elements[-2].parameters.values["touching"] == 1.0
    assert mb.simulate(t_end=0.5, h=0.01)["rail.position"].min() > -1e-4


@pytest.mark.parametrize("planar", [True, False])
def test_a_stop_opens_when_its_force_vanishes(planar):
    """A torque that turns its direction presses an arm against its stop; the arm leaves at the turn of its sign."""
    zero, axis = ([], {}) if planar else ([0.0], {"axis": [0, 0, 1]})
    mb = lv.Multibody(planar=planar)
    arm = mb.rod("arm", a=[0, 0, *zero], b=[1, 0, *zero], mass=3.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, **axis)
    mb.motor(hinge, torque=lambda t, angle, rate: m.cos(2 * t))
    lower, upper = mb.limit("stop", hinge, lower=-1.0, upper=0.0, restitution=0.3)
    assert (lower.name, upper.name) == ("stop lower", "stop upper")
    run = mb.simulate(t_end=2.0, h=5e-3)
    (opening,) = run.events
    assert opening.name == "stop upper left" and opening.t == pytest.approx(np.pi / 4, abs=1e-6)
    closed = run.t < opening.t
    assert np.abs(run["hinge.angle"][closed]).max() < 1e-12
    assert run["stop.torque"][closed] == pytest.approx(-np.cos(2 * run.t[closed]), abs=2e-2)
    J = 3.0 * (1 + 3 * 0.02**2) / 12 + 0.75
    free = run.t - opening.t
    expected = np.where(closed, 0.0, ((1 - np.cos(2 * free + np.pi / 2)) / 4 - 1 / 4 - free / 2) / J)
    assert run["hinge.angle"].ravel() == pytest.approx(expected, abs=1e-5)


def test_a_stop_carries_a_weight_until_a_torque_lifts_it():
    """An arm on its lower stop leaves when a growing torque about its hinge exceeds that of its weight, m g l/2."""
    mb = lv.Multibody(gravity=[0, -G], planar=True)
    arm = mb.rod("arm", a=[0, 0], b=[1, 0], mass=3.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a)
    mb.motor(hinge, torque=lambda t, angle, rate: 30 * t)
    mb.limit("stop", hinge, lower=0.0, upper=1.0, restitution=0.3)
    run = mb.simulate(t_end=0.6, h=5e-3)
    (opening,) = run.events
    assert opening.name == "stop lower left" and opening.t == pytest.approx(3.0 * G / 2 / 30, abs=1e-6)


def test_a_stop_beyond_a_turn():
    """The coordinate of a stop is continuous over revolutions."""
    mb = lv.Multibody(planar=True)
    hand = mb.rod("hand", a=[0, 0], b=[1, 0], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, hand, at=hand.a)
    mb.limit("end", hinge, upper=7.0, restitution=0.5)
    mb.initial(hinge, rate=2.0)
    run = mb.simulate(t_end=5.0, h=0.01)
    (impact,) = run.events
    assert impact.t == pytest.approx(3.5, abs=2e-4)  # a step turns by 2 atan(h rate/2)
    assert run["hinge.rate"][-1] == pytest.approx(-1.0, rel=1e-3)


def test_a_start_beyond_a_stop():
    mb = lv.Multibody(planar=True)
    hand = mb.rod("hand", a=[0, 0], b=[1, 0], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, hand, at=hand.a)
    mb.limit("end", hinge, upper=0.5, restitution=0.5)
    mb.initial(hinge, angle=0.7)
    with pytest.raises(lv.InputError, match=r"end upper: the joint hinge is 0\.2 rad beyond its stop; change"):
        mb.simulate(t_end=0.1, h=0.01)


def test_an_equilibrium_rests_on_a_hard_stop():
    mb = box(height=0.0)
    assert mb.equilibrium().stable and mb.simulate(t_end=0.1, h=0.01)["floor.force"] == pytest.approx(2 * G, rel=1e-9)


def test_a_joint_passes_the_other_side_of_the_turn():
    """Half a turn from one of its ends, where the sine of the way to it vanishes, nothing happens."""
    mb = lv.Multibody(planar=True)
    hand = mb.rod("hand", a=[0, 0], b=[1, 0], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, hand, at=hand.a)
    mb.limit("end", hinge, lower=-3.0, upper=1.0, restitution=0.5)
    mb.initial(hinge, rate=-1.0)
    run = mb.simulate(t_end=4.0, h=0.01)
    angle = run["hinge.angle"].ravel()
    expected = np.where(run.t <= 3.0, -run.t, -3.0 + 0.5 * (run.t - 3.0))
    assert np.abs(np.sin(angle - expected)).max() < 1e-3 and np.abs(run["hinge.rate"][run.t < 2.9] + 1).max() < 1e-9


def test_all_bodies_feel_an_impact():
    """The elbow of two links hits its stop: impulses act in joints and at the stop only, and energy is lost."""
    mb = lv.Multibody(planar=True)
    upper = mb.rod("upper", a=[0, 0], b=[1, 0], mass=1.0)
    lower = mb.rod("lower", a=upper.b, b=[1.8, 0], mass=0.7)
    mb.revolute("shoulder", mb.ground, upper, at=upper.a)
    elbow = mb.revolute("elbow", upper, lower, at=upper.b)
    mb.limit("stop", elbow, lower=-2.0, upper=0.4, stiffness=1e4, restitution=0.5)
    mb.initial(elbow, rate=3.0)
    run = mb.simulate(t_end=0.2, h=1e-3, velocity_level=True)
    (impact,) = run.events
    row = int(np.searchsorted(run.t, impact.t))
    before, after = row, row + 1
    assert run.t[before] == run.t[after]
    assert run["elbow.rate"][after] == pytest.approx(-0.5 * run["elbow.rate"][before], rel=1e-6)
    # reduced to both angles: the impulse has no part in the shoulder, and acts with equal sizes on both links
    inertia = [mass * (3 * 0.02**2 + 1) * length**2 / 12 for mass, length in ((1.0, 1.0), (0.7, 0.8))]

    def momenta(i):
        """Return the momenta of the angles and the rates of both links."""
        first = run["shoulder.rate"][i]
        second = first + run["elbow.rate"][i]
        swing = 0.7 * 0.4 * np.cos(run["elbow.angle"][i])
        M = [[inertia[0] + 0.25 + 0.7, swing], [swing, inertia[1] + 0.7 * 0.16]]
        return np.array(M) @ [first, second], np.array([first, second])

    (p0, w0), (p1, w1) = momenta(before), momenta(after)
    assert p1[0] - p0[0] == pytest.approx(-(p1[1] - p0[1]), rel=1e-6)
    lost = (p0 @ w0 - p1 @ w1) / 2
    impulse = p1[1] - p0[1]
    assert lost == pytest.approx(-impulse * run["elbow.rate"][before] * (1 - 0.5) / 2, rel=1e-6)
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-11


def test_what_stops_may_not_be():
    mb = box()
    rail = mb.joints["rail"]
    with pytest.raises(lv.InputError, match="between 0 and 1"):
        mb.limit("roof", rail, upper=1, stiffness=1.0, restitution=2.0)
    q, v = mb.assembly.state
    with pytest.raises(lv.InputError, match="cannot have joint stops with restitution"):
        lv.ensemble(mb.system, q0=[q], v0=[v], scheme="lie-em", h=0.01, t_end=0.1)


# -- integral control -------------------------------------------------------------------------------------------------
def arm(**more):
    mb = lv.Multibody(gravity=[0, 0, -G])
    rod = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1)
    hinge = mb.revolute("hinge", mb.ground, rod, at=rod.a, axis="y")
    mb.pid(hinge, kp=60, kd=12, ki=80, reference=lambda t: 0.3 * m.sin(t), **more)
    return mb


def test_integral_control_of_an_arm():
    mb = arm()
    assert mb.check().mobility == 1 and mb.check().bodies == 1
    J = (3 * 0.02**2 + 1) / 12 + 0.25

    def rates(t, y):
        error = 0.3 * np.sin(t) - y[0]
        return [y[1], (60 * error - 12 * y[1] + 80 * y[2] + G / 2 * np.cos(y[0])) / J, error]

    exact = solve_ivp(rates, (0, 3), [0, 0, 0], rtol=1e-11, atol=1e-12).y[:, -1]
    sizes, errors = [0.02, 0.01, 0.005, 0.0025], []
    for h in sizes:
        run = mb.simulate(t_end=3, h=h)
        gap = run["hinge.angle"][-1] - exact[0], run["hinge controller.integral"][-1] - exact[2]
        errors.append(np.abs(gap).max())
        assert np.abs(run.observe("energy_balance_defect")).max() < 1e-13
    assert measured_order(sizes, errors) == pytest.approx(2, abs=0.1)
    assert errors[-1] < 1e-6


def test_integral_control_of_a_slider_leaves_no_error():
    mb = lv.Multibody(gravity=[0, 0, -G])
    body = mb.box("box", at=[0, 0, 0], size=[0.1, 0.1, 0.1], mass=2)
    rail = mb.prismatic("rail", mb.ground, body, axis="z")
    mb.pid(rail, kp=200, kd=40, ki=300, reference=0.5, name="servo")
    run = mb.simulate(t_end=12, h=0.02)
    assert run["rail.position"][-1] == pytest.approx(0.5, abs=1e-6)
    assert run["servo.integral"][-1] == pytest.approx(2 * G / 300, abs=1e-6)  # it carries the weight
    with pytest.raises(lv.InputError, match="has zero error"):
        mb.equilibrium()
    with pytest.raises(lv.InputError, match="integral"):
        mb.pid(rail, kp=1.0, ki=-1.0, name="other")


def test_stops_and_contacts_in_an_exported_file(tmp_path):
    """A hard stop becomes the range of its joint; contacts that the file cannot have are named."""
    mb = box()
    mb.rigid_contact(mb.sphere("ball", at=[0, 0, 3], radius=0.1, mass=1.0), mb.ground, name="bounce")
    notes = mb.to_mjcf(tmp_path / "box.xml")
    assert 'range="-1.0 ' in (tmp_path / "box.xml").read_text()
    assert any("restitution of 'floor'" in note for note in notes)
    assert "'bounce' is not in the file" in notes
