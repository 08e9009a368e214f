"""Passive walking down a slope: a wheel without a rim, bipeds of two legs, and the robot file of another project.

The robot file is the compass gait of the package `underactuated` (MIT), a URDF file of a walker on a slope of 0.04 rad.
It walks and stands for ten seconds, and its feet are compared with those of MuJoCo, step by step. Amended for both:
the link "world" is declared, point masses get small moments of inertia, and the mass of the body is at the hip, where
the file draws it. The feet are points at the ends of the legs. The swing foot is drawn in while it passes the floor.

The coefficient of friction is 0.5. MuJoCo solves a convex problem: a foot that lifts off with a normal velocity below
the coefficient times its slip velocity stays loaded. With 0.5 the trailing foot lifts off freely, as by Coulomb's law;
with 2 the way of MuJoCo's walker is 0.3 % longer.
"""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import livens as lv
from livens import contacts

G, LENGTH, MASS, INERTIA, SPOKES = 9.81, 1.0, 2.0, 0.5, 8
HALF = np.pi / SPOKES


def rimless_wheel(slope, rate):
    """The wheel stands on two spokes and turns forwards; the floor is level and gravity inclined."""
    mb = lv.Multibody(planar=True, gravity=[G * np.sin(slope), -G * np.cos(slope)])
    wheel = mb.body("wheel", mass=MASS, inertia=INERTIA, position=[0, LENGTH * np.cos(HALF)])
    floor = contacts.HalfSpace(mb.ground, normal=[0, 1])
    for i in range(SPOKES):
        angle = -np.pi / 2 - HALF + 2 * HALF * i
        tip = [LENGTH * np.cos(angle), LENGTH * np.cos(HALF) + LENGTH * np.sin(angle)]
        mb.rigid_contact(contacts.PointCloud(wheel, [tip]), floor, restitution=0.0, friction=2.0, name=f"spoke{i}")
    # it turns about the leading spoke
    arm = LENGTH * np.array([-np.sin(HALF), np.cos(HALF)])
    mb.initial(wheel, omega=-rate, velocity=rate * np.array([arm[1], -arm[0]]))
    return mb


def test_a_rimless_wheel_walks_at_the_speed_of_its_limit_cycle():
    """McGeer 1990: each impact keeps the angular momentum about the new spoke; gravity restores the energy."""
    slope, after, expected = 0.08, 0.9, []
    run = rimless_wheel(slope, after).simulate(t_end=9.0, h=2e-3)
    impacts = [event for event in run.events if " " not in event.name]
    assert [event.name for event in impacts] == [f"spoke{i % SPOKES}" for i in range(2, 2 + len(impacts))]
    inertia = MASS * LENGTH**2 + INERTIA
    ratio = (MASS * LENGTH**2 * np.cos(2 * HALF) + INERTIA) / inertia
    gain = 4 * MASS * G * LENGTH * np.sin(HALF) * np.sin(slope) / inertia
    for _ in impacts:
        before = np.sqrt(after**2 + gain)
        after = ratio * before
        expected.append(inertia / 2 * (before**2 - after**2))
    losses = np.diff(run.dissipated_energy)
    assert losses[losses > 1e-9] == pytest.approx(expected, rel=1e-7)  # gaps close to a tolerance
    # the cycle: the loss of a step is the work of gravity in a step
    assert expected[-1] == pytest.approx(2 * MASS * G * LENGTH * np.sin(HALF) * np.sin(slope), rel=5e-3)
    assert run.summary.max_energy_drift < 1e-12


# -- compass gait: two legs on a hinge, of Goswami, Thuilot and Espiau 1996 -------------------------------------------
HIP_MASS, LEG_MASS, LEG_INERTIA, LOWER, UPPER, DECLINE = 10.0, 5.0, 1e-4, 0.5, 0.5, np.radians(3)
LEG = LOWER + UPPER
#: Published step period on a slope of three degrees.
STEP_PERIOD = 0.734


def leg_rates(t, y):
    """Equations of the swing phase, in the angles of stance leg and swing leg from the vertical."""
    (s, n), (ws, wn) = y[:2], y[2:]
    swing = LEG_MASS * LEG * UPPER
    M = [
        [(HIP_MASS + LEG_MASS) * LEG**2 + LEG_MASS * LOWER**2 + LEG_INERTIA, -swing * np.cos(s - n)],
        [-swing * np.cos(s - n), LEG_MASS * UPPER**2 + LEG_INERTIA],
    ]
    weight = ((HIP_MASS + LEG_MASS) * LEG + LEG_MASS * LOWER) * G
    force = [
        swing * np.sin(s - n) * wn**2 + weight * np.sin(s),
        -swing * np.sin(s - n) * ws**2 - LEG_MASS * UPPER * G * np.sin(n),
    ]
    return [ws, wn, *np.linalg.solve(M, force)]


def reduced_step(y):
    """State after a step and its duration: swing phase, then angular momenta about the new foot and about the hip."""

    def foot_height(t, y):
        return y[0] + y[1] + 2 * DECLINE

    foot_height.terminal = True
    tight = dict(method="DOP853", rtol=1e-11, atol=1e-12)
    past = solve_ivp(leg_rates, (0, 0.4), y, **tight).y[:, -1]  # the swing foot passes the floor
    end = solve_ivp(leg_rates, (0.4, 3), past, events=foot_height, **tight)
    (s, n), rates = end.y[:2, -1], end.y[2:, -1]
    c, near, J = np.cos(s - n), LEG_MASS * LOWER * UPPER - LEG_INERTIA, LEG_INERTIA
    before = [[(HIP_MASS * LEG**2 + 2 * LEG_MASS * LOWER * LEG) * c - near, -near], [-near, 0]]
    far, own = LEG_MASS * UPPER * LEG * c, LEG_MASS * UPPER**2 + J
    stance = (LEG_MASS + HIP_MASS) * LEG**2 + LEG_MASS * LOWER**2 + J
    after = np.linalg.solve([[stance - far, own - far], [-far, own]], before @ rates)
    return np.array([n, s, *after]), end.t[-1]


def compass_walker(y):
    """Both feet on a floor that is level; gravity is inclined."""
    mb = lv.Multibody(planar=True, gravity=[G * np.sin(DECLINE), -G * np.cos(DECLINE)])
    floor, tilts = contacts.HalfSpace(mb.ground, normal=[0, 1]), y[:2] + DECLINE
    directions = [np.array([-np.sin(tilt), np.cos(tilt)]) for tilt in tilts]
    top = LEG * directions[0]
    hip = mb.body("hip", mass=HIP_MASS, inertia=1e-4, position=top)
    for name, tilt, up, rate in zip(("left", "right"), tilts, directions, y[2:], strict=True):
        c, s = np.cos(tilt), np.sin(tilt)
        rotation = [[c, -s], [s, c]]
        leg = mb.body(name, mass=LEG_MASS, inertia=LEG_INERTIA, position=top - UPPER * up, rotation=rotation)
        mb.revolute(f"{name} hip", hip, leg, at=top)
        foot = contacts.PointCloud(leg, [top - LEG * up])
        mb.rigid_contact(foot, floor, restitution=0.0, friction=2.0, name=f"{name} foot")
        mb.initial(leg, omega=rate)
    mb.initial(hip, omega=0.0, velocity=y[2] * np.array([-top[1], top[0]]))
    return mb


def foot_events(mb):
    """The swing foot is drawn in while it passes the stance leg, as the knees of walking toys do."""
    index, events = {name: i for i, name in enumerate(mb.system.coordinates)}, []
    for stance, swing in (("left", "right"), ("right", "left")):
        for tilt, reach in ((0.2, -0.1), (-0.23, 0.0)):

            def leg_passes(q, i=index[f"{stance}.d2x"], tilt=tilt):
                return q[i] + np.sin(tilt)

            def set_foot(q, name=f"{swing} foot.reach", reach=reach):
                return {"parameters": {name: reach}}

            events.append(lv.Event(leg_passes, direction=1, name=f"{swing} {reach}", action=set_foot))
    return events


def test_a_biped_walks_down_a_slope_on_its_limit_cycle():
    """Ten seconds from a disturbed state: each step takes as long as that of the hybrid reduced equations."""
    y = np.array([0.2187, -2 * DECLINE - 0.2187, -1.0918, -0.3772])
    mb = compass_walker(y)
    run = mb.simulate(t_end=10.0, h=2e-3, events=foot_events(mb))
    strikes = [(event.t, event.name) for event in run.events if event.name.endswith("foot")]
    assert len(strikes) == 13 and [name[:4] for _, name in strikes] == (["righ", "left"] * 7)[:13]
    expected = []
    for _ in strikes:
        y, duration = reduced_step(y)
        expected.append(duration)
    durations = np.diff([0.0, *(t for t, _ in strikes)])
    assert durations == pytest.approx(expected, abs=2e-5)
    # the disturbance of the first steps fades: the gait is a stable limit cycle
    assert np.ptp(durations[-4:]) < 0.05 * np.ptp(durations[:4])
    assert durations[-4:].mean() == pytest.approx(STEP_PERIOD, abs=1e-3)
    assert run.summary.max_energy_drift < 1e-10 and np.diff(run.dissipated_energy).min() > -1e-9


# -- the compass gait of another project ------------------------------------------------------------------------------
#: Slope, length of the legs, coefficient of friction, and tilts of the stance leg while the swing foot is drawn in.
SLOPE, REACH, FRICTION, PASSES = 0.04, 1.0, 0.5, (0.2, 0.0)
#: Angles of stance and swing leg from the vertical and their rates at the start of a step, on the limit cycle.
CYCLE = np.array([0.24614384, -2 * SLOPE - 0.24614384, -1.00473838, -0.45141587])
NORMAL = np.array([np.sin(SLOPE), 0, np.cos(SLOPE)])


def robot_file(folder):
    """The amended file."""
    package = importlib.util.find_spec("underactuated")
    if package is None:
        pytest.skip("the wheel 'underactuated' with the robot file is not installed")
    text = (Path(package.submodule_search_locations[0]) / "models" / "compass_gait_limit_cycle.urdf").read_text()
    text = text.replace('<link name="ground">', '<link name="world"/><link name="ground">', 1)
    text, moved = re.subn(r'<origin xyz="0 0 1"/>(\s*<mass value="1"/>)', r'<origin xyz="0 0 0"/>\1', text)
    for mass, inertia in ((".1", 1e-4), ("1", 1e-9)):
        moments = {name: inertia if name[1] == name[2] else 0 for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
        values = " ".join(f'{name}="{value}"' for name, value in moments.items())
        text = text.replace(f'<mass value="{mass}"/>', f'<mass value="{mass}"/><inertia {values}/>')
    assert moved == 1 and text.count("<inertia ") == 3
    file = folder / "compass_gait.urdf"
    file.write_text(text)
    return file


def walker_of_the_file(file, state):
    """Feet on a rigid floor; the angles of the legs are from the vertical."""
    mb = lv.Multibody.from_urdf(file)
    assert mb.import_warnings == ["no mass, as there is no <inertial>: link 'floating_base_x', 'floating_base_z'"]
    s, n, s_rate, n_rate = state
    mb.initial(mb.joints["floating_base_y"], angle=s + SLOPE, rate=s_rate)
    mb.initial(mb.joints["hip_pin"], angle=n - s, rate=n_rate - s_rate)
    for joint in ("floating_base_x", "floating_base_z"):
        mb.initial(mb.joints[joint], position=0.0, velocity=0.0)
    floor = contacts.HalfSpace(mb.ground, normal=NORMAL)
    for leg in ("stance_leg", "swing_leg"):
        foot = contacts.PointCloud(mb.bodies[leg], [[0, 0, 0]])  # the legs are folded in the file
        mb.rigid_contact(foot, floor, restitution=0.0, friction=FRICTION, name=f"{leg} foot")
    return mb


def passes(mb):
    """Events that draw in the swing foot and set it down again."""
    index, events = {name: i for i, name in enumerate(mb.system.coordinates)}, []
    for stance, swing in (("stance_leg", "swing_leg"), ("swing_leg", "stance_leg")):
        x, z = (index[f"{stance}.d3{axis}"] for axis in "xz")
        for tilt, reach in zip(PASSES, (-0.1, 0.0), strict=True):

            def leg_passes(q, x=x, z=z, tilt=tilt):
                return np.cos(SLOPE) * q[x] - np.sin(SLOPE) * q[z] + np.sin(tilt)

            def set_foot(t, name=f"{swing} foot.reach", reach=reach):
                return {"parameters": {name: reach}}

            events.append(lv.Event(leg_passes, direction=1, name=f"{swing} {reach}", action=set_foot))
    return events


def feet_in_mujoco(file, state, times, rate):
    """Positions of both feet, which lose their velocities to the floor at this rate (1/s)."""
    mujoco = pytest.importorskip("mujoco")
    spec = mujoco.MjSpec.from_file(str(file))
    spec.compiler.boundmass = spec.compiler.boundinertia = 1e-12  # links of the base without mass
    floor = spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[50, 50, 1])
    floor.quat = [np.cos(SLOPE / 2), 0, np.sin(SLOPE / 2), 0]
    for leg, at in (("stance_leg", [0, 0, 0]), ("swing_leg", [0, 0, -REACH])):
        foot = spec.body(leg).add_geom(name=leg, type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[1e-6, 0, 0], pos=at, mass=0)
        foot.friction, foot.condim, foot.priority = [FRICTION, 0, 0], 3, 1
        # far beyond critical damping: the impact is plastic, and the foot rises again slowly
        foot.solref, foot.solimp = [-((rate / 60) ** 2), -rate], [0.9999, 0.9999, 1e-3, 0.5, 2]
    spec.option.timestep, spec.option.impratio = 0.5 / rate, 1000
    spec.option.cone, spec.option.tolerance = mujoco.mjtCone.mjCONE_ELLIPTIC, 1e-12
    model = spec.compile()
    model.geom_sameframe[:] = 0  # feet move within their legs
    data, feet = mujoco.MjData(model), [model.geom(leg).id for leg in ("stance_leg", "swing_leg")]
    s, n, s_rate, n_rate = state
    data.qpos[:], data.qvel[:] = [0, 1.001e-6, s + SLOPE, n - s], [0, 0, s_rate, n_rate - s_rate]
    down, before, out = model.geom_pos[feet, 2].copy(), None, []
    for t in times:
        while data.time < t - 1e-9:
            tilts = data.qpos[2], data.qpos[2] + data.qpos[3]
            for stance, swing in ((0, 1), (1, 0)):
                for tilt, lift in zip(PASSES, (0.1, 0.0), strict=True):
                    if before is not None and before[stance] > tilt >= tilts[stance]:
                        model.geom_pos[feet[swing], 2] = down[swing] + lift
            before = tilts
            mujoco.mj_step(model, data, 2)
        mujoco.mj_kinematics(model, data)
        out.append(data.geom_xpos[feet].copy())
    return np.array(out)


def feet_of(run):
    """Positions of both feet, and the distance from the floor along its normal."""
    legs = {"stance_leg": 1.05 / 1.1, "swing_leg": 0.5}  # distances of the feet from the centres of mass
    feet = np.stack([run[f"{leg}.position"] - d * run[f"{leg}.rotation"][:, :, 2] for leg, d in legs.items()], axis=1)
    return feet, feet @ NORMAL


@pytest.mark.slow
def test_the_compass_gait_of_another_project_walks_as_in_mujoco(tmp_path):
    """Ten seconds and twelve steps down the slope: each standing foot is where MuJoCo has it within the compliance.

    At touchdown a foot of MuJoCo sinks by its velocity divided by the damping rate, 0.07 mm. It lands later on a leg
    that is inclined by 0.286, and thus further on by the depth divided by the tangent of this angle.
    """
    file, rate = robot_file(tmp_path), 1e4
    mb = walker_of_the_file(file, CYCLE)
    run = mb.simulate(t_end=10.0, h=2e-3, project=True, events=passes(mb))
    assert run.summary.max_energy_drift < 1e-11
    strikes = [event.t for event in run.events if event.name.endswith("foot")]
    assert len(strikes) == 12 and len(run.events) == 12 + 26  # the feet neither slip nor leave the floor
    assert np.diff([0.0, *strikes]) == pytest.approx(0.795543, abs=2e-5)  # of the reduced equations, see above
    at = np.arange(25, len(run.t), 50)
    times = run.t[at]
    feet, height = feet_of(run)
    expected = feet_in_mujoco(file, CYCLE, times, rate)
    stands = np.abs(height[at]) < 1e-9
    assert (stands.sum(axis=1) == 1).mean() > 0.95
    sink = 0.73 / rate  # normal velocity at touchdown
    shift = sink / np.tan(CYCLE[0] + SLOPE)
    landings = np.searchsorted(strikes, times)
    error = np.linalg.norm(feet[at] - expected, axis=2)
    for foot in (0, 1):
        here = stands[:, foot]
        assert (error[here, foot] < sink + landings[here] * shift).all() and error[here, foot].max() < 1e-3
    assert feet[at][-1].max() > 6.5  # metres walked


@pytest.mark.slow
def test_the_compass_gait_of_another_project_stands_as_in_mujoco(tmp_path):
    """On both feet for ten seconds, the legs apart: nothing moves, and MuJoCo's feet creep by a few micrometres."""
    file = robot_file(tmp_path)
    state = np.array([0.3 - SLOPE, -0.3 - SLOPE, 0.0, 0.0])
    run = walker_of_the_file(file, state).simulate(t_end=10.0, h=2e-3, project=True)
    feet, height = feet_of(run)
    assert np.abs(height).max() < 1e-12 and np.ptp(feet, axis=0).max() < 1e-12
    expected = feet_in_mujoco(file, state, [1.0, 5.0, 10.0], 1e4)
    assert np.abs(expected - feet[0]).max() < 5e-6
    forces = sum(run[f"{leg} foot.normal_force"][-1] for leg in ("stance_leg", "swing_leg"))
    assert forces == pytest.approx(1.2 * G * np.cos(SLOPE), rel=1e-9)
