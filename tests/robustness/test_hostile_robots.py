"""Files of robots that were damaged, or made to do harm: each gets a sentence, or is a robot."""

from pathlib import Path

import numpy as np
import pytest

import livens as lv

FOLDER = Path(__file__).parents[1] / "data" / "robots"
FILES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".urdf", ".sdf", ".xml"))
WORDS = [
    b"0",
    b"-1",
    b"nan",
    b"inf",
    b"1e308",
    b"1e-320",
    b"",
    b"''",
    b"0 0 0",
    b"x" * 5000,
    b"<",
    b"&amp;",
    b"\xff\xfe",
]
WORDS += [b"world", b"../../../../etc/passwd", b"package://x/y", b"/dev/zero", b"http://example.com/x.stl", b"\x00"]


def read(path):
    """A mechanism, or one of the package's own errors with a sentence; nothing else."""
    try:
        readers = {".urdf": lv.Multibody.from_urdf, ".sdf": lv.Multibody.from_sdf, ".xml": lv.Multibody.from_mjcf}
        made = readers[path.suffix](path)
    except lv.InputError as error:
        assert 10 < len(str(error)) < 1000
        return None
    assert made.bodies and all(np.isfinite(part.reference_position).all() for part in made.bodies.values())
    return made


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_damaged_files(tmp_path, file):
    """Values exchanged for others, attributes and elements lost or doubled, bytes changed, the end cut off."""
    rng, whole, path = np.random.default_rng(11), file.read_bytes(), tmp_path / file.name
    values = [i for i in range(len(whole)) if whole[i : i + 2] == b'="']
    lines = whole.splitlines(keepends=True)
    refused = 0
    for trial in range(32):
        kind = trial % 4
        if kind == 0:
            at = int(rng.choice(values)) + 2
            changed = whole[:at] + WORDS[int(rng.integers(len(WORDS)))] + whole[whole.index(b'"', at) :]
        elif kind == 1:
            gone = int(rng.integers(len(lines)))
            changed = b"".join(lines[:gone] + lines[gone + 1 :] + ([lines[gone]] if rng.random() < 0.3 else []))
        elif kind == 2:
            at = int(rng.integers(len(whole)))
            changed = whole[:at] + bytes([int(rng.integers(256))]) + whole[at + 1 :]
        else:
            changed = whole[: int(rng.integers(len(whole)))]
        path.write_bytes(changed)
        refused += read(path) is None
    assert refused > 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no XML"),
        ("robot", "no XML"),
        ("<robot/>", "it has no links"),
        ("<mujoco/>", "not <robot>"),
        ('<!DOCTYPE robot [<!ENTITY a "b">]><robot name="&a;"/>', "not read"),
        ('<!DOCTYPE robot [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot>&a;</robot>', "not read"),
        ('<!DOCTYPE robot SYSTEM "http://example.com/x.dtd"><robot/>', "not read"),
        ("<robot>" * 300 + "</robot>" * 300, "nested"),
        ('<?xml version="1.0" encoding="klingon"?><robot/>', "no XML"),
    ],
)
def test_files_that_are_no_robots(tmp_path, text, words):
    path = tmp_path / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(lv.InputError, match=words):
        lv.Multibody.from_urdf(path)


def test_absurd_sizes(tmp_path):
    """Too many elements, and files that are too large, or no files."""
    path = tmp_path / "robot.urdf"
    path.write_text("<robot>" + "<link/>" * 200_001 + "</robot>", encoding="utf-8")
    with pytest.raises(lv.InputError, match="more than 200000 elements"):
        lv.Multibody.from_urdf(path)
    with path.open("wb") as file:
        file.truncate(33_000_000)
    with pytest.raises(lv.InputError, match="larger than 32 MB"):
        lv.Multibody.from_urdf(path)
    for other in (tmp_path, tmp_path / "lost.urdf", Path("/dev/zero")):
        with pytest.raises(lv.InputError, match="does not exist or is not a file"):
            lv.Multibody.from_urdf(other)
    with pytest.raises(lv.InputError, match=r"from_urdf has no argument 'pth'; did you mean 'path'"):
        lv.Multibody.from_urdf(pth="robot.urdf")
    for nothing in (None, 3, "", b"robot.urdf"):
        with pytest.raises(lv.InputError, match="path must be"):
            lv.Multibody.from_mjcf(nothing)


def test_a_mesh_from_far_away_is_not_fetched(tmp_path):
    """Names that lead elsewhere are answered, and nothing outside the machine is asked."""
    text = (FOLDER / "meshes.urdf").read_text(encoding="utf-8")
    for name in (
        "http://example.com/a.stl",
        "/dev/zero",
        "/dev/random.stl",
        "../../x.obj",
        "package://a/b.stl",
        "a\nb.stl",
    ):
        (tmp_path / "robot.urdf").write_text(text.replace("meshes/hook.obj", name), encoding="utf-8")
        mb = lv.Multibody.from_urdf(tmp_path / "robot.urdf", packages={"robots": FOLDER})
        assert sum("is not drawn" in note for note in mb.import_warnings) == 1
    with pytest.raises(lv.InputError, match="packages must map"):
        lv.Multibody.from_urdf(tmp_path / "robot.urdf", packages="robots")
