"""Springs, servos and actuators of MJCF files move joints as in MuJoCo, and actuators are inputs."""

from __future__ import annotations

import pytest

import livens as lv

#: One rotor about the vertical, and one slider, each with an initial rate.
ROTOR = '<body name="b"><joint name="j" axis="0 0 1" {}/><geom type="box" size=".3 .3 .3" pos=".2 0 0"/></body>'
SLIDER = '<body name="b"><joint name="j" type="slide" axis="1 0 0" {}/><geom type="box" size=".2 .2 .2"/></body>'


def _file(tmp_path, body, more=""):
    path = tmp_path / "model.xml"
    path.write_text(f'<mujoco><option gravity="0 0 0"/>{more}<worldbody>{body}</worldbody></mujoco>')
    return path


def _mujoco(path, rate, t_end, control=0.0):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep, model.opt.integrator = 2e-4, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    data.qvel[:] = rate
    data.ctrl[:] = control
    for _ in range(round(t_end / 2e-4)):
        mujoco.mj_step(model, data)
    return float(data.qpos[0] - model.qpos0[0])


def _livens(path, rate, t_end, inputs=None):
    mb = lv.Multibody.from_mjcf(path)
    joint = mb.joints["j"]
    mb.initial(joint, **({"rate": rate} if joint.joint_type.angle else {"velocity": rate}))
    run = mb.simulate(h=5e-4, t_end=t_end, parameters=inputs or {})
    return float(run["j.angle" if joint.joint_type.angle else "j.position"][-1])


GENERAL = '<general biastype="affine" gainprm="40" biasprm="0 -40 -3"/>'
CASES = {
    "spring over half a turn": (ROTOR.format('stiffness="60"'), "", 12.0),
    "servo over half a turn": (ROTOR.format(""), '<actuator><position joint="j" kp="60"/></actuator>', 12.0),
    "rest angle beyond half a turn": (ROTOR.format('stiffness="60" springref="250"'), "", 0.0),
    "reference and rest of a slider": (SLIDER.format('stiffness="60" ref=".3" springref=".1"'), "", 0.5),
    "position default of a general": (
        ROTOR.format(""),
        '<default><position kp="80" kv="4"/></default><actuator><general joint="j" name="a"/></actuator>',
        3.0,
    ),
    "general default of a position": (
        ROTOR.format(""),
        f'<default>{GENERAL}</default><actuator><position joint="j" name="a"/></actuator>',
        3.0,
    ),
    "gear of a motor default in a servo": (
        ROTOR.format(""),
        '<default><motor gear="3"/></default><actuator><position joint="j" name="a" kp="20"/></actuator>',
        3.0,
    ),
    "inherited range": (
        ROTOR.format('range="20 60"'),
        '<actuator><position joint="j" name="a" kp="90" kv="4" inheritrange="1"/></actuator>',
        0.0,
    ),
    "control range without zero": (
        ROTOR.format(""),
        '<actuator><position joint="j" name="a" kp="90" kv="4" ctrlrange=".5 1"/></actuator>',
        0.0,
    ),
    "force range": (
        ROTOR.format(""),
        '<actuator><position joint="j" name="a" kp="900" forcerange="-8 8"/></actuator>',
        2.0,
    ),
    "damping polynomial": (ROTOR.format('damping="6 8 3"'), "", 3.0),
    "stiffness polynomial": (ROTOR.format('stiffness="60 5 40" springref="20"'), "", 6.0),
    "slider with polynomials": (SLIDER.format('damping="5 9" stiffness="300 0 900" ref=".3" springref=".1"'), "", 0.5),
    "dry friction": (ROTOR.format('frictionloss="30"'), "", 2.0),
    "damping ratio of a servo": (
        ROTOR.format('armature="2"'),
        '<actuator><position joint="j" name="a" kp="900" gear="2" dampratio="0.6"/></actuator>',
        2.0,
    ),
    "spring and damper by time constant": (ROTOR.format('springdamper="0.4 0.3"'), "", 2.0),
    "constant bias": (
        ROTOR.format(""),
        '<actuator><general joint="j" name="a" biastype="affine" biasprm="5 -30 -1"/></actuator>',
        0.0,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_joints_move_as_in_mujoco(case, tmp_path):
    body, more, rate = CASES[case]
    path = _file(tmp_path, body, more)
    exact = _mujoco(path, rate, 1.5)
    assert _livens(path, rate, 1.5) == pytest.approx(exact, abs=2e-5 * max(1.0, abs(rate) ** 2))


@pytest.mark.parametrize(
    "actuator",
    [
        '<motor joint="j" name="a" gear="2" ctrlrange="-1 1"/>',
        '<position joint="j" name="a" kp="30" kv="2"/>',
        '<velocity joint="j" name="a" kv="20"/>',
    ],
)
@pytest.mark.parametrize("control", [0.4, 3.0])
def test_controls_are_inputs(actuator, control, tmp_path):
    path = _file(tmp_path, ROTOR.format('damping="0.5"'), f"<actuator>{actuator}</actuator>")
    exact = _mujoco(path, 0.0, 1.0, control)
    assert _livens(path, 0.0, 1.0, {"a": control}) == pytest.approx(exact, abs=1e-5)
    step = lv.prepare(lv.Multibody.from_mjcf(path).problem("robot", h=5e-4, t_end=1.0))
    state, angle = step.start(), step.measurement("j.angle")
    for _ in range(2000):
        state = step.step(state, inputs={"a": control})
        value = angle(state)
    assert value[0] == pytest.approx(exact, abs=1e-5)


def test_what_does_not_act_is_named(tmp_path):
    tendon = '<tendon><fixed name="t" limited="true" range="-1 1"><joint joint="j" coef="1"/></fixed></tendon>'
    mb = lv.Multibody.from_mjcf(_file(tmp_path, ROTOR.format('frictionloss="2"'), tendon))
    notes = " ".join(mb.import_warnings)
    assert "limits are ignored (tendon t)" in notes and "Coulomb friction of 'j'" in notes
