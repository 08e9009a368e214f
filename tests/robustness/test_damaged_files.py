"""Files that are damaged, or none of ours: refused with a sentence, or read."""

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens.results.storage import hdf5_heap_check


def test_strange_files(tmp_path):
    with pytest.raises(lv.InputError, match="there is no file"):
        lv.load(tmp_path / "nothing.h5")
    text = tmp_path / "text.h5"
    text.write_text("t,q\n0,1\n")
    with pytest.raises(lv.InputError, match="not a result file of livens"):
        lv.load(text)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["t"] = [0.0]
    with pytest.raises(lv.InputError, match="has no format attribute"):
        lv.load(tmp_path / "other.h5")
    with h5py.File(tmp_path / "other.h5", "r+") as file:
        file.attrs["format"] = "livens-run-99"
    with pytest.raises(lv.InputError, match=r"'livens-run-99', not 'livens-run-4'$"):
        lv.load(tmp_path / "other.h5")


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "small.h5"
    lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.01, out=path)
    return path


@given(
    cut=st.none() | st.floats(0, 1),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8),
)
@settings(max_examples=150, deadline=None)
def test_damaged_files_are_refused_or_read(tmp_path_factory, small_file, cut, changes):
    """Bytes changed or cut off anywhere: a clear error or a readable run, never another exception."""
    content = bytearray(small_file.read_bytes())
    if cut is not None:
        del content[int(cut * len(content)) :]
    for place, value in changes:
        if content:
            content[int(place * len(content))] = value
    path = tmp_path_factory.mktemp("damaged") / "run.h5"
    path.write_bytes(bytes(content))
    try:
        run = lv.load(path)
        for name in run.stored:
            getattr(run, name)
    except lv.InputError as error:
        assert str(path) in str(error)


def test_a_heap_of_texts_that_would_send_hdf5_round_for_ever(tmp_path, small_file):
    """Zeros over the head of what is free in a global heap: HDF5 itself does not come back from that."""
    content = bytearray(small_file.read_bytes())
    heap = content.index(hdf5_heap_check.SIGNATURE)
    assert hdf5_heap_check.is_valid_heap(
        bytes(content[heap : heap + hdf5_heap_check.heap_size(bytes(content[heap : heap + 16]))])
    )
    place = content.index(b"livens-run", heap)
    content[place + 32 : heap + 4096] = bytes(heap + 4096 - place - 32)
    path = tmp_path / "run.h5"
    path.write_bytes(bytes(content))
    with pytest.raises(lv.InputError, match="is damaged: a heap of texts is damaged"):
        lv.load(path)


def test_large_heaps_are_read_whole(tmp_path):
    """Texts of more than a heap's usual 4096 bytes, as those of a model with very many names."""
    names = [f"a_rather_long_name_of_a_coordinate_number_{i}" for i in range(200)]
    model = lv.System(names, kinetic=lambda v: v @ v / 2)
    path = tmp_path / "run.h5"
    lv.simulate(model, np.zeros(200), np.ones(200), h=0.1, t_end=0.2, tier="reference", out=path)
    content = path.read_bytes()
    sizes, place = [], -1
    while (place := content.find(hdf5_heap_check.SIGNATURE, place + 1)) >= 0:
        sizes.append(hdf5_heap_check.heap_size(content[place : place + 16]))
    assert max(sizes) > 4096 and lv.load(path).q.shape == (3, 200)


def test_files_of_ensembles_and_runs_name_their_readers(tmp_path):
    problem = lv.problems.load("simple-pendulum")
    lv.simulate(problem, t_end=0.01, out=tmp_path / "run.h5")
    lv.ensemble(problem, parameters=dict(g=[9.0, 10.0]), t_end=0.01, out=tmp_path / "many.h5")
    with pytest.raises(lv.InputError, match=r"read it with lv.load$"):
        lv.Ensemble.load(tmp_path / "run.h5")
    with pytest.raises(lv.InputError, match=r"read it with lv.Ensemble.load$"):
        lv.load(tmp_path / "many.h5")
