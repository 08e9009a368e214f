"""Rules of the file inspection: each one at its limit and beyond it."""

import struct

import h5py
import numpy as np
import pytest

from livens.results.storage import hdf5_heap_check
from livens.results.storage.hdf5_validation import read_format, validate, validate_all


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        yield file


SIZE = 10**6


def test_groups_lie_in_each_other_three_deep(file):
    file["a/b/c/numbers"] = np.ones(3)
    validate_all(file, SIZE)
    file["a/b/c/d/numbers"] = np.ones(3)
    with pytest.raises(ValueError, match=r"'/a/b/c/d' is nested too deeply"):
        validate_all(file, SIZE)


@pytest.mark.parametrize(
    "data",
    [
        np.array([b"text"]),
        np.zeros(3, dtype=[("a", float), ("b", int)]),
        np.array([True, False]),
        np.zeros(3, dtype=np.complex128),
    ],
)
def test_variables_consist_of_numbers(file, data):
    file["q"] = data
    with pytest.raises(ValueError, match="'q' does not consist of numbers"):
        validate(file, SIZE)


@pytest.mark.parametrize("data", [np.ones(3), np.arange(3), np.zeros(3, dtype=[("a", float)])])
def test_names_consist_of_text(file, data):
    file["coordinate"] = data
    with pytest.raises(ValueError, match="'coordinate' does not consist of names"):
        validate(file, SIZE)


def test_what_is_in_order(file):
    file.create_dataset("q", data=np.ones((4, 2)), chunks=(4, 2))
    file.create_dataset("newton_iterations", data=np.arange(4), chunks=(4,))
    file["coordinate"] = np.array([b"x", b"y"])
    file["checkpoint/z"] = np.ones(4)
    validate(file, SIZE)
    validate(file, SIZE, ["q", "checkpoint/z"])


def test_groups_are_groups_and_arrays_are_arrays(file):
    file["checkpoint"] = np.ones(3)
    with pytest.raises(ValueError, match="'checkpoint' is not a group"):
        validate(file, SIZE)
    del file["checkpoint"]
    file.create_group("q")
    with pytest.raises(ValueError, match="'q' is not an array"):
        validate(file, SIZE)


def test_nothing_is_larger_than_the_file(file):
    file.create_dataset("q", data=np.ones(100), chunks=(100,))
    validate(file, 800)
    with pytest.raises(ValueError, match="claims to be larger than the file"):
        validate(file, 799)
    file.create_dataset("p", data=np.ones(100), chunks=(100,))
    with pytest.raises(ValueError, match="claims to be larger than the file"):
        validate_all(file, 1599)
    validate_all(file, 1600)
    del file["p"], file["q"]
    file.create_dataset("v", (10**6,), dtype=float, chunks=(100,))  # of which nothing is stored
    with pytest.raises(ValueError, match="larger than what is stored of it"):
        validate(file, SIZE)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("livens-run-2", "livens-run-2"),
        (np.bytes_(b"n" * 64), "n" * 64),
        (np.bytes_(b"n" * 65), None),
        (7.0, None),
        (np.array([b"livens-run-2"]), None),
        (h5py.Empty(np.dtype("S4")), None),
        (None, None),
    ],
)
def test_a_format_is_a_short_text(file, given, found):
    if given is not None:
        file.attrs["format"] = given
    assert read_format(file) == found


# -- heaps of texts ---------------------------------------------------------------------------------------------------
def heap(*objects, size=4096, length=4096):
    """A heap with objects of (number, size they say they have, bytes they take)."""
    content = hdf5_heap_check.SIGNATURE + struct.pack("<Q", size)
    for number, says, takes in objects:
        content += (struct.pack("<HH4xQ", number, 1, says)).ljust(takes, b"t")
    return content[:length].ljust(length, b"\0")


@pytest.mark.parametrize(
    ("content", "sound"),
    [
        (heap((1, 5, 24), (2, 8, 24), (0, 4032, 4032)), True),
        (heap((1, 1, 24), (2, 16, 32), (0, 4024, 4024)), True),
        (heap((1, 5, 24), (2, 9, 32), (0, 4024, 4024)), True),
        (heap((1, 4064, 4080)), True),  # nothing is free
        (heap((1, 4056, 4072), (0, 0, 8)), True),  # less than a head is left at the end
        (heap()[:16] + struct.pack("<HH4xHH4xQ", 0, 1, 8, 0, 4056).ljust(4080), True),  # eight bytes are free, no more
        (heap((1, 4065, 4080)), False),  # beyond the end
        (heap((1, 5, 24), (0, 4057, 4056)), False),
        (heap((1, 5, 24), (0, 0, 4056)), False),  # no size: round and round
        (heap((1, 5, 24), (0, 7, 4056)), False),
        (heap((0, 4080, 4080), size=4088), False),
        (heap((0, 4080, 4080), length=4095), False),
        (heap((0, 4079, 4079), size=4095), False),  # HDF5 makes none that are smaller
        (heap((0, 4080, 4080))[1:] + b"\0", False),
    ],
)
def test_heaps(content, sound):
    assert hdf5_heap_check.is_valid_heap(content) is sound


def test_where_heaps_begin():
    head = heap()[:16]
    assert hdf5_heap_check.heap_size(head) == hdf5_heap_check.heap_size(head + b"more") == 4096
    assert (
        hdf5_heap_check.heap_size(head[:15])
        == hdf5_heap_check.heap_size(b"X" + head[1:])
        == hdf5_heap_check.heap_size(b"")
        == 0
    )
