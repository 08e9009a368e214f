"""Colours and collision geometry of imported robots in the scene, the page of the viewer and exported files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens.scene.scene import Scene
from livens.viewer.payload import run_payload

URDF = """<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base">
    <visual><geometry><box size="1 1 0.1"/></geometry>
      <material name="dark"><color rgba="0.2 0.2 0.2 1"/></material></visual>
  </link>
  <link name="tip">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0.1 0 0"/><geometry><sphere radius="0.1"/></geometry><material name="red"/></visual>
    <visual><origin xyz="0.2 0 0"/><geometry><sphere radius="0.2"/></geometry><material name="dark"/></visual>
    <visual><origin xyz="0.3 0 0"/><geometry><sphere radius="0.3"/></geometry></visual>
    <visual><origin xyz="0.4 0 0"/><geometry><sphere radius="0.4"/></geometry>
      <material name="m"><color rgba="1 0 oops 1"/></material></visual>
    <collision><geometry><cylinder radius="0.5" length="1"/></geometry></collision>
  </link>
  <joint name="j" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/></joint>
</robot>"""

MJCF = """<mujoco>
  <asset><material name="steel" rgba="0.5 0.6 0.7 1"/><material name="checks" reflectance="0.3"/></asset>
  <default><default class="collision"><geom group="3" rgba="0 1 0 1"/></default></default>
  <worldbody>
    <geom type="plane" size="1 1 1" rgba="0.9 0.9 0.9 1"/>
    <body name="a"><joint name="j" axis="0 1 0"/>
      <geom pos="0.1 0 0" size="0.1" material="steel"/><geom pos="0.2 0 0" size="0.2" material="steel" rgba="0 0 1 1"/>
      <geom pos="0.3 0 0" size="0.3" material="checks"/><geom pos="0.4 0 0" size="0.4" rgba="1 1 1 0"/>
      <geom type="box" size="1 1 1" class="collision"/>
      <body name="b" pos="1 0 0"><joint name="k" axis="0 1 0"/><geom size="0.5" class="collision"/></body>
    </body>
  </worldbody>
</mujoco>"""


def robot(folder: Path, text: str, **options: bool) -> lv.Multibody:
    file = folder / "robot.xml"
    file.write_text(text)
    return (lv.Multibody.from_urdf if text is URDF else lv.Multibody.from_mjcf)(file, **options)


def colours(scene: Scene) -> dict[tuple[str, float], str | None]:
    """Colours of shapes by type and first size."""
    pose = scene.evaluate(np.zeros((1, 100)), np.zeros(1))
    return {
        (shape.shape_type, pose.size(shape, next(iter(shape.sizes)), 0.0)): shape.colour
        for shape in scene.shapes
        if shape.sizes
    }


def test_urdf_materials(tmp_path: Path) -> None:
    """Materials are defined in the robot, in the visual, or in an earlier visual; an invalid colour is noted."""
    mb = robot(tmp_path, URDF)
    assert colours(mb.system.scene) == {
        ("box", 1.0): "#333333",
        ("sphere", 0.1): "#ff0000",
        ("sphere", 0.2): "#333333",
        ("sphere", 0.3): None,
        ("sphere", 0.4): None,
    }
    assert any("a colour is not used" in note for note in mb.import_warnings)
    assert ("cylinder", 0.5) in colours(robot(tmp_path, URDF, show_collisions=True).system.scene)


def test_mjcf_materials(tmp_path: Path) -> None:
    """The colour of a geom comes before that of its material; later groups are drawn if there is nothing else."""
    expected = {
        ("ground", 2.0): "#e6e6e6",
        ("sphere", 0.1): "#8099b2",
        ("sphere", 0.2): "#0000ff",
        ("sphere", 0.3): None,
        ("sphere", 0.5): "#00ff00",
    }
    assert colours(robot(tmp_path, MJCF).system.scene) == expected
    everything = colours(robot(tmp_path, MJCF, show_collisions=True).system.scene)
    assert everything == expected | {("sphere", 0.4): "#ffffff", ("box", 2.0): "#00ff00"}


def test_colours_are_stored_and_shown(tmp_path: Path) -> None:
    mb = robot(tmp_path, URDF)
    scene = mb.system.scene
    data = json.loads(json.dumps(scene.to_json()))
    assert Scene.from_json(data, mb.system.n).shapes == scene.shapes
    run = mb.simulate(t_end=0.02, h=0.01)
    assert [shape.get("colour") for shape in run_payload(run)["shapes"]] == [shape.colour for shape in scene.shapes]
    data["shapes"][0][-1] = "red;} body {display: none"
    with pytest.raises(ValueError, match="invalid colour"):
        Scene.from_json(data, mb.system.n)


def test_colours_are_exported(tmp_path: Path) -> None:
    mb = robot(tmp_path, URDF)
    mb.to_mjcf(tmp_path / "exported.xml")
    exported = lv.Multibody.from_mjcf(tmp_path / "exported.xml")
    assert colours(exported.system.scene)["sphere", 0.1] == "#ff0000"
