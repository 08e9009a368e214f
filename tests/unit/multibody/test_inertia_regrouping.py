"""Regrouping of inertia across joints: skew hinges, massless forks and point masses move as the file says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens.multibody.imports.mjcf import read_mjcf

FOLDER = Path(__file__).parents[2] / "data" / "robots"


def test_skew_hinges_move_as_in_mujoco():
    """Two hinges of one link that neither meet nor are normal to one another, with springs, a damper and armatures."""
    mujoco = pytest.importorskip("mujoco")
    rates = dict(knee=1.5, ankle_y=-2.0, ankle_x=3.0)
    model = mujoco.MjModel.from_xml_path(str(FOLDER / "skew_hinges.xml"))
    data = mujoco.MjData(model)
    data.qvel[:], data.ctrl[:] = list(rates.values()), 0.02
    exact = [data.qpos.copy()]
    for _ in range(2000):
        mujoco.mj_step(model, data)
        exact.append(data.qpos.copy())
    mb = lv.Multibody.from_mjcf(FOLDER / "skew_hinges.xml")
    assert set(rates) <= set(mb.joints) and mb.check().mobility == 3
    assert any("moved across joints" in note and "foot ankle_y" in note for note in mb.import_warnings)
    for name, rate in rates.items():
        mb.initial(mb.joints[name], rate=rate)
    errors, steps = [], (4e-3, 2e-3, 1e-3, 4e-4)
    for h in steps:
        run = mb.simulate(h=h, t_end=0.4, parameters={"ankle": 0.02})
        ours = np.column_stack([run[f"{name}.angle"] for name in rates])
        errors.append(np.abs(ours - np.array(exact)[:: round(h / 2e-4)]).max())
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1) and errors[-1] < 1e-4


@pytest.mark.parametrize(
    "joints",
    [
        '<joint name="a" type="slide" axis="1 0 0" stiffness="90"/><joint name="b" axis="1 1 0" pos="0 .1 0"/>',
        '<joint name="a" axis="1 1 0" pos="0 .1 0"/><joint name="b" type="slide" axis="1 0 .3" stiffness="90"/>',
        '<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0" pos="0 0 .3" stiffness="5"/>',
    ],
)
@pytest.mark.parametrize("base", ["", "<freejoint/>"])
def test_two_joints_of_one_link_move_as_in_mujoco(joints, base, tmp_path):
    """Slides and hinges that are no joint of the library; they hang on the ground or on a free body."""
    mujoco = pytest.importorskip("mujoco")
    inner = f'<body name="hung" pos=".1 0 .2">{joints}<geom type="box" size=".1 .05 .07" pos=".1 .1 .05"/></body>'
    text = f'<body name="base">{base}<geom type="box" size=".2 .3 .1"/>{inner}</body>'
    path = tmp_path / "m.xml"
    path.write_text(f'<mujoco><option timestep="1e-4" integrator="RK4"/><worldbody>{text}</worldbody></mujoco>')
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    data = mujoco.MjData(model)
    data.qvel[-2:] = 0.5, -0.8
    for _ in range(3000):
        mujoco.mj_step(model, data)
    mb = lv.Multibody.from_mjcf(path)
    assert any("moved across joints" in note for note in mb.import_warnings)
    kinds = {name: "position" if mb.joints[name].joint_type.slide else "angle" for name in "ab"}
    for name, rate in (("a", 0.5), ("b", -0.8)):
        mb.initial(mb.joints[name], **{"velocity" if kinds[name] == "position" else "rate": rate})
    if base:
        mb.initial(mb.bodies["base"], velocity=np.zeros(3), omega=np.zeros(3), required=False)
    run = mb.simulate(h=1e-4, t_end=0.3)
    values = np.array([run[f"{name}.{kinds[name]}"][-1] for name in "ab"])
    assert np.abs(values - data.qpos[-2:]).max() < 2e-6
    assert run.summary.max_energy_drift < 1e-10


def test_total_mass_and_inertia_are_those_of_the_file():
    mb = lv.Multibody.from_mjcf(FOLDER / "skew_hinges.xml")
    masses = [float(body.element.parameters.values["mass"]) for body in mb.bodies.values()]
    links = [link.mass.mass for link in read_mjcf(FOLDER / "skew_hinges.xml").links.values() if link.mass is not None]
    assert len(masses) == len(links) + 1 and min(masses) > 0
    assert sum(masses) == pytest.approx(sum(links), rel=1e-12)


def test_point_masses_and_a_massless_fork_accelerate_as_in_pinocchio():
    """A link without inertia tensor, and a link without mass that has two children."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(FOLDER / "point_masses.urdf"))
    data = model.createData()
    mb = lv.Multibody.from_urdf(FOLDER / "point_masses.urdf")
    (note,) = (note for note in mb.import_warnings if "moved across joints" in note)
    assert "upper" in note and "fork" in note
    names = [name for name in model.names if name != "universe"]
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, v, a = rng.normal(size=(3, len(names)))
        exact = pin.rnea(model, data, q, v, a)
        torques = mb.inverse_dynamics(*(dict(zip(names, x, strict=True)) for x in (q, v, a)))
        order = [list(mb.joints).index(name) for name in names]
        assert torques[order] == pytest.approx(exact, rel=1e-10, abs=1e-10)


def test_hinges_that_cannot_be_separated_are_refused(tmp_path):
    """Three skew hinges without mass in between: no inertia of the neighbours makes all links regular."""
    joints = '<joint name="a" pos="-.03 -.02 0" axis="0 0 1"/><joint name="b" pos="0 -.05 -.07" axis="1 0 0"/>'
    body = f'<body name="b">{joints}<joint name="c" axis=".3 1 0"/><geom size=".1"/></body>'
    (tmp_path / "m.xml").write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    with pytest.raises(lv.InputError, match="several joints"):
        lv.Multibody.from_mjcf(tmp_path / "m.xml")
