"""Every kind of joint and coupling: its motion and its force against closed forms and reduced equations."""

import json
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from reduced import motion

import livens as lv
from livens import bodies
from livens.multibody.couplings import displacement_rate
from livens.multibody.parametrisation import DirectorParametrisation
from livens.problems import joint_examples
from livens.problems.rolling_disc import rolling_disc_mechanism

REFERENCES = json.loads((Path(__file__).parents[2] / "data" / "ref_joints.json").read_text())
DRAWN = {
    **joint_examples.MECHANISMS,
    "rolling_disc": rolling_disc_mechanism,
    "gear_pair": joint_examples.gear,
    "rack_and_pinion": joint_examples.rack,
    "bead_on_parabola": joint_examples.curve,
    "bead_on_helix": joint_examples.helix,
}


@pytest.mark.parametrize("name", [name for name in REFERENCES if name != "origin"])
def test_motion_and_forces(name):
    """Second order against the reference, constraints at round-off, the balance of energy exact."""
    steps, errors = [8e-3, 4e-3, 2e-3, 1e-3], {quantity: [] for quantity in REFERENCES[name]}
    mb = DRAWN[name]()
    for h in steps:
        run = mb.simulate(t_end=2.0, h=h)
        at = [round(t / h) for t, _ in REFERENCES[name][next(iter(errors))]]
        on_time = [abs(i * h - t) < 1e-9 for i, (t, _) in zip(at, REFERENCES[name][next(iter(errors))], strict=True)]
        for quantity, rows in REFERENCES[name].items():
            gaps = [run[quantity][i] - np.array(v) for i, good, (_, v) in zip(at, on_time, rows, strict=True) if good]
            errors[quantity].append(max(np.abs(gap).max() for gap in gaps))
        energy = run["total_energy"] - run.supplied_energy + run.dissipated_energy
        sizes = [np.abs(run[part]).max() for part in ("kinetic_energy", "potential_energy")]  # their sum may be small
        assert np.ptp(energy) < 1e-13 * max(10.0, *sizes)
        assert run.summary.max_constraint < 1e-14
    for quantity, found in errors.items():
        assert found[-1] < 3e-3 and abs(measured_order(steps, found) - 2) < 0.1, (quantity, found)


def test_a_screw_and_its_thread():
    """Against its reduction to one angle; the way is the pitch times the angle, forwards and backwards."""
    pitch, axis = 0.05 / (2 * np.pi), np.array([0, 0.6, 0.8])
    hat = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])

    def bodies(s):
        R = ca.DM(np.eye(3)) + ca.sin(s[0]) * ca.DM(hat) + (1 - ca.cos(s[0])) * ca.DM(hat @ hat)
        return [(2.0, [0.1, 0.2, 0.3], R @ ca.DM([0.1, 0.08, -0.06]) + pitch * s[0] * ca.DM(axis), R)]

    angle, _ = motion(1, bodies, [0, 0, -9.81], 0.0, 4.0, [0.0, 1.0, 2.0])
    run = joint_examples.screw().simulate(t_end=2.0, h=1e-3)
    assert np.abs(run["joint.angle"][[0, 1000, 2000]] - angle[:, 0]).max() < 1e-4
    assert np.abs(run["joint.position"] - pitch * run["joint.angle"]).max() < 1e-15


def test_shafts_with_a_universal_joint():
    """tan(input) = cos(bend) tan(output), with three redundant constraints."""
    mb = joint_examples.shafts()
    report = mb.check()
    assert (report.mobility, report.redundant, report.loops) == (1, 3, ("joint",))
    run = mb.simulate(t_end=2.0, h=2e-3)
    a, b = run["first.angle"], run["second.angle"]
    assert a[-1] > 5 * np.pi
    gap = np.sin(b) * np.cos(a) - np.cos(np.pi / 6) * np.cos(b) * np.sin(a)
    other = np.cos(np.pi / 6) * np.sin(b) * np.cos(a) - np.cos(b) * np.sin(a)
    assert min(np.abs(gap).max(), np.abs(other).max()) < 1e-13
    assert run.summary.max_energy_drift < 1e-13


def wheels(count=2, **more):
    mb = lv.Multibody(**more)
    joints = []
    for i in range(count):
        wheel = mb.cylinder(f"wheel{i}", at=[i, 0, 0], axis="z", length=0.1, radius=0.3, mass=1)
        joints.append(mb.revolute(f"axle{i}", mb.ground, wheel, axis="z"))
    return mb, joints


def test_gears_lose_no_tooth_over_many_turns():
    mb, (one, two) = wheels()
    gear = mb.gear("teeth", one, two, ratio=-2.5)
    mb.initial(one, rate=5.0)
    assert mb.check().mobility == 1
    run = mb.simulate(t_end=20.0, h=1e-2)
    assert run["axle1.angle"][-1] < -20 * 2 * np.pi
    assert np.abs(run["axle1.angle"] + 2.5 * run["axle0.angle"]).max() < 1e-12
    assert np.abs(run["teeth.violation"]).max() < 1e-12 and run.summary.max_energy_drift < 1e-13
    assert repr(gear) == "<gear teeth: axle0, axle1>"
    both = mb.simulate(t_end=1.0, h=1e-2, velocity_level=True)
    assert both.summary.max_energy_drift < 1e-13


def test_belts_and_differentials():
    mb, (one, two) = wheels()
    mb.belt("belt", one, two, radii=[0.3, 0.1])
    mb.initial(one, rate=2.0)
    run = mb.simulate(t_end=1.0, h=1e-2)
    assert run["axle1.rate"] == pytest.approx(6.0, rel=1e-3) and np.abs(run["belt.violation"]).max() < 1e-13
    mb, (left, right, carrier) = wheels(3)
    mb.differential("gears", left, right, carrier)
    mb.motor(carrier, torque=0.3)
    mb.initial(left, rate=1.0)
    mb.initial(right, rate=-1.0)
    run = mb.simulate(t_end=1.0, h=1e-2)
    moment = 0.5 * 0.3**2
    # three equal wheels, two freedoms: both outputs gain the same, the carrier their mean
    assert run["axle2.rate"][-1] == pytest.approx(0.3 / (3 * moment), rel=1e-3)
    assert run["axle0.rate"] - run["axle1.rate"] == pytest.approx(2.0, rel=1e-3)
    assert np.abs((run["axle0.angle"] + run["axle1.angle"]) / 2 - run["axle2.angle"]).max() < 1e-13


def test_gears_between_moving_bodies():
    """A planet on an arm that turns, itself free to float: energy, both momenta and the teeth are kept."""
    mb = lv.Multibody()
    frame = mb.box("frame", at=[0, 0, 0], size=[1, 0.2, 0.1], mass=2)
    sun = mb.cylinder("sun", at=[-0.3, 0, 0], axis="z", length=0.1, radius=0.2, mass=1)
    planet = mb.cylinder("planet", at=[0.3, 0, 0], axis="z", length=0.1, radius=0.4, mass=1)
    a, b = mb.revolute("a", frame, sun, axis="z"), mb.revolute("b", frame, planet, axis="z")
    mb.gear("teeth", a, b, ratio=-0.5)
    mb.initial(frame, omega=[0.5, 1.0, 0.2], velocity=[0.1, 0.2, 0])
    mb.initial(a, rate=7.0)
    run = mb.simulate(t_end=3, h=0.02)
    assert run.summary.max_energy_drift < 1e-13 and max(run.summary.momentum_drift.values()) < 1e-12
    assert np.abs(run["teeth.violation"]).max() < 1e-13
    assert run["b.rate"][0] == pytest.approx(-3.5)


def test_a_disc_that_precesses_steadily():
    """Tilt, spin and height stay as they are; the centre moves on a circle."""
    run = rolling_disc_mechanism(nutation_rate=0.0, precession_rate=2.0, spin=-5.836906615810521).simulate(
        t_end=2.0, h=1e-3
    )
    assert np.ptp(run["disc.position"][:, 2]) < 1e-6
    assert run["disc.position"][-1] == pytest.approx(
        [-0.4417385491724755, 1.0336203677463032, 0.1879385241571817], abs=3e-5
    )


def test_a_ball_and_a_skate():
    """A ball rolls down a slope with 5/7 of the acceleration of sliding; a skate goes round in cycloids, not down."""
    slope = np.array([np.sin(0.3), 0, -np.cos(0.3)]) * 9.81
    mb = lv.Multibody(gravity=slope)
    ball = mb.sphere("ball", at=[0, 0, 0.1], radius=0.1, mass=2)
    mb.rolling("contact", mb.ground, ball, radius=0.1)
    run = mb.simulate(t_end=1, h=1e-2)
    assert run["ball.position"][-1] == pytest.approx([5 / 14 * slope[0], 0, 0.1], abs=1e-12)
    assert run["contact.force"][50] == pytest.approx([-2 / 7 * 2 * slope[0], 0, 2 * 9.81 * np.cos(0.3)], abs=1e-9)
    mb = lv.Multibody(gravity=slope)
    skate = mb.box("skate", at=[0, 0, 0], size=[0.3, 0.02, 0.1], mass=1)
    mb.planar("ice", mb.ground, skate, axis="z")
    mb.knife_edge("blade", mb.ground, skate, lateral="y")
    mb.initial(skate, omega=[0, 0, 2.0])
    assert mb.check().mobility == 2
    run = mb.simulate(t_end=np.pi, h=np.pi / 1000)
    assert run.summary.max_energy_drift < 1e-12
    # v = g sin/2 (sin 2t), along (cos 2t, sin 2t): after half a turn it is sideways of where it began
    assert run["skate.position"][-1] == pytest.approx([0, slope[0] / 4 * np.pi, 0], abs=1e-4)


def test_a_point_on_a_surface_of_a_moving_body():
    """A particle in a bowl that floats: the energy and the linear momentum of both stay."""
    mb = lv.Multibody()
    bowl = mb.sphere("bowl", at=[0, 0, 0], radius=1.0, mass=3)
    mass = mb.particle("mass", at=[0, 0, -1], mass=1)
    mb.point_on_surface("inside", bowl, mass, surface=lambda x: (x[0] ** 2 + x[1] ** 2 + 2 * x[2] ** 2 - 2) / 2)
    mb.initial(bowl, omega=[1, 0, 2])
    mb.initial(mass, velocity=[0.5, 1.0, 0], required=False)
    run = mb.simulate(t_end=2, h=1e-2)
    assert run.summary.max_energy_drift < 1e-12 and run.summary.max_constraint < 1e-14


def test_wrong_joints_say_what_is_wrong():
    mb, (one, two) = wheels()
    flat = lv.Multibody(planar=True)
    disc = flat.box("disc", at=[0, 0], size=[1, 1], mass=1)
    ball = mb.spherical("ball", mb.bodies["wheel0"], mb.bodies["wheel1"], at=[0.5, 0, 0])
    for bad, words in (
        (lambda: mb.gear("g", one, one, ratio=2), "different joints"),
        (lambda: mb.gear("g", one, two, ratio=0), "is zero"),
        (lambda: mb.gear("g", one, ball, ratio=2), "does not turn"),
        (lambda: mb.gear("g", one, 3, ratio=2), "not a joint of this mechanism"),
        (lambda: mb.rack("r", one, two, radius=1), "does not slide"),
        (lambda: mb.belt("b", one, two, radii=[1, -1]), "must be positive"),
        (lambda: mb.couple("c", (one, 1.0)), "at least two"),
        (lambda: mb.couple("c", one, two), r"\(joint, coefficient\)"),
        (lambda: mb.rolling("r", mb.ground, mb.bodies["wheel0"], radius=0.3, at=[0, 0, 1]), "not on the side"),
        (
            lambda: mb.rolling("r", mb.bodies["wheel1"], mb.bodies["wheel0"], radius=0.3),
            "needs the ground and a body",
        ),
        (lambda: flat.rolling("r", flat.ground, disc, radius=0.3), "spatial model"),
        (lambda: mb.joint("screw", "s", mb.ground, mb.bodies["wheel0"], axis="z"), "needs a lead"),
        (lambda: mb.point_on_curve("c", mb.ground, mb.bodies["wheel0"], curve=lambda x: x[0]), "must return 2 numbers"),
        (lambda: mb.point_on_curve("c", mb.ground, mb.bodies["wheel0"], curve=3), "needs a function"),
        (lambda: mb.revolute("j", mb.ground, mb.bodies["wheel0"], axis=[0, 0, 0]), "not all zero"),
        (lambda: mb.revolute("j", mb.bodies["wheel0"], mb.bodies["wheel0"], axis="z"), "two different bodies"),
        (lambda: mb.revolute("j", mb.ground, flat.bodies["disc"], axis="z"), "not a body of this mechanism"),
    ):
        with pytest.raises(lv.InputError, match=words):
            bad()


@pytest.mark.parametrize("length", [0.5, 3.0])
def test_a_link_keeps_its_length_and_carries_a_weight(length):
    """The constraint is half of what is missing in the square: its multiplier times the length is the force."""
    ball = bodies.particle("ball", 2.0)
    link = bodies.rigid_link((ball, [0, 0, 0]), [0, 0, 0], length)
    system = lv.System(ball.coordinates, elements=[ball, bodies.gravity(ball), link])
    hanging = lv.simulate(system, [0, 0, -length], [0, 0, 0], h=0.01, t_end=0.1)
    assert hanging.multipliers[-1] * length == pytest.approx([2.0 * 9.81])
    swinging = lv.simulate(system, [length, 0, 0], [0, 1, 0], h=0.01, t_end=1.0)
    assert np.linalg.norm(swinging.q, axis=1) == pytest.approx(length, rel=1e-12)


def test_the_rate_of_a_displacement_along_a_rotating_axis():
    """``axis . (x_b - x_a)`` is bilinear in the coordinates: its rate is its central difference."""
    a, b, random = DirectorParametrisation(3, 3), DirectorParametrisation(3, 3), np.random.default_rng(4)
    X, Y, axis = random.standard_normal((3, 3))
    q, v = random.standard_normal((2, 24))

    def displacement(q):
        return (b.point(q[12:], Y) - a.point(q[:12], X)) @ a.vector(q[:12], axis)

    rate = displacement_rate(a, b, q, v, X, Y, axis)
    assert rate == pytest.approx((displacement(q + 0.5 * v) - displacement(q - 0.5 * v)), abs=1e-12)
