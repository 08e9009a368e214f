"""CRC-32 checksums of the contents of a result file, to detect corrupted data.

Rows of a variable are combined to blocks, which are the HDF5 chunks. The checksum of every block is stored in the file
and verified whenever a row of the block is read. (The Fletcher32 filter of HDF5 would send every row through the chunk
cache and rewrite the last chunk of every variable with each commit.)
"""

from __future__ import annotations

import zlib
from typing import Any

import h5py
import numpy as np

#: HDF5 group of the checksums, one dataset per variable.
GROUP = "checksums"
#: Number of hexadecimal digits of the checksum in front of a text.
_DIGITS = 8


class Blocks:
    """Block checksums of a growing variable."""

    def __init__(self, block: int) -> None:
        self._block, self._rows = block, 0
        self._sums: list[int] = []
        self._written = 0  # number of final checksums in the file

    def add(self, rows: np.ndarray) -> None:
        """Update the checksums with further rows."""
        view, taken = np.ascontiguousarray(rows), 0
        while taken < len(view):
            inside = self._rows % self._block
            count = min(self._block - inside, len(view) - taken)
            if not inside:
                self._sums.append(0)
            self._sums[-1] = zlib.crc32(view[taken : taken + count].data, self._sums[-1])
            self._rows, taken = self._rows + count, taken + count

    def write(self, group: h5py.Group, name: str) -> None:
        """Write the checksums to an HDF5 group."""
        if name not in group:
            group.create_dataset(name, (0,), dtype=np.uint32, maxshape=(None,), chunks=(256,))
        if group[name].shape != (len(self._sums),):
            group[name].resize((len(self._sums),))
        first = self._written
        if first < len(self._sums):
            group[name][first:] = np.array(self._sums[first:], dtype=np.uint32)
        self._written = self._rows // self._block


def verified(file: h5py.File, name: str, first: int, last: int) -> np.ndarray:
    """Return rows of a variable; raise ValueError if a block does not match its checksum."""
    data = file[name]
    last = min(last, data.shape[0])
    if GROUP not in file:  # format version without checksums
        return np.asarray(data[first:last])
    block, total = data.chunks[0], data.shape[0]
    begin, end = first // block, -(-last // block)
    sums = np.asarray(file[GROUP][name][begin:end])
    rows = np.asarray(data[begin * block : min(end * block, total)])
    if file[GROUP][name].shape != (-(-total // block),):
        raise ValueError(f"the checksums of '{name}' do not match the number of its rows")
    for i, wanted in enumerate(sums.tolist()):
        if zlib.crc32(rows[i * block : (i + 1) * block].data) != wanted:
            a, b = (begin + i) * block, min((begin + i + 1) * block, total)
            raise ValueError(f"the rows {a} to {b - 1} of '{name}' do not match their checksum")
    return rows[first - begin * block : last - begin * block]


def taken_up(file: h5py.File, name: str, rows: int) -> Blocks:
    """Rebuild the checksums of the first rows of a variable from the verified contents of the file."""
    block = file[name].chunks[0]
    blocks = Blocks(block)
    for first in range(0, rows, 64 * block):
        blocks.add(verified(file, name, first, min(first + 64 * block, rows)))
    return blocks


def with_checksum(text: str) -> bytes:
    """Return a text as bytes, preceded by its checksum."""
    content = text.encode()
    return f"{zlib.crc32(content):0{_DIGITS}x}".encode() + content


def without_checksum(content: bytes) -> Any:
    """Return a text as bytes without its checksum; raise ValueError if the text does not match the checksum."""
    content = content.rstrip(b" ")
    if content.startswith(b"{"):  # format version without checksums
        return content
    if content[:_DIGITS] != f"{zlib.crc32(content[_DIGITS:]):0{_DIGITS}x}".encode():
        raise ValueError("the record of the run does not match its checksum")
    return content[_DIGITS:]
