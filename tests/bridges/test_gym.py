"""Environments of Gymnasium: its checker, agreement of single, driven and vectorised motions, control."""

import warnings

import numpy as np
import pytest

import livens as lv

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

OBSERVATION = ["slide.position", "hinge.angle", "slide.velocity", "hinge.rate"]


def cart_pole():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    cart = mb.box("cart", at=[0, 0, 0], size=[0.4, 0.2, 0.2], mass=10.0)
    pole = mb.rod("pole", a=[0, 0, 0], b=[0, 0, 0.6], mass=5.0)
    slide = mb.prismatic("slide", mb.ground, cart, axis="x")
    hinge = mb.revolute("hinge", cart, pole, at=[0, 0, 0], axis="y")
    mb.motor(
        slide,
        force=lambda t, position, velocity, k: 100 * k.u - velocity,
        parameters=dict(u=0.0),
        name="motor",
    )
    mb.initial(hinge, angle=0.01)
    return mb


OPTIONS = dict(
    action="motor.u",
    observation=OBSERVATION,
    reward=lambda observation, action: 1.0 - observation[..., 1] ** 2,
    terminated=lambda observation: np.abs(observation[..., 1]) > 0.2,
    dt=0.04,
    substeps=2,
    scheme="lie-em",
    low=-3,
    high=3,
)


def test_the_checker_of_gymnasium_passes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # advice about infinite bounds of observations
        check_env(lv.gym.Env(cart_pole(), **OPTIONS), skip_render_check=True)


def test_steps_equal_those_of_a_run():
    mb = cart_pole()
    env = lv.gym.Env(mb, **OPTIONS)
    env.reset(seed=0)
    observations = [env.step([0.05])[0] for _ in range(25)]
    run = mb.simulate(scheme="lie-em", h=0.02, t_end=1.0, redundant="remove", parameters={"motor.u": 0.05})
    expected = np.array([run[name][2::2] for name in OBSERVATION]).T
    np.testing.assert_allclose(observations, expected, atol=1e-8)


def test_a_drive_equals_single_steps_with_changed_parameters():
    system = lv.System(
        "x a",
        kinetic=lambda q, v: 0.55 * v[0] ** 2 + 0.05 * v[0] * v[1] * np.cos(q[1]) + 0.0125 * v[1] ** 2,
        potential=lambda q: 0.4905 * np.cos(q[1]),
        forces=lambda k: [k.u, 0.0],
        parameters=dict(u=0.0),
    )
    step = lv.prepare(system, scheme="livens-em", h=0.01)
    drive = step.drive(["u"], ["x", "a", "kinetic_energy"], q0=[0.0, 0.3], v0=[0.0, 0.0])
    state, function = step.start([0.0, 0.3], [0.0, 0.0]), step.casadi_function()
    values = {name: getattr(state, name) for name in function.name_in() if name not in ("t", "h", "k")}
    outputs, inputs = drive.outputs, drive.inputs
    for i in range(200):
        inputs[:] = np.sin(0.1 * i)
        drive.advance()
        after = function(**values, t=0.01 * i, h=0.01, k=system.parameter_vector({"u": np.sin(0.1 * i)}))
        values = {name: after[f"{name}_next"] for name in values}
        np.testing.assert_allclose(outputs[:2], np.array(values["q"]).ravel(), atol=1e-11)
    assert drive.outputs is outputs and drive.t == pytest.approx(2.0)
    assert drive.reset(q0=[1.0, 0.0])[0] == 1.0 and drive.t == 0.0
    with pytest.raises(lv.InputError, match="unknown input 'w'"):
        step.drive(["w"], ["x"], q0=[0.0, 0.3], v0=[0.0, 0.0])
    with pytest.raises(lv.InputError, match="unknown output 'b'"):
        step.drive(["u"], ["b"], q0=[0.0, 0.3], v0=[0.0, 0.0])
    with pytest.raises(lv.InputError, match="cannot be driven"):
        lv.prepare(system, scheme="taylor", h=0.01).drive(["u"], ["x"], q0=[0.0, 0.3], v0=[0.0, 0.0])


def test_a_linear_controller_keeps_the_pole_up():
    env = lv.gym.Env(cart_pole(), **{**OPTIONS, "max_steps": 500})
    observation, _ = env.reset(seed=0)
    gains = np.array([0.3, 6.0, 0.5, 1.2])
    for _ in range(500):
        observation, reward, terminated, truncated, _ = env.step([np.clip(gains @ observation, -3, 3)])
        assert not terminated and reward > 0.9
    assert truncated
    assert np.abs(observation).max() < 0.1


def test_lanes_agree_with_single_environments():
    mb, n = cart_pole(), 19  # not a multiple of the number of lanes
    many = lv.gym.VectorEnv(mb, n, **OPTIONS)
    single = lv.gym.Env(mb, **OPTIONS)
    observations, _ = many.reset(seed=0)
    assert observations.shape == (n, 4) and many.action_space.shape == (n, 1)
    random = np.random.default_rng(1)
    actions = random.uniform(-0.3, 0.3, (10, n, 1))
    got = np.array([many.step(rows)[0] for rows in actions])
    for member in (0, 7, n - 1):
        single.reset(seed=0)
        expected = [single.step(rows[member])[0] for rows in actions]
        np.testing.assert_allclose(got[:, member], expected, atol=1e-9)


def test_finished_environments_start_again():
    many = lv.gym.VectorEnv(cart_pole(), 8, **OPTIONS)
    initial, _ = many.reset(seed=0)
    actions = np.zeros((8, 1))
    actions[:4] = 3.0  # these fall
    for _ in range(100):
        _, _, terminated, truncated, _ = many.step(actions)
        if terminated[:4].all():
            break
    assert terminated[:4].all() and not truncated.any()
    observations, rewards, terminated, _, _ = many.step(actions)
    np.testing.assert_array_equal(observations[:4], initial[:4])
    assert not rewards[:4].any() and not terminated[:4].any() and rewards[4:].all()
    observations, *_ = many.step(actions)
    assert np.all(observations[:4, 2] > 0.1)


def test_random_initial_states():
    mass = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, forces=lambda k: [k.u], parameters=dict(u=0.0))
    options = dict(
        action="u",
        observation=["x"],
        reward=lambda observation, action: -(observation[..., 0] ** 2),
        reset=lambda random: {"q0": random.normal(size=1), "v0": [0.0]},
        scheme="livens-em",
    )
    env = lv.gym.Env(mass, **options)
    first, second = env.reset(seed=1)[0], env.reset(seed=2)[0]
    assert first != second and env.reset(seed=1)[0] == first
    many = lv.gym.VectorEnv(mass, 64, **options)
    starts, _ = many.reset(seed=3)
    assert len(np.unique(starts)) > 20
    np.testing.assert_array_equal(many.reset(seed=3)[0], starts)


def test_inputs_of_a_mechanism_and_angles_over_revolutions():
    mb = lv.Multibody()
    wheel = mb.cylinder("wheel", at=[0, 0, 0], length=0.1, radius=0.5, mass=2.0)
    axle = mb.revolute("axle", mb.ground, wheel, axis="z")
    mb.motor(axle, torque=mb.input("torque"), name="motor")
    mb.torsion_spring("spring", axle, stiffness=0.05)
    step = lv.prepare(mb.problem(), scheme="lie-em", h=0.01, redundant="remove")
    drive = step.drive(["torque"], ["axle.angle"])
    state = step.start()
    measure = step.measurement("axle.angle")
    for i in range(500):
        drive.inputs[:] = 1.0 if i < 300 else -0.2
        drive.advance()
        state = step.step(state, inputs={"torque": float(drive.inputs[0])})
        assert drive.outputs[0] == pytest.approx(measure(state)[0], abs=1e-9)
    assert drive.outputs[0] > 2 * np.pi
    many = lv.gym.VectorEnv(
        mb, 3, action="torque", observation="axle.angle", reward=lambda o, a: 0.0, dt=0.01, scheme="lie-em"
    )
    many.reset(seed=0)
    for i in range(500):
        observations, *_ = many.step(np.full((3, 1), 1.0 if i < 300 else -0.2))
    np.testing.assert_allclose(observations[:, 0], drive.outputs[0], atol=1e-8)
    with pytest.raises(lv.InputError, match="depends on the angle of joint 'axle' over revolutions"):
        lv.fmu(mb.problem(), "never.fmu", inputs=["torque"], scheme="lie-em", h=0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(action="motor.w"), "unknown input 'motor.w'"),
        (dict(observation=["hinge.angel"]), "unknown output 'hinge.angel'; did you mean 'hinge.angle'"),
        (dict(action=[]), "action must be names of parameters"),
        (dict(dt=0.0), "dt must be greater than 0"),
        (dict(observation=[]), "observation must be names of outputs"),
        (dict(reward=None), "reward must be a function"),
        (dict(reset=1.0), "reset must be a function"),
        (dict(dt=-1.0), "dt must be"),
        (dict(substeps=0), "substeps must be"),
        (dict(max_steps=0), "max_steps must be"),
        (dict(low=1.0, high=-1.0), "low < high"),
        (dict(low=[0.0, 1.0]), "low and high must be numbers"),
        (dict(scheme="taylor"), "taylor"),
    ],
)
@pytest.mark.parametrize("environment", ["Env", "VectorEnv"])
def test_bad_arguments(environment, arguments, words):
    number = {"num_envs": 2} if environment == "VectorEnv" else {}
    with pytest.raises(lv.InputError, match=words):
        getattr(lv.gym, environment)(cart_pole(), **number, **{**OPTIONS, **arguments})


@pytest.mark.parametrize(
    ("create", "words"),
    [
        (lambda mb: lv.gym.Env(mb, substep=2, **OPTIONS), "Env has no argument 'substep'; did you mean 'substeps'"),
        (lambda mb: lv.gym.VectorEnv(mb, 4, thread=2, **OPTIONS), "VectorEnv has no argument 'thread'.*'threads'"),
        (
            lambda mb: lv.prepare(mb.problem(), h=0.1).drive(input=["motor.u"]),
            "drive has no argument 'input'.*'inputs'",
        ),
    ],
)
def test_mistyped_arguments_are_named(create, words):
    with pytest.raises(TypeError, match=words):
        create(cart_pole())
