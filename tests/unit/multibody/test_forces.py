"""Forces of mechanisms: motors, drives, limits, friction, bushings, cables, controllers; equilibria."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import measured_order
from scipy.spatial.transform import Rotation

import livens as lv
from livens import bodies
from livens import math as m
from livens.run.sampled_control import SampledControllers


def arm(length=1.0, gravity=9.81, **options):
    """A rod on a hinge about y, drawn along x."""
    mb = lv.Multibody(gravity=[0, 0, -gravity] if gravity else None, **options)
    rod = mb.rod("arm", a=[0, 0, 0], b=[length, 0, 0], mass=1, radius=0.02)
    return mb, mb.revolute("hinge", mb.ground, rod, at=rod.a, axis="y")


MOMENT = 1 / 3 + 0.02**2 / 4  # of the rod about its end


def balance(run):
    energy = run["total_energy"] - run.supplied_energy + run.dissipated_energy
    return np.ptp(energy) / max(1.0, np.abs(run["total_energy"]).max())


# -- motors and drives ------------------------------------------------------------------------------------------------
def test_a_motor_between_two_floating_bodies_is_exact():
    """Whatever turn a step takes: what one body gains the other loses, about the axis exactly the torque."""
    mb = lv.Multibody()
    a = mb.box("a", at=[0, 0, 0], size=[0.4, 0.3, 0.2], mass=1)
    b = mb.box("b", at=[0.1, 0.2, 0.5], size=[0.2, 0.3, 0.2], mass=1)
    mb.motor(mb.revolute("shaft", a, b, at=[0, 0, 0.2], axis="z"), torque=0.02)
    mb.initial(a, omega=[0.5, 1.0, 0.0], velocity=[0.3, 0, 0])
    run = mb.simulate(t_end=3.0, h=0.05)
    assert max(run.summary.momentum_drift.values()) < 1e-12 and balance(run) < 1e-13
    wheel = lv.Multibody()
    disc = wheel.cylinder("disc", at=[0, 0, 0], length=0.1, radius=0.5, mass=2)
    wheel.motor(wheel.revolute("axle", wheel.ground, disc, axis="z"), torque=0.7)
    run = wheel.simulate(t_end=20.0, h=0.1)  # more than a radian per step in the end
    assert run["disc.omega"][:, 2] == pytest.approx(0.7 * run.t / 0.25, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("what", ["angle", "rate"])
def test_a_driven_arm_needs_this_torque(what, level):
    """``J phi'' - m g l/2 cos(phi)`` about the hinge; the work of the drive is the energy of the arm."""
    laws = dict(angle=lambda t: 0.3 * m.sin(2 * t), rate=lambda t: 0.6 * m.cos(2 * t))
    mb, hinge = arm()
    mb.drive(hinge, **{what: laws[what]})
    run = mb.simulate(t_end=2.0, h=2e-3, velocity_level=level)
    angle = 0.3 * np.sin(2 * run.t)
    assert np.abs(run["hinge.angle"] - angle).max() < (1e-14 if what == "angle" else 1e-5)
    needed = -MOMENT * 4 * angle - 9.81 / 2 * np.cos(angle)
    assert np.abs(run["hinge drive.torque"] - needed)[1:].max() < 2e-4
    assert balance(run) < 1e-12 < np.ptp(run.supplied_energy)
    if level and what == "angle":
        assert run.summary.max_velocity_constraint < 1e-13


def test_a_driven_slide_and_a_constant_speed():
    mb = lv.Multibody()
    box = mb.box("box", at=[0, 0, 0], size=[0.1, 0.1, 0.1], mass=2)
    slide = mb.prismatic("slide", mb.ground, box, axis="x")
    mb.drive(slide, position=lambda t: 0.2 * m.sin(3 * t), name="push")
    run = mb.simulate(t_end=1.0, h=2e-3)
    assert np.abs(run["slide.position"] - 0.2 * np.sin(3 * run.t)).max() < 1e-15
    assert np.abs(run["push.force"] + 2 * 0.2 * 9 * np.sin(3 * run.t)).max() < 1e-4
    wheel = lv.Multibody()
    disc = wheel.cylinder("disc", at=[0, 0, 0], length=0.1, radius=0.5, mass=2)
    axle = wheel.revolute("axle", wheel.ground, disc, axis="z")
    wheel.drive(axle, rate=100 * lv.rpm)
    run = wheel.simulate(t_end=10.0, h=0.02)
    assert run["axle.angle"][-1] == pytest.approx(100 / 60 * 2 * np.pi * 10, rel=1e-12)


@pytest.mark.parametrize("planar", [False, True])
def test_the_rate_of_a_joint_is_that_of_its_angle(planar):
    """Between two rods that tumble through space, with a motor between them: against differences."""
    mb, d = lv.Multibody(planar=planar), 2 if planar else 3
    ends = np.eye(3)[:2, :d]
    one, other = (mb.rod(name, a=np.zeros(d), b=b, mass=1.0, radius=0.1) for name, b in zip("ab", ends, strict=True))
    hinge = mb.revolute("hinge", one, other, at=one.a, **({} if planar else {"axis": "z"}))
    mb.motor(hinge, torque=lambda t, angle, rate: 0.3 * m.cos(3 * t))
    mb.initial(one, omega=0.4 if planar else [0.3, -0.2, 0.4])
    run = mb.simulate(t_end=1.0, h=2e-3)
    angle, rate = run["hinge.angle"].ravel(), run["hinge.rate"].ravel()
    assert np.ptp(rate) > 0.1
    assert rate[1:-1] == pytest.approx((angle[2:] - angle[:-2]) / 4e-3, abs=1e-4)


# -- what is elastic --------------------------------------------------------------------------------------------------
def test_limits_throw_back():
    """Without damping the arm comes back with all its energy; with it, it comes to rest at the end of its way."""
    mb, hinge = arm()
    mb.limit("stop", hinge, lower=-0.5, upper=0.8, stiffness=1e4)
    run = mb.simulate(t_end=3.0, h=1e-3)
    assert 0.8 < run["hinge.angle"].max() < 0.84 and run["hinge.angle"].min() > -0.01
    assert run.summary.max_energy_drift < 1e-12
    soft, hinge = arm()
    soft.limit("stop", hinge, lower=-0.5, upper=0.8, stiffness=1e4, damping=3e3)
    run = soft.simulate(t_end=6.0, h=2e-3)
    assert run["hinge.angle"][-1] == pytest.approx(0.8 + 9.81 / 2 * np.cos(0.8) / 1e4, abs=1e-3)
    assert balance(run) < 1e-12 and np.diff(run.dissipated_energy).min() >= 0


def test_friction_stops_and_never_pushes():
    """A wheel with a dry bearing: it loses speed at a constant rate and stays at rest."""
    mb = lv.Multibody()
    disc = mb.cylinder("disc", at=[0, 0, 0], length=0.1, radius=0.5, mass=2)
    axle = mb.revolute("axle", mb.ground, disc, axis="z")
    mb.friction("dry", axle, torque=0.1, rate_tolerance=1e-3)
    mb.initial(axle, rate=2.0)
    run = mb.simulate(t_end=8.0, h=2e-3)
    assert run["axle.rate"][1000] == pytest.approx(2.0 - 0.1 / 0.25 * 2.0, abs=1e-6)
    assert abs(run["axle.rate"][-1]) < 1e-6 and np.diff(run.dissipated_energy).min() >= 0
    assert run.dissipated_energy[-1] == pytest.approx(0.5 * 0.25 * 4, rel=1e-9) and balance(run) < 1e-13
    sticky = lv.Multibody()
    disc = sticky.cylinder("disc", at=[0, 0, 0], length=0.1, radius=0.5, mass=2)
    axle = sticky.revolute("axle", sticky.ground, disc, axis="z")
    sticky.friction("dry", axle, torque=0.1, static=0.3, stribeck=0.5, rate_tolerance=1e-3)
    sticky.motor(axle, torque=0.25)
    run = sticky.simulate(t_end=2.0, h=2e-3)
    assert run["axle.rate"][-1] < 5e-3  # held by what it can carry at rest


def test_bushings_keep_momenta_and_carry_loads():
    """Two floating bodies; then a mast on a bushing whose deflection under a small load is load over stiffness."""
    mb = lv.Multibody()
    a = mb.box("a", at=[0, 0, 0], size=[0.3, 0.2, 0.1], mass=1)
    b = mb.box("b", at=[0.5, 0.1, 0.2], size=[0.2, 0.2, 0.3], mass=0.7)
    mb.bushing("mount", a, b, at=[0.3, 0, 0.1], stiffness=[100, 200, 300, 5, 6, 7], damping=[1, 1, 1, 0.1, 0.1, 0.1])
    mb.initial(a, omega=[1, 2, 0.5], velocity=[0.1, 0, 0])
    run = mb.simulate(t_end=1, h=0.01)
    assert balance(run) < 1e-13 and run.dissipated_energy[-1] > 0.01
    assert max(run.summary.momentum_drift.values()) < 1e-13
    mast = lv.Multibody()
    pole = mast.rod("pole", a=[0, 0, 0], b=[0, 0, 1], mass=1)
    K = np.diag([1e3, 1e3, 1e4, 50.0, 50.0, 50.0])
    mast.bushing("foot", mast.ground, pole, at=pole.a, stiffness=K)
    mast.wrench("wind", pole, force=[0.01, 0, 0], at=pole.b)
    rest = mast.equilibrium()
    assert rest.stable and rest.residual < 1e-9
    run = mast.simulate(t_end=0.1, h=0.01)
    assert np.ptp(run["pole.b"], axis=0).max() < 1e-9
    assert run["pole.b"][0, 0] == pytest.approx(0.01 / 1e3 + 0.01 / 50, rel=1e-4)


def test_a_cable_over_pulleys_only_pulls():
    """Two masses on one cable, far stiffer than it matters: (m2 - m1)/(m1 + m2) g; thrown up, they fly freely."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    left, right = mb.particle("left", at=[-1, 0, -1], mass=1.0), mb.particle("right", at=[1, 0, -1], mass=1.2)
    mb.cable("rope", left, [-1, 0, 0], [1, 0, 0], right, stiffness=1e6)
    run = mb.simulate(t_end=0.5, h=1e-3)
    assert run["right.position"][-1, 2] == pytest.approx(-1 - 0.5 * 9.81 * 0.2 / 2.2 * 0.25, abs=1e-4)
    assert run.summary.max_energy_drift < 1e-12
    mb.initial(left, velocity=[0, 0, 3])
    mb.initial(right, velocity=[0, 0, 3])
    run = mb.simulate(t_end=0.2, h=1e-3)
    assert run["left.position"][-1, 2] == pytest.approx(-1 + 0.6 - 0.5 * 9.81 * 0.04, abs=1e-12)


def test_equilibria():
    """A chain hangs down, a table stands where its springs carry it, an arm held by nothing finds the bottom."""
    mb, _ = arm()
    rest = mb.equilibrium()
    run = mb.simulate(t_end=1.0, h=0.01)
    assert rest.stable and run["arm.b"][-1] == pytest.approx([0, 0, -1], abs=1e-8)
    table = lv.Multibody(gravity=[0, 0, -9.81])
    top = table.plate("top", at=[0, 0, 1], size=[1, 1], mass=4)
    for i, (x, y) in enumerate([(0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5), (0.5, -0.5)]):
        corner = top.point(f"corner{i}", at=[x, y, 1])
        table.spring(f"leg{i}", corner, [x, y, 0], stiffness=1000, free_length=1.0)
        for side in ([1, 0, 0], [0, 1, 0]):
            table.spring(
                f"stay{i}{side[0]}", corner, np.array([x, y, 1]) + 5 * np.array(side), stiffness=10, free_length=5.0
            )
    rest = table.equilibrium()
    assert rest.stable
    assert table.simulate(t_end=0.5, h=0.01)["top.position"][:, 2] == pytest.approx(1 - 4 * 9.81 / 4000, abs=1e-4)
    flying = lv.Multibody(gravity=[0, 0, -9.81])
    flying.sphere("ball", at=[0, 0, 0], radius=0.1, mass=1)
    with pytest.raises(lv.InputError, match="no equilibrium found"):
        flying.equilibrium()


# -- control ----------------------------------------------------------------------------------------------------------
def test_a_steered_arm_follows():
    mb, hinge = arm()
    mb.pd(
        hinge,
        kp=400,
        kd=40,
        reference=lambda t: 0.5 * (1 - m.cos(t)),
        reference_rate=lambda t: 0.5 * m.sin(t),
        feedforward=-9.81 / 2,
    )
    run = mb.simulate(t_end=3.0, h=2e-3)
    assert np.abs(run["hinge.angle"] - 0.5 * (1 - np.cos(run.t))).max() < 0.01 and balance(run) < 1e-12


def servo():
    """An arm with a sampled controller that has an integral in its state."""
    mb, hinge = arm()

    def law(t, measured, state):
        error = 0.3 - measured[0]
        integral = state[0] + 0.01 * error
        return 60 * error - 12 * measured[1] + 40 * integral, [integral]

    mb.sampled_controller("servo", hinge, period=0.01, law=law, inputs=["hinge.angle", "hinge.rate"], state=[0.0])
    return mb


def test_a_sampled_controller_reaches_its_target():
    run = servo().simulate(t_end=10.0, h=2e-3)
    assert run["hinge.angle"][-1] == pytest.approx(0.3, abs=1e-3)
    commands = run["servo.command"]
    assert commands[:5] == pytest.approx(18.12) and commands.unit == "N m"  # held over five steps
    assert np.all(np.diff(commands[:1000].reshape(-1, 5), axis=1) == 0) and len(set(commands[:1000])) > 150
    assert commands[-1] == pytest.approx(-9.81 / 2 * np.cos(0.3), abs=0.05) and balance(run) < 1e-12
    # the same loop by hand: the exact motion of the arm between samples, with its command held
    angle, rate, integral, t = 0.0, 0.0, 0.0, 0.0
    for _ in range(50):
        integral += 0.01 * (0.3 - angle)
        torque = 60 * (0.3 - angle) - 12 * rate + 40 * integral
        for _ in range(100):  # classical Runge-Kutta with small steps
            f = lambda a, w: (w, (torque + 9.81 / 2 * np.cos(a)) / MOMENT)  # noqa: E731
            k1 = f(angle, rate)
            k2 = f(angle + 5e-5 * k1[0], rate + 5e-5 * k1[1])
            angle, rate, t = angle + 1e-4 * k2[0], rate + 1e-4 * k2[1], t + 1e-4
    assert run["hinge.angle"][250] == pytest.approx(angle, abs=1e-4)


def test_steps_until_the_next_sample():
    """Steps until the next sample of controllers with periods of two and three steps."""
    every = SimpleNamespace(_sample_steps=[2, 3])
    assert [SampledControllers.steps_until_sample(every, step) for step in range(7)] == [2, 1, 1, 1, 2, 1, 2]


def test_controllers_are_asked_each_at_its_own_times():
    """Two of them, sampled every two and every three steps, by whole steps counted from the start."""
    mb, hinge = arm()
    rod = mb.rod("second", a=[0, 1, 0], b=[1, 1, 0], mass=1, radius=0.02)
    other, asked = mb.revolute("other", mb.ground, rod, at=rod.a, axis="y"), {"fast": [], "slow": []}

    def law(name):
        return lambda t, measured: (asked[name].append(t), 0.0)[1]

    mb.sampled_controller("fast", hinge, period=0.02, law=law("fast"), inputs=["hinge.angle"])
    mb.sampled_controller("slow", other, period=0.03, law=law("slow"), inputs=["other.angle"])
    mb.simulate(t_end=0.125, h=0.01)
    assert asked["fast"] == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12])
    assert asked["slow"] == pytest.approx([0.0, 0.03, 0.06, 0.09, 0.12])


def test_a_controlled_run_resumes_bit_for_bit(tmp_path):
    """Commands and the state of the controller are in the file."""
    half = tmp_path / "half.h5"
    servo().simulate(t_end=0.5, h=2e-3, out=half)
    on = lv.resume(half, t_end=1.0, system=servo().system)
    whole = servo().simulate(t_end=1.0, h=2e-3)
    assert np.array_equal(on.q[-1], whole.q[-1]) and np.array_equal(on["servo.command"], whole["servo.command"])


def test_sensors_see_from_a_frame():
    mb, hinge = arm()
    rod = mb.bodies["arm"]
    tip = mb.rod("tip", a=rod.b, b=[1.5, 0, 0], mass=0.2)
    mb.revolute("wrist", rod, tip, at=rod.b, axis="y")
    mb.sensor("seen", tip.b, relative_to=rod.frame("end", at=[1, 0, 0]))
    mb.sensor("there", tip.b)
    mb.initial(hinge, rate=1.0)
    run = mb.simulate(t_end=1.0, h=2e-3)
    angle = run["wrist.angle"]
    assert run["seen.position"] == pytest.approx(
        np.column_stack([0.5 * np.cos(angle), 0 * angle, -0.5 * np.sin(angle)])
    )
    assert np.array_equal(run["there.position"], run["tip.b"])
    rate = np.gradient(run["seen.position"], 2e-3, axis=0)
    assert np.abs(run["seen.velocity"] - rate)[5:-5].max() < 1e-2


def test_wrong_forces_say_what_is_wrong():
    mb, hinge = arm()
    rod = mb.bodies["arm"]
    flat = lv.Multibody(planar=True)
    disc = flat.box("disc", at=[0, 0], size=[1, 1], mass=1)
    for bad, words in (
        (lambda: mb.drive(hinge), "exactly one of"),
        (lambda: mb.drive(hinge, angle=0.0, rate=1.0), "exactly one of"),
        (lambda: mb.drive(hinge, position=1.0), "does not slide"),
        (lambda: mb.limit("l", hinge, stiffness=1), "lower or upper"),
        (lambda: mb.limit("l", hinge, lower=0.0), "stiffness .soft stop. or a restitution .hard stop."),
        (lambda: mb.limit("l", hinge, lower=1.0, upper=0.0, stiffness=1), "below upper"),
        (lambda: mb.limit("l", hinge, lower=-4.0, upper=4.0, restitution=1.5), "between 0 and 1"),
        (lambda: mb.friction("f", hinge), "either a torque or a force"),
        (lambda: mb.friction("f", hinge, force=1.0), "does not slide"),
        (lambda: mb.friction("f", hinge, torque=1.0, rate_tolerance=1.0), "greater than rate_tolerance"),
        (lambda: mb.bushing("b", mb.ground, rod, stiffness=[1, 2]), "six numbers"),
        (lambda: mb.bushing("b", mb.ground, rod, stiffness=[-1] * 6), "positive semidefinite"),
        (lambda: flat.bushing("b", flat.ground, disc, stiffness=[1] * 6), "spatial model"),
        (lambda: mb.cable("c", rod.b, stiffness=1), "at least two points"),
        (lambda: mb.cable("c", [0, 0, 0], [1, 0, 0], stiffness=1), "belong to a body"),
        (lambda: mb.sampled_controller("c", period=0.1, law=print, inputs="hinge.angle"), "at least one joint"),
        (lambda: mb.sampled_controller("c", hinge, period=0.1, law=3, inputs="hinge.angle"), "must be a function"),
        (lambda: mb.sampled_controller("c", hinge, period=0.0, law=print, inputs="hinge.angle"), "every"),
        (lambda: mb.sensor("s", [0, 0, 0]), "needs a point of a body"),
        (lambda: mb.pd(3, kp=1), "not a joint"),
    ):
        with pytest.raises(lv.InputError, match=words):
            bad()


@pytest.mark.parametrize(
    ("measure", "law", "words"),
    [
        ("hinge.angel", lambda t, y: 0.0, "did you mean 'hinge.angle'"),
        ("hinge.force", lambda t, y: 0.0, "unknown before the step"),
        ("hinge.angle", lambda t, y: [0.0, 1.0], "must return 1 finite numbers"),
        ("hinge.angle", lambda t, y: np.nan, "must return 1 finite numbers"),
        ("hinge.angle", lambda t, y: "left", "must return 1 finite numbers"),
    ],
)
def test_controllers_that_make_no_sense(measure, law, words):
    mb, hinge = arm()
    mb.sampled_controller("servo", hinge, period=0.01, law=law, inputs=measure)
    with pytest.raises(lv.InputError, match=words):
        mb.simulate(t_end=0.1, h=0.01)


def test_who_cannot_be_controlled():
    mb = servo()
    with pytest.raises(lv.InputError, match="integer multiple of the step size"):
        mb.simulate(t_end=0.1, h=3e-3)
    with pytest.raises(lv.InputError, match=r"without sampled controllers.*lie-em"):
        mb.simulate(t_end=0.1, h=1e-2, scheme="livens-em")
    q, v = mb.assembly.state
    with pytest.raises(lv.InputError, match="cannot have sampled controllers"):
        lv.ensemble(mb.system, q0=[q, q], v0=[v, v], h=1e-2, t_end=0.1)
    with pytest.raises(lv.InputError, match="sampled controllers are not called"):
        lv.prepare(mb.system).start(q, v, h=1e-2)


def test_a_controlled_mechanism_is_assembled_too():
    """Commands are part of the state in every tier."""
    fused, assembled = (servo().simulate(t_end=0.2, h=2e-3, tier=tier) for tier in ("fused", "assembled"))
    assert np.abs(fused.q - assembled.q).max() < 1e-12 and np.abs(fused.v - assembled.v).max() < 1e-10
    assert np.ptp(fused.q) > 0.01


def test_bodies_attract_each_other():
    """Two bodies circle about their common centre as Kepler says; energy and momenta stay as they are."""
    mb = lv.Multibody()
    sun = mb.box("sun", at=[0, 0, 0], size=[0.1, 0.2, 0.3], mass=2.0)
    moon = mb.sphere("moon", at=[1, 0, 0], radius=0.1, mass=0.5)
    mb.gravitation("pull", sun, moon, constant=3.0)
    rate = (3.0 * 2.5) ** 0.5  # of a circle of radius one
    mb.initial(sun, velocity=[0, -0.2 * rate, 0])
    mb.initial(moon, velocity=[0, 0.8 * rate, 0])
    errors, steps = [], [0.04, 0.02, 0.01, 0.005]
    for h in steps:
        run = mb.simulate(t_end=1.0, h=h)
        gap = run["moon.position"] - run["sun.position"]
        errors.append(np.abs(gap - np.column_stack([np.cos(rate * run.t), np.sin(rate * run.t), 0 * run.t])).max())
        assert run.summary.max_energy_drift < 1e-13 and max(run.summary.momentum_drift.values()) < 1e-13
    assert abs(measured_order(steps, errors) - 2) < 0.1
    assert abs(mb.simulate(t_end=0.01, h=0.01, parameters={"sun.mass": 4.0})["potential_energy"][0] + 6.0) < 1e-13
    with pytest.raises(lv.InputError, match="the ground has no mass"):
        mb.gravitation("other", mb.ground, moon)


def test_forces_through_invariants_are_those_of_all_coordinates():
    """A motor through cosine and sine of an angle, and the same written out on all coordinates: one motion, and the
    derivative of its equations is that of finite differences."""

    def swing(through):
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1)
        hand = mb.rod("hand", a=arm.b, b=[1.5, 0.1, 0.2], mass=0.5)
        hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
        wrist = mb.revolute("wrist", arm, hand, at=arm.b, axis=[0, 1, 1])
        for joint in (hinge, wrist):
            mb.motor(joint, torque=lambda t, angle, rate: m.sin(t) - 3 * angle - 0.5 * rate)
            mb.torsion_damper(f"{joint.name} damper", joint, damping=0.2)
        if not through:
            for element in mb._force_elements.values():
                for role in ("forces", "dissipation"):
                    if role in element.functions:
                        element.functions[role] = _written_out(element, role)
        return mb

    runs = [swing(through).simulate(t_end=1.0, h=0.02, tier="reference") for through in (True, False)]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-12 < np.abs(runs[0].q - runs[0].q[0]).max()
    assert runs[0].statistics.newton_iterations == runs[1].statistics.newton_iterations
    assert np.abs(runs[0].dissipated_energy - runs[1].dissipated_energy).max() < 1e-12


def _written_out(element, role):
    """Forces and dissipation as functions of q and v alone, with slopes of the invariants by their own differences."""
    given, n = element.functions[role], len(element.coordinates)

    def slopes(q, k):
        columns = []
        for i in range(n):
            e = np.eye(n)[i]
            forth, back = given.invariants(q + e, k), given.invariants(q - e, k)
            columns.append([(x - y) / 2 for x, y in zip(forth, back, strict=True)])  # exact, as they are quadratic
        return columns

    def function(q, v, t, k):
        columns = slopes(q, k)
        w = given.invariants(q, k)
        u = [sum(v[i] * columns[i][j] for i in range(n)) for j in range(len(w))]
        names = given.energy.__code__.co_varnames[: given.energy.__code__.co_argcount]
        value = given.energy(**{name: dict(w=w, u=u, t=t, k=k)[name] for name in names})
        if role == "dissipation":
            return value
        return [sum(f * columns[i][j] for j, f in enumerate(value)) for i in range(n)]

    return function


def test_forces_in_the_axes_of_a_body():
    """The force in a hinge, along the arm and across it: what a strain gauge on the arm would see."""
    mb, _ = arm()
    mb.sensor("load", "hinge.force", relative_to=mb.bodies["arm"])
    run = mb.simulate(t_end=0.5, h=0.01, tier="reference")
    in_space, angle = run["hinge.force"], run["hinge.angle"]
    R = run["arm.rotation"]
    assert np.abs(run["load"] - np.einsum("nji,nj->ni", R, in_space)).max() < 1e-12 and run["load"].unit == "N"
    assert np.ptp(angle) > 0.5 and np.abs(run["load"][:, 1]).max() < 1e-12  # in the plane of the motion
    assert mb.simulate(t_end=0.02, h=0.01, tier="reference")["load"].shape == (3, 3)
    for what, words in (("hinge.forse", "did you mean"), ("hinge.angle", "only a vector of 3 numbers")):
        other, _ = arm()
        other.sensor("seen", what, relative_to=other.bodies["arm"])
        with pytest.raises(lv.InputError, match=words):
            other.check()


@pytest.mark.parametrize("angle", [0.3, 2.0, np.pi])
def test_a_torsion_spring_stores_what_the_angle_says(angle):
    """``stiffness (1 - cos(angle))``, about any axis, and whatever both are turned by."""
    a, b = (bodies.quaternion_body(name, bodies.Inertia(1.0, [1, 1, 1])) for name in "ab")
    system = lv.System(bodies.coordinates([a, b]), elements=[a, b, bodies.torsion_spring(a, b, 2.5)])
    first = Rotation.from_rotvec([0.3, -1.0, 0.4])
    second = first * Rotation.from_rotvec(angle * np.array([0.6, 0.0, 0.8]))
    states = [body.state([0, 0, 0], np.roll(turn.as_quat(), 1)) for body, turn in ((a, first), (b, second))]
    q, v = (np.concatenate(parts) for parts in zip(*states, strict=True))
    run = lv.simulate(system, q, v, h=0.01, t_end=0.01)
    assert run.observe("potential_energy")[0] == pytest.approx(2.5 * (1 - np.cos(angle)))
