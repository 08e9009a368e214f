"""Elements of robot files: imported, noted and refused ones."""

import struct
from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens.multibody.imports import link_inertia as solids
from livens.multibody.imports.mesh_inertia import mesh_inertia
from livens.multibody.imports.mjcf_geoms import _unit_sphere_mesh
from livens.scene import mesh
from livens.scene.scene import Scene

FOLDER = Path(__file__).parents[2] / "data" / "robots"
INERTIA = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
TWO = f'<link name="a"/><link name="b">{INERTIA}</link>'


def urdf(tmp_path, inner, **options):
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r">{inner}</robot>', encoding="utf-8")
    return lv.Multibody.from_urdf(path, **options)


def mjcf(tmp_path, inner, **options):
    path = tmp_path / "robot.xml"
    path.write_text(f"<mujoco>{inner}</mujoco>", encoding="utf-8")
    return lv.Multibody.from_mjcf(path, **options)


def joint(words="", kind="revolute", name="j", parent="a", child="b"):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{words}</joint>'


def body(words, name="b", more=""):
    return f'<worldbody><body name="{name}">{words}<geom type="box" size=".1 .2 .3"/>{more}</body></worldbody>'


# -- URDF -------------------------------------------------------------------------------------------------------------
def test_links_that_are_fixed_are_one_body(tmp_path):
    links = f'{TWO}<link name="c">{INERTIA}</link><link name="flange"/>'
    joints = joint('<axis xyz="0 0 1"/>') + joint('<origin xyz="2 0 0"/>', "fixed", "k", "b", "c")
    mb = urdf(tmp_path, links + joints + joint('<origin xyz="0 0 3"/>', "fixed", "m", "c", "flange"))
    (part,) = mb.bodies.values()
    assert part.element.mass == 2.0 and part.reference_position.tolist() == [1, 0, 0]
    assert part.markers["flange"].reference_position.tolist() == [
        2,
        0,
        3,
    ] and part.origin.reference_position.tolist() == [0, 0, 0]
    # two masses of 1 at a distance of 1, and their own moments
    assert mb.check().mobility == 1 and np.allclose(part.element.parameters.values["euler"], np.diag([3, 1, 1]))


def test_the_base_floats_if_asked_to(tmp_path):
    links = TWO.replace('<link name="a"/>', f'<link name="a">{INERTIA}</link>')
    fixed, floating = (urdf(tmp_path, links + joint(), base=base) for base in ("fixed", "floating"))
    assert (fixed.check().mobility, floating.check().mobility) == (1, 7)
    with pytest.raises(lv.InputError, match="base must be"):
        urdf(tmp_path, links + joint(), base="loose")


def test_followers_follow_from_wherever_the_leader_starts():
    """``<mimic>`` is a coupling: it holds at the start, whatever is asked for, and along the run."""
    mb = lv.Multibody.from_urdf(FOLDER / "gripper.urdf")
    mb.initial(mb.joints["jaw"], position=0.02, velocity=0.3)
    run = mb.simulate(t_end=0.02, h=2e-3, tier="reference")
    jaw = run["jaw.position"]
    assert abs(jaw[0] - 0.02) < 1e-12 and np.ptp(jaw) > 1e-3
    assert np.abs(run["other_jaw.position"] - jaw).max() < 1e-13
    assert np.abs(run["spin.angle"] - (0.4 - 20 * jaw)).max() < 1e-12
    assert mb.check().mobility == 3


def test_ends_of_ways_act_if_it_is_said_how_stiff_they_are(tmp_path):
    limit = '<limit lower="-1" upper="2" effort="5" velocity="1"/>'
    mb = urdf(tmp_path, TWO + joint(limit), limit_stiffness=100.0)
    assert mb._force_elements["j limit"].parameters.values["upper"] == 2.0
    slack = urdf(tmp_path, TWO + joint(limit))
    assert "j limit" not in slack._force_elements and any(
        "joint limits are ignored" in note and "(j)" in note for note in slack.import_warnings
    )
    with pytest.raises(lv.InputError, match="limit_stiffness"):
        urdf(tmp_path, TWO + joint(limit), limit_stiffness=-1.0)


def test_friction_and_damping(tmp_path):
    mb = urdf(tmp_path, TWO + joint('<dynamics damping=".5" friction=".2"/>', "prismatic"))
    assert {"j damper", "j friction"} <= set(mb._force_elements) and any(
        "regularised" in note for note in mb.import_warnings
    )


def test_meshes_in_packages():
    """The looks of links are read from the package above the file, or from where it is said to be."""
    for packages in (None, {"robots": FOLDER}):
        mb = lv.Multibody.from_urdf(FOLDER / "meshes.urdf", packages=packages)
        wedge, hook = (
            next(s for s in mb.bodies[name].shape if getattr(s, "shape_type", "") == "mesh") for name in mb.bodies
        )
        assert len(wedge.mesh.faces) == 12 and len(hook.mesh.faces) == 20
        # mirrored, but not inside out
        assert mesh_inertia(hook.mesh)[0].mass == pytest.approx(0.125 * (0.25 + 0.1875) * 0.5)
    lost = lv.Multibody.from_urdf(FOLDER / "meshes.urdf", packages={"robots": FOLDER / "nowhere"})
    assert any("wedge.stl" in note and "not drawn" in note for note in lost.import_warnings)


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        ("", "it has no links"),
        (TWO + joint(child="d"), "there is no link 'd'"),
        (TWO + joint() + joint(name="k"), "is the child of another joint already, 'j'"),
        (TWO + joint(name="") + joint(), "it needs a unique name"),
        (TWO + joint() + joint(), "it needs a unique name"),
        (TWO, "neither it nor 'a' is the child of a joint"),
        (TWO + f'<link name="c">{INERTIA}</link>' + joint(parent="c") + joint(name="k", parent="b", child="c"), "tree"),
        (TWO + joint('<axis xyz="0 0 0"/>'), "must be a direction"),
        (TWO + joint('<axis xyz="0 0"/>'), "3 numbers"),
        (TWO + joint('<axis xyz="0 0 nan"/>'), "finite"),
        (TWO + joint('<axis xyz="0 0 1e300"/>'), "sensible size"),
        (TWO + joint('<axis xyz="up"/>'), "must be 3 numbers"),
        (TWO + joint(kind="hinge"), "type must be one of revolute"),
        (TWO.replace('value="1"', 'value="-1"') + joint(), "value must not be negative"),
        (TWO.replace('value="1"', 'value="0"') + joint(), "an inertia and no mass"),
        (TWO.replace('ixx="1"', 'ixx="3"') + joint(), "principal moments"),
        (TWO.replace('ixx="1" iyy="1"', 'ixx="0" iyy="1"') + joint(), "no inertia about one of its axes"),
        (TWO.replace(INERTIA, "") + joint(), "neither it nor its children have mass"),
        (TWO + joint('<mimic joint="x"/>'), "there is no joint 'x'"),
        (TWO + joint('<mimic joint="j"/>'), "cannot follow itself"),
        (TWO + joint('<dynamics damping="-1"/>'), "must not be negative"),
        (TWO + joint('<dynamics damping="1"/>', "planar"), "damping and friction in a planar joint"),
        (f'<link name="b">{INERTIA}</link>', "no body can move"),
    ],
)
def test_a_urdf_that_is_wrong_gets_a_sentence(tmp_path, inner, words):
    with pytest.raises(lv.InputError, match=words):
        urdf(tmp_path, inner)


def test_a_circle_of_followers(tmp_path):
    links = TWO + f'<link name="c">{INERTIA}</link>'
    first, second = joint('<mimic joint="k"/>'), joint('<mimic joint="j" offset="1"/>', name="k", parent="b", child="c")
    with pytest.raises(lv.InputError, match="follows itself"):
        urdf(tmp_path, links + first + second)


def test_what_a_urdf_says_besides_is_noted(tmp_path):
    mb = urdf(tmp_path, TWO + joint() + '<transmission name="t"/><gazebo reference="a"><mu1>3</mu1></gazebo>')
    assert any("<transmission>" in note for note in mb.import_warnings) and any(
        "<gazebo>" in note for note in mb.import_warnings
    )
    assert "<gazebo>" in str(mb.check())


# -- MJCF -------------------------------------------------------------------------------------------------------------
def test_simple_solids_weigh_what_they_weigh():
    """Against the sum over a fine mesh of triangles, for those that are round."""
    ball = mesh_inertia(_unit_sphere_mesh(60, 120).scaled([0.3, 0.2, 0.1]))[0]
    exact = solids.ellipsoid(np.array([0.3, 0.2, 0.1]))
    assert ball.mass == pytest.approx(exact.mass, rel=3e-3)
    assert np.allclose(ball.tensor, exact.tensor, rtol=6e-3, atol=1e-6)
    # a capsule without a barrel is a ball, and a long one is nearly a cylinder
    assert np.allclose(solids.capsule(0.2, 0.0).tensor, solids.sphere(0.2).tensor)
    long, barrel = solids.capsule(1e-3, 10.0), solids.cylinder(1e-3, 10.0)
    assert np.allclose(long.tensor, barrel.tensor, rtol=1e-3)


def test_several_joints_are_one(tmp_path):
    mb = lv.Multibody.from_mjcf(FOLDER / "linkage.xml")
    kinds = {name: one.type_name for name, one in mb.connections.items() if name.endswith(" joint")}
    assert kinds == {
        "table joint": "planar",
        "mast joint": "universal",
        "sleeve joint": "cylindrical",
        "arm joint": "sliding",
        "buoy joint": "sliding",
    }
    assert {"table_x", "tilt", "roll", "lift", "spin", "heave"} <= set(mb.joints)
    three = '<joint name="x" axis="1 0 0"/><joint name="y" axis="0 1 0"/><joint name="z" axis="0 0 1"/>'
    assert [one.type_name for one in mjcf(tmp_path, body(three)).connections.values()] == ["spherical"]
    slides = three.replace("axis", 'type="slide" axis').replace('name="', 'name="s')
    assert not mjcf(tmp_path, body(slides + three)).connections
    assert mjcf(tmp_path, body(slides + three)).check().mobility == 6


def test_two_angles_of_a_universal_joint_drive_it(tmp_path):
    """Motors in both hinges do the work that energy shows, and angles read back what the start asked for."""
    two = '<joint name="u" axis="1 0 0"/><joint name="w" axis="0 1 0"/>'
    mb = mjcf(tmp_path, body(two))
    mb.initial(mb.joints["u"], angle=0.4, rate=1.0)
    mb.initial(mb.joints["w"], angle=-0.7, rate=-2.0)
    mb.motor(mb.joints["w"], torque=5.0)
    run = mb.simulate(t_end=0.05, h=5e-3, tier="reference")
    assert abs(run["u.angle"][0] - 0.4) < 1e-12 and abs(run["w.angle"][0] + 0.7) < 1e-12
    assert abs(run["u.rate"][0] - 1.0) < 1e-12 and abs(run["w.rate"][0] + 2.0) < 1e-12
    assert abs(run.supplied_energy[-1] - 5.0 * np.diff(run["w.angle"][[0, -1]])[0]) < 1e-3
    assert np.ptp(run["total_energy"] - run.supplied_energy) < 1e-12 * np.abs(run["total_energy"]).max()


def test_a_weld_in_another_pose_than_drawn(tmp_path):
    """A box that hangs on a slide is welded to another, turned by ten degrees from where it is drawn."""
    boxes = """<worldbody><body name="a"><joint type="slide" axis="0 0 1" name="s"/><geom type="box" size=".1 .1 .1"/>
    </body><body name="b" pos="1 0 0"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody>"""
    c, s = np.cos(np.deg2rad(5)), np.sin(np.deg2rad(5))
    weld = f'<equality><weld name="w" body1="a" body2="b" relpose="0.5 0.1 0 {c} 0 {s} 0"/></equality>'
    mb = mjcf(tmp_path, boxes + weld)
    q = mb.assembly.position
    a, b = (q[[mb.system.coordinates.index(str(x)) for x in mb.bodies[name].coordinates]] for name in "ab")
    R = a[3:].reshape(3, 3) @ b[3:].reshape(3, 3).T  # of directors in rows
    assert np.allclose(b[:3] - a[:3], [0.5, 0.1, 0])
    assert np.allclose(
        R, [[np.cos(np.pi / 18), 0, np.sin(np.pi / 18)], [0, 1, 0], [-np.sin(np.pi / 18), 0, np.cos(np.pi / 18)]]
    )
    # of what its joints let each do, one thing is left: both go up and down
    assert mb.check().mobility == 1
    turned = mjcf(tmp_path, boxes + '<equality><weld body1="world" body2="b" relpose="0 0 1 0 0 0 0"/></equality>')
    assert turned.check().mobility == 1


def test_sites_are_points_and_hold_bodies(tmp_path):
    site = '<site name="tip" pos="0 0 1" euler="0 90 0"/>'
    world = '<worldbody><site name="hook" pos="0 0 1.5"/></worldbody>'
    link = '<equality><connect name="held" site1="tip" site2="hook"/></equality>'
    mb = mjcf(tmp_path, body('<joint type="slide" axis="0 0 1"/>' + site) + world + link)
    assert mb.bodies["b"].tip.reference_position.tolist() == [
        0,
        0,
        1,
    ] and mb.ground.hook.reference_position.tolist() == [0, 0, 1.5]
    assert abs(mb.assembly.position[2] - 0.5) < 1e-12
    assert mb.check().mobility == 0


def test_included_files(tmp_path):
    (tmp_path / "part.xml").write_text('<mujocoinclude><joint name="j"/></mujocoinclude>', encoding="utf-8")
    assert list(mjcf(tmp_path, body('<include file="part.xml"/>')).joints) == ["j"]
    (tmp_path / "part.xml").write_text('<mujocoinclude><include file="robot.xml"/></mujocoinclude>', encoding="utf-8")
    with pytest.raises(lv.InputError, match="included a second time"):
        mjcf(tmp_path, body('<include file="part.xml"/>'))
    with pytest.raises(lv.InputError, match="does not exist or is not a file"):
        mjcf(tmp_path, body('<include file="lost.xml"/>'))


def test_settings_of_the_compiler(tmp_path):
    hinge = '<joint name="j" range="-90 90" ref="30" springref="60" stiffness="2"/>'
    degrees = mjcf(tmp_path, body(hinge), limit_stiffness=10.0)
    assert degrees._force_elements["j limit"].parameters.values["upper"] == pytest.approx(np.pi / 3)
    assert degrees._force_elements["j spring"].parameters.values["rest"] == pytest.approx(np.pi / 6)
    assert any("ref" in note for note in degrees.import_warnings)
    free = mjcf(tmp_path, '<compiler autolimits="false"/>' + body(hinge), limit_stiffness=10.0)
    assert "j limit" not in free._force_elements
    heavy = mjcf(tmp_path, '<compiler settotalmass="7"/>' + body("<joint/>"))
    assert heavy.bodies["b"].element.mass == pytest.approx(7.0)
    still = mjcf(tmp_path, '<option gravity="0 0 -9"><flag gravity="disable"/></option>' + body("<joint/>"))
    assert still.gravity is None
    light = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    for how, mass in (("auto", 1.0), ("true", 48.0), ("false", 1.0)):
        made = mjcf(tmp_path, f'<compiler inertiafromgeom="{how}"/>' + body("<joint/>" + light))
        assert made.bodies["b"].element.mass == pytest.approx(mass)


def test_names_are_told_apart(tmp_path):
    mb = mjcf(tmp_path, body('<joint name="arm.x"/>', "arm.x"))
    assert list(mb.bodies) == ["arm_x"] and list(mb.joints) == ["arm_x joint"]
    (renamed,) = (note for note in mb.import_warnings if "renamed" in note)
    assert renamed.count(" -> ") == 2


def test_what_an_mjcf_says_besides_is_noted(tmp_path):
    more = """<sensor><gyro site="x"/></sensor><keyframe><key name="home" qpos="0"/></keyframe><custom/>
    <contact><exclude body1="a" body2="b"/></contact><option timestep="0.01"/><size njmax="3"/>
    <tendon><fixed name="cord"><joint joint="j" coef="1"/></fixed></tendon><zoo/>"""
    mb = mjcf(
        tmp_path,
        body('<joint name="j"/><light pos="0 0 1"/>').replace("<geom", '<geom condim="1" rgba="1 0 0 1"') + more,
    )
    said = "\n".join(mb.import_warnings)
    for words in (
        "sensors are not",
        "stored states",
        "contacts are not",
        "lights",
        "'cord'",
        "option timestep",
        "<zoo>",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        (body('<joint axis="0 0 0"/>'), "must be a direction"),
        (body('<joint type="gear"/>'), "type must be one of hinge"),
        (body('<joint class="x"/>'), "there is no default class 'x'"),
        (body('<joint damping="-1"/>'), "must not be negative"),
        (body('<joint type="ball" armature="1"/>'), "without a single coordinate"),
        (body('<joint/><geom size="0"/>'), "greater than 0"),
        (body("<joint/><geom/>"), "'size' is missing"),
        (body('<joint/><geom size=".1" mass="-2"/>'), "mass must not be negative"),
        (body('<joint/><geom type="capsule" size=".1" fromto="0 0 0 0 0 0"/>'), "are the same"),
        (body('<joint/><geom type="mesh" mesh="m"/>'), "there is no mesh 'm'"),
        (body('<joint/><geom size=".1" quat="0 0 0 0"/>'), "must not be zero"),
        (body('<joint/><geom size=".1" euler="1 2 3" zaxis="0 0 1"/>'), "several ways"),
        (body('<joint name="a"/><joint name="a"/>'), "two joints of this name"),
        (body('<joint/><joint axis="1 1 0"/><joint axis="1 0 1"/>'), "several joints"),
        (
            body('<joint axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint axis="0 0 1"/>'),
            "a slide between hinges",
        ),
        (
            body('<joint axis="1 0 0"/><joint axis="0 1 0" pos="0 0 1"/><joint axis="1 0 0" pos="0 1 1"/>'),
            "do not meet in a point",
        ),
        (body("<freejoint/><joint/>"), "a free joint cannot be combined"),
        (body("<joint/>", more='<body name="b"/>'), "two bodies of this name"),
        (body("<joint/>", more='<body name="c"><joint/></body>'), "neither it nor its children have mass"),
        (body("<joint/>") + '<equality><tendon tendon1="x"/></equality>', "not a fixed tendon"),
        (body("<joint/>") + '<equality><connect body1="x" anchor="0 0 0"/></equality>', "there is no body 'x'"),
        (body("<joint/>") + '<equality><connect body1="b" body2="b" anchor="0 0 0"/></equality>', "to itself"),
        (body('<joint name="j"/>') + '<equality><joint joint1="k"/></equality>', "there is no joint 'k'"),
        (
            body('<joint name="j"/><joint axis="0 1 0" name="k"/>')
            + '<equality><joint joint1="j" joint2="k" polycoef="0 1 2"/></equality>',
            "only linear joint equalities",
        ),
        (body('<joint name="j"/>') + '<actuator><muscle joint="j"/></actuator>', "this type of actuator"),
        (body('<joint name="j"/>') + '<actuator><position joint="j" timeconst="-1"/></actuator>', "not be negative"),
        (body("<joint/>") + '<tendon><spatial name="t" stiffness="4"/></tendon>', "a tendon with stiffness"),
        (body("<joint/>") + '<option viscosity="1" wind="1 0 0"/>', "wind"),
        (body("<joint/>") + '<option><flag damper="disable"/></option>', "switched off"),
        (body("<joint/>") + '<compiler coordinate="global"/>', "coordinate must be one of local"),
        (body("<joint/>") + '<compiler boundmass="1"/>', "boundmass"),
        (body("<joint/>") + '<compiler eulerseq="abc"/>', "eulerseq"),
        (body("<joint/>") + "<worldbody><composite/></worldbody>", "<composite> is not supported"),
        ("<worldbody/>", "no body can move"),
    ],
)
def test_an_mjcf_that_is_wrong_gets_a_sentence(tmp_path, inner, words):
    with pytest.raises(lv.InputError, match=words):
        mjcf(tmp_path, inner)


# -- meshes -----------------------------------------------------------------------------------------------------------
CORNERS = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
FACES = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]


def stl(tmp_path, binary=True, count=None):
    corners = np.array(CORNERS, dtype=float)[np.array(FACES)]
    path = tmp_path / "part.stl"
    if binary:
        rows = b"".join(struct.pack("<12fH", 0, 0, 0, *row.ravel(), 0) for row in corners)
        path.write_bytes(bytes(80) + struct.pack("<I", len(corners) if count is None else count) + rows)
    else:
        rows = ["outer loop " + " ".join(f"vertex {x} {y} {z}" for x, y, z in row) + " endloop" for row in corners]
        path.write_text("solid part\n" + "\n".join(f"facet normal 0 0 0 {row} endfacet" for row in rows) + "\nendsolid")
    return path


def test_files_of_triangles(tmp_path):
    """A tetrahedron from three file formats: volume 1/6, centre of mass at its centroid."""
    path = tmp_path / "part.obj"
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS] + ["f " + " ".join(f"{i - 4}//1" for i in row) for row in FACES]
    path.write_text("\n".join(["# comment", *lines, ""]))
    for solid in (mesh.load_mesh(stl(tmp_path)), mesh.load_mesh(stl(tmp_path, False)), mesh.load_mesh(path)):
        weight, starlike = mesh_inertia(solid)
        assert weight.mass == pytest.approx(1 / 6) and np.allclose(weight.centre, 0.25) and starlike
        assert np.allclose(np.diag(weight.tensor), 1 / 80) and len(solid.vertices) == 4
        assert len(solid.feature_edges(100)) == 6
    with pytest.raises(lv.InputError, match="does not match"):
        mesh.load_mesh(stl(tmp_path, count=7))
    (tmp_path / "part.dae").write_text("")
    with pytest.raises(lv.InputError, match="unsupported format"):
        mesh.load_mesh(tmp_path / "part.dae")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(), "by a file or by vertices"),
        (dict(vertices=CORNERS, faces=[[0, 1, 9]]), "corners that are not there"),
        (dict(vertices=CORNERS, faces=[[0, 1, 0.5]]), "corners that are not there"),
        (dict(vertices=[[0, 0, np.nan]] * 3, faces=[[0, 1, 2]]), "not finite"),
        (dict(vertices=[[0, 0]], faces=FACES), "rows of three numbers"),
        (dict(vertices=CORNERS, faces=[]), "rows of three numbers"),
        (dict(vertices=CORNERS, faces=FACES, scale=0.0), "none is zero"),
    ],
)
def test_a_mesh_that_is_none(given, words):
    with pytest.raises(lv.InputError, match=words):
        lv.shapes.mesh([0, 0, 0], **given)


def test_a_mesh_without_a_volume_has_no_mass():
    with pytest.raises(lv.InputError, match="encloses no volume"):
        mesh_inertia(mesh.make_mesh("it", CORNERS, [[0, 1, 2], [0, 2, 1]]))


def test_meshes_are_part_of_the_scene():
    """A scene with meshes is read back from plain data; what is damaged is refused."""
    mb = lv.Multibody.from_urdf(FOLDER / "meshes.urdf")
    scene, n = mb.system.scene, mb.system.n
    plain = scene.to_json()
    again = Scene.from_json(plain, n)
    assert [shape.mesh for shape in again.shapes if shape.shape_type == "mesh"] == [0, 1] and len(again.meshes) == 2
    assert np.allclose(again.meshes[0].vertices, scene.meshes[0].vertices)
    for damaged in ({**plain, "meshes": []}, {**plain, "meshes": [{"vertices": "AAAA", "faces": "!"}] * 2}):
        with pytest.raises(ValueError, match="its scene cannot be read"):
            Scene.from_json(damaged, n)
