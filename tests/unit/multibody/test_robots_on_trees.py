"""Robots of foreign files in the tree tier, compared with MuJoCo and Pinocchio where they are installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import livens as lv
from benchmarks.robot_steps import mujoco_model, robot, robot_folder, robot_without_meshes
from livens import rotations

ROBOTS = {
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "solo12": ("solo_description/robots/solo12.urdf", True),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", True),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
}
STEPS, END = (4e-3, 2e-3, 1e-3, 5e-4), 0.02


def description(name: str) -> tuple[Path, bool]:
    (file, floating), folder = ROBOTS[name], robot_folder()
    if folder is None or not (folder / file).exists():
        pytest.skip(f"example-robot-data with {file} is not installed")
    return folder / file, floating


def moving_robot(path, floating, *, armature=0.0):
    """Return a robot with random joint rates, the parameters without friction and damping, and the rates."""
    mb, parameters = robot(path, floating)
    rng = np.random.default_rng(1)
    rates = {name: rng.uniform(-1, 1) for name, joint in mb.joints.items() if joint.joint_type.angle}
    for name, rate in rates.items():
        mb.initial(mb.joints[name], rate=rate)
        if armature:
            mb.armature(mb.joints[name], inertia=armature)
    if floating:
        mb.initial(next(iter(mb.bodies.values())), velocity=[0, 0, 0], omega=[0, 0, 0])
    return mb, parameters, rates


def measured_errors(mb, parameters, angles, rotation=None):
    """Return the errors of joint angles, and of the rotation of the base, at the end of runs with all step sizes."""
    step, base = lv.prepare(mb.system, "lie-em", parameters=parameters), next(iter(mb.bodies))
    errors = []
    for h in STEPS:
        run = step.run(*mb.initial_state, h=h, t_end=END)
        assert run.info.tier == "tree" and run.statistics.reference_steps == 0
        assert run.summary.max_constraint < 1e-14
        found = [abs(run[f"{joint}.angle"][-1] - angle) for joint, angle in angles.items()]
        if rotation is not None:
            found.append(np.abs(run[f"{base}.rotation"][-1] - rotation).max())
        errors.append(max(found))
    return errors


def assert_order_two(errors):
    slope = np.polyfit(np.log(STEPS), np.log(errors), 1)[0]
    assert slope == pytest.approx(2.0, abs=0.1) and errors[2] < 2e-4, (slope, errors)


@pytest.mark.parametrize("name", ["ur5", "g1"])
def test_motion_converges_to_that_of_mujoco(name):
    """Joint angles after 20 ms from given rates converge with order two to those of MuJoCo's RK4 at h = 1e-4."""
    mujoco = pytest.importorskip("mujoco")
    path, floating = description(name)
    mb, parameters, rates = moving_robot(path, floating)
    model = mujoco_model(mujoco, robot_without_meshes(path), floating)
    model.opt.timestep, model.opt.integrator = 1e-4, 1
    data = mujoco.MjData(model)
    address = {model.joint(i).name: (model.jnt_qposadr[i], model.jnt_dofadr[i]) for i in range(model.njnt)}
    for joint, rate in rates.items():
        data.qvel[address[joint][1]] = rate
    mujoco.mj_step(model, data, nstep=200)
    assert_order_two(measured_errors(mb, parameters, {joint: data.qpos[address[joint][0]] for joint in rates}))


@pytest.mark.parametrize(("name", "armature"), [*((name, 0.0) for name in ROBOTS), ("ur5", 0.4), ("solo12", 0.02)])
def test_motion_converges_to_that_of_pinocchio(name, armature):
    """Joint angles and base rotation after 20 ms converge with order two to DOP853 with Pinocchio's accelerations."""
    pin = pytest.importorskip("pinocchio")
    path, floating = description(name)
    mb, parameters, rates = moving_robot(path, floating, armature=armature)
    text = path.read_text(encoding="utf-8").replace('type="continuous"', 'type="revolute"')
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer()) if floating else pin.buildModelFromXML(text)
    data, q, v = model.createData(), pin.neutral(model), np.zeros(model.nv)
    rows = {joint: model.joints[model.getJointId(joint)] for joint in rates}
    model.armature[:] = 0.0
    for joint, rate in rates.items():
        v[rows[joint].idx_v], model.armature[rows[joint].idx_v] = rate, armature
    assert model.nv == len(rates) + 6 * floating

    def derivative(t, y):
        q, v = y[: model.nq].copy(), y[model.nq :]
        rate = v[6 * floating :]
        if floating:  # velocity of the base in its own axes; quaternion with the scalar last
            q[3:7] /= np.linalg.norm(q[3:7])
            R, (x, s) = pin.Quaternion(q[3:7]).matrix(), (q[3:6], q[6])
            turn = 0.5 * np.r_[s * v[3:6] + np.cross(x, v[3:6]), -x @ v[3:6]]
            rate = np.r_[R @ v[:3], turn, rate]
        return np.r_[rate, pin.aba(model, data, q, v, np.zeros(model.nv))]

    end = solve_ivp(derivative, (0, END), np.r_[q, v], method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    rotation = rotations.to_matrix(np.r_[end[6], end[3:6]]) if floating else None
    angles = {joint: end[row.idx_q] for joint, row in rows.items()}
    assert_order_two(measured_errors(mb, parameters, angles, rotation))
