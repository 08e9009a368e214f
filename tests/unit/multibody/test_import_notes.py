"""Notes of imported robots: one note per kind of difference, and rounded quantities of MuJoCo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens.multibody.imports.import_notes import group_notes
from livens.multibody.imports.mesh_inertia import mesh_inertia
from livens.multibody.imports.mjcf import read_mjcf
from livens.scene.mesh import TriangleMesh, make_mesh

FOLDER = Path(__file__).parents[2] / "data" / "robots"


def test_notes_that_differ_in_one_name_become_one():
    notes = [f"f.xml, line {i}: no force in MuJoCo's sense: tendon '{name}'" for i, name in enumerate("abcdefgh")]
    assert group_notes([*notes, "contacts are not imported", notes[0]]) == [
        "f.xml, line 0: no force in MuJoCo's sense: tendon 'a', 'b', 'c', 'd', 'e', 'f' and 2 more",
        "contacts are not imported",
    ]


def test_ignored_content_of_one_kind_is_one_note(tmp_path):
    joints = "".join(
        f'<joint name="j{i}" axis="{axis}" frictionloss="1"/>' for i, axis in enumerate(("1 0 0", "0 1 0"))
    )
    text = f'<body name="b">{joints}<geom size=".1"/></body>'
    (tmp_path / "m.xml").write_text(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
    notes = lv.Multibody.from_mjcf(tmp_path / "m.xml").import_warnings
    assert [note for note in notes if "Coulomb" in note] == [
        "Coulomb friction of 'j0', 'j1' is regularised below a rate of 1e-3, see mb.friction"
    ]


def _potato(seed):
    """Return a closed mesh without symmetries: a tetrahedron whose corners are random."""
    corners = np.random.default_rng(seed).normal(size=(4, 3))
    if np.linalg.det(corners[1:] - corners[0]) < 0:
        corners = corners[[0, 2, 1, 3]]
    return make_mesh("potato", corners, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["exact", "legacy"])
def test_inertia_tensors_of_meshes_are_exact_to_round_off(seed, method):
    """Extended precision evaluates the same sums with 64-bit mantissas."""
    solid = _potato(seed)
    extended = TriangleMesh.__new__(TriangleMesh)
    for name, value in dict(vertices=solid.vertices.astype(np.longdouble), faces=solid.faces, name="potato").items():
        object.__setattr__(extended, name, value)
    ours, exact = mesh_inertia(solid, method)[0].tensor, mesh_inertia(extended, method)[0].tensor
    assert np.finfo(exact.dtype).eps < 1e-18
    assert np.abs(ours - exact).max() < 1e-14 * np.abs(exact).max()


def test_rounded_principal_axes_of_meshes_are_named(tmp_path):
    """MuJoCo stores moments to round-off, but axes that deviate by up to about 1e-8; the note names the meshes."""
    mujoco = pytest.importorskip("mujoco")
    mb = lv.Multibody.from_mjcf(FOLDER / "meshes.xml")
    (note,) = (note for note in mb.import_warnings if "principal axes" in note)
    assert "mesh '" in note
    model = mujoco.MjModel.from_xml_path(str(FOLDER / "meshes.xml"))
    for name, link in read_mjcf(FOLDER / "meshes.xml").links.items():
        if link.mass is None:
            continue
        number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, model.body_iquat[number])
        R = R.reshape(3, 3)
        tensor = R @ np.diag(model.body_inertia[number]) @ R.T
        assert np.abs(tensor - link.mass.tensor).max() < 1e-6 * np.abs(tensor).max()


def test_rates_of_light_links_with_armature_are_set(tmp_path):
    """Masses from 1e-9 kg to 1 kg in one chain, as in files whose densities are placeholders."""
    inner = ""
    for i in (3, 2, 1, 0):
        axis = ("0 0 1", "0 1 0", "0 0 1", "0 1 0")[i]
        size, density = ((0.1, 1.0), (0.05, 1e-4), (0.02, 1e-4), (0.01, 1e-4))[i]
        geom = f'<geom type="capsule" fromto="0 -.02 0 0 .02 0" size="{size}" density="{density}"/>'
        joint = f'<joint name="j{i}" axis="{axis}" armature=".75"/>'
        inner = f'<body name="b{i}" pos=".1 0 .1">{joint}{geom}{inner}</body>'
    text = f'<body name="free"><freejoint/><geom size=".1"/></body>{inner}'
    (tmp_path / "m.xml").write_text(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
    mb = lv.Multibody.from_mjcf(tmp_path / "m.xml")
    for i in range(4):
        mb.initial(mb.joints[f"j{i}"], angle=0.1, rate=1.0 + i)
    run = mb.simulate(h=1e-3, t_end=1e-3)
    assert [run[f"j{i}.rate"][0] for i in range(4)] == pytest.approx([1, 2, 3, 4], rel=1e-9)
