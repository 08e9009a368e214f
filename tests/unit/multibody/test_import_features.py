"""Features of robot files: fluids, gravity compensation, tendons, mesh inertia, harmless defects of URDF files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens.models.equations_of_motion import equations_of_motion
from livens.multibody.imports.mesh_inertia import mesh_inertia
from livens.scene.mesh import make_mesh

FOLDER = Path(__file__).parents[2] / "data" / "robots"


def _centre_accelerations(mb):
    """Return the accelerations of the centres of all bodies at the initial state, by name."""
    system, (q, v) = mb.system, mb.initial_state
    d = equations_of_motion(system)
    matrix, rhs = d.evaluator(d.kkt_system[0]), d.evaluator(d.kkt_system[1])
    k = system.parameter_vector()
    values = [np.asarray(f(q, v, 0.0, k)[0]) for f in (matrix, rhs)]
    a = np.linalg.lstsq(values[0], values[1].ravel(), rcond=None)[0]
    index = {name: i for i, name in enumerate(system.coordinates)}
    return {name: a[[index[str(c)] for c in body.coordinates[:3]]] for name, body in mb.bodies.items()}


def _mujoco_accelerations(path, qvel):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qvel[:] = qvel
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    accelerations = {}
    for i in range(1, model.nbody):
        out = np.zeros(6)
        mujoco.mj_objectAcceleration(model, data, mujoco.mjtObj.mjOBJ_BODY, i, out, 0)
        accelerations[model.body(i).name] = out[3:] + model.opt.gravity
    return model, data, accelerations


def _compare(mb, accelerations, rtol=1e-10):
    ours = _centre_accelerations(mb)
    scale = max(np.abs(a).max() for a in accelerations.values())
    for name, a in accelerations.items():
        assert np.abs(ours[name] - a).max() < rtol * scale, name


@pytest.mark.parametrize("file", ["fluid.xml", "free_damper.xml", "free_armature.xml"])
def test_bodies_in_a_fluid_and_damped_free_bodies_accelerate_as_in_mujoco(file):
    qvel = np.array([0.3, -0.5, 0.2, 1.0, -2.0, 0.7, 1.5])[: 7 if file == "fluid.xml" else 6]
    _model, data, accelerations = _mujoco_accelerations(FOLDER / file, qvel)
    mb = lv.Multibody.from_mjcf(FOLDER / file)
    body = next(iter(mb.bodies.values()))
    centre = body.reference_position - data.xpos[1]  # of livens, which includes the armature
    omega = data.xmat[1].reshape(3, 3) @ qvel[3:6]
    mb.initial(body, velocity=qvel[:3] + np.cross(omega, centre), omega=omega)
    if file == "fluid.xml":
        mb.initial(mb.joints["fin"], rate=1.5)
    if file == "free_armature.xml":  # of the origin, which is where the armature is
        ours = lv.simulate(mb.problem("puck", h=1e-6, t_end=1e-6))["puck.origin"]
        assert ours[1] == pytest.approx(ours[0] + 1e-6 * qvel[:3] + 5e-13 * data.qacc[:3], abs=1e-15)
        return
    _compare(mb, accelerations)


def test_compensated_weight_is_that_of_mujoco():
    _, _, accelerations = _mujoco_accelerations(FOLDER / "compensated.xml", [0.4, -0.8])
    mb = lv.Multibody.from_mjcf(FOLDER / "compensated.xml")
    mb.initial(mb.joints["shoulder"], rate=0.4)
    mb.initial(mb.joints["elbow"], rate=-0.8)
    _compare(mb, accelerations)
    assert any("hfield" in note for note in mb.import_warnings)


def test_a_fixed_tendon_couples_joints_exactly():
    mb = lv.Multibody.from_mjcf(FOLDER / "tendon.xml")
    run = mb.simulate(h=0.01, t_end=1.0)
    assert np.abs(run["a.angle"] - 2 * run["b.angle"]).max() < 1e-12 and np.abs(run["a.angle"]).max() > 0.5
    assert run.summary.max_energy_drift < 1e-10


def test_harmless_defects_of_a_urdf_are_noted():
    mb = lv.Multibody.from_urdf(FOLDER / "quirks.urdf")
    mb.initial(mb.joints["turn"], rate=2.0)
    run = mb.simulate(h=0.01, t_end=0.1)
    # zero mass with inertia belongs to the rigid assembly: (0.1 + 0.04) 2^2/2
    assert run.observe("kinetic_energy")[0] == pytest.approx(0.28, rel=1e-12)
    notes = " ".join(mb.import_warnings)
    assert "several <axis>" in notes and "lower (1) is above upper (-1)" in notes and "2 visuals are not drawn" in notes


def test_inertia_tensors_that_no_body_can_have():
    with pytest.raises(lv.InputError, match="principal moments"):
        lv.Multibody.from_urdf(FOLDER / "unbalanced.urdf")
    mb = lv.Multibody.from_urdf(FOLDER / "unbalanced.urdf", inertia="balance")
    mb.initial(mb.joints["turn"], rate=1.0)
    run = mb.simulate(h=0.01, t_end=0.1)
    assert run.observe("kinetic_energy")[0] == pytest.approx(0.1, rel=1e-12)  # (0.1 + 0.1 + 0.4)/3/2
    assert any("plate" in note and "mean moments" in note for note in mb.import_warnings)


def test_content_that_changes_the_motion_is_refused_or_named(tmp_path):
    text = (FOLDER / "fluid.xml").read_text().replace('viscosity="0.3"', 'viscosity="0.3" wind="1 0 0"')
    (tmp_path / "wind.xml").write_text(text)
    with pytest.raises(lv.InputError, match="wind"):
        lv.Multibody.from_mjcf(tmp_path / "wind.xml")
    mb = lv.Multibody.from_mjcf(tmp_path / "wind.xml", strict=False)
    assert any("changes the motion" in note and "wind" in note for note in mb.import_warnings)


def test_actuators_are_left_out_on_request():
    file = FOLDER / "walker.xml"
    with_actuators, without = (lv.Multibody.from_mjcf(file, actuators=x) for x in (True, False))
    assert set(with_actuators._inputs) == {"servo", "push"} and not without._inputs
    assert len(without._force_elements) == len(with_actuators._force_elements) - 2


def test_three_hinges_with_springs_dampers_armature_and_actuators_move_as_in_mujoco():
    """Massless links: three hinges at the hip, and a slide after a hinge at the knee."""
    mujoco = pytest.importorskip("mujoco")
    names, rates = ("hip_x", "hip_z", "hip_y", "knee", "leg"), np.array([1.5, -2.0, 1.0, 2.0, 0.3])
    angles = np.array([0.4, 0.7, -0.5, 0.6, 0.02])
    model = mujoco.MjModel.from_xml_path(str(FOLDER / "three_hinges.xml"))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = angles, rates, (0.7, 0.2)
    exact = [data.qpos.copy()]
    for _ in range(2400):
        mujoco.mj_step(model, data)
        exact.append(data.qpos.copy())
    mb = lv.Multibody.from_mjcf(FOLDER / "three_hinges.xml")
    for name, angle, rate in zip(names, angles, rates, strict=True):
        if name == "leg":
            mb.initial(mb.joints[name], position=angle, velocity=rate)
        else:
            mb.initial(mb.joints[name], angle=angle, rate=rate)
    errors = []
    steps = (4e-3, 2e-3, 1e-3, 4e-4)
    for h in steps:
        run = mb.simulate(h=h, t_end=0.48, parameters={"twist": 0.7, "knee_servo": 0.2})
        ours = np.column_stack([run[f"{name}.{'position' if name == 'leg' else 'angle'}"] for name in names])
        errors.append(np.abs(ours - np.array(exact)[:: round(h / 2e-4)]).max())
    assert errors[-1] < 1e-5 and np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1)
    assert np.ptp(ours, axis=0).min() > 0.01
    # torques of springs are those of the three coordinates
    springs = [run["hip_x spring.torque"], run["hip_z spring.torque"]]
    assert springs[0] == pytest.approx(-5 * run["hip_x.angle"], abs=1e-9)
    assert springs[1] == pytest.approx(-8 * (run["hip_z.angle"] - np.deg2rad(10)), abs=1e-9)


def test_three_hinges_keep_energy_and_angular_momentum_without_dampers(tmp_path):
    text = (FOLDER / "three_hinges.xml").read_text()
    for attribute in ('damping="0.3"', 'damping="0.2"', 'damping="0.1"', 'damping="0.2 0.1"', 'damping="12"'):
        text = text.replace(attribute, "")
    text = text.replace('springdamper="0.5 0.4"', 'stiffness="3"').replace("0 0 -9.81", "0 0 0")
    (tmp_path / "free.xml").write_text(text)
    mb = lv.Multibody.from_mjcf(tmp_path / "free.xml", actuators=False)
    mb.initial(mb.joints["hip_z"], angle=0.5, rate=2.0)
    mb.initial(mb.joints["hip_x"], rate=-3.0)
    run = mb.simulate(h=0.01, t_end=5.0)
    assert run.summary.max_energy_drift < 1e-10
    # rotors of the armatures turn with the joints over the whole run
    for name in ("hip_x", "hip_z", "hip_y"):
        rotor = run.q[:, mb.system.coordinates.index(str(mb.joints[name].armature.rotor.coordinates[0]))]
        assert np.abs(rotor - rotor[0] - (run[f"{name}.angle"] - run[f"{name}.angle"][0])).max() < 1e-11


@pytest.mark.parametrize(
    "forces",
    ['stiffness="30" damping="0.4" armature="0.02"', 'stiffness="40" springlength="0.1 0.3"', 'range="-0.2 0.25"'],
)
def test_fixed_tendons_with_forces_and_actuators_move_as_in_mujoco(forces, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    text = (FOLDER / "tendon_forces.xml").read_text().replace('damping="0" ', forces)
    (tmp_path / "finger.xml").write_text(text)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "finger.xml"))
    if "range" in forces:  # the same stiff spring: MuJoCo's limits are soft constraints
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
        model.tendon_stiffness[:], model.tendon_lengthspring[:] = 500.0, (-0.2, 0.25)
    data = mujoco.MjData(model)
    data.qvel[:], data.ctrl[:] = (12.0, -3.0, 0.2), (0.6, 0.3)
    for _ in range(5000):
        mujoco.mj_step(model, data)
    mb = lv.Multibody.from_mjcf(tmp_path / "finger.xml", limit_stiffness=500.0)
    for name, rate in (("base", 12.0), ("tip", -3.0)):
        mb.initial(mb.joints[name], rate=rate)
    mb.initial(mb.joints["slide"], velocity=0.2)
    assert not any("tendon" in note for note in mb.import_warnings)
    errors, steps = [], (2e-3, 1e-3, 5e-4)
    for h in steps:
        run = mb.simulate(h=h, t_end=0.5, parameters={"pull": 0.6, "servo": 0.3})
        values = [run["base.angle"][-1], run["tip.angle"][-1], run["slide.position"][-1]]
        errors.append(np.abs(np.array(values) - (data.qpos - model.qpos0)).max())
    assert errors[-1] < 1e-4 and errors[-1] < errors[0] / 10
    assert abs(data.qpos[0]) > 1


def test_replicas_are_those_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(FOLDER / "replicas.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mb = lv.Multibody.from_mjcf(FOLDER / "replicas.xml")
    assert list(mb.bodies) == [model.body(i).name for i in range(1, model.nbody)]
    assert list(mb.joints) == [model.joint(i).name for i in range(model.njnt)]
    for i, body in enumerate(mb.bodies.values(), 1):
        assert body.reference_position == pytest.approx(data.xipos[i], abs=1e-12)
    matrix = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, matrix)
    assert mb.mass_matrix({}) == pytest.approx(matrix, abs=1e-12)
    assert mb.simulate(h=0.01, t_end=0.1, parameters={"push": 1.0})["shoulder-1.angle"][-1] > 0


# -- mesh inertia -----------------------------------------------------------------------------------------------------
def _cube():
    vertices = [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    faces = [
        (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4),
        (1, 5, 7), (1, 7, 3),
    ]  # fmt: skip
    return np.array(vertices, dtype=float), np.array(faces)


@pytest.mark.parametrize("method", ["exact", "legacy", "convex"])
def test_the_inertia_of_a_cube_is_that_of_the_solid(method):
    inertia, consistent = mesh_inertia(make_mesh("cube", *_cube()), method)
    assert consistent and inertia.mass == pytest.approx(1.0) and inertia.centre == pytest.approx([0.5] * 3)
    assert np.allclose(inertia.tensor, np.eye(3) / 6, atol=1e-14)


def test_the_inertia_of_a_shell_is_that_of_the_surface():
    inertia, _ = mesh_inertia(make_mesh("cube", *_cube()), "shell")
    # two faces normal to the axis with 1/6, four with 1/12 + 1/4
    assert inertia.mass == pytest.approx(6.0) and np.allclose(inertia.tensor, np.eye(3) * (2 / 6 + 4 / 3))


def test_inverted_faces_are_found_and_weigh_in_the_legacy_method():
    vertices, faces = _cube()
    faces[:2] = faces[:2, ::-1]
    mesh = make_mesh("cube", vertices, faces)
    exact, consistent = mesh_inertia(mesh, "exact")
    legacy, _ = mesh_inertia(mesh, "legacy")
    assert not consistent and exact.mass < 0.9 and legacy.mass == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["legacy", "exact", "convex", "shell"])
def test_meshes_weigh_as_in_mujoco(method, tmp_path):
    """A concave mesh, an L: MuJoCo overestimates its volume by default."""
    mujoco = pytest.importorskip("mujoco")
    outline = [(0, 0), (2, 0), (2, 0.5), (0.5, 0.5), (0.5, 2), (0, 2)]
    vertices = [(x, y, z) for z in (0, 0.25) for x, y in outline]
    triangles = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    faces = [t[::-1] for t in triangles] + [tuple(i + 6 for i in t) for t in triangles]
    for i in range(6):
        j = (i + 1) % 6
        faces += [(i, j, j + 6), (i, j + 6, i + 6)]
    flat = lambda rows: " ".join(str(x) for row in rows for x in row)  # noqa: E731
    text = f"""<mujoco><asset><mesh name="m" inertia="{method}" vertex="{flat(vertices)}" face="{flat(faces)}"/></asset>
    <worldbody><body name="b"><joint axis="1 2 3"/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    (tmp_path / "mesh.xml").write_text(text)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "mesh.xml"))
    mb = lv.Multibody.from_mjcf(tmp_path / "mesh.xml")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mb.initial(next(iter(mb.joints.values())), rate=1.0)
    energy = lv.simulate(mb.problem("m", h=1e-3, t_end=1e-3)).observe("kinetic_energy")[0]
    data.qvel[:] = 1.0
    mujoco.mj_forward(model, data)
    mujoco.mj_energyVel(model, data)
    assert energy == pytest.approx(data.energy[1], rel=1e-9)


def test_a_keyframe_is_the_start_with_its_controls():
    mujoco = pytest.importorskip("mujoco")
    path = FOLDER / "keyframe.xml"
    mb = lv.Multibody.from_mjcf(path, keyframe="up")
    run = mb.simulate(t_end=0.2, h=4e-4)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    model.opt.timestep, model.opt.integrator = 2e-4, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    mujoco.mj_forward(model, data)
    for row, tolerance in ((0, 1e-14), (-1, 1e-7)):
        for name in ("base", "leg", "foot"):
            assert np.abs(run[f"{name}.position"][row] - data.body(name).xipos).max() < tolerance
        for _ in range(1000 if row == 0 else 0):
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
    with pytest.raises(lv.InputError, match="there is no keyframe 'down'"):
        lv.Multibody.from_mjcf(path, keyframe="down")
    with pytest.raises(lv.InputError, match="1 keyframes"):
        lv.Multibody.from_mjcf(path, keyframe=1)


def test_a_xacro_file_is_the_urdf_of_its_macros(tmp_path):
    pytest.importorskip("xacro")
    path = tmp_path / "arm.xacro"
    path.write_text("""<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:property name="l" value="0.5"/>
<link name="floor"/><link name="rod"><inertial><origin xyz="${l/2} 0 0"/><mass value="2"/>
<inertia ixx="0.01" iyy="${2*l*l/12}" izz="${2*l*l/12}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="floor"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>""")
    mb = lv.Multibody.from_urdf(path)
    inertia = 2 * 0.25 / 3
    assert mb.mass_matrix({"hinge": 0.3})[0, 0] == pytest.approx(inertia, rel=1e-12)


def test_a_ball_in_a_fluid_is_dragged_along_the_axes_of_its_link(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "ball.xml"
    path.write_text("""<mujoco><option density="800" gravity="0 0 0"/><worldbody><body name="ball" euler="10 40 25">
<freejoint/><geom size=".2"/></body></worldbody></mujoco>""")
    mb = lv.Multibody.from_mjcf(path)
    mb.initial(mb.bodies["ball"], velocity=[3, 2, 1])
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qvel[:3] = 3, 2, 1
    mujoco.mj_forward(model, data)
    run = mb.simulate(t_end=1e-4, h=1e-6)
    change = (run["ball.velocity"][-1] - run["ball.velocity"][0]) / 1e-4
    assert np.abs(change - data.qacc[:3]).max() < 1e-3 * np.abs(data.qacc[:3]).max()


@pytest.mark.parametrize(
    "joint, more, words",
    [
        ('frictionloss="0.5"', "", "Coulomb friction of 'j' is regularised"),
        (
            "",
            '<tendon><fixed name="t" range="-1 1"><joint joint="j" coef="1"/></fixed></tendon>',
            "limits",
        ),
        ('ref="30"', "", "measured from its reference pose"),
    ],
)
def test_what_differs_from_mujoco_is_refused_or_named(joint, more, words, tmp_path):
    path = tmp_path / "model.xml"
    body = f'<body name="b"><joint name="j" {joint}/><geom size=".1"/></body>'
    path.write_text(f"<mujoco><worldbody>{body}</worldbody>{more}</mujoco>")
    try:
        said = " ".join(lv.Multibody.from_mjcf(path).import_warnings)
    except lv.InputError as error:
        said = str(error)
    assert words in said
