"""Robots from URDF and MJCF files in scenarios and on the command line, and what else mechanisms may say there."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import livens as lv
from livens.cli import app

ROBOTS = Path(__file__).parents[2] / "data" / "robots"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("arm.urdf", "four_bar.xml"):
        shutil.copy(ROBOTS / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_robot_in_a_scenario_is_the_robot_of_its_file(folder):
    (folder / "deeper").mkdir()
    text = "robot: ../arm.urdf\nbase: fixed\nlimit_stiffness: 1e4\ngravity: [0, 0, -3.7]\n"
    (folder / "deeper" / "run.yaml").write_text(text + "t_end: 0.02\nh: 2e-3\n")
    scenario = lv.scenario.load(folder / "deeper" / "run.yaml")
    drawn = scenario.mechanism
    assert drawn.gravity.tolist() == [0, 0, -3.7] and scenario.problem().h == 2e-3
    same = lv.Multibody.from_urdf(folder / "arm.urdf", limit_stiffness=1e4)
    assert list(drawn.joints) == list(same.joints)
    np.testing.assert_array_equal(drawn.assembly.position, same.assembly.position)


def test_robots_on_the_command_line(folder):
    answer = CliRunner().invoke(app, ["run", "four_bar.xml", "--t-end", "0.01", "--json", "--out", "bar.h5"])
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["steps"] == 10
    # the file knows which robot it was
    run = lv.load("bar.h5")
    assert run.system.n == len(run.q[0]) and "bodies" not in run.info.problem_options["description"]
    more = lv.resume("bar.h5", t_end=0.02)
    assert more.t[-1] == pytest.approx(0.02)
    film = CliRunner().invoke(app, ["view", "four_bar.xml", "--out", "bar.html", "--frames", "5"])
    assert film.exit_code == 0 and (folder / "bar.html").stat().st_size > 1000, film.output


@pytest.mark.parametrize(
    "text, words",
    [
        ("robot: arm.stl", "end in .urdf"),
        ("robot: missing.urdf", "missing.urdf"),
        ("robot: arm.urdf\nplanar: true", "three-dimensional"),
        ("robot: four_bar.xml\nbase: floating", "base is for URDF files only"),
        ("robot: arm.urdf\nbase: flying", "fixed"),
        ("robot: arm.urdf\nproblem: pendulum", "not several"),
    ],
)
def test_robots_that_there_are_not(folder, text, words):
    (folder / "run.yaml").write_text(text + "\n")
    with pytest.raises(lv.InputError, match=words):
        lv.scenario.load(folder / "run.yaml")


MECHANISM = """
gravity: [0, 0, -9.81]
bodies:
  arm: {shape: rod, a: [0, 0, 0], b: [1, 0, 0], mass: 1,
    points: {tool: {at: [1, 0, 0], axes: [[0, -1, 0], [1, 0, 0], [0, 0, 1]]}}}
  disc: {shape: cylinder, at: [0, 1, 0], axis: y, length: 0.1, radius: 0.2, mass: 3, rotor: true}
joints:
  hinge: {type: revolute, between: [ground, arm], at: [0, 0, 0], axis: y}
  shaft: {type: revolute, between: [ground, disc], axis: y}
  belt: {type: couple, joints: [hinge, shaft], weights: [2, -1]}
forces:
  servo: {type: pid, joint: hinge, kp: 60, kd: 12, ki: 80, reference: 0.3*sin(t)}
  stop: {type: limit, joint: hinge, lower: -30*deg, upper: 45*deg, stiffness: 1e4, restitution: 0.5}
sensors:
  tip: {point: disc, relative_to: arm.tool}
h: 1e-3
t_end: 1
"""


def test_all_that_can_be_drawn_in_python_can_be_written():
    drawn = lv.scenario.parse(MECHANISM).mechanism
    same = lv.Multibody(gravity=[0, 0, -9.81])
    arm = same.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1)
    arm.frame("tool", at=[1, 0, 0], axes=[[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    disc = same.cylinder("disc", at=[0, 1, 0], axis="y", length=0.1, radius=0.2, mass=3, rotor=True)
    hinge = same.revolute("hinge", same.ground, arm, at=[0, 0, 0], axis="y")
    shaft = same.revolute("shaft", same.ground, disc, axis="y")
    same.couple("belt", (hinge, 2.0), (shaft, -1.0))
    same.pid(hinge, kp=60, kd=12, ki=80, reference=lambda t: 0.3 * lv.math.sin(t), name="servo")
    same.limit("stop", hinge, lower=-30 * lv.deg, upper=45 * lv.deg, stiffness=1e4, restitution=0.5)
    same.sensor("tip", disc, relative_to=arm.tool)
    assert drawn.system.fingerprint == same.system.fingerprint
    assert list(drawn.system.quantities) == list(same.system.quantities)
    assert [stop.name for stop in drawn.system.model_events] == [stop.name for stop in same.system.model_events]
    for wrong, words in (
        (("[2, -1]", "[2]"), "one number for each"),
        (("at: [1, 0, 0], axes", "place: [1, 0, 0], axes"), "a frame must have"),
    ):
        with pytest.raises(lv.InputError, match=words):
            lv.scenario.parse(MECHANISM.replace(*wrong))
