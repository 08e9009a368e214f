"""Films as files: what they hold is what the run holds, and what cannot be written is said in a sentence."""

import base64
import itertools
import json
import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import livens as lv
from livens import rotations as rot
from livens.scene import shapes
from livens.viewer.frame_selection import select_rows
from livens.viewer.keyframes import KeyframeSeries
from livens.viewer.page import page
from livens.viewer.payload import continuous_quaternions, run_payload

#: A page without data stays below this, whatever is vendored.
_PAGE = 3e6


@pytest.fixture(scope="module")
def linkage():
    return lv.simulate(lv.problems.load("double-four-bar"), h=1e-2, t_end=2.0)


@pytest.fixture(scope="module")
def top():
    return lv.simulate(lv.problems.load("heavy-top"), t_end=0.3)


def content(text):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)[1])


def test_a_page_is_self_contained_and_small(linkage, tmp_path):
    path = linkage.animate(tmp_path / "run.html", frames=50)
    text = path.read_text()
    assert path.stat().st_size < _PAGE
    assert "{{" not in text.split("<script>")[0]
    assert not re.search(r"""(src|href)=["']?http""", text) and "@import" not in text
    (run,) = content(text)["runs"]
    assert len(base64.b64decode(run["t"])) == 8 * 50
    panels = {curve["panel"] for curve in run["curves"]}
    assert panels == {"energy", "constraints"}


def read_track(values, packed, far, frames, track):
    """Return the decoded track and its quantization step."""
    low, step, place, near = values[track]
    if not near:
        return low + step * np.frombuffer(packed, "<u2", frames, 2 * frames * place), step
    at = 2 * frames * far + place
    first, slope = struct.unpack_from("<HH", packed, at)
    at += 4
    whole = [first, first + slope]
    while len(whole) < frames:
        (second,) = struct.unpack_from("b", packed, at)
        at += 1
        if second == -128:
            (second,) = struct.unpack_from("<h", packed, at)
            at += 2
        slope += second
        whole.append(whole[-1] + slope)
    return low + step * (np.array(whole) % 65536), step


def test_tracks_are_the_run_to_one_part_in_65536(linkage):
    data = run_payload(linkage, frames=40)
    rows = select_rows(linkage.t, 1, 40)
    packed = base64.b64decode(data["tracks"])
    bar = next(shape for shape in data["shapes"] if shape["name"] == "upper0")
    found, step = read_track(data["values"], packed, data["n_raw"], 40, bar["path"][1])
    y = linkage.q[rows, linkage.info.coordinates.index("upper0.y")]
    assert np.abs(found - y).max() <= 0.52 * step
    found, step = read_track(data["values"], packed, data["n_raw"], 40, bar["velocity"][1])
    rate = linkage.v[rows, linkage.info.coordinates.index("upper0.y")]
    assert np.abs(found - rate).max() <= 0.52 * step + 1e-6 * np.abs(rate).max()


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False, width=32), min_size=2, max_size=30
    ),
    st.floats(0, 1e3, allow_subnormal=False),
    st.integers(2, 400),
)
def test_tracks_lose_nothing_whatever_moves(numbers, pace, frames):
    """Smooth ones with a byte for a frame, rough ones with two: both are read back to half a step."""
    tracks, random = KeyframeSeries(frames), np.random.default_rng(len(numbers))
    moving = [
        np.resize(numbers, frames),
        np.sin(pace * np.linspace(0, 1, frames)),
        np.cumsum(random.standard_normal(frames)),
        np.where(np.arange(frames) % 7, 0.0, pace),
    ]
    places = [tracks.add(series) for series in moving]
    packed = base64.b64decode(tracks.packed())
    for series, place in zip(moving, places, strict=True):
        if isinstance(tracks.values[place], float):
            assert np.ptp(series) < 1e-300
        else:
            found, step = read_track(tracks.values, packed, tracks.n_raw, frames, place)
            assert np.abs(found - series).max() <= (0.52 + 65536 * 2e-16) * step + 1e-15 * np.abs(series).max()


def test_what_moves_smoothly_takes_a_byte_for_a_frame():
    t = np.linspace(0, 10, 2001)
    tracks = KeyframeSeries(len(t))
    for i in range(20):
        tracks.add(np.sin(t + i))
    assert len(base64.b64decode(tracks.packed())) == 20 * (len(t) + 2) and tracks.n_raw == 0
    tracks.add(np.sin(t) + np.where(abs(t - 5) < 0.5, 0.5, 0.0))  # two jumps, four long differences
    assert len(base64.b64decode(tracks.packed())) == 21 * (len(t) + 2) + 8 and tracks.n_raw == 0
    tracks.add(np.sin(1e3 * t))
    assert tracks.n_raw == 1


def test_frames_are_spread_over_time():
    t = np.cumsum(np.r_[0.0, np.geomspace(1e-4, 1e-1, 2000)])  # steps that grow
    rows = select_rows(t, 1, 100)
    assert rows[0] == 0 and rows[-1] == 2000 and len(rows) <= 100
    assert len(select_rows(np.arange(10.0), 1)) == 10
    assert len(select_rows(np.arange(1e5), 10_000)) == 200 and len(select_rows(np.arange(1e5), 1)) == 6000


def test_constant_and_equal_tracks_take_no_room():
    tracks = KeyframeSeries(3)
    assert tracks.add(2.0) == tracks.add(np.full(3, 2.0)) == 0
    assert tracks.add([0.0, 1.0, 2.0]) == tracks.add([0.0, 1.0, 2.0]) == 1
    assert tracks.add([0.0, 1.0 + 1e-9, 2.0]) == 1  # the ends of two bodies in one joint
    assert len(base64.b64decode(tracks.packed())) == 5 and len(tracks.values) == 2
    tracks.add([np.nan, 1.0, np.inf])  # what is nowhere must not spoil a page
    assert "NaN" not in json.dumps(tracks.values)


def test_turns_do_not_jump(top):
    scene = top.scene
    (cone, *_) = scene.shapes
    turns = continuous_quaternions(scene.evaluate(top.q, top.t).frames(cone))
    assert np.all(np.sum(turns[1:] * turns[:-1], axis=1) > 0)


def test_turns_of_any_frame():
    random = np.random.default_rng(3)
    given = random.normal(size=(200, 4))
    given = np.concatenate([given / np.linalg.norm(given, axis=1, keepdims=True), np.eye(4)])
    found = continuous_quaternions(np.array([rot.to_matrix(q) for q in given]))
    assert np.allclose(np.abs(np.sum(found * given, axis=1)), 1)


def test_names_of_strangers_stay_names(tmp_path):
    evil = "</script><script>alert(1)</script>"
    system = lv.System(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: q[1], visual=lambda q: shapes.sphere(q, name=evil)
    )
    run = lv.simulate(system, q0=[0, 0], v0=[1, 0], h=0.1, t_end=1.0)
    text = page([run])
    assert evil not in text and content(text)["runs"][0]["shapes"][0]["name"] == evil


def test_a_file_without_its_model_can_be_viewed(tmp_path):
    system = lv.System(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: q[1], visual=lambda q: shapes.rod([0, 0], q)
    )
    lv.simulate(system, q0=[0, 0], v0=[1, 0], h=0.1, t_end=1.0).save(tmp_path / "mine.h5")
    (run,) = content(page([lv.load(tmp_path / "mine.h5")]))["runs"]
    assert run["shapes"][0]["type"] == "rod" and run["curves"] == []


def test_strip_and_film(linkage, top, tmp_path):
    for run, name in ((linkage, "flat"), (top, "space")):
        assert run.animate(tmp_path / f"{name}.png", frames=3).read_bytes().startswith(b"\x89PNG")
        assert run.animate(tmp_path / f"{name}.gif", frames=4).read_bytes().startswith(b"GIF8")


def test_mp4(linkage, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    assert linkage.animate(tmp_path / "run.mp4", frames=4).read_bytes()[4:8] == b"ftyp"


def test_glb(linkage, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    path = linkage.animate(tmp_path / "run.glb", frames=20)
    whole = path.read_bytes()
    assert whole[:4] == b"glTF" and struct.unpack("<I", whole[8:12])[0] == len(whole)
    found = json.loads(whole[20 : 20 + struct.unpack("<I", whole[12:16])[0]])
    names = [node["name"] for node in found["nodes"]]
    assert "upper0" in names and len(found["animations"][0]["channels"]) >= 10
    loaded = trimesh.load(path)
    assert np.allclose(loaded.bounds[:, 0], [0, 2], atol=0.1)  # upright at the start: from the first bar to the last


def nodes(path):
    """The nodes of a model by name, and where its animation brings them in the last frame."""
    whole = path.read_bytes()
    length = struct.unpack("<I", whole[12:16])[0]
    found, binary = json.loads(whole[20 : 20 + length]), whole[28 + length :]

    def values(number):
        accessor = found["accessors"][number]
        view, width = (
            found["bufferViews"][accessor["bufferView"]],
            {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]],
        )
        numbers = np.frombuffer(binary, "<f4", accessor["count"] * width, view["byteOffset"])
        return numbers.reshape(-1, width)

    last = {i: dict(node) for i, node in enumerate(found["nodes"])}
    for channel in found.get("animations", [{}])[0].get("channels", []):
        sampler = found["animations"][0]["samplers"][channel["sampler"]]
        last[channel["target"]["node"]][channel["target"]["path"]] = values(sampler["output"])[-1].tolist()
    return found, last


def test_every_shape_is_in_a_glb(tmp_path):
    """Opened by trimesh: plates, lines and axes too, where the run has them."""
    trimesh = pytest.importorskip("trimesh")

    def look(q):
        d = q - [0.0, 2.0, 0.0]
        return [
            shapes.polygon([q, q + [1, 0, 0], q + [1, 1, 0], q + [0, 1, 0]], name="plate"),
            shapes.cable([[0, 0, 0], d, q], name="cable"),
            shapes.axes(q, name="axes"),
            shapes.ground([0, 0, -1], 3.0, name="floor"),
            shapes.ring(q, 0.2, name="ring"),
            shapes.path([[0, 0, 0], [1, 0, 0]], name="road"),
        ]

    system = lv.System("x y z", kinetic=lambda v: v @ v / 2, potential=lambda q: q[2], visual=look)
    run = lv.simulate(system, q0=[0, 0, 0], v0=[1, 2, 3], h=0.1, t_end=1.0)
    path = run.animate(tmp_path / "all.glb", frames=5)
    found, last = nodes(path)
    names = [node["name"] for node in found["nodes"]]
    assert [names.count(name) for name in ("plate", "cable", "axes", "floor", "ring", "road")] == [1, 2, 3, 1, 1, 1]
    assert np.allclose(last[names.index("plate")]["translation"], run.q[-1], atol=1e-6)
    ends = [last[i] for i, name in enumerate(names) if name == "cable"]
    assert np.allclose(ends[1]["translation"], run.q[-1] - [0, 1, 0], atol=1e-6)
    scene = trimesh.load(path)
    plate = scene.geometry[next(name for name in scene.geometry if len(scene.geometry[name].faces) == 4)]
    assert plate.area == pytest.approx(2.0)  # both sides


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # of imageio-ffmpeg's reader
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_film_has_the_frames_it_is_asked_for(linkage, tmp_path):
    """Read back by other programs: ffmpeg for mp4, Pillow for gif and png."""
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    from PIL import Image

    reader = imageio_ffmpeg.read_frames(linkage.animate(tmp_path / "run.mp4", frames=6, fps=10))
    facts = next(reader)
    pictures = [np.frombuffer(frame, np.uint8) for frame in reader]
    assert facts["fps"] == 10 and facts["codec"] == "h264" and len(pictures) == 6
    assert all(np.abs(one.astype(int) - other).max() > 50 for one, other in itertools.pairwise(pictures))
    with Image.open(linkage.animate(tmp_path / "run.gif", frames=5, fps=10)) as film:
        assert film.n_frames == 5 and film.info["duration"] == 100
    with Image.open(linkage.animate(tmp_path / "run.png", frames=3)) as strip:
        assert strip.width > 2 * strip.height
        strip.verify()


def test_several_runs_in_one_page(linkage, tmp_path):
    other = lv.simulate(lv.problems.load("double-four-bar"), h=2e-2, t_end=2.0, scheme="livens-midpoint")
    text = linkage.animate(tmp_path / "both.html", other).read_text()
    assert len(content(text)["runs"]) == 2
    with pytest.raises(lv.InputError, match="only an html page"):
        linkage.animate(tmp_path / "both.gif", other)


def test_view_writes_a_page(linkage, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("livens.viewer.display._has_browser", lambda: True)
    film = linkage.view(frames=10)
    assert opened == [film.path.as_uri()] and film.path.name == "double-four-bar.html"
    assert film._repr_html_().startswith("<iframe srcdoc=")


def test_models_without_geometry_say_so(tmp_path):
    states = lv.FirstOrder("a b", rhs=lambda x: [x[1], -x[0]])
    with pytest.raises(lv.InputError, match="is a first-order model, which has no geometry"):
        lv.simulate(states, x0=[1, 0], t_end=0.5, h=0.1, scheme="gauss-2").animate(tmp_path / "run.html")
    bare = lv.System("a", kinetic=lambda v: v[0] ** 2, potential=lambda q: q[0] ** 2)
    with pytest.raises(lv.InputError, match="there is nothing to view"):
        lv.simulate(bare, q0=[1], v0=[0], t_end=0.5, h=0.1).animate(tmp_path / "run.html")


def test_a_model_of_states_may_have_a_look(tmp_path):
    states = lv.FirstOrder("a b", rhs=lambda x: [x[1], -x[0]], visual=lambda x: shapes.sphere([x[0], 0.0], name="ball"))
    run = lv.simulate(states, x0=[1, 0], t_end=0.5, h=0.1, scheme="gauss-2")
    (found,) = content(run.animate(tmp_path / "run.html").read_text())["runs"]
    assert found["shapes"][0]["name"] == "ball" and found["dimension"] == 2
    assert run.plot.trajectory() is not None


@pytest.mark.parametrize("entry", lv.problems.all(), ids=lambda entry: entry.name)
def test_every_ready_problem_can_be_seen(entry):
    """It has shapes, of which some move or turn, and no place is nowhere."""
    scene, state, t = lv.problems.load(entry.name).initial_scene
    pose = scene.evaluate(np.atleast_2d(state), np.array([t]))
    used = [i for shape in scene.shapes for i in (*itertools.chain(*shape.points), *shape.frame)]
    assert any(isinstance(scene.tape[i], list) for i in used)
    assert all(np.isfinite(pose.points(shape)).all() for shape in scene.shapes)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("run.htm", {}, "did you mean 'html'"),
        ("nowhere/run.html", {}, "cannot write"),
        ("run.html", dict(frames=1), "frames must be a whole number"),
        ("run.gif", dict(frames=3, fps=0), "fps must be"),
    ],
)
def test_what_cannot_be_written(linkage, tmp_path, name, options, words):
    with pytest.raises(lv.InputError, match=words):
        linkage.animate(tmp_path / name, **options)


def test_command_line(linkage, tmp_path, monkeypatch, capsys):
    from livens.cli.view import view

    monkeypatch.chdir(tmp_path)
    linkage.save("run.h5")
    view(["run.h5"], out=tmp_path / "film.html", frames=10, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"animation": str(tmp_path / "film.html")}
    view(["simple-pendulum", "run.h5"], out=tmp_path / "two.html", frames=10)
    assert len(content((tmp_path / "two.html").read_text())["runs"]) == 2
    with pytest.raises(lv.InputError, match=r"there is no file 'missing\.h5'"):
        view(["missing.h5"])
