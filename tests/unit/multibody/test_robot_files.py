"""Own robot files: every file loads, and those with actuators and included parts move as in MuJoCo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import livens as lv

FOLDER = Path(__file__).parents[2] / "data" / "robots"
READERS = {".urdf": "from_urdf", ".xacro": "from_urdf", ".sdf": "from_sdf", ".xml": "from_mjcf"}


@pytest.mark.parametrize("file", sorted(p.name for p in FOLDER.iterdir() if p.suffix in READERS))
def test_every_file_loads(file):
    if file.endswith(".xacro"):
        pytest.importorskip("xacro")
    options = {"inertia": "balance"} if file == "unbalanced.urdf" else {}
    mb = getattr(lv.Multibody, READERS[Path(file).suffix])(FOLDER / file, **options)
    assert mb.bodies and mb.check().mobility > 0
    assert not any("changes the motion" in note for note in mb.import_warnings)


@pytest.mark.parametrize(
    ("file", "removed", "tolerance"),
    [
        ("actuators.xml", "", 5e-4),  # friction is soft in MuJoCo, and regularised here
        ("actuators.xml", ' frictionloss="0.02"', 1e-4),  # MuJoCo: first order in its step for filtered servos
        ("actuators.xml", ' frictionloss="0.02"| timeconst="0.05"', 1e-6),
        ("included.xml", "", 1e-6),
    ],
)
def test_files_move_as_in_mujoco(file, removed, tolerance, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    path = FOLDER / file
    if removed:
        text = path.read_text()
        for attribute in removed.split("|"):
            text = text.replace(attribute, "")
        path = tmp_path / file
        path.write_text(text)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep, model.opt.integrator = 1e-4, mujoco.mjtIntegrator.mjINT_RK4
    bits = mujoco.mjtDisableBit
    model.opt.disableflags |= int(bits.mjDSBL_CONTACT | bits.mjDSBL_LIMIT)
    data = mujoco.MjData(model)
    rates = np.linspace(0.5, -1.0, model.nv)
    controls = np.linspace(0.8, 0.3, model.nu)
    data.qvel[:], data.ctrl[:] = rates, controls
    for _ in range(3000):
        mujoco.mj_step(model, data)
    mb = lv.Multibody.from_mjcf(path)
    names = [model.joint(i).name for i in range(model.njnt)]
    inputs = [model.actuator(i).name for i in range(model.nu)]
    slides = {name for name in names if mb.joints[name].joint_type.slide}
    for name, rate in zip(names, rates, strict=True):
        mb.initial(mb.joints[name], **{"velocity" if name in slides else "rate": float(rate)})
    run = mb.simulate(h=2e-4, t_end=0.3, parameters=dict(zip(inputs, controls.tolist(), strict=True)))
    ours = np.array([run[f"{name}.{'position' if name in slides else 'angle'}"][-1] for name in names])
    assert np.abs(ours - data.qpos).max() < tolerance and np.abs(data.qpos).min() > 1e-3
    mb = lv.Multibody.from_mjcf(path, actuators=False)
    assert not mb._inputs and (not inputs or any(f"{len(inputs)} actuators" in note for note in mb.import_warnings))
