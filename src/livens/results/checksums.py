"""Checksums of everything a file holds, so that a bit that has changed on a disk or on the way is noticed.

Rows of a variable are taken together in blocks, as HDF5 stores them. The checksum of every block is kept in the file
beside the data, and compared whenever a row of the block is read. (The checksums that HDF5 offers itself would send
every row through a cache, and the last block of every variable anew to disk with each commit.)
"""

from __future__ import annotations

import zlib
from typing import Any

import h5py
import numpy as np

#: Where they are in a file, by the name of the variable.
GROUP = "checksums"
#: How many digits the checksum of a text has; it stands before the text.
_DIGITS = 8


class Blocks:
    """The checksums of a variable that grows."""

    def __init__(self, block: int) -> None:
        self._block, self._rows = block, 0
        self._sums: list[int] = []
        self._written = 0  # how many are in the file and stay as they are

    def add(self, rows: np.ndarray) -> None:
        """Take more rows into account."""
        view, taken = np.ascontiguousarray(rows), 0
        while taken < len(view):
            inside = self._rows % self._block
            count = min(self._block - inside, len(view) - taken)
            if not inside:
                self._sums.append(0)
            self._sums[-1] = zlib.crc32(view[taken : taken + count].data, self._sums[-1])
            self._rows, taken = self._rows + count, taken + count

    def write(self, group: h5py.Group, name: str) -> None:
        """Bring them to the file."""
        if name not in group:
            group.create_dataset(name, (0,), dtype=np.uint32, maxshape=(None,), chunks=(256,))
        if group[name].shape != (len(self._sums),):
            group[name].resize((len(self._sums),))
        first = self._written
        if first < len(self._sums):
            group[name][first:] = np.array(self._sums[first:], dtype=np.uint32)
        self._written = self._rows // self._block


def verified(file: h5py.File, name: str, first: int, last: int) -> np.ndarray:
    """Rows of a variable. If they are not what was written, a ValueError says so."""
    data = file[name]
    last = min(last, data.shape[0])
    if GROUP not in file:  # of an earlier version
        return np.asarray(data[first:last])
    block, total = data.chunks[0], data.shape[0]
    begin, end = first // block, -(-last // block)
    sums = np.asarray(file[GROUP][name][begin:end])
    rows = np.asarray(data[begin * block : min(end * block, total)])
    if file[GROUP][name].shape != (-(-total // block),):
        raise ValueError(f"the checksums of '{name}' are not those of its rows")
    for i, wanted in enumerate(sums.tolist()):
        if zlib.crc32(rows[i * block : (i + 1) * block].data) != wanted:
            a, b = (begin + i) * block, min((begin + i + 1) * block, total)
            raise ValueError(f"the rows {a} to {b - 1} of '{name}' are not what was written")
    return rows[first - begin * block : last - begin * block]


def taken_up(file: h5py.File, name: str, rows: int) -> Blocks:
    """The checksums of the first rows of a variable, made anew from what is in the file and was verified."""
    block = file[name].chunks[0]
    blocks = Blocks(block)
    for first in range(0, rows, 64 * block):
        blocks.add(verified(file, name, first, min(first + 64 * block, rows)))
    return blocks


def with_checksum(text: str) -> bytes:
    """A text that bears its checksum."""
    content = text.encode()
    return f"{zlib.crc32(content):0{_DIGITS}x}".encode() + content


def without_checksum(content: bytes) -> Any:
    """The text again, as bytes, if it is what was written."""
    content = content.rstrip(b" ")
    if content.startswith(b"{"):  # of an earlier version
        return content
    if content[:_DIGITS] != f"{zlib.crc32(content[_DIGITS:]):0{_DIGITS}x}".encode():
        raise ValueError("what it says about its run is not what was written")
    return content[_DIGITS:]
