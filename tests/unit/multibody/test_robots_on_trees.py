"""Robots of foreign files in the tree tier, compared with MuJoCo where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import livens as lv
from benchmarks.robot_steps import mujoco_model, robot, robot_folder, robot_without_meshes

ROBOTS = {
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "solo12": ("solo_description/robots/solo12.urdf", True),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "talos": ("talos_data/robots/talos_full_v2.urdf", True),
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", True),
}


def description(name: str) -> tuple[Path, bool]:
    (file, floating), folder = ROBOTS[name], robot_folder()
    if folder is None or not (folder / file).exists():
        pytest.skip(f"example-robot-data with {file} is not installed")
    return folder / file, floating


def angles_and_rates(mb, run):
    """Return the angles and rates of all revolute joints at the last row, by name."""
    return {
        name: (float(run[f"{name}.angle"][-1]), float(run[f"{name}.rate"][-1]))
        for name, joint in mb.joints.items()
        if joint.joint_type.angle
    }


@pytest.mark.parametrize("name", ROBOTS)
def test_motion_converges_to_that_of_mujoco(name):
    """Joint angles after 20 ms from given rates converge with order two to those of MuJoCo's RK4 at h = 1e-4."""
    mujoco = pytest.importorskip("mujoco")
    path, floating = description(name)
    mb, parameters = robot(path, floating)
    rng = np.random.default_rng(1)
    rates = {name: rng.uniform(-1, 1) for name, joint in mb.joints.items() if joint.joint_type.angle}
    for joint_name, rate in rates.items():
        mb.initial(mb.joints[joint_name], rate=rate)
    if floating:
        base = next(iter(mb.bodies.values()))
        mb.initial(base, velocity=[0, 0, 0], omega=[0, 0, 0])
    model = mujoco_model(mujoco, robot_without_meshes(path), floating)
    model.opt.timestep, model.opt.integrator = 1e-4, 1
    data = mujoco.MjData(model)
    address = {model.joint(i).name: (model.jnt_qposadr[i], model.jnt_dofadr[i]) for i in range(model.njnt)}
    for joint_name, rate in rates.items():
        data.qvel[address[joint_name][1]] = rate
    mujoco.mj_step(model, data, nstep=200)
    step = lv.prepare(mb.system, "lie-em", parameters=parameters)
    errors = []
    for h in (4e-3, 2e-3):
        run = step.run(*mb.initial_state, h=h, t_end=0.02)
        assert run.info.tier == "tree" and run.statistics.reference_steps == 0
        assert run.summary.max_constraint < 1e-14
        found = angles_and_rates(mb, run)
        errors.append(max(abs(found[joint][0] - data.qpos[address[joint][0]]) for joint in rates))
    assert errors[1] < 1e-3 and errors[0] / errors[1] == pytest.approx(4.0, rel=0.25)
