"""Mechanisms in scenario files: the same motion as in Python, resumed, changed, and refused with line and field."""

import numpy as np
import pytest

import livens as lv
from livens.problems.slider_crank import slider_crank_mechanism
from livens.scenario.templates import MECHANISM

CRANK = MECHANISM.format(file="crank.yaml")

#: One of nearly everything, small.
MUCH = """
gravity: [0, 0, -9.81]
bodies:
  arm: {shape: rod, a: [0, 0, 0], b: [1, 0, 0], mass: 1, points: {eye: [0.5, 0, 0]}}
  wheel: {shape: cylinder, at: [2, 0, 0], axis: y, length: 0.1, radius: 0.2, mass: 1}
  block: {mass: 2, inertia: [0.1, 0.1, 0.1], position: [3, 0, 0], visual: {box: [0.2, 0.2, 0.2]}}
  bead: {shape: particle, at: [4, 0, 0], mass: 1}
  load: {shape: sphere, at: [1.5, 0, -1], radius: 0.1, mass: 0.5}
joints:
  hinge: {type: revolute, between: [ground, arm], at: arm.a, axis: y}
  axle: {type: revolute, between: [ground, wheel], axis: y}
  slide: {type: prismatic, between: [ground, block], axis: x}
  wire: {type: point_on_curve, between: [ground, bead], curve: ["z - (x - 4)**2", y]}
  teeth: {type: gear, joints: [hinge, axle], ratio: -2}
  rack: {type: rack, joints: [axle, slide], radius: 0.2}
forces:
  coil: {type: spring, between: [arm.eye, [0.5, 0, 1]], stiffness: 30}
  twist: {type: torsion_spring, joint: hinge, stiffness: 5}
  grease: {type: torsion_damper, joint: axle, damping: 0.1}
  rotor: {type: armature, joint: hinge, inertia: 0.2}
  stop: {type: limit, joint: slide, lower: -0.2, stiffness: 1e4}
  dry: {type: friction, joint: slide, force: 0.1}
  rope: {type: cable, through: [arm.b, [1.5, 0, 0.5], load], stiffness: 500}
  push: {type: wrench, body: block, force: ["0.2*sin(t)", 0, 0]}
initial:
  bead: {velocity: [1, 0, 0]}
h: 0.01
t_end: 0.3
"""


def test_the_same_motion_as_in_python():
    written = lv.scenario.parse(CRANK)
    run = written.run(t_end=0.2)
    drawn = slider_crank_mechanism().simulate(t_end=0.2, h=1e-3)
    assert run.info.scheme == "lie-em"
    assert np.abs(run.q - drawn.q).max() < 1e-13
    assert run["tip.position"].shape == (201, 3) and run["hinge.angle"][0] == pytest.approx(np.pi / 4)
    assert written.mechanism.check().mobility == 1


def test_a_parameter_is_changed():
    before, after = (lv.scenario.parse(CRANK).changed(values).run(t_end=0.2) for values in ({}, {"c": 5.0}))
    assert abs(before["hinge.angle"][-1] - after["hinge.angle"][-1]) > 1e-3
    with pytest.raises(lv.InputError, match="no parameter 'd'"):
        lv.scenario.parse(CRANK).changed({"d": 1.0})


def test_runs_of_files_resume_bit_for_bit(tmp_path):
    """The file holds the description of the mechanism: nothing else is needed to go on, and to ask by name."""
    half = tmp_path / "half.h5"
    lv.scenario.parse(CRANK).run(t_end=0.1, out=half)
    on = lv.resume(half, t_end=0.2)
    whole = lv.scenario.parse(CRANK).run(t_end=0.2)
    assert np.array_equal(on.q[-1], whole.q[-1]) and np.array_equal(on.v[-1], whole.v[-1])
    again = lv.load(half)
    assert again["pin.force"].shape == (201, 3) and len(again.scene.shapes) > 3


def test_much_in_one_file():
    """Joints, couplings and forces of many kinds; the energy balance is exact, no tooth is lost."""
    scenario = lv.scenario.parse(MUCH)
    report = scenario.mechanism.check()
    assert (report.bodies, report.mobility) == (5, 1 + 1 + 6)
    run = scenario.run()
    energy = run["total_energy"] - run.supplied_energy + run.dissipated_energy
    assert np.ptp(energy) < 1e-12 * 20 and run.dissipated_energy[-1] > 0
    assert np.abs(run["teeth.violation"]).max() < 1e-14 and np.abs(run["rack.violation"]).max() < 1e-14
    assert run["slide.position"][-1] == pytest.approx(-0.4 * run["hinge.angle"][-1], abs=1e-14)
    both = lv.scenario.parse(MUCH.replace("h: 0.01", "h: 0.01\nvelocity_level: true")).problem()
    assert both.scheme == "lie-ggl"


def without(text, old, new=""):
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            without(CRANK, "type: revolute, between: [ground", "type: revolut, between: [ground"),
            "line .*joints.hinge.type.*did you mean 'revolute'",
        ),
        (
            without(CRANK, "[rod, slider]", "[rod, sldier]"),
            r"joints\.wrist\.between\[1\]: unknown body 'sldier'; did you mean 'slider'",
        ),
        (without(CRANK, "joint: hinge", "joint: hing"), "forces.motor.joint.*did you mean 'hinge'"),
        (without(CRANK, "at: crank.b", "at: crank.c"), "has no point 'c'"),
        (without(CRANK, "mass: 0.5", "mass: -1"), "bodies.slider: .*mass"),
        (without(CRANK, "mass: 0.5", "mess: 1"), "a box has no 'mess'; did you mean 'mass'"),
        (without(CRANK, ", mass: 0.5", ""), "the field 'mass' of a box is missing"),
        (without(CRANK, "0.1*rate", "0.1*rat"), "unknown name 'rat'; did you mean 'rate'"),
        (without(CRANK, "angle: 45*deg", "angle: 90"), "initial.hinge: .*In degrees"),
        (without(CRANK, "angle: 45*deg", "angel: 1"), "did you mean 'angle'"),
        (without(CRANK, "  hinge: {angle", "  hinges: {angle"), "unknown body or joint 'hinges'; did you mean 'hinge'"),
        (without(CRANK, "axis: x", "axis: [0, 0, 0]"), "not all zero"),
        (without(CRANK, "shape: box", "shape: bax"), "did you mean 'box'"),
        (without(CRANK, "gravity: [0, 0, -9.81]", "gravity: down"), "gravity"),
        (without(CRANK, "point: rod.b", "pint: rod.b"), "sensors.tip.*unknown field 'pint'"),
        (without(CRANK, "crank: {shape: rod,", "crank: [shape, rod,").replace("mass: 1}", "mass]"), "must have fields"),
        (without(CRANK, "parameters: {c: 0.5}", "parameters: {deg: 0.5}"), "'deg' cannot be the name"),
        (without(MUCH, "ratio: -2", "ratio: 0"), "is zero"),
        (without(MUCH, 'curve: ["z - (x - 4)**2", y]', "curve: z"), "must return 2 numbers"),
        (without(MUCH, "visual: {box: [0.2, 0.2, 0.2]}", "visual: {bax: [1]}"), "not a shape with 1 sizes"),
        (without(MUCH, "axis: y, length", "axis: y, crossed: maybe, length"), "has no 'crossed'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, words):
    with pytest.raises(lv.InputError, match=words):
        lv.scenario.parse(text, "a.yaml")


def test_init_writes_a_mechanism_that_runs(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from livens.cli import app

    monkeypatch.chdir(tmp_path)
    outcome = CliRunner().invoke(app, ["init", "crank.yaml", "--mechanism"])
    assert outcome.exit_code == 0, outcome.output
    assert lv.scenario.load(tmp_path / "crank.yaml").mechanism.check().redundant == 1


def test_descriptions_in_files_of_earlier_versions_use_former_names():
    from livens.results.storage.former_names import present_description

    former = {
        "bodies": {"block": {"mass": "1", "look": {"box": [1, 1, 1]}}},
        "start": {"guide": {"speed": "0.1", "hold": "false"}, "block": {"velocity": [1, 0, 0]}},
    }
    assert present_description(former) == {
        "bodies": {"block": {"mass": "1", "visual": {"box": [1, 1, 1]}}},
        "initial": {"guide": {"velocity": "0.1", "required": "false"}, "block": {"velocity": [1, 0, 0]}},
    }
