"""Adaptive steps on the command line and in scenario files: the words and messages of `livens.simulate`."""

import numpy as np
import pytest
from typer.testing import CliRunner

import livens as lv
from livens.cli import app
from livens.schemes.scaling.named import named_scaling

CALL = "speed(1.0, exponent=1/3)"
REVERSIBLE = ["run", "double-pendulum", "--adaptive", "reversible", "--h", "0.01", "--quiet", "--no-accuracy"]


def command(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def message(arguments):
    found = command(*arguments)
    assert found.exit_code != 0
    return str(found.exception)


def test_reversible_steps_on_the_command_line(tmp_path):
    file, options = tmp_path / "run.h5", ["--scaling", CALL]
    assert command(*REVERSIBLE, *options, "--t-end", 0.3, "--out", file).exit_code == 0
    assert lv.load(file).info.scaling == "speed(offset=1.0, exponent=0.3333333333333333)"
    assert command(*REVERSIBLE, *options, "--t-end", 0.6, "--out", file, "--resume").exit_code == 0
    scaling = lv.scaling.speed(1.0, exponent=1 / 3)
    run = lv.simulate(lv.problems.load("double-pendulum"), adaptive="reversible", scaling=scaling, h=0.01, t_end=0.6)
    np.testing.assert_array_equal(lv.load(file).q, run.q)
    other = command(*REVERSIBLE, "--scaling", "speed(2.0)", "--t-end", 0.9, "--out", file, "--resume")
    assert "--scaling cannot be changed" in str(other.exception)
    # the file contains the scaling
    assert lv.resume(file, t_end=0.7).t[-1] == 0.7
    assert "scaling='speed(" in run.info.made["again_in_python"]
    assert "--scaling" in run.info.made["again_on_the_command_line"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "needs a scaling function"),
        (["--scaling", "sped(1.0)"], "unknown scaling 'sped'; did you mean 'speed'"),
        (["--scaling", "speed(a=1)"], r"wrong arguments; allowed: speed(offset: float = 0.0"),
        (["--scaling", "speed(-1)"], "offset must"),
        (["--scaling", "curvature(1/0, 1)"], "divided by zero"),
        (["--scaling", "speed(open('x'))"], "must be numbers"),
        (["--scaling", "1/(1 + q[0])"], "functions of the coordinates are given in Python"),
        (["--scaling", "speed(1.0)", "--tolerance", "1e-3"], "remove tolerance= and control="),
        (["--scaling", "speed(1.0)", "--adaptive", "classical"], "adaptive must be 'reversible'"),
    ],
)
def test_messages_of_the_command_line(options, expected):
    assert expected in message([*REVERSIBLE, *options])


SCENARIO = """
gravity: [0, 0, -9.81]
bodies:
  rod: {shape: rod, a: [0, 0, 0], b: [0, 0, -1], mass: 1}
joints:
  hinge: {type: revolute, between: [ground, rod], at: [0, 0, 0], axis: y}
initial:
  hinge: {angle: 2, rate: 0}
t_end: 0.5
"""


def test_adaptive_steps_of_scenarios():
    run = lv.scenario.parse(SCENARIO + f"h: 0.02\nadaptive: reversible\nscaling: {CALL}\n").run()
    assert run.info.scheme == "step-density:lie-em" and run.summary.max_energy_drift < 1e-12
    assert run.step_size[1:-1].max() > 1.1 * run.step_size[1:-1].min()
    run = lv.scenario.parse(SCENARIO + "tolerance: 1e-3\n").run()
    assert run.info.control["tolerance"] == 1e-3
    force = lv.scenario.parse(SCENARIO + "h: 0.02\nadaptive: reversible\nscaling: of('hinge.force', reference=5)\n")
    assert force.run().statistics.steps > 25


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("h: 0.02\nadaptive: classical", "adaptive: must be reversible, got 'classical'"),
        ("h: 0.02\nadaptive: reversible\nscaling: sped(1.0)", "scaling: unknown scaling 'sped'; did you mean 'speed'"),
        ("h: 0.02\nadaptive: reversible", "needs a scaling function"),
        ("tolerance: 1e-3\nadaptive: reversible\nscaling: speed(1.0)", "remove tolerance= and control="),
        ("h: 0.02\nscaling: speed(1.0)", "scaling"),
    ],
)
def test_messages_of_scenarios(lines, expected):
    with pytest.raises(lv.InputError) as error:
        lv.scenario.parse(SCENARIO + lines + "\n").run()
    assert expected in str(error.value)


@pytest.mark.parametrize(
    "scaling",
    [
        lv.scaling.speed(0.1, exponent=1 / 3),
        lv.scaling.curvature(0.2, 1 / 7),
        lv.scaling.of("pin.force", reference=10.0),
        lv.scaling.stiffness(1.0, smoothing_length=0.02),
        lv.scaling.kinetic(),
        lv.scaling.potential(1.5),
        lv.scaling.inverse_lagrangian(),
    ],
)
def test_the_text_of_a_scaling_is_the_scaling(scaling):
    assert named_scaling(scaling.call_text) == scaling
