"""A file that changes as a whole: what is read back, what is on the disk meanwhile, and what a journal may say."""

import os
import struct
import zlib

import pytest

from livens.results.storage import journal


@pytest.fixture
def descriptor(tmp_path):
    found = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.pwrite(found, bytes(range(100)), 0)
    yield found
    os.close(found)


def on_disk(descriptor):
    return os.pread(descriptor, 10**4, 0)


def test_what_is_written_is_read_and_the_old_state_stays(descriptor):
    """Writes within the last state are held back; writes behind it go to the disk."""
    file = journal.AtomicFile(descriptor)
    file.seek(90)
    assert file.write(b"a" * 20) == 20 and file.tell() == 110
    file.seek(50)
    file.write(b"b" * 3)
    new = bytes(range(50)) + b"bbb" + bytes(range(53, 90)) + b"a" * 20
    for first in (0, 40, 51, 95, 109):
        file.seek(first)
        assert file.read() == new[first:] and file.tell() == 110
        file.seek(first)
        assert file.read(4) == new[first : first + 4].ljust(4, b"\0")
    assert on_disk(descriptor)[:100] == bytes(range(100))
    assert set(file._deferred) == {(90, 10), (50, 3)}
    assert file.seek(-10, os.SEEK_END) == 100 and file.read() == b"a" * 10


def test_all_bytes_of_a_part_are_read(descriptor):
    assert journal._read(descriptor, 30, 10) == bytes(range(10, 40))
    assert journal._read(descriptor, 30, 90) == bytes(range(90, 100)) and journal._read(descriptor, 0, 5) == b""


def written(descriptor, body, count, size=100):
    """A journal behind the file, with the right checksum, whatever it says."""
    foot = journal._FOOT.pack(journal._MARK, size, len(body), count, 0)[: -struct.calcsize("<I")]
    os.pwrite(descriptor, body + foot + struct.pack("<I", zlib.crc32(foot, zlib.crc32(body))), 100)
    return journal.pending(descriptor)


def piece(offset, data, says=None):
    return journal._HEAD.pack(offset, len(data) if says is None else says) + data


def test_what_a_journal_may_say(descriptor):
    good = written(descriptor, piece(20, b"abc") + piece(97, b"xyz"), 2)
    assert good == ([(20, b"abc"), (97, b"xyz"), (0, journal.SIGNATURE)], 100)


@pytest.mark.parametrize(
    ("body", "count", "size"),
    [
        (piece(20, b"abc", says=4), 1, 100),  # more than there is
        (piece(20, b"abc") + piece(30, b"xyz", says=5), 2, 100),
        (piece(98, b"abc"), 1, 100),  # into the journal itself
        (piece(20, b"abc"), 2, 100),
        (piece(20, b"abc"), 1, 101),
    ],
    ids="abcde",
)
def test_what_a_journal_may_not_say(descriptor, body, count, size):
    assert written(descriptor, body, count, size) is None


@pytest.mark.parametrize(("says", "left"), [(60, 60), (100, 100), (140, 100)])
def test_what_no_state_refers_to_is_cut_off(descriptor, says, left):
    block = bytearray(36)
    block[: len(journal.SIGNATURE)], block[8], block[9] = journal.SIGNATURE, 2, 8
    block[28:36] = says.to_bytes(8, "little")
    os.pwrite(descriptor, bytes(block), 0)
    journal.repair(descriptor)
    assert os.fstat(descriptor).st_size == left


def test_a_file_that_is_shorter_than_the_foot_has_no_journal(tmp_path):
    """Even if it begins like one."""
    path = tmp_path / "short"
    path.write_bytes(journal._MARK)
    descriptor = os.open(path, os.O_RDWR)
    try:
        assert journal.pending(descriptor) is None
    finally:
        os.close(descriptor)
