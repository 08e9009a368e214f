"""Inputs: torques, forces and motions that are set from outside during a run."""

from __future__ import annotations

import numpy as np
import pytest

import livens as lv
from livens import math as m

H = 0.01


def _arm(torque, planar=False):
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
    mb.motor(hinge, torque=torque(mb), name="shoulder")
    return mb


def _torque(i):
    return 3.0 * np.cos(0.7 * i) - 1.0


def _commanded_arm():
    """Return the arm with the same torques as a function of time, held between samples."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
    law = lambda t, measured: _torque(round(t / H))  # noqa: E731
    mb.sampled_controller("shoulder", hinge, period=H, law=law, inputs="hinge.angle")
    return mb


@pytest.mark.parametrize("tier", ["fused", "tree", "assembled", "reference"])
def test_steps_with_inputs_equal_the_same_torques_as_a_function_bit_for_bit(tier):
    driven = _arm(lambda mb: mb.input("torque"))
    step = lv.prepare(driven.problem("arm", h=H, t_end=0.5), tier=tier)
    state, states = step.start(), []
    for i in range(50):
        state = step.step(state, inputs={"torque": _torque(i)})
        states.append(state.q)
    law = lv.simulate(_commanded_arm().problem("arm", h=H, t_end=0.5), tier=tier)
    assert np.array_equal(np.array(states), law.q[1:])


@pytest.mark.parametrize("tier", ["fused", "tree", "assembled", "reference"])
def test_a_run_with_inputs_equals_single_steps_bit_for_bit(tier):
    torques = [_torque(i) for i in range(50)]
    step = lv.prepare(_arm(lambda mb: mb.input("torque")).problem("arm", h=H, t_end=0.5), tier=tier)
    run = step.run(inputs={"torque": torques})
    state = step.start(parameters={"torque": torques[0]})
    for i, torque in enumerate(torques):
        state = step.step(state, inputs={"torque": torque})
        assert np.array_equal(state.q, run.q[i + 1])
    assert np.allclose(run["shoulder.torque"][:-1], torques, atol=1e-14)
    assert abs(run.summary.max_energy_drift) < 1e-11


def test_a_torque_as_a_function_of_time_gives_the_same_motion():
    def torque(t):
        value = 0.0
        for i in range(50):
            value = m.where(t > (i - 0.25) * H, float(_torque(i)), value)
        return value

    law = lv.simulate(_arm(lambda mb: torque).problem("arm", h=H, t_end=0.5))
    problem = _arm(lambda mb: mb.input("torque")).problem("arm", h=H, t_end=0.5)
    run = lv.simulate(problem, inputs={"torque": [_torque(i) for i in range(50)]})
    assert np.abs(run.q - law.q).max() < 1e-14


def test_states_are_independent_of_each_other():
    step = lv.prepare(_arm(lambda mb: mb.input("torque")).problem("arm", h=H, t_end=0.5))
    start = step.start()
    pushed = step.step(start, inputs={"torque": 5.0})
    free = step.step(start)
    again = step.step(start, inputs={"torque": 5.0})
    assert np.array_equal(pushed.q, again.q) and not np.array_equal(pushed.q, free.q)
    twice = step.step(step.step(pushed))  # inputs are held
    assert np.array_equal(twice.q, step.step(pushed, n_steps=2).q)


@pytest.mark.parametrize("scheme", ["livens-em", "gauss-2", "variational:1"])
def test_any_parameter_of_a_system_is_an_input(scheme):
    cart = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, forces=lambda q, v, k: [k.u], parameters=dict(u=0.0))
    step = lv.prepare(cart, scheme=scheme, h=0.1)
    state = step.start([0.0], [0.0])
    for u in (1.0, -1.0, 3.0):
        state = step.step(state, inputs={"u": u})
    assert state.v[0] == pytest.approx(0.3, abs=1e-14)
    run = lv.simulate(cart, [0.0], [0.0], scheme=scheme, h=0.1, t_end=0.3, inputs={"u": [1.0, -1.0, 3.0]})
    assert np.array_equal(run.q[-1], state.q)


def test_inputs_of_a_port_hamiltonian():
    oscillator = lv.PortHamiltonian(
        "q p",
        H=lambda x: x[1] ** 2 / 2 + 2 * x[0] ** 2,
        J=[[0, 1], [-1, 0]],
        B=[[0], [1]],
        u=lambda k: [k.force],
        parameters=dict(force=0.0),
    )
    step = lv.prepare(oscillator, scheme="gauss-2", h=0.01)
    state = step.start(x0=[1.0, 0.0], parameters={"force": _torque(0)})
    for i in range(20):
        state = step.step(state, inputs={"force": _torque(i)})
    run = step.run(x0=[1.0, 0.0], t_end=0.2, inputs={"force": [_torque(i) for i in range(20)]})
    assert np.array_equal(run.x[-1], state.x)
    # exact solution of q'' = u - 4 q over steps with constant u
    q, p, c, s = 1.0, 0.0, np.cos(0.02), np.sin(0.02)
    for i in range(20):
        rest = _torque(i) / 4
        q, p = rest + (q - rest) * c + p / 2 * s, -2 * (q - rest) * s + p * c
    assert state.x == pytest.approx([q, p], abs=1e-9)


def test_first_order_hold_is_linear_between_samples():
    # a constant force rate: the exact motion of a unit mass is t^3/6
    mb = lv.Multibody()
    ball = mb.particle("ball", at=[0, 0, 0], mass=1.0)
    mb.wrench("push", ball, force=mb.input("force", [0.0, 0.0, 0.0]))
    values = np.array([[0.0, 0, 0], [1.0, 0, 0]])
    ends = []
    for h in (0.1, 0.05):
        run = mb.simulate(h=h, t_end=1.0, inputs=lv.Schedule({"force": values}, t=[0.0, 1.0], hold="linear"))
        ends.append(run.q[-1, 0] - 1 / 6)
        assert run.v[-1, 0] == pytest.approx(0.5, abs=1e-13)  # the midpoint rule is exact for linear forces
    assert ends[0] / ends[1] == pytest.approx(4.0, abs=1e-6)


def test_a_driven_joint_follows_its_input():
    mb = lv.Multibody()
    arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="z")
    mb.drive(hinge, rate=mb.input("rate", 1.0))
    run = mb.simulate(h=H, t_end=1.0, inputs=lv.Schedule({"rate": [1.0, 2.0]}, t=[0.0, 0.5]))
    assert run["hinge.angle"][-1] == pytest.approx(1.5, abs=1e-12)


def test_a_servo_takes_its_reference_from_an_input():
    mb = lv.Multibody()
    arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="z")
    mb.pd(hinge, kp=50.0, kd=8.0, reference=mb.input("target"))
    step = lv.prepare(mb.problem("servo", h=H, t_end=1.0))
    angle = step.measurement("hinge.angle")
    state = step.start()
    for _ in range(600):
        state = step.step(state, inputs={"target": 9.0})  # more than one turn
        value = angle(state)
    assert value[0] == pytest.approx(9.0, abs=1e-6)


def test_inputs_are_parameters_of_ensembles_and_gradients():
    mb = _arm(lambda mb: mb.input("torque"))
    problem = mb.problem("arm", h=H, t_end=0.2)
    members = lv.ensemble(problem, parameters={"torque": [0.0, 2.0]})
    single = lv.simulate(problem, parameters={"torque": 2.0})
    assert np.allclose(np.asarray(members.q)[1, -1], single.q[-1], atol=1e-13)
    step = lv.prepare(problem)
    _, by = step.value_and_gradient(lambda q: q[2])(parameters={"torque": 2.0})
    eps = 1e-6
    ends = [lv.simulate(problem, parameters={"torque": 2.0 + s * eps}).q[-1, 2] for s in (-1, 1)]
    assert by.parameters["torque"] == pytest.approx((ends[1] - ends[0]) / (2 * eps), rel=1e-6)


def test_events_see_the_inputs():
    cart = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, forces=lambda q, v, k: [k.u], parameters=dict(u=0.0))
    run = lv.simulate(
        cart, [0.0], [0.0], h=0.01, t_end=2.0, inputs=lv.Schedule({"u": [1.0, -1.0]}, t=[0.0, 1.0]),
        events=[lv.Event(lambda v, k: v[0] * (k.u < 0) - 0.5, name="slow", direction=-1, terminal=True)],
    )  # fmt: skip
    assert run.t[-1] == pytest.approx(1.5, abs=1e-9)


def test_a_run_with_inputs_is_resumed_from_its_file(tmp_path):
    problem = _arm(lambda mb: mb.input("torque")).problem("arm", h=H, t_end=0.5)
    schedule = lv.Schedule({"torque": [_torque(i) for i in range(100)]}, t=np.arange(100) * H)
    whole = lv.simulate(problem, t_end=1.0, inputs=schedule)
    lv.simulate(problem, t_end=0.5, inputs=schedule, out=tmp_path / "run.h5")
    with pytest.raises(lv.InputError, match="inputs"):
        lv.resume(tmp_path / "run.h5", t_end=1.0, system=problem.model)
    resumed = lv.resume(tmp_path / "run.h5", t_end=1.0, system=problem.model, inputs=schedule)
    assert np.array_equal(resumed.q, whole.q)
    assert np.array_equal(resumed["shoulder.torque"], whole["shoulder.torque"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda mb, hinge: mb.motor(hinge, torque=lambda a, b, c, d, e: 0.0), "5 arguments"),
        (lambda mb, hinge: mb.motor(hinge, torque=lambda t: [1.0, 2.0]), "one number"),
        (lambda mb, hinge: mb.motor(hinge, torque=lambda t: 1 / missing), "NameError"),  # noqa: F821
        (lambda mb, hinge: mb.motor(hinge, torque=mb.input("u", [0.0, 0.0])), "shape"),
        (lambda mb, hinge: mb.drive(hinge, angle=lambda t, q: 0.0), "2 arguments"),
        (lambda mb, hinge: mb.wrench("w", mb.bodies["arm"], force=lambda t: [1.0, 0.0]), "shape"),
    ],
)
def test_wrong_laws_are_refused_where_they_are_given(make, message):
    mb = lv.Multibody()
    arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="z")
    with pytest.raises(lv.InputError, match=message):
        make(mb, hinge)


def test_wrong_inputs_are_refused():
    mb = _arm(lambda mb: mb.input("torque"))
    step = lv.prepare(mb.problem("arm", h=H, t_end=0.5))
    state = step.start()
    with pytest.raises(lv.InputError, match="did you mean 'torque'"):
        step.step(state, inputs={"torqe": 1.0})
    for value in (np.nan, [1.0, 2.0], "x"):
        with pytest.raises(lv.InputError):
            step.step(state, inputs={"torque": value})
    with pytest.raises(lv.InputError, match="50 steps"):
        step.run(inputs={"torque": np.zeros(7)})
    with pytest.raises(lv.InputError, match="same number"):
        lv.Schedule({"a": [1.0, 2.0], "b": [1.0]})
    mb.input("unused")
    with pytest.raises(lv.InputError, match="'unused' is not used"):
        mb.system  # noqa: B018


def _hinged_arm(torque):
    return _arm(torque).problem("arm", h=H, t_end=0.5)


SCHEDULES = {
    "samples of the steps": lv.Schedule({"torque": [_torque(i) for i in range(50)]}),
    "few samples": lv.Schedule({"torque": [1.0, -2.0, 3.0]}, t=[0.0, 0.137, 0.413]),
    "linear": lv.Schedule({"torque": [_torque(i) for i in range(51)]}, hold="linear"),
    "linear between few samples": lv.Schedule({"torque": [1.0, -2.0, 3.0]}, t=[0.0, 0.137, 0.413], hold="linear"),
}


@pytest.mark.parametrize("t_end", [0.5, 0.483])  # with a shorter last step
@pytest.mark.parametrize("name", SCHEDULES)
def test_members_of_an_ensemble_have_the_motion_of_single_runs(name, t_end):
    problem = _hinged_arm(lambda mb: mb.input("torque"))
    many = lv.ensemble(problem, parameters={"arm.mass": [0.8, 1.0, 1.3]}, t_end=t_end, inputs=SCHEDULES[name])
    for member, mass in enumerate((0.8, 1.0, 1.3)):
        run = lv.simulate(problem, parameters={"arm.mass": mass}, t_end=t_end, inputs=SCHEDULES[name])
        np.testing.assert_allclose(many.q[member], run.q, atol=1e-11)
        np.testing.assert_allclose(many.supplied_energy[member, :, 0], run.supplied_energy, atol=1e-10)


def test_members_have_inputs_of_their_own(tmp_path):
    """Members with one input each, in lanes, in blocks of a file, and in any number of threads."""
    problem = _hinged_arm(lambda mb: mb.input("torque"))
    inputs = [{"torque": [factor * _torque(i) for i in range(50)]} for factor in np.linspace(0.5, 1.5, 19)]
    many = lv.ensemble(problem, inputs=inputs)
    for member in (0, 7, 18):
        run = lv.simulate(problem, inputs=inputs[member])
        np.testing.assert_allclose(many.q[member], run.q, atol=1e-11)
    stored = lv.ensemble(problem, inputs=inputs, threads=2, out=tmp_path / "members.h5")
    assert np.array_equal(stored.q, many.q)
    with pytest.raises(lv.InputError, match="one entry per member"):
        lv.ensemble(problem, parameters={"arm.mass": [1.0, 2.0]}, inputs=inputs)
    with pytest.raises(lv.InputError, match="same names and sample times"):
        lv.ensemble(problem, inputs=[inputs[0], SCHEDULES["few samples"]])


def test_an_energy_that_depends_on_an_input_is_not_monitored():
    """The rest position of a spring is an input, which supplies energy: no drift is reported."""
    model = lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q, k: 50 * (q[0] - k.rest) ** 2,
        parameters=dict(rest=0.0),
    )
    options = dict(scheme="gauss-2", h=0.01, t_end=1.0, inputs=lv.Schedule({"rest": [0.0, 0.3]}, t=[0.0, 0.5]))
    many = lv.ensemble(model, [[0.1], [0.2]], [0.0], **options)
    np.testing.assert_allclose(many.q[1], lv.simulate(model, [0.2], [0.0], **options).q, atol=1e-12)
    assert not many.failures
    assert many.summary[0].energy == ""


@pytest.mark.parametrize("keep", ["all", "checkpoints"])
@pytest.mark.parametrize("t_end", [0.5, 0.483])
@pytest.mark.parametrize("name", SCHEDULES)
def test_gradients_by_samples_of_inputs(name, t_end, keep):
    """Against differences of runs, also by h: samples without times move with the steps, others stay where they are."""
    schedule, problem = SCHEDULES[name], _hinged_arm(lambda mb: mb.input("torque"))
    evaluate = lv.value_and_gradient(lambda q, v: q[0] ** 2 + v[2] + q[1], every=7, keep=keep)
    step = lv.prepare(problem)

    def value(rows, h=H):
        end = t_end + (h - H) * 50 * (t_end == 0.5)
        return evaluate(step, h=h, t_end=end, inputs=lv.Schedule({"torque": rows}, schedule.t, schedule.hold))[0]

    _, gradient = evaluate(step, t_end=t_end, inputs=schedule)
    rows, derivatives = schedule.values["torque"], gradient.inputs["torque"]
    assert derivatives.shape == rows.shape
    for i in {0, 1, len(rows) // 2, len(rows) - 1}:
        change = 1e-3 * np.eye(len(rows))[i]
        difference = (value(rows + change) - value(rows - change)) / 2e-3
        assert derivatives[i] == pytest.approx(difference, rel=1e-6, abs=1e-9)
    difference = (value(rows, H + 1e-7) - value(rows, H - 1e-7)) / 2e-7
    assert gradient.h == pytest.approx(difference, rel=1e-4)


def test_samples_add_up_to_the_derivative_by_a_constant_input():
    problem = _hinged_arm(lambda mb: mb.input("torque"))
    step, evaluate = lv.prepare(problem), lv.value_and_gradient(lambda q, v: q[0] + v[2])
    _, constant = evaluate(step, parameters={"torque": 2.0})
    _, sampled = evaluate(step, inputs={"torque": np.full(50, 2.0)})
    assert sampled.inputs["torque"].sum() == pytest.approx(constant.parameters["torque"], rel=1e-10)
    assert sampled.parameters["arm.mass"] == pytest.approx(constant.parameters["arm.mass"], rel=1e-10)
    many = evaluate.many(step, parameters={"arm.mass": [1.0, 2.0]}, inputs={"torque": np.full(50, 2.0)})
    np.testing.assert_allclose(many.gradient.inputs["torque"][0], sampled.inputs["torque"], rtol=1e-10)


@pytest.mark.parametrize("t_end", [1.0, 0.995])  # with a shorter last step
def test_inputs_of_members_beside_one_that_fails(t_end):
    """The members that remain in the lanes keep their own inputs after the failure of another one."""
    falling = lv.System(
        "a", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: -m.sqrt(1.0 - q[0]), forces=lambda k: [k.u],
        parameters=dict(u=0.0),
    )  # fmt: skip
    options = dict(scheme="livens-midpoint", h=0.01, t_end=t_end)
    starts, speeds = [[-3.0], [0.5], [-2.0], [-2.5]], [[0.1], [3.0], [-0.3], [0.2]]
    inputs = [{"u": 0.3 * np.sin(0.2 * np.arange(100) + i)} for i in range(4)]
    many = lv.ensemble(falling, q0=starts, v0=speeds, inputs=inputs, **options)
    assert many.status == ["complete", "failed", "complete", "complete"]
    for i in (0, 2, 3):
        run = lv.simulate(falling, q0=starts[i], v0=speeds[i], inputs=inputs[i], **options)
        np.testing.assert_allclose(many.q[i], run.q, atol=1e-12)


def test_ensembles_and_gradients_refuse_feedback_laws():
    problem = _hinged_arm(lambda mb: mb.input("torque"))
    law = lv.Feedback(lambda t, y: -y[0], H, ["hinge.angle"], "torque")
    with pytest.raises(lv.InputError, match="feedback law"):
        lv.ensemble(problem, inputs=law)
    with pytest.raises(lv.InputError, match="feedback law"):
        lv.value_and_gradient(lambda q: q[0])(lv.prepare(problem), inputs=law)
