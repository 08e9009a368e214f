"""Springs, servos and actuators of MJCF files move joints as in MuJoCo, and actuators are inputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

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
    "force range of the joint": (
        ROTOR.format('actuatorfrcrange="-8 12"'),
        '<actuator><position joint="j" name="a" kp="900" gear="2" forcerange="-5 50"/></actuator>',
        2.0,
    ),
    "damping polynomial": (ROTOR.format('damping="6 8 3"'), "", 3.0),
    "stiffness polynomial": (ROTOR.format('stiffness="60 5 40" springref="20"'), "", 6.0),
    "slider with polynomials": (SLIDER.format('damping="5 9" stiffness="300 0 900" ref=".3" springref=".1"'), "", 0.5),
    "dry friction": (ROTOR.format('frictionloss="30"'), "", 2.0),
    "dry friction of a tendon": (
        ROTOR.format(""),
        '<tendon><fixed name="t" frictionloss="15"><joint joint="j" coef="2"/></fixed></tendon>',
        3.0,
    ),
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


def test_polynomial_damping_has_its_closed_equation(tmp_path):
    """The rotor of 216 kg, whose torque is ``-(6 + 8 |r| + 3 r^2) r``, against DOP853."""
    inertia = 216.0 * (0.6**2 / 6 + 0.2**2)
    exact = solve_ivp(
        lambda t, y: [y[1], -(6.0 + 8.0 * abs(y[1]) + 3.0 * y[1] ** 2) * y[1] / inertia],
        *((0.0, 1.5), [0.0, 3.0], "DOP853"),
        rtol=1e-12,
    )
    path = _file(tmp_path, *CASES["damping polynomial"][:2])
    assert _livens(path, 3.0, 1.5) == pytest.approx(exact.y[0, -1], abs=2e-6)


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


@pytest.mark.parametrize("joint", ["hinge", "slide"])
@pytest.mark.parametrize(
    ("actuator", "control"),
    [
        ('<intvelocity joint="j" name="a" kp="90" kv="4" actrange="-.8 .8"/>', 0.7),
        ('<intvelocity joint="j" name="a" kp="90" kv="4" actrange="-.3 .2"/>', 0.7),
        ('<cylinder joint="j" name="a" timeconst=".3" area="9" bias="1 -20 -2"/>', 2.0),
        ('<cylinder joint="j" name="a" timeconst=".3" diameter="2" ctrlrange="-1 1"/>', 2.0),
        ('<position joint="j" name="a" kp="90" kv="3" timeconst=".2" gear="2"/>', 0.7),
        (
            '<general joint="j" name="a" dyntype="filter" dynprm=".1" gainprm="30" biastype="affine" '
            'biasprm="0 -30 -2" forcerange="-5 5"/>',
            0.7,
        ),
        ('<damper joint="j" name="a" kv="9" ctrlrange="0 2"/>', 1.3),
        ('<general joint="j" name="a" gaintype="affine" gainprm="3 -2 -1"/>', 1.3),
        ('<general tendon="t" name="a" dyntype="filter" dynprm=".1" gainprm="30" gear="2"/>', 0.7),
    ],
)
def test_activation_states_and_affine_gains_are_those_of_mujoco(actuator, control, joint, tmp_path):
    """MuJoCo integrates filters of servos and limits of activations to first order in its step."""
    tendon = '<tendon><fixed name="t"><joint joint="j" coef="0.5"/></fixed></tendon>'
    body = (ROTOR if joint == "hinge" else SLIDER).format("")
    path = _file(tmp_path, body, f"{tendon}<actuator>{actuator}</actuator>")
    exact = _mujoco(path, 0.3, 1.0, control)
    assert _livens(path, 0.3, 1.0, {"a": control}) == pytest.approx(exact, abs=1e-4)


def test_activation_stops_at_its_limit(tmp_path):
    """Exact solution of a rotor that is driven by a filter with a limit; MuJoCo deviates by 2e-4 with steps of 2e-4."""
    actuator = '<general joint="j" name="a" dyntype="filter" dynprm=".1" gainprm="30" actrange="-1 .3"/>'
    run = lv.Multibody.from_mjcf(_file(tmp_path, ROTOR.format(""), f"<actuator>{actuator}</actuator>")).simulate(
        h=5e-4, t_end=1.0, parameters={"a": 0.7}
    )
    t_limit, J = 0.1 * np.log(0.7 / 0.4), 216 * (0.6**2 / 6 + 0.2**2)
    rate = 30 / J * 0.7 * (t_limit - 0.1 * (1 - np.exp(-t_limit / 0.1)))
    angle = 30 / J * 0.7 * (t_limit**2 / 2 - 0.1 * (t_limit - 0.1 * (1 - np.exp(-t_limit / 0.1))))
    rest = 1.0 - t_limit
    assert run["j.angle"][-1] == pytest.approx(angle + rate * rest + 30 / J * 0.3 * rest**2 / 2, abs=2e-7)
    assert run["a.activation"].max() < 0.3 + 2e-4 and run["a.activation"][-1] == pytest.approx(0.3, abs=1e-9)


def test_activation_has_the_response_of_a_filter(tmp_path):
    """Order 2 against the closed form; the activation is a result, and keyframes set its initial value."""
    actuator = '<general joint="j" name="a" dyntype="filterexact" dynprm=".2" gainprm="6"/>'
    key = '<keyframe><key name="on" act="0.5" ctrl="2"/></keyframe>'
    path = _file(tmp_path, SLIDER.format(""), f"<actuator>{actuator}</actuator>{key}")
    mb = lv.Multibody.from_mjcf(path, keyframe="on")
    errors, steps = [], (0.04, 0.02, 0.01, 0.005)
    for h in steps:
        run = mb.simulate(h=h, t_end=1.0)
        errors.append(np.abs(run["a.activation"] - (2 - 1.5 * np.exp(-run.t / 0.2))).max())
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1) and errors[-1] < 1e-3
    # force 6 z on 8 kg
    exact = 6 / 64 * (2 * run.t**2 / 2 - 1.5 * 0.2 * (run.t - 0.2 * (1 - np.exp(-run.t / 0.2))))
    assert run["j.position"] == pytest.approx(exact, abs=1e-4)
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-12
    with pytest.raises(lv.InputError, match="depends on its state"):
        mb.equilibrium()


def test_inputs_drive_activations_between_steps(tmp_path):
    actuator = '<general joint="j" name="a" dyntype="integrator" gainprm="6"/>'
    path = _file(tmp_path, SLIDER.format(""), f"<actuator>{actuator}</actuator>")
    mb = lv.Multibody.from_mjcf(path)
    step = lv.prepare(mb.problem("slider", h=1e-2, t_end=1.0))
    state, activation = step.start(), step.measurement("a.activation")
    for i in range(100):
        state = step.step(state, inputs={"a": 1.0 if i < 50 else -2.0})
    assert activation(state)[0] == pytest.approx(0.5 - 1.0, abs=1e-12)


def test_actuators_without_a_law_are_refused(tmp_path):
    for actuator in ('<muscle joint="j" name="a"/>', '<general joint="j" name="a" dyntype="user"/>'):
        path = _file(tmp_path, ROTOR.format(""), f"<actuator>{actuator}</actuator>")
        with pytest.raises(lv.InputError, match="not supported"):
            lv.Multibody.from_mjcf(path)
        assert not lv.Multibody.from_mjcf(path, actuators=False)._inputs
