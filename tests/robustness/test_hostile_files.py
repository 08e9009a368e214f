"""Files that somebody made to do harm, bits that changed, and files that are none of ours to replace."""

import json
import os
import random
import shutil
import struct
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import livens as lv
from livens.cli import app
from livens.results.storage import journal

FLIPS = 60


@pytest.fixture(scope="module", params=["plain", "compressed"])
def sound(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / f"{request.param}.h5"
    problem = lv.problems.load("simple-pendulum")
    lv.simulate(problem, t_end=0.1, out=path, compress=request.param == "compressed")
    return path


@pytest.fixture
def run_file(sound, tmp_path):
    return Path(shutil.copyfile(sound, tmp_path / "run.h5"))


def everything(path):
    """All that livens reads of a file."""
    run = lv.load(path)
    record = run.record
    return {
        **{name: getattr(run, name).tobytes() for name in run.stored},
        "words": repr((vars(record.info), record.summary, record.statistics, record.status, record.events)),
        "checkpoint": repr(record.checkpoint),
    }


def test_no_flipped_bit_is_silent(run_file):
    """Anywhere in the file: it is found, or it belongs to nothing that is read."""
    whole, truth = run_file.read_bytes(), everything(run_file)
    chance, found = random.Random(len(whole)), 0
    for _ in range(FLIPS):
        place = chance.randrange(8 * len(whole))
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        run_file.write_bytes(content)
        try:
            assert everything(run_file) == truth, f"bit {place} is silent"
        except lv.InputError:
            found += 1
    assert found > FLIPS // 10


def test_flipped_bits_of_every_array(run_file):
    """Right in the data, where nothing but the checksums can notice."""
    with h5py.File(run_file, "r") as file:
        plain = [name for name in lv.load(run_file).stored if file[name].id.get_num_chunks()]
        places = {name: file[name].id.get_chunk_info(0).byte_offset for name in plain}
    whole = run_file.read_bytes()
    for name, place in places.items():
        content = bytearray(whole)
        content[place + 19] ^= 1
        run_file.write_bytes(content)
        with pytest.raises(lv.InputError, match="is damaged"):
            getattr(lv.load(run_file), name)


def test_a_damaged_run_does_not_go_on(run_file):
    with h5py.File(run_file, "r+") as file:
        file["q"][3] += 1e-9
    before = run_file.read_bytes()
    with pytest.raises(lv.InputError, match=r"cannot resume .* the rows 0 to 100 of 'q' do not match"):
        lv.resume(run_file, t_end=0.2)
    assert run_file.read_bytes() == before


def replaced(name, make):
    def change(file, folder):
        del file[name]
        make(file, folder)

    return change


def other_file(folder):
    with h5py.File(folder / "secret.h5", "w") as file:
        file["q"] = np.zeros((101, 2))
    return str(folder / "secret.h5")


def virtual(file, folder):
    layout = h5py.VirtualLayout((101, 2), dtype="f8")
    layout[:] = h5py.VirtualSource(other_file(folder), "q", shape=(101, 2))
    file.create_virtual_dataset("q", layout)


def external(file, folder):
    (folder / "secret").write_bytes(bytes(1616))
    file.create_dataset("q", (101, 2), dtype="f8", external=[(str(folder / "secret"), 0, 1616)])


def unknown_filter(file, folder):
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk((101, 2))
    made.set_filter(305, h5py.h5z.FLAG_OPTIONAL, (1,))
    h5py.h5d.create(file.id, b"q", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((101, 2)), made)


HOSTILE = {
    "virtual": replaced("q", virtual),
    "external": replaced("q", external),
    "filter": replaced("q", unknown_filter),
    "soft": replaced("q", lambda file, folder: file.__setitem__("q", h5py.SoftLink("/v"))),
    "link": replaced("q", lambda file, folder: file.__setitem__("q", h5py.ExternalLink(other_file(folder), "q"))),
    "anywhere": lambda file, folder: file.__setitem__("more", h5py.ExternalLink("/etc/passwd", "q")),
    "checkpoint": replaced(
        "checkpoint/carry.z",
        lambda file, folder: file["checkpoint"].__setitem__("carry.z", h5py.ExternalLink(other_file(folder), "q")),
    ),
    "group": replaced("checkpoint", lambda file, folder: file.__setitem__("checkpoint", h5py.SoftLink("/"))),
    "huge": replaced(
        "q",
        lambda file, folder: file.create_dataset("q", (1 << 40, 2), dtype="f8", chunks=(1024, 2), maxshape=(None, 2)),
    ),
    "wide": replaced(
        "q", lambda file, folder: file.create_dataset("q", (101, 1 << 40), dtype="f8", chunks=(1, 1 << 20))
    ),
    "usual": replaced(
        "step_size", lambda file, folder: file.create_dataset("step_size", (101, 1 << 34), dtype="f8", chunks=(1, 9))
    ),
    "chunk": replaced(
        "q",
        lambda file, folder: file.create_dataset("q", (101, 2), dtype="f8", chunks=(1 << 26, 2), maxshape=(None, 2)),
    ),
    "text": replaced("q", lambda file, folder: file.create_dataset("q", data=["a"] * 101, dtype=h5py.string_dtype())),
    "ragged": replaced("q", lambda file, folder: file.create_dataset("q", (101,), dtype=h5py.vlen_dtype(np.float64))),
    "objects": replaced("q", lambda file, folder: file.create_dataset("q", (101, 2), dtype=h5py.ref_dtype)),
    "compound": replaced(
        "q", lambda file, folder: file.create_dataset("q", (101, 2), dtype=[("a", "f8"), ("b", "f8")])
    ),
    "scalar": replaced("q", lambda file, folder: file.create_dataset("q", data=1.0)),
    "float32": replaced("q", lambda file, folder: file.create_dataset("q", data=np.zeros((101, 2), np.float32))),
    "labels": replaced("coordinate", lambda file, folder: file.create_dataset("coordinate", data=np.zeros(2))),
    "other labels": lambda file, folder: file["coordinate"].__setitem__(0, "z"),
    "format": lambda file, folder: file.attrs.__setitem__("format", np.zeros((10,))),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_does_not_belong_into_a_file(run_file, tmp_path, what):
    """It is refused before it is read, and before anything is written."""
    with h5py.File(run_file, "r+") as file:
        HOSTILE[what](file, tmp_path)
    before = run_file.read_bytes()
    for use in (everything, lambda path: lv.resume(path, t_end=0.2)):
        with pytest.raises(lv.InputError, match=r"run\.h5"):
            use(run_file)
    assert run_file.read_bytes() == before


def test_chunks_that_are_larger_than_those_of_livens(run_file):
    """A chunk of 384 KiB is refused: at most 256 KiB are written."""
    with h5py.File(run_file, "r+") as file:
        del file["q"]
        file.create_dataset("q", data=np.zeros((101, 2)), chunks=(3 << 13, 2), maxshape=(None, 2))
    with pytest.raises(lv.InputError, match="'q' is stored in larger chunks than livens writes"):
        everything(run_file)


@pytest.mark.parametrize("piece", [(1 << 62, 8), (10**6, 8), (0, 1 << 60)])
def test_a_journal_that_reaches_out_of_its_file(run_file, piece):
    """With a checksum that is right: whoever wrote it knew what he did."""
    body = struct.pack("<QQ", *piece) + bytes(8)
    for size in (run_file.stat().st_size, 1 << 50):
        foot = struct.pack("<8sQQQ", b"LVjrnl1\n", size, len(body), 1)
        content = run_file.read_bytes() + body + foot + struct.pack("<I", zlib.crc32(foot, zlib.crc32(body)))
        other = run_file.with_name("other.h5")
        other.write_bytes(content)
        with other.open("rb") as file:
            assert journal.pending(file.fileno()) is None
        everything(other)
        assert other.read_bytes() == content


def test_pipes_and_devices_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.h5")
    for path in (tmp_path / "pipe.h5", Path("/dev/zero"), tmp_path):
        with pytest.raises(lv.InputError, match="it is a folder, a device or a pipe"):
            lv.load(path)
    for name in ("a" * 300 + ".h5", "a\0b.h5"):
        with pytest.raises(lv.InputError):
            lv.load(tmp_path / name)
        with pytest.raises(lv.InputError):
            lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.01, out=tmp_path / name)


def test_force_replaces_only_what_livens_wrote(run_file, tmp_path):
    run = lv.load(run_file)
    run.save(run_file, force=True)
    letter, target = tmp_path / "letter.h5", tmp_path / "target.h5"
    letter.write_text("dear reader")
    with h5py.File(target, "w") as file:
        file["measured"] = [1.0]
    (tmp_path / "link.h5").symlink_to(run_file)
    (tmp_path / "nowhere.h5").symlink_to(tmp_path / "new.h5")
    os.mkfifo(tmp_path / "pipe.h5")
    for name, words in {
        "letter.h5": "was not written by livens",
        "target.h5": "was not written by livens",
        "link.h5": "it is a link, a device or a pipe",
        "nowhere.h5": "it is a link, a device or a pipe",
        "pipe.h5": "it is a link, a device or a pipe",
    }.items():
        with pytest.raises(lv.InputError, match=words):
            run.save(tmp_path / name, force=True)
    with pytest.raises(lv.InputError, match="it is a link, a device or a pipe"):
        run.save(Path("/dev/null"), force=True)
    assert letter.read_text() == "dear reader" and not (tmp_path / "new.h5").exists()


def test_a_planted_link_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".run.h5.part").symlink_to(victim)
    with pytest.raises(lv.InputError, match="cannot write the result file"):
        lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.01, out=tmp_path / "run.h5")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("target", ["../stolen.h5", "/tmp/livens-stolen.h5", "a/../../stolen.h5"])
def test_a_scenario_writes_in_its_own_folder(tmp_path, target, monkeypatch):
    folder = tmp_path / "scenarios"
    (folder / "a").mkdir(parents=True)
    monkeypatch.chdir(folder)
    (folder / "run.yaml").write_text(f"problem: simple-pendulum\nt_end: 0.01\nout: {json.dumps(target)}\n")
    with pytest.raises(lv.InputError, match=r"out.*must stay in the folder"):
        lv.scenario.load("run.yaml").run()
    call = CliRunner().invoke
    assert isinstance(call(app, ["run", "run.yaml"]).exception, lv.InputError)
    asked = call(app, ["run", "run.yaml", "--out", str(tmp_path / "asked.h5"), "--quiet"])
    assert asked.exit_code == 0 and (tmp_path / "asked.h5").exists()
    assert not (tmp_path / "stolen.h5").exists() and not Path("/tmp/livens-stolen.h5").exists()


# -- ensembles --------------------------------------------------------------------------------------------------------
def ensemble(**options):
    problem = lv.problems.load("simple-pendulum")
    reduce = {"height": lambda q: q[1]}
    return lv.ensemble(problem, parameters={"g": [9.0, 10.0, 11.0]}, t_end=0.05, every=5, reduce=reduce, **options)


@pytest.fixture(scope="module")
def sound_ensemble(tmp_path_factory):
    return ensemble().save(tmp_path_factory.mktemp("files") / "many.h5")


@pytest.fixture
def many_file(sound_ensemble, tmp_path):
    return Path(shutil.copyfile(sound_ensemble, tmp_path / "many.h5"))


def all_of(path):
    many = lv.Ensemble.load(path)
    arrays = {**many.arrays, **many.parameters, "t": many.t, "steps": many.steps, "n": many.newton_iterations}
    arrays |= {
        f"{name} {kind}": getattr(one, kind) for name, one in many.reduced.items() for kind in ("mean", "lowest")
    }
    words = repr((many.info, many.reasons, many.n_scalar_fallbacks, list(many.summary)))
    return {name: value.tobytes() for name, value in arrays.items()} | {"words": words}


def test_no_flipped_bit_of_an_ensemble_is_silent(many_file):
    whole, truth = many_file.read_bytes(), all_of(many_file)
    chance, found = random.Random(1), 0
    for _ in range(4 * FLIPS):
        place = chance.randrange(8 * len(whole))
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        many_file.write_bytes(content)
        try:
            assert all_of(many_file) == truth, f"bit {place} is silent"
        except lv.InputError:
            found += 1
    assert found > FLIPS // 4


@pytest.mark.parametrize("cut", [0, 1, 100, 3000, -1, -500])
def test_ensembles_cut_off(many_file, cut):
    many_file.write_bytes(many_file.read_bytes()[:cut])
    with pytest.raises(lv.InputError, match=r"many\.h5"):
        all_of(many_file)


def of_states(make):
    def change(file, folder):
        del file["states/q"]
        make(file["states"], folder)

    return change


HOSTILE_ENSEMBLES = {
    "virtual": of_states(virtual),
    "external": of_states(external),
    "filter": of_states(unknown_filter),
    "soft": of_states(lambda group, folder: group.__setitem__("q", h5py.SoftLink("/states/v"))),
    "link": of_states(lambda group, folder: group.__setitem__("q", h5py.ExternalLink(other_file(folder), "q"))),
    "anywhere": lambda file, folder: file.__setitem__("more", h5py.ExternalLink("/etc/passwd", "q")),
    "round": lambda file, folder: file["states"].__setitem__("again", file["states"]),
    "twice": lambda file, folder: [file["states"].__setitem__(f"q{i}", file["states/q"]) for i in range(200)],
    "huge": of_states(lambda group, folder: group.create_dataset("q", (1 << 40, 2), dtype="f8", chunks=(1024, 2))),
    "text": of_states(lambda group, folder: group.create_dataset("q", data=["a"], dtype=h5py.string_dtype())),
    "objects": of_states(lambda group, folder: group.create_dataset("q", (3, 2), dtype=h5py.ref_dtype)),
    "other": of_states(lambda group, folder: group.create_dataset("q", data=np.zeros((3, 11, 2)))),
    "fewer": of_states(lambda group, folder: None),
    "format": lambda file, folder: file.attrs.__setitem__("format", np.zeros((10,))),
    "a run": lambda file, folder: file.attrs.__setitem__("format", "livens-run-4"),
    "words": lambda file, folder: file["record"].__setitem__(20, ord("!")),
    "no words": lambda file, folder: file.__delitem__("record"),
}


@pytest.mark.parametrize("what", HOSTILE_ENSEMBLES)
def test_what_does_not_belong_into_an_ensemble(many_file, tmp_path, what):
    with h5py.File(many_file, "r+") as file:
        HOSTILE_ENSEMBLES[what](file, tmp_path)
    with pytest.raises(lv.InputError, match=r"many\.h5"):
        all_of(many_file)
    with pytest.raises(lv.InputError):
        lv.load(many_file)


def test_ensembles_are_not_read_from_pipes_and_devices(tmp_path):
    os.mkfifo(tmp_path / "pipe.h5")
    for path in (tmp_path / "pipe.h5", Path("/dev/zero"), tmp_path):
        with pytest.raises(lv.InputError, match="it is a folder, a device or a pipe"):
            lv.Ensemble.load(path)


def test_ensembles_replace_only_what_livens_wrote(many_file, tmp_path):
    many = lv.Ensemble.load(many_file)
    many.save(many_file, force=True)
    letter, pipe, link = (tmp_path / name for name in ("letter.h5", "pipe.h5", "link.h5"))
    letter.write_text("dear reader")
    os.mkfifo(pipe)
    link.symlink_to(letter)
    for path in (letter, pipe, link, Path("/dev/null"), tmp_path):
        for write in (lambda path=path: many.save(path, force=True), lambda path=path: ensemble(out=path, force=True)):
            with pytest.raises(lv.InputError, match=r"was not written by livens|it is a"):
                write()
    planted = tmp_path / f".new.h5.{os.getpid()}.part"
    planted.symlink_to(letter)
    with pytest.raises(lv.InputError, match="exists already"):
        many.save(tmp_path / "new.h5")
    assert letter.read_text() == "dear reader" and planted.is_symlink()


def test_the_folder_beside_an_ensemble_is_not_swept(tmp_path):
    """Foreign files in a folder of that name remain."""
    out, folder = tmp_path / "many.h5", tmp_path / "many.h5.parts"
    folder.mkdir()
    (folder / "photo.jpg").write_text("precious")
    for force in (False, True):
        with pytest.raises(lv.InputError, match="contains other files"):
            ensemble(out=out, force=force)
    assert (folder / "photo.jpg").read_text() == "precious"
    (folder / "photo.jpg").unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(lv.InputError, match="contains other files"):
        ensemble(out=out, force=True)
    assert folder.is_symlink()


@pytest.mark.parametrize("content", ["", "PK", "text", "shapes", "bomb", "folder"])
def test_blocks_that_are_not_what_was_written_are_computed_again(tmp_path, content, monkeypatch):
    """Whatever stands there under the name of a block."""
    out, truth = tmp_path / "many.h5", ensemble()
    with monkeypatch.context() as patch:
        patch.setattr(lv.Ensemble, "save", lambda *given, **more: 1 / 0)  # as if it had been killed
        with pytest.raises(ZeroDivisionError):
            ensemble(out=out)
    part = tmp_path / "many.h5.parts" / "000000.npz"
    assert part.exists()
    if content == "folder":
        part.unlink()
        part.symlink_to("/dev/zero")
        with pytest.raises(lv.InputError, match="contains other files"):
            ensemble(out=out)
        return
    if content in ("shapes", "bomb"):
        with np.load(part) as file:
            arrays = {name: file[name] for name in file.files}
        arrays["states"] = arrays["states"][:, :1] if content == "shapes" else np.zeros((3, 10**6, 2))
        (np.savez if content == "shapes" else np.savez_compressed)(part, **arrays)
    else:
        part.write_bytes(content.encode())
    again = ensemble(out=out)
    for name in truth.arrays:
        assert again.arrays[name].tobytes() == truth.arrays[name].tobytes()
    assert not part.parent.exists()
