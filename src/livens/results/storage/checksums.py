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


class BlockChecksums:
    """Block checksums of a growing variable."""

    def __init__(self, block_size: int) -> None:
        self._block_size, self._n_rows = block_size, 0
        self._sums: list[int] = []
        self._n_final = 0  # number of final checksums in the file

    def add(self, rows: np.ndarray) -> None:
        """Update the checksums with further rows."""
        view, n_added = np.ascontiguousarray(rows), 0
        while n_added < len(view):
            n_in_block = self._n_rows % self._block_size
            count = min(self._block_size - n_in_block, len(view) - n_added)
            if not n_in_block:
                self._sums.append(0)
            self._sums[-1] = zlib.crc32(view[n_added : n_added + count].data, self._sums[-1])
            self._n_rows, n_added = self._n_rows + count, n_added + count

    def write(self, group: h5py.Group, name: str) -> None:
        """Write the checksums to an HDF5 group."""
        if name not in group:
            group.create_dataset(name, (0,), dtype=np.uint32, maxshape=(None,), chunks=(256,))
        if group[name].shape != (len(self._sums),):
            group[name].resize((len(self._sums),))
        start = self._n_final
        if start < len(self._sums):
            group[name][start:] = np.array(self._sums[start:], dtype=np.uint32)
        self._n_final = self._n_rows // self._block_size


def read_verified(file: h5py.File, name: str, start: int, stop: int) -> np.ndarray:
    """Return rows of a variable; raise ValueError if a block does not match its checksum."""
    data = file[name]
    stop = min(stop, data.shape[0])
    if GROUP not in file:  # format version without checksums
        return np.asarray(data[start:stop])
    block_size, n_rows = data.chunks[0], data.shape[0]
    first_block, stop_block = start // block_size, -(-stop // block_size)
    sums = np.asarray(file[GROUP][name][first_block:stop_block])
    rows = np.asarray(data[first_block * block_size : min(stop_block * block_size, n_rows)])
    if file[GROUP][name].shape != (-(-n_rows // block_size),):
        raise ValueError(f"the checksums of '{name}' do not match the number of its rows")
    for i, expected in enumerate(sums.tolist()):
        if zlib.crc32(rows[i * block_size : (i + 1) * block_size].data) != expected:
            a, b = (first_block + i) * block_size, min((first_block + i + 1) * block_size, n_rows)
            raise ValueError(f"the rows {a} to {b - 1} of '{name}' do not match their checksum")
    return rows[start - first_block * block_size : stop - first_block * block_size]


def rebuild(file: h5py.File, name: str, rows: int) -> BlockChecksums:
    """Rebuild the checksums of the first rows of a variable from the verified contents of the file."""
    block = file[name].chunks[0]
    blocks = BlockChecksums(block)
    for start in range(0, rows, 64 * block):
        blocks.add(read_verified(file, name, start, min(start + 64 * block, rows)))
    return blocks


def add_checksum(text: str) -> bytes:
    """Return a text as bytes, preceded by its checksum."""
    content = text.encode()
    return f"{zlib.crc32(content):0{_DIGITS}x}".encode() + content


def strip_checksum(content: bytes) -> Any:
    """Return a text as bytes without its checksum; raise ValueError if the text does not match the checksum."""
    content = content.rstrip(b" ")
    if content.startswith(b"{"):  # format version without checksums
        return content
    if content[:_DIGITS] != f"{zlib.crc32(content[_DIGITS:]):0{_DIGITS}x}".encode():
        raise ValueError("the record of the run does not match its checksum")
    return content[_DIGITS:]
