"""FMUs: validation by FMPy, agreement with livens, changing inputs, saved states, singular positions, errors."""

import numpy as np
import pytest

import livens as lv
from livens.run.bridges.fmu import export

pytest.importorskip("ziglang")
fmpy = pytest.importorskip("fmpy")
from fmpy.fmi3 import FMU3Slave  # noqa: E402
from fmpy.validation import validate_fmu  # noqa: E402

H = 1e-2


def cart_pole():
    return lv.System(
        "x a",
        kinetic=lambda q, v, k: 0.55 * v[0] ** 2 + 0.05 * v[0] * v[1] * np.cos(q[1]) + 0.0125 * v[1] ** 2,
        potential=lambda q: 0.4905 * np.cos(q[1]),
        forces=lambda v, k: [k.u - k.drag * v[0], 0.0],
        parameters=dict(u=0.0, drag=0.1),
    )


START = dict(q0=[0.0, 0.3], v0=[0.0, 0.0])


@pytest.fixture(scope="module")
def cart(tmp_path_factory):
    path = tmp_path_factory.mktemp("fmu") / "cart pole.fmu"
    return lv.fmu(
        cart_pole(), path, inputs={"u": "force"}, tunable=["drag"], outputs=["x", "a", "generalized_energy"],
        scheme="livens-em", h=H, start=START,
    )  # fmt: skip


class Slave:
    """Instance of an FMU with values by name."""

    def __init__(self, path):
        description = fmpy.read_model_description(str(path))
        identifier = description.coSimulation.modelIdentifier
        self.fmu = FMU3Slave(
            guid=description.guid,
            unzipDirectory=fmpy.extract(str(path)),
            modelIdentifier=identifier,
            instanceName="one",
        )
        self.references = {variable.name: variable.valueReference for variable in description.modelVariables}
        self.fmu.instantiate()
        self.fmu.enterInitializationMode(startTime=0.0)
        self.fmu.exitInitializationMode()
        self.time = 0.0

    def step(self, size=H, count=1, **values):
        for name, value in values.items():
            self.fmu.setFloat64([self.references[name]], [value])
        for _ in range(count):
            self.fmu.doStep(self.time, size)
            self.time += size

    def get(self, *names):
        return self.fmu.getFloat64([self.references[name] for name in names])


def test_the_fmu_is_valid(cart):
    assert validate_fmu(str(cart)) == []
    description = fmpy.read_model_description(str(cart), validate=True)
    causality = {variable.name: variable.causality for variable in description.modelVariables}
    assert causality == dict(
        time="independent", force="input", drag="parameter", x="output", a="output", generalized_energy="output"
    )


def test_a_run_equals_that_of_livens(cart):
    got = fmpy.simulate_fmu(
        str(cart), start_time=0, stop_time=5, step_size=H, output_interval=H, start_values={"force": 0.2}
    )
    run = lv.simulate(cart_pole(), **START, scheme="livens-em", h=H, t_end=5.0, parameters={"u": 0.2})
    np.testing.assert_allclose(np.array([got["x"], got["a"]]).T, run.q, atol=1e-12)
    np.testing.assert_allclose(got["generalized_energy"], run.observe("generalized_energy"), atol=1e-12)


def test_inputs_change_between_steps(cart):
    model, slave = cart_pole(), Slave(cart)
    step = lv.prepare(model, scheme="livens-em", h=H)
    state, function = step.start(**START), step.casadi_function()
    values = {name: getattr(state, name) for name in function.name_in() if name not in ("t", "h", "k")}
    for i in range(200):
        force = 0.5 * np.sin(0.3 * i)
        slave.step(force=force, drag=0.2)
        after = function(**values, t=i * H, h=H, k=model.parameter_vector({"u": force, "drag": 0.2}))
        values = {name: after[f"{name}_next"] for name in values}
        np.testing.assert_allclose(slave.get("x", "a"), np.array(values["q"]).ravel(), atol=1e-11)


def test_states_are_saved_and_restored_bit_for_bit(cart):
    slave = Slave(cart)
    slave.step(count=50, force=0.1)
    saved, time = slave.fmu.getFMUState(), slave.time
    data = slave.fmu.serializeFMUState(saved)
    slave.step(count=100)
    first = slave.get("x", "a", "time")
    slave.fmu.setFMUState(saved)
    slave.time = time
    slave.step(count=100)
    assert slave.get("x", "a", "time") == first
    other = Slave(cart)
    other.fmu.setFMUState(other.fmu.deserializeFMUState(data))
    other.time = time
    other.step(count=100)
    assert other.get("x", "a", "time") == first


def test_communication_steps(cart):
    ten, single, uneven = Slave(cart), Slave(cart), Slave(cart)
    ten.step(10 * H, 10)
    single.step(H, 100)
    assert ten.get("x", "a") == single.get("x", "a")
    uneven.step(2.5 * H, 40)  # three steps each
    np.testing.assert_allclose(uneven.get("x", "a"), single.get("x", "a"), atol=1e-2)


def test_unknown_values_are_refused(cart):
    slave = Slave(cart)
    with pytest.raises(Exception, match="fmi3SetFloat64"):
        slave.fmu.setFloat64([slave.references["x"]], [1.0])


def test_steps_by_dense_elimination(tmp_path, monkeypatch):
    """Steps that the static pivot order does not solve: here all of them, because no status counts as converged."""
    monkeypatch.setattr(export, "CONVERGED", -99)
    path = lv.fmu(cart_pole(), tmp_path / "dense.fmu", outputs=["x", "a"], scheme="livens-em", h=H, start=START)
    got = fmpy.simulate_fmu(str(path), start_time=0, stop_time=5, step_size=H, output_interval=H)
    run = lv.simulate(cart_pole(), **START, scheme="livens-em", h=H, t_end=5.0)
    np.testing.assert_allclose(np.array([got["x"], got["a"]]).T, run.q, atol=1e-10)


def test_angles_are_followed_over_revolutions(tmp_path):
    mb = lv.Multibody()
    wheel = mb.cylinder("wheel", at=[0, 0, 0], length=0.1, radius=0.5, mass=2)
    axle = mb.revolute("axle", mb.ground, wheel, axis="z")
    mb.motor(axle, torque=lambda t, angle, rate, k: k.u, parameters=dict(u=1.0), name="motor")
    options = dict(scheme="lie-em", h=H)
    path = lv.fmu(mb.problem(), tmp_path / "wheel.fmu", inputs=["motor.u"], outputs=["axle.angle"], **options)
    slave = Slave(path)
    slave.step(count=600)
    run = mb.simulate(scheme="lie-em", h=H, t_end=6.0)
    assert run["axle.angle"][-1] > 4 * np.pi
    assert slave.get("axle.angle")[0] == pytest.approx(run["axle.angle"][-1], abs=1e-10)


def test_singular_positions(tmp_path):
    problem = lv.problems.load("double-four-bar")
    names = list(problem.model.coordinates)[:6]
    path = lv.fmu(problem, tmp_path / "bars.fmu", outputs=names)
    got = fmpy.simulate_fmu(str(path), start_time=0, stop_time=10, step_size=problem.h, output_interval=problem.h)
    run = lv.simulate(problem, t_end=10.0)
    np.testing.assert_allclose(np.array([got[name] for name in names]).T, run.q[:, :6], atol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(inputs=["force"]), "unknown input 'force'"),
        (dict(outputs=["y"]), "unknown output 'y'"),
        (dict(platforms=["x86_64-bsd"]), "unknown platform 'x86_64-bsd'"),
        (dict(scheme="taylor"), "scheme 'taylor' cannot be exported"),
        (dict(h=None), "h is missing"),
    ],
)
def test_bad_arguments(arguments, words, tmp_path):
    options = dict(scheme="livens-em", h=H, start=START)
    with pytest.raises(lv.InputError, match=words):
        lv.fmu(cart_pole(), tmp_path / "bad.fmu", **{**options, **arguments})
    assert not (tmp_path / "bad.fmu").exists()


def test_a_missing_compiler_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(export.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(lv.InputError, match=r"livens\[fmu\]"):
        lv.fmu(cart_pole(), tmp_path / "bad.fmu", scheme="livens-em", h=H, start=START)


def test_the_command(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from livens import cli

    monkeypatch.chdir(tmp_path)
    cli._commands()
    done = CliRunner().invoke(cli.app, ["export-fmu", "simple-pendulum", "--output", "x", "--h", "0.01"])
    assert done.exit_code == 0, done.output
    assert validate_fmu(str(tmp_path / "simple-pendulum.fmu")) == []
