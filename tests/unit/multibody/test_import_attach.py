"""MJCF files that attach other models: names with prefixes, default classes, actuators and tendons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import livens as lv

FOLDER = Path(__file__).parents[2] / "data" / "robots"


def test_attached_models_move_as_in_mujoco():
    """The whole world of a model, and one of its bodies, with the elements that refer to them."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(FOLDER / "attached.xml"))
    model.opt.timestep, model.opt.integrator = 1e-4, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    data = mujoco.MjData(model)
    rates, controls = np.linspace(-1, 1.5, model.nv), np.linspace(-0.2, 0.4, model.nu)
    data.qvel[:], data.ctrl[:] = rates, controls
    for _ in range(2000):
        mujoco.mj_step(model, data)
    mb = lv.Multibody.from_mjcf(FOLDER / "attached.xml")
    names = [model.joint(i).name for i in range(model.njnt)]
    inputs = [model.actuator(i).name for i in range(model.nu)]
    assert list(mb.joints) == names and list(mb._inputs) == inputs
    for name, rate in zip(names, rates, strict=True):
        mb.initial(mb.joints[name], rate=rate)
    errors, steps = [], (2e-3, 1e-3, 5e-4, 2.5e-4)
    for h in steps:
        run = mb.simulate(h=h, t_end=0.2, parameters=dict(zip(inputs, controls.tolist(), strict=True)))
        errors.append(np.abs([run[f"{name}.angle"][-1] for name in names] - data.qpos).max())
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1) and errors[-1] < 1e-4


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('model="hand" prefix="left_"', 'model="foot" prefix="left_"', "no model 'foot'"),
        ('body="finger"', 'body="thumb"', "has no body 'thumb'"),
        ('angle="radian"', 'angle="degree"', "compiler setting angle is 'radian'"),
        ('file="attached_hand.xml"', 'file="missing.xml"', "missing.xml"),
        ('file="attached_hand.xml"', 'file="whole.xml"', "attaches itself"),
        ('prefix="right-"', 'prefix="left_"', "unique name"),
    ],
)
def test_models_that_cannot_be_attached(before, after, words, tmp_path):
    (tmp_path / "whole.xml").write_text((FOLDER / "attached.xml").read_text().replace(before, after))
    (tmp_path / "attached_hand.xml").write_text((FOLDER / "attached_hand.xml").read_text())
    with pytest.raises(lv.InputError, match=words):
        lv.Multibody.from_mjcf(tmp_path / "whole.xml")
