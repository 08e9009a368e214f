"""Ready mechanisms against reductions to few coordinates, and the heavy top of the literature against its reference."""

import json
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from reduced import motion
from scipy.integrate import solve_ivp

import livens as lv
from livens.multibody import solid_inertia
from livens.problems import six_axis_arm
from livens.problems.double_wishbone import wishbone_mechanism
from livens.problems.gimbal_gyroscope import gimbal_mechanism
from livens.problems.lie_heavy_top import lie_heavy_top_mechanism
from livens.problems.rssr import rssr_mechanism

DATA = Path(__file__).parents[2] / "data"


def turned(axis, angle):
    c, s = ca.cos(angle), ca.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = ca.SX.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def test_the_heavy_top_of_the_literature():
    """Position and force in the ball joint at seven times, second order, where a step turns it by 4 to 9 degrees."""
    rows = json.loads((DATA / "ref_lie_heavy_top.json").read_text())["rows"]
    errors = []
    for h in (1e-3, 5e-4):
        run = lie_heavy_top_mechanism().simulate(t_end=2.0, h=h)
        at = [round(row["t"] / h) for row in rows]
        errors.append(
            [
                np.abs(run["top.position"][at] - [row["x_com"] for row in rows]).max(),
                np.abs(run["tip.force"][at] - [row["force_of_joint_on_body"] for row in rows])[:-1].max(),
            ]
        )
        assert run.summary.max_energy_drift < 1e-12
    ratio = np.array(errors[0]) / errors[1]
    assert errors[1][0] < 2e-4 and np.all(ratio > 3.2) and np.all(ratio < 4.8)
    fine = lie_heavy_top_mechanism().simulate(t_end=0.5, h=1e-3, scheme="suzuki-4:lie-em")
    assert np.abs(fine["top.position"][500] - rows[3]["x_com"]).max() < 1e-6


def test_gimbals():
    """Three angles; the weight makes the outer ring turn."""
    spin, weight = 60.0, 0.1
    rotor = solid_inertia.cylinder_inertia(0.04, 0.1, 2.0)[[2, 0, 1]]
    outer, inner = solid_inertia.ring_inertia(0.2, 0.5, 0.01)[[0, 2, 1]], solid_inertia.ring_inertia(0.15, 0.3, 0.01)

    def bodies(s):
        A = turned(2, s[0])
        B = A @ turned(1, s[1])
        return [
            (0.5, outer, ca.SX.zeros(3), A),
            (0.3, inner, ca.SX.zeros(3), B),
            (2.0, rotor, ca.SX.zeros(3), B @ turned(0, s[2])),
            (weight, np.zeros(3), B @ ca.DM([0.15, 0, 0]), np.eye(3)),
        ]

    times = np.array([0.0, 0.25, 0.5])
    angles, _ = motion(3, bodies, [0, 0, -9.81], [0, 0, 0], [0, 0, spin], times)
    run = gimbal_mechanism(spin, weight).simulate(t_end=0.5, h=1e-3)
    found = np.column_stack([run[f"{name} bearing.angle"][[0, 250, 500]] for name in ("outer", "inner")])
    assert np.abs(found - angles[:, :2]).max() < 1e-4 and abs(angles[-1, 0]) > 0.05
    assert run.summary.max_energy_drift < 1e-12


def test_rssr():
    """The coupler does not spin about itself, so it moves as three masses on a line; the output by the loop."""
    mass, length = 1.5, float(np.linalg.norm([0.4, 0.6, 0.5]))
    of_crank, of_rocker = solid_inertia.rod_inertia(0.2, 1.0)[[0, 1, 2]], solid_inertia.rod_inertia(0.5, 2.0)

    def bodies(s):
        ball = ca.vertcat(0.2 * ca.cos(s[0]), 0.2 * ca.sin(s[0]), 0)
        # the rocker's end is (0.6, 0.6 - sin(b)/2, cos(b)/2), at this length from the ball
        dx, y = 0.6 - ball[0], 0.6 - ball[1]
        b = ca.asin((dx**2 + y**2 + 0.25 - length**2) / y)
        end = ca.vertcat(0.6, 0.6 - 0.5 * ca.sin(b), 0.5 * ca.cos(b))
        # a uniform thin rod is a sixth of its mass at each end and two thirds in the middle; its radius adds to that
        across = solid_inertia.rod_inertia(length, mass)[1] - mass * length**2 / 12
        spread = float(np.sqrt(across / (mass * length**2 / 12)))
        ends = [(mass / 6 * (1 + spread**2), np.zeros(3), x, np.eye(3)) for x in (ball, end)]
        middle = (mass * 2 / 3 - mass / 3 * spread**2, np.zeros(3), (ball + end) / 2, np.eye(3))
        turn = ca.horzcat(ca.vertcat(0, -ca.sin(b), ca.cos(b)), ca.DM([1, 0, 0]), ca.vertcat(0, ca.cos(b), ca.sin(b)))
        return [
            (1.0, of_crank, ball / 2, turned(2, s[0])),
            (2.0, of_rocker, (ca.DM([0.6, 0.6, 0]) + end) / 2, turn),
            *ends,
            middle,
        ]

    times = np.array([0.0, 0.5, 1.0])
    angle, _ = motion(1, bodies, [0, 0, -9.81], 0.0, 5.0, times)
    mb = rssr_mechanism()
    assert mb.check().mobility == 2  # and an idle spin
    run = mb.simulate(t_end=1.0, h=1e-3)
    assert np.abs(run["input.angle"][[0, 500, 1000]] - angle[:, 0]).max() < 1e-4
    assert run.summary.max_energy_drift < 1e-13


def test_a_wheel_suspension():
    """One way to move; it settles where the spring carries the load, which `equilibrium` finds without moving."""
    mb = wishbone_mechanism()
    assert mb.check().mobility == 1
    run = mb.simulate(t_end=1.5, h=2e-3)
    energy = run["total_energy"] - run.supplied_energy + run.dissipated_energy
    assert np.ptp(energy) < 1e-10 and run.summary.max_constraint < 1e-14
    rest = mb.equilibrium()
    assert rest.stable and rest.residual < 1e-5
    there = mb.assembly.state[0]
    assert np.abs(run.q[-1] - there).max() < 1e-3 < np.abs(run.q[0] - there).max()


@pytest.mark.parametrize(
    "name",
    ["slider-crank", "hinge-chain", pytest.param("six-axis-arm", marks=pytest.mark.slow), "joint-screw"],
)
def test_ready_mechanisms_run(name):
    options = dict(N=2) if name == "hinge-chain" else {}
    run = lv.simulate(lv.problems.load(name, **options), t_end=0.1, h=1e-2)
    energy = run["total_energy"] - run.supplied_energy + run.dissipated_energy
    assert np.ptp(energy) < 1e-11 and run.summary.max_constraint < 1e-14
    assert len(run.scene.shapes) >= 2


def arm_rates(links, law):
    """Accelerations of an arm of links on a row of hinges by the recursion of Newton and Euler, link by link.

    `links` are (axis, length, mass, moments along x y z of space at zero angles); the arm stands upright at zero.
    """

    def turn(axis, angle):
        R, (i, j) = np.eye(3), ((axis + 1) % 3, (axis + 2) % 3)
        R[i, i] = R[j, j] = np.cos(angle)
        R[j, i] = np.sin(angle)
        R[i, j] = -R[j, i]
        return R

    def torques(s, w, a, gravity):
        R, alpha, omega, accel, found = np.eye(3), np.zeros(3), np.zeros(3), -gravity, []
        for i, (axis, length, mass, moments) in enumerate(links):
            n = R[:, axis]
            alpha = alpha + n * a[i] + np.cross(omega, n * w[i])
            omega = omega + n * w[i]
            R = R @ rotations[i]
            half = R[:, 2] * length / 2
            at_centre = accel + np.cross(alpha, half) + np.cross(omega, np.cross(omega, half))
            J = R @ np.diag(moments) @ R.T
            found.append((n, half, mass * at_centre, J @ alpha + np.cross(omega, J @ omega)))
            accel = accel + np.cross(alpha, 2 * half) + np.cross(omega, np.cross(omega, 2 * half))
        force, moment, needed = np.zeros(3), np.zeros(3), np.zeros(len(links))
        for i, (n, half, inertial, turning) in reversed(list(enumerate(found))):
            moment = moment + turning + np.cross(half, inertial) + np.cross(2 * half, force)
            force = force + inertial
            needed[i] = n @ moment
        return needed

    def rates(t, y):
        nonlocal rotations
        s, w = np.split(y, 2)
        rotations = [turn(axis, angle) for (axis, *_), angle in zip(links, s, strict=True)]
        still, g = np.zeros(len(links)), np.array([0, 0, -9.81])
        M = np.column_stack([torques(s, still, unit, np.zeros(3)) for unit in np.eye(len(links))])
        return np.concatenate([w, np.linalg.solve(M, law(t, s, w) - torques(s, w, still, g))])

    rotations = []
    return rates


@pytest.mark.slow
def test_the_arm_against_the_recursion_of_newton_and_euler():
    """All six angles, second order with four step sizes; the balance of energy exact."""
    links = []
    for axis, length, mass in six_axis_arm._LINKS:
        along, across = solid_inertia.rod_inertia(length, mass, 0.05)[:2]
        links.append(("xyz".index(axis), length, mass, [across, across, along]))
    masses = np.array([link[2] for link in links])
    carried = np.cumsum(masses[::-1])[::-1] / masses[0]

    def law(t, s, w):
        wanted = np.array([[f(t) for f in six_axis_arm._joint_trajectory(i)] for i in range(6)], dtype=float)
        return 2000 * carried * (wanted[:, 0] - s) + 100 * carried * (wanted[:, 1] - w)

    # the hand is light and its damper strong: the equations are stiff
    found = solve_ivp(arm_rates(links, law), (0, 0.4), np.zeros(12), method="Radau", rtol=1e-8, atol=1e-10)
    mb, steps, errors = six_axis_arm.arm_mechanism(), [8e-3, 4e-3, 2e-3, 1e-3], []
    for h in steps:
        run = mb.simulate(t_end=0.4, h=h)
        angles = np.array([run[f"joint{i + 1}.angle"][-1] for i in range(6)])
        errors.append(np.abs(angles - found.y[:6, -1]).max())
        energy = run["total_energy"] - run.supplied_energy + run.dissipated_energy
        assert np.ptp(energy) < 1e-11 and run.summary.max_constraint < 1e-14
    assert errors[-1] < 1e-5 and abs(measured_order(steps, errors) - 2) < 0.1, errors


def test_drawn_loops_are_the_published_ones():
    """The four-bars against the closed form, the ring against the published model: coordinate by coordinate."""
    drawn = lv.problems.load("double-four-bar-multibody")
    published = lv.problems.load("n-four-bar", N=2, frames=1)
    assert np.array_equal(drawn.q0, published.q0) and np.abs(drawn.v0 - published.v0).max() < 1e-14
    runs = [lv.simulate(one, h=2e-3, t_end=2.0) for one in (drawn, published)]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-10
    assert np.abs(runs[0].q[-1] - drawn.reference(2.0)["q"]).max() < 1e-3
    assert runs[0].summary.max_energy_drift < 1e-13
    ring, written = lv.problems.load("closed-loop-bars-multibody"), lv.problems.load("closed-loop-bars-directors").model
    framed = lv.System(written.coordinates, elements=written.elements, frames=True)
    runs = [lv.simulate(one, ring.q0, ring.v0, h=0.1, t_end=5.0) for one in (ring.model, framed)]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-9 < np.abs(runs[0].q - ring.q0).max()
    still = runs[0].t >= 1.0
    for name in ("linear_momentum", "angular_momentum"):
        assert np.ptp(runs[0].observe(name)[still], axis=0).max() < 1e-9
