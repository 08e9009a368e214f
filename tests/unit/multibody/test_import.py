"""Robots from files: their mass matrices, forces, poses and motion are those that MuJoCo has of them."""

import functools
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from joint_space import JointSpace

import livens as lv

FOLDER = Path(__file__).parents[2] / "data" / "robots"
REFERENCES = json.loads((FOLDER / "references.json").read_text(encoding="utf-8"))
NAMES = [name for name in REFERENCES if name != "origin"]
#: MuJoCo names the three freedoms of a planar joint otherwise.
RENAMED = {"skid_TX": "skid_x", "skid_TY": "skid_y", "skid_RZ": "skid_turn"}


def load(name):
    return lv.Multibody.from_urdf(FOLDER / name) if name.endswith("urdf") else lv.Multibody.from_mjcf(FOLDER / name)


@functools.cache
def seen_from_joints(name):
    """The mechanism, and its joint space without what closes loops and couples joints, as MuJoCo's matrices are."""
    reference, mb = REFERENCES[name], load(name)
    joints = [{**joint, "name": RENAMED.get(joint["name"], joint["name"])} for joint in reference["joints"]]
    couplings = [one for one, coupling in mb.couplings.items() if coupling.coupling_type == "coupling"]
    closures = [one for one in reference["equalities"] if one in mb.connections]
    return mb, JointSpace(mb, joints, [*couplings, *closures])


def coordinates(space, reference, state):
    rotations = np.array(state["rotation"]).reshape(-1, 3, 3)
    poses = zip(np.array(state["position"]).reshape(-1, 3), rotations, strict=True)
    return space.coordinates(dict(zip(reference["bodies"], poses, strict=True)))


def compare(name, reference, state):
    """Poses, coordinates of joints, mass matrix, bias and all other forces; returns how many bodies were compared."""
    mb, space = seen_from_joints(name)
    q, count = coordinates(space, reference, state), 0
    for body, centre, mass in zip(reference["bodies"], state["centre"], reference["masses"], strict=True):
        part = mb.bodies[body]
        own = q[[space.place[str(c)] for c in part.coordinates]]
        assert np.abs(own[:3] - centre).max() < 1e-10 and abs(part.element.mass - mass) < 1e-10 * mass
        count += 1
    for joint in space.joints:
        if joint["kind"] in ("hinge", "slide"):
            gap = space.measured(q)[joint["name"]] - (state["qpos"][joint["qpos"]] - joint["ref"])
            assert abs((gap + np.pi) % (2 * np.pi) - np.pi) < 1e-10, joint
    mass, bias, passive, gaps = space.at(q, np.array(state["qvel"]))
    # where MuJoCo has the bodies, all joints are closed
    assert np.abs(gaps).max() < 1e-10
    for ours, theirs in ((mass, state["mass"]), (bias, state["bias"]), (passive, state["passive"])):
        assert np.abs(ours - np.array(theirs)).max() < 1e-10 * max(1.0, np.abs(theirs).max())
    return count


@pytest.mark.parametrize("name", NAMES)
def test_equal_to_mujoco(name):
    """Mass matrix, bias forces, passive forces and poses at random states, to 1e-10 of what MuJoCo wrote down."""
    for state in REFERENCES[name]["states"]:
        assert compare(name, REFERENCES[name], state) == len(REFERENCES[name]["bodies"]) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_equal_to_mujoco_now(name):
    """Accelerations at further states agree with the installed MuJoCo."""
    pytest.importorskip("mujoco")
    spec = importlib.util.spec_from_file_location("make_references", FOLDER / "make_references.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    model, rng = make.model_of(name), np.random.default_rng(7)
    for _ in range(20):
        state = make.plain(make.at_state(model, *make.random_state(model, rng)))
        assert compare(name, REFERENCES[name], state) == len(REFERENCES[name]["bodies"])


def test_the_references_see_a_difference():
    """A body that is a little heavier, and a joint a little aside, are noticed."""
    state, reference = REFERENCES["arm.urdf"]["states"][0], REFERENCES["arm.urdf"]
    heavier = {**reference, "masses": [mass * (1 + 1e-9) for mass in reference["masses"]]}
    aside = {**state, "position": (np.array(state["position"]) + 1e-9 * np.eye(4, 3)).tolist()}
    for changed in ((heavier, state), (reference, aside)):
        with pytest.raises(AssertionError):
            compare("arm.urdf", *changed)


@pytest.mark.parametrize("name", ["four_bar.xml", "gripper.urdf", "linkage.xml"])
def test_gaps_of_closures_and_couplings(name):
    """Violations of loops and couplings agree with MuJoCo."""
    reference = REFERENCES[name]
    mb, space = seen_from_joints(name)
    references = {joint["name"]: joint["ref"] for joint in reference["joints"]}
    assert not any(references.values())
    for state in reference["states"]:
        q, found = coordinates(space, reference, state), []
        measured = space.measured(q)
        for coupling in (one for one in mb.couplings.values() if one.coupling_type == "coupling"):
            (target,) = (one for one in mb._initial_conditions if one.component is coupling)
            phase = sum(weight * measured[joint.name] for joint, _, weight in coupling.terms)
            found.append(float(target.value[0]) - phase)
        for closure in (mb.connections[one] for one in reference["equalities"] if one in mb.connections):
            own = q[[space.place[str(c)] for c in closure.coordinates]]
            n = len(closure.body_a.coordinates)
            X, Y = closure.parameters["X"], closure.parameters["Y"]
            found += list(np.asarray(closure.a.point(own[:n], X) - closure.b.point(own[n:], Y), dtype=float))
        gap = np.array(found) - state["equality"]
        assert len(found) and np.abs((gap + np.pi) % (2 * np.pi) - np.pi).max() < 1e-10


# -- motion -----------------------------------------------------------------------------------------------------------
STARTS = {
    "arm.urdf": {"yaw": 1.0, "shoulder": -0.5, "elbow": 2.0, "flap": 1.5},
    "walker.xml": {},
    "gripper.urdf": {"slide": 0.5, "wrist": 1.0, "jaw": 0.1},
    "four_bar.xml": {"drive": 2.0},
}


LONG = [pytest.param(name, marks=pytest.mark.slow) for name in ("walker.xml", "gripper.urdf")]


@pytest.mark.parametrize("name", ["arm.urdf", "four_bar.xml", *LONG])
def test_motion_is_mujocos(name):
    """Order 2 against accelerations of MuJoCo, integrated to 1e-12: a tree, springs and rotors, followers,
    a closed loop. Constraints hold to round-off, and so does the balance of energy."""
    reference, mb = REFERENCES[name], load(name)
    motion = reference["motion"]
    for joint, rate in STARTS[name].items():
        one = mb.joints[joint]
        mb.initial(one, **{"rate" if one.joint_type.angle else "velocity": rate})
    end, errors = motion["times"][-1], []
    steps = [end / count for count in (16, 32, 64, 128)]
    for h in steps:
        run = mb.simulate(t_end=end, h=h, tier="reference")
        places = [(round(t / h), row) for t, row in zip(motion["times"], motion["rows"], strict=True)]
        found = {body: run[f"{body}.position"] for body in reference["bodies"]}
        errors.append(
            max(
                np.abs(found[body][i] - centre).max()
                for i, row in places
                for body, centre in zip(reference["bodies"], row["centre"], strict=True)
            )
        )
        assert run.summary.max_constraint < 1e-14
        energy = run["total_energy"] - run.supplied_energy + run.dissipated_energy
        assert np.ptp(energy) < 1e-12 * np.abs(run["total_energy"]).max()
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert 1.9 < slope < 2.1 and errors[-1] < 1e-5
