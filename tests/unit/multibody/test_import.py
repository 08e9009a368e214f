"""Robots from files: their mass matrices, forces, poses and motion are those that MuJoCo has of them."""

import json
from pathlib import Path

import numpy as np
import pytest
from joint_space import JointSpace

import livens as lv

FOLDER = Path(__file__).parents[2] / "data" / "robots"
REFERENCES = json.loads((FOLDER / "references.json").read_text(encoding="utf-8"))
NAMES = [name for name in REFERENCES if name != "origin"]


def load(name):
    return lv.Multibody.from_urdf(FOLDER / name) if name.endswith("urdf") else lv.Multibody.from_mjcf(FOLDER / name)


#: MuJoCo names the three freedoms of a planar joint otherwise.
RENAMED = {"skid_TX": "skid_x", "skid_TY": "skid_y", "skid_RZ": "skid_turn"}


def joints_of(reference):
    return [{**joint, "name": RENAMED.get(joint["name"], joint["name"])} for joint in reference["joints"]]


@pytest.mark.parametrize("name", NAMES)
def test_equal_to_mujoco(name):
    """At random states: poses, coordinates of joints, mass matrix, bias and all other forces to 1e-10."""
    reference, mb = REFERENCES[name], load(name)
    joints = joints_of(reference)
    beside = [*mb.couplings, *mb.joints]
    beside = [one for one in (*(c for c, x in mb.couplings.items() if x.what == "coupling"), *reference["equalities"])
              if one in mb.couplings or one in mb.connections]
    space = JointSpace(mb, joints, beside)
    for state in reference["states"]:
        compare(mb, space, reference, joints, state)


def compare(mb, space, reference, joints, state):
    names = reference["bodies"]
    rotations = np.array(state["rotation"]).reshape(-1, 3, 3)
    q = space.coordinates(dict(zip(names, zip(np.array(state["position"]), rotations, strict=True), strict=True)))
    for part_name, centre, mass in zip(names, state["centre"], reference["masses"], strict=True):
        if part_name in mb.bodies:
            part = mb.bodies[part_name]
            own = q[[space.place[str(c)] for c in part.coordinates]]
            assert np.abs(own[:3] - centre).max() < 1e-10 and abs(part.element.mass - mass) < 1e-10 * mass
    for joint in joints:
        if joint["kind"] in ("hinge", "slide"):
            gap = space.measured(q)[joint["name"]] - (state["qpos"][joint["qpos"]] - joint["ref"])
            assert abs((gap + np.pi) % (2 * np.pi) - np.pi) < 1e-10, joint
    mass, bias, passive, gaps = space.at(q, np.array(state["qvel"]))
    assert np.abs(gaps).max(initial=0.0) < 1e-10
    for ours, theirs in ((mass, state["mass"]), (bias, state["bias"]), (passive, state["passive"])):
        size = max(1.0, float(np.abs(theirs).max()))
        assert np.abs(ours - np.array(theirs)).max() < 1e-10 * size
