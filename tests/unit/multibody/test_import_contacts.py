"""Collision geometry of robot files: shapes, filters and friction, and a robot of another project on the floor."""

import numpy as np
import pytest

import livens as lv
from livens import contacts
from livens.errors import InputError

MJCF = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <contact><exclude body1="a" body2="c"/><pair geom1="ball" geom2="top"/></contact>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" friction="0.5 0.01 0.001" margin="0.002"/>
    <body name="a" pos="0 0 0.3"><freejoint/>
      <geom name="ball" type="sphere" size="0.1" friction="0.8" margin="0.001"/>
      <body name="b" pos="0.4 0 0"><joint name="j" axis="0 1 0"/>
        <geom name="rod" type="capsule" fromto="0 0 0 0.3 0 0" size="0.05" condim="1" contype="2" conaffinity="1"/>
        <geom name="egg" type="ellipsoid" size="0.05 0.06 0.07" pos="0 0 0.1" condim="6"/>
        <geom name="ghost" type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0"/></body>
    </body>
    <body name="c" pos="1 0 0.5"><freejoint/>
      <geom name="can" type="cylinder" size="0.1 0.2"/>
      <geom name="top" type="box" size="0.1 0.2 0.3" pos="0 0 0.5"/></body>
  </worldbody>
</mujoco>
"""


def robot(tmp_path, **options):
    file = tmp_path / "robot.xml"
    file.write_text(MJCF)
    return lv.Multibody.from_mjcf(file, contacts={"stiffness": 1e4, **options})


def test_shapes_filters_and_friction(tmp_path):
    mb = robot(tmp_path)
    pairs = mb._pair_contacts
    assert set(pairs) == {f"{name}-floor" for name in ("ball", "rod", "egg", "can", "top")}
    shapes = {name: type(pair.shape_a) for name, pair in pairs.items()}
    assert shapes["rod-floor"] is contacts.Capsule and shapes["egg-floor"] is contacts.Ellipsoid
    assert shapes["can-floor"] is contacts.Cylinder and shapes["top-floor"] is contacts.Box
    assert pairs["ball-floor"].friction == contacts.Friction(0.8)  # the larger coefficient
    assert pairs["rod-floor"].friction == contacts.Friction(1.0)  # condim of the floor is 3
    assert pairs["egg-floor"].friction == contacts.Friction(1.0, spinning=0.01, rolling=1e-3)
    # margins add up: the plane is raised
    assert pairs["ball-floor"].shape_b.reference_position[2] == pytest.approx(0.003)
    assert pairs["rod-floor"].shape_a.reference_position == pytest.approx([0.55, 0, 0.3])
    assert pairs["top-floor"].shape_a.reference_position == pytest.approx([1, 0, 1.0])
    assert any("pairs of moving shapes collide in the file" in note for note in mb.import_warnings)


def test_all_pairs_with_the_filters_of_the_file(tmp_path):
    """Bodies in a joint and excluded bodies do not collide, but a pair does whatever its filters are."""
    file = tmp_path / "robot.xml"
    file.write_text(MJCF.replace('type="cylinder" size="0.1 0.2"', 'type="sphere" size="0.1"'))
    mb = lv.Multibody.from_mjcf(file, contacts=dict(stiffness=1e4, pairs="all"), strict=False)
    moving = {name for name in mb._pair_contacts if not name.endswith("floor")}
    assert moving == {"ball-top", "rod-can", "rod-top", "egg-can"}
    assert any("an ellipsoid with a box is not supported" in note for note in mb.import_warnings)
    with pytest.raises(InputError, match="an ellipsoid with a box is not supported"):
        lv.Multibody.from_mjcf(file, contacts=dict(stiffness=1e4, pairs="all"))


def test_solref_becomes_the_stiffness_with_the_same_static_depth(tmp_path):
    mb = robot(tmp_path, stiffness="solref")
    mass = sum(body.element.mass for body in mb.bodies.values())
    stiffness = mb.system.parameters["ball-floor.stiffness"]
    assert stiffness == pytest.approx(mass * 0.9 / 0.1 / (0.95 * 0.02) ** 2)


def test_links_of_a_urdf_file_collide_with_the_ground(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(
        """<robot name="r"><link name="base"><inertial><mass value="1"/>
        <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><origin xyz="0 0 0.1"/><geometry><box size="0.2 0.2 0.2"/></geometry></collision>
        <collision name="wheel"><origin xyz="0 0 0.5"/><geometry><sphere radius="0.1"/></geometry>
        </collision>
        </link></robot>"""
    )
    silent = lv.Multibody.from_urdf(file, base="floating")
    assert any("2 <collision>" in note for note in silent.import_warnings) and not silent._pair_contacts
    mb = lv.Multibody.from_urdf(file, base="floating", contacts=dict(stiffness=1e4, friction=0.7))
    assert set(mb._pair_contacts) == {"base-ground", "wheel-ground"}
    run = mb.simulate(t_end=0.5, h=1e-3)
    assert run["base.position"][-1] == pytest.approx([0, 0, -9.81 / 4e4], abs=2e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(stiffness=-1.0), "greater than 0"),
        (dict(stifness=1.0), "stiffness"),
        (dict(stiffness=1.0, friction=-0.1), "negative"),
        (dict(stiffness=1.0, dissipation=-0.1), "negative"),
        (dict(stiffness=1.0, pairs="some"), "ground"),
    ],
)
def test_bad_options(tmp_path, options, words):
    file = tmp_path / "robot.xml"
    file.write_text(MJCF)
    with pytest.raises(InputError, match=words):
        lv.Multibody.from_mjcf(file, contacts=options)


@pytest.mark.slow
def test_the_ant_of_gymnasium_stands_where_it_stands_in_mujoco():
    """Ten seconds on four feet: the feet where MuJoCo has them without slip, to the creep of friction."""
    mujoco, gymnasium = pytest.importorskip("mujoco"), pytest.importorskip("gymnasium")
    from pathlib import Path

    file = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    law = dict(stiffness=2e4, dissipation=0.5)
    mb = lv.Multibody.from_mjcf(file, limit_stiffness=500.0, contacts=law, actuators=False)
    assert not any("contact" in note for note in mb.import_warnings)
    angles = dict(ankle_1=1.0, ankle_2=-1.0, ankle_3=-1.0, ankle_4=1.0)
    for name, angle in angles.items():
        mb.initial(mb.joints[name], angle=angle)
    mb.initial(mb.bodies["torso"], position=[0, 0, 0.6])
    run = mb.simulate(t_end=10.0, h=1e-3, every=1000)
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.timestep, model.opt.cone, model.opt.impratio, model.opt.noslip_iterations = 1e-3, 1, 100, 20
    data = mujoco.MjData(model)
    data.qpos[:] = [0, 0, 0.6, 1, 0, 0, 0, 0, 1, 0, -1, 0, -1, 0, 1]
    for _ in range(10_000):
        mujoco.mj_step(model, data)
    feet = {4: "left_ankle_geom", 7: "right_ankle_geom", 10: "third_ankle_geom", 13: "fourth_ankle_geom"}
    for body, geom in feet.items():
        expected = data.geom_xpos[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, geom)]
        # the slip tolerance of 1 mm/s allows 10 mm in this time
        assert np.abs(run[f"body {body}.position"][-1] - expected).max() < 5e-3
        depth = run[f"{geom}-floor.depth"][-1]
        assert 0 < depth < 5e-4 and data.ncon == 4
        assert abs(depth - (0.02 - data.contact[0].dist)) < 5e-4
    assert run.summary.max_energy_drift < 1e-11


#: Gait of the ant: angular frequency, angles of hips and ankles, gains of the servos.
FREQUENCY, SWING, LIFT, GAIN, DAMPING = np.pi, 0.45, 0.3, 200.0, 30.0
#: Legs: sign of the hip angle that moves the foot backwards, phase of a crawl, ankle angle of the stance.
LEGS = {1: (1, 0.0, 1.0), 2: (1, np.pi / 2, -1.0), 3: (-1, np.pi, -1.0), 4: (-1, 3 * np.pi / 2, 1.0)}


def gait(exp, sin, cos, atan):
    """Angles of the joints over time: feet move backwards slowly, and forwards fast while they are lifted."""
    references = {}
    for leg, (sign, phase, stance) in LEGS.items():

        def hip(t, sign=sign, phase=phase):
            angle = FREQUENCY * t + phase
            return -sign * SWING * atan(0.6 * sin(angle) / (1 - 0.6 * cos(angle))) * (1 - exp(-4 * t * t))

        def ankle(t, stance=stance, phase=phase):
            return stance * (1 - LIFT * exp(4 * (cos(FREQUENCY * t + phase) - 1)) * (1 - exp(-4 * t * t)))

        references |= {f"hip_{leg}": hip, f"ankle_{leg}": ankle}
    return references


@pytest.mark.slow
def test_the_ant_of_gymnasium_walks_as_in_mujoco():
    """Ten seconds of a crawl with servos in its joints: one foot is lifted at a time."""
    mujoco, gymnasium = pytest.importorskip("mujoco"), pytest.importorskip("gymnasium")
    from pathlib import Path

    file = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    law = dict(stiffness=2e4, dissipation=0.5)
    mb = lv.Multibody.from_mjcf(file, limit_stiffness=500.0, contacts=law, actuators=False)
    for name, reference in gait(lv.math.exp, lv.math.sin, lv.math.cos, lv.math.atan).items():
        mb.pd(mb.joints[name], kp=GAIN, kd=DAMPING, reference=reference, name=f"{name} servo")
    for leg, (_, _, stance) in LEGS.items():
        mb.initial(mb.joints[f"ankle_{leg}"], angle=stance)
    mb.initial(mb.bodies["torso"], position=[0, 0, 0.6])
    run = mb.simulate(t_end=10.0, h=1e-3, every=50)
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.timestep, model.opt.cone, model.opt.impratio, model.opt.noslip_iterations = 1e-3, 1, 100, 20
    data = mujoco.MjData(model)
    data.qpos[:] = [0, 0, 0.6, 1, 0, 0, 0, 0, 1, 0, -1, 0, -1, 0, 1]
    references = gait(np.exp, np.sin, np.cos, np.arctan)
    joints = {name: mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in references}
    geoms = ["left_ankle_geom", "right_ankle_geom", "third_ankle_geom", "fourth_ankle_geom"]
    ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, geom) for geom in geoms]
    torso, feet = [], []
    for step in range(10_001):
        if step % 50 == 0:
            mujoco.mj_forward(model, data)
            torso.append(data.qpos[:3].copy())
            feet.append(data.geom_xpos[ids].copy())
        for name, joint in joints.items():
            dof, angle = model.jnt_dofadr[joint], data.qpos[model.jnt_qposadr[joint]]
            data.qfrc_applied[dof] = GAIN * (references[name](data.time) - angle) - DAMPING * data.qvel[dof]
        mujoco.mj_step(model, data)
    walked, expected = run["torso.position"], np.array(torso)
    way = expected[-1, 0]
    assert way > 1.0 and walked[-1, 0] == pytest.approx(way, rel=0.03)
    # slip and the impacts of feet on other compliances add up along the way
    assert np.abs(walked - expected).max() < 0.05 * way
    settled = run.t > 0.5
    assert np.abs(walked - expected)[settled, 2].max() < 4e-3
    moved = np.stack([run[f"body {body}.position"] for body in (4, 7, 10, 13)], axis=1)
    assert np.abs(moved - np.array(feet))[settled].max() < 0.06 * way
    # no foot sinks into the floor by more than the weight on two feet and its impact
    depth = np.stack([run[f"{geom}-floor.depth"] for geom in geoms], axis=1)
    stands = (depth > 0) & settled[:, None]
    assert stands.sum(axis=1)[settled].mean() > 1.5 and stands.any(axis=0).all()
    assert np.abs(moved - np.array(feet))[stands][:, 2].max() < 6e-3
    assert depth[settled].max() < 2e-3
    assert run.summary.max_energy_drift < 1e-8
