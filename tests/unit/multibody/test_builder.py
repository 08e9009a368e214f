"""Mechanisms by drawing them: what is built, assembled, checked and shown, against reduced references."""

import functools
import itertools
import json
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from reduced import about_y, motion

import livens as lv
from livens import math as m
from livens.multibody import solid_inertia
from livens.problems.bricard import bricard_mechanism
from livens.problems.flyball_governor import governor_mechanism
from livens.problems.spatial_slider_crank import spatial_slider_crank_mechanism

DATA = Path(__file__).parents[2] / "data"


def slider_crank(c=0.5, **options):
    mb = lv.Multibody(gravity=[0, 0, -9.81], **options)
    crank = mb.rod("crank", a=[0, 0, 0], b=[0.14, 0, 0.14], mass=1)
    rod = mb.rod("rod", a=crank.b, b=[0.62, 0, 0], mass=2)
    slider = mb.box("slider", at=rod.b, size=[0.1, 0.05, 0.05], mass=0.5)
    hinge = mb.revolute("hinge", mb.ground, crank, at=[0, 0, 0], axis="y")
    mb.revolute("pin", crank, rod, at=crank.b, axis="y")
    mb.spherical("wrist", rod, slider, at=rod.b)
    mb.prismatic("guide", mb.ground, slider, axis="x")
    mb.motor(hinge, torque=lambda t, angle, rate, k: k.c * m.sin(3 * t) - 0.1 * rate, parameters=dict(c=c))
    mb.initial(hinge, angle=45 * lv.deg, rate=3)
    return mb


def reduced_slider_crank(times, mass=1.0):
    r, L = 0.14 * np.sqrt(2), 0.5
    of_crank, of_rod = solid_inertia.rod_inertia(r, mass), solid_inertia.rod_inertia(L, 2.0)

    def bodies(s):
        up = np.pi / 4 - s[0]  # the crank is drawn at 45 degrees; turning about y lowers it
        tip = ca.vertcat(r * ca.cos(up), 0, r * ca.sin(up))
        end = ca.vertcat(tip[0] + ca.sqrt(L**2 - tip[2] ** 2), 0, 0)
        down = ca.asin(tip[2] / L)
        return [
            (mass, of_crank, tip / 2, about_y(-up)),
            (2.0, of_rod, (tip + end) / 2, about_y(down)),
            (0.5, np.ones(3), end, np.eye(3)),
        ]

    def forces(s, w, t):
        return [0.5 * ca.sin(3 * t) - 0.1 * w[0]]

    angles, rates = motion(1, bodies, [0, 0, -9.81], np.pi / 4, 3.0, times, forces)
    tip = r * np.array([np.cos(np.pi / 4 - angles[:, 0]), np.sin(np.pi / 4 - angles[:, 0])])
    return angles[:, 0], rates[:, 0], tip[0] + np.sqrt(L**2 - tip[1] ** 2)


def test_the_slider_crank_of_the_tutorial():
    """Against its reduction to one coordinate: second order, and the energy balance of motor and damper exact."""
    mb, times = slider_crank(), np.linspace(0, 2, 5)
    angle, rate, slide = reduced_slider_crank(times)
    errors = []
    for h in (2e-3, 1e-3):
        run = mb.simulate(t_end=2, h=h)
        at = np.round(times / h).astype(int)
        errors.append(np.abs(run["hinge.angle"][at] - angle).max())
        assert np.abs(run["slider.position"][at, 0] - slide).max() < 3e-4
        assert np.abs(run["hinge.rate"][at] - rate).max() < 0.05
        balance = run["total_energy"] - run.supplied_energy + run.dissipated_energy
        assert np.ptp(balance) < 1e-12 and np.ptp(run.supplied_energy) > 0.1
        assert run.summary.max_constraint < 1e-15
    assert errors[1] < 1e-3 and 3.5 < errors[0] / errors[1] < 4.5


def test_masses_change_at_run_time_and_the_weight_follows():
    mb, times = slider_crank(), np.array([0.0, 1.0])
    angle = reduced_slider_crank(times, mass=3.0)[0]
    scaled = np.diag(mb.bodies["crank"].element.parameters.values["euler"]) * 3.0
    run = mb.simulate(t_end=1, h=1e-3, parameters={"crank.mass": 3.0, "crank.euler": np.diag(scaled)})
    assert abs(run["hinge.angle"][-1] - angle[1]) < 1e-3
    assert abs(mb.simulate(t_end=1, h=1e-3)["hinge.angle"][-1] - angle[1]) > 1e-2


def test_what_check_says():
    report = slider_crank().check()
    assert (report.mobility, report.gruebler_count, report.redundant) == (1, 0, 1)
    assert "mobility         1 by rank, 0 by Gruebler's count" in str(report)
    assert set(report.indeterminate_reactions) <= {"hinge", "pin", "wrist", "guide"} and report.indeterminate_reactions
    assert {name: reached for name, _, reached in report.targets}["hinge.angle"] == pytest.approx(np.pi / 4)
    open_chain = lv.Multibody()
    arm = open_chain.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1)
    open_chain.spherical("ball", open_chain.ground, arm, at=arm.a)
    assert (open_chain.check().mobility, open_chain.check().redundant) == (3, 0)


def test_results_by_name():
    run = slider_crank().simulate(t_end=0.1, h=1e-2)
    assert run["hinge.angle"].unit == "rad" and run["pin.force"].shape == (11, 3)
    assert set(run["*.force"]) == {"hinge.force", "pin.force", "wrist.force", "guide.force"}
    assert np.array_equal(run["slider.x"], run.q[:, run.info.coordinates.index("slider.x")])
    assert np.allclose(run["crank.b"][0], run["rod.a"][0], atol=1e-14)
    with pytest.raises(lv.InputError, match=r"did you mean 'hinge\.angle'"):
        run["hinge.angel"]
    with pytest.raises(TypeError, match="by name"):
        list(run)
    plain = lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.1)
    assert np.array_equal(plain["x"], plain.q[:, 0])


def test_angles_are_followed_over_turns():
    mb = lv.Multibody()
    wheel = mb.cylinder("wheel", at=[0, 0, 0], axis="x", length=0.1, radius=0.2, mass=1)
    axle = mb.revolute("axle", mb.ground, wheel, axis="x")
    mb.initial(axle, rate=10.0)
    run = mb.simulate(t_end=5, h=1e-2)
    assert abs(run["axle.angle"][-1] - 50.0) < 0.1 and np.allclose(run["axle.rate"], 10.0)
    assert abs(mb.simulate(t_end=5, h=1e-2, scheme="suzuki-4:lie-em")["axle.angle"][-1] - 50.0) < 1e-3


def test_reactions_are_those_of_newton():
    """The force in the ground hinge is that of the mass; the motor torque acts back on the other body."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=2)
    mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
    run = mb.simulate(t_end=0.5, h=1e-3)
    acceleration = np.gradient(run["arm.velocity"], 1e-3, axis=0)
    needed = 2 * (acceleration + [0, 0, 9.81])
    assert np.abs(run["hinge.force"] - needed)[2:-2].max() < 1e-3
    free = lv.Multibody()
    a = free.cylinder("a", at=[0, 0, 0], length=0.2, radius=0.3, mass=1)
    b = free.cylinder("b", at=[0, 0, 0.5], length=0.2, radius=0.2, mass=1)
    shaft = free.revolute("shaft", a, b, axis="z")
    free.motor(shaft, torque=0.1)
    run = free.simulate(t_end=1, h=1e-2)
    spins = [run[f"{name}.omega"][-1, 2] * 0.5 * r**2 for name, r in (("a", 0.3), ("b", 0.2))]
    assert spins == pytest.approx([-0.1, 0.1], rel=1e-12)


def test_bricard_moves_although_counting_says_it_cannot():
    """Thirty constraints of rank 29; P3 against the reduction to one coordinate, both levels with lie-ggl."""
    mb = bricard_mechanism()
    report = mb.check()
    assert (report.mobility, report.gruebler_count, report.redundant) == (1, 0, 1)
    assert report.indeterminate_reactions == tuple(f"hinge{i}" for i in range(1, 7))
    run = mb.simulate(t_end=4, h=2e-3)
    for row in json.loads((DATA / "ref_bricard.json").read_text())["P3"][:5]:
        assert np.abs(run["rod2.end"][round(row["t"] / 2e-3)] - row["point"]).max() < 1e-5
    assert run.summary.max_energy_drift < 1e-13 and run.summary.max_constraint < 5e-14
    with pytest.raises(lv.InputError, match="redundant constraints"):
        slider_crank(redundant="error").simulate(t_end=0.1, h=1e-2)


def test_the_spatial_slider_crank():
    """Against its reduction to the crank's angle; the universal joint says how the rod spins."""

    def bodies(s):
        B = ca.vertcat(0, 0.1 - 0.08 * ca.sin(s[0]), 0.12 + 0.08 * ca.cos(s[0]))
        C = ca.vertcat(ca.sqrt(0.09 - B[1] ** 2 - B[2] ** 2), 0, 0)
        along, ex = (B - C) / 0.3, ca.DM([1, 0, 0])
        side = ca.cross(along, ex)
        side = side / ca.norm_2(side)
        A = ca.DM([0, 0.1, 0.12])
        radial = (B - A) / 0.08
        crank = ca.horzcat(radial, ex, ca.cross(radial, ex))
        rod = ca.horzcat(along, side, ca.cross(along, side))
        return [
            (0.12, [1e-5, 1e-4, 1e-4], (A + B) / 2, crank),
            (0.5, [4e-4, 4e-3, 4e-3], (B + C) / 2, rod),
            (2.0, [1e-4] * 3, C, np.eye(3)),
        ]

    times = np.array([0.0, 0.25, 0.5])
    angle, rate = motion(1, bodies, [0, 0, -9.81], 0.0, 6.0, times)
    assert abs(rate[2, 0] - 14.408161) < 1e-5  # published with other codes
    mb = spatial_slider_crank_mechanism()
    run = mb.simulate(t_end=0.5, h=5e-4)
    at = np.round(times / 5e-4).astype(int)
    assert np.abs(run["hinge.angle"][at] - angle[:, 0]).max() < 2e-4
    assert abs(run["slider.position"][-1, 0] - 0.184952630) < 1e-5
    assert run["rod.omega"][0] == pytest.approx([1.92, -0.96, 0.48])
    both = mb.simulate(t_end=0.5, h=5e-4, velocity_level=True)
    assert both.summary.max_velocity_constraint < 1e-12 < run.summary.max_velocity_constraint
    assert both.summary.max_energy_drift < 1e-12


def test_the_governor():
    """Both arms move alike: two coordinates and the shaft's angle; angular momentum about the shaft is kept."""
    run = governor_mechanism().simulate(t_end=1.0, h=1e-3)
    mass, ball = 0.3, 5.0
    centre = (mass * 0.5 + ball) / (mass + ball)
    steiner = mass * (centre - 0.5) ** 2 + ball * (1 - centre) ** 2
    moments = solid_inertia.box_inertia([1.0, 0.01, 0.01], mass) + np.array([0, steiner, steiner])

    def bodies(s):
        angle, slide, down = s[0], s[1], s[2]
        Z = ca.vertcat(
            ca.horzcat(ca.cos(angle), -ca.sin(angle), 0),
            ca.horzcat(ca.sin(angle), ca.cos(angle), 0),
            ca.DM([[0, 0, 1]]),
        )
        found = [
            (0.3, solid_inertia.box_inertia([0.01, 0.01, 1.0], 0.3), Z @ ca.DM([0, 0, 0.5]), Z),
            (3.0, solid_inertia.box_inertia([0.1] * 3, 3.0), Z @ ca.vertcat(0, 0, slide), Z),
        ]
        for side in (1, -1):
            along = ca.vertcat(side * ca.cos(down), 0, -ca.sin(down))
            across = ca.DM([0, side, 0])
            R = ca.horzcat(along, across, ca.cross(along, across))
            found.append((mass + ball, moments, Z @ (ca.DM([0.05 * side, 0, 1]) + centre * along), Z @ R))
        return found

    def forces(s, w, t):
        gap = ca.vertcat(0.5 * ca.cos(s[2]), 1 - 0.5 * ca.sin(s[2]) - s[1])
        length = ca.norm_2(gap)
        pull = 8e5 * (length - 0.5) + 4e4 * ca.jtimes(length, s, w)
        return ca.vertsplit(-2 * pull * ca.jacobian(length, s).T)

    times = np.array([0.0, 0.5, 1.0])
    start = [0.0, 0.5, np.pi / 6]
    s, _ = motion(3, bodies, [0, 0, -9.81], start, [2 * np.pi, 0, 0], times, forces, method="Radau", rtol=1e-9)
    assert np.abs(run["slider.position"][[0, 500, 1000], 2] - s[:, 1]).max() < 1e-4
    assert np.abs(run["spin.angle"][[0, 500, 1000]] - s[:, 0]).max() < 1e-3
    assert run.summary.max_energy_drift < 1e-12 and run.dissipated_energy[-1] > 0


def bars_in_space():
    """The double four-bar with revolute joints in space: 25 - 24 degrees of freedom by rank."""
    mb = lv.Multibody(gravity=[0, -9.81, 0])
    lower = [mb.rod(f"lower{i}", a=[i, 0, 0], b=[i, 1, 0], mass=1) for i in range(3)]
    upper = [mb.rod(f"upper{i}", a=[i, 1, 0], b=[i + 1, 1, 0], mass=1) for i in range(2)]
    for i, bar in enumerate(lower):
        mb.revolute(f"ground{i}", mb.ground, bar, at=bar.a, axis="z")
    for i, bar in enumerate(upper):
        mb.revolute(f"left{i}", lower[i], bar, at=bar.a, axis="z")
        mb.revolute(f"right{i}", bar, lower[i + 1], at=bar.b, axis="z")
    mb.initial(mb.joints["ground0"], rate=-1.0)
    return mb


@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("n_rods", [2, 20, 40])
def test_isolated_positions_are_refused(planar, n_rods):
    """A stretched chain between two pins has infinitesimal mobility: no constraint is redundant, and nothing moves."""
    mb = lv.Multibody(gravity=[0, -9.81] if planar else [0, -9.81, 0], planar=planar)
    points = np.zeros((n_rods + 1, 2 if planar else 3))
    points[:, 0] = np.arange(n_rods + 1.0)
    axis = {} if planar else dict(axis="z")
    previous = mb.ground
    for i, (a, b) in enumerate(itertools.pairwise(points)):
        rod = mb.rod(f"rod {i}", a=a, b=b, mass=1.0)
        mb.revolute(f"pin {i}", previous, rod, at=a, **axis)
        previous = rod
    mb.revolute("end", previous, mb.ground, at=points[-1], **axis)
    with pytest.raises(lv.InputError, match="the initial position is isolated"):
        mb.simulate(t_end=0.01, h=1e-3)


def test_redundant_joints_through_singular_positions():
    mb = bars_in_space()
    report = mb.check()
    assert (report.mobility, report.redundant, report.constraints) == (1, 6, 35)
    assert set(report.indeterminate_reactions) == set(mb.joints)
    run = mb.simulate(t_end=3, h=1e-3)
    exact = lv.problems.load("double-four-bar").reference(3.0)["q"]
    assert abs(run["upper0.position"][-1, :2] - exact[18:20]).max() < 1e-3
    assert run.summary.max_energy_drift < 1e-13 and run.summary.max_constraint < 2e-15


def test_planar_mechanisms():
    """The slider-crank in the plane is the one in space."""
    mb = lv.Multibody(gravity=[0, -9.81], planar=True)
    crank = mb.rod("crank", a=[0, 0], b=[0.14, 0.14], mass=1)
    rod = mb.rod("rod", a=crank.b, b=[0.62, 0], mass=2)
    slider = mb.box("slider", at=rod.b, size=[0.1, 0.05], mass=0.5)
    hinge = mb.revolute("hinge", mb.ground, crank, at=[0, 0])
    mb.revolute("pin", crank, rod, at=crank.b)
    mb.revolute("wrist", rod, slider, at=rod.b)
    mb.prismatic("guide", mb.ground, slider, axis="x")
    mb.motor(hinge, torque=lambda t, angle, rate: -0.5 * m.sin(3 * t) - 0.1 * rate)
    mb.initial(hinge, angle=-45 * lv.deg, rate=-3)
    assert (mb.check().mobility, mb.check().redundant) == (1, 0)
    run = mb.simulate(t_end=2, h=1e-3)
    angle, _, slide = reduced_slider_crank([0.0, 2.0])
    assert abs(run["hinge.angle"][-1] + angle[-1]) < 1e-3 and abs(run["slider.position"][-1, 0] - slide[-1]) < 1e-3
    assert run["hinge.force"].shape == (2001, 2) and run["hinge.torque"].shape == (2001,)
    assert np.ptp(run["total_energy"] - run.supplied_energy + run.dissipated_energy) < 1e-12


KINDS = {
    "fixed": (dict(), 0),
    "revolute": (dict(axis="z"), 1),
    "prismatic": (dict(axis="z"), 1),
    "cylindrical": (dict(axis=[0, 1, 1]), 2),
    "universal": (dict(axis="x", second_axis="y"), 2),
    "spherical": (dict(), 3),
    "planar": (dict(axis="z"), 3),
    "point_on_line": (dict(axis="x"), 4),
    "point_on_plane": (dict(axis="x"), 5),
}


@pytest.mark.parametrize("what", KINDS)
def test_every_joint(what):
    """Two free bodies: freedoms as the table says; energy and both momenta are kept, the joint stays closed."""
    mb = lv.Multibody()
    a = mb.box("a", at=[0, 0, 0], size=[0.3, 0.2, 0.1], mass=1)
    b = mb.box("b", at=[0.5, 0.1, 0.2], size=[0.2, 0.2, 0.3], mass=0.7)
    given, freedoms = KINDS[what]
    mb.joint(what, "joint", a, b, at=[0.3, 0, 0.1], **given)
    mb.spring("spring", a.point("tip", at=[0.1, 0.1, 0]), b, stiffness=5, free_length=0.3)
    mb.initial(a, omega=[1.0, 2.0, 0.5], velocity=[0.1, 0, 0])
    assert mb.check().mobility == 6 + freedoms
    run = mb.simulate(t_end=2, h=0.02)
    assert run.summary.max_energy_drift < 1e-12 and run.summary.max_constraint < 2e-15
    momentum = run["a.velocity"] + 0.7 * run["b.velocity"]
    assert set(run.summary.momentum_drift) == {"linear_momentum", "angular_momentum"}
    assert max(run.summary.momentum_drift.values()) < 1e-12
    assert np.ptp(momentum, axis=0).max() < 1e-12 and np.abs(run["joint.violation"]).max() < 1e-14
    spin = sum(
        np.cross(run[f"{name}.position"], mass * run[f"{name}.velocity"]) + body_spin(run, name, size, mass)
        for name, size, mass in (("a", [0.3, 0.2, 0.1], 1), ("b", [0.2, 0.2, 0.3], 0.7))
    )
    assert np.ptp(spin, axis=0).max() < 1e-12


def body_spin(run, name, size, mass):
    R, omega = run[f"{name}.rotation"], run[f"{name}.omega"]
    inside = np.einsum("nji,nj->ni", R, omega) * solid_inertia.box_inertia(size, mass)
    return np.einsum("nij,nj->ni", R, inside)


def test_springs_dampers_and_drives_in_joints():
    mb = lv.Multibody()
    arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="z")
    mb.torsion_spring("spring", hinge, stiffness=3.0, rest_angle=0.2)
    mb.initial(hinge, angle=0.7)
    inertia = solid_inertia.rod_inertia(1.0, 1.0)[1] + 0.25
    run = mb.simulate(t_end=2, h=1e-3)
    exact = 0.2 + 0.5 * np.cos(np.sqrt(3 / inertia) * run.t)
    assert np.abs(run["hinge.angle"] - exact).max() < 1e-4 and run.summary.max_energy_drift < 1e-12
    mb.torsion_damper("damper", hinge, damping=0.3)
    damped = mb.simulate(t_end=2, h=1e-3)
    assert damped.dissipated_energy[-1] > 0.05 and damped.summary.max_energy_drift < 1e-12
    driven = lv.Multibody()
    arm = driven.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1)
    hinge = driven.revolute("hinge", driven.ground, arm, at=arm.a, axis="z")
    driven.drive(hinge, angle=lambda t: 0.5 * m.sin(2 * t))
    run = driven.simulate(t_end=2, h=1e-3)
    assert np.abs(run["hinge.angle"] - 0.5 * np.sin(2 * run.t)).max() < 1e-12
    assert run["hinge.rate"][0] == pytest.approx(1.0)


def test_a_sliding_motor_and_a_wrench():
    mb = lv.Multibody()
    box = mb.box("box", at=[0, 0, 0], size=[0.1, 0.1, 0.1], mass=2)
    guide = mb.prismatic("guide", mb.ground, box, axis="x")
    mb.motor(guide, force=lambda t, x, rate: -8 * x - 0 * rate)
    mb.initial(guide, position=0.3)
    run = mb.simulate(t_end=2, h=1e-3)
    assert np.abs(run["guide.position"] - 0.3 * np.cos(2 * run.t)).max() < 1e-5
    free = lv.Multibody()
    ball = free.sphere("ball", at=[0, 0, 0], radius=0.1, mass=2)
    free.wrench("push", ball, force=[4, 0, 0], torque=[0, 0, 0.1])
    run = free.simulate(t_end=1, h=1e-2)
    assert run["ball.velocity"][-1] == pytest.approx([2, 0, 0]) and run["ball.omega"][-1, 2] == pytest.approx(
        0.1 / 0.008
    )


def test_a_rod_without_mass_shows_its_tension():
    """A ball on a string in a circle: tension m v^2/l, and the weight of one that hangs."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.particle("ball", at=[0, 0, -2], mass=3)
    mb.distance("string", ball.centre, [0, 0, 0])
    assert mb.simulate(t_end=0.1, h=1e-2)["string.tension"] == pytest.approx(np.full(11, 3 * 9.81))
    mb = lv.Multibody()
    ball = mb.particle("ball", at=[0, 0, -2], mass=3)
    mb.distance("string", ball.centre, [0, 0, 0])
    mb.initial(ball, velocity=[4, 0, 0])
    assert mb.simulate(t_end=0.1, h=1e-3)["string.tension"] == pytest.approx(np.full(101, 24.0), rel=1e-5)


def test_assembly_from_an_open_drawing():
    """A four-bar that is not closed in the drawing closes; a target that cannot be met is said to be so."""
    mb = lv.Multibody(planar=True)
    left = mb.rod("left", a=[0, 0], b=[0, 1], mass=1)
    top = mb.rod("top", a=[0, 1.1], b=[2.1, 1.2], mass=1)
    right = mb.rod("right", a=[2, 0], b=[2, 1], mass=1)
    base = mb.revolute("base", mb.ground, left, at=[0, 0])
    mb.revolute("foot", mb.ground, right, at=[2, 0])
    mb.revolute("one", left, top, at=left.b, at_second=top.a)
    mb.revolute("two", top, right, at=top.b, at_second=right.b)
    mb.initial(base, angle=0.2, rate=1.5)
    run = mb.simulate(t_end=0.1, h=1e-2)
    assert run["base.angle"][0] == pytest.approx(0.2, abs=1e-12) and run["base.rate"][0] == pytest.approx(1.5)
    assert np.abs(run["one.violation"]).max() < 1e-14
    mb.initial(mb.joints["foot"], angle=1.0)
    with pytest.raises(lv.InputError, match="the initial values cannot be met"):
        mb.check()


def test_wanted_targets_give_way():
    mb = slider_crank()
    mb.initial(mb.joints["guide"], position=5.0, required=False)
    assert {name: reached for name, _, reached in mb.check().targets}["hinge.angle"] == pytest.approx(np.pi / 4)


def test_bad_input_gets_a_sentence():
    mb = lv.Multibody()
    arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="z")
    for bad, words in (
        (lambda: mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1), "there is a 'arm' already"),
        (lambda: mb.rod("r", a=[0, 0, 0], b=[0, 0, 0], mass=1), "the length must be greater than 0"),
        (lambda: mb.revolute("j", arm, arm, axis="z"), "two different bodies"),
        (lambda: mb.revolute("j", mb.ground, arm), "needs an axis"),
        (lambda: mb.revolute("j", mb.ground, arm, axis="w"), "must be 'x', 'y', 'z' or a vector"),
        (lambda: mb.joint("revolut", "j", mb.ground, arm, axis="z"), "did you mean 'revolute'"),
        (lambda: mb.initial(hinge, angle=90), "In degrees"),
        (lambda: mb.initial(hinge, angel=1), "did you mean 'angle'"),
        (lambda: mb.motor(hinge, force=1.0), "does not slide"),
        (lambda: lv.Multibody().system, "at least one body"),
        (lambda: mb.universal("u", mb.ground, arm, axis="x", second_axis="x"), "must be orthogonal"),
    ):
        with pytest.raises(lv.InputError, match=words):
            bad()
    with pytest.raises(AttributeError, match="no point 'tip'"):
        arm.tip  # noqa: B018


@pytest.mark.parametrize(
    "make", [lv.bodies.director_body, functools.partial(lv.bodies.quaternion_body, equivariant=True)]
)
def test_torques_are_exact(make):
    """The angular momentum changes by torque times time, however far a step turns the body."""
    body = make("body", lv.bodies.Inertia(1.0, [0.5, 0.5, 0.5]))
    load = lv.bodies.torque(body, lambda t: [0.3, -0.5, 2.0])
    momentum = dict(L=lv.bodies.angular_momentum([body]))
    system = lv.System(body.coordinates, elements=[body, load], symmetries=momentum)
    run = lv.simulate(system, *body.state(omega=[0, 0, 10.0]), scheme="livens-em", h=0.1, t_end=1.0)
    L = run.observe("L")
    assert L[-1] - L[0] == pytest.approx([0.3, -0.5, 2.0], abs=1e-12)


def test_axes_of_the_body_itself_are_no_parameters():
    """Products of a motor with zeros and ones are omitted; the motion equals that with all axes."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    turned = np.array([[0.6, 0, 0.8], [0, 1, 0], [-0.8, 0, 0.6]])
    elements = []
    for name, R in (("straight", np.eye(3)), ("turned", turned)):
        # the same body and the same motion, but axes that lie askew in one of the bodies
        body = mb.body(name, mass=1.0, inertia=R.T @ np.diag([0.1, 0.2, 0.3]) @ R, position=[0.5, 0, 0], rotation=R)
        hinge = mb.revolute(f"{name} hinge", mb.ground, body, at=[0, 0, 0], axis="y")
        elements.append(mb.motor(hinge, torque=lambda t, angle, rate: 2 - angle - 0.1 * rate))
    assert "B" not in elements[0].parameters.values and "B" in elements[1].parameters.values
    run = mb.simulate(t_end=0.5, h=1e-2)
    assert np.ptp(run["straight hinge.angle"]) > 0.5
    assert np.abs(run["straight hinge.angle"] - run["turned hinge.angle"]).max() < 1e-12


def test_long_chains_are_stepped_on_their_tree():
    """By their size, whatever was compiled before; the motion is the same in all tiers."""
    from livens.problems.link_chain import chain_mechanism

    assert [chain_mechanism(n).simulate(t_end=1e-3, h=1e-3).info.tier for n in (2, 13)] == ["fused", "tree"]
    runs = [chain_mechanism(3).simulate(t_end=0.05, h=1e-3, tier=tier) for tier in ("fused", "assembled", "tree")]
    assert max(np.abs(run.q - runs[0].q).max() for run in runs) < 1e-13


def test_a_body_that_is_drawn_by_its_origin():
    """A lamina that is drawn by a corner: its centre of mass is where `centre` says, and the corner has a name."""
    R = np.array([[0.0, -1.0], [1.0, 0.0]])
    mb = lv.Multibody(planar=True)
    plate = mb.body("plate", mass=2, inertia=0.3, position=[1, 1], centre=[0.5, 0.2], rotation=R)
    assert np.allclose(plate.reference_position, [0.8, 1.5]) and np.allclose(plate.origin.reference_position, [1, 1])
    with pytest.raises(lv.InputError, match="centre"):
        mb.body("other", mass=2, inertia=0.3, centre=[1, 2, 3])


def _arm_with_drive(**drive):
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    upper = mb.rod("upper", a=[0, 0, 0], b=[1, 0, 0], mass=1)
    lower = mb.rod("lower", a=[1, 0, 0], b=[2, 0, 0], mass=1)
    shoulder = mb.revolute("shoulder", mb.ground, upper, at=upper.a, axis="y")
    elbow = mb.revolute("elbow", upper, lower, at=lower.a, axis="y")
    if drive:
        mb.drive(shoulder, angle=lambda t: t, name="one")
        mb.drive(elbow, **drive)
    return mb, shoulder, elbow


def test_check_names_the_drives_of_a_mechanism_without_mobility():
    mb, _, _ = _arm_with_drive(angle=lambda t: 2 * t, name="two")
    assert mb.check().mobility == 0 and "the motion is prescribed by one, two" in str(mb.check())
    mb, _, _ = _arm_with_drive(rate=lambda t: 2.0, name="two")
    assert mb.check().mobility == 0 and mb.check().drives == ("one", "two")
    mb, _, _ = _arm_with_drive()
    assert not mb.check().drives and "prescribed" not in str(mb.check())


def test_check_lists_initial_values_that_are_computed():
    mb, shoulder, elbow = _arm_with_drive()
    assert not mb.check().computed
    mb.initial(shoulder, rate=1.0)
    ((name, rate),) = mb.check().computed
    assert name == "elbow.rate" and rate == pytest.approx(mb.simulate(t_end=0.01)["elbow.rate"][0])
    assert f"computed, as no value is given: elbow.rate = {rate:.6g}" in str(mb.check())
    mb.initial(elbow, rate=0.0)
    assert not mb.check().computed and "computed" not in str(mb.check())


def test_methods_of_later_layers_are_listed_and_suggested():
    mb = lv.Multibody()
    assert {"simulate", "check", "rod"} <= set(dir(mb))
    with pytest.raises(AttributeError, match="did you mean 'simulate'"):
        getattr(mb, "simulat")  # noqa: B009
