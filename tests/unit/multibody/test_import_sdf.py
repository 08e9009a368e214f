"""SDF files: poses, frames, joints and inertia, compared with MuJoCo, and errors in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import livens as lv

FOLDER = Path(__file__).parents[2] / "data" / "robots"
#: The robot of arm.sdf, written as MJCF; the tensor of `upper` is about axes that are turned by 0.4 rad.
EQUIVALENT = """<mujoco><compiler angle="radian"/><option gravity="0 0 -9.8" timestep="1e-4" integrator="RK4"/>
<worldbody>
<body name="upper" pos=".2 0 1" euler="0 .3 0">
  <inertial pos=".05 0 .02" mass="1.2" fullinertia="{}"/>
  <joint name="shoulder" pos="-.2 0 0" axis="0 1 0" damping=".3" stiffness="4" springref=".1"/>
  <body name="fore" pos=".35 .02 0" euler="0 0 .5">
    <inertial pos="0 0 0" mass=".7" diaginertia=".004 .01 .01"/>
    <joint name="elbow" pos="{}" axis="0 0 1" damping=".02"/>
    <joint name="elbow_2" pos="{}" axis="{}"/>
    <body name="rod" pos=".2 0 0">
      <inertial pos="0 0 0" mass=".2" diaginertia=".001 .001 .001"/>
      <joint name="slide" type="slide" axis="1 0 0" stiffness="50"/>
    </body></body></body></worldbody></mujoco>"""


def _equivalent(path):
    c, s = np.cos(0.4), np.sin(0.4)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    tensor = R @ np.array([[0.02, 0.001, 0], [0.001, 0.03, 0.002], [0, 0.002, 0.04]]) @ R.T
    full = [tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2]]
    c, s = np.cos(0.5), np.sin(0.5)
    to_fore = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    point, axis = to_fore @ [-0.1, -0.02, 0], to_fore @ [0, 1, 0]
    texts = [" ".join(f"{float(x):.17g}" for x in values) for values in (full, point, point, axis)]
    path.write_text(EQUIVALENT.format(*texts))
    return path


def test_an_sdf_file_moves_as_the_equivalent_model_in_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(_equivalent(tmp_path / "arm.xml")))
    data = mujoco.MjData(model)
    rates = np.array([0.5, 1.0, -2.0, 0.3])
    data.qvel[:] = rates
    for _ in range(3000):
        mujoco.mj_step(model, data)
    mb = lv.Multibody.from_sdf(FOLDER / "arm.sdf")
    names = [model.joint(i).name for i in range(model.njnt)]
    assert set(names) <= set(mb.joints) and mb.name == "arm"
    for name, rate in zip(names, rates, strict=True):
        mb.initial(mb.joints[name], **({"velocity": rate} if name == "slide" else {"rate": rate}))
    errors, steps = [], (4e-3, 2e-3, 1e-3, 5e-4)
    for h in steps:
        run = mb.simulate(h=h, t_end=0.3)
        values = [run[f"{name}.{'position' if name == 'slide' else 'angle'}"][-1] for name in names]
        errors.append(np.abs(np.array(values) - data.qpos).max())
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1) and errors[-1] < 1e-5
    notes = " ".join(mb.import_warnings)
    assert "limits are ignored (shoulder)" in notes and "1 <collision>" in notes


def test_free_links_and_closed_loops(tmp_path):
    """Two bars and the world form a triangle, which stands; a link without a joint falls."""

    def link(name, x, z=0):
        moments = "<ixx>.01</ixx><iyy>.01</iyy><izz>.01</izz>"
        inertial = f"<inertial><mass>1</mass><inertia>{moments}</inertia></inertial>"
        return f'<link name="{name}"><pose>{x} 0 {z} 0 0 0</pose>{inertial}</link>'

    def joint(name, kind, parent, child, x, z=0):
        axis = "<axis><xyz>0 1 0</xyz></axis>" if kind == "revolute" else ""
        pose = f'<pose relative_to="__model__">{x} 0 {z} 0 0 0</pose>'
        return f'<joint name="{name}" type="{kind}">{pose}<parent>{parent}</parent><child>{child}</child>{axis}</joint>'

    links = link("a", 0.5) + link("b", 1, -0.5) + link("free", 5)
    joints = joint("left", "revolute", "world", "a", 0) + joint("middle", "revolute", "a", "b", 1)
    joints += joint("right", "ball", "world", "b", 1, -1)
    (tmp_path / "m.sdf").write_text(f'<sdf version="1.9"><model name="m">{links}{joints}</model></sdf>')
    mb = lv.Multibody.from_sdf(tmp_path / "m.sdf", inertia="balance")
    run = mb.simulate(h=1e-3, t_end=0.5)
    assert run["free.position"][-1] == pytest.approx([5, 0, -9.81 * 0.5**2 / 2], abs=1e-9)
    assert np.abs(run["left.angle"]).max() < 1e-6
    assert run.summary.max_constraint < 1e-12


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("<child>fore</child>", "<child>hand</child>", "no link 'hand'"),
        ('relative_to="end"', 'relative_to="tip"', "no frame 'tip'"),
        ('type="universal"', 'type="screw"', "type 'screw' are not supported"),
        ('type="universal"', 'type="hinge"', "type must be one of"),
        ("<xyz>0 2 0</xyz>", "<xyz>0 0 0</xyz>", "must be a direction"),
        ("<mass>1.2</mass>", "<mass>heavy</mass>", "must be numbers"),
        ("<pose>0 0 1 0 0 0</pose>", "<pose>0 0 1</pose>", "6 numbers"),
        ('<frame name="end" attached_to="upper">', '<frame name="end" attached_to="end">', "refers to itself"),
        ("<parent>world</parent>", "<parent>rod</parent>", "its own ancestor"),
        ("<sdf version", "<urdf version", "no XML|not an SDF"),
    ],
)
def test_sdf_files_with_errors(before, after, words, tmp_path):
    (tmp_path / "arm.sdf").write_text((FOLDER / "arm.sdf").read_text().replace(before, after, 1))
    with pytest.raises(lv.InputError, match=words):
        lv.Multibody.from_sdf(tmp_path / "arm.sdf")


def test_links_without_inertia_have_the_defaults_of_the_format(tmp_path):
    text = '<sdf version="1.9"><model name="m"><link name="a"/></model></sdf>'
    (tmp_path / "m.sdf").write_text(text)
    mb = lv.Multibody.from_sdf(tmp_path / "m.sdf")
    assert mb.bodies["a"].element.mass == 1.0 and any("1 kg" in note for note in mb.import_warnings)
    (tmp_path / "m.sdf").write_text(text.replace("<link", "<static>true</static><link"))
    with pytest.raises(lv.InputError, match="no body can move"):
        lv.Multibody.from_sdf(tmp_path / "m.sdf")


def test_free_links_of_zero_mass_are_refused_or_fixed(tmp_path):
    text = (FOLDER / "arm.sdf").read_text().replace("<parent>world</parent>", "<parent>base</parent>", 1)
    base = '<link name="base"><inertial><mass>0</mass></inertial></link><link name="upper">'
    (tmp_path / "arm.sdf").write_text(text.replace('<link name="upper">', base, 1))
    with pytest.raises(lv.InputError, match="a free link needs a mass"):
        lv.Multibody.from_sdf(tmp_path / "arm.sdf")
    mb = lv.Multibody.from_sdf(tmp_path / "arm.sdf", strict=False)
    assert mb.joints["shoulder"].body_a is mb.ground and any(
        "changes the motion" in note for note in mb.import_warnings
    )


def test_joint_axes_of_old_versions_are_in_the_frame_of_the_model(tmp_path):
    """Since version 1.5 an axis without a frame is in the joint frame; before, it was in the frame of the model."""

    def inertia_about_the_hinge(version, attributes):
        path = tmp_path / "bar.sdf"
        path.write_text(
            f'<sdf version="{version}"><model name="bar"><link name="bar"><pose>0 0 1 1.5707963267948966 0 0</pose>'
            "<inertial><mass>1</mass><inertia><ixx>.03</ixx><iyy>.02</iyy><izz>.04</izz></inertia></inertial></link>"
            '<joint name="hinge" type="revolute"><parent>world</parent><child>bar</child>'
            f"<axis><xyz{attributes}>0 1 0</xyz></axis></joint></model></sdf>"
        )
        return lv.Multibody.from_sdf(path).mass_matrix([0.0])[0, 0]

    in_model = inertia_about_the_hinge("1.7", ' expressed_in="__model__"')
    assert in_model == pytest.approx(0.04) and inertia_about_the_hinge("1.7", "") == pytest.approx(0.02)
    assert inertia_about_the_hinge("1.4", "") == in_model
