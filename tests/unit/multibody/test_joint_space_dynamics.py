"""Mass matrices, bias forces, Jacobians and kinematics in joint coordinates, against closed forms and Pinocchio."""

import numpy as np
import pytest

import livens as lv
from benchmarks.robot_steps import robot_folder

G = 9.81


def double_pendulum():
    """Two rods in the plane x, z, with absolute gravity along -z; angles are about -y, from the x axis."""
    mb = lv.Multibody(gravity=[0, 0, -G])
    upper = mb.body("upper", mass=2.0, inertia=[0.1, 0.3, 0.3], position=[0.4, 0, 0])
    lower = mb.body("lower", mass=1.5, inertia=[0.1, 0.2, 0.2], position=[1.0 + 0.3, 0, 0])
    lower.point("tip", [1.7, 0, 0])
    mb.revolute("shoulder", mb.ground, upper, at=[0, 0, 0], axis=[0, -1, 0])
    mb.revolute("elbow", upper, lower, at=[1.0, 0, 0], axis=[0, -1, 0])
    return mb


def closed_form(q, v):
    """Mass matrix and bias forces of the double pendulum, from its Lagrangian."""
    m1, m2, I1, I2, l1, c1, c2 = 2.0, 1.5, 0.3, 0.2, 1.0, 0.4, 0.3
    coupling = m2 * l1 * c2
    M22 = I2 + m2 * c2**2
    M12 = M22 + coupling * np.cos(q[1])
    M11 = I1 + m1 * c1**2 + m2 * l1**2 + M22 + 2 * coupling * np.cos(q[1])
    s = coupling * np.sin(q[1])
    coriolis = np.array([-s * (2 * v[0] * v[1] + v[1] ** 2), s * v[0] ** 2])
    outer = m2 * G * c2 * np.cos(q[0] + q[1])
    gravity = np.array([(m1 * c1 + m2 * l1) * G * np.cos(q[0]) + outer, outer])
    return np.array([[M11, M12], [M12, M22]]), coriolis, gravity


def test_double_pendulum_has_its_closed_form():
    mb, random = double_pendulum(), np.random.default_rng(1)
    assert mb.joint_coordinate_names == ("shoulder", "elbow")
    for q, v, a in random.normal(size=(5, 3, 2)):
        M, coriolis, gravity = closed_form(q, v)
        np.testing.assert_allclose(mb.mass_matrix(q), M, rtol=0, atol=1e-13)
        np.testing.assert_allclose(mb.bias(q, v), coriolis + gravity, rtol=0, atol=1e-12)
        np.testing.assert_allclose(mb.gravity_compensation(q), gravity, rtol=0, atol=1e-12)
        np.testing.assert_allclose(mb.inverse_dynamics(q, v, a), M @ a + coriolis + gravity, rtol=0, atol=1e-12)
        tip = np.array([np.cos(q[0]) + 0.7 * np.cos(q.sum()), 0, np.sin(q[0]) + 0.7 * np.sin(q.sum())])
        np.testing.assert_allclose(mb.forward_kinematics(q)["lower.tip"].position, tip, rtol=0, atol=1e-14)
        J = np.zeros((6, 2))
        J[[0, 2], 0] = -tip[2], tip[0]
        J[[0, 2], 1] = -0.7 * np.sin(q.sum()), 0.7 * np.cos(q.sum())
        J[4] = -1.0
        np.testing.assert_allclose(mb.jacobian("lower.tip", q), J, rtol=0, atol=1e-13)
        np.testing.assert_allclose(mb.jacobian(mb.bodies["lower"].tip, q), J, rtol=0, atol=1e-13)


def test_values_by_joint_name():
    mb = double_pendulum()
    by_name = mb.mass_matrix({"elbow": 0.4, "shoulder": -0.2})
    np.testing.assert_array_equal(by_name, mb.mass_matrix([-0.2, 0.4]))
    np.testing.assert_array_equal(mb.bias({"elbow": 0.4}, {"shoulder": 2.0}), mb.bias([0, 0.4], [2.0, 0]))


def test_inverse_dynamics_of_a_simulated_motion():
    """Torques of a prescribed acceleration, as motors of a simulation, cause this acceleration."""
    mb, q, v, a = double_pendulum(), np.array([0.3, -0.8]), np.array([1.0, -2.0]), np.array([3.0, 1.5])
    torques = mb.inverse_dynamics(q, v, a)
    for name, angle, rate, torque in zip(mb.joint_coordinate_names, q, v, torques, strict=True):
        joint = mb.joints[name]
        mb.motor(joint, torque=float(torque))
        mb.initial(joint, angle=angle, rate=rate)
    rates = []
    for h in (4e-4, 2e-4):
        run = mb.simulate(t_end=h, h=h)
        rates.append([(run[f"{name}.rate"][-1] - run[f"{name}.rate"][0]) / h for name in mb.joint_coordinate_names])
    np.testing.assert_allclose(2 * np.array(rates[1]) - rates[0], a, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(mb.inverse_dynamics(q, v, a), torques)  # motors are not included


def test_model_changes_are_used():
    mb = double_pendulum()
    before = mb.mass_matrix([0, 0])
    load = mb.box("load", at=[1.7, 0, 0], size=[0.1, 0.1, 0.1], mass=3.0)
    mb.fixed("grip", mb.bodies["lower"], load, at=[1.7, 0, 0])
    assert mb.joint_coordinate_names == ("shoulder", "elbow")
    moment = 3.0 * (0.1**2 + 0.1**2) / 12
    expected = moment + 3.0 * np.array([[1.7**2, 1.7 * 0.7], [1.7 * 0.7, 0.7**2]])
    np.testing.assert_allclose(mb.mass_matrix([0, 0]) - before, expected, rtol=0, atol=1e-12)


def test_couplings_and_armatures():
    """A follower has no coordinate of its own; a rotor adds its inertia to the joint."""
    mb = double_pendulum()
    shoulder, elbow = mb.joints["shoulder"], mb.joints["elbow"]
    mb.couple("belt", (shoulder, 0.5), (elbow, -1.0))
    assert mb.joint_coordinate_names == ("shoulder",)
    S = np.array([1.0, 0.5])
    for x in (-0.4, 1.1):
        M, coriolis, gravity = closed_form(S * x, S * 2.0)
        assert mb.mass_matrix([x])[0, 0] == pytest.approx(S @ M @ S, abs=1e-12)
        assert mb.bias([x], [2.0])[0] == pytest.approx(S @ (coriolis + gravity), abs=1e-12)
    with pytest.raises(lv.InputError, match="'elbow' follows 'shoulder' by the coupling 'belt'"):
        mb.mass_matrix({"elbow": 0.1})


def test_armature_of_an_mjcf_file(tmp_path):
    file = tmp_path / "arm.xml"
    joint = '<joint name="hinge" axis="0 1 0" armature="0.25"/>'
    geom = '<geom type="box" size="0.5 0.1 0.1" pos="0.5 0 0" mass="3"/>'
    file.write_text(f'<mujoco><worldbody><body name="arm">{joint}{geom}</body></worldbody></mujoco>', encoding="utf-8")
    mb = lv.Multibody.from_mjcf(file)
    assert mb.joint_coordinate_names == ("hinge",)
    assert mb.mass_matrix([0.3])[0, 0] == pytest.approx(3 * (1 + 0.2**2) / 12 + 3 * 0.25 + 0.25, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_inverse_kinematics_of_positions(seed):
    mb, q = double_pendulum(), np.random.default_rng(seed).uniform(-2, 2, 2)
    target = mb.forward_kinematics(q)["lower.tip"].position
    found = mb.inverse_kinematics({"lower.tip": target}, {"shoulder": 0.1})
    np.testing.assert_allclose(mb.forward_kinematics(found)["lower.tip"].position, target, rtol=0, atol=1e-9)
    bent = mb.inverse_kinematics({"lower.tip": target}, limits={"elbow": (0.0, np.pi)})
    assert 0 <= bent[1] <= np.pi
    np.testing.assert_allclose(mb.forward_kinematics(bent)["lower.tip"].position, target, rtol=0, atol=1e-9)
    other = mb.inverse_kinematics({"lower.tip": target}, limits={"elbow": (-np.pi, 0.0)})
    assert other[1] == pytest.approx(-bent[1], abs=1e-7)


def test_targets_out_of_reach_are_refused():
    with pytest.raises(lv.InputError, match=r"no configuration reaches the target: .* 3 starts is 1\.3"):
        double_pendulum().inverse_kinematics({"lower.tip": [3.0, 0, 0]}, max_starts=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda mb: mb.mass_matrix({"elbw": 1.0}), "there is no joint 'elbw'.*did you mean 'elbow'"),
        (lambda mb: mb.mass_matrix([1.0]), "q must be 2 numbers"),
        (lambda mb: mb.mass_matrix({"elbow": "far"}), r"q\[elbow\]"),
        (lambda mb: mb.mass_matrix([np.nan, 0]), "q must be finite"),
        (lambda mb: mb.bias([0, 0], {"sholder": 1}), "v: there is no joint 'sholder'.*did you mean 'shoulder'"),
        (lambda mb: mb.jacobian("lowr.tip", [0, 0]), "no body 'lowr'; did you mean 'lower'"),
        (lambda mb: mb.jacobian("lower.top", [0, 0]), "'lower' has no point 'top'; did you mean 'tip'"),
        (lambda mb: mb.jacobian([1, 0, 0], [0, 0]), "a point of a body, a body or a name is required"),
        (lambda mb: mb.jacobian(double_pendulum().bodies["lower"], [0, 0]), "not a body of this mechanism"),
        (lambda mb: mb.inverse_kinematics([1, 0, 0]), "target must map points"),
        (lambda mb: mb.inverse_kinematics({"lower": [1, 0]}), "target of lower.centre must be 3 numbers"),
        (lambda mb: mb.inverse_kinematics({"lower": ([1, 0, 0], np.ones((3, 3)))}), "orthonormal"),
        (lambda mb: mb.inverse_kinematics({"lower": [1, 0, 0]}, limits={"elbo": (0, 1)}), "did you mean 'elbow'"),
        (lambda mb: mb.inverse_kinematics({"lower": [1, 0, 0]}, limits={"elbow": (1, 0)}), "must increase"),
        (lambda mb: mb.inverse_kinematics({"lower": [1, 0, 0]}, tolerance=0), "tolerance must be greater than 0"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(lv.InputError, match=message):
        call(double_pendulum())


def test_mechanisms_that_are_no_trees_are_refused():
    loop = double_pendulum()
    loop.revolute("closing", loop.ground, loop.bodies["lower"], at=[1.7, 0, 0], axis="y")
    with pytest.raises(lv.InputError, match="'closing' closes a loop"):
        loop.mass_matrix([0, 0])
    link = double_pendulum()
    link.distance("strut", [2, 0, 0], link.bodies["lower"].tip)
    with pytest.raises(lv.InputError, match="'strut' imposes a constraint besides the joints"):
        link.mass_matrix([0, 0])
    floating = double_pendulum()
    floating.box("stone", at=[0, 0, 3], size=[1, 1, 1], mass=1.0)
    with pytest.raises(lv.InputError, match="stone have no joint"):
        floating.mass_matrix([0, 0])
    ball = double_pendulum()
    ball.spherical("socket", ball.bodies["lower"], ball.sphere("ball", at=[1.7, 0, 0], radius=0.1, mass=1.0))
    with pytest.raises(lv.InputError, match="'socket' is spherical"):
        ball.mass_matrix([0, 0])
    planar = lv.Multibody(planar=True)
    rod = planar.rod("rod", a=[0, 0], b=[1, 0], mass=1.0)
    planar.revolute("pin", planar.ground, rod, at=[0, 0])
    with pytest.raises(lv.InputError, match="plane"):
        planar.mass_matrix([0])


# -- robots of example-robot-data against Pinocchio -------------------------------------------------------------------
def robot_file(name):
    """Return a file of the package example-robot-data, which has no Python module."""
    folder = robot_folder()
    if folder is None or not (folder / name).is_file():
        pytest.skip(f"example-robot-data has no {name}")
    return folder / name


ROBOTS = {
    "ur_description/urdf/ur5_robot.urdf": "wrist_3_link",
    "panda_description/urdf/panda.urdf": "panda_link7",
    "talos_data/robots/talos_left_arm.urdf": "arm_left_7_link",
    "kinova_description/robots/kinova.urdf": "j2s6s200_link_6",
    "anymal_b_simple_description/robots/anymal.urdf": "LH_SHANK",
}


def selection(pin, mb, model):
    """Return the matrix from independent joint coordinates to those of Pinocchio, which has no mimic joints here."""
    column, S = {name: i for i, name in enumerate(mb.joint_coordinate_names)}, np.zeros((model.nv, mb_size(mb)))
    for name in list(model.names)[1:]:
        row = model.joints[model.getJointId(name)].idx_v
        if name in column:
            S[row, column[name]] = 1.0
    for coupling in mb.couplings.values():
        (leader, _, ratio), (follower, _, _) = coupling.terms
        S[model.joints[model.getJointId(follower.name)].idx_v, column[leader.name]] = ratio
    return S


def mb_size(mb):
    return len(mb.joint_coordinate_names)


@pytest.mark.parametrize("file", ROBOTS)
def test_robots_against_pinocchio(file):
    pin = pytest.importorskip("pinocchio")
    path, link = robot_file(file), ROBOTS[file]
    model = pin.buildModelFromUrdf(str(path))
    if any(joint.nq != 1 for joint in list(model.joints)[1:]):
        model = bounded(pin, path)
    model.armature[:] = 0.0
    data, mb = model.createData(), lv.Multibody.from_urdf(path, inertia="balance")
    S, random = selection(pin, mb, model), np.random.default_rng(3)
    assert mb_size(mb) == model.nv - len(mb.couplings) >= 6
    frame = model.getFrameId(link)
    axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for q, v, a in random.uniform(-1.5, 1.5, size=(3, 3, mb_size(mb))):
        M = pin.crba(model, data, S @ q)
        M = np.triu(M) + np.triu(M, 1).T
        np.testing.assert_allclose(mb.mass_matrix(q), S.T @ M @ S, rtol=0, atol=1e-10)
        np.testing.assert_allclose(mb.bias(q, v), S.T @ pin.nonLinearEffects(model, data, S @ q, S @ v), atol=1e-10)
        tau = pin.rnea(model, data, S @ q, S @ v, S @ a)
        np.testing.assert_allclose(mb.inverse_dynamics(q, v, a), S.T @ tau, rtol=0, atol=1e-10)
        gravity = pin.computeGeneralizedGravity(model, data, S @ q)
        np.testing.assert_allclose(mb.gravity_compensation(q), S.T @ gravity, rtol=0, atol=1e-10)
        pin.framesForwardKinematics(model, data, S @ q)
        pose = mb.forward_kinematics(q)[f"{link}.origin"]
        np.testing.assert_allclose(pose.position, data.oMf[frame].translation, rtol=0, atol=1e-12)
        np.testing.assert_allclose(pose.rotation, data.oMf[frame].rotation, rtol=0, atol=1e-12)
        J = pin.computeFrameJacobian(model, data, S @ q, frame, axes) @ S
        np.testing.assert_allclose(mb.jacobian(f"{link}.origin", q), J, rtol=0, atol=1e-10)


def bounded(pin, path):
    """Return the model with continuous joints as revolute joints, which have one coordinate in Pinocchio."""
    text = path.read_text(encoding="utf-8").replace('type="continuous"', 'type="revolute"')
    return pin.buildModelFromXML(text)


def test_inverse_kinematics_of_a_pose():
    """A six-axis arm reaches the poses of random configurations from zero."""
    pytest.importorskip("pinocchio")
    mb = lv.Multibody.from_urdf(robot_file("ur_description/urdf/ur5_robot.urdf"))
    for q in np.random.default_rng(5).uniform(-2, 2, size=(4, 6)):
        pose = mb.forward_kinematics(q)["wrist_3_link.origin"]
        found = mb.inverse_kinematics({"wrist_3_link.origin": pose})
        reached = mb.forward_kinematics(found)["wrist_3_link.origin"]
        np.testing.assert_allclose(reached.position, pose.position, rtol=0, atol=1e-9)
        np.testing.assert_allclose(reached.rotation, pose.rotation, rtol=0, atol=1e-9)
        assert np.abs(found).max() <= np.pi + 1e-12
