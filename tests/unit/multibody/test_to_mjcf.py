"""Mechanisms written as MJCF files: MuJoCo finds in them the energies, rates and accelerations that livens has."""

import re

import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.models.equations_of_motion import equations_of_motion


def crank(steered=True):
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    crank = mb.rod("crank", a=[0, 0, 0], b=[0.14, 0, 0.14], mass=1)
    rod = mb.rod("rod", a=crank.b, b=[0.62, 0, 0], mass=2)
    slider = mb.box("slider", at=rod.b, size=[0.1, 0.05, 0.05], mass=0.5)
    hinge = mb.revolute("hinge", mb.ground, crank, at=[0, 0, 0], axis="y")
    mb.revolute("pin", crank, rod, at=crank.b, axis="y")
    mb.spherical("wrist", rod, slider, at=rod.b)
    mb.prismatic("guide", mb.ground, slider, axis="x")
    if steered:
        mb.motor(hinge, torque=lambda t, angle, rate: 0.5 * m.sin(3 * t))
    mb.initial(hinge, angle=45 * lv.deg, rate=3)
    return mb


def zoo():
    """Joints with several freedoms, some of them drawn from the second part to the first, springs and a gear."""
    mb = lv.Multibody(gravity=[0.3, 0, -9.81])
    mast = mb.cylinder("mast", at=[0, 0, 1], axis="z", length=0.5, radius=0.1, mass=3)
    sleeve = mb.cylindrical("sleeve", mb.ground, mast, axis="z")
    yoke = mb.box("yoke", at=[0.3, 0, 1.2], size=[0.2, 0.1, 0.3], mass=1.5)
    mb.universal("cross", yoke, mast, at=[0.1, 0, 1.2], axis="x", second_axis="y")
    bob = mb.sphere("bob", at=[0.7, 0.1, 1.2], radius=0.1, mass=1)
    mb.spherical("ball", yoke, bob, at=[0.5, 0, 1.2])
    puck = mb.ring("puck", at=[0, 1, 0], axis="z", radius=0.2, mass=0.4, tube_radius=0.02)
    mb.planar("table", mb.ground, puck, axis="z")
    wheel = mb.cylinder("wheel", at=[1, 1, 0.5], axis="x", length=0.1, radius=0.2, mass=2)
    axle = mb.revolute("axle", wheel, mb.ground, axis="x")
    mb.gear("gear", sleeve, axle, ratio=-2.0)
    comet = mb.box("comet", at=[2, 2, 2], size=[0.1, 0.2, 0.3], mass=1)
    mb.spring("spring", comet, bob, stiffness=30, free_length=1.0)
    mb.torsion_spring("coil", axle, stiffness=4, rest_angle=0.3)
    mb.armature(axle, inertia=0.05)
    mb.initial(sleeve, angle=0.4, velocity=0.3)
    mb.initial(yoke, omega=[0.5, -0.3, 0.2], required=False)
    mb.initial(bob, omega=[1.0, 2.0, -1.0])
    mb.initial(puck, velocity=[0.3, -0.2, 0.0], omega=[0, 0, 3.0])
    mb.initial(comet, velocity=[0.1, 0.2, 0.3], omega=[1.0, -2.0, 0.5])
    return mb


def flat():
    """A four-bar in the plane with a spring to the ground and a body that nothing holds."""
    mb = lv.Multibody(gravity=[0, -9.81], planar=True)
    left = mb.rod("left", a=[0, 0], b=[0, 1], mass=1)
    top = mb.rod("top", a=left.b, b=[2, 1.5], mass=2)
    right = mb.rod("right", a=[2, 0], b=top.b, mass=1)
    base = mb.revolute("base", mb.ground, left, at=left.a)
    mb.revolute("one", left, top, at=left.b)
    mb.revolute("two", top, right, at=top.b)
    mb.revolute("foot", mb.ground, right, at=right.a)
    mb.spring("spring", [0.5, 2], top, stiffness=10)
    mb.particle("stone", at=[3, 3], mass=0.2)
    mb.initial(base, angle=0.2, rate=1.5)
    return mb


@pytest.mark.parametrize("drawn", [crank, zoo, flat])
def test_mujoco_finds_the_same_energies(drawn, tmp_path):
    """Potential and kinetic energy of the keyframe, that all loops are closed, and that they are on velocity level."""
    mujoco = pytest.importorskip("mujoco")
    mb = drawn()
    notes = mb.to_mjcf(tmp_path / "drawn.xml")
    assert notes == (
        ["the law of 'hinge motor' is not in the file: its control is the applied torque or force"]
        if mb.joints.get("hinge")
        else []
    )
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "drawn.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    q, v = mb.initial_state
    k = mb.system.parameter_vector()
    d = equations_of_motion(mb.system)
    potential, kinetic = (float(np.squeeze(d.evaluator(x)(q, v, 0.0, k)[0])) for x in (d.V, d.T))
    assert abs(data.energy[0] - potential) < 1e-10 * max(1.0, abs(potential))
    assert abs(data.energy[1] - kinetic) < 1e-7 * kinetic > 1e-9  # of a particle, MuJoCo has a little inertia
    assert np.abs(data.efc_pos[: data.ne]).max(initial=0.0) < 1e-12
    assert np.abs(data.efc_vel[: data.ne]).max(initial=0.0) < 1e-10
    for name, joint in mb.joints.items():
        if joint.type_name == "revolute" and mujoco.mj_name2id(model, 3, name) >= 0:
            own = q[[mb.system.coordinates.index(str(c)) for c in joint.coordinates]]
            assert abs(data.joint(name).qpos[0] - float(joint.angle(own))) < 1e-12


def test_a_file_that_is_read_again_moves_as_before(tmp_path):
    mb = crank(steered=False)
    assert not mb.to_mjcf(tmp_path / "crank.xml")
    again = lv.Multibody.from_mjcf(tmp_path / "crank.xml")
    again.initial(again.joints["hinge"], rate=3)
    runs = [one.simulate(t_end=0.2, h=1e-2, tier="reference") for one in (mb, again)]
    for name in ("crank", "rod", "slider"):
        assert np.abs(runs[0][f"{name}.position"] - runs[1][f"{name}.position"]).max() < 1e-11


def test_what_a_file_cannot_say_is_said(tmp_path):
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.1], radius=0.1, mass=1)
    mb.wrench("push", ball, force=[1, 0, 0])
    assert mb.to_mjcf(tmp_path / "ball.xml") == ["'push' is not in the file"]
    assert "<!-- 'push' is not in the file -->" in (tmp_path / "ball.xml").read_text(encoding="utf-8")
    (tmp_path / "ball.xml").write_text("written by hand", encoding="utf-8")
    with pytest.raises(lv.InputError, match="exists already"):
        mb.to_mjcf(tmp_path / "ball.xml")
    assert (tmp_path / "ball.xml").read_text(encoding="utf-8") == "written by hand"
    mb.to_mjcf(tmp_path / "ball.xml", force=True)
    assert "<mujoco" in (tmp_path / "ball.xml").read_text(encoding="utf-8")
    mb.rolling("roll", mb.ground, ball, radius=0.1)
    with pytest.raises(lv.InputError, match=re.escape("MJCF has no equivalent of 'roll' (type rolling)")):
        mb.to_mjcf(tmp_path / "ball.xml")
