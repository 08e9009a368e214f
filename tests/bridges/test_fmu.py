"""FMUs: validation by FMPy, agreement with livens, changing inputs, saved states, singular positions, errors."""

import numpy as np
import pytest

import livens as lv
from livens.run.bridges.fmu import export, exported_step

pytest.importorskip("ziglang")
fmpy = pytest.importorskip("fmpy")
from fmpy.fmi2 import FMU2Slave  # noqa: E402
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

    def __init__(self, path, **parameters):
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
        self.set(**parameters)
        self.fmu.exitInitializationMode()
        self.time = 0.0

    def set(self, **values):
        for name, value in values.items():
            self.fmu.setFloat64([self.references[name]], [value])

    def step(self, size=H, count=1, **values):
        self.set(**values)
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


def test_an_fmu_of_version_2_is_the_same_motion(tmp_path):
    path = lv.fmu(
        cart_pole(), tmp_path / "cart.fmu", inputs={"u": "force"}, tunable=["drag"], outputs=["x", "a"],
        scheme="livens-em", h=H, start=START, version="2.0",
    )  # fmt: skip
    assert validate_fmu(str(path)) == []
    description = fmpy.read_model_description(str(path), validate=True)
    assert description.fmiVersion == "2.0" and description.coSimulation.providesDirectionalDerivative
    got = fmpy.simulate_fmu(
        str(path), stop_time=3.0, step_size=H, output_interval=H, start_values={"force": 0.2, "drag": 0.3}
    )
    run = lv.simulate(cart_pole(), **START, scheme="livens-em", h=H, t_end=3.0, parameters={"u": 0.2, "drag": 0.3})
    np.testing.assert_allclose(np.array([got["x"], got["a"]]).T, run.q, atol=1e-12)


def test_states_and_derivatives_of_version_2(tmp_path):
    path = lv.fmu(
        cart_pole(),
        tmp_path / "c.fmu",
        inputs=["u"],
        outputs=["x"],
        scheme="livens-em",
        h=H,
        start=START,
        version="2.0",
    )
    description = fmpy.read_model_description(str(path))
    slave = FMU2Slave(
        guid=description.guid,
        unzipDirectory=fmpy.extract(str(path)),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="one",
    )
    force, x = (variable.valueReference for variable in description.modelVariables[1:])
    slave.instantiate()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    state = slave.serializeFMUstate(slave.getFMUstate())
    ends = []
    for value in (1e-4, -1e-4, 0.0):
        slave.setFMUstate(slave.deSerializeFMUstate(state))
        slave.setReal([force], [value])
        slave.doStep(0.0, 10 * H)
        ends += slave.getReal([x])
    (derivative,) = slave.getDirectionalDerivative([x], [force], [1.0])
    assert derivative == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-6) and abs(derivative) > 1e-4


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
    monkeypatch.setattr(exported_step, "CONVERGED", -99)
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


def bob():
    return lv.System(
        "x y",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, k: 9.81 * k.m * q[1],
        constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
        forces=lambda v, k: [k.u - k.d * v[0], -k.d * v[1]],
        parameters=dict(m=1.0, l=1.0, u=0.0, d=0.1),
    )


BOB = dict(q0=[0.6, -0.8], v0=[0.8, 0.6])


@pytest.fixture(scope="module")
def bob_fmu(tmp_path_factory):
    options = dict(outputs=["x", "y", "kinetic_energy"], scheme="livens-em", h=H, start=BOB)
    return lv.fmu(bob(), tmp_path_factory.mktemp("fmu") / "bob.fmu", inputs=["u"], tunable=["m", "l", "d"], **options)


@pytest.mark.parametrize("parameters", [{"m": 2.0}, {"l": 1.5}, {"l": 0.7, "m": 3.0, "u": 0.5}])
def test_the_start_follows_masses_and_lengths(bob_fmu, parameters):
    """The nearest consistent start, as `lv.simulate(project=True)` finds it, and its momenta."""
    slave, rows = Slave(bob_fmu, **parameters), []
    for _ in range(100):
        rows.append(slave.get("x", "y", "kinetic_energy"))
        slave.step()
    run = lv.simulate(bob(), **BOB, scheme="livens-em", h=H, t_end=0.99, parameters=parameters, project=True)
    np.testing.assert_allclose(np.array(rows)[:, :2], run.q, atol=1e-12)
    np.testing.assert_allclose(np.array(rows)[:, 2], run.observe("kinetic_energy"), atol=1e-11)


def test_a_reset_fmu_has_the_exported_start(bob_fmu):
    slave = Slave(bob_fmu, l=2.0)
    assert np.hypot(*slave.get("x", "y")) == pytest.approx(2.0, abs=1e-12)
    slave.fmu.reset()
    assert slave.get("x", "y") == pytest.approx([0.6, -0.8], abs=1e-15)


@pytest.mark.parametrize("name", ["u", "d", "l", "m"])
def test_directional_derivatives_equal_differences(bob_fmu, name):
    slave, value, outputs = Slave(bob_fmu), dict(u=0.0, d=0.1, l=1.0, m=1.0)[name], ("x", "y", "kinetic_energy")
    slave.step(count=50)
    saved, time, rows = slave.fmu.getFMUState(), slave.time, []
    unknowns, known = [slave.references[output] for output in outputs], [slave.references[name]]
    slave.step(5 * H)
    derivative = slave.fmu.getDirectionalDerivative(unknowns, known, [1.0])
    for change in (1e-5, -1e-5):
        slave.fmu.setFMUState(saved)
        slave.time = time
        slave.step(5 * H, **{name: value + change})
        rows.append(slave.get(*outputs))
    np.testing.assert_allclose(derivative, (np.array(rows[0]) - rows[1]) / 2e-5, rtol=1e-6, atol=1e-8)
    assert np.abs(derivative).max() > 1e-3


def test_the_start_of_a_mechanism_follows_masses_and_lengths(tmp_path):
    """Another mass and another attachment of the hinge: equal to the mechanism that is built with them."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=[0, 0, 0], axis="y")
    mb.initial(hinge, rate=1.0)
    problem = mb.problem()
    options = dict(scheme="lie-em", h=H)
    outputs = ["hinge.angle", "kinetic_energy", "constraint"]
    path = lv.fmu(problem, tmp_path / "arm.fmu", tunable=["arm.mass", "hinge.X"], outputs=outputs, **options)
    slave = Slave(path, **{"arm.mass": 2.0, "hinge.X[2]": 0.25})
    rows = [slave.get("hinge.angle", "kinetic_energy")]
    for _ in range(50):
        slave.step()
        rows.append(slave.get("hinge.angle", "kinetic_energy"))
    run = lv.simulate(
        problem, parameters={"arm.mass": 2.0, "hinge.X": [0, 0, 0.25]}, **options, t_end=0.5, project=True,
        redundant="remove",
    )  # fmt: skip
    np.testing.assert_allclose(np.array(rows)[:, 0], run["hinge.angle"], atol=1e-9)
    np.testing.assert_allclose(np.array(rows)[:, 1], run.observe("kinetic_energy"), rtol=1e-8)
    assert max(np.abs(slave.get(*(name for name in slave.references if name.startswith("constraint"))))) < 1e-12


def test_a_start_that_is_not_computed_is_refused(tmp_path):
    model = lv.FirstOrder(
        "x",
        rhs=lambda x, y: [y[0]],
        algebraic="y",
        constraints=lambda x, y, k: [y[0] + k.c * x[0]],
        parameters=dict(c=1.0),
    )
    with pytest.raises(lv.InputError, match="'c' cannot be tunable: the initial state depends on it"):
        lv.fmu(model, tmp_path / "dae.fmu", tunable=["c"], scheme="radau-iia-2", h=H, start=dict(x0=[1.0]))


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
        (dict(version="1.0"), "version"),
        (dict(version="2.0", platforms=["aarch64-linux"]), "FMI 2.0 has no platform 'aarch64-linux'"),
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
