"""Ensembles as xarray datasets and in Zarr stores, which are filled block by block and survive a kill."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens.results.storage import ensemble_zarr, zarr_store
from livens.results.storage.zarr_store import ZarrArray
from livens.run.ensemble import execution, partial_results

PENDULUM = lv.problems.load("simple-pendulum")
MANY = dict(
    q0=[[-1.0, 0.0]] * 40 + [[-2.0, 0.0]],  # the last one cannot start
    parameters={"g": np.linspace(11.0, 8.0, 41)},  # they are taken in another order
    h=0.01,
    t_end=0.5,
    every=10,
    reduce={"y": lambda q: q[1], "both": lambda q, v: [q[0], v[0]]},
    histograms={"y": (-1.0, 0.0, 4)},
)


@pytest.fixture(scope="module")
def many():
    return lv.ensemble(PENDULUM, **MANY)


def equal(one, other):
    assert one.arrays.keys() == other.arrays.keys() and one.info == other.info
    for name in one.arrays:
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name])
    assert one.summary == other.summary and one.reasons == other.reasons
    for name in ("steps", "newton_iterations", "t"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.parameters.keys() == other.parameters.keys()
    np.testing.assert_array_equal(one.parameters["g"], other.parameters["g"])
    for name, reduced in one.reduced.items():
        for kind in ("mean", "lowest", "highest", "counts", "edges"):
            np.testing.assert_array_equal(getattr(reduced, kind), getattr(other.reduced[name], kind))


def test_an_ensemble_has_a_dimension_for_its_members(many):
    data = many.to_xarray()
    assert data.sizes["member"] == 41 and data["q"].dims == ("member", "t", "coordinate")
    np.testing.assert_array_equal(data["q"].sel(member=7, coordinate="y"), many.q[7, :, 1])
    np.testing.assert_array_equal(data["parameters.g"], many.parameters["g"])
    np.testing.assert_array_equal(data["reduced.y.counts"], many.reduced["y"].counts)
    assert data["failed"].values.tolist() == [False] * 40 + [True]
    assert data["summary.max_energy_drift"][3] == many.summary[3].max_energy_drift


def test_a_store_is_the_ensemble(many, tmp_path, monkeypatch):
    """Written at once, and block by block."""
    monkeypatch.setattr(execution, "_BLOCK_STEPS", 16 * 50)
    for path in (many.save(tmp_path / "at-once.zarr"), tmp_path / "blocks.zarr"):
        if not path.exists():
            equal(many, lv.ensemble(PENDULUM, **MANY, out=path))
        equal(many, lv.Ensemble.load(path))
        meta = json.loads((path / ".zmetadata").read_text())["metadata"]
        assert meta["q/.zattrs"]["_ARRAY_DIMENSIONS"] == ["member", "t", "coordinate"]
        assert [one.name for one in tmp_path.iterdir() if one.suffix != ".zarr"] == []
    assert len(list((tmp_path / "blocks.zarr" / "q").glob("*.0.0"))) == 3  # blocks of sixteen
    with pytest.raises(lv.InputError, match="exists already"):
        many.save(tmp_path / "blocks.zarr")
    many.save(tmp_path / "blocks.zarr", force=True)
    with pytest.raises(lv.InputError, match="exists already"):
        lv.ensemble(PENDULUM, **MANY, out=tmp_path / "blocks.zarr")
    (tmp_path / "other.zarr").mkdir()
    with pytest.raises(lv.InputError, match="not the store"):
        lv.Ensemble.load(tmp_path / "other.zarr")


def test_others_read_a_store(many, tmp_path, monkeypatch):
    """Zarr and xarray, where they are installed."""
    zarr = pytest.importorskip("zarr", reason="Zarr is not installed")
    import xarray

    monkeypatch.setattr(execution, "_BLOCK_STEPS", 16 * 50)
    lv.ensemble(PENDULUM, **MANY, out=tmp_path / "many.zarr")
    data = xarray.open_zarr(tmp_path / "many.zarr").sortby("member")
    np.testing.assert_array_equal(data["q"].sel(coordinate="x"), many.q[:, :, 0])
    np.testing.assert_array_equal(data["parameters.g"], many.parameters["g"])
    group = zarr.open_group(tmp_path / "many.zarr", mode="r")
    assert group.attrs["reasons"].keys() == {"40"}


def test_chunks_are_read_as_they_were_written(tmp_path):
    """Also the last one, which is not full, and those that were never written."""
    array = ZarrArray.create(tmp_path, "a", (7, 2), (3, 2), float, ("member", "t"))
    values = np.arange(14.0).reshape(7, 2)
    for number in (0, 2):
        array.write_chunk(number, values[3 * number : 3 * number + 3])
    np.testing.assert_array_equal(array.read_chunk(2), values[6:])
    with pytest.raises(ValueError, match="2 chunks instead of 3"):
        array.read()
    array.write_missing_chunks()
    found = ZarrArray.open(tmp_path, "a").read()
    np.testing.assert_array_equal(found[[0, 1, 2, 6]], values[[0, 1, 2, 6]])
    assert np.isnan(found[3:6]).all()
    raw = np.fromfile(tmp_path / "a" / "0.0", "<f8")  # as any other reader of the format would
    np.testing.assert_array_equal(raw.reshape(3, 2), values[:3])
    (tmp_path / "a" / ".zarray").write_text(
        json.dumps({**json.loads((tmp_path / "a" / ".zarray").read_text()), "order": "F"})
    )
    with pytest.raises(ValueError, match="not written by livens"):
        ZarrArray.open(tmp_path, "a")


def test_damaged_stores_get_a_sentence(many, tmp_path):
    """Any byte of any file that is changed, cut off, removed or replaced by a link."""
    rng = np.random.default_rng(4)
    out = many.save(tmp_path / "many.zarr")
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.name != ".zmetadata")
    for path in files:
        whole = path.read_bytes()
        i = int(rng.integers(len(whole)))
        for damaged in (whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :], whole[:-1], None):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            if path.name == ".zgroup":  # for other programs, and without any number
                equal(many, lv.Ensemble.load(out))
            else:
                with pytest.raises(lv.InputError, match=r"damaged|not the store"):
                    lv.Ensemble.load(out)
            path.write_bytes(whole)
    equal(many, lv.Ensemble.load(out))
    elsewhere = tmp_path / "secret"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(lv.InputError, match="not the store"):
        lv.Ensemble.load(out)


def test_force_replaces_only_stores(many, tmp_path):
    folder = tmp_path / "many.zarr"
    folder.mkdir()
    (folder / "thesis.tex").write_text("the only copy")
    for attempt in (
        lambda: many.save(folder, force=True),
        lambda: lv.ensemble(PENDULUM, **MANY, out=folder, force=True),
    ):
        with pytest.raises(lv.InputError, match="not written by livens"):
            attempt()
    half = tmp_path / "other.zarr.parts"
    folder.rename(half)
    with pytest.raises(lv.InputError, match="contains other files"):
        lv.ensemble(PENDULUM, **MANY, out=tmp_path / "other.zarr", force=True)
    assert (half / "thesis.tex").read_text() == "the only copy"


SCRIPT = """
import os, signal, sys
import numpy as np
import livens as lv
from livens.run.ensemble import execution, partial_results
execution._BLOCK_STEPS = 16 * 50
saved, save = [], partial_results.ZarrBlockStore.save
def counted(self, number, outcome):
    save(self, number, outcome)
    saved.append(number)
    if len(saved) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
partial_results.ZarrBlockStore.save = counted
lv.ensemble(
    lv.problems.load("simple-pendulum"), parameters={"g": np.linspace(11.0, 8.0, 40)}, h=0.01, t_end=0.5, every=10,
    out=sys.argv[1],
)
"""


def test_a_store_in_the_making_survives_a_kill(tmp_path, monkeypatch):
    """Existing blocks are not recomputed, and the result is equal bit for bit."""
    monkeypatch.setattr(execution, "_BLOCK_STEPS", 16 * 50)
    out, options = tmp_path / "many.zarr", dict(h=0.01, t_end=0.5, every=10)
    weights = {"g": np.linspace(11.0, 8.0, 40)}
    environment = {**os.environ, "PYTHONPATH": str(Path(lv.__file__).parents[1])}
    killed = subprocess.run([sys.executable, "-c", SCRIPT, str(out)], env=environment, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    half = partial_results.blocks_folder(out)
    assert not out.exists() and len(list((half / "q").glob("*.0.0"))) == 2
    again = []
    usual = partial_results.ZarrBlockStore.save
    monkeypatch.setattr(
        partial_results.ZarrBlockStore, "save", lambda self, n, outcome: (again.append(n), usual(self, n, outcome))[1]
    )
    found = lv.ensemble(PENDULUM, parameters=weights, **options, out=out)
    assert again == [2] and not half.exists()
    equal(lv.ensemble(PENDULUM, parameters=weights, **options), found)
    equal(found, lv.Ensemble.load(out))


@pytest.mark.parametrize("place", ["chunks", "metadata", "publish", "remove"])
def test_a_store_that_is_stopped_while_it_is_completed(many, tmp_path, monkeypatch, place):
    """It is completed from its blocks, or is complete; temporary files of the killed process are not part of it."""
    monkeypatch.setattr(execution, "_BLOCK_STEPS", 16 * 50)
    lv.ensemble(PENDULUM, **MANY, out=tmp_path / "whole.zarr")
    out, parts = tmp_path / "many.zarr", tmp_path / "many.zarr.parts"

    def stop(*arguments, **named):
        raise KeyboardInterrupt

    owner, function = {
        "chunks": (zarr_store.ZarrArray, "write_missing_chunks"),
        "metadata": (zarr_store, "consolidate"),
        "publish": (ensemble_zarr, "publish"),
        "remove": (partial_results.shutil, "rmtree"),
    }[place]
    with monkeypatch.context() as stopping, pytest.raises(KeyboardInterrupt):
        stopping.setattr(owner, function, stop)
        lv.ensemble(PENDULUM, **MANY, out=out)
    equal(many, lv.Ensemble.load(out)) if place == "remove" else (parts / "q" / ".0.0.0.99.part").write_bytes(b"half")
    again = []
    monkeypatch.setattr(partial_results.ZarrBlockStore, "save", lambda self, n, outcome: again.append(n))
    if place == "remove":
        monkeypatch.undo()
    lv.ensemble(PENDULUM, **MANY, out=out, force=place == "remove")
    assert not again and not parts.exists()
    equal(many, lv.Ensemble.load(out))
    if place != "remove":
        files = [
            {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
            for root in (out, tmp_path / "whole.zarr")
        ]
        assert files[0] == files[1]
